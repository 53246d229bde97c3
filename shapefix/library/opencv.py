"""Pictures of OpenCV: arrays of bytes with their rows first and their channels last."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FLOAT, Constant, Reference, Unknown, Value, as_size
from shapefix.library.numpy_arrays import as_array, new_array
from shapefix.library.registry import function
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.polynomials import Size

_THREE = frozenset({"BGR", "RGB", "HSV", "HLS", "Lab", "LAB", "Luv", "LUV", "YUV", "YCrCb", "YCR_CB", "XYZ"})
_CHANNELS = {**dict.fromkeys(_THREE, 3), "BGRA": 4, "RGBA": 4, "GRAY": 1}


@function("cv2.imread")
def read(call: Call) -> Value:
    """Picture of any size; three channels unless the flags ask for others."""
    flags = call.value(1, "flags")
    name = flags.name.rpartition(".")[2] if isinstance(flags, Reference) else None
    number = flags.value if isinstance(flags, Constant) else None
    sizes = [Size.symbol("H"), Size.symbol("W")]
    if flags is None or name in ("IMREAD_COLOR", "IMREAD_COLOR_BGR", "IMREAD_COLOR_RGB") or number == 1:
        sizes.append(Size.of(3))
    elif name != "IMREAD_GRAYSCALE" and number != 0:
        return Unknown()
    return new_array(call, contiguous(sizes), "uint8") if not call.arguments.open else Unknown()


@function("cv2.cvtColor")
def converted(call: Call) -> Value:
    """Picture in another color space, named by `cv2.COLOR_BGR2RGB`."""
    held, code = as_array(call.value(0, "src")), call.value(1, "code")
    name = code.name.rpartition(".")[2].removeprefix("COLOR_") if isinstance(code, Reference) else ""
    source, _, target = name.partition("2")
    if (
        held is None
        or source not in _CHANNELS
        or target not in _CHANNELS
        or "dstCn" in call.arguments.keywords
    ):
        return Unknown()
    layout = held.layout
    if layout is not None and layout.rank in (2, 3) and len(call.arguments.positional) <= 2:
        count = _CHANNELS[target]
        layout = contiguous([*layout.sizes[:2], *([Size.of(count)] if count > 1 else [])])
    else:
        layout = None
    return new_array(call, layout, held.dtype, held)


@function("cv2.resize")
def resized(call: Call) -> Value:
    """Picture of the given width and height; a last dimension of 1 is dropped."""
    held, size = as_array(call.value(0, "src")), elements(call.value(1, "dsize"))
    if held is None:
        return Unknown()
    wanted = [as_size(part) for part in size or ()]
    width, height = wanted if len(wanted) == 2 else (None, None)
    return new_array(call, _of_sizes(held, height, width), held.dtype, held)


def _of_sizes(held: TensorValue, height: Size | None, width: Size | None) -> Layout | None:
    if held.layout is None or held.layout.rank not in (2, 3):
        return None
    sizes = [height or Size.symbol("H"), width or Size.symbol("W")]
    if held.layout.rank == 3:
        channels = held.layout.sizes[2].value
        if channels is None:
            return None
        sizes += [Size.of(channels)] if channels > 1 else []
    return contiguous(sizes)


@function("cv2.flip", "cv2.GaussianBlur", "cv2.medianBlur", "cv2.blur", "cv2.bilateralFilter")
def filtered(call: Call) -> Value:
    """Picture of the same sizes."""
    held = as_array(call.value(0, "src"))
    if held is None:
        return Unknown()
    layout = None if held.layout is None else _of_sizes(held, *held.layout.sizes[:2])
    return new_array(call, layout, held.dtype, held)


@function("cv2.threshold")
def thresholded(call: Call) -> Value:
    held = as_array(call.value(0, "src"))
    if held is None:
        return Unknown()
    layout = None if held.layout is None else _of_sizes(held, *held.layout.sizes[:2])
    return TupleValue((FLOAT, new_array(call, layout, held.dtype, held)))
