"""The parts that architectures are written in: layers, stages of blocks, the steps between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

CLASSES = "num_classes"
"""Stands for the number of classes that the model is asked for."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of torch.nn, or a stage of blocks, made with these arguments."""

    kind: str
    settings: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Stage:
    """What forward does between its children, that is no child: "flatten", "mean" or "pool"."""

    name: str


class Named(dict[str, "Part"]):
    """A Sequential whose children have names."""


Part = Layer | Stage | Named | list["Part"]
"""A list stands for a Sequential."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A class of torchvision and its children by name, the steps between them under names of their own.

    extra are children that forward does not run one after another; auxiliary tells that a model in training
    may return more than one result.
    """

    kind: str
    children: Mapping[str, Part]
    extra: Mapping[str, Part]
    auxiliary: bool = False


def conv(inner: int, outer: int | str, kernel: int, stride: int = 1, padding: int = 0) -> Layer:
    """A Conv2d."""
    return Layer("torch.nn.Conv2d", (inner, outer, kernel, stride, padding))


def linear(inner: int, outer: int | str = CLASSES) -> Layer:
    """A Linear."""
    return Layer("torch.nn.Linear", (inner, outer))


def norm(channels: int) -> Layer:
    """A BatchNorm2d."""
    return Layer("torch.nn.BatchNorm2d", (channels,))


def pool(kernel: int, stride: int, padding: int = 0, *, up: bool = False) -> Layer:
    """A MaxPool2d; up rounds sizes up."""
    return Layer("torch.nn.MaxPool2d", (kernel, stride, padding, 1, False, up))


def average(size: int) -> Layer:
    """An AdaptiveAvgPool2d."""
    return Layer("torch.nn.AdaptiveAvgPool2d", (size,))


def stage(inner: int, outer: int, stride: int = 1) -> Layer:
    """Blocks of padded convolutions, the first of them with this stride."""
    return Layer(STAGE, (inner, outer, 3, stride, 1))


def body(outer: int, dim: int = 1) -> Layer:
    """Many layers that give images of so many channels, which stand in dimension dim, of other sizes."""
    return Layer(BODY, (outer, dim))


STAGE, BODY, PERMUTE = "torchvision.models.Stage", "torchvision.models.Body", "torchvision.ops.Permute"
RELU, DROPOUT = Layer("torch.nn.ReLU"), Layer("torch.nn.Dropout")
FLATTEN = Stage("flatten")
MEAN = Stage("mean")
"""The mean over height and width."""
POOL = Stage("pool")
