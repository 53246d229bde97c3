"""Random programs that run: what shapefix knows of their values is so, and nothing of them is reported."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from checking import Check
from differential import IMPORTS, compare, executed, revealed

ADVICE = frozenset({"SF103", "SF104", "SF105", "SF513", "SF518", "SF601"})
"""Rules about programs that run, and do something that is hardly meant."""
TRIES = 60


@dataclass(frozen=True)
class Running:
    """A program, and the expressions that it shows at its end."""

    text: str
    shown: tuple[str, ...] = ()


def runs(text: str) -> bool:
    """Whether torch runs a program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(IMPORTS + text, "script.py", "exec"), {"__name__": "__main__"})
    except Exception:
        return False
    finally:
        torch.set_default_dtype(torch.float32)
    return True


def first_that_runs(draft: Callable[[random.Random], Running], seed: int) -> Running:
    """Draw programs until one of them runs."""
    for turn in range(TRIES):
        program = draft(random.Random(f"{seed} {turn}"))
        if runs(program.text):
            return program
    raise AssertionError(f"no program of {TRIES} with seed {seed} runs")


def problems(program: Running, check: Check) -> Iterable[str]:
    """Yield false findings, and the values that are not what torch computes."""
    for finding in check(IMPORTS + program.text):
        if finding.code not in ADVICE:
            yield f"line {finding.span.row}: {finding.code} {finding.message}"
    source = program.text + "".join(f"\nreveal({shown})" for shown in program.shown)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            real = executed(source)
    finally:
        torch.set_default_dtype(torch.float32)
    for shown, ours, value in zip(program.shown, revealed(source), real, strict=True):
        try:
            compare(ours, value)
        except AssertionError as error:
            yield f"{shown}: {error}"


def check_programs(draft: Callable[[random.Random], Running], seeds: Iterable[int], check: Check) -> None:
    """Assert that nothing false is said of programs that run."""
    for seed in seeds:
        program = first_that_runs(draft, seed)
        found = list(problems(program, check))
        assert not found, "\n".join((f"seed {seed}", *found, program.text))
