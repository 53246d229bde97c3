"""Images: PIL images with known or unknown sizes, and images as tensors."""

from __future__ import annotations

from shapefix.domains.devices import CPU, placed
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, as_size, integer
from shapefix.library.numpy_arrays import as_array, new_array, numpy_dtype, with_range
from shapefix.library.ops.value_range import range_of
from shapefix.library.registry import Handler, declare, function, method, wrap_function
from shapefix.library.tensors import as_result, contiguous_result
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

IMAGE = "PIL.Image.Image"
NUMBERS = "<numbers>"
"""Field of an image of one byte per pixel, made of an array, with the range of the bytes."""
_CHANNELS = {"1": 1, "L": 1, "P": 1, "I": 1, "F": 1, "LA": 2, "RGB": 3, "HSV": 3, "LAB": 3, "YCbCr": 3}
_CHANNELS |= {"RGBA": 4, "CMYK": 4, "RGBX": 4}

declare(IMAGE, "builtins.object")


@dataclass(frozen=True, slots=True)
class Channels(Fact):
    """Number of channels of a PIL image."""

    number: Size


@dataclass(frozen=True, slots=True)
class Picture:
    """The sizes of an image; channels are None if unknown. before are a tensor's other sizes.

    Any size may be a symbol.
    """

    channels: Size | None
    height: Size
    width: Size
    before: tuple[Size, ...] = ()

    @classmethod
    def unknown(cls, channels: Size | None = None) -> Picture:
        """Image of any height and width."""
        return cls(channels, Size.symbol("H"), Size.symbol("W"))

    def resized(self, height: Size, width: Size) -> Picture:
        """The same image with another height and width."""
        return Picture(self.channels, height, width, self.before)

    def of_channels(self, channels: Size | None) -> Picture:
        """The same image with other channels."""
        return Picture(channels, self.height, self.width, self.before)


def picture_of(value: Value | None) -> Picture | None:
    """Image in a value; None for other values, and for a tensor of unknown rank."""
    if isinstance(value, LibraryObject) and value.kind == IMAGE:
        channels = value.facts.known(Channels)
        size = elements(value.fields.get("size")) or ()
        width, height = map(as_size, size) if len(size) == 2 else (None, None)
        if width is None or height is None:
            return None
        return Picture(None if channels is None else channels.number, height, width)
    if isinstance(value, TensorValue) and value.layout is not None and value.layout.rank >= 3:
        *before, channels_, height_, width_ = value.layout.sizes
        return Picture(channels_, height_, width_, tuple(before))
    return None


def image(call: Call, picture: Picture) -> LibraryObject:
    """PIL image."""
    fields: dict[str, Value] = {
        "height": integer(picture.height),
        "width": integer(picture.width),
        "size": TupleValue((integer(picture.width), integer(picture.height))),
    }
    facts = Facts() if picture.channels is None else Facts.of(Channels(picture.channels))
    return LibraryObject(IMAGE, {}, call.place, dict(fields), facts)


def tensor(call: Call, picture: Picture, op: Op, dtype: str | None = None) -> TensorValue:
    """New contiguous tensor (channels, height, width), on the CPU as a picture is."""
    channels = picture.channels if picture.channels is not None else Size.symbol("C")
    sizes = [channels, picture.height, picture.width]
    return contiguous_result(call, sizes, op, dtype=dtype, device=placed(call.ev, CPU, call.place))


def again(call: Call, value: Value, picture: Picture, op: Op) -> Value:
    """Image of the kind of value: a PIL image or a tensor."""
    if not isinstance(value, TensorValue):
        return image(call, picture)
    channels = picture.channels if picture.channels is not None else Size.symbol("C")
    layout = unknown_strides((*picture.before, channels, picture.height, picture.width))
    return as_result(call, layout, op, dtype=value.dtype, device=value.device)


@function(
    "PIL.Image.open", "torchvision.datasets.folder.default_loader", "torchvision.datasets.folder.pil_loader"
)
def opened(call: Call) -> Value:
    three = None if call.name.startswith("PIL") else Size.of(3)
    return image(call, Picture.unknown(three))


@function("PIL.Image.new")
def made(call: Call) -> Value:
    mode, size = call.constant(0, "mode"), elements(call.value(1, "size")) or ()
    sizes = [as_size(part) for part in size]
    channels = _CHANNELS.get(mode) if isinstance(mode, str) else None
    picture = Picture.unknown(None if channels is None else Size.of(channels))
    if len(sizes) == 2 and sizes[0] is not None and sizes[1] is not None:
        picture = picture.resized(sizes[1], sizes[0])
    return image(call, picture)


@function("PIL.Image.fromarray")
def from_array(call: Call) -> Value:
    """Image of the sizes of an array of bytes."""
    held = as_array(call.value(0, "obj"))
    is_plain = len(call.arguments.positional) == 1 and not call.arguments.keywords
    if held is None or held.layout is None or held.dtype != "uint8" or not is_plain:
        return image(call, Picture.unknown())
    sizes = held.layout.sizes
    if len(sizes) == 2:
        made = image(call, Picture(Size.of(1), *sizes))
        made.fields[NUMBERS] = range_of(held)
        return made
    return image(call, Picture(sizes[2], *sizes[:2]) if len(sizes) == 3 else Picture.unknown())


@method(IMAGE, "convert")
def converted(call: Call) -> Value:
    before, mode = picture_of(call.receiver), call.constant(0, "mode")
    if before is None:
        return Unknown()
    channels = _CHANNELS.get(mode) if isinstance(mode, str) else None
    return image(call, before.of_channels(None if channels is None else Size.of(channels)))


@method(IMAGE, "resize")
def resized(call: Call) -> Value:
    before, size = picture_of(call.receiver), elements(call.value(0, "size")) or ()
    sizes = [as_size(part) for part in size]
    if before is None or len(sizes) != 2 or sizes[0] is None or sizes[1] is None:
        return Unknown()
    return image(call, before.resized(sizes[1], sizes[0]))


@method(IMAGE, "copy", "filter", "point")
def same_size(call: Call) -> Value:
    return call.receiver or Unknown()


@method(IMAGE, "crop", "rotate", "transpose", "reduce", "effect_spread", "quantize", "split", "getchannel")
@method(IMAGE, "transform", "getdata", "getpixel", "paste", "save", "load", "show", "tobytes", "thumbnail")
def unknown(call: Call) -> Value:
    if call.name.endswith(("paste", "thumbnail")) and isinstance(call.receiver, LibraryObject):
        for name in ("height", "width", "size"):
            call.ev.journal.write(call.receiver.fields, name, Unknown(name))
    return Constant(None) if call.name.endswith(("save", "show", "paste", "thumbnail")) else Unknown()


_BYTES = frozenset({2, 3, 4})
"""Numbers of channels of images whose numbers are bytes; one channel may have any dtype."""


@wrap_function("numpy.array", "numpy.asarray")
def as_array_of(call: Call, handler: Handler) -> Value:
    """Array (height, width, channels) of an image."""
    given = call.value(0)
    picture = picture_of(given) if isinstance(given, LibraryObject) else None
    if picture is not None and isinstance(given, LibraryObject) and NUMBERS in given.fields:
        asked = call.value(1, "dtype")
        dtype = "uint8" if asked is None else numpy_dtype(asked)
        return with_range(
            new_array(call, contiguous([picture.height, picture.width]), dtype), given.fields[NUMBERS]
        )
    if picture is None or picture.channels is None or picture.channels.value not in _BYTES:
        return handler(call)
    asked = call.value(1, "dtype")
    dtype = "uint8" if asked is None else numpy_dtype(asked)
    return new_array(call, contiguous([picture.height, picture.width, picture.channels]), dtype)
