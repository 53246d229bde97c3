"""Settings of a hostile repository: one line for each, bounded time, and the other files are answered."""

from __future__ import annotations

import os
import re
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import VIEW, shapefix
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.sources.configuration import ConfigurationError, configuration_in
from shapefix.sources.globs import Globs, TooManyChoices
from shapefix.sources.wildmatch import Gap, joined


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    # Addresses of sockets are short.
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.chdir(short)
        yield Path(short).resolve()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listener(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def large(path: Path) -> None:
    path.write_bytes(b"#\n" * 500_001)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (pipe, "not a regular file"),
    "device": (device, "not a regular file"),
    "socket": (listener, "not a regular file"),
    "loop": (loop, "leads back to itself"),
    "large": (large, "more than 1 MB"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".gitignore", ".git/info/exclude"])
def test_an_ignore_file_that_cannot_be_used_is_one_warning(folder: Path, kind: str, name: str) -> None:
    (folder / "train.py").write_text(VIEW)
    (folder / "sub" / ".git" / "info").mkdir(parents=True)
    (folder / "sub" / "model.py").write_text(VIEW)
    make, message = KINDS[kind]
    make(folder / "sub" / name)
    if name == ".gitignore" and (folder / "sub" / name).is_symlink():
        message = "is a symbolic link, which git does not follow either"
    start = time.monotonic()
    ran = shapefix("check", "--output-format", "concise", "--no-cache")
    assert time.monotonic() - start < 10
    (line,) = ran.err.splitlines()
    assert line.startswith(f"warning: sub/{name}: ")
    assert message in line
    assert [each.partition(":")[0] for each in ran.out.splitlines() if "SF101" in each] == [
        "sub/model.py", "train.py",
    ]  # fmt: skip
    assert ran.code == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["shapefix.toml", "pyproject.toml"])
def test_a_configuration_that_cannot_be_used_costs_its_folder_only(
    folder: Path, kind: str, name: str
) -> None:
    (folder / "train.py").write_text(VIEW)
    (folder / "sub").mkdir()
    (folder / "sub" / "model.py").write_text(VIEW)
    make, message = KINDS[kind]
    make(folder / "sub" / name)
    for arguments in ([], ["train.py", "sub/model.py"], ["--force-exclude", "train.py", "sub/model.py"]):
        ran = shapefix("check", "--output-format", "concise", "--no-cache", *arguments)
        (line,) = [line for line in (ran.out + ran.err).splitlines() if line.startswith("error: ")]
        assert line.startswith(f"error: sub/{name}: ")
        assert message in line
        assert "train.py:5:8: SF101" in ran.out
        assert "model.py:5" not in ran.out
        assert ran.code == 2


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"loop"}))
@pytest.mark.parametrize("name", ["requirements.txt", "setup.py", "environment.yml"])
def test_requirements_that_cannot_be_read_are_one_warning(folder: Path, kind: str, name: str) -> None:
    (folder / "train.py").write_text(VIEW)
    make, message = KINDS[kind]
    make(folder / name)
    ran = shapefix("check", "--no-cache", "train.py")
    (line,) = ran.err.splitlines()
    assert line.startswith(f"warning: {name}: ")
    assert message in line
    assert "SF101" in ran.out
    assert ran.code == 1


def test_a_large_lock_is_read(folder: Path) -> None:
    lock = '[[package]]\nname = "x"\nversion = "1"\n\n' * 100_000
    (folder / "uv.lock").write_text(f'{lock}[[package]]\nname = "transformers"\nversion = "4.44.0"\n')
    (folder / "train.py").write_text(VIEW)
    ran = shapefix("check", "--show-settings", "train.py")
    assert "transformers-version = 4.44.0" in ran.out.splitlines()


INVALID = {
    "digits": "x = " + "9" * 5_000,
    "deep": "x = " + "[" * 100_000,
    "dotted": "a" + ".a" * 400_000 + " = 1",
    "quoted dots": '"a"' + ' . "a"' * 100_000 + " = 1",
    "header": "[a" + ".a" * 400_000 + "]",
    "inline": "x = {a" + ".a" * 400_000 + " = 1}",
    "unknown key": "k" * 900_000 + " = 1",
    "selector": f'select = ["{"S" * 900_000}"]',
    "selectors": "ignore = [" + '"ALL",' * 100_000 + "]",
    "patterns": "exclude = [" + '"a",' * 100_000 + "]",
    "braces": 'exclude = ["' + "{a,b}" * 30 + '"]',
    "nested braces": 'exclude = ["' + "{" * 50_000 + "}" * 50_000 + '"]',
    "ignores": "[per-file-ignores]\n" + "".join(f'"{number}" = ["ALL"]\n' for number in range(40_000)),
}


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID.keys())
def test_a_hostile_configuration_is_one_short_line(folder: Path, text: str) -> None:
    (folder / "train.py").write_text(VIEW)
    (folder / "sub").mkdir()
    (folder / "sub" / "model.py").write_text(VIEW)
    (folder / "sub" / "shapefix.toml").write_text(text)
    start = time.process_time()
    ran = shapefix("check", "--output-format", "concise", "--no-cache")
    assert time.process_time() - start < 5
    (line,) = [line for line in (ran.out + ran.err).splitlines() if line.startswith("error: ")]
    assert line.startswith("error: sub/shapefix.toml: ")
    assert len(line) < 400
    assert "train.py:5:8: SF101" in ran.out
    assert ran.code == 2


SLOW = {
    "escapes": 'x = "' + "\\n" * 400_000 + '"',
    "strings": "x = [" + '"a",' * 200_000 + "]",
    "tables": "".join(f"[t{number}]\n" for number in range(90_000)),
    "arrays": "[[t]]\n" * 150_000,
    "nested": "".join(f"[a{'.b' * 200}.c{number}]\n" for number in range(1_500)),
    "spaces": "x = " + " " * 900_000 + "1",
    "comments": "# x\n" * 200_000,
    "newlines": "\n" * 900_000,
}


@pytest.mark.parametrize("text", SLOW.values(), ids=SLOW.keys())
def test_a_megabyte_of_toml_takes_seconds_at_most(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(f"# shapefix\n{text}")
    start = time.process_time()
    try:
        assert configuration_in(str(folder)) is None
    except ConfigurationError as error:
        assert "key of more than" in str(error)  # noqa: PT017
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 16 + "*c", "a" * 200),
        ("**/" * 20 + "x", "a/" * 100 + "y"),
        ("*a*/" * 15 + "x", "aa/" * 80 + "y"),
        ("{*a,*b}" * 6 + "c", "ab" * 100),
        ("*[ab]?" * 30 + "c", "ab" * 120),
    ],
)
def test_globs_of_many_stars_take_no_time(pattern: str, path: str) -> None:
    globs = Globs("/root", [pattern])
    start = time.process_time()
    assert not globs.matches(f"/root/{path}")
    assert time.process_time() - start < 1


def test_braces_are_bounded() -> None:
    Globs("/root", ["{a,b}" * 6])
    for pattern in ("{a,b}" * 7, "{" * 30 + "}" * 30, "{" + "a," * 200 + "}"):
        with pytest.raises(TooManyChoices):
            Globs("/root", [pattern])


GIT: list[str | Gap] = [*Gap, Gap.IN_NAME, "a", "a", "b", "/", "[^/]"]
RUFF: list[str | Gap] = [Gap.ANY, Gap.FOLDERS, Gap.ANY, "a", "a", "b", "/", "."]
PARTS = st.sampled_from([GIT, RUFF]).flatmap(lambda parts: st.lists(st.sampled_from(parts), max_size=9))


def backtracking(parts: list[str | Gap]) -> str:
    return "".join(part.value if isinstance(part, Gap) else part for part in parts)


@settings(max_examples=300, deadline=None)
@given(PARTS, st.lists(st.text("ab/", max_size=12), min_size=20, max_size=20))
def test_expressions_without_backtracking_match_the_same(parts: list[str | Gap], texts: list[str]) -> None:
    # A gap of folders follows a slash.
    pattern = [
        part
        for at, part in enumerate(parts)
        if part is not Gap.FOLDERS or at == 0 or parts[at - 1] == "/"
    ]  # fmt: skip
    fast = re.compile(joined(pattern), re.DOTALL)
    slow = re.compile(backtracking(pattern), re.DOTALL)
    for text in texts:
        assert bool(fast.fullmatch(text)) == bool(slow.fullmatch(text)), (fast.pattern, text)
