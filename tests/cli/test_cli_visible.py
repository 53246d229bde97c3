"""No control character of a file name, a line or an identifier gets out, in any format of any command."""

from __future__ import annotations

import contextlib
import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from command_line import SWAPPED, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.cli.main import run
from shapefix.report.formats import FINDING_FORMATS, RULE_FORMATS, SHAPE_FORMATS

CONTROLS = "".join(map(chr, (*range(1, 32), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, 0x2028, 0x2029)))
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ODD = CONTROLS + BIDI
# A name is at most 255 bytes long.
NAMES = [
    f"odd{ODD.replace('/', '')[start : start + 30]}name.py" for start in range(0, len(ODD), 30)
] + ["red\x1b[31m.py", "line\nbreak.py", "::error::x.py", "\udcff\x1b]0;title\x07.py"]  # fmt: skip
IN_STRINGS = "".join(each for each in ODD if each not in "\n\r")
HOSTILE = f"""\
import torch

name = "{IN_STRINGS}"  # {IN_STRINGS}
logits = torch.zeros(4, 6, 8)
shift = logits[:, :-1, :]  # {IN_STRINGS}
flat = shift.view(-1, 8) if name else "{IN_STRINGS}"  # \x1b[2J{BIDI}
getattr(torch, "{IN_STRINGS}")(torch.zeros(2, 3) @ torch.zeros(2, 3))
batch = {{"{IN_STRINGS}": torch.zeros(2, 3)}}
torch.zeros(2, 4) @ batch["{IN_STRINGS}"]
"""
BROKEN = f"import torch\ndef f(:  # {IN_STRINGS}\n"
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def hostile_tree(project: Project) -> Path:
    folder = project(swapped=SWAPPED)
    for number, name in enumerate(NAMES):
        (folder / name).write_text(BROKEN if number == 3 else HOSTILE)
    (folder / f"dir{ODD[:25]}").mkdir()
    (folder / f"dir{ODD[:25]}" / "train.py").write_text(VIEW)
    (folder / "bad\x1b[31m").mkdir()
    (folder / "bad\x1b[31m" / "shapefix.toml").write_text('select = ["\\u001b[31m\\u202e"]')
    (folder / "bad\x1b[31m" / "x.py").write_text(VIEW)
    (folder / "ig\x1b[31m").mkdir()
    (folder / "ig\x1b[31m" / ".gitignore").symlink_to("x")
    (folder / "to\x1b[31m.py").symlink_to("loop\x07.py")
    (folder / "out\x1b[31m.py").symlink_to("/etc/passwd")
    (folder / "back\x1b[31m").symlink_to("..")
    (folder / "note\x1b[31m.ipynb").write_text("{}")
    return folder


def escaped(text: str, color: bool = False) -> None:
    """Assert that no control character is in an output."""
    if color:
        text = SEQUENCE.sub("", text)
    found = {each for each in text if each in ODD and each not in "\n\t"}
    around = [text[max(text.index(each) - 60, 0) : text.index(each) + 20] for each in sorted(found)]
    assert not found, around[:3]


COMMANDS = [
    *(["check", "--output-format", name] for name in FINDING_FORMATS),
    *(["fix", "--output-format", name] for name in ("full", "concise", "json", "github")),
    *(["check", f"--{option}"] for option in ("show-files", "show-settings", "statistics", "verbose")),
    *(["fix", "--unsafe-fixes"], ["fix", "--verbose"], ["check", "--jobs", "2"]),
]  # fmt: skip


@pytest.mark.parametrize("color", ["never", "always"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_check_and_fix_write_no_control_character(project: Project, command: list[str], color: str) -> None:
    hostile_tree(project)
    ran = shapefix(*command, "--color", color, "--no-cache")
    assert ran.code in (0, 1, 2)
    assert len(ran.out) > 100
    # A diff without color may be for `git apply`.
    is_diff = (command[0] == "fix" and color == "never") or "agent" in command
    escaped(ran.out.replace("\f", "").replace("\r", "") if is_diff else ran.out, color == "always")
    escaped(ran.err)
    assert "internal error" not in ran.out + ran.err
    if "json" in command:
        assert any("\x1b" in each["filename"] for each in json.loads(ran.out[: ran.out.rindex("]") + 1]))


def test_applied_repairs_are_listed_without_control_characters(project: Project) -> None:
    folder = hostile_tree(project)
    ran = shapefix("fix", "--apply", "--no-cache")
    escaped(ran.out)
    escaped(ran.err)
    assert "repaired 1 x SF101" in ran.out
    assert (folder / "line\nbreak.py").read_text().count("shift.reshape") == 1


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_shapes_write_no_control_character(project: Project, output_format: str) -> None:
    folder = hostile_tree(project)
    for name in NAMES:
        (folder / name).write_text(
            "import torch\nfrom torch import nn\nclass Net(nn.Module):\n"
            f"    def forward(self, x):  # {IN_STRINGS}\n        y = {{'{IN_STRINGS}': x.relu()}}\n"
            "        return y\nNet()(torch.zeros(2))\n"
        )
        ran = shapefix("shapes", name, "--output-format", output_format)
        escaped(ran.out + ran.err)
    for arguments in (["a\x1b[31m.py"], ["swapped.py:a\x1b[31m"], ["swapped.py", "-i", "x\x1b[31m: f32[2]"]):
        ran = shapefix("shapes", *arguments)
        assert ran.code == 2
        escaped(ran.out + ran.err)


LOG = f"""\
{IN_STRINGS}
Traceback (most recent call last):
  File "{{folder}}/odd.py", line 6, in <module>{IN_STRINGS}
    flat = shift.view(-1, 8) if name else "{IN_STRINGS}"  # \x1b[2J{BIDI}
  File "/usr/lib/python3/site-packages/odd\x1b[31m/x.py", line 5, in f\x1b[31m
    f(){IN_STRINGS}
{{error}}: {{message}}{IN_STRINGS}
{IN_STRINGS}
"""
MESSAGES = {
    "RuntimeError": "view size is not compatible with input tensor's size and stride (at least one dimension "
    "spans across two contiguous subspaces). Use .reshape(...) instead.",
    "odd\x1b[31m.OddError": "",
    "KeyError": "'\x1b[31m'",
    "OddError": "odd\x9b31m",
}


@pytest.mark.parametrize("error", MESSAGES)
def test_a_diagnosis_has_no_control_character(project: Project, error: str) -> None:
    folder = project(swapped=SWAPPED)
    (folder / "odd.py").write_text(HOSTILE)
    log = LOG.format(folder=folder, error=error, message=MESSAGES[error])
    (folder / "log\x1b[31m").write_text(log)
    for options in ([], ["--color", "always"], ["--output-format", "json"], ["--apply"]):
        ran = shapefix("diagnose", "log\x1b[31m", *options)
        assert ran.code == (0 if error == "RuntimeError" else 1)
        assert len(ran.out) > 100
        escaped(ran.out, "always" in options)
        escaped(ran.err)


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain", "\x1b[31m\u202e"],
        ["help", "\x1b[31m"],
        ["\x1b[31m"],
        ["check", "--\x1b[31m"],
        ["check", "--select", "\x1b[31m\x9b"],
        ["check", "missing\x1b[31m.py"],
        ["check", "--config", "missing\x1b[31m.toml"],
        ["check", "--output-format", "\x1b[31m"],
        ["check", "--with-probe", "missing\x1b[31m.json"],
        ["check", "--stdin-filename", "a\x1b[31m.py", "x.py"],
        ["probe", "missing\x1b[31m.py"],
        ["probe", "--python", "missing\x1b[31m", "swapped.py"],
    ],
)
def test_mistaken_arguments_are_shown_without_control_characters(
    project: Project, arguments: list[str]
) -> None:
    project(swapped=SWAPPED)
    ran = shapefix(*arguments)
    assert ran.code == 2
    escaped(ran.out + ran.err)


def test_a_diff_names_odd_files_as_git_does(project: Project) -> None:
    folder = project()
    for name in ('quote".py', "tab\t.py", "ü.py", "esc\x1b.py", "back\\slash.py"):
        (folder / name).write_text(VIEW.replace("\n", "\r\n"), newline="")
    diff = shapefix("fix", "--color", "never", "--no-cache").out
    for name in ('"quote\\".py"', '"tab\\t.py"', "ü.py", '"esc\\033.py"', '"back\\\\slash.py"'):
        assert f"--- {name}\n+++ {name}\n" in diff
    done = subprocess.run(
        ["git", "apply", "-p0"], input=diff.encode(), cwd=folder, check=False, capture_output=True
    )
    assert done.returncode == 0, done.stderr
    assert all("shift.reshape" in path.read_text() for path in folder.glob("*.py"))


def test_a_diff_that_is_not_exact_says_so(project: Project) -> None:
    folder = project(train=VIEW.replace("8)\n", '8)  # \x1b[8m "\n'))
    ran = shapefix("fix", "--color", "never", "--no-cache")
    assert "\x1b" not in ran.out
    assert "train.py: control characters are replaced in this diff, so it cannot be applied" in ran.err
    project(train=VIEW.replace("8)\n", "8)\f\n"))
    ran = shapefix("fix", "--color", "never", "--no-cache")
    assert "control" not in ran.err
    subprocess.run(["git", "apply", "-p0"], input=ran.out.encode(), cwd=folder, check=True)


ENCODED = [
    *(["check", "--output-format", name] for name in FINDING_FORMATS),
    *(["check", f"--{option}"] for option in ("show-files", "show-settings", "statistics", "verbose")),
    *(["fix", "--unsafe-fixes"], ["fix", "--color", "always"], ["shapes", "größe.py"]),
    *(["shapes", "größe.py", "--output-format", name] for name in SHAPE_FORMATS),
    *(["rules", "--output-format", name] for name in RULE_FORMATS),
    *(["explain", "SF101"], ["help"], ["help", "notebooks"], ["--help"], ["check", "größe\u202e.py"]),
    *(["diagnose", "log", "--output-format", name] for name in ("text", "json")),
    *(["check", "--color", "always"], ["diagnose", "log", "--color", "always"], ["check", "Zelle.ipynb"]),
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "cp437", "cp932", "utf-16"])
def test_consoles_of_other_encodings_get_text(
    project: Project, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    folder = project(größe=HOSTILE, 模型=SWAPPED)
    cell = {"cell_type": "code", "source": VIEW + "# größe 模型", "outputs": [], "metadata": {}}
    (folder / "Zelle.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4, "metadata": {}}))
    log = LOG.format(folder=folder, error="RuntimeError", message=f"größe 模型 {MESSAGES['RuntimeError']}")
    (folder / "log").write_text(log, "utf-8")
    for command in ENCODED:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding, newline="") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(command)
            out.flush()
            err.flush()
        assert code in (0, 1, 2), command
        for stream in (out, err):
            text = SEQUENCE.sub("", stream.buffer.getvalue().decode(encoding))
            assert "Traceback (" not in text, command
            assert "internal error" not in text, command
            escaped(text.replace("\r", "").replace("\f", ""))
