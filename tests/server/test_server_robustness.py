"""Half-typed files and a killed analysis: the server answers, and goes on."""

# ruff: noqa: F811

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from day_seeds import seeds_of_the_day
from editor_client import EditorClient, editor, project  # noqa: F401

from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

pytestmark = pytest.mark.slow

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
BLOCKED = 2.0
"""Seconds after which a person notices; the clock includes what else the machine does."""


def answered(editor: EditorClient, uri: str) -> float:
    """The seconds until a request for hints is answered."""
    begin = time.monotonic()
    place = {"start": {"line": 0, "character": 0}, "end": {"line": 9999, "character": 0}}
    editor.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": place})
    return time.monotonic() - begin


def type_by_lines(editor: EditorClient, uri: str, text: str, step: int) -> list[float]:
    """Open a text line by line, and measure the answers."""
    rows = text.splitlines(keepends=True)
    editor.open(uri, "")
    took = []
    for version, number in enumerate(range(1, len(rows) + 1, step), 2):
        editor.change(uri, version, {"text": "".join(rows[:number])})
        took.append(answered(editor, uri))
    return took


def found_by_check(path: Path, text: str) -> list[tuple[str, int]]:
    session = CheckSession([str(path)], Settings(CheckOptions()), overlay={str(path): text.encode()}).run()
    return [(each.code, each.span.row - 1) for each in session.findings()]


def test_a_file_typed_line_by_line(editor: EditorClient, project: Path) -> None:
    text = (FIXTURES / "unet-skips" / "before" / "train.py").read_text()
    path = project / "train.py"
    path.write_text(text)
    assert sorted(type_by_lines(editor, path.as_uri(), text, 3))[-2] < BLOCKED
    editor.close(path.as_uri())


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs the list of child processes")
def test_the_analysis_starts_again_after_it_was_killed(editor: EditorClient, project: Path) -> None:
    uri, other = ((project / name).as_uri() for name in ("train.py", "other.py"))
    editor.open(uri, VIEW)
    editor.open(other, VIEW)
    assert len(editor.diagnostics(other)) == 1
    assert answered(editor, uri) + answered(editor, other) < 2 * BLOCKED
    threads = Path(f"/proc/{editor.process.pid}/task").iterdir()
    for child in " ".join((thread / "children").read_text() for thread in threads).split():
        command = Path(f"/proc/{child}/cmdline").read_bytes()
        if b"spawn_main" in command:
            os.kill(int(child), signal.SIGKILL)
    editor.published.clear()
    assert len(editor.diagnostics(uri)) == 1
    editor.change(other, 2, {"text": "#\n" + VIEW})
    assert [each["range"]["start"]["line"] for each in editor.diagnostics(other, 2)] == [3]
    assert any(
        "the analysis ended unexpectedly and starts again" in str(each["params"]) for each in editor.requests
    )
    editor.close(uri)
    editor.close(other)


def random_change(text: str, draw: random.Random) -> tuple[dict[str, Any], str]:
    """A change of a range, and the text after it."""
    start, end = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    end = min(end, start + draw.choice((0, 0, 1, 30)))
    new = draw.choice(("", "\n", "(", "x", "😀", "8", "    x = x.view(-1, 8)\n", "\t# é\n"))
    places = []
    for at in (start, end):
        before = text[:at]
        line = before.count("\n")
        last = before.rpartition("\n")[2]
        places.append({"line": line, "character": len(last.encode("utf-16-le")) // 2})
    change = {"range": {"start": places[0], "end": places[1]}, "text": new}
    return change, text[:start] + new + text[end:]


def random_edits(editor: EditorClient, path: Path, seed: int, count: int) -> None:
    draw = random.Random(seed)
    first = text = path.read_text()
    uri = path.as_uri()
    editor.open(uri, text)
    for version in range(2, count + 2):
        if draw.random() < 0.3:
            change, text = {"text": first}, first
        else:
            change, text = random_change(text, draw)
        editor.change(uri, version, change)
    shown = [(each.get("code"), each["range"]["start"]["line"]) for each in editor.diagnostics(uri, version)]
    assert [each for each in shown if each[0]] == found_by_check(path, text), (seed, text)
    editor.close(uri)


@pytest.mark.parametrize("name", ["group-texts/before", "sliced-logits-eval/before"])
def test_random_edits_show_what_a_check_finds(name: str, editor: EditorClient, project: Path) -> None:
    source = next((FIXTURES / name).glob("*.py"))
    path = project / source.name
    path.write_text(source.read_text())
    for seed in range(4):
        random_edits(editor, path, seed, 12)


@pytest.mark.long
def test_long_random_edits_and_prefixes(editor: EditorClient, project: Path) -> None:
    for number, source in enumerate(sorted(FIXTURES.glob("*/before/*.py"))):
        path = project / str(number) / source.name
        path.parent.mkdir()
        (path.parent / "pyproject.toml").touch()
        path.write_text(source.read_text())
        assert sorted(type_by_lines(editor, path.as_uri(), source.read_text(), 1))[-2] < BLOCKED
        editor.close(path.as_uri())
        for seed in seeds_of_the_day(3):
            random_edits(editor, path, seed, 20)
