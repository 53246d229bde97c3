"""Later passes of a loop: those that would do the same as an earlier one are not run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, cast

import libcst as cst
import pytest
from revealed import holds

from shapefix.interpreter import rehearsals
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.loop_assignments import read_first
from shapefix.interpreter.silent_runs import rehearsal
from shapefix.interpreter.values import Value


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = f(i)\ny = x", "f"),
        ("y = x\nx = f(i)", "f x"),
        ("x += 1", "x"),
        ("x, y = i\nz[x] = y", "z"),
        ("if c:\n    x = 1\nprint(x)", "c print x"),
        ("if c:\n    x = 1\nelse:\n    x = 2\nprint(x)", "c print"),
        ("if c:\n    x = 1\nelif d:\n    x = 2\nprint(x)", "c d print x"),
        ("if c:\n    x = 1\n    print(x)", "c print"),
        ("for j in i:\n    x = j\n    print(x)", "print"),
        ("for j in i:\n    x = j\nprint(x)", "print x"),
        ("with f() as (a, b):\n    x = a\nprint(x, b)", "f print"),
        ("try:\n    x = f()\nexcept E:\n    pass", "E f x"),
        ("while x:\n    x = 0", "x"),
        ("def g():\n    return x\nx = 1", "g x"),
    ],
)
def test_names_read_before_they_are_bound(body: str, expected: str) -> None:
    rows = "".join(f"    {row}\n" for row in body.splitlines())
    loop = cast("cst.For", cst.parse_statement(f"for i in data:\n{rows}"))
    assert read_first(loop) == frozenset(expected.split())


MADE = """
import torch

class Sample:
    def __init__(self, x):
        self.x = x
        self.rows = []

    def add(self, row):
        if self.x is not None:
            self.rows.append(row)

def load(data):
    for each in data:
        sample = Sample(torch.zeros(3))
        sample.add(each)
"""


KEPT = MADE.replace("    for each", "    kept = Sample(None)\n    for each")


@pytest.mark.parametrize(
    ("code", "is_run"),
    [
        (MADE, False),
        (MADE.replace("each in data:", "each in data:\n        print(sample)"), True),
        (KEPT, False),
        (KEPT.replace("(each)", "(each); kept.x = each"), True),
        (MADE.replace("(each)", "(each); KEPT.append(sample)") + "\nKEPT = []\n", True),
        (MADE.replace("(each)", "(each); seen = show()") + "\ndef show():\n    return seen\n", True),
    ],
)
def test_a_later_pass_is_run_if_it_sees_a_change(
    code: str, is_run: bool, check: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[object] = []

    def noted(ev: Evaluator) -> AbstractContextManager[list[Value]]:
        ran.append(ev)
        return rehearsal(ev)

    monkeypatch.setattr(rehearsals, "rehearsal", noted)
    check(code)
    assert bool(ran) == is_run


def test_a_tensor_with_other_memory_in_each_pass_is_read_afterwards(tmp_path: Path) -> None:
    holds(
        """
        import torch
        kept = torch.zeros(3)
        for each in [torch.ones(3), torch.ones(4)]:
            if each.sum() > 3:
                kept.set_(each * 2)
            total = kept.sum()
        reveal(kept.sum())  # f32[]
        (kept * torch.ones((), requires_grad=True)).sum().backward()
        """,
        tmp_path,
    )
