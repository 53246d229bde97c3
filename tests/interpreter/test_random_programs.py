"""Random programs, run by torch and by the interpreter: what the one says the other does."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch
from day_seeds import seeds_of_the_day
from program_runs import Tally, disagreements, surroundings
from random_programs import Program, write

pytestmark = pytest.mark.slow

BLOCKS, PROGRAMS = 2, 25
BLOCKS_OF_THE_DAY = 40
CERTAIN, CERTAIN_OF_THE_DAY = 80, 4000


def drawn(seed: int, *, symbolic: bool = False, certain: bool = False) -> Program:
    with surroundings(seed):
        return write(seed, symbolic, certain)


def told(seed: int, program: Program, problems: list[str]) -> str:
    numbered = "\n".join(f"{row:3} {line}" for row, line in enumerate(program.text.splitlines(), 1))
    return "\n".join((f"seed {seed}", *problems, numbered))


def block_of(number: int, seeds: range | None = None) -> range:
    """The seeds of a block of programs: from 0, or from others."""
    first = number * PROGRAMS + (seeds.start if seeds else 0)
    return range(first, first + PROGRAMS)


def scripts(seeds: range) -> None:
    """Assert that what the interpreter knows of some scripts is so."""
    tally = Tally()
    for seed in seeds:
        program = drawn(seed)
        problems = disagreements(program.text, (), {}, seed, tally)
        assert not problems, told(seed, program, problems)
    assert tally.known > 10 * PROGRAMS
    assert tally.views > PROGRAMS


def functions(seeds: range) -> None:
    """Assert that what the interpreter knows of uncalled functions holds for every call."""
    tally = Tally()
    for seed in seeds:
        program = drawn(seed, symbolic=True)
        sizes = {
            name: random.Random(f"{seed} {name}").choice((size, 1)) for name, size in program.sizes.items()
        }
        for values in (program.sizes, sizes):
            named = iter(values.values())
            arguments = tuple(torch.randn([next(named) for _ in given.shape]) for given in program.arguments)
            problems = disagreements(program.text, arguments, values, seed, tally)
            assert not problems, told(seed, program, [str(values), *problems])
    assert tally.known > 10 * PROGRAMS
    assert tally.views > PROGRAMS


def refused_views(seeds: range) -> None:
    """Assert that views are reported where torch is certain to refuse them."""
    tally = Tally()
    for seed in seeds:
        program = drawn(seed, certain=True)
        problems = disagreements(program.text, (), {}, seed, tally, certain=True)
        assert not problems, told(seed, program, problems)
    print(f"{tally.reported} of {tally.refused} refused views are reported")
    assert tally.refused > 20
    assert tally.reported >= 0.9 * tally.refused


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_is_known_of_a_script_is_so(block: int) -> None:
    scripts(block_of(block))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_is_known_of_a_function_that_nobody_calls_holds_for_every_call(block: int) -> None:
    functions(block_of(block))


def test_views_that_torch_refuses_are_found() -> None:
    refused_views(range(CERTAIN))


@pytest.mark.long
@pytest.mark.parametrize("block", range(BLOCKS_OF_THE_DAY))
@pytest.mark.parametrize("compared", [scripts, functions], ids=lambda each: each.__name__)
def test_what_is_known_of_the_programs_of_the_day_is_so(
    block: int, compared: Callable[[range], None]
) -> None:
    compared(block_of(block, seeds_of_the_day(BLOCKS_OF_THE_DAY * PROGRAMS)))


@pytest.mark.long
def test_views_that_torch_refuses_in_the_programs_of_the_day_are_found() -> None:
    refused_views(seeds_of_the_day(CERTAIN_OF_THE_DAY))
