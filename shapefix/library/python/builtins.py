"""Python's own functions: iteration, questions about objects, and `reveal`."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.devices import is_module
from shapefix.interpreter.attributes import MOVES, attribute
from shapefix.interpreter.calls import Arguments, Call, call_method, call_value
from shapefix.interpreter.classes import is_closed, lineage, member
from shapefix.interpreter.containers import Contents, DictValue, ListValue, NumberRange, TupleValue, elements
from shapefix.interpreter.dictionaries import certain_keys, is_complete
from shapefix.interpreter.events import Revealed
from shapefix.interpreter.functions import invalidate
from shapefix.interpreter.iteration import each, every, iterate
from shapefix.interpreter.joins import join
from shapefix.interpreter.option_flags import OptionText, note_option_loss
from shapefix.interpreter.per_item_sizes import axes_of, now, rebound
from shapefix.interpreter.refused_calls import note_refused
from shapefix.interpreter.subscripts import note_integer
from shapefix.interpreter.tensor_values import TensorValue, requires_grad
from shapefix.interpreter.values import (
    FALSE,
    NONE,
    TRUE,
    BoundMethod,
    ClassValue,
    Constant,
    Flag,
    FunctionValue,
    InstanceValue,
    Integer,
    LibraryObject,
    ModulePart,
    Number,
    PerhapsNone,
    Reference,
    Text,
    TypeOf,
    Unknown,
    Value,
    as_size,
    integer,
    is_whole,
)
from shapefix.library.python.namespaces import NAMESPACES
from shapefix.library.registry import derives, function, method
from shapefix.library.signatures import arguments_under
from shapefix.tensors.bounds import at_least
from shapefix.tensors.indexing import range_length
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import ItemPosition, RangeItem

LONGEST_RANGE = 64
PLAIN = (Constant, Integer, Number, Text, TupleValue, ListValue, DictValue)
"""Objects of Python itself, never tensors."""


@function("builtins.reveal", "shapefix.reveal")
def reveal(call: Call) -> Value:
    value = call.value(0) or Unknown()
    call.ev.emit(Revealed(call.place, call.ev.calls, _as_known_now(value)))
    return value


def _as_known_now(value: Value) -> Value:
    """Copy of the value with its current layouts; later they may change."""
    if isinstance(value, PerhapsNone):
        return PerhapsNone(_as_known_now(value.value))
    if isinstance(value, Unknown) and value.tensor is not None and value.tensor.layout is not None:
        value = value.tensor
    if isinstance(value, TensorValue):
        known = TensorValue(value.layout, dtype=value.dtype, device=value.device, contiguous=value.contiguous)
        known.graph = requires_grad(value)
        return known
    if isinstance(value, TupleValue):
        return TupleValue(tuple(_as_known_now(item) for item in value.items), value.names)
    return value


@function("builtins.len")
def length(call: Call) -> Value:
    value = call.value(0)
    items = elements(value)
    if items is not None:
        return Constant(len(items))
    if isinstance(value, ListValue) and value.length is not None:
        return integer(value.length)
    if isinstance(value, DictValue) and is_complete(call.ev, value):
        return Constant(len(value.fields))
    if isinstance(value, DictValue) and is_whole(value.rest):
        return Integer(Size.symbol(call.place.code, least=len(certain_keys(call.ev, value))))
    if isinstance(value, TensorValue):
        return integer(value.size(0)) if value.layout is None or value.layout.rank else Unknown()
    if isinstance(value, Constant) and isinstance(value.value, (str, bytes)):
        return Constant(len(value.value))
    if isinstance(value, LibraryObject):
        method_ = call.ev.library.method(value.kind, "__len__")
        if method_ is not None:
            return method_(Call(call.ev, f"{value.kind}.__len__", call.place, Arguments(), value))
    if isinstance(value, InstanceValue) and isinstance(member(value.cls, "__len__"), FunctionValue):
        return call_method(call.ev, value, "__len__", Arguments(), call.place.node)
    if isinstance(value, Unknown) and value.hint:
        return value.attribute("__len__") if value.tensor is None else integer(value.tensor.size(0))
    return Unknown()


@function("builtins.range")
def range_(call: Call) -> Value:
    given = call.arguments.positional
    node = call.place.node
    for value, argument in zip(given, node.args if isinstance(node, cst.Call) else (), strict=False):
        note_integer(call.ev, value, argument.value, node, "range")
    if 0 < len(given) <= 3 and all(isinstance(v, Constant) and isinstance(v.value, int) for v in given):
        bounds = [v.value for v in given if isinstance(v, Constant)]
        if len(bounds) < 3 or bounds[2] != 0:
            numbers = range(*bounds)
            if range_length(numbers) <= LONGEST_RANGE:
                return ListValue(tuple(Constant(i) for i in numbers))
    stepped = _stepped(given)
    if stepped is not None:
        return stepped
    # Upwards from a nonnegative number, or downwards to one, as in most ranges.
    negative = any(isinstance(v, Constant) and isinstance(v.value, int) and v.value < -1 for v in given[:2])
    element = Unknown("i") if negative else Integer(Size.symbol("i", least=0))
    count = _count(given)
    return ListValue(None, element) if count is None else NumberRange(element, count)


def _count(given: list[Value]) -> Size | None:
    """Number of numbers in a range; None unless it is stated or follows from two bounds."""
    bounds = [as_size(value) for value in given]
    if len(bounds) == 1:
        return bounds[0]
    numbers = [size.value for size in bounds if size is not None and size.value is not None]
    if 0 < len(bounds) <= 3 and len(numbers) == len(bounds) and numbers[2:] != [0]:
        return Size.of(range_length(range(*numbers)))
    start, stop = bounds if len(bounds) == 2 else (None, None)
    return stop - start if start is not None and stop is not None else None


def _stepped(given: list[Value]) -> Value | None:
    """`range(start, stop, step)` with bounds other than numbers; None for other arguments."""
    bounds = [as_size(value) for value in given]
    start, stop, step = bounds if len(bounds) == 3 else (None, None, None)
    if start is None or stop is None or step is None or not at_least(step, 1):
        return None
    return ListValue(None, Integer(Size.from_symbol(RangeItem("i", start, stop, step))))


@function("builtins.enumerate")
def enumerate_(call: Call) -> Value:
    given = arguments_under(call, "builtins.enumerate")
    iterable = iterate(call.ev, given.value("iterable"), call.place.node)
    items, start = elements(iterable), given.number("start")
    if items is not None and start is not None:
        return ListValue(tuple(TupleValue((Constant(i), item)) for i, item in enumerate(items, start)))
    counter = Integer(Size.from_symbol(ItemPosition("i", 0)) if start == 0 else Size.symbol("i", least=0))
    known = iterable.contents if isinstance(iterable, ListValue) else Contents(None)
    return ListValue(None, TupleValue((counter, every(call.ev, iterable))), known.length, known.axes)


@function("builtins.zip")
def zip_(call: Call) -> Value:
    rows_ = call.arguments.starred
    row = elements(rows_.element) if rows_ is not None else None
    if rows_ is not None and row is not None and not call.arguments.positional:
        # `zip(*rows)` turns rows into columns.
        return ListValue(tuple(ListValue(None, part, rows_.length, rows_.axes) for part in row))
    if call.arguments.open:
        return ListValue(None, ListValue(None))
    iterables = [iterate(call.ev, value, call.place.node) for value in call.arguments.positional]
    columns = [elements(iterable) for iterable in iterables]
    if columns and all(column is not None for column in columns):
        rows = zip(*(column for column in columns if column is not None), strict=False)
        return ListValue(tuple(TupleValue(tuple(row)) for row in rows))
    known = [one.contents for one in iterables if isinstance(one, ListValue)]
    lengths = {one.length for one in known}
    return ListValue(
        None,
        TupleValue(tuple(every(call.ev, iterable) for iterable in iterables)),
        lengths.pop() if len(lengths) == 1 and len(known) == len(iterables) else None,
        frozenset(axis for one in known for axis in one.axes),
    )


@function("builtins.reversed")
def reversed_(call: Call) -> Value:
    iterable = iterate(call.ev, call.value(0) or Unknown(), call.place.node)
    items = elements(iterable)
    if items is not None:
        return ListValue(items[::-1])
    return ListValue.of(iterable.contents) if isinstance(iterable, ListValue) else ListValue(None)


@function(
    "builtins.iter",
    "tqdm.tqdm",
    "tqdm.auto.tqdm",
    "tqdm.notebook.tqdm",
    "tqdm.std.tqdm",
    "rich.progress.track",
)
def wrapped(call: Call) -> Value:
    return iterate(call.ev, call.value(0, "iterable") or Unknown(), call.place.node)


@function("builtins.next")
def next_(call: Call) -> Value:
    return each(call.ev, iterate(call.ev, call.value(0) or Unknown(), call.place.node))


@function("builtins.isinstance")
def is_instance(call: Call) -> Value:
    value, kind = call.value(0), call.value(1)
    kinds = elements(kind) if isinstance(kind, TupleValue) else (kind,)
    verdicts = [_is_of(value, one) for one in kinds or ()]
    if True in verdicts:
        return TRUE
    if None in verdicts or not verdicts:
        if value is not None:
            call.ev.note_type_check(value)
        return Unknown()
    return FALSE


_OF_EVERY_TENSOR = frozenset({"torch.Tensor", "torch.autograd.Variable"})


def _is_of(value: Value | None, kind: Value | None) -> bool | None:
    if isinstance(kind, Reference):
        name = kind.name.rpartition(".")[2]
        if isinstance(value, TensorValue) and value.certain:
            return (
                True
                if kind.name in _OF_EVERY_TENSOR
                else (False if kind.name.startswith(("builtins.", "numpy.", "pandas.")) else None)
            )
        if isinstance(value, Constant) and kind.name.startswith("builtins."):
            return type(value.value).__name__ == name or (name == "int" and isinstance(value.value, bool))
        if isinstance(value, Integer) and kind.name.startswith("builtins."):
            return name == "int"
        if isinstance(value, Number) and kind.name in ("builtins.float", "builtins.list", "builtins.tuple"):
            return name == ("bool" if isinstance(value, Flag) else "float")
        if isinstance(value, TupleValue) and kind.name in (
            "builtins.tuple",
            "builtins.list",
            "builtins.dict",
        ):
            return name == "tuple"
        if isinstance(value, ListValue) and kind.name in ("builtins.tuple", "builtins.dict"):
            return None if name == "tuple" else False
        if isinstance(value, DictValue) and name in ("list", "tuple", "str", "int", "float"):
            return False
        if isinstance(value, DictValue) and name in ("dict", "Mapping", "MutableMapping"):
            return True if value.kind == "builtins.dict" else None
        if isinstance(value, LibraryObject) and derives(value.kind, kind.name):
            return True
        if isinstance(value, InstanceValue):
            bases = [base.name for base in lineage(value.cls) if isinstance(base, Reference)]
            return True if any(derives(base, kind.name) for base in bases) else None
        if kind.name.startswith("torch.") and isinstance(value, PLAIN):
            return False
    if isinstance(kind, ClassValue) and isinstance(value, InstanceValue):
        if any(base is kind for base in lineage(value.cls)):
            return True
        return False if is_closed(value.cls) else None
    if isinstance(kind, ClassValue) and isinstance(value, PLAIN):
        return False
    return None


@function("builtins.hasattr")
def has_attribute(call: Call) -> Value:
    owner, name = call.value(0), call.value(1)
    if isinstance(owner, InstanceValue) and isinstance(name, Constant) and name.value in owner.fields:
        return Unknown() if call.ev.journal.is_maybe_unbound(owner.fields, name.value) else TRUE
    if isinstance(owner, InstanceValue) and isinstance(name, Constant) and isinstance(name.value, str):
        if isinstance(member(owner.cls, name.value), FunctionValue):
            return TRUE
    if isinstance(name, Constant) and name.value in MOVES:
        if isinstance(owner, TensorValue) and owner.certain:
            return TRUE
        if isinstance(owner, PLAIN) and not (isinstance(owner, DictValue) and owner.kind != "builtins.dict"):
            return FALSE
    if owner is not None:
        call.ev.note_type_check(owner)
    return Unknown()


@function("builtins.type")
def type_(call: Call) -> Value:
    value = call.value(0)
    if value is None or call.arguments.open or len(call.arguments.positional) > 1:
        return Unknown()
    call.ev.note_type_check(value)
    return TypeOf(value)


@function("builtins.getattr")
def get_attribute(call: Call) -> Value:
    owner, name, default = call.value(0), call.value(1), call.value(2)
    if isinstance(name, OptionText):
        note_option_loss(call.ev)
    if owner is None or not (isinstance(name, Constant) and isinstance(name.value, str)):
        # Perhaps `getattr(self, f"conv{i}")`.
        if owner is None or not is_module(call.ev, owner):
            return Unknown()
        return ModulePart(frozenset({owner}))
    if default is not None:
        if not isinstance(owner, InstanceValue) or name.value not in owner.fields:
            return Unknown()
        if call.ev.journal.is_maybe_unbound(owner.fields, name.value):
            either: Value = join(owner.fields[name.value], default)
            return either
    return attribute(call.ev, owner, name.value, call.place.node)


@function("builtins.vars")
def variables(call: Call) -> Value:
    owner = call.value(0)
    return Unknown() if owner is None else attribute(call.ev, owner, "__dict__", call.place.node)


@function("builtins.setattr", "builtins.object.__setattr__")
def set_attribute(call: Call) -> Value:
    owner, name, value = call.value(0), call.value(1), call.value(2)
    if not isinstance(owner, (InstanceValue, LibraryObject)) or value is None:
        return NONE
    if isinstance(name, Constant):
        call.ev.journal.write(owner.fields, name.value, value)
    elif isinstance(owner, LibraryObject) and owner.kind not in NAMESPACES:
        invalidate(call.ev, (owner,))
    else:
        for key, held in list(owner.fields.items()):
            call.ev.journal.write(owner.fields, key, join(held, value))
        if isinstance(owner, InstanceValue):
            owner.open = True
    return NONE


@function("builtins.super")
def super_(call: Call) -> Value:
    frame = call.ev.frame
    owner = frame.owner
    receiver = frame.receiver
    if call.arguments.positional and isinstance(call.value(0), ClassValue):
        owner = call.value(0)  # type: ignore[assignment]
        receiver = call.value(1) or receiver
    if owner is None or not isinstance(receiver, (InstanceValue, ClassValue)):
        return Unknown()
    if isinstance(receiver, InstanceValue) and _is_foreign(owner, receiver.cls):
        # TypeError: obj must be an instance or subtype of type
        note_refused(call.ev, call.place.node, receiver)
        return Unknown()
    return LibraryObject("builtins.super", {"owner": owner, "receiver": receiver})


def _is_foreign(owner: ClassValue, cls: ClassValue) -> bool:
    """Whether a class is certainly not among the bases of another one, nor one of its name."""
    names = [base.name for base in lineage(cls) if isinstance(base, ClassValue)]
    return is_closed(cls) and owner.name not in names


@function("builtins.print", "warnings.warn", "random.seed", "numpy.random.seed")
def returns_none(call: Call) -> Value:
    return NONE


@function("functools.partial")
def partial(call: Call) -> Value:
    target = call.value(0)
    if isinstance(target, (FunctionValue, BoundMethod, Reference)) and not call.arguments.open:
        return LibraryObject(
            "functools.partial",
            fields={
                "target": target,
                "given": Arguments(call.arguments.positional[1:], call.arguments.keywords),
            },
        )
    return Unknown()


@method("functools.partial", "__call__")
def call_partial(call: Call) -> Value:
    if not isinstance(call.receiver, LibraryObject):
        return Unknown()
    given: Arguments = call.receiver.fields["given"]
    arguments = Arguments(
        [*given.positional, *call.arguments.positional],
        {**given.keywords, **call.arguments.keywords},
        call.arguments.open,
    )
    return call_value(call.ev, call.receiver.fields["target"], arguments, call.place.node)


@function("builtins.map")
def map_(call: Call) -> Value:
    target = call.value(0)
    iterable = iterate(call.ev, call.value(1) or Unknown(), call.place.node)
    if target is None or len(call.arguments.positional) != 2:
        return ListValue(None)
    items = elements(iterable)
    if items is not None and len(items) <= 8:
        return ListValue(
            tuple(call_value(call.ev, target, Arguments([item]), call.place.node) for item in items)
        )
    since = now()
    result = call_value(call.ev, target, Arguments([every(call.ev, iterable)]), call.place.node)
    axes = axes_of(iterable)
    for axis in axes:
        result = rebound(result, axis, since)
    return ListValue(None, result, iterable.length if isinstance(iterable, ListValue) else None, axes)
