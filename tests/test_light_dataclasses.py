"""Light dataclasses behave as those of Python, except that nothing is frozen at run time."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from shapefix import light_dataclasses

OPTIONS: tuple[dict[str, bool], ...] = (
    {},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"eq": False, "slots": True},
    {"frozen": True, "eq": False},
    {"repr": False},
    {"order": True},
    {"unsafe_hash": True},
    {"kw_only": True},
)


def _plain() -> type:
    class Pair:
        left: int
        right: Any = dataclasses.field(default=2, compare=False, repr=False)

    Pair.__annotations__ = {"left": int, "right": object}
    return Pair


def _with_equality() -> type:
    class Pair(_plain()):  # type: ignore[misc]
        def __eq__(self, other: object) -> bool:
            return True

    Pair.__annotations__ = {"left": int, "right": object}
    return Pair


def _with_hash() -> type:
    class Pair(_plain()):  # type: ignore[misc]
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 7

    Pair.__annotations__ = {"left": int, "right": object}
    return Pair


def _with_representation() -> type:
    class Pair(_plain()):  # type: ignore[misc]
        def __repr__(self) -> str:
            return "a pair"

    Pair.__annotations__ = {"left": int, "right": object}
    return Pair


def _behavior(make: Callable[[], type]) -> list[object]:
    try:
        cls = make()
    except TypeError as error:
        return [str(error)]
    one, same, other = cls(left=1), cls(left=1, right=5), cls(left=3)
    tried: list[Callable[[], object]] = [
        lambda: one == same,
        lambda: one == other,
        lambda: hash(one) == hash(same),
        lambda: one < other,
        lambda: repr(one).rpartition(".")[2].partition(" object at ")[0],
        lambda: dataclasses.replace(one, left=9) == cls(left=9),
        lambda: dataclasses.astuple(other),
        lambda: copy.copy(one).left,
        lambda: one.missing,
    ]
    found: list[object] = []
    for attempt in tried:
        try:
            found.append(attempt())
        except (TypeError, AttributeError) as error:
            found.append(type(error))
    return found


@pytest.mark.parametrize("make", [_plain, _with_equality, _with_hash, _with_representation])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_behavior_is_that_of_dataclasses(options: dict[str, bool], make: Callable[[], type]) -> None:
    define = dataclasses.dataclass(**options)
    found = _behavior(lambda: light_dataclasses._defined(make(), options))
    assert found == _behavior(lambda: define(make()))


@light_dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """A class that pickle finds by its name."""

    number: int


def test_objects_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(Stored(3))) == Stored(3)
    assert repr(Stored(3)) == "Stored(number=3)"


def test_a_frozen_class_defines_no_methods_to_refuse_assignments() -> None:
    assert not {"__setattr__", "__delattr__"} & Stored.__dict__.keys()


LIBCST = """
import dataclasses
from shapefix.engine import light_libcst
light_libcst.is_own_process = {own}
before = dataclasses.dataclass
light_libcst.import_libcst()
assert dataclasses.dataclass is before
import libcst
name = libcst.Name("x")
assert name != libcst.Name("x") and hash(name) and name.with_changes(value="y").value == "y"
assert libcst.parse_module("x = [1, y]\\n").deep_clone().code == "x = [1, y]\\n"
import abc
assert abc.ABC is not light_libcst._Plain
assert isinstance(name, libcst.BaseExpression) and not isinstance(name, libcst.Call)
print("__setattr__" in libcst.Name.__dict__, type(libcst.Name).__name__)
"""


@pytest.mark.parametrize("own", [False, True])
def test_nodes_of_libcst_are_defined_lightly_in_a_process_of_our_own(own: bool) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", LIBCST.format(own=own)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    kind = "type" if own else "ABCMeta"
    assert (ran.stdout, ran.stderr) == (f"{not own} {kind}\n", "")
