"""Conditions of findings, for the values of a run."""

from __future__ import annotations

import pytest

from shapefix.runtime.confirmation.conditions import holds, names
from shapefix.runtime.confirmation.run_record import Held

VALUES: dict[str, Held] = {"T": 24, "batch_size": 1, "n": 10, "x": (4, 1, 8)}


@pytest.mark.parametrize(
    ("condition", "held"),
    [
        ("T > 1", True),
        ("batch_size > 1 and T > 2", False),
        ("x.size(0) > 1", True),
        ("x.size(0) > 1 and x.size(1) > 1", False),
        ("x.shape[-1] != 8", False),
        ("len(x) == 4", True),
        ("2*T - 4 > n*4", True),
        ("T // 5 != 4 or n > 100", False),
        ("n is no multiple of 4", True),
        ("T is not a multiple of x.size(2)", False),
        ("seq_len > 1", None),
        ("x.size(7) > 1", None),
        ("T.size(0) > 1", None),
        ("x > 1", None),
        ("T % 0 == 1", None),
        ("print(T) > 1", None),
        ("two rows of a batch differ in length", None),
        ("with the default of --size, T > 1", None),
        ("", None),
    ],
)
def test_whether_a_condition_held(condition: str, held: bool | None) -> None:
    assert holds(condition, VALUES) is held


def test_the_names_of_a_condition() -> None:
    assert names("batch_size > 1 and x.size(0) > T") == frozenset({"batch_size", "x", "T"})
    assert names("two rows of a batch differ in length") is None
