"""A run without options on the command line, beside the one with any options."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from shapefix.api import check
from shapefix.diagnostics import Condition
from shapefix.engine.analysis import LEAST_STEPS
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.program import run_program

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


def test_the_square_of_an_option_is_a_size(tmp_path: Path) -> None:
    options = "parser.add_argument('--size', type=int, default=32)\nargs = parser.parse_args()\n"
    use = "nn.Linear(LAST * (args.size // 16) ** 2, 2)(torch.zeros(5, 8 * (args.size // 16) ** 2))\n"
    assert len(conditions(HEAD + options + use.replace("LAST", "4"), tmp_path)) == 1
    assert not conditions(HEAD + options + use.replace("LAST", "8"), tmp_path)


DATASETS = """
import torch


class Numbers(torch.utils.data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.zeros(6)


class Few(Numbers):
    def __init__(self):
        super().__init__(3)


try:
    data = Few()
except RuntimeError:
    data = Numbers(9)
for batch in torch.utils.data.DataLoader(data, batch_size=2):
    torch.nn.Linear(LAST, 2)(batch)
"""


def test_a_dataset_or_one_of_a_derived_class_has_the_samples_of_both(tmp_path: Path) -> None:
    assert len(conditions(DATASETS.replace("LAST", "8"), tmp_path)) == 1
    assert not conditions(DATASETS.replace("LAST", "6"), tmp_path)


TYPES = """
import torch

cuda = torch.cuda.is_available()
Float = torch.cuda.FloatTensor if cuda else torch.FloatTensor
Long = torch.cuda.LongTensor if cuda else torch.LongTensor
ids = torch.zeros(4, dtype=torch.int32).type(KIND)
torch.nn.Embedding(3, 2, device="cuda" if cuda else "cpu")(ids)
"""


@pytest.mark.parametrize(("kind", "raises"), [("Float", True), ("Long", False)])
def test_a_tensor_type_of_either_device_has_its_dtype(kind: str, raises: bool, tmp_path: Path) -> None:
    text = TYPES.replace("KIND", kind)
    (tmp_path / "train.py").write_text(text)
    found = check(tmp_path, select=["SF512"], isolated=True, use_cache=False)
    if raises:
        with pytest.raises(RuntimeError, match="indices"):
            exec(compile(text, "train.py", "exec"), {})
    else:
        exec(compile(text, "train.py", "exec"), {})
    assert len(found) == raises


def test_training_arguments_of_a_command_line_or_a_file_stay_known(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys\nfrom transformers import HfArgumentParser, TrainingArguments\n\n"
        "parser = HfArgumentParser(TrainingArguments)\n"
        "if sys.argv[1].endswith('.json'):\n    (args,) = parser.parse_json_file(sys.argv[1])\n"
        "else:\n    (args,) = parser.parse_args_into_dataclasses()\nreveal(args)\n"
    )
    (answer,) = check(tmp_path, isolated=True, use_cache=False).answers
    assert answer.message == "TrainingArguments"


def test_the_second_run_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = "".join(f"def f{n}(x):\n    return f{n - 1}(f{n - 1}(x))\n\n\n" for n in range(1, 18))
    (tmp_path / "helper.py").write_text(f"def f0(x):\n    return x + 1\n\n\n{chain}")
    options = "parser.add_argument('--kind', default='deep')\nargs = parser.parse_args()\n"
    use = (
        "run = f17 if args.kind == 'deep' else len\nrun(torch.zeros(3))\nnn.Linear(3, 2)(torch.zeros(5, 6))\n"
    )
    runs: list[Evaluator] = []

    def noted(ev: Evaluator, *given: Any, **named: Any) -> None:
        runs.append(ev)
        run_program(ev, *given, **named)

    monkeypatch.setattr("shapefix.engine.analysis.run_program", noted)
    assert len(conditions(HEAD + "from helper import f17\n" + options + use, tmp_path)) == 1
    first, second = runs
    assert first.steps < LEAST_STEPS < second.steps < 2 * LEAST_STEPS
