"""Exceptions that a rule knows: by the words of its page, and by the finding of `check` at their place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from probing import Probed, probed, probed_file, row, run_shapefix

from shapefix.checks.rules import RULES
from shapefix.runtime.findings.error_catalog import _FAILURES
from shapefix.runtime.findings.write_blame import OPTION, with_writes
from shapefix.runtime.repair.offered import with_static_fixes

pytestmark = pytest.mark.slow

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F

x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
"""

STEP = """
    optimizer.zero_grad()
    loss.backward()  # backward
    optimizer.step()
"""

RAISING = {
    "SF902": "weight = nn.Parameter(torch.ones(3))\nweight += 1  # fault\n",
    "SF903": "loss = F.cross_entropy(model(x), y)\nfor _ in range(3):\n    loss.backward()  # fault\n",
    "SF514": "F.binary_cross_entropy(model(x)[:, 0] + 9, (y > 1).float())  # fault\n",
    "SF507": "nn.LSTM(8, 4)(x[None], (torch.zeros(1, 3, 4), torch.zeros(1, 3, 4)))  # fault\n",
    "SF104": "torch.zeros(1, 3).expand(4, 3).add_(1)  # fault\n",
}


@pytest.mark.parametrize("code", RAISING)
def test_an_exception_with_the_words_of_a_rule_has_its_name(tmp_path: Path, code: str) -> None:
    script = HEAD + RAISING[code]
    (found,) = probed(tmp_path, script).found
    assert (found.code, found.name, found.span.row) == (code, RULES[code].name, row(script, "fault"))


def test_the_rules_by_words_are_rules_with_errors() -> None:
    assert set(_FAILURES) <= RULES.keys()


@pytest.mark.parametrize(
    "statement",
    ["raise ValueError('no such model: ' + str(model))", "len(None)", "{}['labels']", "[][3]"],
)
def test_an_exception_of_the_scripts_own_stays_a_crash(tmp_path: Path, statement: str) -> None:
    (found,) = probed(tmp_path, f"{HEAD}model(x)\n{statement}\n").found
    assert found.code == "crash"


def test_a_crash_has_the_meaning_of_its_message(tmp_path: Path) -> None:
    script = f"{HEAD}model(x)\nx.item()  # fault\n"
    (found,) = probed(tmp_path, script).found
    assert found.code == "crash"
    meaning = [step.message for step in found.evidence if step.span.row == row(script, "fault")]
    assert meaning[0].startswith("One number is needed here, but the tensor has")


WRITES = {
    "an activation": ("h = model(x).sigmoid()\n    h.mul_(2)  # fault\n    loss = h.sum()", "mul_"),
    "a slice": ("h = model(x).exp()\n    h[:, 0] = 0  # fault\n    loss = h.sum()", "fill_"),
    "weights": (
        "h = F.linear(model(x).relu(), first.weight)\n    one.step()  # fault\n    loss = h.sum()",
        "_foreach_add_",
    ),
}
MORE = """
first = nn.Linear(3, 3)
one = torch.optim.SGD(first.parameters(), 0.1, foreach=True)
first.weight.grad = torch.ones(3, 3)
"""


def blamed(ran: Probed, options: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    again = probed_file(ran.folder, "train.py", options=(OPTION,))
    found = with_writes(ran._told, ran.run.observed, lambda: again.run.observed)
    return [(each.message, each.span.row) for each in found.diagnostics]


@pytest.mark.parametrize("name", WRITES)
def test_an_in_place_error_is_blamed_on_the_write(tmp_path: Path, name: str) -> None:
    body, function = WRITES[name]
    script = f"{HEAD}{MORE}for _ in range(2):\n    {body}{STEP}"
    ran = probed(tmp_path, script)
    assert [each.code for each in ran.found] == ["SF901"]
    ((message, at),) = blamed(ran)
    assert message.startswith(f"`{function}` writes into ")
    assert at == row(script, "fault")


def test_a_write_into_what_no_gradient_needs_is_not_searched_for(tmp_path: Path) -> None:
    body = "h = model(x)\n    h += 1\n    loss = F.cross_entropy(h, y)"
    ran = probed(tmp_path, f"{HEAD}for _ in range(2):\n    {body}{STEP}")
    assert ran.found == []

    def never() -> None:
        raise AssertionError

    assert with_writes(ran._told, ran.run.observed, never) == ran._told  # type: ignore[arg-type]


def test_check_explains_an_exception_at_its_place(tmp_path: Path) -> None:
    script = """
        from transformers import TrainingArguments

        arguments = TrainingArguments(
            "out",
            evaluation_strategy="epoch",
        )
    """
    ran = probed(tmp_path, script)
    assert [each.code for each in ran.found] == ["crash"]
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        (found,) = with_static_fixes(ran._told, "train.py").diagnostics
    finally:
        os.chdir(before)
    assert (found.code, found.name) == ("SF407", "removed-argument")
    assert "it is now `eval_strategy`; TypeError: " in found.message
    assert [fix.applicability.value for fix in found.fixes] == ["safe"]


def test_the_command_blames_the_write_and_offers_its_repair(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"{HEAD}for _ in range(2):\n    {WRITES['an activation'][0]}{STEP}")
    ran = run_shapefix("probe", "train.py", "--quiet", folder=tmp_path)
    assert ran.returncode == 1
    assert "error[SF901] saved-tensor-written: `mul_` writes into the result of" in ran.stdout
    assert "saved here for its gradient" in ran.stdout


def test_a_module_elsewhere_in_the_project_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "tools" / "deep").mkdir(parents=True)
    (tmp_path / "lib" / "metrics").mkdir(parents=True)
    (tmp_path / "lib" / "metrics" / "scores.py").write_text("")
    (tmp_path / "helper.py").write_text("")
    for name, folder in (("helper", "../.."), ("metrics", "../../lib")):
        monkeypatch.chdir(tmp_path / "tools" / "deep")
        found = probed(Path.cwd(), f"import torch\nimport {name}\n").found
        assert [each.message for each in found] == [
            f"No module named '{name}'; it is in `{folder}`, which is not on the path of imports: "
            f"set `PYTHONPATH={folder}`"
        ]
    (missing,) = probed(tmp_path / "tools", "import torch\nimport absent_module\n").found
    assert missing.message.endswith("No module named 'absent_module'")


ASSERTED = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = {"width": 7}
        self.heads = 3
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        assert TEST, "sizes"  # fault
        return self.layer(x)

class Strange:
    @property
    def size(self):
        raise SystemExit("run by the probe")

strange = Strange()
Net()(torch.ones(2, 8))
"""


@pytest.mark.parametrize(
    ("test", "shown"),
    [
        ("x.shape[-1] == self.config['width']", "`x.shape[-1]` is 8, `self.config['width']` is 7"),
        ("x.size(1) % self.heads == 0", "`x.size(1) % self.heads` is 2"),
        ("x.shape == (2, self.heads)", "`x.shape` is (2, 8), `(2, self.heads)` is (2, 3)"),
        ("not len(x) == self.layer.in_features - 6", "`len(x)` is 2, `self.layer.in_features - 6` is 2"),
        ("x.dtype is torch.float16", "`x.dtype` is torch.float32"),
        ("x.sum() < 0", ""),
        ("x.ndim == 3 and strange.size", "`x.ndim` is 2"),
    ],
)
def test_a_failed_assert_shows_both_sides(tmp_path: Path, test: str, shown: str) -> None:
    script = ASSERTED.replace("TEST", test)
    (found,) = probed(tmp_path, script).found
    assert found.span.row == row(script, "fault")
    assert found.message == ("sizes; " + shown if shown else "sizes")
