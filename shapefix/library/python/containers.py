"""Python's containers: constructors and mutating methods."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from shapefix.domains.tokens import put_together
from shapefix.domains.training import note_accumulated
from shapefix.interpreter.any_items import alternatives, any_of, entries_of, without_ends
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import (
    Contents,
    DictValue,
    ListValue,
    Shape,
    TupleValue,
    distinct,
    elements,
)
from shapefix.interpreter.dictionaries import Entries, certain_keys, is_complete
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.iteration import each, every, iterate
from shapefix.interpreter.joins import join, join_contents, without_length
from shapefix.interpreter.modules import nodes
from shapefix.interpreter.refinement import passed_tests
from shapefix.interpreter.subscripts import any_entry
from shapefix.interpreter.targets import set_contents
from shapefix.interpreter.values import (
    NONE,
    TEXT,
    Constant,
    Integer,
    Text,
    Unknown,
    Value,
    as_size,
    is_whole,
)
from shapefix.library.registry import function
from shapefix.library.signatures import arguments_under
from shapefix.tensors.polynomials import Size

NOTHING: Mapping[str, Value] = {}
LONGEST_QUEUE = 64
"""Queues of up to this length drop items of lists whose items are known one by one."""
_LONGEST_TEXT = 100
"""Texts of up to this length become lists of their letters."""
LONGEST = 10_000
"""Maximum number of items kept one by one."""


@function("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.set", "builtins.frozenset")
def container(call: Call) -> Value:
    kind = call.name.rpartition(".")[2]
    given = call.value(0)
    if given is None:
        return TupleValue(()) if kind == "tuple" else ListValue(())
    if isinstance(given, Shape):
        return given
    if isinstance(given, Constant) and isinstance(given.value, str) and len(given.value) <= _LONGEST_TEXT:
        letters = tuple(map(Constant, given.value))
        if kind in ("list", "tuple"):
            return ListValue(letters) if kind == "list" else TupleValue(letters)
    iterable = iterate(call.ev, given, call.place.node)
    items = elements(iterable)
    if kind in ("list", "tuple") and items is not None:
        return ListValue(items) if kind == "list" else TupleValue(items)
    if kind == "sorted" and items is not None and not call.arguments.keywords:
        values = [item.value for item in items if isinstance(item, Constant)]
        if len(values) == len(items) and len({type(value) for value in values} | {str, int}) == 2:
            return ListValue(tuple(map(Constant, sorted(values))))
    known = iterable.contents if isinstance(iterable, ListValue) else Contents(None)
    unique = distinct(items) if "set" in kind and items is not None else None
    if unique is not None:
        return unique
    length = None if "set" in kind else known.length
    return ListValue(None, every(call.ev, iterable), length, known.axes)


@function("collections.deque")
def queue(call: Call) -> Value:
    """List of limited length: a longer one loses items at its other end."""
    given, most = call.value(0, "iterable"), call.value(1, "maxlen")
    is_empty = given is None or (isinstance(given, Constant) and given.value is None)
    is_open = most is None or (isinstance(most, Constant) and most.value is None)
    known = as_size(most)
    # A short queue drops items of a known list.
    if not is_open and (known is None or (known.value is not None and known.value <= LONGEST_QUEUE)):
        return Unknown()
    if is_empty:
        return ListValue(())
    iterable = iterate(call.ev, given, call.place.node) if given is not None else Unknown()
    return ListValue(None, each(call.ev, iterable)) if isinstance(iterable, ListValue) else Unknown()


@function("builtins.dict", "collections.OrderedDict")
def dictionary(call: Call) -> Value:
    given = call.value(0)
    fields: dict[object, Value] = {}
    closed = not call.arguments.open
    if isinstance(given, DictValue):
        return _copied(call, given, call.arguments.keywords, closed)
    if given is not None:
        closed = False
        pairs = elements(given)
        if pairs is not None and all(isinstance(p, TupleValue) and len(p.items) == 2 for p in pairs):
            keyed = [p.items for p in pairs if isinstance(p, TupleValue) and isinstance(p.items[0], Constant)]
            closed = len(keyed) == len(pairs)
            fields.update((key.value, item) for key, item in keyed if isinstance(key, Constant))
    fields.update(call.arguments.keywords)
    return DictValue(fields, closed)


def _copied(
    call: Call, given: DictValue, more: Mapping[str, Value] = NOTHING, closed: bool = True
) -> DictValue:
    """Plain dictionary of the certain entries of another one, and of more."""
    fields = {key: given.fields[key] for key in certain_keys(call.ev, given)}
    closed = closed and is_complete(call.ev, given)
    written = {**given.written, **dict.fromkeys(more, call.place)}
    return DictValue({**fields, **more}, closed, absent=given.absent, written=written)


@function("builtins.list.appendleft", "builtins.list.extendleft")
def grow_in_front(call: Call) -> Value:
    """Queue with more items in front: none of them is known one by one any more."""
    owner, added = call.receiver, call.value(0) or Unknown()
    if isinstance(owner, ListValue):
        element = added if call.name.endswith("appendleft") else Unknown()
        both = join_contents(without_length(owner.contents), Contents(None, element))
        set_contents(call.ev, owner, Contents(None, both.element, None, owner.contents.axes))
    return NONE


@function("builtins.list.append", "builtins.list.extend", "builtins.list.insert")
def grow(call: Call) -> Value:
    owner = call.receiver
    if not isinstance(owner, ListValue):
        return NONE
    name = call.name.rpartition(".")[2]
    added = call.value(1 if name == "insert" else 0) or Unknown()
    if any(frame.undecided for frame in call.ev.frames) or _may_return_before(call.ev):
        # Perhaps only some of the numbers of a loop are added.
        added = without_ends(added)
    loops = call.ev.frame.loops
    added = passed_tests(call.ev, added, loops[-1].node if loops else None)
    items = owner.items
    if name == "append":
        _note_kept(call, added)
    if name == "append" and items is not None and len(items) < LONGEST:
        set_contents(call.ev, owner, Contents((*items, added)))
        return NONE
    more = elements(added)
    if name == "extend" and items is not None and more is not None and len(items) + len(more) <= LONGEST:
        set_contents(call.ev, owner, Contents((*items, *more)))
        return NONE
    other = Contents(None, added, Size.of(1))
    if name == "extend":
        iterable = iterate(call.ev, added, call.place.node)
        other = iterable.contents if isinstance(iterable, ListValue) else Contents(elements(iterable) or ())
    before = owner.contents
    both = without_length(join_contents(before, other))
    length = before.length + other.length if before.length is not None and other.length is not None else None
    contents = put_together(Contents(None, both.element, length, before.axes | other.axes), call.place)
    set_contents(call.ev, owner, contents)
    return NONE


def _may_return_before(ev: Evaluator) -> bool:
    """Check for a function called in a loop, that may leave out some items by a condition of its own."""
    function_ = ev.frame.function
    if function_ is None or ev.frame.loops:
        return False
    return ev.frame.module.once(function_, _has_condition)


def _has_condition(node: cst.CSTNode) -> bool:
    return any(isinstance(each_, (cst.If, cst.Try, cst.Match)) for each_ in nodes(node))


def _note_kept(call: Call, added: Value) -> None:
    node = call.place.node
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        note_accumulated(call.ev, node, node.func.value, node.args[0].value, added, None)


@function(
    "builtins.list.pop",
    "builtins.list.clear",
    "builtins.list.remove",
    "builtins.list.sort",
    "builtins.list.reverse",
    "builtins.list.popleft",
    "builtins.list.rotate",
)
def shrink(call: Call) -> Value:
    owner = call.receiver
    if not isinstance(owner, ListValue):
        return Unknown()
    element = each(call.ev, owner)
    items = owner.items
    if call.name.endswith(".pop") and not call.arguments.positional and items:
        set_contents(call.ev, owner, Contents(items[:-1]))
        return items[-1]
    set_contents(call.ev, owner, without_length(owner.contents))
    return element if call.name.endswith((".pop", ".popleft")) else NONE


@function("builtins.dict.items")
def items_(call: Call) -> Value:
    owner = call.receiver
    if not isinstance(owner, DictValue):
        return ListValue(None, TupleValue((Unknown(), Unknown())))
    known = tuple(TupleValue((Constant(k), owner.fields[k])) for k in certain_keys(call.ev, owner))
    key = TEXT if owner.fields and all(type(key) is str for key in owner.fields) else Unknown()
    return Entries(owner, known, is_complete(call.ev, owner), TupleValue((key, owner.of_any_key())))


@function("builtins.dict.keys")
def keys(call: Call) -> Value:
    return iterate(call.ev, call.receiver, call.place.node) if call.receiver is not None else Unknown()


@function("builtins.dict.values")
def values(call: Call) -> Value:
    owner = call.receiver
    if not isinstance(owner, DictValue):
        return ListValue(None)
    known = tuple(owner.fields[key] for key in certain_keys(call.ev, owner))
    return Entries(owner, known, is_complete(call.ev, owner), owner.of_any_key())


def _entry_or(call: Call, owner: DictValue, key: Value | None, default: Value | None) -> Value | None:
    """Entry of one of several texts, or the default; None if they are not known."""
    keys = alternatives(key)
    further = owner.of_any_key()
    if is_whole(further) and is_whole(default):
        return further
    if keys is None or default is None or not is_complete(call.ev, owner):
        return None
    return any_of([default if entry is None else entry for entry in entries_of(owner, keys)])


@function("builtins.list.index")
def position(call: Call) -> Value:
    """Position of a known text, or of one of several texts, in a list."""
    items, keys = elements(call.receiver), alternatives(call.value(0))
    texts = [item.value for item in items or () if isinstance(item, Constant)]
    if items is None or keys is None or len(texts) < len(items) or len(call.arguments.positional) != 1:
        return Unknown()
    if any(key.value not in texts for key in keys):
        return Unknown()
    return any_of([Constant(texts.index(key.value)) for key in keys])


@function("builtins.dict.get", "builtins.dict.pop", "builtins.dict.setdefault")
def get(call: Call) -> Value:
    owner, key = call.receiver, call.value(0)
    name = call.name.rpartition(".")[2]
    if isinstance(owner, DictValue) and not isinstance(key, Constant):
        if name == "get" and call.value(1) is not None:
            return _entry_or(call, owner, key, call.value(1)) or Unknown()
        return (any_entry(call.ev, owner, key) if name == "get" else None) or Unknown()
    if not (isinstance(owner, DictValue) and isinstance(key, Constant)):
        return Unknown()
    if key.value in owner.fields:
        found = owner.fields[key.value]
        if call.ev.journal.is_maybe_unbound(owner.fields, key.value):
            found = join(found, call.value(1) or NONE)
        if name == "pop":
            call.ev.journal.delete(owner.fields, key.value)
        return found
    default = call.value(1) or NONE
    if not owner.closed:
        return owner.read(key.value)
    if name == "setdefault":
        call.ev.journal.write(owner.fields, key.value, default)
    return default


@function("builtins.dict.update")
def update(call: Call) -> Value:
    owner, other = call.receiver, call.value(0)
    if isinstance(owner, DictValue):
        if isinstance(other, DictValue):
            for key in certain_keys(call.ev, other):
                call.ev.journal.write(owner.fields, key, other.fields[key])
            owner.written.update(other.written)
        if other is not None and not (isinstance(other, DictValue) and is_complete(call.ev, other)):
            given = certain_keys(call.ev, other) if isinstance(other, DictValue) else ()
            for key in owner.fields.keys() - set(given):
                call.ev.journal.write(owner.fields, key, Unknown())
            owner.closed = False
            owner.rest = None
        for name, value in call.arguments.keywords.items():
            call.ev.journal.write(owner.fields, name, value)
            owner.written[name] = call.place
    return NONE


@function("builtins.list.copy", "builtins.dict.copy", "copy.copy")
def duplicate(call: Call) -> Value:
    """Copy with shared contents."""
    value = call.receiver
    if value is None:
        value = arguments_under(call, "copy.copy").value("x")
    if isinstance(value, ListValue):
        return ListValue.of(value.contents)
    if isinstance(value, DictValue):
        copy = _copied(call, value)
        copy.kind = value.kind
        return copy
    return value if isinstance(value, (Constant, Integer, TupleValue, Text)) else Unknown()
