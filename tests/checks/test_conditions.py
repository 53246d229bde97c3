"""Conditions of findings: each names the variables of the checked code."""

from __future__ import annotations

import pytest
from checking import Check


@pytest.mark.parametrize(
    ("code", "condition"),
    [
        ("x.float()[:, :-1].view(-1)", "`x.float().size(0)` > 1 and `x.float().size(1)` > 2"),
        ("x[0][:, :-1].view(-1)", "`x[0].size(0)` > 1 and `x[0].size(1)` > 2"),
        ("x.t()[:, :-1].view(-1)", "`x.t().size(0)` > 1 and `x.t().size(1)` > 2"),
        ("(x + 1)[:, :-1].view(-1)", "`(x + 1).size(0)` > 1 and `(x + 1).size(1)` > 2"),
        (
            "torch.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0)[:, :-1].view(-1)",
            "`torch.nan_to_num(…).size(0)` > 1 and `torch.nan_to_num(…).size(1)` > 2",
        ),
    ],
)
def test_a_condition_names_the_tensor_of_a_size(check: Check, code: str, condition: str) -> None:
    (found,) = check(f"import torch\n\ndef f(x):\n    return {code}\n", {"SF101"})
    assert found.condition is not None
    assert found.condition.text == condition


def test_a_size_without_a_name_is_named_after_its_tensor(
    check: Check,
) -> None:
    (found,) = check("def f(x):\n    b, _ = x.shape\n    return x[:, :-1].view(-1)\n", {"SF101"})
    assert found.condition is not None
    assert found.condition.text == "`b` > 1 and `x.size(1)` > 2"
