"""What the interpreter keeps of optimizers, and of what a training does in its order."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest
from differential import NoFiles

from shapefix.domains.modes import ModeSwitched
from shapefix.domains.training import Backward, OptimizerStepped, Owners, TrainingEvent
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.program import parsed, run_program
from shapefix.interpreter.values import LibraryObject
from shapefix.library.library import TorchLibrary
from shapefix.library.optim.modes import mode_of

HEAD = """\
import itertools
import torch
from torch import nn

first, second = nn.Linear(2, 2), nn.Linear(2, 2)
"""


MOVING = ("Backward", "GradientsZeroed", "OptimizerStepped", "SchedulerStepped", "ModeSwitched")
"""The events that set or use gradients and modes."""


def run(code: str) -> Evaluator:
    """The state after code was run, its events included."""
    ev = Evaluator(TorchLibrary(), NoFiles(), 200_000)
    run_program(ev, parsed("script.py", "script", HEAD + textwrap.dedent(code)), 2_000)
    return ev


def held(ev: Evaluator, name: str) -> LibraryObject:
    """The library object that a name of the script holds in the end."""
    value = ev.module_scopes["script.py"].names[name]
    assert isinstance(value, LibraryObject)
    return value


@pytest.mark.parametrize(
    ("parameters", "owners"),
    [
        ("first.parameters()", "first"),
        ("list(first.parameters()) + list(second.parameters())", "first second"),
        ("itertools.chain(first.parameters(), second.parameters())", "first second"),
        ("[p for p in first.parameters() if p.requires_grad]", "first"),
        ("filter(lambda p: p.requires_grad, second.parameters())", "second"),
        ("[p for name, p in first.named_parameters() if 'bias' not in name]", "first"),
        ("[{'params': first.parameters()}, {'params': second.parameters(), 'lr': 1.0}]", "first second"),
        ("[p for module in (first, second) for p in module.parameters()]", "first second"),
        ("groups", None),
        ("[first.weight, *groups]", None),
    ],
)
def test_the_modules_whose_parameters_an_optimizer_was_given(parameters: str, owners: str | None) -> None:
    ev = run(f"from elsewhere import groups\noptimizer = torch.optim.AdamW({parameters})")
    known = held(ev, "optimizer").facts.known(Owners)
    expected = None if owners is None else Owners(frozenset(held(ev, name) for name in owners.split()))
    assert known == expected


def test_groups_are_added() -> None:
    ev = run("""
    optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
    optimizer.add_param_group({"params": second.parameters()})
    """)
    assert held(ev, "optimizer").facts.known(Owners) == Owners(
        frozenset({held(ev, "first"), held(ev, "second")})
    )


def events(code: str) -> Iterator[str]:
    """The events of a training: in how many loops they stand, with a ? where these may pass them by."""
    for event in run(code).events:
        if isinstance(event, TrainingEvent):
            loops = "".join("!" if within.certain else "?" for within in event.loops)
            yield f"{type(event).__name__}{loops}"


def test_events_stand_in_their_loops_and_conditions() -> None:
    code = """
    optimizer = torch.optim.AdamW(first.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)

    def optimise(loss, last):
        optimizer.zero_grad()
        loss.backward()
        if last:
            return
        optimizer.step()

    for epoch in range(100):
        for x in loader:
            if x is None:
                continue
            optimise(first(x).sum(), x.last)
        schedule.step()
        if epoch % 2:
            first.eval()
    """
    assert [event for event in events(code) if event.startswith(MOVING)] == [
        "GradientsZeroed??",
        "Backward??",
        "OptimizerStepped??",
        "SchedulerStepped!",
        "ModeSwitched?",
    ]


def test_a_return_in_front_of_a_loop_does_not_make_it_uncertain() -> None:
    code = """
    def train(loader, only_test):
        if only_test:
            return
        for x in loader:
            first(x).sum().backward()
    """
    assert [event for event in events(code) if event.startswith("Backward")] == ["Backward!"]


MODES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.dropout = nn.Linear(2, 2), nn.Dropout(0.5)

net = Net()
{switch}
body, dropout = net.body, net.dropout
"""


@pytest.mark.parametrize(
    "switch", ["", "net.eval()", "net.train()", "net.eval().train()", "net.train(False)"]
)
def test_modes_are_those_that_torch_has(switch: str) -> None:
    from torch import nn

    code = MODES.format(switch=switch)
    ev = run(code)
    names: dict[str, object] = {"nn": nn}
    exec(textwrap.dedent(code), names)
    for name in ("body", "dropout"):
        real = names[name]
        assert isinstance(real, nn.Module)
        assert mode_of(ev, held(ev, name)) is real.training


@pytest.mark.parametrize("switch", ["if seed: net.eval()", "prepare(net)", "net.train(seed)"])
def test_modes_are_unknown_where_somebody_may_have_switched(switch: str) -> None:
    ev = run("from elsewhere import seed, prepare\n" + MODES.format(switch=switch))
    net = ev.module_scopes["script.py"].names["net"]
    assert mode_of(ev, net) is None


def test_what_scales_and_what_steps_is_known() -> None:
    ev = run("""
    optimizer, scaler = torch.optim.AdamW(first.parameters()), torch.amp.GradScaler()
    scaler.scale(first(torch.rand(2, 2)).sum()).backward()
    scaler.step(optimizer)
    """)
    (backward,) = [event for event in ev.events if isinstance(event, Backward)]
    (step,) = [event for event in ev.events if isinstance(event, OptimizerStepped)]
    assert backward.gradients.scaled is step.scaler is held(ev, "scaler")
    assert step.optimizer is held(ev, "optimizer")
    assert step.gradients is not None
    assert step.gradients.place is backward.place


def test_every_optimizer_and_scheduler_of_torch_is_known() -> None:
    import torch

    optimizers = [
        name
        for name, kind in vars(torch.optim).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)
    ]
    schedulers = [
        name
        for name, kind in vars(torch.optim.lr_scheduler).items()
        if isinstance(kind, type) and issubclass(kind, torch.optim.lr_scheduler.LRScheduler)
    ]
    library = TorchLibrary()
    assert len(optimizers) > 10
    assert len(schedulers) > 10
    # A chain of schedulers has no optimizer of its own; the others are the base class.
    unknown = {"LRScheduler", "_LRScheduler", "ChainedScheduler"}
    names = [f"torch.optim.{name}" for name in optimizers]
    names += [f"torch.optim.lr_scheduler.{name}" for name in schedulers if name not in unknown]
    assert not [name for name in names if library.function(name) is None]


def test_switching_is_an_event() -> None:
    ev = run("first.eval()\nfirst.train()\nfirst.train(mode)")
    assert [event.training for event in ev.events if isinstance(event, ModeSwitched)] == [False, True, None]
