"""Conditions of findings, for the values of a run."""

from __future__ import annotations

import pytest

from shapefix.checks.support.conditions import combined, comparison, of_code, of_size
from shapefix.diagnostics import Condition, Predicate, Severity, Span, Variable
from shapefix.diagnostics import Diagnostic as Finding
from shapefix.engine.cache_entries import CachedResult, from_bytes, to_bytes
from shapefix.runtime.confirmation.conditions import holds, names
from shapefix.runtime.confirmation.run_record import RecordedValue
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import PerItemSize

VALUES: dict[str, RecordedValue] = {"T": 24, "batch_size": 1, "n": 10, "x": (4, 1, 8)}


def compared(left: str, relation: str, right: str) -> Predicate:
    found = comparison(of_code(left), relation, of_code(right))  # type: ignore[arg-type]
    assert found is not None
    return found


def both(operator: str, *parts: Predicate) -> Predicate:
    found = combined(operator, [Condition("", part) for part in parts])  # type: ignore[arg-type]
    assert found is not None
    assert found.predicate is not None
    return found.predicate


MULTIPLE = "is not a multiple of"
PREDICATES = [
    (compared("T", ">", "1"), True),
    (both("and", compared("batch_size", ">", "1"), compared("T", ">", "2")), False),
    (compared("x.size(0)", ">", "1"), True),
    (both("and", compared("x.size(0)", ">", "1"), compared("x.size(1)", ">", "1")), False),
    (compared("x.shape[-1]", "!=", "8"), False),
    (compared("len(x)", "!=", "4"), False),
    (compared("2*T - 4", ">", "n*4"), True),
    (both("or", compared("T // 5", "!=", "4"), compared("n", ">", "100")), False),
    (compared("n", MULTIPLE, "4"), True),
    (compared("T", MULTIPLE, "x.size(2)"), False),
    (compared("seq_len", ">", "1"), None),
    (compared("x.size(7)", ">", "1"), None),
    (compared("T.size(0)", ">", "1"), None),
    (compared("x", ">", "1"), None),
    (compared("T % 0", ">", "1"), None),
    (compared("T", MULTIPLE, "0"), None),
]


@pytest.mark.parametrize(("predicate", "held"), PREDICATES)
def test_whether_a_condition_held(predicate: Predicate, held: bool | None) -> None:
    assert holds(predicate, VALUES) is held


@pytest.mark.parametrize("predicate", [predicate for predicate, _ in PREDICATES])
def test_the_cache_keeps_a_condition(predicate: Predicate) -> None:
    finding = Finding(
        "SF101", "view", Severity.ERROR, "", Span("a.py", 1, 1, 1, 2), condition=Condition("T > 1", predicate)
    )
    data = to_bytes("", "", CachedResult((finding,)), name="", key=b"key")
    entry = from_bytes(data, name="", key=b"key")
    assert entry is not None
    assert entry.result().diagnostics == (finding,)


def test_the_names_of_a_condition() -> None:
    predicate = both("and", compared("batch_size", ">", "1"), compared("x.size(0)", ">", "T"))
    assert names(predicate) == frozenset({"batch_size", "x", "T"})


@pytest.mark.parametrize("code", ["print(T)", "T ** 2", "x.size(T)", "self.size", "", "two rows of a batch"])
def test_other_code_is_not_an_expression(code: str) -> None:
    assert of_code(code) is None


def test_a_condition_in_words_leaves_the_whole_without_predicate() -> None:
    found = combined("and", [Condition("T > 1", compared("T", ">", "1")), Condition("two texts differ")])
    assert found == Condition("T > 1 and two texts differ")


def test_a_size_is_an_expression_of_its_names() -> None:
    rows, columns = Size.symbol("n"), Size.symbol("x.size(2)")
    whole = of_size(rows * 3 - columns + 1)
    assert whole is not None
    assert holds(both("and", comparison(whole, ">", 22), compared("n", ">", "9")), VALUES) is True  # type: ignore[arg-type]
    assert holds(comparison(whole, ">", 23), VALUES) is False  # type: ignore[arg-type]
    assert of_size(rows) == Variable("n")
    assert of_size(Size.from_symbol(PerItemSize("n", None, None))) is None
