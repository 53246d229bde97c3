"""Code after a call that certainly ends in a TypeError is dead; after any other call it is not."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

HEAD = """
import functools
from dataclasses import dataclass
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width, *, dropout_rate=0.1):
        super().__init__()
        self.linear = nn.Linear(width, 2)

    def forward(self, x):
        return self.linear(x)

    def scores(self, x, scale):
        return x

    @staticmethod
    def halved(x):
        return x

    @classmethod
    def small(cls, width):
        return cls(width)


class Scaler:
    def __call__(self, x, scale):
        return x


def build(width, depth=1):
    return Net(width)


def every(*args, **options):
    return Net(4)


@dataclass
class Point:
    x: int = 0


class Wide(Net):
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


class Unknown(missing.Base, Net):
    pass


x = torch.randn(8, 5)
"""
REFUSED = {
    "a wrong keyword": "Net(4, dropout=0.1)",
    "a missing argument": "Net()",
    "too many arguments": "Net(4, 2)",
    "an argument given twice": "Net(4, width=4)",
    "a function": "build(width=4, layers=2)",
    "a function without its argument": "build()",
    "a call in an expression": "print(build(4, 5, 6))",
    "a model without its input": "Net(4)()",
    "a model with two inputs": "Net(4)(x, x)",
    "a Sequential with two inputs": "nn.Sequential(nn.Linear(5, 5))(x, x)",
    "a model in DataParallel": "nn.DataParallel(Net(4))()",
    "forward without its input": "Net(4).forward()",
    "a method": "Net(4).scores(x)",
    "a method of the class": "Net.scores(Net(4), x)",
    "a static method": "Net(4).halved()",
    "a class method": "Net.small()",
    "an object without all arguments": "Scaler()(x)",
}
ACCEPTED = {
    "all is right": "Net(4, dropout_rate=0.2)",
    "any arguments": "every(1, 2, size=3)",
    "a dictionary of arguments": "Net(**{'width': 4})",
    "a list of arguments": "build(*[4, 2])",
    "a dataclass": "Point(y=2)",
    "a class with its own __new__": "Wide(1, 2, 3)",
    "a base that is not known": "Unknown(1, 2, 3)",
    "a branch": "len(x) > 3 or build()",
    "a conditional expression": "build() if x.sum() > 0 else None",
    "a comprehension": "[build() for _ in x.tolist()]",
    "a model": "Net(4)(x[:, :4])",
    "a static method": "Net.small(width=4)",
    "an object": "callable(Scaler())",
    "a forward that was replaced": "net = Net(4); net.forward = every; net(1, 2)",
}
BAD = "Net(4)(x)"
"""Code with SF501."""


def codes(code: str, check: Check) -> list[str]:
    """Return the findings, without those of the call itself."""
    return [found.code for found in check(HEAD + textwrap.dedent(code)) if found.code != "SF414"]


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_nothing_is_reported_after_a_call_that_raises(call: str, check: Check) -> None:
    namespace: dict[str, object] = {}
    known = HEAD.replace("missing.Base, ", "")
    exec(known, namespace)
    with pytest.raises(TypeError):
        exec(call, namespace)
    assert codes(f"{BAD}\n{call}\n", check) == ["SF501"]
    assert codes(f"{call}\n{BAD}\n", check) == []
    assert codes(f"if __name__ == '__main__':\n    {call}\n    {BAD}\n", check) == []
    assert codes(f"def f():\n    {call}\n    {BAD}\nf()\n", check) == []


@pytest.mark.parametrize("call", ACCEPTED.values(), ids=ACCEPTED)
def test_other_calls_end_nothing(call: str, check: Check) -> None:
    assert codes(f"{call}\n{BAD}\n", check) == ["SF501"]


def test_a_method_that_a_subclass_may_override_is_not_followed(check: Check) -> None:
    code = """
        class Base(nn.Module):
            def forward(self, x):
                y = self.scores()
                return torch.ones(2, 3) @ torch.ones(2, 3)

            def scores(self, x):
                return x
    """
    assert codes(code, check) == ["SF503"]


def test_a_handler_and_the_code_after_it_run(check: Check) -> None:
    code = f"try:\n    Net(4, dropout=0.1)\nexcept TypeError:\n    {BAD}\n"
    assert codes(code, check) == ["SF501"]
    code = f"try:\n    Net(4, dropout=0.1)\nexcept TypeError:\n    pass\n{BAD}\n"
    assert codes(code, check) == ["SF501"]


def test_functions_below_a_dead_line_are_still_analyzed(check: Check) -> None:
    code = "Net(4, dropout=0.1)\n\n\ndef f():\n    return torch.ones(2, 3) @ torch.ones(2, 3)\n"
    assert codes(code, check) == ["SF503"]


def test_a_demo_that_raises_before_its_forward_says_nothing_of_devices(check: Check) -> None:
    code = """
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if __name__ == "__main__":
            net = Net(5, dropout=0.1)
            net(x.to(device))
    """
    assert codes(code, check) == []
    assert codes(code.replace("dropout=", "dropout_rate="), check) == ["SF602"]
