"""torchvision.transforms: sizes of transformed images."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.joins import join
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, LibraryObject, Unknown, Value, as_size
from shapefix.library.nn.module import MODULE
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import BoundArguments, bound
from shapefix.library.tensors import as_result, copied_or_same, dtype_of
from shapefix.library.torchvision.images import Picture, again, image, picture_of, tensor
from shapefix.tensors.bounds import same
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_NAMESPACES = ("torchvision.transforms", "torchvision.transforms.v2", "torchvision.transforms.transforms")
_FUNCTIONS = ("torchvision.transforms.functional", "torchvision.transforms.v2.functional")

Effect = Callable[[Call, Value, BoundArguments], Value]
"""Result of a transform with these settings for an image."""
Sizing = Callable[[Picture, BoundArguments], tuple[Size, Size] | None]
"""The height and width afterwards, None if they are not known."""


_PLAIN = frozenset(
    {"Compose", "ToTensor", "PILToTensor", "ToPILImage", "Lambda", "RandomOrder", "RandomChoice"}
)
"""Transforms that are no modules in the first version of the package."""


def _register(
    names: tuple[str, ...], signature: str, effect: Effect, functions: tuple[str, ...] = ()
) -> None:
    """Register classes of transforms, and functions with the image as first argument."""
    for namespace in _NAMESPACES:
        for name in names:
            kind = f"{namespace}.{name}"
            declare(kind, "builtins.object" if name in _PLAIN and ".v2" not in namespace else MODULE)
            function(kind)(_constructor(kind, signature))
            method(kind, "__call__", "forward")(_applied(effect))
    for namespace in _FUNCTIONS:
        for name in functions:
            function(f"{namespace}.{name}")(_function(signature, effect))


def _constructor(kind: str, signature: str) -> Callable[[Call], Value]:
    def make(call: Call) -> Value:
        settings = bound(signature, call.arguments)
        return LibraryObject(kind, settings, call.place, dict(settings))

    return make


def _applied(effect: Effect) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        given = call.arguments
        if len(given.positional) != 1 or given.open or not isinstance(call.receiver, LibraryObject):
            # Version 2 transforms images and boxes together.
            return Unknown()
        if isinstance(given.positional[0], (ListValue, TupleValue, DictValue)):
            # Version 2 transforms each item of a sample.
            return Unknown()
        return effect(call, given.positional[0], BoundArguments(call.receiver.fields))

    return apply


def _function(signature: str, effect: Effect) -> Callable[[Call], Value]:
    def apply(call: Call) -> Value:
        given = call.arguments
        if not given.positional:
            return Unknown()
        rest = Arguments(given.positional[1:], given.keywords, given.open)
        return effect(call, given.positional[0], BoundArguments(bound(signature, rest)))

    return apply


def _sized(op: Op, sizing: Sizing) -> Effect:
    def effect(call: Call, value: Value, given: BoundArguments) -> Value:
        before = picture_of(value)
        if before is None:
            return TensorValue() if isinstance(value, TensorValue) else Unknown()
        sizes = sizing(before, given)
        height, width = sizes or (Size.symbol("H"), Size.symbol("W"))
        return again(call, value, before.resized(height, width), op)

    return effect


def _keep(call: Call, value: Value, given: BoundArguments) -> Value:
    """Keep the sizes, in new memory or not."""
    if isinstance(value, TensorValue):
        return copied_or_same(call, value, Op.IMAGE_TRANSFORM)
    return value if picture_of(value) is not None else Unknown()


def _pair(value: Value) -> tuple[Size, Size] | None:
    """Height and width given together or once for both."""
    items = elements(value)
    if items is None:
        # An unknown value may be one number or a pair.
        size = None if isinstance(value, Unknown) else as_size(value)
        return None if size is None else (size, size)
    sizes = [size for size in map(as_size, items) if size is not None]
    if len(sizes) < len(items) or len(sizes) not in (1, 2):
        return None
    return sizes[0], sizes[-1]


def _resized(before: Picture, given: BoundArguments) -> tuple[Size, Size] | None:
    wanted, most = given.value("size"), given.value("max_size")
    items = elements(wanted)
    if items is not None and len(items) == 2:
        return _pair(wanted)
    pair = _pair(wanted)
    if pair is None or not (isinstance(most, Constant) and most.value is None):
        return None
    # A single number is the size of the shorter edge.
    edge = pair[0]
    if same(before.height, before.width):
        return edge, edge
    height, width, short = before.height.value, before.width.value, edge.value
    if height is None or width is None or short is None:
        return None
    long = Size.of(int(short * max(height, width) / min(height, width)))
    return (edge, long) if height <= width else (long, edge)


def _cut(before: Picture, given: BoundArguments) -> tuple[Size, Size] | None:
    return _pair(given.value("size"))


def _padded(before: Picture, given: BoundArguments) -> tuple[Size, Size] | None:
    value = given.value("padding")
    items = elements(value) or ((value,) if isinstance(value, (Constant, Integer)) else ())
    sizes = [size for size in map(as_size, items) if size is not None]
    if len(sizes) < len(items) or len(sizes) not in (1, 2, 4):
        return None
    # Left, top, right, bottom.
    left, top, right, bottom = (sizes * 4)[:4]
    return before.height + top + bottom, before.width + left + right


def _turned(before: Picture, given: BoundArguments) -> tuple[Size, Size] | None:
    return (before.height, before.width) if given.flag("expand") is False else None


def _cropped(before: Picture, given: BoundArguments) -> tuple[Size, Size] | None:
    height, width = given.size("height"), given.size("width")
    return None if height is None or width is None else (height, width)


def _gray(call: Call, value: Value, given: BoundArguments) -> Value:
    before, channels = picture_of(value), given.size("num_output_channels")
    return (
        Unknown() if before is None else again(call, value, before.of_channels(channels), Op.IMAGE_GRAYSCALE)
    )


def _colored(call: Call, value: Value, given: BoundArguments) -> Value:
    before = picture_of(value)
    return Unknown() if before is None else again(call, value, before.of_channels(Size.of(3)), Op.IMAGE_RGB)


def _to_tensor(call: Call, value: Value, given: BoundArguments) -> Value:
    """Tensor (channels, height, width); a PIL image is scaled to floats."""
    before = picture_of(value)
    if isinstance(value, TensorValue) or before is None:
        # An array of numpy keeps a dtype that is not uint8.
        return tensor(call, Picture.unknown(), Op.IMAGE_TO_TENSOR)
    return tensor(call, before, Op.IMAGE_TO_TENSOR, None if before.channels is None else "float32")


def _to_image(call: Call, value: Value, given: BoundArguments) -> Value:
    """Tensor of bytes of the same sizes."""
    before = picture_of(value)
    if isinstance(value, TensorValue):
        return copied_or_same(call, value, Op.IMAGE_TRANSFORM)
    dtype = None if before is None or before.channels is None else "uint8"
    return tensor(call, before or Picture.unknown(), Op.IMAGE_TO_TENSOR, dtype)


def _to_pil(call: Call, value: Value, given: BoundArguments) -> Value:
    before = picture_of(value) if isinstance(value, TensorValue) else None
    return image(call, before if before is not None and not before.before else Picture.unknown())


def _converted(call: Call, value: Value, given: BoundArguments) -> Value:
    if not isinstance(value, TensorValue):
        return value if picture_of(value) is not None else Unknown()
    made = copied_or_same(call, value, Op.TO_DTYPE)
    made.dtype = dtype_of(given.value("dtype"))
    return made


def _normalized(call: Call, value: Value, given: BoundArguments) -> Value:
    if not isinstance(value, TensorValue):
        return Unknown()
    return as_result(call, value.layout, Op.IMAGE_NORMALIZE, dtype=value.dtype, device=value.device)


def _called(call: Call, value: Value, given: BoundArguments) -> Value:
    return call_value(call.ev, given.value("lambd"), Arguments([value]), call.place.node)


def _composed(call: Call, value: Value, given: BoundArguments) -> Value:
    """Apply one transform after another."""
    steps = elements(given.value("transforms"))
    if steps is None:
        return Unknown()
    for step in steps:
        value = call_value(call.ev, step, Arguments([value]), call.place.node)
    return value


def _sometimes(call: Call, value: Value, given: BoundArguments) -> Value:
    either: Value = join(value, _composed(call, value, given))
    return either


def _one_of(call: Call, value: Value, given: BoundArguments) -> Value:
    steps = elements(given.value("transforms"))
    if not steps:
        return Unknown()
    made = [call_value(call.ev, step, Arguments([value]), call.place.node) for step in steps]
    either: Value = reduce(join, made)
    return either


def _nothing(call: Call, value: Value, given: BoundArguments) -> Value:
    return Unknown()


_register(("Compose",), "transforms", _composed)
_register(("RandomApply",), "transforms, p=0.5", _sometimes)
_register(("RandomChoice",), "transforms, p=None", _one_of)
_register(("RandomOrder", "FiveCrop", "TenCrop", "LinearTransformation"), "*, _=None", _nothing)
_register(("Lambda",), "lambd", _called)
_register(("ToTensor",), "*, _=None", _to_tensor, ("to_tensor",))
_register(("PILToTensor", "ToImage"), "*, _=None", _to_image, ("pil_to_tensor", "to_image"))
_register(("ToPILImage",), "mode=None", _to_pil, ("to_pil_image",))
_register(("ConvertImageDtype",), "dtype", _converted, ("convert_image_dtype", "to_dtype"))
_register(("ToDtype",), "dtype, scale=False", _converted)
_register(("Normalize",), "mean, std, inplace=False", _normalized, ("normalize",))
_register(
    ("Resize",),
    "size, interpolation=2, max_size=None, antialias=True",
    _sized(Op.IMAGE_RESIZE, _resized),
    ("resize",),
)
_register(("CenterCrop",), "size", _sized(Op.IMAGE_CROP, _cut), ("center_crop",))
_register(
    ("RandomCrop",),
    "size, padding=None, pad_if_needed=False, fill=0, padding_mode='constant'",
    _sized(Op.IMAGE_CROP, _cut),
)
_register(("RandomResizedCrop",), "size, scale=None, ratio=None", _sized(Op.IMAGE_CROP, _cut))
_register((), "top, left, height, width", _sized(Op.IMAGE_CROP, _cropped), ("crop",))
_register((), "top, left, height, width, size", _sized(Op.IMAGE_CROP, _cut), ("resized_crop",))
_register(("Pad",), "padding, fill=0, padding_mode='constant'", _sized(Op.PAD, _padded), ("pad",))
_register(("RandomRotation",), "degrees, interpolation=0, expand=False", _sized(Op.IMAGE_ROTATE, _turned))
_register((), "angle, interpolation=0, expand=False", _sized(Op.IMAGE_ROTATE, _turned), ("rotate",))
_register(("Grayscale",), "num_output_channels=1", _gray, ("rgb_to_grayscale", "to_grayscale"))
_register(("RGB",), "*, _=None", _colored)
_register(
    (
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "ColorJitter",
        "RandomAffine",
        "RandomPerspective",
        "RandomErasing",
        "GaussianBlur",
        "GaussianNoise",
        "RandomGrayscale",
        "RandomInvert",
        "RandomPosterize",
        "RandomSolarize",
        "RandomEqualize",
        "RandomAdjustSharpness",
        "RandomAutocontrast",
        "AutoAugment",
        "RandAugment",
        "TrivialAugmentWide",
        "AugMix",
        "Identity",
        "ElasticTransform",
    ),
    "*, _=None",
    _keep,
    (
        "hflip",
        "vflip",
        "horizontal_flip",
        "vertical_flip",
        "adjust_brightness",
        "adjust_contrast",
        "adjust_saturation",
        "adjust_hue",
        "adjust_gamma",
        "gaussian_blur",
        "affine",
    ),
)
