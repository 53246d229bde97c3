"""Folders made to break the tool: every command answers, in bounded time, and writes nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from answers_in_a_child import answer_of
from hostile_folders import FOLDERS, HEAD, LAST, spoil, write

from shapefix.cli.main import run

SECONDS = 5.5
"""The bound of a file; a folder gets that of up to three of its files."""
MEGABYTES = 300
VIEW = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension"
    " spans across two contiguous subspaces). Use .reshape(...) instead.\n"
)
QUICK = (
    "joined_literals",
    "names_of_unicode",
    "metaclasses_of_themselves",
    "data_of_itself",
    "values_of_themselves",
    "methods_of_themselves",
    "wrappers_of_wrappers",
    "relative_imports_of_nothing",
    "encodings",
    "cells_of_every_kind",
    "pipes_and_devices",
)
COMMANDS = {
    "check": ("check", "--no-cache", "--jobs", "1", "--output-format", "concise", "."),
    "all": ("check", "--no-cache", "--jobs", "1", "--verbose", "FIRST"),
    "json": (
        "check",
        "--no-cache",
        "--jobs",
        "1",
        "--output-format",
        "json",
        "--with-probe",
        "p.json",
        "FIRST",
    ),
    "fix": ("fix", "--no-cache", "FIRST"),
    "shapes": ("shapes", "FIRST"),
    "guard": ("guard", "FIRST"),
    "diagnose": ("diagnose", "log.txt"),
}


def contents(folder: Path) -> dict[Path, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def first_file(folder: Path) -> Path:
    named = (folder / name for name in ("a.ipynb", "a.py"))
    return next((path for path in named if path.exists()), min(folder.iterdir()))


def with_run(folder: Path) -> Path:
    """Write a log, and a probe's document, about rows all over the first file; return that file."""
    first = first_file(folder)
    data = first.read_bytes()
    rows = max(data.count(b"\n"), 1)
    frames = "".join(
        f'  File "{first.name}", line {row}, in f\n    x\n' for row in (1, 3, rows // 2 + 1, rows)
    )
    (folder / "log.txt").write_text(f"Traceback (most recent call last):\n{frames}{VIEW}")

    def at(row: int) -> dict[str, object]:
        place = {"location": {"row": row, "column": 1}, "end_location": {"row": row, "column": 9}}
        return {"filename": str(first), **place}

    reached = [
        {"id": row, "at": at(row), "returned": True, "outer": [], "values": {"x": [2]}}
        for row in range(1, min(rows, 3_000))
    ]
    executed = {
        "files": [{"filename": str(first), "sha256": hashlib.sha256(data).hexdigest()}],
        "reached": reached,
        "returned": [{"filename": str(first), "row": rows, "function": "f"}],
    }
    raised = {"type": "RuntimeError", "message": "view size", "stack": [at(rows)], "swallowed_at": None}
    document = {
        "schema_version": 1,
        "executed": executed,
        "exceptions": [raised],
        "findings": [],
        "batches": [],
    }
    (folder / "p.json").write_text(json.dumps(document))
    return first


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", FOLDERS)
def test_every_command_answers(name: str, command: str, tmp_path: Path) -> None:
    write(FOLDERS[name](), tmp_path)
    spoil(name, tmp_path)
    first = with_run(tmp_path)
    before = contents(tmp_path)
    words = [first.name if word == "FIRST" else word for word in COMMANDS[command]]
    found = answer_of(words, tmp_path)
    assert found.code in (0, 1, 2), found.output[-500:]
    assert "internal error" not in found.output, found.output[-500:]
    assert "Traceback (most recent" not in found.output or command == "diagnose", found.output[-500:]
    checked = len([path for path in tmp_path.rglob("*") if path.suffix in (".py", ".ipynb")])
    # The cause of an error may be looked for in two analyses.
    files = min(checked, 3) if command == "check" else 2 if command == "diagnose" else 1
    assert found.seconds <= SECONDS * files
    assert found.megabytes <= MEGABYTES
    assert contents(tmp_path) == before


def test_a_container_that_holds_itself_ends_no_analysis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "m = nn.Sequential()\nm.append(m)\nm(torch.zeros(2, 3))\n"
    (tmp_path / "a.py").write_text(HEAD + body + LAST, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--no-cache", "--jobs", "1", "a.py"]) == 1
    assert "SF507" in capsys.readouterr().out


def test_quick_folders_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in QUICK:
        (tmp_path / name).mkdir()
        write(FOLDERS[name](), tmp_path / name)
        spoil(name, tmp_path / name)
    before = contents(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run(["check", "--no-cache", "--jobs", "1", "--output-format", "concise", "."]) in (1, 2)
    shown = "".join(capsys.readouterr())
    assert "internal error" not in shown
    assert "Traceback" not in shown
    assert not [name for name in QUICK if f"{name}/" not in shown]
    assert contents(tmp_path) == before
