"""Repair generated programs, run them before and after, and state what the repairs have changed."""

from __future__ import annotations

import ast
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from executed_texts import Outcome, Texts, outcomes
from repair_programs import Program

from shapefix.diagnostics import Diagnostic
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

STOPPING = {"SF801", "SF802"}
"""Rules whose repair lets an exception out that the program had swallowed."""


@dataclass(frozen=True)
class Repaired:
    """The texts of a program after its repair, the findings repaired, and those that remain.

    rejected are those of remaining with a fix that was not kept, with the reason.
    """

    texts: Texts
    applied: tuple[Diagnostic, ...]
    remaining: tuple[Diagnostic, ...]
    rejected: tuple[tuple[Diagnostic, str], ...]


@dataclass
class Pair:
    """A program as it was written, and its repair."""

    seed: int
    program: Program
    texts: Texts
    repaired: Repaired

    def shown(self, problem: str) -> str:
        codes = sorted({finding.code for finding in self.repaired.applied})
        texts = f"{self.texts}\n--- repaired ---\n{self.repaired.texts}"
        return f"seed {self.seed} ({self.program.family}): {codes}: {problem}\n{texts}"


@dataclass
class Examined:
    """What became of programs: how many there were, and how many were repaired, by rule and by family.

    raised counts those that raised before, modules those of several files. problems are the differences.
    """

    programs: int = 0
    count: int = 0
    pairs: Counter[str] = field(default_factory=Counter)
    families: Counter[str] = field(default_factory=Counter)
    raised: int = 0
    modules: int = 0
    rejected: int = 0
    problems: list[str] = field(default_factory=list)


def repaired(texts: Texts, unsafe: bool = False) -> Repaired:
    """Write the files of a program, and run what `shapefix fix --apply` runs, with all rules."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {"": Path(folder, "program.py")}
        paths |= {name: Path(folder, *name.split(".")).with_suffix(".py") for name in texts.modules}
        for name, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(texts.modules.get(name, texts.main), encoding="utf-8", newline="")
        options = CheckOptions(
            select=("ALL",), isolated=True, use_cache=False, jobs=1, unsafe_fixes=unsafe, preview=True
        )  # fmt: skip
        session = CheckSession((folder,), Settings(options)).run()
        assert not session.failures(), session.failures()
        repairs = list(session.repair(_write))
        assert not session.failures(), session.failures()
        new = {name: path.read_bytes().decode("utf-8") for name, path in paths.items()}
        return Repaired(
            Texts(new.pop(""), new),
            tuple(finding for repair in repairs for finding in repair.applied),
            session.findings(),
            tuple(each for repair in repairs for each in repair.rejected),
        )


def _write(path: str, new: bytes, expected: bytes) -> None:
    assert Path(path).read_bytes() == expected
    Path(path).write_bytes(new)


def examine(programs: Iterable[tuple[int, Program, Texts]], unsafe: bool = False) -> Examined:
    """Repair programs, execute the pairs, on a fake GPU as well if they use one, and compare them."""
    found, pairs = Examined(), []
    for seed, program, texts in programs:
        found.programs += 1
        result = repaired(texts, unsafe)
        found.rejected += len(result.rejected)
        if result.texts == texts:
            continue
        pair = Pair(seed, program, texts, result)
        problem = _unparsable(result.texts)
        if problem:
            found.problems.append(pair.shown(problem))
            continue
        pairs.append(pair)
        found.count += 1
        found.pairs.update({finding.code for finding in result.applied})
        found.families[program.family] += 1
        found.modules += bool(texts.modules)
    for gpu in (False, True):
        chosen = [pair for pair in pairs if pair.program.gpu or not gpu]
        executed = [
            text
            for pair in chosen
            for text in (pair.texts, pair.repaired.texts, *map(Texts, pair.program.intended))
        ]
        ran = iter(outcomes(executed, gpu)) if executed else iter(())
        for pair in chosen:
            before, after = next(ran), next(ran)
            intended = [next(ran) for _ in pair.program.intended]
            found.raised += before.error is not None
            if gpu and before.error is not None:
                # A tensor may be moved at another place than where its author moved it.
                intended = []
            problem = _raises(pair, before, after) if unsafe else _problem(pair, before, after, intended)
            if problem:
                found.problems.append(pair.shown(f"{problem}{' (on a GPU)' if gpu else ''}"))
    return found


def _unparsable(texts: Texts) -> str:
    for text in (texts.main, *texts.modules.values()):
        try:
            ast.parse(text)
        except SyntaxError as error:
            return f"is not Python any more: {error}"
    return ""


def _raises(pair: Pair, before: Outcome, after: Outcome) -> str:
    """What an unsafe repair must not do: to let a program raise that ran, or raise the same error again."""
    codes = {finding.code for finding in pair.repaired.applied}
    if after.error and not before.error and not codes & STOPPING:
        return f"ran before, and raises {after.error}"
    if pair.program.family.startswith("page ") and not any(code in pair.program.family for code in codes):
        # Written in this way, another rule of the page is hidden: nothing was said about the error.
        return ""
    same = after.error == before.error and not pair.repaired.remaining and "CUDA" not in str(after.error)
    return f"raises {after.error} as before" if after.error and same else ""


def _problem(pair: Pair, before: Outcome, after: Outcome, intended: list[Outcome]) -> str:
    if after.error is not None:
        if before.error is None:
            return f"ran before, and raises {after.error}"
        # What comes later was never reached before; another finding is not this one's to repair.
        later = after.place[0] != before.place[0] or after.place[1] > before.place[1]
        later = (later or bool(pair.repaired.remaining)) and after.error != before.error
        return "" if later or pair.program.mixed else f"raised {before.error}, and raises {after.error}"
    allowed = [each for each in intended if each.error is None]
    if before.error is None:
        allowed.append(before)
    elif pair.repaired.remaining:
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
