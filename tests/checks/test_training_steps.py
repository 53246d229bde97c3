"""SF803: orders of backward, zero_grad and step that are reported, and those that are not."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic

HEAD = """\
import torch
from torch import nn
from torch.autograd import Variable
from data import loader

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of SF803 in code."""
    return check(HEAD + textwrap.dedent(code), {"SF803"})


def losses(zeroed: bool) -> list[float]:
    """The losses of thirty steps of plain descent, with or without zero_grad."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    inputs = torch.randn(64, 8)
    targets = inputs.sum(1, keepdim=True)
    seen = []
    for _ in range(30):
        if zeroed:
            optimizer.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    return seen


def test_without_zero_grad_the_loss_swings_instead_of_falling() -> None:
    right, wrong = losses(zeroed=True), losses(zeroed=False)
    assert right == sorted(right, reverse=True)
    assert wrong[-1] > 100 * right[-1]
    assert wrong != sorted(wrong, reverse=True)


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(loss.item(), requires_grad=True)",
        "Variable(loss.data, requires_grad=True)",
        "loss.detach().requires_grad_()",
    ],
)
def test_the_gradient_ends_in_what_was_made_of_the_number(made: str, check: Check) -> None:
    import torch
    from torch import nn

    names: dict[str, object] = {"model": nn.Linear(8, 2)}
    model = nn.Linear(8, 2)
    loss = model(torch.rand(4, 8)).sum()
    names = {"torch": torch, "Variable": torch.autograd.Variable, "loss": loss}
    new = eval(made, names)
    new.backward()
    assert model.weight.grad is None
    assert new.is_leaf
    code = f"""
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss = {made}
        loss.backward()
        optimizer.step()
    """
    (finding,) = found(check, code)
    assert "no weight gets a gradient" in finding.message


ELSEWHERE = "from elsewhere import anything, penalty\nfor x, y in loader:\n"


@pytest.mark.parametrize(
    "body",
    [
        # Whoever is handed the optimizer may zero its gradients.
        """
        criterion(model(x), y).backward()
        optimizer.step()
        anything(optimizer)
        """,
        # A second loss, computed out of sight.
        """
        criterion(model(x), y).backward()
        optimizer.zero_grad()
        anything(model, x)
        optimizer.step()
        """,
        """
        if anything:
            optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        """,
        # The optimizer is new in each pass.
        """
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        criterion(model(x), y).backward()
        optimizer.step()
        """,
        """
        loss = criterion(model(x), y)
        loss.requires_grad_()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        """,
        """
        loss = torch.tensor(0.0, requires_grad=True)
        loss = loss + criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        """,
        """
        loss = Variable(torch.zeros(1))
        for part in x:
            loss += penalty(part)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        """,
    ],
)
def test_silent_where_it_is_not_certain(body: str, check: Check) -> None:
    assert not found(check, ELSEWHERE + textwrap.indent(textwrap.dedent(body), "    "))


def test_loaders_that_are_zipped_give_batches_of_unknown_number(check: Check) -> None:
    code = """
    for batches in zip(*loader):
        optimizer.zero_grad()
        total = torch.zeros(1)
        for x, y in batches:
            total = total + criterion(model(x), y)
        total.backward()
        optimizer.step()
    """
    assert not found(check, code)


def test_what_is_added_to_is_not_new(check: Check) -> None:
    code = """
    from elsewhere import parts
    known = []
    known.clear()
    for x, y in loader:
        loss = torch.zeros(1)
        for part in known:
            loss = loss + criterion(model(part), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    """
    assert not found(check, code)


def test_what_a_base_class_does_nobody_knows(check: Check) -> None:
    code = """
    from elsewhere import Base

    class Trainer(Base):
        def run(self):
            for x, y in loader:
                self.prepare(x)
                criterion(model(x), y).backward()
                optimizer.step()

    Trainer().run()
    """
    assert not found(check, code)
    assert found(check, code.replace("self.prepare", "len"))


def test_a_second_loss_before_the_step_is_no_accident(check: Check) -> None:
    code = """
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        model.weight.square().sum().backward()
        optimizer.step()
    """
    assert not found(check, code)
