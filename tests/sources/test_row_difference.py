"""Differences of rows: they are those of the edits, and hold at their places."""

from __future__ import annotations

import difflib
import random

import pytest

from shapefix.sources.row_difference import unified_rows

FUNCTION = [*(f"    step({number})\n" for number in range(40)), "\n", "    return 1\n", "\n"]
LONG = [row for name in "abcdefgh" for row in [f"def {name}():\n", *FUNCTION]]


def test_one_changed_word_of_a_long_file_is_two_rows() -> None:
    changed = list(LONG)
    changed[200] = changed[200].replace("step", "move")
    rows = list(unified_rows(LONG, changed))
    assert [row for row in rows if row[0] in "-+"] == [f"-{LONG[200]}", f"+{changed[200]}"]
    assert len(rows) == 9


def applied(old: list[str], rows: list[str]) -> list[str]:
    """The rows after a unified diff, each hunk at the place that it states."""
    new: list[str] = []
    at = 0
    for row in rows:
        if row.startswith("@@"):
            first, _, count = row.split()[1].removeprefix("-").partition(",")
            start = int(first) - (count != "0")
            new += old[at:start]
            at = start
        elif row[0] in " -":
            assert old[at] == row[1:]
            at += 1
        if row[0] in " +":
            new.append(row[1:])
    return new + old[at:]


@pytest.mark.parametrize("seed", range(60))
def test_the_hunks_turn_the_old_rows_into_the_new_ones(seed: int) -> None:
    drawn = random.Random(seed)
    old = drawn.choices(["a\n", "b\n", "c\n", "\n"], k=drawn.randint(0, 30))
    new = list(old)
    for _ in range(drawn.randint(1, 4)):
        place = drawn.randint(0, len(new))
        new[place : place + drawn.randint(0, 2)] = [f"new {drawn.random()}\n"] * drawn.randint(0, 2)
    rows = list(unified_rows(old, new, drawn.choice([1, 3])))
    assert bool(rows) == (old != new)
    assert applied(old, rows) == new


def test_small_files_have_the_same_hunks_as_with_difflib() -> None:
    old, new = ["a\n", "b\n", "c\n"], ["a\n", "x\n", "c\n"]
    assert list(unified_rows(old, new)) == list(difflib.unified_diff(old, new))[2:]
