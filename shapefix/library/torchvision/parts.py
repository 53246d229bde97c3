"""Parts of architectures: layers, stages of blocks, the steps between them."""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.interpreter.facts import Fact
from shapefix.light_dataclasses import dataclass

CLASSES = "num_classes"
"""Placeholder for the requested number of classes."""


@dataclass(frozen=True, slots=True)
class Layer:
    """Layer of torch.nn, or a stage of blocks, created with these arguments."""

    kind: str
    settings: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """Step of forward between its children, not a child: "flatten", "mean" or "pool"."""

    name: str


class Named(dict[str, "Part"]):
    """Sequential with named children."""


Part = Layer | Stage | Named | list["Part"]
"""One part; a list is a Sequential."""


@dataclass(frozen=True, slots=True)
class Architecture(Fact):
    """Class of torchvision and its children by name, with named steps between them.

    extra are children that forward does not run one after another; auxiliary is True if a model in training
    may return more than one result.
    """

    kind: str
    children: Mapping[str, Part]
    extra: Mapping[str, Part]
    auxiliary: bool = False


def conv(inner: int, outer: int | str, kernel: int, stride: int = 1, padding: int = 0) -> Layer:
    """Conv2d."""
    return Layer("torch.nn.Conv2d", (inner, outer, kernel, stride, padding))


def linear(inner: int, outer: int | str = CLASSES) -> Layer:
    """Linear."""
    return Layer("torch.nn.Linear", (inner, outer))


def norm(channels: int) -> Layer:
    """BatchNorm2d."""
    return Layer("torch.nn.BatchNorm2d", (channels,))


def pool(kernel: int, stride: int, padding: int = 0, *, up: bool = False) -> Layer:
    """MaxPool2d; up rounds sizes up."""
    return Layer("torch.nn.MaxPool2d", (kernel, stride, padding, 1, False, up))


def average(size: int) -> Layer:
    """AdaptiveAvgPool2d."""
    return Layer("torch.nn.AdaptiveAvgPool2d", (size,))


def stage(inner: int, outer: int, stride: int = 1) -> Layer:
    """Blocks of padded convolutions, the first of them with this stride."""
    return Layer(STAGE, (inner, outer, 3, stride, 1))


def body(outer: int, dim: int = 1) -> Layer:
    """Layers for images of so many channels, in dimension dim, of other sizes."""
    return Layer(BODY, (outer, dim))


STAGE, BODY, PERMUTE = "torchvision.models.Stage", "torchvision.models.Body", "torchvision.ops.Permute"
RELU, DROPOUT = Layer("torch.nn.ReLU"), Layer("torch.nn.Dropout")
FLATTEN = Stage("flatten")
MEAN = Stage("mean")
"""The mean over height and width."""
POOL = Stage("pool")
