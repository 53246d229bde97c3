"""Tensors as values: their layout and its trace, and their shared memory."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

import libcst as cst

from shapefix.interpreter.base import Value
from shapefix.interpreter.modules import Place
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.dtypes import is_complex, is_floating
from shapefix.tensors.layout import Layout
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol, TokenId

START = Size.of(0)


class DeviceKind(Enum):
    """Kind of a device: CHOSEN by the machine or a setting (CPU or GPU), SHARED with a tensor or module
    without further known facts.
    """

    CPU = "cpu"
    GPU = "gpu"
    CHOSEN = "chosen"
    SHARED = "shared"


@dataclass(frozen=True, eq=False, slots=True)
class Device:
    """A device, as far as the code says.

    name is torch's: "cuda:1". symbol is the same object for two devices that are known to be equal. place is
    the code that created something there or moved it; by_default is True for the CPU of code that names no
    device. within is the method of a module, `forward` or `__init__`, in which no device was named, there or
    where the device was taken from. source is the device that the code took this one from, `x.device`;
    of_weights is True for the result of a layer on the CPU.
    """

    kind: DeviceKind
    name: str = ""
    symbol: object = None
    place: Place | None = None
    within: cst.FunctionDef | None = None
    by_default: bool = False
    source: Device | None = None
    of_weights: bool = False

    @property
    def may_be_gpu(self) -> bool:
        """Check whether the code itself sent the value to a device, certainly or possibly a GPU."""
        return self.kind in (DeviceKind.GPU, DeviceKind.CHOSEN)


def is_same_device(one: Device | None, two: Device | None) -> bool:
    """Check whether two devices are certainly the same."""
    if one is None or two is None or one.kind is not two.kind:
        return False
    if one.kind in (DeviceKind.CPU, DeviceKind.GPU):
        return one.name == two.name
    return one.symbol is two.symbol


def join_devices(one: Device | None, two: Device | None) -> Device | None:
    """Join the devices of two tensors."""
    return one if is_same_device(one, two) else None


class LayoutStep:
    """One operation in the life of a tensor's layout, and the one before it.

    function is the function that was being run, None at the top level of a file. before is the step whose
    layout was taken over; source is the last one of the tensor that this one was computed from, and producer
    the layer that did it. dim is the dimension that a softmax normalizes, or that of the samples after a
    padding, None if it is not known, and for other operations. detail follows the operation's text. condition
    is what must hold for the tensor to be the one before, in words, empty if that is certain; otherwise it is
    a copy, with another layout. has_open_rank is True for an operation that takes tensors of more dimensions,
    too.
    """

    __slots__ = (
        "before",
        "condition",
        "detail",
        "dim",
        "function",
        "has_open_rank",
        "layout",
        "op",
        "place",
        "producer",
        "source",
    )

    def __init__(
        self,
        place: Place,
        op: Op,
        layout: Layout | None,
        before: LayoutStep | None,
        function: cst.CSTNode | None,
    ) -> None:
        self.place = place
        self.op = op
        self.layout = layout
        self.before = before
        self.function = function
        self.source = before
        self.producer: Value | None = None
        self.dim: int | None = None
        self.detail = ""
        self.condition = ""
        self.has_open_rank = False

    @property
    def text(self) -> str:
        """Operation as shown in evidence: "transposed", "converted to float32"."""
        return self.op.text + self.detail

    @property
    def first(self) -> LayoutStep:
        """The first operation of the tensor."""
        step = self
        while step.source is not None:
            step = step.source
        return step


@dataclass(frozen=True, eq=False, slots=True)
class LabelMask:
    """Place of a write of -100 among ids; leading is True for the beginning of a row."""

    place: Place
    leading: bool


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Row in the last dimension of a tensor or list: any one element, and the start within its row.

    Two values of the same symbol hold the same row, perhaps with another start. cut is the place that moved
    the start; short is the number of elements missing at the end, None if unknown.
    """

    symbol: Symbol
    start: Size = START
    mask: LabelMask | None = None
    cut: Place | None = None
    short: int | None = 0


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The smallest and the largest element of a tensor of integers.

    drawn is True for random numbers: these are the bounds, which any of them may reach. values are all
    numbers that there may be, None if only the ends are known.
    """

    least: Size
    most: Size
    drawn: bool = False
    values: frozenset[int] | None = None


class Storage:
    """Memory shared by a tensor with all its views, and the writes to it.

    mask is the place of -100, overwritten is True for any other write, on some path. grafted is True if a
    value was written that may carry a graph. whole is the array with all of it, once another one is a view.
    """

    __slots__ = ("grafted", "mask", "overwritten", "whole")

    def __init__(self) -> None:
        self.mask: LabelMask | None = None
        self.overwritten = False
        self.grafted = False
        self.whole: TensorValue | None = None

    @property
    def is_written(self) -> bool:
        """Whether elements may have changed since the tensor was made, to -100 or otherwise."""
        return self.overwritten or self.mask is not None


def other_memory(*known: Storage) -> Storage:
    """Memory of a tensor with one of these or another one, as after `x.set_(y)` on some paths."""
    memory = Storage()
    memory.overwritten, memory.grafted = True, any(each.grafted for each in known)
    return memory


class CutKind(Enum):
    """How a graph ends: an OPERATION without a gradient, code RUN without recording, FROZEN parameters."""

    OPERATION = "operation"
    UNRECORDED = "unrecorded"
    FROZEN = "frozen"


@dataclass(frozen=True, eq=False, slots=True)
class GraphCut:
    """End of a graph: an operation at a place, by its qualified name, with a result without a graph.

    is_known is whether an operand certainly had a graph, or would have had one if torch recorded; is_list is
    whether the first operand is a list. switch is the code that stopped the recording or froze the weights.
    """

    kind: CutKind
    place: Place
    operation: str
    is_known: bool
    is_list: bool = False
    switch: Place | None = None


class TensorValue(Value):
    """Tensor: sizes and strides if the rank is known, dtype and device if known.

    certain is False for a value that may be another array, since numpy has slices, too. contiguous is True
    for a contiguous tensor of unknown rank. views are the calls of `.view` and `.reshape` since its storage
    was created. row is the row in its last dimension, before writes to the storage; extremes are its smallest
    and largest element, likewise, None if they are not known. graph is whether it requires a gradient,
    None if unknown; sources are the tensors that gradients flow back to, cut the operation that ended the
    graph. own is True for a parameter or a buffer of a module, which converts it together with itself.
    """

    __slots__ = (
        "_sizes",
        "certain",
        "contiguous",
        "cut",
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
        self.cut: GraphCut | None = None
        self.own = False
        self._sizes: dict[int, Size] | None = None

    def size(self, dim: int, new: Size | None = None) -> Size:
        """Size of dimension dim; an unknown one is the same symbol each time, new if it is given.

        Raises IndexError if the tensor has no such dimension.
        """
        if self.layout is not None:
            return self.layout.sizes[dim]
        if self._sizes is None:
            self._sizes = {}
        if dim not in self._sizes:
            self._sizes[dim] = Size.symbol(f"size({dim})") if new is None else new
        return self._sizes[dim]

    def set_size(self, dim: int, size: Size) -> None:
        """Set a size of a tensor of unknown rank."""
        if self._sizes is None:
            self._sizes = {}
        self._sizes.setdefault(dim, size)

    def copy_sizes(self, other: TensorValue) -> None:
        """Copy the known sizes of another tensor of unknown rank."""
        if other._sizes is not None:
            self._sizes = dict(other._sizes)

    def clear_sizes(self) -> None:
        """Forget all known sizes, besides the layout: from now on they are others."""
        self._sizes = None
        self.contiguous = False

    def known_size(self, dim: int) -> Size | None:
        """Size of dimension dim; None if it is neither known nor has a symbol."""
        if self.layout is not None:
            return self.layout.sizes[dim] if -len(self.layout.sizes) <= dim < len(self.layout.sizes) else None
        return self._sizes.get(dim) if self._sizes is not None else None

    def known_sizes(self, rank: int) -> list[Size | None]:
        """The known size of each dimension, if there are rank dimensions."""
        return [self.known_size(dim) or self.known_size(dim - rank) for dim in range(rank)]


def requires_grad(tensor: TensorValue) -> bool | None:
    """`tensor.requires_grad` at this moment, None if unknown."""
    if tensor.dtype is not None and not (is_floating(tensor.dtype) or is_complex(tensor.dtype)):
        return False
    # A view of storage with a graph written into it has one, too.
    return None if tensor.graph is False and tensor.storage.grafted else tensor.graph


def tensor_row(tensor: TensorValue) -> TokenRow | None:
    """Current row in a tensor: unknown after a write of other values."""
    row, storage = tensor.row, tensor.storage
    if row is None or storage.overwritten:
        return None
    return row if storage.mask is None else replace(row, mask=storage.mask)


def own_row(tensor: TensorValue) -> TokenRow | None:
    """Row in a tensor, even without known facts; the same each time."""
    if tensor.row is None:
        tensor.row = TokenRow(Symbol("element"))
    return tensor_row(tensor)


def join_rows(left: TokenRow | None, right: TokenRow | None) -> TokenRow | None:
    """Join the rows of two tensors."""
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
    if isinstance(one, TokenId) and isinstance(other, TokenId):
        both = TokenId(one.name, one.sources | other.sources, one.added | other.added)
        return TokenRow(both, left.start, left.mask, short=left.short if left.short == right.short else None)
    return None
