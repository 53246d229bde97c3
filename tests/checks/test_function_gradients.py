"""SF906: numbers of gradients that torch accepts, and those that it rejects."""

from __future__ import annotations

import pytest
from checking import Check

TEXT = """\
import torch

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, {inputs}):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        {body}

x = torch.ones(2, requires_grad=True)
Scale.apply({given}).sum().backward()
"""

CASES = [
    ("x", "x", "return grad", 0),
    ("x", "x", "return grad, None", 0),
    ("x", "x", "return grad, grad", 1),
    ("x", "x", "return grad, None, grad", 1),
    ("x, k", "x, 1", "return grad", 1),
    ("x, k", "x, 1", "return grad * 2", 1),
    ("x, k", "x, 1", "return -grad", 1),
    ("x, k", "x, 1", "return grad.clone()", 1),
    ("x, k", "x, 1", "return (grad,)", 1),
    ("x, k", "x, x", "return (grad,) * 2", 0),
    ("x, k", "x, 1", "return (grad,) + (None,)", 0),
    ("x, k", "x, 1", "return grad, None", 0),
    ("x, k", "x, 1", "return (grad, None)", 0),
    ("x, k", "x, 1", "return grad.clone(), None", 0),
    ("x, k", "x, 1", "new = grad * 3\n        return new", 1),
    ("x, k", "x, 1", "new = grad.clone()\n        new[0] = 0\n        return new", 1),
    ("x, k", "x, 1", "new = grad, None\n        return new", 0),
    ("x, k", "x, 1", "new = grad * 3\n        new = new, None\n        return new", 0),
    ("x, k", "x, 1", "grad = grad, None\n        return grad", 0),
    ("x, k=1", "x", "return grad", 0),
    ("x, k=1", "x, 1", "return grad, None", 0),
    ("x, k=1", "x, 1", "return grad, None, grad", 1),
    ("x, k, j=1", "x, 1, 1", "return grad", 1),
    ("x, *rest", "x, 1", "return grad, None", 0),
]


@pytest.mark.parametrize(("inputs", "given", "body", "count"), CASES)
def test_numbers_of_gradients(inputs: str, given: str, body: str, count: int, check: Check) -> None:
    code = TEXT.format(inputs=inputs, given=given, body=body)
    error = ""
    try:
        exec(code, {})
    except RuntimeError as raised:
        error = str(raised)
    found = check(code, {"SF906"})
    assert len(found) == count == bool(error)
    assert (found[0].error.message if found and found[0].error else "") in error


def test_a_class_with_another_base(check: Check) -> None:
    code = TEXT.format(inputs="x, k", given="x, 1", body="return grad")
    code = code.replace("class Scale(torch", "from elsewhere import Base\nclass Scale(Base, torch")
    assert check(code, {"SF906"}) == []


def test_defaults_leave_the_number_open(check: Check) -> None:
    (found,) = check(TEXT.format(inputs="x, k, j=1", given="x, 1", body="return grad"), {"SF906"})
    assert (
        found.message == "the backward of `Scale` returns 1 gradient, but its forward has at least 2 inputs"
    )
