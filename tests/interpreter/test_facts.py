"""Facts about objects: typed, beside their attributes, joined after branches."""

from __future__ import annotations

from dataclasses import dataclass

from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.joins import join, join_objects
from shapefix.interpreter.journal import Journal
from shapefix.interpreter.values import Constant, LibraryObject, facts_of


@dataclass(frozen=True)
class Painted(Fact):
    color: str


@dataclass(frozen=True)
class Closed(Fact):
    """The object is closed."""


def test_a_fact_is_found_by_its_class() -> None:
    painted = LibraryObject("project.Door", facts=Facts.of(Painted("red")))
    assert facts_of(painted).known(Painted) == Painted("red")
    assert facts_of(painted).known(Closed) is None
    assert facts_of(Constant(1)).known(Painted) is None


def test_equal_facts_of_two_paths_are_kept_and_others_are_unknown() -> None:
    assert join(Painted("red"), Painted("red")) == Painted("red")
    assert join(Painted("red"), Painted("blue")) is None


def test_a_branch_is_undone_and_joined() -> None:
    facts, journal = Facts.of(Painted("red")), Journal()
    journal.begin()
    journal.write(facts, Painted, Painted("blue"))
    journal.write(facts, Closed, Closed())
    blue = journal.undo()
    assert facts == Facts.of(Painted("red"))
    journal.apply([blue, type(blue)()])
    assert facts.known(Painted) is None
    assert facts.known(Closed) == Closed()
    assert journal.is_maybe_unbound(facts, Closed)


def test_joined_objects_keep_the_facts_of_both() -> None:
    red, blue = Facts.of(Painted("red"), Closed()), Facts.of(Painted("blue"), Closed())
    made = join_objects(LibraryObject("a.Door", facts=red), LibraryObject("a.Door", facts=blue), 0)
    assert facts_of(made) == {Painted: None, Closed: Closed()}
