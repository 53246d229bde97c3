"""The diff of a repair reads like ruff's and applies like git's."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapefix.repair.difference import unified


def test_the_path_stands_on_both_sides() -> None:
    old = "import torch\n\ny = x.view(-1)\n"
    assert "".join(unified("train.py", old, old.replace("view", "reshape"))) == (
        "--- train.py\n"
        "+++ train.py\n"
        "@@ -1,3 +1,3 @@\n"
        " import torch\n"
        " \n"
        "-y = x.view(-1)\n"
        "+y = x.reshape(-1)\n"
    )  # fmt: skip


def test_equal_texts_have_no_diff() -> None:
    assert list(unified("train.py", "x\n", "x\n")) == []


def test_a_missing_newline_at_the_end_is_told() -> None:
    assert list(unified("a.py", "x", "y\n"))[3:] == ["-x\n", "\\ No newline at end of file\n", "+y\n"]


def test_carriage_returns_stay_in_the_lines() -> None:
    assert list(unified("a.py", "x\r\n", "y\r\n"))[3:] == ["-x\r\n", "+y\r\n"]


def test_other_separators_do_not_end_a_line() -> None:
    assert list(unified("a.py", "a\fb\u2028c\n", "a\fb\u2028d\n"))[3:] == ["-a\fb\u2028c\n", "+a\fb\u2028d\n"]


TEXTS = st.lists(st.sampled_from(["a", "b", "", "日", "\f", "x\ry"]), max_size=12).flatmap(
    lambda words: st.sampled_from(["\n".join(words), "\r\n".join(words), "\n".join([*words, ""])])
)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, TEXTS)
def test_git_applies_it(tmp_path: Path, old: str, new: str) -> None:
    diff = "".join(unified("a.py", old, new))
    if not old or not new or not diff:
        return  # git takes these for a file that is created or deleted
    script = tmp_path / "a.py"
    script.write_bytes(old.encode())
    command = ["git", "-c", "core.autocrlf=false", "apply", "-p0", "--whitespace=nowarn", "-"]
    subprocess.run(command, cwd=tmp_path, input=diff.encode(), check=True, capture_output=True)
    assert script.read_bytes() == new.encode()
