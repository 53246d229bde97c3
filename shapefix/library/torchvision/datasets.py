"""torchvision.datasets: images and labels of popular datasets."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.values import (
    TEXT,
    Constant,
    Integer,
    LibraryObject,
    Unknown,
    Value,
    as_size,
    integer,
)
from shapefix.library.data.torch_datasets import DATASET
from shapefix.library.nn.layers import fields_of
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import bound
from shapefix.library.tensors import contiguous_result
from shapefix.library.torchvision.images import Picture, image
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_NAMESPACE = "torchvision.datasets"
_SPLIT = "root, split=None, transform=None, target_transform=None, download=False"
_TRAIN = "root, train=True, transform=None, target_transform=None, download=False"


@dataclass(frozen=True, slots=True)
class _Known:
    """Dataset: signature of its class, its images (None for differing sizes), and their number.

    sizes are (channels, height, width); lengths those of the training and the test part. labels is True if
    targets are ints.
    """

    signature: str
    sizes: tuple[int, int | None, int | None]
    lengths: tuple[int, int] | None = None
    classes: int | None = None
    labels: bool = True
    tensors: bool = False


_FOLDER = "root, transform=None, target_transform=None, loader=None, is_valid_file=None, allow_empty=False"
_COLORED = (3, None, None)
_KNOWN = {
    "MNIST": _Known(_TRAIN, (1, 28, 28), (60000, 10000), 10, tensors=True),
    "FashionMNIST": _Known(_TRAIN, (1, 28, 28), (60000, 10000), 10, tensors=True),
    "KMNIST": _Known(_TRAIN, (1, 28, 28), (60000, 10000), 10, tensors=True),
    "EMNIST": _Known(
        "root, split, *, train=True, transform=None, target_transform=None, download=False", (1, 28, 28)
    ),
    "CIFAR10": _Known(_TRAIN, (3, 32, 32), (50000, 10000), 10),
    "CIFAR100": _Known(_TRAIN, (3, 32, 32), (50000, 10000), 100),
    "SVHN": _Known(_SPLIT, (3, 32, 32)),
    "USPS": _Known(_TRAIN, (1, 16, 16), (7291, 2007)),
    "STL10": _Known(
        "root, split='train', folds=None, transform=None, target_transform=None, download=False", (3, 96, 96)
    ),
    "PCAM": _Known(_SPLIT, (3, 96, 96)),
    "EuroSAT": _Known("root, transform=None, target_transform=None, download=False", (3, 64, 64)),
    "ImageFolder": _Known(_FOLDER, _COLORED),
    "ImageNet": _Known(
        "root, split='train', *, transform=None, target_transform=None, loader=None", _COLORED
    ),
    "Food101": _Known(_SPLIT, _COLORED, None, 101),
    "Flowers102": _Known(_SPLIT, _COLORED),
    "StanfordCars": _Known(_SPLIT, _COLORED),
    "GTSRB": _Known(_SPLIT, _COLORED),
    "DTD": _Known(
        "root, split='train', partition=1, transform=None, target_transform=None, download=False", _COLORED
    ),
    "CelebA": _Known(
        "root, split='train', target_type='attr', transform=None, target_transform=None, download=False",
        (3, 218, 178),
        labels=False,
    ),
    "FakeData": _Known(
        "size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, target_transform=None, "
        "random_offset=0",
        _COLORED,
    ),
}
_OF_KIND = {f"{_NAMESPACE}.{name}": known for name, known in _KNOWN.items()}


def _make(call: Call) -> Value:
    settings = bound(_OF_KIND[call.name].signature, call.arguments)
    if "transforms" in call.arguments.keywords:
        settings["transform"] = settings["target_transform"] = Unknown("transforms")
    return LibraryObject(call.name, settings, call.place, dict(settings))


for _kind in _OF_KIND:
    declare(_kind, DATASET)
    function(_kind)(_make)


def _known(call: Call) -> _Known | None:
    """Known facts of the receiver; None for an object of a derived project class."""
    return _OF_KIND.get(call.receiver.kind) if isinstance(call.receiver, LibraryObject) else None


def _sample(call: Call) -> Value:
    """Image and its label, transformed."""
    known, fields = _known(call), fields_of(call.receiver)
    if known is None:
        return Unknown()
    loader = fields.get("loader")
    by_default = loader is None or (isinstance(loader, Constant) and loader.value is None)
    picture = _picture(known, fields)
    pixels = image(call, picture) if by_default and picture is not None else Unknown("image")
    label: Value = Integer(Size.symbol("label", least=0)) if known.labels else Unknown("label")
    transformed = _transformed(call, fields["transform"], pixels)
    return TupleValue((transformed, _transformed(call, fields["target_transform"], label)))


def _picture(known: _Known, fields: dict[str, Value]) -> Picture | None:
    if "image_size" in fields:
        asked = [as_size(part) for part in elements(fields["image_size"]) or ()]
        if len(asked) != 3 or asked[1] is None or asked[2] is None:
            return None
        return Picture(asked[0], asked[1], asked[2])
    channels, height, width = known.sizes
    picture = Picture.unknown(Size.of(channels))
    return picture if height is None or width is None else picture.resized(Size.of(height), Size.of(width))


def _transformed(call: Call, transform: Value, value: Value) -> Value:
    if isinstance(transform, Constant) and transform.value is None:
        return value
    return call_value(call.ev, transform, Arguments([value]), call.place.node)


def _length(call: Call) -> Size | None:
    known, part = _known(call), fields_of(call.receiver).get("train")
    if known is None or known.lengths is None or not isinstance(part, Constant):
        return None
    return Size.of(known.lengths[0 if part.value else 1])


def _counted(call: Call) -> Value:
    length = _length(call)
    return Unknown("len") if length is None else integer(length)


def _iterated(call: Call) -> Value:
    return ListValue(None, _sample(call), _length(call))


def _classes(call: Call) -> Value:
    known = _known(call)
    count = None if known is None or known.classes is None else Size.of(known.classes)
    return ListValue(None, TEXT, count)


def _data(call: Call) -> Value:
    """All images: a tensor for MNIST; an array or nothing for other datasets."""
    known = _known(call)
    if known is None or not known.tensors:
        return Unknown("data")
    length = _length(call) or Size.symbol("N")
    return contiguous_result(call, [length, Size.of(28), Size.of(28)], Op.DATASET_ITEM, dtype="uint8")


def _targets(call: Call) -> Value:
    known = _known(call)
    if known is None or not known.tensors:
        return Unknown("targets")
    return contiguous_result(call, [_length(call) or Size.symbol("N")], Op.DATASET_ITEM, dtype="int64")


for _kind in _OF_KIND:
    method(_kind, "__getitem__")(_sample)
    method(_kind, "__len__")(_counted)
    method(_kind, "__iter__")(_iterated)
    method(_kind, "@classes")(_classes)
    method(_kind, "@data")(_data)
    method(_kind, "@targets")(_targets)
