"""`.to(device)` of what a batch holds: what a real run says of it is what is reported."""

from __future__ import annotations

import pytest
from checking import Check

HEAD = """
import torch

tensors = {"x": torch.ones(2), "y": torch.ones(3)}
batch = {"x": torch.ones(2), "names": ["a", "b"], "count": 2, "rate": 0.5, "note": "n", "nothing": None}
KEYS = [line for line in ["x"]]
"""

REFUSED = [
    "{k: v.to('cpu') for k, v in batch.items()}",
    "{k: v.cuda() for k, v in batch.items() if k == 'names'}",
    "[v.to('cpu') for v in batch.values()]",
    "{k: batch[k].to('cpu') for k in batch}",
    "batch['note'].to('cpu')",
    "batch['count'].to('cpu')",
    "batch['rate'].to('cpu')",
    "{k: v.to('cpu') for k, v in batch.items() if k in ('x', 'nothing')}",
    "{k: v.to('cpu') if k != 'names' else v for k, v in batch.items()}",
    "('a', 'b').to('cpu')",
]
MOVED = [
    "{k: v.to('cpu') for k, v in tensors.items()}",
    "{k: v.to('cpu') if isinstance(v, torch.Tensor) else v for k, v in batch.items()}",
    "{k: v if not isinstance(v, torch.Tensor) else v.to('cpu') for k, v in batch.items()}",
    "{k: v.to('cpu') for k, v in batch.items() if torch.is_tensor(v)}",
    "{k: hasattr(v, 'to') and v.to('cpu') for k, v in batch.items()}",
    "{k: getattr(v, 'to', lambda _: v)('cpu') for k, v in batch.items()}",
    "{k: v.to('cpu') if type(v) is torch.Tensor else v for k, v in batch.items()}",
    "{k: v.to('cpu') if type(v) == torch.Tensor else v for k, v in batch.items()}",
    "{k: v if isinstance(v, (list, int, float, str, type(None))) else v.to('cpu') for k, v in batch.items()}",
    "{k: v.to('cpu') for k, v in batch.items() if k in KEYS}",
    "[v if v is None or isinstance(v, (list, str, int, float)) else v.to('cpu') for v in batch.values()]",
]


def codes(text: str, check: Check) -> set[str]:
    return {finding.code for finding in check(text)}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_has_no_to_is_reported(expression: str, check: Check) -> None:
    text = f"{HEAD}\nmoved = {expression}\n"
    with pytest.raises(AttributeError, match=r"has no attribute '(to|cuda)'"):
        exec(text, {})
    assert codes(text, check) == {"SF405"}


@pytest.mark.parametrize("expression", MOVED)
def test_what_can_be_moved_is_not_reported(expression: str, check: Check) -> None:
    text = f"{HEAD}\nmoved = {expression}\n"
    exec(text, {})
    assert codes(text, check) == set()


def test_the_members_of_an_enumeration_have_methods_of_their_own(check: Check) -> None:
    text = """
from enum import Enum

class Part(Enum):
    ONE = 1

    @property
    def half(self):
        return self.value / 2

    def cuda(self):
        return self

Part.ONE.value
Part.ONE.half
Part.ONE.cuda()
"""
    exec(text, {"__name__": "script"})
    assert codes(text, check) == set()
