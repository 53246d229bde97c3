"""Ragged sizes: symbols with a different value per item of a list or per pass of a loop."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from shapefix.interpreter.containers import NO_AXES, DictValue, ListValue, RaggedDim, TupleValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.state import Hooks
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, LibraryObject, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Atom, DrawnNumber, PerItemSize, RangeItem, Symbol

renew: Hooks[Callable[[LibraryObject, Callable[[TensorValue], TensorValue]], LibraryObject]] = Hooks()
"""An object with tensors gets other sizes; the function renews one of them. Returns the object with them."""

DEEPEST = 8
"""Maximum depth of nested containers that are searched."""


def now() -> int:
    """Moment in the order of creation of symbols."""
    return Symbol("now").serial


def axes_of(iterable: Value) -> frozenset[RaggedDim]:
    """Dimensions of a loop over iterable: a new one for an unknown iterable."""
    known = iterable.axes if isinstance(iterable, ListValue) else NO_AXES
    return known or frozenset({RaggedDim()})


def provably_ragged(size: Size, axes: Collection[object] | None = None) -> PerItemSize | None:
    """Symbol making size differ per item for any values of the other symbols.

    axes are the dimensions of the items, None for any. `ids + [pad] * n` of an unknown n may have one length
    after all, as may a size that ragged lengths are subtracted from; `ids[:n]` does not.
    """
    found: PerItemSize | None = None
    for monomial, coefficient in size.terms.items():
        if not monomial:
            continue
        symbol = monomial[0]
        if len(monomial) > 1:
            return None
        if isinstance(symbol, PerItemSize):
            if axes is not None and symbol.axis not in axes:
                continue
            varies: PerItemSize | None = symbol
        elif isinstance(symbol, Atom) and symbol.op == "min":
            varies = provably_ragged(symbol.left, axes) or provably_ragged(symbol.right, axes)
        else:
            return None
        if varies is None or coefficient < 0:
            return None
        if found is None or varies.serial < found.serial:
            found = varies
    return found


@dataclass(frozen=True, slots=True)
class Rebinding:
    """Symbols to be made ragged along axis: those created since a moment, with samples all of them.

    With drawn, only random numbers.
    """

    axis: RaggedDim
    since: int
    samples: bool
    drawn: bool = False

    def other(self, symbol: PerItemSize) -> Size | None:
        """Replacement of a symbol; None if it stays."""
        if self.drawn and not isinstance(symbol, DrawnNumber):
            return None
        if symbol.axis is None:
            if symbol.serial > self.since:
                return along(symbol, self.axis)
            # Made once, for all samples.
            return Size.symbol(symbol.name, symbol.least) if self.samples else None
        return along(symbol, self.axis) if self.samples and symbol.axis is not self.axis else None


@dataclass(frozen=True, slots=True)
class ItemPick:
    """Sizes of one item: the symbols varying along axes are fixed."""

    axes: Collection[object]

    def other(self, symbol: PerItemSize) -> Size | None:
        """Replacement of a symbol; None if it stays."""
        return Size.symbol(symbol.name, symbol.least) if symbol.axis in self.axes else None


Renewal = Rebinding | ItemPick


def selected(value: Value, axes: Collection[object]) -> Value:
    """Value of one certain item; its sizes are the same at each use."""
    return _renewed(value, ItemPick(axes), {}, 0)


def fixed(value: Value) -> Value:
    """Tensor with the same sizes for each use: the rows of one tensor are equal."""
    layout = value.layout if isinstance(value, TensorValue) else None
    symbols = set() if layout is None else {symbol for size in layout.sizes for symbol in every_symbol(size)}
    axes = {symbol.axis for symbol in symbols if isinstance(symbol, PerItemSize)}
    return _renewed(value, ItemPick(axes), {}, 0) if axes else value


def rebound(
    value: Value, axis: RaggedDim, since: int, *, samples: bool = False, drawn: bool = False
) -> Value:
    """Value with all sizes created after a moment varying along axis; equal sizes remain equal.

    With samples, sizes of another axis vary along axis, too, and those that were there before are fixed. With
    drawn, only random numbers vary.
    """
    return _renewed(value, Rebinding(axis, since, samples, drawn), {}, 0)


def _renewed(value: Value, renewal: Renewal, known: dict[Symbol, int | Size], depth: int) -> Value:
    if depth > DEEPEST:
        return value
    if isinstance(value, Integer):
        size = _renewed_size(value.size, renewal, known)
        return value if size is value.size else Integer(size)
    if isinstance(value, TensorValue):
        return _renewed_tensor(value, renewal, known)
    if isinstance(value, LibraryObject):
        for hook in renew:
            value = hook(value, lambda tensor: _renewed_tensor(tensor, renewal, known))
        return value
    if isinstance(value, TupleValue):
        parts = tuple(_renewed(item, renewal, known, depth + 1) for item in value.items)
        return value if _are(parts, value.items) else TupleValue(parts, value.names)
    if isinstance(value, ListValue):
        contents = value.contents
        items = contents.items
        if items is not None:
            parts = tuple(_renewed(item, renewal, known, depth + 1) for item in items)
            return value if _are(parts, items) else ListValue(parts, axes=contents.axes)
        element = contents.element and _renewed(contents.element, renewal, known, depth + 1)
        length = contents.length and _renewed_size(contents.length, renewal, known)
        if element is contents.element and length is contents.length:
            return value
        return ListValue(None, element, length, contents.axes)
    if isinstance(value, DictValue):
        fields = {key: _renewed(item, renewal, known, depth + 1) for key, item in value.fields.items()}
        if _are(fields.values(), value.fields.values()):
            return value
        return DictValue(fields, value.closed, value.kind, value.absent, value.written)
    return value


def _are(new: Iterable[Value], old: Iterable[Value]) -> bool:
    return all(one is other for one, other in zip(new, old, strict=True))


def _renewed_size(size: Size, renewal: Renewal, known: dict[Symbol, int | Size]) -> Size:
    return with_others(size, renewal.other, known)


def with_others(
    size: Size, other: Callable[[PerItemSize], Size | None], known: dict[Symbol, int | Size]
) -> Size:
    """Size with its varying symbols replaced; None leaves one unchanged.

    known remembers them, so that equal sizes remain equal.
    """
    found = False
    for symbol in sorted(every_symbol(size), key=lambda symbol: symbol.serial):
        if isinstance(symbol, PerItemSize) and symbol not in known:
            instead = other(symbol)
            if instead is not None:
                known[symbol] = instead
        found = found or symbol in known
    return substitute(size, known) if found else size


def along(symbol: PerItemSize, axis: RaggedDim | None) -> Size:
    """Size equal to symbol, but varying along axis."""
    if isinstance(symbol, DrawnNumber):
        return Size.from_symbol(DrawnNumber(symbol.name, axis, symbol.source, symbol.least, symbol.largest))
    return Size.from_symbol(PerItemSize(symbol.name, axis, symbol.source, symbol.least))


def _renewed_tensor(tensor: TensorValue, renewal: Renewal, known: dict[Symbol, int | Size]) -> TensorValue:
    layout = tensor.layout
    if layout is None:
        return tensor
    sizes = tuple(_renewed_size(size, renewal, known) for size in layout.sizes)
    strides = tuple(_renewed_size(stride, renewal, known) for stride in layout.strides)
    if all(a is b for a, b in zip((*sizes, *strides), (*layout.sizes, *layout.strides), strict=True)):
        return tensor
    return TensorValue(
        Layout(sizes, strides),
        contiguous=tensor.contiguous,
        dtype=tensor.dtype,
        device=tensor.device,
        storage=tensor.storage,
        origin=tensor.origin,
        views=tensor.views,
        certain=tensor.certain,
        row=tensor.row,
    )


@dataclass(frozen=True, eq=False, slots=True)
class Cut:
    """Place of cutting a list into chunks, the last one perhaps shorter: `source` of a PerItemSize.

    chunk is the loop's counter: any one number of `range(start, stop, step)`.
    """

    place: Place
    chunk: RangeItem
