"""Hundreds of random programs, run by torch and by the interpreter: what the one says the other does."""

from __future__ import annotations

import random

import pytest
import torch
from program_runs import Tally, disagreements, surroundings
from random_programs import Program, write

BLOCKS, PROGRAMS = 8, 40
CERTAIN = 200


def drawn(seed: int, *, symbolic: bool = False, certain: bool = False) -> Program:
    with surroundings(seed):
        return write(seed, symbolic, certain)


def told(seed: int, program: Program, problems: list[str]) -> str:
    numbered = "\n".join(f"{row:3} {line}" for row, line in enumerate(program.text.splitlines(), 1))
    return "\n".join((f"seed {seed}", *problems, numbered))


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_is_known_of_a_script_is_so(block: int) -> None:
    tally = Tally()
    for seed in range(block * PROGRAMS, (block + 1) * PROGRAMS):
        program = drawn(seed)
        problems = disagreements(program.text, (), {}, seed, tally)
        assert not problems, told(seed, program, problems)
    assert tally.known > 10 * PROGRAMS
    assert tally.views > PROGRAMS


@pytest.mark.parametrize("block", range(BLOCKS))
def test_what_is_known_of_a_function_that_nobody_calls_holds_for_every_call(block: int) -> None:
    tally = Tally()
    for seed in range(block * PROGRAMS, (block + 1) * PROGRAMS):
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


def test_views_that_torch_refuses_are_found() -> None:
    tally = Tally()
    for seed in range(CERTAIN):
        program = drawn(seed, certain=True)
        problems = disagreements(program.text, (), {}, seed, tally, certain=True)
        assert not problems, told(seed, program, problems)
    print(f"{tally.reported} of {tally.refused} refused views are reported")
    assert tally.refused > 20
    assert tally.reported >= 0.9 * tally.refused
