"""Named files are checked as the files of their project that import them use them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapefix.diagnostics import Diagnostic
from shapefix.engine.session import CheckSession, StandardInput
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.repair import writes
from shapefix.sources.importers import MOST_IMPORTERS, importers
from shapefix.sources.project import Project

MODEL = """\
import torch


def flatten(x):
    return torch.relu(x.view(-1, x.size(-1)))
"""
TRAIN = """\
import torch
{statement}

if __name__ == "__main__":
    {call}(torch.zeros(4, 6, 8)[:, :-1])
"""


def train(statement: str, call: str) -> str:
    return TRAIN.format(statement=statement, call=call)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return tmp_path


def write(**files: str) -> None:
    for name, text in files.items():
        path = Path(f"{name.replace('__', '/')}.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def session(*paths: str, standard_input: StandardInput | None = None) -> CheckSession:
    return CheckSession(paths, Settings(CheckOptions()), standard_input).run()


def found(*paths: str) -> list[tuple[str, str]]:
    findings: tuple[Diagnostic, ...] = session(*paths).findings()
    return [(finding.code, finding.span.path.removeprefix(f"{Path.cwd()}/")) for finding in findings]


@pytest.mark.parametrize(
    ("model", "caller", "statement", "call"),
    [
        ("model", "train", "from model import flatten", "flatten"),
        ("model", "train", "import model", "model.flatten"),
        ("model", "train", "import os, model as m  # the model", "m.flatten"),
        ("model", "train", "from model import (  # the model\n    flatten as flat,\n)", "flat"),
        ("model", "train", "from model import \\\n    flatten", "flatten"),
        ("nets/model", "train", "from nets import model", "model.flatten"),
        ("nets/model", "train", "import nets.model", "nets.model.flatten"),
        ("nets/model", "scripts/train", "from nets.model import flatten", "flatten"),
        ("src/nets/model", "scripts/train", "from nets.model import flatten", "flatten"),
        ("nets/model", "nets/train", "from .model import flatten", "flatten"),
        ("nets/model", "nets/train", "from . import model", "model.flatten"),
    ],
)
def test_an_import_is_found_however_it_is_written(model: str, caller: str, statement: str, call: str) -> None:
    write(**{model.replace("/", "__"): MODEL, caller.replace("/", "__"): train(statement, call)})
    if "nets" in model:
        Path(model).with_name("__init__.py").write_text("")
    assert found(f"{model}.py") == [("SF101", f"{model}.py")]


def test_a_script_that_imports_through_a_package_is_found() -> None:
    write(nets__model=MODEL, train=train("from nets import flatten", "flatten"))
    Path("nets/__init__.py").write_text("from .model import flatten\n")
    assert found("nets/model.py") == [("SF101", "nets/model.py")]


def test_only_findings_in_the_named_files_are_reported() -> None:
    own = "\nbad = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
    write(model=MODEL, train=train("from model import flatten", "flatten") + own)
    assert found("model.py") == [("SF101", "model.py")]
    assert found("train.py") == [("SF101", "model.py"), ("SF101", "train.py")]
    assert session("model.py").stats.files == 1


def test_a_file_with_the_same_name_elsewhere_is_not_the_named_one() -> None:
    call = train("from model import flatten", "flatten")
    write(model=MODEL, other__model=MODEL, other__train=call)
    assert found("model.py") == []
    assert found("other/model.py") == [("SF101", "other/model.py")]


def test_importers_that_cannot_be_parsed_or_are_excluded_are_left_out() -> None:
    write(model=MODEL, broken="import torch\nfrom model import flatten\ndef f(:\n")
    assert (found("model.py"), session("model.py").failures()) == ([], ())
    write(vendor__train=train("from model import flatten", "flatten"))
    assert found("model.py") == [("SF101", "model.py")]
    Path("shapefix.toml").write_text('exclude = ["vendor"]\n')
    assert found("model.py") == []


def test_a_folder_is_checked_alone() -> None:
    write(nets__model=MODEL, train=train("from nets.model import flatten", "flatten"))
    assert found("nets") == []
    assert found("nets/model.py") == [("SF101", "nets/model.py")]


def test_repairs_follow_from_importers_and_their_results_are_cached(user_cache: Path) -> None:
    write(model=MODEL, train=train("from model import flatten", "flatten"))
    first = session("model.py")
    (cached,) = (user_cache / "shapefix").glob("*-*")
    assert len(list(cached.iterdir())) == 3
    (shown,) = first.repair(None)
    assert (shown.new.text, first.findings()) == (MODEL.replace("x.view", "x.reshape"), ())
    assert found("model.py") == [("SF101", "model.py")]
    again = session("model.py")
    (written,) = again.repair(writes.write)
    assert (written.new.text, again.findings()) == (Path("model.py").read_text(), ())
    assert found("model.py") == []
    write(train="import torch\n")
    assert found("model.py") == []


def test_a_change_of_an_importer_is_seen() -> None:
    write(model=MODEL, train="import torch\nfrom model import flatten\nflatten(torch.zeros(4, 6, 8))\n")
    assert found("model.py") == []
    write(train=train("from model import flatten", "flatten"))
    assert found("model.py") == [("SF101", "model.py")]


def test_importers_use_the_text_on_standard_input() -> None:
    write(model="import torch\n", train=train("from model import flatten", "flatten"))
    typed = StandardInput(MODEL.encode(), "model.py")
    assert [each.code for each in session("-", standard_input=typed).findings()] == ["SF101"]
    assert found("model.py") == []


def test_training_scripts_come_first_and_their_number_is_bounded() -> None:
    texts = {f"use{number:02}": "import torch, model\n" for number in range(2 * MOST_IMPORTERS)}
    write(model=MODEL, train=train("from use07 import model", "model.flatten"), **texts)
    files = [str(path.absolute()) for path in Path().glob("*.py")]
    read = {path: Path(path).read_bytes() for path in files}
    ordered = importers(Project(str(Path.cwd())), [str(Path("model.py").absolute())], files, read.get)
    assert [Path(path).name for path in ordered] == [
        "train.py",
        *(f"use{number:02}.py" for number in range(MOST_IMPORTERS - 1)),
    ]


def test_the_session_says_how_many_importers_it_ran(capsys: pytest.CaptureFixture[str]) -> None:
    from shapefix.cli.main import run

    write(model=MODEL, train=train("from model import flatten", "flatten"))
    assert run(["check", "--verbose", "--output-format", "json", "model.py"]) == 1
    out, err = capsys.readouterr()
    assert [Path(each["filename"]).name for each in json.loads(out)] == ["model.py"]
    assert err == "Checked 1 file\nAlso ran 1 file of the project that imports the given files\n"
