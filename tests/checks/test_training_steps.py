"""SF803: orders of backward, zero_grad and step that are reported, and those that are not."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Diagnostic
from shapefix.repair.edits import apply

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


def changed(setup: str, loop: str) -> object:
    """The weight after two steps of plain code."""
    import torch

    names: dict[str, object] = {}
    torch.manual_seed(0)
    exec(setup + textwrap.dedent(loop), names)
    model = names["model"]
    assert isinstance(model, torch.nn.Linear)
    return model.weight


PLAIN = """\
import torch
from torch import nn

model = nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.rand(4, 8)
"""
CLIPPED = """
for i in range(4):
    {first}
    model(inputs).square().sum().backward()
    {second}
    {third}
"""
CLIP, ZERO, STEP = (
    "nn.utils.clip_grad_norm_(model.parameters(), 0.01)",
    "optimizer.zero_grad()",
    "optimizer.step()",
)
NOTHING = "pass"


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        (ZERO, CLIP, STEP),
        (ZERO, STEP, CLIP),
        (NOTHING, f"{CLIP}; {STEP}", ZERO),
        (NOTHING, f"{STEP}; {CLIP}", ZERO),
        (f"if i % 2 == 0: {ZERO}", STEP, CLIP),
        (CLIP, STEP, ZERO),
        (ZERO, f"{STEP}; {CLIP}", STEP),
        (f"{ZERO}; {CLIP}", STEP, NOTHING),
        (f"{CLIP}; {ZERO}", STEP, NOTHING),
        (f"{CLIP}", f"if i % 2: {STEP}; {ZERO}", NOTHING),
    ],
)
def test_reported_clipping_changes_nothing_in_torch(
    check: Check, first: str, second: str, third: str
) -> None:
    import torch

    loop = CLIPPED.format(first=first, second=second, third=third)
    reported = [each for each in check(PLAIN + loop, {"SF803"}) if "has no effect" in each.message]
    is_idle = torch.equal(changed(PLAIN, loop), changed(PLAIN, loop.replace(CLIP, NOTHING)))
    assert not reported or is_idle
    assert bool(reported) == is_idle


@pytest.mark.parametrize(
    ("first", "last", "reported"),
    [
        (ZERO, f"if (i + 1) % 2 == 0: {STEP}", True),
        (NOTHING, f"if (i + 1) % 2 == 0: {STEP}; {ZERO}", False),
        (f"if i % 2 == 0: {ZERO}", f"if (i + 1) % 2 == 0: {STEP}", False),
        (ZERO, f"if model.training: {STEP}", False),
        (ZERO, STEP, False),
    ],
)
def test_gradients_cleared_in_each_pass(check: Check, first: str, last: str, reported: bool) -> None:
    loop = CLIPPED.format(first=first, second=NOTHING, third=last)
    found = [each for each in check(PLAIN + loop, {"SF803"}) if "in each pass, but" in each.message]
    assert bool(found) == reported


SCHEDULED = """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
{before}
for epoch in range(2):
    {first}
    for i in range(2):
        optimizer.zero_grad()
        model(inputs).square().sum().backward()
        optimizer.step()
        {inner}
    {last}
"""


@pytest.mark.parametrize(
    ("before", "first", "inner", "last"),
    [
        (NOTHING, "scheduler.step()", NOTHING, NOTHING),
        (NOTHING, NOTHING, NOTHING, "scheduler.step()"),
        (NOTHING, NOTHING, "scheduler.step()", NOTHING),
        (STEP, "scheduler.step()", NOTHING, NOTHING),
        (NOTHING, "if epoch: scheduler.step()", NOTHING, NOTHING),
    ],
)
def test_torch_warns_of_reported_schedulers(
    check: Check, before: str, first: str, inner: str, last: str
) -> None:
    import warnings

    loop = SCHEDULED.format(before=before, first=first, inner=inner, last=last)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        changed(PLAIN, loop)
    warned = any("lr_scheduler.step()` before `optimizer.step" in str(each.message) for each in caught)
    found = [each for each in check(PLAIN + loop, {"SF803"}) if "skips the first" in each.message]
    assert bool(found) == warned


@pytest.mark.parametrize(
    ("schedule", "changes"),
    [
        ("StepLR(optimizer, 1)", True),
        ("StepLR(optimizer, step_size=3)", False),
        ("MultiStepLR(optimizer, [1, 5])", True),
        ("MultiStepLR(optimizer, milestones=[2, 5])", False),
        ("ExponentialLR(optimizer, 0.9)", True),
    ],
)
def test_a_schedule_that_keeps_the_first_rate_loses_nothing(
    check: Check, schedule: str, changes: bool
) -> None:
    code = f"""
import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR, MultiStepLR, StepLR

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = {schedule}
rates = []
for epoch in range(6):
    scheduler.step()
    rates.append(optimizer.param_groups[0]["lr"])
    for x in torch.utils.data.DataLoader(torch.rand(16, 4), batch_size=4):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""
    run: dict[str, list[float]] = {}
    exec(compile(code, "script.py", "exec"), run)
    assert (run["rates"][0] != 0.1) is changes
    assert bool([each for each in check(code, {"SF803"}) if "skips the first" in each.message]) is changes


def test_a_call_before_the_loop_is_named(check: Check) -> None:
    code = """
import torch
from torch import nn

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.zero_grad()
for x in torch.utils.data.DataLoader(torch.rand(16, 4), batch_size=4):
    model(x).sum().backward()
    optimizer.step()
"""
    (found,) = check(code, {"SF803"})
    assert found.message.startswith("`optimizer.zero_grad()` is not called in the loop")
    (found,) = check(code.replace("optimizer.zero_grad()\n", ""), {"SF803"})
    assert found.message.startswith("`optimizer.zero_grad()` is never called")


ACCUMULATING = """
for number, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    loss = criterion(model(x), y) / 4
    loss.backward()
    if (number + 1) % 4 == 0:
        optimizer.step(){later}
"""


@pytest.mark.parametrize(
    ("later", "kept"), [("", 1), ("\n        optimizer.zero_grad()", 1), ("\n        print(loss)", 1)]
)
def test_gradients_are_cleared_once_after_the_step(check: Check, later: str, kept: int) -> None:
    code = ACCUMULATING.format(later=later)
    (finding,) = found(check, code)
    (fix,) = finding.fixes
    repaired, _, _ = apply(HEAD + textwrap.dedent(code), [fix])
    assert repaired.count("zero_grad()") == kept


SHOWN = """
{loss}.backward()
optimizer.zero_grad()
optimizer.step()
"""


@pytest.mark.parametrize(
    ("loss", "number"),
    [
        ("(torch.ones(2, requires_grad=True) * 2).sum()", 0),
        ("torch.tensor([1.0], requires_grad=True)", 0),
        ("model(torch.randn(4, 8)).sum()", 1),
        ("(model.weight * 2).sum()", 1),
    ],
)
def test_the_gradients_of_other_tensors_are_not_those_of_the_optimizer(
    check: Check, loss: str, number: int
) -> None:
    assert len(found(check, SHOWN.format(loss=loss))) == number


WINDOW = """
class Config:
    window = {number}


for step, (x, y) in enumerate(loader, 1):
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    if step % Config.window == 0:
        optimizer.step()
"""


@pytest.mark.parametrize(("number", "found_at"), [("1", 0), ("4", 1), ("int(1)", 1)])
def test_a_window_of_one_pass_loses_no_gradients(check: Check, number: str, found_at: int) -> None:
    assert len(found(check, WINDOW.format(number=number))) == found_at
