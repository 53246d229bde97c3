"""A run without options on the command line, beside the one with any options."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from shapefix.api import check
from shapefix.diagnostics import Condition

HEAD = "import argparse\nimport torch\nfrom torch import nn\n\nparser = argparse.ArgumentParser()\n"
MODEL = """
class Net(nn.Module):
    def __init__(self, kind, wide):
        super().__init__()
        kinds = {"small": (nn.Linear(8, 4), 4), "large": (nn.Linear(8, 16), 16)}
        self.body, width = kinds[kind]
        if wide:
            self.neck, width = nn.Linear(width, 32), 32
        else:
            self.neck = nn.Identity()
        self.head = nn.Linear(LAST, 2)

    def forward(self, x):
        return self.head(self.neck(self.body(x)))


Net(args.kind, args.wide)(torch.zeros(5, 8))
"""
WIDTHS = {("small", False): 4, ("large", False): 16, ("small", True): 32, ("large", True): 32}


def program(kind: str, wide: bool, last: int) -> str:
    action = "store_false" if wide else "store_true"
    options = (
        f"parser.add_argument('--kind', default={kind!r})\n"
        f"parser.add_argument('--wide', action={action!r})\nargs = parser.parse_args()\n"
    )
    return HEAD + options + MODEL.replace("LAST", str(last))


def conditions(text: str, folder: Path) -> list[Condition | None]:
    (folder / "train.py").write_text(text)
    return [each.condition for each in check(folder, select=["SF501"], isolated=True, use_cache=False)]


@pytest.mark.parametrize(("kind", "wide", "last"), [(*key, n) for key in WIDTHS for n in (4, 16, 32)])
def test_the_defaults_choose_the_model_as_the_run_does(
    kind: str, wide: bool, last: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = program(kind, wide, last)
    monkeypatch.setattr("sys.argv", ["train.py"])
    found = conditions(text, tmp_path)
    if WIDTHS[kind, wide] == last:
        exec(compile(text, "train.py", "exec"), {})
        assert not found
    else:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            exec(compile(text, "train.py", "exec"), {})
        (condition,) = found
        assert condition is not None
        assert "options of the command line have their defaults" in condition.text


def test_a_required_option_has_no_default(tmp_path: Path) -> None:
    for kind, last in itertools.product(("small", "large"), (4, 16)):
        text = program(kind, False, last).replace(f"default={kind!r}", "required=True")
        assert not conditions(text, tmp_path)


def test_a_float_option_keeps_the_rank(tmp_path: Path) -> None:
    options = "parser.add_argument('--scale', type=float, default=1.0)\nargs = parser.parse_args()\n"
    use = "x = torch.zeros(5, 6) * args.scale\nnn.Linear(8, 2)(x)\n"
    assert len(conditions(HEAD + options + use, tmp_path)) == 1


def test_a_model_in_data_parallel_on_some_machines_stays_known(tmp_path: Path) -> None:
    use = (
        "import torch\nfrom torch import nn\nmodel = nn.Linear(8, 2)\n"
        "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\n"
        "model(torch.zeros(5, 6))\n"
    )
    assert len(conditions(use, tmp_path)) == 1
    assert not conditions(use.replace("5, 6", "5, 8"), tmp_path)
