"""Findings that rest on an assumption are info in a folder; without the assumption they are errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shapefix.cli.main import run
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

HEAD = "import sys\nimport torch\nimport other\nfrom torch import nn\n\nargs = other.parse()\n"
HEADS = "heads = nn.Linear(8, 2)\n"
WRONG = {
    "a branch on a value of the function": (
        "def score(mode):\n    if mode:\n        return heads(torch.zeros(4, 6))\n\n\nscore(other.mode())\n",
        "`mode` lets these values pass",
    ),
    "a branch around a call, on what it passes": (
        "def score(x):\n    return heads(x)\n\n\nx = torch.zeros(4, 6)\nif other.fits(x):\n    score(x)\n",
        "`other.fits(x)` lets these values pass",
    ),
    "a function without a caller": (
        "def score(x: torch.Tensor):\n    return heads(x.reshape(4, 2, 6).sum(1))\n",
        "no known code calls `score`",
    ),
    "a size that some runs have": (
        "x = torch.zeros(4, other.width())\nfor _ in range(3):\n    y = x[:, 1:] + x[:, 3:]\n",
        "it is assumed that a run has",
    ),
    "a layer in unknown code": (
        "other.prepare(heads)\nheads(torch.zeros(4, 6))\n",
        "no unknown code called before changes these objects",
    ),
    "a model with the layer in unknown code": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.last = heads\n\n\n"
        "net = Net()\nother.prepare(net)\nheads(torch.zeros(4, 6))\n",
        "no unknown code called before changes these objects",
    ),
    "a function with the layer in unknown code": (
        "def widen():\n    heads.weight.data = torch.zeros(2, 6)\n\n\n"
        "other.prepare(widen)\nheads(torch.zeros(4, 6))\n",
        "no unknown code called before changes these objects",
    ),
    "a method of an unknown base": (
        "class Net(other.Base):\n    def __init__(self):\n        super().__init__()\n"
        "        self.last = nn.Linear(8, 2)\n        self.build()\n\n"
        "    def score(self, x):\n        return self.last(x)\n\n\nNet().score(torch.zeros(4, 6))\n",
        "no unknown code called before changes these objects",
    ),
    "unknown code with everything in reach": (
        "@other.cached\ndef widen():\n    return 2\n\n\nwiden()\nheads(torch.zeros(4, 6))\n",
        "no unknown code called before changes these objects",
    ),
}
RIGHT = {
    "a branch on the number of the pass": (
        "for n in range(9):\n    if n % 3 == 0:\n        heads(torch.zeros(4, 6))\n"
    ),
    "a branch on a setting": "if args.train:\n    heads(torch.zeros(4, 6))\n",
    "a branch on the machine": "if torch.cuda.is_available():\n    heads(torch.zeros(4, 6))\n",
    "a branch around a call, on another value": (
        "def score(x):\n    return heads(x)\n\n\nif sys.argv[1] == 'run':\n    score(torch.zeros(4, 6))\n"
    ),
    "a function with its own values": "def score():\n    return heads(torch.zeros(4, 6))\n",
    "a method with its own values": (
        "class Net(nn.Module):\n    def score(self, x):\n        return heads(torch.zeros(4, 6))\n"
    ),
    "a view of its own sizes": "def score(x: torch.Tensor):\n    return heads(x.view(-1, 6))\n",
    "two layers without a caller": (
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.one = nn.Linear(3, width)\n        self.two = nn.Linear(4 * width, 2)\n\n"
        "    def forward(self, x):\n        return self.two(torch.relu(self.one(x)))\n"
    ),
    "flattened channels without a caller": (
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.one = nn.Conv2d(3, width, 3)\n        self.pool = nn.AdaptiveAvgPool2d(1)\n"
        "        self.two = nn.Linear(4 * width, 2)\n\n"
        "    def forward(self, x):\n        return self.two(torch.flatten(self.pool(self.one(x)), 1))\n"
    ),
    "a flattened image without a caller": (
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.one = nn.Conv2d(3, 8, 3)\n        self.pool = nn.AdaptiveAvgPool2d(2)\n"
        "        self.two = nn.Linear(8, 2)\n\n"
        "    def forward(self, x):\n        return self.two(torch.flatten(self.pool(self.one(x)), 1))\n"
    ),
    "two layers after unknown code": (
        "tail = nn.Linear(9, 2)\nother.prepare(heads)\ntail(torch.relu(heads(torch.zeros(4, 8))))\n"
    ),
    "unknown code without the layer": (
        "class Loop:\n    def __init__(self, logger):\n        self.logger = logger\n\n"
        "    def run(self):\n        self.logger.start()\n        heads(torch.zeros(4, 6))\n"
    ),
    "another layer in unknown code": "other.prepare(nn.Linear(9, 2))\nheads(torch.zeros(4, 6))\n",
    "a function in unknown code": (
        "def clean(text):\n    return text.lower()\n\n\nother.prepare(clean)\nheads(torch.zeros(4, 6))\n"
    ),
    "a branch on the device of a tensor": (
        "def score(x):\n    if x.is_cuda:\n        return 0\n    return heads(x)\n\n\n"
        "score(torch.zeros(4, 6))\n"
    ),
    "a call": "def score(x):\n    return heads(x)\n\n\nscore(torch.zeros(4, 6))\n",
    "a tensor in unknown code": "x = torch.zeros(4, 6)\nother.show(x)\ntorch.mm(x, x)\n",
    "a layer in known code": "other_heads = [heads]\nprint(heads)\nheads(torch.zeros(4, 6))\n",
}
Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> None:
        (tmp_path / "train.py").write_text(HEAD + HEADS + text)

    return make


def shown(*paths: str, preview: bool | None = None) -> list[tuple[str, str]]:
    """The severity and the reservation of the findings, of the hidden ones after the others."""
    options = CheckOptions(isolated=True, use_cache=False, preview=preview)
    session = CheckSession(paths or (".",), Settings(options)).run()
    return [(str(each.severity), each.reservation) for each in (*session.findings(), *session.hidden())]


@pytest.mark.parametrize(("text", "reason"), WRONG.values(), ids=WRONG)
def test_an_assumption_is_info_in_a_folder_and_an_error_on_request(
    text: str, reason: str, write: Write
) -> None:
    write(text)
    ((severity, reservation),) = shown()
    assert severity == "info"
    assert reason in reservation
    assert shown(preview=True) == shown("train.py") == [("error", reservation)]


@pytest.mark.parametrize("text", RIGHT.values(), ids=RIGHT)
def test_without_an_assumption_it_is_an_error(text: str, write: Write) -> None:
    write(text)
    assert shown() == [("error", "")]


def test_a_number_without_dimensions_has_no_items_in_any_branch(write: Write) -> None:
    log = "def log(x, mode):\n    if mode:\n        print(x.sum()[0])\n\n\n"
    write(log + "log(torch.zeros(3), other.mode())\n")
    assert shown() == [("error", "")]


def test_a_surer_way_to_the_same_place_counts(write: Write) -> None:
    write(
        "def score(x):\n    return heads(x)\n\n\nx = torch.zeros(4, 6)\n"
        "if other.fits(x):\n    score(x)\nscore(x)\n"
    )
    assert shown() == [("error", "")]


def test_the_output_counts_them_and_shows_them_on_request(
    write: Write, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write(WRONG["a function without a caller"][0])
    assert run(["check", "--no-cache"]) == 0
    note = "note: 1 finding rests on an assumption (--verbose shows all, --preview reports them)\n"
    assert note in capsys.readouterr().err
    assert run(["check", "--no-cache", "--verbose"]) == 0
    assert "not certain: no known code calls `score`" in capsys.readouterr().out
    assert run(["check", "--no-cache", "--preview"]) == 1
    (tmp_path / "shapefix.toml").write_text("preview = true\n")
    assert run(["check", "--no-cache"]) == 1
    assert run(["check", "--no-cache", "--no-preview"]) == 0
