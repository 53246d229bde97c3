"""Ignore files mean what git means: random patterns and paths, decided by `git check-ignore`."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day

from shapefix.sources.gitignore import IgnoreRules, parse_ignore_file
from shapefix.sources.text import Unreadable

PIECES = [
    *(
        b"a b ab aab x.py foo .py - ] ! # a-b \xc3\xa9 \xff \xa9 a b ab * * * ** ** *** / / / / // ? ? \\ "
        b"\\* \\/ /**/ **/ /** /* a*b *a*b* a** **b *.py [ab] [!a] [^a-c] [b-a] []a] [a [a-] [\\]] [!\\-a] "
        b"[-a] [/a] [a/b] [\xc3] [[:] [--a] [[:alpha:]] [[:punct:]x] [[:foo:]] [[:alpha:]-z] [[:space:]] "
        b"[[:cntrl:]] [[:]x]"
    ).split(),
    *(b" ", b"\t"),
]
FOLDERS = b"a ab a/b a/ab foo foo/a foo/a/b \xc3\xa9".split()
FILES = [
    *(
        b"a.b b aab x.py a-b - ] ! # \xc3\xa9.py \xff [a * \\ a/x.py a/b/x.py a/b/aab a/ab/b ab/x.py ab/ab "
        b"foo/x.py foo/a/x.py foo/a/b/b foo/a/b/a*b \xc3\xa9/a a/- a/] a/\xff"
    ).split(),
    *(b"a b", b"a ", b"foo/a b", b"a\tb"),
]


def ignore_file(chosen: random.Random) -> bytes:
    """Write an ignore file of one to four lines."""
    lines = []
    for _ in range(chosen.choice([1, 1, 1, 2, 4])):
        line = b"".join(chosen.choice(PIECES) for _ in range(chosen.randrange(1, 6)))
        if chosen.random() < 0.15:
            line = b"!" + line
        if chosen.random() < 0.1:
            line += chosen.choice([b" ", b"  ", b"\\ ", b"\r", b"/", b"\\"])
        lines.append(line)
    text = b"\n".join(lines)
    return text + b"\n" if chosen.random() < 0.7 else text


def ignored(root: bytes, content: bytes) -> set[bytes]:
    """Return the ignored paths among FILES and FOLDERS, by shapefix."""
    folder = os.fsdecode(root)
    file = parse_ignore_file(content, folder)
    rules = IgnoreRules((file,) if file else ())
    found = set()
    for path in (*FOLDERS, *FILES):
        parts = os.fsdecode(path).split("/")
        for end in range(1, len(parts) + 1):
            is_folder = end < len(parts) or path in FOLDERS
            if rules(str(Path(folder, *parts[:end])), is_folder):
                found.add(path)
                break
    return found


def ignored_by_git(root: Path, contents: Iterable[bytes]) -> list[set[bytes]]:
    """Return the ignored paths for each content of an ignore file, by git."""
    subprocess.run(["git", "init", "-q", root], check=True)
    asked: list[bytes] = []
    number = 0
    for content in contents:
        for folder in FOLDERS:
            os.makedirs(os.path.join(os.fsencode(root), b"%d" % number, folder), exist_ok=True)  # noqa: PTH103, PTH118
        (root / str(number) / ".gitignore").write_bytes(content)
        asked += [b"%d/%b" % (number, path) for path in (*FOLDERS, *FILES)]
        number += 1
    command = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    ran = subprocess.run(command, input=b"\0".join(asked), capture_output=True, check=False, env=environment)
    assert ran.returncode in (0, 1), ran.stderr
    found: list[set[bytes]] = [set() for _ in range(number)]
    for path in ran.stdout.split(b"\0")[:-1]:
        case, _, rest = path.partition(b"/")
        found[int(case)].add(rest)
    return found


def compare(root: Path, contents: list[bytes]) -> None:
    """Assert that git ignores the same files."""
    for content, expected in zip(contents, ignored_by_git(root, contents), strict=True):
        found = ignored(os.fsencode(root), content)
        assert found == expected, (content, found ^ expected)


KNOWN = [
    *b"***/** ??.py \xc3\xa9.py [\xc3\xa9]* a*b// a**/b a/b**/x.py **\\/b [b-a]".split(),
    *(b"[[:punct:]]", b"[[:print:]]", b"a\0b", b"a\\ \n", b"a \\  ", b"\r\nb\r", b"\xef\xbb\xbfb"),
    *(b"!b\nb", b"*\n!*/"),
]


def test_patterns_that_were_once_wrong(tmp_path: Path) -> None:
    compare(tmp_path, KNOWN)


def test_a_few_hundred_ignore_files_of_any_patterns(tmp_path: Path) -> None:
    chosen = random.Random(20)
    compare(tmp_path, [ignore_file(chosen) for _ in range(400)])


@pytest.mark.slow
@pytest.mark.long
def test_twenty_thousand_ignore_files_of_any_patterns(tmp_path: Path) -> None:
    (seed,) = seeds_of_the_day(1)
    print(f"seed {seed}")
    chosen = random.Random(seed)
    for part in range(20):
        compare(tmp_path / str(part), [ignore_file(chosen) for _ in range(1_000)])


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("*a" * 16 + "*c", "a" * 200),
        ("*a" * 40 + "*c", "a" * 250),
        ("*[ab]" * 30 + "c", "ab" * 120),
        ("?*" * 60 + "c", "a" * 250),
        ("**/" * 20 + "x", "a/" * 100 + "y"),
        ("**/*a*a*a*a*a*a*a/" * 5 + "x", f"{'a' * 30}/" * 20 + "y"),
        ("/**/a*" * 20 + "/x", "aa/" * 100 + "y"),
        ("x/" + "*a" * 30 + "**", "x/" + "a" * 200),
    ],
)
def test_patterns_of_many_stars_take_no_time(pattern: str, name: str) -> None:
    file = parse_ignore_file(pattern.encode(), "/root")
    assert file is not None
    start = time.process_time()
    for _ in range(20):
        file.decide(f"/root/{name}", is_folder=False)
    assert time.process_time() - start < 1


def test_a_megabyte_of_patterns_is_read_in_a_moment() -> None:
    start = time.process_time()
    parse_ignore_file(b"".join(b"data/file%06d.bin\n" % number for number in range(45_000)), "/root")
    with pytest.raises(Unreadable, match="more than 10,000 patterns with wildcards"):
        parse_ignore_file(b"*a?\n" * 250_000, "/root")
    assert time.process_time() - start < 5
