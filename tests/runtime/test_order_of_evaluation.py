"""What one place says of another is held against runs: random functions, with every order that they take."""

from __future__ import annotations

import ast
import contextlib
import random
from collections.abc import Iterator
from textwrap import dedent, indent

import pytest

from shapefix.diagnostics import Span
from shapefix.runtime.confirmation.evaluation_order import Order

PATH = "/train.py"


class Draft:
    """Writes functions in which each `m(number, …)` is a call that a run can note."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0

    def expression(self, depth: int = 0) -> str:
        self.number += 1
        call = f"m({self.number}"
        if depth < 2 and self.random.random() < 0.4:
            call += f", {self.operand(depth + 1)}"
        return call + ")"

    def operand(self, depth: int) -> str:
        one, two = self.expression(depth), self.expression(depth)
        kinds = (
            one, f"{one} + {two}", f"{one} or {two}", f"{one} if {two} else 0", f"(lambda: {one})",
            f"[{one} for _ in range({two} % 2)]", f"{one} < {two} < {self.expression(depth)}",
        )  # fmt: skip
        return self.random.choice(kinds)

    def block(self, depth: int, looping: bool) -> str:
        count = self.random.randint(1, 3)
        return "\n".join(self.statement(depth, looping) for _ in range(count))

    def statement(self, depth: int, looping: bool) -> str:
        kinds = ["plain"] * 4 + ["assert", "raise", "return", "assign"]
        kinds += ["break", "continue"] * looping + ["if", "for", "while", "try", "with"] * (depth < 3)
        kind = self.random.choice(kinds)
        inner = indent(self.block(depth + 1, looping or kind in ("for", "while")), "    ") if kind in (
            "if", "for", "while", "try", "with") else ""  # fmt: skip
        match kind:
            case "assert":
                return f"assert {self.expression()} >= 0, {self.expression()}"
            case "raise":
                return f"if {self.expression()} % 5 == 0: raise ValueError({self.expression()})"
            case "return":
                return f"if {self.expression()} % 4 == 0: return {self.expression()}"
            case "assign":
                return f"x = {self.operand(0)}"
            case "break" | "continue":
                return f"if {self.expression()} % 3 == 0: {kind}"
            case "if":
                other = indent(self.block(depth + 1, looping), "    ")
                return f"if {self.expression()} % 2:\n{inner}\nelse:\n{other}"
            case "for":
                return f"for _ in range({self.expression()} % 3):\n{inner}"
            case "while":
                return f"while {self.expression()} % 3:\n{inner}"
            case "try":
                other = indent(self.block(depth + 1, looping), "    ")
                return f"try:\n{inner}\nexcept ValueError:\n{other}"
            case "with":
                return f"with suppress(ValueError, m({self._next()}) and ValueError):\n{inner}"
        return self.expression()

    def _next(self) -> int:
        self.number += 1
        return self.number

    def function(self) -> str:
        return "def f():\n" + indent(self.block(0, False), "    ") + "\n"


class TooLong(BaseException):
    """A loop of a draft that does not end."""


def logs(text: str, seed: int) -> Iterator[tuple[list[tuple[str, int]], bool]]:
    """The calls of several runs, as they begin and as they end, and whether the function returned."""
    for run in range(12):
        chance = random.Random(seed * 100 + run)
        log: list[tuple[str, int]] = []

        def m(
            number: int, *_: object, chance: random.Random = chance, log: list[tuple[str, int]] = log
        ) -> int:
            log.append(("begins", number))
            if len(log) > 400:
                raise TooLong
            if chance.random() < 0.05:
                raise ValueError
            log.append(("ends", number))
            return chance.randint(0, 59)

        names: dict[str, object] = {"m": m, "suppress": lambda kind, _: contextlib.suppress(kind)}
        exec(compile(text, PATH, "exec"), names)
        returned = False
        try:
            names["f"]()  # type: ignore[operator]
            returned = True
        except (ValueError, AssertionError, TypeError, TooLong):
            pass
        yield log, returned


def places(text: str) -> dict[int, Span]:
    """Where each numbered call stands."""
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "m":
            assert isinstance(node.args[0], ast.Constant)
            assert isinstance(node.args[0].value, int)
            end = (node.end_lineno or 0, (node.end_col_offset or 0) + 1)
            found[node.args[0].value] = Span(PATH, node.lineno, node.col_offset + 1, *end)
    return found


@pytest.mark.slow
def test_what_is_said_to_come_before_has_come_before_in_every_run() -> None:
    said = returned_says = 0
    for seed in range(150):
        text = Draft(seed).function()
        order, where = Order(PATH, text), places(text)
        before = [(one, two) for one in where for two in where if order.before(where[one], where[two])]
        always = [one for one in where if order.when_returned(where[one], 1)]
        for log, returned in logs(text, seed):
            ended: set[int] = set()
            for what, number in log:
                if what == "ends":
                    ended.add(number)
                    continue
                for one, two in before:
                    if two == number:
                        said += 1
                        assert one in ended, f"seed {seed}: {one} not before {two}\n{text}"
            if returned:
                returned_says += len(always)
                assert ended.issuperset(always), f"seed {seed}: {always}\n{text}"
    assert said > 10_000
    assert returned_says > 500


FORWARD = """\
def forward(self, x):  # ä
    B, T, C = x.shape
    y = x.transpose(1, 2)
    é = "é" + str(y.view(B, -1)); y = self.fc(y.reshape(B, C, T))
    for block in self.blocks:
        y = block(y)
    return self.head(y).view(B, -1)
"""


def at(code: str, text: str = FORWARD) -> Span:
    start = text.index(code)
    row = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return Span(PATH, row, column, row, column + len(code))


def test_the_statements_of_a_block_and_the_arguments_of_a_call() -> None:
    order = Order(PATH, FORWARD)
    assert order.before(at("y.view(B, -1)"), at("self.fc(y.reshape(B, C, T))"))
    assert order.before(at("y.reshape(B, C, T)"), at("self.fc(y.reshape(B, C, T))"))
    assert order.before(at("x.shape"), at("block(y)"))
    assert not order.before(at("self.fc(y.reshape(B, C, T))"), at("self.fc(y.reshape(B, C, T))"))
    assert not order.before(at("block(y)"), at("self.head(y)"))
    assert order.when_returned(at("self.head(y).view(B, -1)"), 1)
    assert not order.when_returned(at("block(y)"), 1)
    assert not order.when_returned(at("x.shape"), 2)


def test_a_name_that_is_bound_on_the_way_tells_nothing() -> None:
    order = Order(PATH, FORWARD)
    call = at("self.fc(y.reshape(B, C, T))")
    assert order.bound_between(at("x.transpose(1, 2)"), call) == frozenset({"y", "é"})
    assert order.bound_between(at("y.view(B, -1)"), call) == frozenset({"é"})
    assert order.bound_between(at("self.head(y).view(B, -1)"), call) == frozenset({"y", "block"})
    assert order.bound_between(at("block(y)"), at("self.head(y)")) is None


def test_the_loops_around_a_place() -> None:
    order = Order(PATH, FORWARD)
    assert order.loops(at("block(y)")) == [at("self.blocks")]
    assert order.loops(at("self.head(y)")) == []


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'\n"])
def test_what_is_no_python(text: str) -> None:
    with pytest.raises((SyntaxError, ValueError)):
        Order(PATH, dedent(text))
