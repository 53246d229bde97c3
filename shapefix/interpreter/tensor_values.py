"""Tensors as values: their layout, how they came by it, and the memory that they share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import libcst as cst

from shapefix.interpreter.base import Value
from shapefix.interpreter.modules import Place
from shapefix.tensors.dtypes import is_complex, is_floating
from shapefix.tensors.layout import Layout
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Id, Symbol

START = Size.of(0)


class DeviceKind(Enum):
    """CHOSEN is the CPU or a GPU, as the machine or a setting has it; SHARED is that of some tensor or module
    of which nothing else is known.
    """

    CPU = "cpu"
    GPU = "gpu"
    CHOSEN = "chosen"
    SHARED = "shared"


@dataclass(frozen=True, eq=False, slots=True)
class Device:
    """Where something lies.

    name is torch's: "cuda:1". symbol is the same object for two devices that are the same one, whichever that
    is. place is where something was made or sent there; by_default tells that it lies on the CPU because the
    code said nothing. within is the method of a module, `forward` or `__init__`, that was being run when the
    code said nothing, there or where the device was taken from.
    """

    kind: DeviceKind
    name: str = ""
    symbol: object = None
    place: Place | None = None
    within: cst.FunctionDef | None = None
    by_default: bool = False

    @property
    def may_be_gpu(self) -> bool:
        """Whether the code itself sent something here that may be, or is, a GPU."""
        return self.kind in (DeviceKind.GPU, DeviceKind.CHOSEN)


def is_same_device(one: Device | None, two: Device | None) -> bool:
    """Whether two devices are certainly one."""
    if one is None or two is None or one.kind is not two.kind:
        return False
    if one.kind in (DeviceKind.CPU, DeviceKind.GPU):
        return one.name == two.name
    return one.symbol is two.symbol


def join_devices(one: Device | None, two: Device | None) -> Device | None:
    """Where something lies that is one of two."""
    return one if is_same_device(one, two) else None


class LayoutStep:
    """One operation in the life of a tensor's layout, and the one before it.

    function is the function that was being run, None at the top level of a file. before is the step whose
    layout was taken over; source is the last one of the tensor that this one was computed from, and maker the
    layer that did it.
    """

    __slots__ = ("before", "function", "layout", "place", "producer", "source", "verb")

    def __init__(
        self,
        place: Place,
        verb: str,
        layout: Layout | None,
        before: LayoutStep | None,
        function: cst.CSTNode | None,
    ) -> None:
        self.place = place
        self.verb = verb
        self.layout = layout
        self.before = before
        self.function = function
        self.source = before
        self.producer: Value | None = None


@dataclass(frozen=True, eq=False, slots=True)
class LabelMask:
    """Where the code put -100 among ids; leading tells whether it stands at the beginning of a row."""

    place: Place
    leading: bool


@dataclass(frozen=True, slots=True)
class TokenRow:
    """What the last dimension of a tensor, or a list, holds: any one element, and where in its row it begins.

    Two values of the same symbol hold the same row, one perhaps further on than the other. cut is the place
    where it was made to begin elsewhere; short tells how many elements it lacks at its end, None where that
    is not known.
    """

    symbol: Symbol
    start: Size = START
    mask: LabelMask | None = None
    cut: Place | None = None
    short: int | None = 0


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The smallest and the largest element of a tensor of whole numbers.

    drawn tells that they are drawn at random: these are the bounds, which any of them may reach.
    """

    least: Size
    most: Size
    drawn: bool = False


class Storage:
    """The memory that a tensor and all its views share, and what was written into it.

    mask tells where -100 was, overwritten whether anything else was: on some path is enough. grafted tells
    whether something that may carry a graph was written there.
    """

    __slots__ = ("grafted", "mask", "overwritten")

    def __init__(self) -> None:
        self.mask: LabelMask | None = None
        self.overwritten = False
        self.grafted = False


class TensorValue(Value):
    """A tensor: sizes and strides where the rank is known, dtype and device where they are.

    certain is False where the code only treats the value as an array: numpy has slices, too.
    contiguous is True where the rank is unknown, and the tensor contiguous all the same.
    views are the calls of `.view` and its like that this tensor has come through since its storage was made.
    row is what the last dimension was made to hold, before anything was written to the storage; extremes are
    the smallest and largest element, before that, too, None where they are not known.
    graph tells whether the tensor requires a gradient, None where that is not known; sources are the tensors
    that it was computed from, in a way that gradients flow back (see gradients.py).
    own tells whether it is a parameter or a buffer of a module, which converts it together with itself.
    """

    __slots__ = (
        "_sizes",
        "certain",
        "contiguous",
        "device",
        "dtype",
        "extremes",
        "graph",
        "layout",
        "origin",
        "own",
        "row",
        "sources",
        "storage",
        "views",
    )

    def __init__(
        self,
        layout: Layout | None = None,
        *,
        contiguous: bool = False,
        dtype: str | None = None,
        device: Device | None = None,
        storage: Storage | None = None,
        origin: LayoutStep | None = None,
        views: tuple[cst.CSTNode, ...] = (),
        certain: bool = True,
        row: TokenRow | None = None,
    ) -> None:
        self.layout = layout
        self.dtype = dtype
        self.device = device
        self.storage = storage or Storage()
        self.origin = origin
        self.views = views
        self.certain = certain
        self.row = row
        self.contiguous = contiguous
        self.extremes: ValueRange | None = None
        self.graph: bool | None = None
        self.sources: tuple[TensorValue, ...] = ()
        self.own = False
        self._sizes: dict[int, Size] | None = None

    def size(self, dim: int, name: str = "") -> Size:
        """The size of dimension dim, the same symbol each time where it is not known.

        name is what the symbol is called. Raises IndexError where the tensor has no such dimension.
        """
        if self.layout is not None:
            return self.layout.sizes[dim]
        if self._sizes is None:
            self._sizes = {}
        if dim not in self._sizes:
            self._sizes[dim] = Size.symbol(name or f"size({dim})")
        return self._sizes[dim]

    def set_size(self, dim: int, size: Size) -> None:
        """Take note of a size although the rank is unknown."""
        if self._sizes is None:
            self._sizes = {}
        self._sizes.setdefault(dim, size)

    def copy_sizes(self, other: TensorValue) -> None:
        """Take over what is known of the sizes of another tensor, whose rank is unknown too."""
        if other._sizes is not None:
            self._sizes = dict(other._sizes)

    def clear_sizes(self) -> None:
        """Forget all that is known of the sizes, besides the layout: from here on they are others."""
        self._sizes = None
        self.contiguous = False

    def known_size(self, dim: int) -> Size | None:
        """The size of dimension dim, None where nobody has asked for it or told it."""
        if self.layout is not None:
            return self.layout.sizes[dim] if -len(self.layout.sizes) <= dim < len(self.layout.sizes) else None
        return self._sizes.get(dim) if self._sizes is not None else None


def requires_grad(tensor: TensorValue) -> bool | None:
    """What `tensor.requires_grad` is at this moment, None where that is not known."""
    if tensor.dtype is not None and not (is_floating(tensor.dtype) or is_complex(tensor.dtype)):
        return False
    # A view of something that a graph was written into has one, too.
    return None if tensor.graph is False and tensor.storage.grafted else tensor.graph


def tensor_row(tensor: TensorValue) -> TokenRow | None:
    """The row in a tensor as it is now: nothing is known of it once something else was written there."""
    row, storage = tensor.row, tensor.storage
    if row is None or storage.overwritten:
        return None
    return row if storage.mask is None else replace(row, mask=storage.mask)


def own_row(tensor: TensorValue) -> TokenRow | None:
    """The row in a tensor, be it one of which nothing else is known; the same each time."""
    if tensor.row is None:
        tensor.row = TokenRow(Symbol("element"))
    return tensor_row(tensor)


def join_rows(left: TokenRow | None, right: TokenRow | None) -> TokenRow | None:
    """What a tensor holds that is one of two."""
    if (
        left is None
        or right is None
        or left.start != right.start
        or (left.mask is None) != (right.mask is None)
    ):
        return None
    one, other = left.symbol, right.symbol
    if one is other:
        return left
    if isinstance(one, Id) and isinstance(other, Id):
        both = Id(one.name, one.sources | other.sources, one.added | other.added)
        return TokenRow(both, left.start, left.mask, short=left.short if left.short == right.short else None)
    return None
