"""Project classes: their members through all bases, and their bases outside the project."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.interpreter.values import ClassValue, Constant, InstanceValue, Reference, Unknown, Value

DEEPEST = 20
"""Maximum depth of bases that are followed."""


def lineage(cls: ClassValue) -> Iterator[Value]:
    """Class and its bases, nearest first; ClassValue in the project, Reference or Unknown outside.

    A base that several others share comes after all of them, as in Python's own order.
    """
    if cls.ancestors is None:
        found = list(_with_bases(cls, ()))
        cls.ancestors = tuple(
            base
            for position, base in enumerate(found)
            if position and not any(_is_same(base, later) for later in found[position + 1 :])
        )
    yield cls
    yield from cls.ancestors


def _with_bases(cls: Value, above: tuple[Value, ...]) -> Iterator[Value]:
    yield cls
    if isinstance(cls, ClassValue) and len(above) < DEEPEST and not any(cls is other for other in above):
        for base in cls.bases:
            yield from _with_bases(base, (*above, cls))


def _is_same(one: Value, other: Value) -> bool:
    if isinstance(one, Reference) and isinstance(other, Reference):
        return one.name == other.name
    return one is other


def member(cls: ClassValue, name: str, after: ClassValue | None = None) -> Value | None:
    """Member of cls called name, its own or of a project base; after skips all bases up to it."""
    skipping = after is not None
    for base in lineage(cls):
        if skipping:
            skipping = base is not after
            continue
        if isinstance(base, ClassValue) and name in base.fields:
            return base.fields[name]
    return None


def outside_bases(cls: ClassValue) -> list[str]:
    """Qualified names of the bases outside the project."""
    return [base.name for base in lineage(cls) if isinstance(base, Reference)]


def is_closed(cls: ClassValue) -> bool:
    """Check whether every base is known, so that an unknown name is missing."""
    return all(isinstance(base, (ClassValue, Reference)) for base in lineage(cls))


def assigned_late(cls: ClassValue) -> frozenset[str]:
    """Attributes of self assigned outside of __init__, in the class or its project bases."""
    names: set[str] = set()
    for base in lineage(cls):
        if isinstance(base, ClassValue):
            names |= base.module.once(base.node, _assigned_in_methods)
    return frozenset(names)


def _assigned_in_methods(node: cst.ClassDef) -> frozenset[str]:
    names: set[str] = set()
    for statement in node.body.body:
        if (
            type(statement) is cst.FunctionDef
            and statement.name.value != "__init__"
            and statement.params.params
        ):
            names.update(_assigned(statement.body, statement.params.params[0].name.value))
    return frozenset(names)


def _assigned(block: cst.BaseSuite, this: str) -> Iterator[str]:
    """Attributes of `this` assigned by the statements of a block and of its inner blocks."""
    for statement in block.body:
        if type(statement) is cst.SimpleStatementLine:
            for small in statement.body:
                if type(small) is cst.Assign:
                    for target in small.targets:
                        yield from _attributes(target.target, this)
                elif isinstance(small, (cst.AugAssign, cst.AnnAssign)):
                    yield from _attributes(small.target, this)
        else:
            for inner in _inner_blocks(statement):
                yield from _assigned(inner, this)


def _inner_blocks(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    body = getattr(statement, "body", None)
    if isinstance(body, cst.BaseSuite) and type(statement) is not cst.ClassDef:
        yield body
    for handler in getattr(statement, "handlers", ()):
        yield handler.body
    for case in getattr(statement, "cases", ()):
        yield case.body
    orelse, finalbody = getattr(statement, "orelse", None), getattr(statement, "finalbody", None)
    if type(orelse) is cst.If:
        yield from _inner_blocks(orelse)
    elif orelse is not None:
        yield orelse.body
    if finalbody is not None:
        yield finalbody.body


def _attributes(target: cst.CSTNode, this: str) -> Iterator[str]:
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _attributes(element.value, this)
    elif (
        isinstance(target, cst.Attribute)
        and isinstance(target.value, cst.Name)
        and target.value.value == this
    ):
        yield target.attr.value


def loosen(instance: InstanceValue) -> None:
    """Forget attributes possibly changed by any method before another one runs, flags above all.

    The instance must not have been used yet: nothing of this is written to the journal.
    """
    instance.open = True
    late = assigned_late(instance.cls)
    for name, value in list(instance.fields.items()):
        flag = isinstance(value, Constant) and (value.value is None or isinstance(value.value, bool))
        if name in late or flag:
            instance.fields[name] = Unknown(f"self.{name}")
