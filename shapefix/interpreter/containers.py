"""Tuples, lists and dictionaries: their contents, and the dimensions of list items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from shapefix.interpreter.fields import ObjectFields
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Unknown, Value, is_whole
from shapefix.tensors.polynomials import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class TupleValue(Value):
    """Tuple of known length; names is set for a named tuple or a model's output."""

    __slots__ = ("items", "names")

    def __init__(self, items: tuple[Value, ...], names: tuple[str, ...] = ()) -> None:
        self.items = items
        self.names = names


class EitherTuple(Unknown):
    """One of several tuples of different lengths, decided by a condition."""

    __slots__ = ("alternatives",)

    def __init__(self, alternatives: tuple[TupleValue, ...]) -> None:
        super().__init__()
        self.alternatives = alternatives


class RaggedDim:
    """Dimension of the differing items of a list: samples of a batch, rows of a tokenizer's call.

    A size that differs per item is a `PerItemSize` of this dimension. totals and longest are the sums and
    maxima of such sizes over all items, so that the same size gives the same sum.
    """

    __slots__ = ("longest", "totals")

    def __init__(self) -> None:
        self.totals: dict[Size, Size] = {}
        self.longest: dict[Size, Size] = {}


NO_AXES: frozenset[RaggedDim] = frozenset()


class Contents:
    """Contents of a list: its items, or one element for all items if they are not known one by one.

    length is the number of items, None if unknown; axes are the dimensions that the items range
    over.
    """

    __slots__ = ("axes", "element", "items", "length")

    def __init__(
        self,
        items: tuple[Value, ...] | None,
        element: Value | None = None,
        length: Size | None = None,
        axes: frozenset[RaggedDim] = NO_AXES,
    ) -> None:
        self.items = items
        self.element = element
        self.length = length if items is None else Size.of(len(items))
        self.axes = axes


CONTENTS = "contents"


class ListValue(Value):
    """A list, or any other iterable; fields holds its Contents, under the one key CONTENTS.

    either are the lists that it may be, after a branch; a write to it is one to any of them.
    """

    __slots__ = ("either", "fields")

    def __init__(
        self,
        items: tuple[Value, ...] | None,
        element: Value | None = None,
        length: Size | None = None,
        axes: frozenset[RaggedDim] = NO_AXES,
    ) -> None:
        self.fields: dict[str, Any] = ObjectFields()
        self.fields[CONTENTS] = Contents(items, element, length, axes)
        self.either: tuple[ListValue, ...] = ()

    @classmethod
    def of(cls, contents: Contents) -> Self:
        """Create a list of these contents."""
        return cls(contents.items, contents.element, contents.length, contents.axes)

    @property
    def contents(self) -> Contents:
        contents: Contents = self.fields[CONTENTS]
        return contents

    @property
    def items(self) -> tuple[Value, ...] | None:
        return self.contents.items

    @property
    def element(self) -> Value | None:
        return self.contents.element

    @property
    def length(self) -> Size | None:
        """Number of items; None if unknown."""
        return self.contents.length

    @property
    def axes(self) -> frozenset[RaggedDim]:
        return self.contents.axes


class NumberRange(ListValue):
    """`range(start, stop, step)` of many or unknown numbers; count says how many."""

    __slots__ = ("count",)

    def __init__(self, element: Value, count: Size) -> None:
        super().__init__(None, element)
        self.count = count


class TextTuple(ListValue):
    """Texts of samples given as tuples or lists; collation returns a tuple of unknown length."""

    __slots__ = ()


class DictValue(Value):
    """A dictionary with constant keys; closed is False if it may have further keys.

    fields has one entry for each known key. kind is the class, for subclasses with more methods than a dict.
    absent returns the value of a key that is not known to be there, the same each time; written are the
    places where keys were last set. rest represents the values of all further keys, as in a dictionary of
    layers filled by a loop; it is None if they are not known.
    """

    __slots__ = ("absent", "closed", "fields", "kind", "rest", "written")

    def __init__(
        self,
        fields: dict[Any, Value],
        closed: bool = True,
        kind: str = "builtins.dict",
        absent: Callable[[Any], Value] | None = None,
        written: Mapping[Any, Place] | None = None,
    ) -> None:
        self.fields = fields
        self.closed = closed
        self.kind = kind
        self.absent = absent
        self.written: dict[Any, Place] = dict(written or {})
        self.rest: Value | None = None

    def of_any_key(self) -> Value:
        """Value of any key, if no key is known or all are whole numbers; Unknown for other dictionaries."""
        is_known = not self.fields or (is_whole(self.rest) and all(map(is_whole, self.fields.values())))
        return self.rest if self.rest is not None and is_known else Unknown()

    def read(self, key: object) -> Value:
        """Value of a key."""
        found = self.fields.get(key)
        if found is None and is_whole(self.rest):
            return self.rest or Unknown()
        if found is None:
            found = self.absent(key) if self.absent is not None and not self.closed else self.of_any_key()
        return found


def elements(value: Value | None) -> tuple[Value, ...] | None:
    """Items of a tuple or list of known length."""
    if isinstance(value, (TupleValue, ListValue)):
        return value.items
    return None


class Shape(Value):
    """`x.shape` of a tensor of unknown rank: unpacking it reveals the rank.

    new_size creates the size of a dimension: `x.size(0)`.
    """

    __slots__ = ("new_size", "tensor")

    def __init__(self, tensor: TensorValue, new_size: Callable[[int], Size]) -> None:
        self.tensor = tensor
        self.new_size = new_size

    def size(self, dim: int) -> Size:
        """Size of dimension dim."""
        return self.tensor.size(dim, self.new_size(dim))


class Sizes(TupleValue):
    """`x.shape` of a tensor of known rank."""

    __slots__ = ("tensor",)

    def __init__(self, items: tuple[Value, ...], tensor: TensorValue) -> None:
        super().__init__(items)
        self.tensor = tensor


MOST_CELLS = 100_000
"""Maximum number of values in containers passed to a library function; shared parts count each time.

Functions look at each of them, and `x = [x, x]` doubles their number.
"""


def distinct(items: Sequence[Value]) -> ListValue | None:
    """List of the different ones among constants, in their order; None for other items."""
    values = [item.value for item in items if isinstance(item, Constant)]
    if len(values) < len(items):
        return None
    return ListValue(tuple(map(Constant, dict.fromkeys(values))))


def cells(values: Iterable[Value]) -> int:
    """Number of values, and of values in their containers; counted up to MOST_CELLS."""
    count = 0
    waiting: list[Iterable[Value]] = [values]
    while waiting:
        for value in waiting.pop():
            count += 1
            if isinstance(value, TupleValue):
                waiting.append(value.items)
            elif isinstance(value, ListValue):
                contents = value.contents
                if contents.items is not None:
                    waiting.append(contents.items)
                elif contents.element is not None:
                    waiting.append((contents.element,))
            elif isinstance(value, DictValue):
                waiting.append(value.fields.values())
        if count > MOST_CELLS:
            break
    return count
