"""SF604: which orders of scaling, clipping and stepping are reported, and that torch agrees."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest
from checking import Check

from shapefix.diagnostics import Condition, Diagnostic

if TYPE_CHECKING:
    import torch

HEAD = """\
import torch
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
criterion = nn.CrossEntropyLoss()
"""


def found(check: Check, code: str, head: str = HEAD) -> list[Diagnostic]:
    """The findings of SF604 in code."""
    return check(head + textwrap.dedent(code), {"SF604"})


def weights_after(order: str) -> torch.Tensor:
    """The weights after one step with a GradScaler; order names the calls between backward and step."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu")
    loss = nn.functional.cross_entropy(model(torch.randn(32, 8)), torch.randint(0, 2, (32,)))
    scaler.scale(loss).backward()
    for name in order.split():
        if name == "clip":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        else:
            scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return model.weight.detach().clone()


def test_torch_clips_multiplied_gradients_to_almost_nothing() -> None:
    import torch
    from torch import nn

    unclipped, right, wrong = weights_after(""), weights_after("unscale clip"), weights_after("clip")
    assert torch.equal(unclipped, right), "the norm is below the limit"
    torch.manual_seed(0)
    start = nn.Linear(8, 2).weight.detach()
    assert (right - start).norm() > 1000 * (wrong - start).norm() > 0
    assert torch.allclose(weights_after("clip unscale"), wrong), "too late makes no difference"


@pytest.mark.parametrize(
    "body",
    [
        # The scaler may have been handed to whoever divides.
        """
        scaler.scale(loss).backward()
        divide(scaler, optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
        """
        scaler.scale(loss).backward()
        for p in model.parameters():
            p.grad.data.mul_(1 / scale)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
        """
        loss.backward() if plain else scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        """,
        """
        loss.backward()
        """,
    ],
    ids=["handed on", "by hand", "one or the other", "somebody else's loss"],
)
def test_silent_where_it_is_not_certain(body: str, check: Check) -> None:
    code = (
        "from elsewhere import divide, plain, scale, loss\nfor step in range(9):\n"
        + textwrap.indent(textwrap.dedent(body), "    ")
        + "    scaler.step(optimizer)\n    scaler.update()\n"
    )
    assert not found(check, code)


def test_followed_through_methods_of_a_class(check: Check) -> None:
    head = """\
import torch
from torch import nn
from torch.cuda.amp import GradScaler


class Trainer:
    def __init__(self):
        self.model = nn.Linear(8, 2)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.scaler = GradScaler()

    def clip(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def run(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            self.scaler.scale(nn.functional.cross_entropy(self.model(x), y)).backward()
            self.clip()
            self.scaler.step(self.optimizer)
            self.scaler.update()


"""
    (finding,) = found(check, "from data import loader\nTrainer().run(loader)\n", head)
    assert finding.span.row == 13
    assert "call `self.scaler.unscale_(self.optimizer)` before clipping" in finding.message
    assert not finding.fixes, "the step is in another function"


def test_a_scaler_that_is_only_annotated_may_be_switched_off(check: Check) -> None:
    head = """\
import torch
from torch import nn
from torch.cuda.amp import GradScaler


def train(model: nn.Module, optimizer: torch.optim.Optimizer, scaler: GradScaler, loader):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
"""
    (finding,) = found(check, "", head)
    assert finding.span.row == 10
    assert finding.condition == Condition("the scaler is enabled")


def test_update_in_another_method_is_enough(check: Check) -> None:
    code = """
    def later():
        scaler.update()

    for step in range(9):
        scaler.scale(criterion(model(torch.rand(2, 8)), torch.zeros(2).long())).backward()
        scaler.step(optimizer)
        later()
    """
    assert not found(check, code)
