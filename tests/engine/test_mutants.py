"""Mutants of real files are answered: without an internal error, in bounded time and memory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import mutation_fuzzer
import pytest
from day_seeds import seeds_of_the_day
from mutants import real_files
from mutation_fuzzer import mutant, results

from shapefix.checks.rules import RULES
from shapefix.engine.tasks import FileChecker, FileTask
from shapefix.sources.text import read_source

FIXTURES = Path(__file__).parents[2] / "fixtures"


@cache
def texts(number: int) -> tuple[str, ...]:
    """Texts of the fixtures, and of as many files of transformers and torch together."""
    specs = [find_spec(name) for name in ("transformers", "torch")]
    libraries = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin is not None]
    paths = real_files(FIXTURES, number // 2)
    for library in libraries:
        paths += real_files(library, (number - number // 2) // 2)
    return tuple(path.read_text("utf-8", "replace") for path in paths)


def faults(originals: tuple[str, ...], seed: int, number: int, folder: Path) -> Iterator[str]:
    """Describe the faults of mutants, and keep their texts."""
    for result in results(originals, seed, range(number)):
        if result.fault:
            path = folder / f"{result.number}.py"
            path.write_text(mutant(originals, seed, result.number), encoding="utf-8", errors="replace")
            yield f"seed {seed}, mutant {result.number}: {result.fault}: {path}"


@pytest.mark.slow
def test_some_mutants(tmp_path: Path) -> None:
    found = list(faults(texts(20), seed=0, number=60, folder=tmp_path))
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", seeds_of_the_day(4))
def test_many_mutants(seed: int, tmp_path: Path) -> None:
    number = int(os.environ.get("MUTANTS", "500"))
    found = list(faults(texts(300), seed, number, tmp_path))
    assert not found, "\n".join(found)


def test_the_fuzzer_sees_errors_waste_and_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    check = FileChecker.check
    kept: list[bytes] = []

    def broken(checker: FileChecker, task: FileTask) -> object:
        number = Path(task.path).stem.removeprefix("mutant")
        if number == "2":
            raise ZeroDivisionError("as if a rule had raised it")
        if number == "3":
            kept.append(b"x" * (200 << 20))
        if number == "4":
            os.kill(os.getpid(), signal.SIGKILL)
        return check(checker, task)

    monkeypatch.setattr(mutation_fuzzer, "MEGABYTES", 15)
    monkeypatch.setattr(FileChecker, "check", broken)
    found = {result.number: result.fault for result in results(("import torch\n",), 0, range(1, 7))}
    assert list(found) == [1, 2, 3, 4, 5, 6]
    assert found[2] == "ZeroDivisionError: as if a rule had raised it"
    assert found[3].endswith(" MB")
    assert found[4] == "the process ended with exit code -9"
    assert found[1] == found[5] == found[6] == ""


@pytest.mark.parametrize(
    "text",
    [
        # A loop over a list of empty tuples ends.
        "for part in [()] * n:\n    part.requires_grad_(False)\n",
        # torch rejects a batch size of zero, and an analysis has no last batch of it.
        "import torchvision\nfrom torchvision.transforms import ToTensor\n\n"
        "data = torchvision.datasets.FashionMNIST('data', transform=ToTensor())\n"
        "for x, y in torch.utils.data.DataLoader(data, batch_size=0):\n    x + torch.zeros(0, 1, 28, 28)\n",
        # torch rejects windows of a negative size, and a slice of them has no length.
        "torch.rand(400).unfold(0, -2 + 1, 1)[:, :-1]\n",
    ],
)
def test_programs_found_by_mutants(text: str, tmp_path: Path) -> None:
    task = FileTask(
        str(tmp_path / "main.py"), f"import torch\n{text}".encode(), str(tmp_path), frozenset(RULES)
    )
    assert FileChecker(read_source).check(task).failures == ()
