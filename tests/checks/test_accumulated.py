"""SF701: what is said of losses that are added up, and what torch then keeps in memory."""

from __future__ import annotations

import gc
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic

if TYPE_CHECKING:
    import torch

HEAD = """\
import torch
from torch import nn

def fit(model, batches, criterion, optimizer, scaler, logger):
    total, kept = 0.0, []
    for inputs, targets in batches:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
"""


def found(check: Check, code: str, head: str = HEAD, later: str = "") -> list[Diagnostic]:
    """The findings of SF701 in a function that nobody calls, whose loop goes on with code."""
    return check(f"{head}{textwrap.indent(code, ' ' * 8)}\n{textwrap.indent(later, ' ' * 4)}\n", {"SF701"})


FIRING = {
    "a model and a loss that nobody knows": "loss.backward()\ntotal += loss",
    "before backward": "total += loss\nloss.backward()",
    "the other way round": "loss.backward()\ntotal = loss + total",
    "times a number": "loss.backward()\ntotal += loss * inputs.size(0)",
    "under a condition": "loss.backward()\nif len(kept) < 5:\n    total += loss",
    "an accelerator": "accelerator = Accelerator()\naccelerator.backward(loss)\nkept.append(loss)",
    "backward in a block of its own": "with torch.enable_grad():\n    loss.backward()\ntotal += loss",
    "backward in a pass that was not left": "if scaler:\n    continue\nloss.backward()\ntotal += loss",
    "in an inner loop": "for part in inputs:\n    loss = model(part)\n    loss.backward()\n    total += loss",
}


@pytest.mark.parametrize("name", FIRING)
def test_fires(name: str, check: Check) -> None:
    head = HEAD.replace("import torch\n", "import torch\nfrom accelerate import Accelerator\n", 1)
    assert len(found(check, FIRING[name], head)) == 1


SILENT = {
    "no backward": "total += loss",
    "a number": "loss.backward()\ntotal += loss.item()",
    "another number": "loss.backward()\ntotal += float(loss)",
    "data": "loss.backward()\ntotal += loss.data",
    "detached beforehand": "loss.backward()\nvalue = loss.detach()\ntotal += value\nkept.append(value)",
    "without gradients": "loss.backward()\nwith torch.no_grad():\n    total += loss * 2",
    "the graph is kept": "loss.backward(retain_graph=True)\ntotal += loss",
    "the graph of gradients is kept": "loss.backward(create_graph=True)\ntotal += loss",
    "bound anew in each pass": "total = 0\ntotal += loss\nloss.backward()",
    "shown and emptied every hundred steps": "loss.backward()\ntotal += loss\nif total > 100:\n    total = 0",
    "a list of each pass": "kept = []\nkept.append(loss)\nloss.backward()",
    "a list that each pass empties": "kept.clear()\nkept.append(loss)\nloss.backward()",
    "the sum itself is differentiated": "total = total + loss\ntotal.backward()\ntotal = 0",
    "backward of something else": "other = model(inputs).mean()\nother.backward()\ntotal += loss",
    "targets": "loss.backward()\ntotal += targets.sum()",
    "the parts of one batch": (
        "kept = []\nfor part in inputs.split(2):\n    loss = model(part).mean()\n    loss.backward()\n"
        "    kept.append(loss)\noptimizer.step()"
    ),
    "a few passes": (
        "for _ in range(5):\n    loss = criterion(model(inputs), targets)\n    loss.backward()\n"
        "    kept.append(loss)\nkept = []"
    ),
    "backward in another branch": "if scaler:\n    loss.backward()\nelse:\n    kept.append(loss)",
    "backward under a condition": "kept.append(loss)\nif scaler:\n    loss.backward()",
    "backward in a pass that adds nothing": "if scaler:\n    loss.backward()\n    continue\ntotal += loss",
    "left before backward": "total += loss\nif scaler:\n    continue\nloss.backward()",
    "backward of the last part": (
        "for part in inputs:\n    loss = criterion(model(part))\n    kept.append(loss)\nloss.backward()"
    ),
    "counts": "loss.backward()\ntotal += (model(inputs).argmax(1) == targets).sum()",
}


@pytest.mark.parametrize("name", SILENT)
def test_stays_silent(name: str, check: Check) -> None:
    assert found(check, SILENT[name]) == []


REPAIRS = {
    "only shown": ("total += loss", 'print(f"{total / 5:.3f}")', "total += loss.item()"),
    "logged under another name": (
        "total += loss",
        "mean = total / 5\nlogger.info(mean)",
        "total += loss.item()",
    ),
    "returned": ("total += loss", "return total", "total += loss.detach()"),
    "asked for its number later on": ("total += loss", "print(total.item())", "total += loss.detach()"),
    "handed on": ("total += loss", "torch.distributed.all_reduce(total)", "total += loss.detach()"),
    "a list": ("kept.append(loss)", "print(sum(kept))", "kept.append(loss.detach())"),
    "a product": ("total += loss * len(inputs)", "print(total)", "total += loss.detach() * len(inputs)"),
    "a quotient": ("total += (loss / 3)", "print(total)", "total += (loss.item() / 3)"),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_repairs(name: str, check: Check) -> None:
    line, later, repaired = REPAIRS[name]
    head = HEAD.replace("criterion, ", "").replace("    total,", "    criterion = nn.MSELoss()\n    total,")
    (finding,) = found(check, f"loss.backward()\n{line}\n", head, later)
    (edit,) = finding.fixes[0].edits
    start, end = edit.span.column - 1, edit.span.end_column - 1
    written = " " * 8 + line
    assert written[:start] + edit.content + written[end:] == " " * 8 + repaired


GIVEN_AWAY = {
    "to an unknown function": ("kept.append(loss)", "logger(kept)"),
    "as a sum": ("kept.append(loss)", "mean = sum(kept) / len(kept)\nlogger.step(mean)"),
    "stacked": ("kept.append(loss)", "stacked = torch.stack(kept)\nlogger(stacked.mean())"),
    "one by one": ("kept.append(loss)", "for each in kept:\n    logger(each)"),
    "by name": ("total += loss", "logger(value=total)"),
    "by its own method": ("total += loss", "total.backward()"),
}


@pytest.mark.parametrize("name", GIVEN_AWAY)
def test_what_may_be_differentiated_later_has_no_fix(name: str, check: Check) -> None:
    line, later = GIVEN_AWAY[name]
    (finding,) = found(check, f"loss.backward()\n{line}\n", later=later)
    assert not finding.fixes


BRANCHES = """\
import torch
from torch import nn

model = nn.Linear(3, 1)
kept = []

def combine(losses):
    sum(losses).backward()

def fit(now):
    for step in range(40):
        loss = model(torch.ones(4, 3)).pow(2).mean()
        if now:
            loss.backward()
        else:
            {added}
    if kept:
        combine(kept)

fit({now})
"""


def test_a_branch_without_backward_needs_its_graph(check: Check) -> None:
    text = BRANCHES.format(added="kept.append(loss)", now=False)
    assert not check(text, {"SF701"})
    exec(text, {})
    with pytest.raises(RuntimeError, match="does not require grad"):
        exec(BRANCHES.format(added="kept.append(loss.detach())", now=False), {})


class Token:
    """Counts how many of its kind are alive."""

    alive = 0

    def __init__(self) -> None:
        Token.alive += 1

    def __del__(self) -> None:
        Token.alive -= 1


def counted(value: torch.Tensor) -> torch.Tensor:
    """The identity, whose nodes in graphs have tokens."""
    import torch

    class Counted(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: object, value: torch.Tensor) -> torch.Tensor:
            ctx.token = Token()  # type: ignore[attr-defined]
            return value.clone()

        @staticmethod
        def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
            return gradient

    return Counted.apply(value)


VALUES: dict[str, Callable[[torch.Tensor], torch.Tensor | float]] = {
    "loss": lambda loss: loss,
    "loss.item()": lambda loss: loss.item(),
    "loss.detach()": lambda loss: loss.detach(),
}


@pytest.mark.slow
@pytest.mark.parametrize("value", VALUES)
def test_torch_keeps_the_nodes_of_every_pass(value: str) -> None:
    import torch

    layer = torch.nn.Linear(3, 1)
    total: torch.Tensor | float = 0.0
    for _ in range(20):
        loss = counted(layer(torch.randn(4, 3))).mean()
        loss.backward()
        total += VALUES[value](loss)
    gc.collect()
    assert Token.alive == (20 if value == "loss" else 1)
    del total, loss
    gc.collect()
    assert Token.alive == 0


def test_nobody_can_go_back_through_the_sum() -> None:
    import torch

    layer = torch.nn.Linear(3, 1)
    loss = layer(torch.randn(4, 3)).pow(2).mean()
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        (0.0 + loss).backward()


@pytest.mark.parametrize(("annotation", "fixes"), [("", 1), (" -> dict[str, torch.Tensor]", 0)])
def test_a_dictionary_is_not_detached(annotation: str, fixes: int, check: Check) -> None:
    code = f"""
    import lightning as pl
    import torch

    class Net(pl.LightningModule):
        def training_step(self, batch, index){annotation}:
            output = self.shared(batch)
            self.outputs.append(output)
            return output
    """
    (found,) = check(textwrap.dedent(code), {"SF701"})
    assert sum(bool(fix.edits) for fix in found.fixes) == fixes


LIGHTNING = """
import lightning.pytorch as pl
import torch
from torch import nn


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.losses = nn.Linear(4, 1), []

    def parts(self, batch){annotation}:
        loss = self.net(batch).mean()
        return {returned}

    def training_step(self, batch, batch_idx):
        result = self.parts(batch)
        self.losses.append(result)
        return result

    def on_train_epoch_end(self):
        {end}


pl.Trainer().fit(Model(), load())
"""


@pytest.mark.parametrize(
    ("annotation", "returned", "fixed"),
    [
        ("", "loss", ["result.detach()"]),
        ("", '{"loss": loss}', []),
        (" -> dict[str, torch.Tensor]", "collect(loss)", []),
    ],
)
def test_the_results_of_lightning_steps_are_detached_where_they_are_tensors(
    annotation: str, returned: str, fixed: list[str], check: Check
) -> None:
    code = LIGHTNING.format(annotation=annotation, returned=returned, end="pass")
    (finding,) = check(code, {"SF701"})
    assert [edit.content for fix in finding.fixes for edit in fix.edits] == fixed


@pytest.mark.parametrize("end", ["self.losses.clear()", "self.losses = []", "del self.losses[:]"])
def test_the_losses_of_one_epoch_are_not_reported(end: str, check: Check) -> None:
    code = LIGHTNING.format(annotation="", returned="loss", end=end)
    assert not check(code, {"SF701"})


@pytest.mark.parametrize(
    ("passes", "added", "is_reported"),
    [
        ("5", "total += loss", False),
        ("20", "kept.append(loss)", False),
        ("21", "kept.append(loss)", True),
        ("200", "if step % 10 == 0:\n    kept.append(loss)", False),
        ("210", "if step % 10 == 0:\n    kept.append(loss)", True),
        ("400", "if step % 10:\n    kept.append(loss)", True),
        ("100", "if step % 10 == 9:\n    kept.append(loss)", False),
        ("100", "if step % 10 != 0:\n    kept.append(loss)", True),
        ("100", "if step % 10 == 0:\n    print(step)\nelse:\n    kept.append(loss)", True),
    ],
)
def test_few_passes_keep_few_graphs(passes: str, added: str, is_reported: bool, check: Check) -> None:
    head = HEAD.replace(
        "    for inputs, targets in batches:",
        f"    n = {passes}\n    for step in range(n):\n        inputs, targets = batches[step]",
    )
    assert bool(found(check, f"loss.backward()\n{added}", head)) == is_reported
