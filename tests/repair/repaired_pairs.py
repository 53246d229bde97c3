"""Repair generated programs, run them before and after, and state what the repairs have changed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executed_texts import Outcome, outcomes
from repair_programs import Program

from shapefix.checks.rules import RULES
from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.engine.analysis import FileAnalyzer
from shapefix.engine.merge import unique
from shapefix.repair.fixpoint import RepairResult, repair
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText


@dataclass
class Pair:
    """A program and the result of its safe repairs."""

    seed: int
    program: Program
    repaired: RepairResult

    def shown(self, problem: str) -> str:
        codes = sorted({finding.code for finding in self.repaired.applied})
        texts = f"{self.program.text}\n--- repaired ---\n{self.repaired.text}"
        return f"seed {self.seed}: {codes}: {problem}\n{texts}"


@dataclass
class Examined:
    """What became of programs: the number of repaired ones, the rules, how many raised before, problems."""

    count: int = 0
    pairs: Counter[str] = field(default_factory=Counter)
    raised: int = 0
    problems: list[str] = field(default_factory=list)


def repaired(text: str, folder: Path) -> RepairResult:
    """Apply the safe fixes of all rules."""
    path = str(folder / "program.py")

    def analyze(now: str) -> list[Diagnostic]:
        analyzer = FileAnalyzer(Project(str(folder)), frozenset(RULES))
        return unique(analyzer.analyze(path, SourceText(path, now)).diagnostics)

    def is_safe(fix: Fix, finding: Diagnostic) -> bool:
        return fix.applicability is Applicability.SAFE

    return repair(text, analyze, is_safe)


def examine(programs: Iterable[tuple[int, Program]], folder: Path) -> Examined:
    """Repair programs, execute the pairs, on a fake GPU as well if they use one, and compare them."""
    found, pairs = Examined(), []
    for seed, program in programs:
        ast.parse(program.text)
        result = repaired(program.text, folder)
        if result.text != program.text:
            pairs.append(Pair(seed, program, result))
            found.count += 1
            found.pairs.update({finding.code for finding in result.applied})
    for gpu in (False, True):
        chosen = [pair for pair in pairs if pair.program.gpu or not gpu]
        texts = [
            text
            for pair in chosen
            for text in (pair.program.text, pair.repaired.text, *pair.program.intended)
        ]
        ran = iter(outcomes(texts, gpu)) if texts else iter(())
        for pair in chosen:
            before, after = next(ran), next(ran)
            intended = [next(ran) for _ in pair.program.intended]
            found.raised += before.error is not None
            problem = _problem(pair, before, after, intended)
            if problem:
                found.problems.append(pair.shown(f"{problem}{' (on a GPU)' if gpu else ''}"))
    return found


def _problem(pair: Pair, before: Outcome, after: Outcome, intended: list[Outcome]) -> str:
    if after.error is not None:
        if before.error is None:
            return f"ran before, and raises {after.error}"
        # What comes later was never reached before; another finding is not this one's to repair.
        later = after.line > before.line or pair.repaired.remaining
        return (
            ""
            if later and after.error != before.error
            else f"raised {before.error}, and raises {after.error}"
        )
    allowed = [each for each in intended if each.error is None and not pair.repaired.remaining]
    if before.error is None:
        allowed.append(before)
    if not allowed:
        return ""
    for name, value in after.values.items():
        if name in pair.program.free:
            continue
        wanted = [each.values[name] for each in allowed if name in each.values]
        if wanted and not _is_one_of(value, wanted):
            return f"`{name}` is {value}, and not one of {wanted}"
    return ""


def _is_one_of(value: Any, wanted: list[Any]) -> bool:
    """Whether a value, or each item of a tuple, is equal to one of others; a tensor of one number is one."""
    if any(_plain(value) == _plain(each) for each in wanted):
        return True
    if not isinstance(value, list) or _is_tensor(value):
        return False
    parts = [each for each in wanted if isinstance(each, list) and len(each) == len(value)]
    return bool(parts) and all(
        _is_one_of(part, [each[at] for each in parts]) for at, part in enumerate(value)
    )


def _is_tensor(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and str(value[0]).startswith("torch.")


def _plain(value: Any) -> Any:
    if _is_tensor(value) and value[1] == [] and isinstance(value[2], list):
        return value[2][0]
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value
