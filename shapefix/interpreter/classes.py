"""Project classes: their members through all bases, and their bases outside the project."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

import libcst as cst

from shapefix.interpreter.values import (
    ClassValue,
    Constant,
    FunctionValue,
    InstanceValue,
    Reference,
    Unknown,
    Value,
)

DEEPEST = 100
"""Maximum depth of bases that are followed."""


def lineage(cls: ClassValue) -> tuple[Value, ...]:
    """Class and its bases in the order of Python's method resolution, nearest first.

    A base is a ClassValue in the project, a Reference or Unknown outside.
    """
    if cls.ancestors is None:
        cls.ancestors = _linearized(cls, set(), {})[1:]
    return (cls, *cls.ancestors)


def _linearized(cls: Value, above: set[int], known: dict[int, tuple[Value, ...]]) -> tuple[Value, ...]:
    """Class and its bases in their order.

    above are the ids of classes derived from it: those in a circle have no bases here. known has the orders
    found so far: a base of many classes is looked at once.
    """
    if not isinstance(cls, ClassValue):
        return (cls,)
    if cls.ancestors is not None:
        return (cls, *cls.ancestors)
    if id(cls) in known:
        return known[id(cls)]
    if id(cls) in above or len(above) >= DEEPEST:
        return (cls,)
    above.add(id(cls))
    bases = cls.bases
    orders = [_linearized(base, above, known) for base in bases]
    above.discard(id(cls))
    found = known[id(cls)] = (cls, *(_merged([*orders, bases]) or _by_last_use(orders)))
    return found


def _merged(orders: Sequence[Sequence[Value]]) -> list[Value] | None:
    """C3 merge of several orders of classes; None if they disagree."""
    open_orders = [deque(order) for order in orders if order]
    inside = Counter(_identity(each) for order in open_orders for each in islice(order, 1, None))
    merged: list[Value] = []
    while open_orders:
        head = next((order[0] for order in open_orders if not inside[_identity(order[0])]), None)
        if head is None:
            return None
        merged.append(head)
        identity = _identity(head)
        for order in open_orders:
            if _identity(order[0]) == identity:
                order.popleft()
                if order:
                    inside[_identity(order[0])] -= 1
        open_orders = [order for order in open_orders if order]
    return merged


def _by_last_use(orders: Iterable[Iterable[Value]]) -> list[Value]:
    """All classes of these orders one after another, each at its last place."""
    every = [each for order in orders for each in order]
    last = {_identity(each): position for position, each in enumerate(every)}
    return [each for position, each in enumerate(every) if last[_identity(each)] == position]


def _identity(cls: Value) -> object:
    return cls.name if isinstance(cls, Reference) else id(cls)


def member(cls: ClassValue, name: str, after: ClassValue | None = None) -> Value | None:
    """Member of cls called name, its own or of a project base; after skips all bases up to it."""
    if after is None and name in cls.fields:
        return cls.fields[name]
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


def is_made_by_init(cls: ClassValue) -> bool:
    """Check that no decorator and no `__new__` of the project has a part in making the objects."""
    own = (base for base in lineage(cls) if isinstance(base, ClassValue))
    return not any(base.node.decorators for base in own) and member(cls, "__new__") is None


_TEST_CASES = frozenset({"unittest.TestCase", "unittest.IsolatedAsyncioTestCase", "unittest.case.TestCase"})
_FIXTURES = ("setUpClass", "setUp", "asyncSetUp"), ("setup_class", "setup_method", "setup")
"""Methods run before each test by unittest and by pytest, in their order."""


def fixtures_of(cls: ClassValue) -> list[FunctionValue]:
    """Methods of a class of tests run before each test."""
    is_unittest = not _TEST_CASES.isdisjoint(outside_bases(cls))
    if not is_unittest and not cls.name.startswith("Test"):
        return []
    found = [member(cls, name) for name in _FIXTURES[0 if is_unittest else 1]]
    return [each for each in found if isinstance(each, FunctionValue)]


def assigned_late(cls: ClassValue, first: Collection[str] = ("__init__",)) -> frozenset[str]:
    """Attributes of self assigned outside of the first methods, in the class or its project bases."""
    names: set[str] = set()
    for base in lineage(cls):
        if isinstance(base, ClassValue):
            for method, assigned in base.module.once(base.node, _assigned_in_methods).items():
                if method not in first:
                    names |= assigned
    return frozenset(names)


def _assigned_in_methods(node: cst.ClassDef) -> dict[str, frozenset[str]]:
    """Attributes of self assigned by each method."""
    found: dict[str, frozenset[str]] = {}
    for statement in node.body.body:
        if type(statement) is cst.FunctionDef and statement.params.params:
            assigned = frozenset(_assigned(statement.body, statement.params.params[0].name.value))
            name = statement.name.value
            found[name] = found.get(name, frozenset()) | assigned
    return found


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


def loosen(instance: InstanceValue, first: Collection[str]) -> None:
    """Forget attributes possibly changed by any method before another one runs, flags above all.

    first are the methods run before all others. The instance must not have been used yet: nothing of this is
    written to the journal.
    """
    instance.open = True
    late = assigned_late(instance.cls, first)
    for name, value in list(instance.fields.items()):
        flag = isinstance(value, Constant) and (value.value is None or isinstance(value.value, bool))
        if name in late or flag:
            instance.fields[name] = Unknown(f"self.{name}")
