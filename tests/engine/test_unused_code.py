"""Findings in code without a use: info where the project has a program, errors where its use is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from shapefix.cli.main import cli
from shapefix.diagnostics import Severity
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.cat([x, torch.zeros(4, 8)], 0))
"""
OLD = """\
import torch
from torch import nn


class OldNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.zeros(4, 6))
"""
WITH_LEFTOVER = (
    NET
    + """
    def forward_old(self, x):
        return self.head(torch.zeros(4, 6))
"""
)
TRAIN = """\
import torch
from models.net import Net

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in load():
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def make(files: dict[str, str]) -> None:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return make


def examined(*paths: str) -> CheckSession:
    return CheckSession(paths or (".",), Settings(CheckOptions(select=("SF501",)))).run()


def shown(*paths: str) -> list[tuple[str, str]]:
    """The severity and the unused code of the findings, of the hidden ones after the others."""
    session = examined(*paths)
    return [(str(each.severity), each.unused) for each in (*session.findings(), *session.hidden())]


PROGRAM = {"models/net.py": NET, "models/old.py": OLD, "train.py": TRAIN}


def test_a_class_without_a_use_is_info_in_a_project_with_a_program(write: Write) -> None:
    write(PROGRAM)
    session = examined()
    assert session.findings() == ()
    (hidden,) = session.hidden()
    assert (hidden.severity, hidden.unused) == (Severity.INFO, "OldNet")


USED = {
    "an import with a use": {"tool.py": "import torch\nfrom models.old import OldNet\n\nnet = OldNet()\n"},
    "an import under another name": {"tool.py": "import torch\nfrom models.old import OldNet as Net\n"},
    "a path in a string": {"tool.py": "NAMES = ['models.old.OldNet']\n"},
    "a variable of the module": {
        "tool.py": "def use():\n    global OldNet\n    OldNet = make(OldNet)\n\nuse()\n"
    },
    "an export": {"models/__init__.py": '__all__ = ["OldNet"]\n'},
    "a notebook": {"a.ipynb": '{"cells": [{"cell_type": "code", "source": "OldNet()"}], "metadata": {}}'},
    "a configuration": {"config.yaml": "model: OldNet\n"},
    "a name from the command line": {
        "train.py": TRAIN + "import argparse\nfrom models import old\ngetattr(old, args.arch)()\n"
    },
    "a class of the same name in another file": {
        "models/new.py": "class OldNet:\n    pass\n",
        "tool.py": "import torch\nfrom models.old import *\n\nnet = OldNet()\n",
    },
    "a registry": {"models/old.py": OLD.replace("class OldNet", "@register\nclass OldNet")},
    "a package": {"pyproject.toml": '[project]\nname = "nets"\n'},
    "no program": {"train.py": TRAIN.partition("for x")[0].replace("models.net", "net")},
    "a program that nothing runs": {
        "train.py": "from models.net import Net\n\n\ndef train(model, x):\n    model(x).sum().backward()\n"
    },
}


@pytest.mark.parametrize("files", USED.values(), ids=USED)
def test_an_error_where_a_use_is_known_or_may_be_elsewhere(files: dict[str, str], write: Write) -> None:
    write({**PROGRAM, **files})
    assert shown() == [("error", "")]


UNUSED = {
    "a use in itself": {"models/old.py": OLD + "\n    def copy(self):\n        return OldNet()\n"},
    "a use in unused code": {
        "models/other.py": "from torch import nn\n\n\nclass Other:\n    old = 'OldNet'\n"
    },
    "an import of a package": {"models/__init__.py": "from models.old import OldNet\n"},
    "an import without a use": {"tool.py": "import torch\nfrom models.old import OldNet\n"},
    "a variable of a function": {
        "tool.py": (
            "from models.old import OldNet\n\n\ndef test(logs):\n    OldNet = 1\n"
            "    print('OldNet', OldNet, logs['OldNet'])\n\n\ntest({})\n"
        )
    },
    "a sentence": {"tool.py": "help = 'Compares Net and OldNet.'\n"},
    "a use with older versions of a library": {
        "tool.py": (
            "import torch\nfrom packaging import version\n\n"
            "if version.parse(torch.__version__) >= version.parse('1.7.0'):\n"
            "    from models.net import Net as Chosen\n"
            "else:\n"
            "    from models.old import OldNet as Chosen\n"
        )
    },
    "a comment": {"tool.py": "import torch\n# OldNet()\n"},
    "a tool's settings": {"pyproject.toml": "[tool.black]\nline-length = 99\n"},
    "a use of a class of the same name in another file": {
        "models/new.py": NET.replace("Net", "OldNet"),
        "tool.py": "import torch\nfrom models.new import OldNet\n\nnet = OldNet()\n",
    },
    "a self-test that nothing calls": {
        "models/old.py": OLD + "\n\ndef test():\n    OldNet()(torch.zeros(4, 6))\n\n# test()\n"
    },
    "a private class of a package": {
        "pyproject.toml": '[project]\nname = "nets"\n',
        "models/old.py": OLD.replace("OldNet", "_OldNet"),
    },
}


@pytest.mark.parametrize("files", UNUSED.values(), ids=UNUSED)
def test_info_where_nothing_uses_it(files: dict[str, str], write: Write) -> None:
    write({**PROGRAM, **files})
    ((severity, unused),) = shown()
    assert (severity, unused.lstrip("_")) == ("info", "OldNet")


def test_a_file_by_its_name_is_reported_and_so_is_one_alone(write: Write) -> None:
    write({"pyproject.toml": "", **PROGRAM})
    assert shown("models/old.py") == [("error", "OldNet")]
    write({"alone/model.py": OLD})
    assert shown("alone/model.py") == [("error", "")]


def test_a_method_without_a_use_beside_a_forward(write: Write) -> None:
    write({"models/net.py": WITH_LEFTOVER, "train.py": TRAIN})
    assert shown() == [("info", "Net.forward_old")]
    write({"eval.py": "from models.net import Net\n\nNet().forward_old(0)\n"})
    assert [severity for severity, _ in shown()] == ["error"]


def test_a_leftover_of_forward_is_info_in_any_project(write: Write) -> None:
    write({"model.py": WITH_LEFTOVER})
    assert [severity for severity, _ in shown("model.py")] == ["info"]
    write({"model.py": WITH_LEFTOVER.replace("self.head(torch.cat", "nn.ReLU()(torch.cat")})
    assert [severity for severity, _ in shown("model.py")] == ["error"]


def test_methods_of_other_bases_may_be_called_by_the_library(write: Write) -> None:
    text = "import lightning\n" + WITH_LEFTOVER.replace("nn.Module", "lightning.LightningModule")
    write({"models/net.py": text, "train.py": TRAIN})
    assert [severity for severity, _ in shown()] == ["error"]


def test_fixes_leave_unused_code_alone_and_the_command_says_so(write: Write, tmp_path: Path) -> None:
    write(PROGRAM)
    run = CliRunner().invoke(cli, ["check", "--no-cache", "."])
    assert run.exit_code == 0
    assert "note: there is 1 finding in code that nothing in the project uses" in run.output
    verbose = CliRunner().invoke(cli, ["check", "--no-cache", "-v", "."])
    assert verbose.exit_code == 0
    assert "info[SF501]" in verbose.output
    assert "unused code: nothing in the project uses `OldNet`" in verbose.output
    CliRunner().invoke(cli, ["fix", "--no-cache", "--apply", "--unsafe-fixes", "."])
    assert (tmp_path / "models/old.py").read_text() == OLD


DEMO = """

if __name__ == "__main__":
    print(Net()(torch.zeros(4, 6)))
"""


@pytest.mark.parametrize(
    ("net", "train", "severities"),
    [
        (DEMO, TRAIN, [Severity.INFO]),
        (DEMO, "print('no program')\n", [Severity.ERROR]),
        (DEMO + "    Net()(torch.zeros(4, 6)).sum().backward()\n", TRAIN, [Severity.ERROR]),
        (DEMO, TRAIN.replace("load()", "[torch.zeros(4, 6)]"), [Severity.ERROR]),
        (DEMO + "    step(Net(), torch.optim.Adam(Net().parameters()))\n", TRAIN, [Severity.ERROR]),
    ],
    ids=["a demo", "a script", "a training script", "the program, too", "a script with its loop elsewhere"],
)
def test_a_demo_in_a_module_of_a_program_is_info(
    net: str, train: str, severities: list[Severity], write: Write
) -> None:
    model = NET.replace("torch.cat([x, torch.zeros(4, 8)], 0)", "x")
    write({"models/net.py": model + net, "train.py": train})
    session = examined()
    found = [*session.findings(), *session.hidden()]
    assert [each.severity for each in found] == severities
    demos = [each for each in found if each.severity is Severity.INFO]
    assert all(each.reservation == "only the demo at line 15 runs this code" for each in demos)


SELF_TEST = """\
import torch
from torch import nn
from torch.utils import model_zoo


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv(x)


def backbone():
    net = Backbone()
    net.load_state_dict(model_zoo.load_url("https://example.org/net.pth"))
    return net


if __name__ == "__main__":
    net = backbone()
    output, features = net(torch.rand(1, 3, 16, 16))
"""
SEGMENTER = """\
from backbone import backbone
from torch import nn


def build():
    return nn.Sequential(backbone(), nn.ReLU())
"""


def test_a_self_test_of_a_module_that_others_import_is_info(tmp_path: Path) -> None:
    (tmp_path / "backbone.py").write_text(SELF_TEST, "utf-8")

    def severities() -> list[Severity]:
        session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
        return [each.severity for each in (*session.findings(), *session.hidden())]

    assert severities() == [Severity.ERROR]
    (tmp_path / "segmenter.py").write_text(SEGMENTER, "utf-8")
    assert severities() == [Severity.INFO]


def test_a_script_with_options_shows_what_it_uses(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(OLD, "utf-8")
    options = "import argparse\nargs = argparse.ArgumentParser().parse_args()\n"
    (tmp_path / "main.py").write_text(options, "utf-8")
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    assert not session.findings()
    assert [each.unused for each in session.hidden()] == ["OldNet"]


def test_a_list_of_exported_names_is_no_use(tmp_path: Path) -> None:
    (tmp_path / "loss.py").write_text(f"__all__ = ['OldNet']\n{OLD}", "utf-8")
    (tmp_path / "train.py").write_text(
        "import torch\ntorch.ones(2, requires_grad=True).sum().backward()\n", "utf-8"
    )
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    assert not session.findings()
    assert [each.unused for each in session.hidden()] == ["OldNet"]
