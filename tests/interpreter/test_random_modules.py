"""Random scripts with modules, right and wrong, run by torch and analyzed by shapefix.

SHAPEFIX_RANDOM_MODULES=20000 runs that many, SHAPEFIX_RANDOM_MODULES=20000-30000 those with these seeds.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from day_seeds import seeds_of_the_day
from module_runs import Tally, compared, run
from random_modules import Script, write

SCRIPTS, SCRIPTS_OF_THE_DAY = 120, 20_000
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]
WANTED = os.environ.get("SHAPEFIX_RANDOM_MODULES", "")


def seeds() -> range:
    first, _, last = WANTED.rpartition("-")
    return range(int(first or 0), int(last or SCRIPTS))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def drawn(seed: int) -> Script:
    torch.manual_seed(seed)
    return write(seed)


def told(seed: int, script: Script, problem: str) -> str:
    numbered = "\n".join(f"{row:3} {line}" for row, line in enumerate(script.text.splitlines(), 1))
    return f"seed {seed}, broken: {script.broken}\n{problem}\n{numbered}"


def found_and_nothing_else(
    seeds: range, folder: Path, record_property: Callable[[str, object], None]
) -> None:
    """Assert that shapefix finds what torch refuses in the scripts of some seeds."""
    tally = Tally()
    for seed in seeds:
        script = drawn(seed)
        problem = compared(script, folder, tally)
        assert not problem, told(seed, script, problem)
    counts = "\n".join(tally.lines())
    print(counts)
    record_property("counted", counts)
    raised, found, placed = (each.total() for each in (tally.raised, tally.found, tally.placed))
    assert raised >= 0.3 * tally.scripts.total()
    assert found >= 0.97 * raised, counts
    assert placed >= 0.97 * found, counts


def test_what_torch_refuses_is_found_and_nothing_else(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found_and_nothing_else(seeds(), tmp_path, record_property)


@pytest.mark.long
def test_what_torch_refuses_in_the_scripts_of_the_day_is_found_and_nothing_else(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    found_and_nothing_else(seeds_of_the_day(SCRIPTS_OF_THE_DAY), tmp_path, record_property)


def test_a_script_that_is_not_broken_on_purpose_runs() -> None:
    for seed in range(100):
        script = drawn(seed)
        if script.broken is None:
            assert run(script).raised is None, told(seed, script, run(script).message)


def test_a_seed_always_gives_the_same_script() -> None:
    assert [drawn(seed) for seed in range(20)] == [drawn(seed) for seed in range(20)]


CRASH = """
import torch
x = torch.zeros(2, 3, 5, 4).permute(0, 3, 1, 2)
torch.nn.GroupNorm(2, 4)(x).sum().backward()
"""


def test_torch_crashes_where_scripts_avoid_it() -> None:
    """GroupNorm of channels-last data; without it, `_crashes` is not needed."""
    assert subprocess.run([sys.executable, "-c", CRASH], check=False).returncode < 0
    for seed in (739942000794, 739942001292):
        assert drawn(seed).text
