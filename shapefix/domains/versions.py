"""Versions of libraries: events of code written for another one."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.facts import Fact
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class RemovedArgument(Event):
    """Keyword argument of a library's function or constructor in a version without it.

    function is the name in package, given the argument; others are the keywords of the call. version is the
    first one without it.
    """

    package: str
    function: str
    given: cst.Arg
    keyword: str
    others: frozenset[str]
    version: str


@dataclass(frozen=True, eq=False, slots=True)
class RemovedName(Event):
    """Import of a name of a library, or a read of it, in a version without it.

    name is the qualified name, known the removed part of it: the name itself, or its module. version is the
    first one without it.
    """

    package: str
    name: str
    known: str
    version: str


@dataclass(frozen=True, eq=False, slots=True)
class MethodOverridden(Event):
    """Method of a library's class, overridden in the project.

    method is its definition, missing is the keyword that the library passes to it since version.
    """

    owner: str
    method: cst.FunctionDef
    missing: str
    version: str


@dataclass(frozen=True, slots=True)
class DataRequired(Fact):
    """Settings of a trainer; its construction with an evaluation, but no data for it, raises.

    Before transformers 4.46 only the first evaluation raises.
    """
