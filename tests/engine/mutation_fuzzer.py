"""Check mutants of real files, in slices: each in a forked process, with its time and memory.

    PYTHONPATH=tests:tests/engine:. python tests/engine/mutation_fuzzer.py TREE --files 300 --count 20000

Mutant number 7 of seed 5 is the same in every run: `--seed 5 --first 7 --count 1` repeats it. The texts at
fault go to the folder `--keep`.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gc
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from day_seeds import seeds_of_the_day
from mutants import mutated, real_files

from shapefix.checks.rules import RULES
from shapefix.engine.gc_control import gc_paused
from shapefix.engine.tasks import FileChecker, FileTask
from shapefix.sources.text import read_source

SECONDS = 10.0
MEGABYTES = 500
SLICE = 100
_ATTEMPTS = 3
_MOST_SECONDS_OF_A_SLICE = 600
_MOST_MEGABYTES_OF_A_SLICE = 4_000


@dataclass(frozen=True)
class MutantResult:
    """Outcome of one mutant: its number, seconds of CPU, MB of memory above the start, and a fault or ''."""

    number: int
    seconds: float
    megabytes: float
    fault: str
    is_answered: bool = True


def mutant(originals: Sequence[str], seed: int, number: int) -> str:
    """Return the mutant of this number, the same for the same seed and originals.

    Syntax errors are answered early: only the last of a few attempts may be one.
    """
    chooser = random.Random(f"{seed}:{number}")
    for _ in range(_ATTEMPTS):
        text = mutated(chooser.choice(originals), chooser.choice(originals), chooser)
        if _is_parsed(text):
            break
    return text


def _is_parsed(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def results(originals: Sequence[str], seed: int, numbers: range) -> Iterator[MutantResult]:
    """Check mutants in forked processes, a slice in each: if one dies, its current mutant is at fault."""
    warm_up()
    first = numbers.start
    while first < numbers.stop:
        end = min(first + SLICE, numbers.stop)
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "results.jsonl"
            code = _in_a_fork(originals, seed, range(first, end), Path(folder), report)
            lines = report.read_text("ascii").splitlines()
        for line in lines:
            yield MutantResult(**json.loads(line))
        first += len(lines)
        if first < end:
            yield MutantResult(first, 0.0, 0.0, f"the process ended with exit code {code}")
            first += 1


def warm_up() -> None:
    """Import and load everything before the first fork."""
    text = "import torch\nfrom transformers import Trainer\nx = torch.zeros(2, 3)\nx.t().view(-1)\n"
    _result(FileChecker(read_source), text, 0, Path(tempfile.gettempdir()))


def _in_a_fork(originals: Sequence[str], seed: int, numbers: range, folder: Path, report: Path) -> int:
    report.touch()
    gc.collect()
    gc.freeze()
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        gc.unfreeze()
        return os.waitstatus_to_exitcode(status)
    code = 70
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS_OF_A_SLICE, _MOST_SECONDS_OF_A_SLICE))
        most = _MOST_MEGABYTES_OF_A_SLICE << 20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        checker = FileChecker(read_source)
        with gc_paused() as collector, report.open("w", encoding="ascii") as lines:
            for number in numbers:
                result = _result(checker, mutant(originals, seed, number), number, folder)
                lines.write(json.dumps(vars(result)) + "\n")
                lines.flush()
                collector.collect_if_grown()
        code = 0
    finally:
        os._exit(code)


def _result(checker: FileChecker, text: str, number: int, folder: Path) -> MutantResult:
    task = FileTask(
        str(folder / f"mutant{number}.py"), text.encode("utf-8", "replace"), str(folder), frozenset(RULES)
    )
    before = _forget_peak()
    start = time.process_time()
    fault = ""
    is_answered = False
    try:
        found = checker.check(task)
    except BaseException as error:
        fault = f"{type(error).__name__}: {error}"
    else:
        is_answered = not found.failures
        fault = "".join(each.message for each in found.failures if "internal error" in each.message)
    seconds = time.process_time() - start
    megabytes = _peak() - before
    if seconds > SECONDS:
        fault = fault or f"{seconds:.1f} s"
    if megabytes > MEGABYTES:
        fault = fault or f"{megabytes:.0f} MB"
    return MutantResult(number, round(seconds, 3), round(megabytes, 1), fault, is_answered)


def _forget_peak() -> float:
    """Reset the peak of memory where the system can (Linux); return the present peak, in MB."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _peak()


def _peak() -> float:
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 10)
    return int(status.partition("VmHWM:")[2].split()[0]) / (1 << 10)


def main() -> int:
    parser = argparse.ArgumentParser(description="Check mutants of the training files below a folder.")
    parser.add_argument("tree", type=Path)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--seed", type=int, default=seeds_of_the_day(1)[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, default=Path("mutants-at-fault"))
    options = parser.parse_args()
    originals = [path.read_text("utf-8", "replace") for path in real_files(options.tree, options.files)]
    print(f"seed {options.seed}, {len(originals)} files", flush=True)
    done: list[MutantResult] = []
    faults = 0
    for result in results(originals, options.seed, range(options.first, options.first + options.count)):
        done.append(result)
        if result.fault:
            faults += 1
            options.keep.mkdir(parents=True, exist_ok=True)
            path = options.keep / f"{options.seed}-{result.number}.py"
            path.write_text(mutant(originals, options.seed, result.number), "utf-8", "replace")
            print(f"mutant {result.number}: {result.fault} ({path})", flush=True)
        if len(done) % 500 == 0 or len(done) == options.count:
            seconds = [each.seconds for each in done]
            print(
                f"{len(done)} mutants, {sum(each.is_answered for each in done)} answered, {faults} faults; "
                f"at most {max(seconds):.1f} s and {max(each.megabytes for each in done):.0f} MB; "
                f"{sum(seconds):.0f} s in sum",
                flush=True,
            )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
