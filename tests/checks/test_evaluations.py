"""SF702: what is said of evaluations that record gradients, and what torch then keeps in memory."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from checking import Check

from shapefix.diagnostics import Cause, Diagnostic

if TYPE_CHECKING:
    import torch

HEAD = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x)

"""
FUNCTION = """\
def evaluate(model, batches):
    model.eval()
    scores = []
    for inputs in batches:
        scores.append(model(inputs))
    return scores

"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of SF702 in a script that ends in code."""
    return check(HEAD + textwrap.dedent(code), {"SF702"})


def test_fires_for_a_model_that_is_known(check: Check) -> None:
    (finding,) = found(check, FUNCTION + "evaluate(Net(), load())")
    assert "`scores` keeps every batch's activations" in finding.message
    assert [fix.edits[0].content for fix in finding.fixes] == ["@torch.no_grad()\n"]


TRAINING = """\
def train(net, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for inputs in loader:
        optimizer.zero_grad()
        net(inputs).sum().backward()
        optimizer.step()

def main():
    net, scores = Net(), []
    loader = torch.utils.data.DataLoader(torch.ones(64, 8), batch_size=4)
    train(net, loader)
    net.eval()
    for inputs in loader:
        scores.append(net(inputs))
    return scores

main()
"""


def test_a_function_that_trains_is_not_decorated(check: Check) -> None:
    (finding,) = found(check, TRAINING)
    assert [fix.edits for fix in finding.fixes] == [()]


def test_two_calls_in_a_loop_need_one_repair(check: Check) -> None:
    twice = FUNCTION.replace(
        "scores.append(model(inputs))", "scores.append(model(inputs))\n        scores.append(model(-inputs))"
    )
    first, second = found(check, twice + "evaluate(Net(), load())")
    assert first.cause == second.cause == Cause("SF702", first.span)


BOTH = """\
def generate(encoder, decoder, batches):
    decoder.eval()
    for inputs in batches:
        code = encoder(inputs)
        images = decoder(code).detach()
        save(images)

generate(nn.Linear(8, 8), Net(), load())
"""


def test_every_evaluated_model_of_a_loop_is_named_and_the_cause_is_the_place(check: Check) -> None:
    (finding,) = found(check, BOTH)
    assert finding.message.startswith("`decoder` and `encoder` are evaluated without")
    assert finding.cause == Cause("SF702", finding.span)
    lines = (HEAD + BOTH).splitlines()
    assert {"code = encoder(inputs)", "images = decoder(code).detach()"} <= {
        lines[step.span.row - 1].strip() for step in finding.evidence
    }


TIMED = (
    FUNCTION
    + """\
import time

def measure(model, batches):
    model.eval()
    seconds = []
    for step, inputs in enumerate(batches):
        if step < 3:
            result = model(inputs)
        else:
            start = time.time()
            result = model(inputs)
            seconds.append(time.time() - start)
    return seconds

"""
)


def test_a_benchmark_is_not_reported_unless_its_results_are_used(check: Check) -> None:
    assert found(check, TIMED + "measure(Net(), load())") == []
    used = TIMED.replace(
        "            seconds.append", "            print(result)\n            seconds.append"
    )
    assert found(check, used + "measure(Net(), load())")


LOOK = """
def look(model, batches):
    model.eval()
    for step, inputs in enumerate(batches):
        print(model(inputs))
        if step == {last}:
            break

look(Net(), load())
"""


@pytest.mark.parametrize(("last", "number"), [(2, 0), (1000, 1)])
def test_a_look_at_a_few_batches_fills_no_memory(last: int, number: int, check: Check) -> None:
    assert len(found(check, LOOK.format(last=last))) == number
    kept = LOOK.replace("print(model(inputs))", "seen.append(model(inputs))")
    assert len(found(check, "seen = []\n" + kept.format(last=last))) == 1


SILENT = {
    "nobody knows who calls": FUNCTION,
    "nobody knows the model": FUNCTION + "evaluate(load(), load())",
    "the caller records nothing": FUNCTION + "with torch.no_grad():\n    evaluate(Net(), load())",
    "set_grad_enabled": FUNCTION + "torch.set_grad_enabled(False)\nevaluate(Net(), load())",
    "a context that nobody knows": FUNCTION + "with load():\n    evaluate(Net(), load())",
    "frozen": FUNCTION + "evaluate(Net().requires_grad_(False), load())",
    "frozen one by one": (
        FUNCTION
        + "net = Net()\nfor p in net.parameters():\n    p.requires_grad = False\nevaluate(net, load())"
    ),
    "volatile inputs of torch 0.3": FUNCTION.replace(
        "model(inputs)", "model(Variable(inputs, volatile=True))"
    )
    + "from torch.autograd import Variable\nevaluate(Net(), load())",
    "trained again": FUNCTION.replace("    scores = []", "    scores = []\n    model.train()")
    + "evaluate(Net(), load())",
    "never put into evaluation mode": FUNCTION.replace("    model.eval()\n", "") + "evaluate(Net(), load())",
    "gradients of inputs": FUNCTION.replace("model(inputs)", "model(inputs.requires_grad_())")
    + "evaluate(Net(), load())",
    "passes that are counted with a bar": FUNCTION.replace(
        "for inputs in batches", "for inputs in tqdm(range(9))"
    )
    + "evaluate(Net(), load())",
    "passes that are counted": FUNCTION.replace("for inputs in batches", "for inputs in range(100)")
    + "evaluate(Net(), load())",
}


@pytest.mark.parametrize("name", SILENT)
def test_stays_silent(name: str, check: Check) -> None:
    assert found(check, SILENT[name]) == []


@pytest.mark.parametrize("records", [True, False])
def test_torch_keeps_the_activations_of_every_batch(records: bool) -> None:
    import torch
    from torch import nn

    saved: list[int] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        saved.append(tensor.numel())
        return tensor

    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2)).eval()
    with torch.set_grad_enabled(records), torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        scores = [model(torch.randn(4, 8)) for _ in range(10)]
    assert all(score.requires_grad is records for score in scores)
    assert (sum(saved) >= 10 * 4 * 64) is records
