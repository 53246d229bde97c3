"""Mutants of real files are answered: without an internal error, in bounded time and memory."""

from __future__ import annotations

import os
import random
import resource
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day
from mutants import mutated, real_files

from shapefix.checks.rules import RULES
from shapefix.engine.gc_control import gc_paused
from shapefix.engine.tasks import FileChecker, FileTask
from shapefix.sources.text import read_source

FIXTURES = Path(__file__).parents[2] / "fixtures"
SECONDS = 10.0
MEGABYTES = 500


def texts(number: int) -> list[str]:
    """Texts of the fixtures, and of as many files of transformers and torch together."""
    specs = [find_spec(name) for name in ("transformers", "torch")]
    libraries = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    paths = real_files(FIXTURES, number // 2)
    for library in libraries:
        paths += real_files(library, (number - number // 2) // 2)
    return [path.read_text("utf-8", "replace") for path in paths]


def faults(originals: list[str], seed: int, number: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Check mutants in this process; yield what is wrong with one, and its text."""
    chooser = random.Random(seed)
    checker = FileChecker(read_source)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with gc_paused() as collector:
        for position in range(number):
            text = mutated(chooser.choice(originals), chooser.choice(originals), chooser)
            start = time.process_time()
            path = folder / f"mutant{position}.py"
            data = text.encode("utf-8", "replace")
            result = checker.check(FileTask(str(path), data, str(folder), frozenset(RULES)))
            taken = time.process_time() - start
            internal = [failure.message for failure in result.failures if "internal error" in failure.message]
            if internal:
                yield internal[0], text
            if taken > SECONDS:
                yield f"{taken:.1f} s", text
            collector.collect_if_grown()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if (after - before) / 1024 > MEGABYTES:
        yield f"{(after - before) / 1024:.0f} MB", ""


def report(found: list[tuple[str, str]], folder: Path) -> str:
    """Describe faults, and keep the texts."""
    lines = []
    for number, (what, text) in enumerate(found):
        path = folder / f"fault{number}.py"
        path.write_text(text, encoding="utf-8", errors="replace")
        lines.append(f"{what}: {path}")
    return "\n".join(lines)


@pytest.mark.slow
def test_some_mutants(tmp_path: Path) -> None:
    found = list(faults(texts(40), seed=0, number=100, folder=tmp_path))
    assert not found, report(found, tmp_path)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_of_the_day(4))
def test_many_mutants(seed: int, tmp_path: Path) -> None:
    number = int(os.environ.get("MUTANTS", "500"))
    found = list(faults(texts(300), seed, number, tmp_path))
    assert not found, f"seed {seed}\n{report(found, tmp_path)}"
