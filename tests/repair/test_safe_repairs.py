"""Generated programs run before and after their safe repairs: what ran still runs, with equal results."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from day_seeds import seeds_of_the_day
from executed_texts import Texts
from page_programs import of_safe_pages, rules_with_repairs
from program_variants import varied
from repair_programs import FAMILIES, Program
from repaired_pairs import Examined, examine, repaired

pytestmark = pytest.mark.slow

SAMPLE = 8
BLOCKS_OF_THE_DAY, PROGRAMS = 48, 128
PAIRS = 2000
ALL = {**FAMILIES, "of_safe_pages": of_safe_pages}
FAMILY = {
    "SF101": "views", "SF102": "runtime_views", "SF104": "expanded", "SF105": "discarded", "SF201": "labels",
    "SF202": "labels", "SF301": "tokenized", "SF302": "tokenized", "SF303": "batches", "SF304": "tokenized",
    "SF305": "tokenized", "SF307": "tokenized", "SF401": "keys", "SF405": "batches", "SF507": "batches",
    "SF508": "losses", "SF512": "losses", "SF601": "discarded", "SF602": "devices", "SF603": "modules",
    "SF604": "scaled", "SF701": "accumulated", "SF703": "checkpoints", "SF704": "handlers",
}  # fmt: skip
"""A family that makes programs for the rule."""
ALWAYS_RAISED = {
    "SF106": "the slice, or the conversion of the array, raises a ValueError",
    "SF407": "the call raises a TypeError in every permitted version",
    "SF415": "the name is in no permitted version",
    "SF409": "the trainer's first step raises a TypeError in every permitted version",
    "SF413": "the unpacking raises a ValueError",
    "SF519": "the loss is a module, or its constructor raises",
    "SF520": "the loss raises a RuntimeError for the dtype or the number of the weights",
    "SF523": "the conversion raises, or the loader's first epoch raises a KeyError",
    "SF607": "the optimizer raises a ValueError or a TypeError",
    "SF608": "the constructor raises an AttributeError",
    "SF614": "a path in place of the state raises a TypeError",
    "SF902": "the write raises a RuntimeError",
    "SF616": "the conversion raises a TypeError on a GPU, and `.cpu()` changes nothing on the CPU",
    "SF617": "the read raises an AttributeError",
    "SF905": "the conversion raises a RuntimeError",
    "SF907": "the call of the object raises a RuntimeError",
}
"""Rules without a family: no program with such a finding runs before its repair, and why."""

Written = tuple[int, Program, Texts]


def written(family: str, seed: int) -> Written:
    program = ALL[family](random.Random(seed))
    return seed, program, varied(random.Random(seed), program.text)


OF_COMMENTS = {"SF001", "SF002"}
"""Rules with repairs of comments only, which no program runs."""


def test_every_rule_with_a_safe_repair_has_a_family() -> None:
    assert FAMILY.keys() | ALWAYS_RAISED.keys() | OF_COMMENTS == rules_with_repairs(unsafe=False)


@pytest.mark.parametrize("code", FAMILY)
def test_the_family_of_a_rule_makes_programs_that_it_repairs(code: str) -> None:
    for seed in range(100):
        applied = repaired(written(FAMILY[code], seed)[2]).applied
        if any(finding.code == code for finding in applied):
            return
    pytest.fail(f"no program of 100 was repaired by {code}")


@pytest.mark.parametrize("family", ALL)
def test_what_ran_still_runs_and_what_raised_runs(family: str) -> None:
    found = examine([written(family, seed) for seed in range(SAMPLE)])
    assert not found.problems, "\n\n".join(found.problems)
    assert found.pairs, "no program was repaired"


@pytest.mark.long
@pytest.mark.parametrize("number", range(BLOCKS_OF_THE_DAY))
def test_repairs_of_the_programs_of_the_day(
    number: int, record_property: Callable[[str, object], None]
) -> None:
    seeds = seeds_of_the_day(BLOCKS_OF_THE_DAY * PROGRAMS)[number * PROGRAMS : (number + 1) * PROGRAMS]
    names = list(ALL)
    found = examine([written(names[seed % len(names)], seed) for seed in seeds])
    record_property("counted", _counted(number, found))
    assert not found.problems, "\n\n".join(found.problems)
    assert found.count >= PAIRS / BLOCKS_OF_THE_DAY


def _counted(number: int, found: Examined) -> str:
    rules = ", ".join(f"{code} {count}" for code, count in sorted(found.pairs.items()))
    kinds = f"{found.raised} raised before, {found.modules} of several files, {found.rejected} not kept"
    return f"block {number}: {found.programs} programs, {found.count} pairs, {kinds}; repaired: {rules}"
