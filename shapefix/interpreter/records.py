"""Classes with a generated `__init__`: dataclasses and named tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import libcst as cst

from shapefix.interpreter.classes import lineage
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import join, join_values
from shapefix.interpreter.names import peek
from shapefix.interpreter.values import (
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Reference,
    Value,
)
from shapefix.light_dataclasses import dataclass

FIELDS = "@fields"
"""Name in a class body for its own Fields."""
FIELD = "dataclasses.Field"
"""The object created by `field(default=…)`; its arguments are its fields."""
NAMED_TUPLE = "typing.NamedTuple"
_DECORATORS = frozenset(
    {
        "dataclasses.dataclass",
        "pydantic.dataclasses.dataclass",
        "flax.struct.dataclass",
        "attr.dataclass",
        "attr.define",
        "attr.frozen",
        "attr.mutable",
        "attrs.define",
        "attrs.frozen",
        "attrs.mutable",
    }
)
_MODELS = frozenset({"pydantic.BaseModel", "pydantic.main.BaseModel"})


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """One field: its default, or the factory of one; both None for a required field.

    given is False for a field without a parameter of `__init__`, kept for one that is only passed on to
    `__post_init__`. keyword is True for a keyword-only field.
    """

    name: str
    default: Value | None = None
    factory: Value | None = None
    given: bool = True
    kept: bool = True
    keyword: bool = False


class Fields(Value):
    """Fields stated by one class itself; own is False if it writes its own `__init__`."""

    __slots__ = ("fields", "own")

    def __init__(self, fields: tuple[Field, ...], *, own: bool = True) -> None:
        self.fields = fields
        self.own = own


def stated_fields(
    ev: Evaluator, node: cst.ClassDef, bases: Iterable[Value], names: dict[str, Value]
) -> Fields | None:
    """Fields of a class with the bound names of its body; None for an ordinary class.

    The names of fields without a default are taken out of names, as dataclasses do.
    """
    settings = _settings(ev, node)
    tuples = any(isinstance(base, Reference) and base.name == NAMED_TUPLE for base in bases)
    models = any(isinstance(base, Reference) and base.name in _MODELS for base in bases)
    if settings is None and not tuples and not models:
        return None
    by_name = models or _is_set(settings or {}, "kw_only")
    found: list[Field] = []
    for line in _annotated(node):
        assert isinstance(line.target, cst.Name)
        name, kind = line.target.value, _kind(ev, line.annotation.annotation)
        if kind == "dataclasses.KW_ONLY":
            by_name = True
        elif kind != "typing.ClassVar":
            held = names.get(name) if line.value is not None else None
            found.append(
                _field(name, held, names, is_variable=kind == "dataclasses.InitVar", by_name=by_name)
            )
    return Fields(tuple(found), own=not _is_set(settings or {}, "init", "False"))


def _settings(ev: Evaluator, node: cst.ClassDef) -> Mapping[str, str] | None:
    """Arguments of the dataclass decorator; None without one."""
    for decorator in node.decorators:
        target = decorator.decorator
        value = peek(ev, target.func if isinstance(target, cst.Call) else target)
        if isinstance(value, Reference) and value.name in _DECORATORS:
            given = target.args if isinstance(target, cst.Call) else ()
            return {
                argument.keyword.value: argument.value.value
                for argument in given
                if argument.keyword is not None and isinstance(argument.value, cst.Name)
            }
    return None


def _is_set(settings: Mapping[str, str], name: str, value: str = "True") -> bool:
    return settings.get(name) == value


def _annotated(node: cst.ClassDef) -> Iterable[cst.AnnAssign]:
    for statement in node.body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for line in statement.body:
                if isinstance(line, cst.AnnAssign) and isinstance(line.target, cst.Name):
                    yield line


def _kind(ev: Evaluator, annotation: cst.BaseExpression) -> str:
    """Qualified name of the annotation, without brackets."""
    node = annotation.value if isinstance(annotation, cst.Subscript) else annotation
    meaning = peek(ev, node) if isinstance(node, (cst.Name, cst.Attribute)) else None
    return meaning.name if isinstance(meaning, Reference) else ""


def _field(
    name: str, held: Value | None, names: dict[str, Value], *, is_variable: bool, by_name: bool
) -> Field:
    plain = Field(name, held, kept=not is_variable, keyword=by_name)
    if not isinstance(held, LibraryObject) or held.kind != FIELD:
        return plain
    stated = held.fields
    default, factory = stated.get("default"), stated.get("default_factory") or stated.get("factory")
    del names[name]
    if default is not None:
        names[name] = default
    by_name = by_name or _is_true(stated.get("kw_only"))
    given = stated.get("init")
    return replace(
        plain,
        default=default,
        factory=factory,
        keyword=by_name,
        given=not (isinstance(given, Constant) and not given.value),
    )


def _is_true(value: object) -> bool:
    return isinstance(value, Constant) and bool(value.value)


def fields_of_record(cls: ClassValue) -> tuple[Field, ...] | None:
    """All fields, those of the bases first, in the order of the parameters of `__init__`.

    None if the class writes its own `__init__` or is not a dataclass.
    """
    found: dict[str, Field] = {}
    nearest = True
    for base in lineage(cls):
        if not isinstance(base, ClassValue):
            continue
        stated = base.fields.get(FIELDS)
        if nearest and isinstance(base.fields.get("__init__"), FunctionValue):
            return None
        if isinstance(stated, Fields):
            if nearest and not stated.own:
                return None
            nearest = False
    if nearest:
        return None
    for base in reversed(list(lineage(cls))):
        stated = base.fields.get(FIELDS) if isinstance(base, ClassValue) else None
        if isinstance(stated, Fields):
            found.update((field.name, field) for field in stated.fields)
    return tuple(found.values())


def is_named_tuple(cls: ClassValue) -> bool:
    """Check for a class of tuples with names and nothing else of their own."""
    bases = [base.name for base in lineage(cls) if isinstance(base, Reference)]
    return NAMED_TUPLE in bases and not any(isinstance(value, FunctionValue) for value in cls.fields.values())


def bound_fields(
    fields: Iterable[Field], positional: list[Value], keywords: Mapping[str, Value]
) -> dict[str, Value]:
    """Arguments of `__init__` by the names of their fields; missing ones are left out."""
    ordered = [field.name for field in fields if field.given and not field.keyword]
    named = {field.name for field in fields if field.given}
    return {
        **dict(zip(ordered, positional, strict=False)),
        **{name: value for name, value in keywords.items() if name in named},
    }


@join_values
def join_records(left: Value, right: Value, depth: int = 0) -> Value | None:
    """Join two objects of one dataclass field by field; None for other values."""
    if not isinstance(left, InstanceValue) or not isinstance(right, InstanceValue) or left is right:
        return None
    if left.cls is not right.cls or left.facts or right.facts or fields_of_record(left.cls) is None:
        return None
    joined = InstanceValue(left.cls, open=left.open or right.open)
    joined.fields = {
        name: join(value, right.fields[name]) for name, value in left.fields.items() if name in right.fields
    }
    return joined
