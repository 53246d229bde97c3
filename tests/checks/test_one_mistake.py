"""Errors that one mistake causes in several places have one cause; those of other mistakes have their own."""

from __future__ import annotations

import textwrap

from checking import Check

from shapefix.diagnostics import Diagnostic

HEAD = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
TAGGER = """
class Tagger(nn.Module):
    def __init__(self, where=None):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.second = nn.Linear(8, 8, device=where)

    def forward(self, x):
        state = torch.zeros(4, 8).to(x.device)
        return self.first(x) + self.second(state)


"""
LOSSES = """
criterion = nn.BCELoss()
real, fake = torch.ones(4), torch.zeros(4)
scores = torch.rand(4, 1)
print(criterion(scores, real))
print(criterion(torch.rand(4, 1), fake))
print(criterion(torch.rand(4, 1), real))
"""


def found(check: Check, code: str, rule: str) -> list[Diagnostic]:
    return sorted(check(HEAD + textwrap.dedent(code), {rule}), key=lambda each: each.span)


def test_errors_of_one_tensor_have_the_cause_of_the_first(check: Check) -> None:
    first, other, again = found(check, LOSSES, "SF508")
    assert again.cause == first.cause
    assert other.cause != first.cause


def test_a_model_that_was_not_moved_is_one_mistake(check: Check) -> None:
    use = "Tagger()(torch.zeros(4, 8, device=device))\n"
    use += "print(nn.MSELoss()(Tagger()(torch.zeros(4, 8)), torch.zeros(4, 8, device=device)))\n"
    habits = {each.habit for each in found(check, TAGGER + use, "SF602")}
    assert len(habits) == 1
    assert all("Tagger" in habit for habit in habits)


def test_inputs_that_do_not_follow_their_model_are_one_mistake(check: Check) -> None:
    use = "net = nn.Linear(8, 8).to(device)\na, b = torch.zeros(4, 8), torch.ones(4, 8)\nnet(a)\nnet(b)\n"
    one, two = found(check, use, "SF602")
    assert one.habit == two.habit != ""
    assert {fix.edits[0].content for each in (one, two) for fix in each.fixes} == {", device=device"}
    other = use + "c = torch.zeros(4, 8)\nnn.Linear(8, 8).to(device)(c)\n"
    assert len({each.habit for each in found(check, other, "SF602")}) == 2


def test_heads_that_are_viewed_into_place_are_one_mistake(check: Check) -> None:
    use = "q, k = (nn.Linear(8, 8)(torch.randn(2, n, 4, 8)) for n in (10, 12))\n"
    use += "print(q.reshape(2, 4, 10, 8) @ k.reshape(2, 4, 8, 12))\n"
    one, two = found(check, use, "SF103")
    assert one.message != two.message
    assert one.habit == two.habit != ""


def test_the_place_is_where_the_model_is_moved_but_not_its_input(check: Check) -> None:
    use = """
    def train(model, x, where):
        model.to(where)
        return model(x)

    def main():
        x = torch.zeros(4, 8)
        return train(Tagger(), x, device)

    def evaluate():
        x = torch.ones(4, 8)
        return train(Tagger(), x, device)

    main()
    evaluate()
    """
    text = HEAD + TAGGER + textwrap.dedent(use)
    (finding,) = (each for each in check(text, {"SF602"}) if "`x` is on the CPU" in each.message)
    assert text.splitlines()[finding.span.row - 1].strip() == "return model(x)"
    assert [fix.edits[0].content for fix in finding.fixes] == [".to(where)"]
