"""Steps with old gradients or never taken, graphs kept for nothing; and loops that are right."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import named, probed, row

from shapefix.report.view import View
from shapefix.runtime.confirmation.static_verdicts import static_lines, with_verdicts
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.repair.offered import with_static_fixes

pytestmark = pytest.mark.slow

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 8), torch.randint(0, 3, (32,)))
loader, tests = DataLoader(data, batch_size=8), DataLoader(data, batch_size=8)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""

ALL_BUT_THE_STEP = """
history, total, recent = [], 0, []
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()  # carried-gradients
        total += loss  # kept-graph
        history.append({"loss": loss.item()})
        recent = [loss]
    model.eval()
    for x, y in tests:
        print(F.cross_entropy(model(x), y).item())  # recorded-evaluation
"""

LIST_AND_ATTRIBUTE = """
class Trainer:
    def __init__(self):
        self.losses = []

    def fit(self):
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            self.losses.append(loss)  # kept-graph


Trainer().fit()
"""

NO_STEP = """
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()  # missing-step
"""

STEP_FIRST = """
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        optimizer.step()  # empty-step
        loss.backward()
"""

FAULTS = {
    "a step before backward": (STEP_FIRST, ["empty-step"]),
    "all but the step": (ALL_BUT_THE_STEP, ["carried-gradients", "recorded-evaluation", "kept-graph"]),
    "a list": (LIST_AND_ATTRIBUTE, ["kept-graph"]),
    "no step": (NO_STEP, ["missing-step"]),
}

RIGHT = {
    "a step before the first gradients": """
optimizer.step()
for x, y in loader:
    optimizer.step()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
optimizer.step()
""",
    "an optimizer of another loss": """
other = nn.Linear(8, 3)
of_other = torch.optim.SGD(other.parameters(), 0.1)
for number, (x, y) in enumerate(loader):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    of_other.step()
""",
    "cleared after the step, accumulated, and evaluated for a loss": """
model.eval()
for number, (x, y) in enumerate(loader):
    F.cross_entropy(model(x), y).backward()
    if number % 2:
        optimizer.step()
        for each in model.parameters():
            each.grad.zero_()
regularizer = sum(model(x).pow(2).mean() for x, _ in tests)
regularizer.backward()
optimizer.step()
optimizer.zero_grad(set_to_none=True)
""",
    "an adversary, and a mean without a graph": """
critic = nn.Linear(3, 1)
of_critic = torch.optim.Adam(critic.parameters())
mean, losses = 0.0, []
for x, y in loader:
    of_critic.zero_grad()
    d_loss = critic(model(x).detach()).mean()
    d_loss.backward()
    of_critic.step()
    optimizer.zero_grad()
    g_loss = -critic(model(x)).mean()
    g_loss.backward()
    optimizer.step()
    mean += g_loss.detach()
    losses.append(d_loss.item())
""",
    "forces by torch.autograd.grad": """
for x, y in loader:
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
for x, y in tests:
    print(torch.autograd.grad(model(x).sum(), list(model.parameters()))[0].norm())
""",
    "attributions of a model that an optimizer has, one backward": """
x, y = next(iter(loader))
F.cross_entropy(model(x), y).backward()
print(model[0].weight.grad.norm())
""",
}

BY_HAND = """
del optimizer
for epoch in range(4):
    for x, y in loader:
        model.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        with torch.no_grad():
            for each in model.parameters():
                {update}
"""


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_at_its_line(tmp_path: Path, name: str) -> None:
    text, kinds = FAULTS[name]
    ran = probed(tmp_path, HEAD + text)
    expected = sorted((row(HEAD + text, kind), named(kind)) for kind in kinds)
    assert sorted((each.span.row, (each.code, each.name)) for each in ran.found) == expected
    fixes = [edit.content for each in ran.found for fix in each.fixes for edit in fix.edits]
    assert fixes == (["\n        optimizer.step()"] if "missing-step" in kinds else [])


STATIC = """
for x, y in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
x = x.reshape(2, -1)
x.unsqueeze(0)  # open
print(x.shape)
"""


def test_static_findings_are_shown_with_the_verdict_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = probed(tmp_path, HEAD + STATIC)
    monkeypatch.chdir(tmp_path)
    script = str(tmp_path / "train.py")
    view = View(str(tmp_path), 100, False, False, lambda path: None)
    static = with_static_fixes(ProbeFindings((), None), script, [script])
    found = with_verdicts(ran.run, static, view)
    place = f"train.py:{row(HEAD + STATIC, 'open')}: SF105"
    text = ["".join(text for text, _ in line) for line in static_lines(found, view.relative)]
    assert text[0] == "static findings in these files (`shapefix check`), judged by the run"
    assert text[1].startswith(f"  open       {place} result of `x.unsqueeze(0)` is unused")
    assert text[2:] == ["  `shapefix probe --repair` tries the repairs of 1 of them"]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_gives_nothing(tmp_path: Path, name: str) -> None:
    ran = probed(tmp_path, HEAD + RIGHT[name])
    assert ran.found == [], ran.run.process.output


@pytest.mark.parametrize("update", ["each -= 0.1 * each.grad", "each.data.add_(each.grad, alpha=-0.1)"])
def test_weights_updated_by_hand_are_a_training_step(tmp_path: Path, update: str) -> None:
    ran = probed(tmp_path, HEAD + BY_HAND.format(update=update))
    assert ran.found == []
    assert ran.run.trained
    assert ran.text.startswith("train.py: 1 training step")
