"""Programs of the other tests fail for real; the diagnosis of their tracebacks names the row of the cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from day_seeds import seeds_of_the_day
from raised import traceback_of
from refused_programs import Program, programs

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import diagnose_log
from shapefix.engine.settings import CheckOptions

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
OPTIONS = CheckOptions(isolated=True, use_cache=False)
FAILING, FAILING_OF_THE_DAY = 40, 1_000


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def _failing(count: int, seed: int, folder: Path) -> Iterator[tuple[Program, str]]:
    """Yield that many different programs that fail, each with its traceback."""
    script = folder / "train.py"
    seen: set[str] = set()
    for program in programs(seed):
        if program.text in seen:
            continue
        script.write_text(program.text)
        torch.manual_seed(0)
        try:
            log = traceback_of(script)
        except AssertionError as error:
            if "raises nothing" not in str(error):
                raise
            continue
        finally:
            torch.set_grad_enabled(True)
        seen.add(program.text)
        yield program, log
        if len(seen) == count:
            return


def _outcome(program: Program, log: str, folder: Path) -> str:
    found = diagnose_log(log.splitlines(), str(folder), OPTIONS)
    assert found is not None
    failing = found.frames[-1].frame.row
    if not found.causes:
        return "explained" if found.explanation is not None else "unknown"
    first = found.causes[0]
    places = [first.finding.span, *(step.span for step in first.evidence)]
    if not any(span.row <= failing <= span.end_row for span in places):
        return "wrongly proved" if first.confidence is Confidence.PROVED else "wrong"
    row = program.row or failing
    return "named" if any(span.row <= row <= span.end_row for span in places) else "failing line"


def _measure(count: int, seed: int, folder: Path, record_property: Callable[[str, object], None]) -> float:
    """Return the share of programs with the row of the cause in the first cause; none is wrongly proved."""
    counts: dict[str, Counter[str]] = {}
    left = []
    for program, log in _failing(count, seed, folder):
        outcome = _outcome(program, log, folder)
        counts.setdefault(program.family.partition(":")[0], Counter())[outcome] += 1
        if outcome != "named":
            left.append(f"{outcome}: {program.name}: {log.rstrip().rpartition(chr(10))[2]}")
    total = sum(counts.values(), Counter())
    record_property("counted", f"{total.total()} refused programs: {dict(total)}")
    assert total["wrongly proved"] == 0, left
    assert total.total() == count
    print("\n".join(left))
    return total["named"] / total.total()


def test_the_row_of_the_cause_is_named(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    assert _measure(FAILING, 0, tmp_path, record_property) >= 0.9


@pytest.mark.long
def test_the_row_of_the_cause_is_named_in_the_programs_of_the_day(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    seed = seeds_of_the_day(1).start
    assert _measure(FAILING_OF_THE_DAY, seed, tmp_path, record_property) >= 0.95
