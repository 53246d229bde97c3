"""Programs run before and after their unsafe repairs: the error is another one or none."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day
from executed_texts import Texts
from page_programs import of_unsafe_pages, rules_with_repairs
from program_variants import varied
from repair_programs import Program
from repaired_pairs import Examined, examine

sys.path.append(str(Path(__file__).parents[1] / "interpreter"))

pytestmark = pytest.mark.slow

SAMPLE = 12
BLOCKS_OF_THE_DAY, PROGRAMS = 10, 60
KINDS = ("pages", "modules")


def written(kind: str, seed: int) -> tuple[int, Program, Texts]:
    """Write an example of a page in another way, or take a model that is broken on purpose."""
    if kind == "pages":
        program = of_unsafe_pages(random.Random(seed))
        return seed, program, varied(random.Random(seed), program.text)
    import random_modules
    import torch

    torch.manual_seed(seed)
    text = random_modules.write(seed).text
    return seed, Program("modules", text, mixed=True), Texts(text)


def test_most_rules_have_a_page_with_an_unsafe_repair() -> None:
    assert len(rules_with_repairs(unsafe=True)) >= 25


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_is_another_one_or_none(kind: str) -> None:
    found = examine([written(kind, seed) for seed in range(SAMPLE)], unsafe=True)
    assert not found.problems, "\n\n".join(found.problems)
    assert found.pairs, "no program was repaired"


@pytest.mark.long
@pytest.mark.parametrize("number", range(BLOCKS_OF_THE_DAY))
def test_unsafe_repairs_of_the_programs_of_the_day(
    number: int, record_property: Callable[[str, object], None]
) -> None:
    seeds = seeds_of_the_day(BLOCKS_OF_THE_DAY * PROGRAMS)[number * PROGRAMS : (number + 1) * PROGRAMS]
    found = examine([written(KINDS[seed % 2], seed) for seed in seeds], unsafe=True)
    record_property("counted", _counted(number, found))
    assert not found.problems, "\n\n".join(found.problems)
    assert found.count >= PROGRAMS / 3


def _counted(number: int, found: Examined) -> str:
    rules = ", ".join(f"{code} {count}" for code, count in sorted(found.pairs.items()))
    return f"block {number}: {found.programs} programs, {found.count} pairs; repaired: {rules}"
