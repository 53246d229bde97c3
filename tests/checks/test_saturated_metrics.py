"""SF802: a number that hides failures, and numbers beside a report or the loss, which hide nothing."""

from __future__ import annotations

import math
import textwrap

import pytest
import torch
from checking import Check

EVALUATION = """
import logging
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger(__name__)
loader = DataLoader(TensorDataset(torch.randn(8, 4), torch.zeros(8).long()), batch_size=4)
model = nn.Linear(4, 3)


def evaluate():
    total, count = 0.0, 0
    skipped = 0
    for x, y in loader:
        try:
            total += F.cross_entropy(model(x), y).item()
            count += 1
{handler}
    if count == 0:
        return float("inf")
    return total / count
"""


def evaluation(handler: str) -> str:
    return EVALUATION.format(handler=textwrap.indent(handler, "        "))


@pytest.mark.parametrize(
    "handler",
    [
        "except Exception:\n    pass",
        "except Exception:\n    continue",
        "except RuntimeError:\n    torch.cuda.empty_cache()",
        "except Exception as e:\n    if count > 3:\n        print(e)",
    ],
)
def test_a_number_after_silent_failures_is_reported(handler: str, check: Check) -> None:
    (diagnostic,) = check(evaluation(handler), {"SF802"})
    assert "if every batch fails" in diagnostic.message


@pytest.mark.parametrize(
    "handler",
    [
        "except Exception as e:\n    print(e)",
        "except Exception as e:\n    logger.warning('batch failed: %s', e)\n    continue",
        "except Exception:\n    skipped += 1",
        "except Exception:\n    logger.exception('failed')\n    torch.cuda.empty_cache()",
    ],
)
def test_a_number_after_reported_failures_is_left_to_the_handler(handler: str, check: Check) -> None:
    text = evaluation(handler)
    assert check(text, {"SF802"}) == []
    assert [d.code for d in check(text, {"SF801"})] == ["SF801"]


HEAD = """
import logging
import math
import torch
import torch.nn.functional as F
from tqdm import tqdm

logger = logging.getLogger(__name__)
bar = tqdm(range(3))
losses = [F.cross_entropy(torch.randn(4, 5), torch.zeros(4).long()).item() for _ in range(3)]
loss = sum(losses) / len(losses)
"""
BESIDE = [
    "print(f'loss {loss:.2f} ppl {min(math.exp(loss), 1e4):.1f}')",
    "print('loss', loss, 'ppl', min(math.exp(loss), 1e4))",
    "ppl = min(math.exp(loss), 1e4)\nlogger.info('loss %f ppl %f', loss, ppl)",
    "ppl = min(math.exp(loss), 1e4)\nbar.set_postfix(loss=loss, ppl=ppl)\nprint(f'{ppl:.1f} from {loss}')",
    "metrics = {'loss': loss, 'ppl': min(math.exp(loss), 1e4)}",
    "def f(loss):\n    ppl = min(math.exp(loss), 1e4)\n    return loss, ppl\nf(loss)",
]
ALONE = [
    "ppl = min(math.exp(loss), 1e4)",
    "print(f'ppl {min(math.exp(loss), 1e4):.1f}')",
    "ppl = min(math.exp(loss), 1e4)\nprint('loss', loss)\nprint('ppl', ppl)",
    "ppl = min(math.exp(loss), 1e4)\nprint(loss, ppl)\nbest = ppl < 100",
    "def f(loss):\n    return min(math.exp(loss), 1e4)\nf(loss)",
    "metrics = {'steps': len(losses), 'ppl': min(math.exp(loss), 1e4)}",
]


@pytest.mark.parametrize("code", BESIDE)
def test_a_capped_perplexity_beside_the_loss_is_for_display(code: str, check: Check) -> None:
    assert check(f"{HEAD}{code}\n", {"SF802"}) == []


@pytest.mark.parametrize("code", ALONE)
def test_a_capped_perplexity_without_the_loss_hides_it(code: str, check: Check) -> None:
    assert [d.code for d in check(f"{HEAD}{code}\n", {"SF802"})] == ["SF802"]


def test_the_loss_tells_apart_what_the_cap_makes_equal() -> None:
    losses = [torch.tensor(12.0), torch.tensor(30.0)]
    assert len({min(math.exp(loss), 1e4) for loss in losses}) == 1
    assert len({loss.item() for loss in losses}) == 2
