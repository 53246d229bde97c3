"""Scripts fail for real; the diagnosis of their tracebacks names the line of the cause."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from raised import traceback_of

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)


@dataclass(frozen=True)
class Failing:
    """A script; the line with `# cause` is expected in the evidence of the first cause."""

    name: str
    code: str
    confidence: Confidence
    rule: str
    text: str

    def __str__(self) -> str:
        return self.name


SCRIPTS = [
    Failing("linear", "SF501", Confidence.PROVED, "SF501", """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(271, 256)  # cause

    def forward(self, x):
        return self.fc(x)

def main():
    net = Net()
    print(net(torch.zeros(8, 4000)))

main()
"""),
    Failing("view", "SF101", Confidence.PROVED, "SF101", """\
import torch
x = torch.zeros(4, 6, 8)
y = x.transpose(1, 2)  # cause
print(y.view(4, 48))
"""),
    Failing("concatenation", "SF504", Confidence.PROVED, "SF504", """\
import torch
left = torch.zeros(2, 3)
right = torch.zeros(4, 5)
both = torch.cat(
    [left, right],  # cause
    dim=1,
)
"""),
    Failing("detached", "SF904", Confidence.PROVED, "SF904", """\
import torch
model = torch.nn.Linear(3, 1)
loss = model(torch.ones(2, 3)).detach().mean()  # cause
loss.backward()
"""),
    Failing("labels", "SF512", Confidence.PROVED, "SF512", """\
import torch
scores = torch.zeros(4, 5)
labels = torch.zeros(4)  # cause
torch.nn.functional.cross_entropy(scores, labels.int())
"""),
    Failing("no parameters", "SF607", Confidence.PROVED, "SF607", """\
import torch
layers = []
optimizer = torch.optim.SGD(layers, lr=0.1)  # cause
"""),
    Failing("written", "SF901", Confidence.ONLY, "SF901", """\
import torch
x = torch.ones(3, requires_grad=True)
y = torch.exp(x)
y += 1  # cause
y.sum().backward()
"""),
    Failing("missing key", "SF403", Confidence.PROVED, "SF403", """\
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, pixels, labels):
        return pixels

batch = {"pixels": torch.zeros(2)}
Net()(**batch)  # cause
"""),
]  # fmt: skip


def _diagnosed(folder: Path, code: str, log: str | None = None) -> tuple[str, Diagnosis]:
    script = folder / "train.py"
    script.write_text(code)
    text = traceback_of(script) if log is None else log
    found = diagnose_log(text.splitlines(), str(folder), OPTIONS)
    assert found is not None
    return text, found


@pytest.mark.parametrize("case", SCRIPTS, ids=str)
def test_the_cause_is_named(case: Failing, tmp_path: Path) -> None:
    _, found = _diagnosed(tmp_path, case.text)
    assert found.explanation is not None
    first = found.causes[0]
    assert (first.finding.code, first.confidence) == (case.rule, case.confidence)
    row = 1 + [("# cause" in line) for line in case.text.splitlines()].index(True)
    places = [first.finding.span, *(step.span for step in first.finding.evidence)]
    assert any(span.row <= row <= span.end_row for span in places)


@pytest.mark.parametrize("case", SCRIPTS, ids=str)
def test_another_error_is_never_proved(case: Failing, tmp_path: Path) -> None:
    """The finding of the check is about another line, another message or other sizes."""
    log, _ = _diagnosed(tmp_path, case.text)
    message = log.rstrip().splitlines()[-1]
    last_row = len(case.text.splitlines())
    changed = {
        "another message": log.replace(message, "RuntimeError: no such thing"),
        "no message": log.replace(message, "RuntimeError"),
        "other line": re.sub(r'(train\.py", line )\d+(.*\n)(    .*\n)?', rf"\g<1>{last_row + 40}\2", log),
    }
    if len(set(re.findall(r"\d+", message))) > 1:
        changed["other sizes"] = log.replace(message, re.sub(r"\d+", lambda size: size[0] + "7", message))
    for name, text in changed.items():
        _, found = _diagnosed(tmp_path, case.text, text)
        assert all(each.confidence is not Confidence.PROVED for each in found.causes), name


def test_a_changed_source_is_noticed(tmp_path: Path) -> None:
    code = SCRIPTS[0].text
    log, found = _diagnosed(tmp_path, code)
    assert not found.is_changed
    _, moved = _diagnosed(tmp_path, "import math\n\n" + code, log)
    assert moved.is_changed
    assert moved.causes[0].finding.code == "SF501"
    assert moved.causes[0].confidence is not Confidence.PROVED
    _, repaired = _diagnosed(tmp_path, code.replace("271", "4000"), log)
    assert repaired.causes == ()


def test_paths_of_another_machine_are_found_by_their_end(tmp_path: Path) -> None:
    folder = tmp_path / "project" / "src"
    folder.mkdir(parents=True)
    log, _ = _diagnosed(folder, SCRIPTS[0].text)
    remote = log.replace(str(folder), "/home/ana/code/src")
    found = diagnose_log(remote.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert found.causes[0].confidence is Confidence.PROVED
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("")
    found = diagnose_log(remote.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert found.causes == ()
    assert [frame.is_missing for frame in found.frames] == [True, True, True]


def test_the_cause_of_a_chain_is_found_in_the_earlier_exception(tmp_path: Path) -> None:
    code = """\
import torch

def step():
    torch.nn.Linear(3, 2)(torch.zeros(4, 5))

try:
    step()
except Exception as error:
    raise ValueError("step failed") from error
"""
    _, found = _diagnosed(tmp_path, code)
    assert (found.report.name, found.error.name) == ("ValueError", "RuntimeError")
    assert found.causes[0].finding.code == "SF501"


def test_an_unknown_message_has_no_explanation(tmp_path: Path) -> None:
    _, found = _diagnosed(tmp_path, "import torch\nraise LookupError('shelf 7 is empty')\n")
    assert (found.explanation, found.causes) == (None, ())


_UNKNOWN_INPUT = """\
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(8, 16)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(in_features=width, out_features=4), nn.Linear(4, 3))

    def forward(self, x):
        return self.rest(self.first(x))

class Other(nn.Module):
    def __init__(self):
        self.rest = nn.Linear(24, 9)

exec("size = 24; data = torch.zeros(2, 8)")
Net(size)(data)
"""


def test_the_layer_is_found_where_the_check_lacks_its_size(tmp_path: Path) -> None:
    _, found = _diagnosed(tmp_path, _UNKNOWN_INPUT)
    (cause,) = found.causes
    assert (cause.finding.code, cause.confidence) == ("traced-error", Confidence.ONLY)
    assert {9, 12} <= {step.span.row for step in cause.evidence}
    assert found.layer is not None
    assert (found.layer.name, found.layer.row) == ("self.rest", 9)
    assert found.layer.code == "nn.Linear(in_features=width, out_features=4)"
    assert (found.layer.wanted, found.layer.arrived) == ("24", "16")


def test_two_layers_that_fit_are_no_answer(tmp_path: Path) -> None:
    code = _UNKNOWN_INPUT.replace("nn.Linear(4, 3)", "nn.Linear(width, 3)")
    _, found = _diagnosed(tmp_path, code)
    assert found.layer is None
    (cause,) = found.causes
    assert cause.confidence is Confidence.LIKELY
    # What is known is the origin of the data's size, and then where the layers are set.
    assert {8, 12} <= {step.span.row for step in cause.evidence}
    assert not any("takes" in step.message for step in cause.evidence)


_EMBEDDING = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(100, 8)
        self.fc = nn.Linear(8, 4)

    def forward(self, ids):
        return self.fc(self.tokens(ids))

loss = nn.CrossEntropyLoss()
net = Net()
scores = net(torch.tensor([[1, 100]]))  # cause
print(scores.mean().item())
"""
_ASSERT = """\
Traceback (most recent call last):
  File "train.py", line 16, in <module>
    print(scores.mean().item())
RuntimeError: CUDA error: device-side assert triggered
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be \
incorrect.
"""


def test_a_device_side_assert_is_an_index_at_another_line(tmp_path: Path) -> None:
    _, on_cpu = _diagnosed(tmp_path, _EMBEDDING)
    assert on_cpu.error.message == "index out of range in self"
    _, found = _diagnosed(tmp_path, _EMBEDDING, _ASSERT)
    assert [each.finding.code for each in found.causes] == ["SF505"]
    assert found.causes[0].finding.span == on_cpu.causes[0].finding.span
    assert found.causes[0].confidence is Confidence.ONLY
    _, found = _diagnosed(tmp_path, _EMBEDDING.replace("100]]", "99]]"), _ASSERT)
    assert found.causes == ()
    assert found.explanation is not None


_CLASS_IDS = """\
import torch
from torch import nn

model = nn.Linear(3, 2)
scores = model(torch.randn(4, 3))
targets = torch.tensor([0, 1, 2, 1])
loss = nn.CrossEntropyLoss()(scores, targets)
total = loss.item()
"""


def test_a_device_side_assert_of_a_loss_is_a_class_id(tmp_path: Path) -> None:
    log = _ASSERT.replace("line 16", "line 8").replace("print(scores.mean().item())", "total = loss.item()")
    _, found = _diagnosed(tmp_path, _CLASS_IDS, log)
    assert [(each.finding.code, each.finding.failing.row) for each in found.causes] == [("SF517", 7)]


_OTHER_ERROR = """\
import random

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 20)
        self.second = nn.Linear(width, 30)

    def forward(self, x):
        return self.first(x) + self.second(x)


Net(random.choice([31]))(torch.zeros(3, random.choice([40])))
"""


def test_an_error_of_another_rule_on_the_line_is_not_the_cause(tmp_path: Path) -> None:
    """The sum would fail, too, but the layer before it has failed, with the words of another rule."""
    _, found = _diagnosed(tmp_path, _OTHER_ERROR)
    assert "SF510" not in [cause.finding.code for cause in found.causes]
