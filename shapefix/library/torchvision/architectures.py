"""Children of torchvision's image classifiers, in the order of execution.

From the sources of torchvision 0.29, never executed: it is not a dependency. `sizes.json` holds the sizes of
the published models of each family.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

from shapefix.library.torchvision.parts import (
    CLASSES,
    DROPOUT,
    FLATTEN,
    MEAN,
    PERMUTE,
    POOL,
    RELU,
    Architecture,
    Layer,
    Named,
    Part,
    average,
    body,
    conv,
    linear,
    norm,
    pool,
    stage,
)


def _resnet(width: int, outer: int) -> Architecture:
    children: dict[str, Part] = {
        "conv1": conv(3, 64, 7, 2, 3),
        "bn1": norm(64),
        "relu": RELU,
        "maxpool": pool(3, 2, 1),
        "layer1": stage(64, width),
        "layer2": stage(width, 2 * width, 2),
        "layer3": stage(2 * width, 4 * width, 2),
        "layer4": stage(4 * width, outer, 2),
        "avgpool": average(1),
        "(flatten)": FLATTEN,
        "fc": linear(outer),
    }
    return Architecture("resnet.ResNet", children, {})


def _vgg(layers: str, *, normalized: bool) -> Architecture:
    features: list[Part] = []
    channels = 3
    for word in layers.split():
        if word == "M":
            features.append(pool(2, 2))
        else:
            features.append(conv(channels, int(word), 3, 1, 1))
            channels = int(word)
            features += [norm(channels), RELU] if normalized else [RELU]
    children: dict[str, Part] = {
        "features": features,
        "avgpool": average(7),
        "(flatten)": FLATTEN,
        "classifier": [
            linear(512 * 7 * 7, 4096), RELU, DROPOUT, linear(4096, 4096), RELU, DROPOUT, linear(4096)
        ],
    }  # fmt: skip
    return Architecture("vgg.VGG", children, {})


def _alexnet() -> Architecture:
    children: dict[str, Part] = {
        "features": [
            conv(3, 64, 11, 4, 2), RELU, pool(3, 2), conv(64, 192, 5, 1, 2), RELU, pool(3, 2),
            conv(192, 384, 3, 1, 1), RELU, conv(384, 256, 3, 1, 1), RELU, conv(256, 256, 3, 1, 1), RELU,
            pool(3, 2),
        ],
        "avgpool": average(6),
        "(flatten)": FLATTEN,
        "classifier": [
            DROPOUT, linear(256 * 6 * 6, 4096), RELU, DROPOUT, linear(4096, 4096), RELU, linear(4096)
        ],
    }  # fmt: skip
    return Architecture("alexnet.AlexNet", children, {})


def _densenet(first: int, growth: int, blocks: Sequence[int]) -> Architecture:
    features = Named(conv0=conv(3, first, 7, 2, 3), norm0=norm(first), relu0=RELU, pool0=pool(3, 2, 1))
    channels = first
    for number, count in enumerate(blocks, start=1):
        if number > 1:
            half = Layer("torch.nn.AvgPool2d", (2, 2))
            features[f"transition{number - 1}"] = Named(
                norm=norm(channels), relu=RELU, conv=conv(channels, channels // 2, 1), pool=half
            )
            channels //= 2
        features[f"denseblock{number}"] = stage(channels, channels + growth * count)
        channels += growth * count
    features["norm5"] = norm(channels)
    children: dict[str, Part] = {
        "features": features,
        "(pool)": POOL,
        "(flatten)": FLATTEN,
        "classifier": linear(channels),
    }
    return Architecture("densenet.DenseNet", children, {})


def _stem(channels: int) -> list[Part]:
    return [conv(3, channels, 3, 2, 1), norm(channels), Layer("torch.nn.SiLU")]


def _mobilenet_v2() -> Architecture:
    stages = ((16, 1, 1), (24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1))
    features: list[Part] = [_stem(32)]
    channels = 32
    for outer, count, stride in stages:
        for position in range(count):
            features.append(stage(channels, outer, 1 if position else stride))
            channels = outer
    features.append([conv(320, 1280, 1), norm(1280), RELU])
    return _pooled("mobilenetv2.MobileNetV2", features, [DROPOUT, linear(1280)], by_child=False)


def _mobilenet_v3(blocks: str, last: int) -> Architecture:
    features: list[Part] = [_stem(16)]
    channels = 16
    for word in blocks.split():
        outer, _, stride = word.partition("/")
        features.append(stage(channels, int(outer), int(stride or 1)))
        channels = int(outer)
    features.append([conv(channels, 6 * channels, 1), norm(6 * channels), RELU])
    classifier: list[Part] = [linear(6 * channels, last), Layer("torch.nn.Hardswish"), DROPOUT, linear(last)]
    return _pooled("mobilenetv3.MobileNetV3", features, classifier)


def _efficientnet(stages: str, last: int) -> Architecture:
    first, *rest = stages.split()
    channels = int(first)
    features: list[Part] = [_stem(channels)]
    for word in rest:
        outer, _, stride = word.partition("/")
        features.append([stage(channels, int(outer), int(stride or 1))])
        channels = int(outer)
    features.append([conv(channels, last, 1), norm(last), Layer("torch.nn.SiLU")])
    return _pooled("efficientnet.EfficientNet", features, [DROPOUT, linear(last)])


def _convnext(channels: int) -> Architecture:
    features: list[Part] = [[conv(3, channels, 4, 4), Layer("torch.nn.Identity")]]
    for width in (channels, 2 * channels, 4 * channels):
        features += [[stage(width, width)], [Layer("torch.nn.Identity"), conv(width, 2 * width, 2, 2)]]
    last = 8 * channels
    features.append([stage(last, last)])
    children: dict[str, Part] = {
        "features": features,
        "avgpool": average(1),
        # The first layer is a LayerNorm over the channels of images.
        "classifier": [Layer("torch.nn.Identity"), Layer("torch.nn.Flatten", (1,)), linear(last)],
    }
    return Architecture("convnext.ConvNeXt", children, {})


def _pooled(
    kind: str, features: Sequence[Part], classifier: Sequence[Part], *, by_child: bool = True
) -> Architecture:
    """Features, the mean of each channel, and a classifier; the mean may be a mere function call."""
    children: dict[str, Part] = {
        "features": list(features),
        **({"avgpool": average(1)} if by_child else {"(pool)": POOL}),
        "(flatten)": FLATTEN,
        "classifier": list(classifier),
    }
    return Architecture(kind, children, {})


def _squeezenet(first: Layer, fires: str) -> Architecture:
    outer = first.settings[1]
    assert isinstance(outer, int)
    features: list[Part] = [first, RELU]
    channels = outer
    for word in fires.split():
        features.append(pool(3, 2, up=True) if word == "M" else stage(channels, int(word)))
        channels = channels if word == "M" else int(word)
    children: dict[str, Part] = {
        "features": features,
        "classifier": [DROPOUT, conv(512, CLASSES, 1), RELU, average(1)],
        "(flatten)": FLATTEN,
    }
    return Architecture("squeezenet.SqueezeNet", children, {})


def _shufflenet(widths: Sequence[int], last: int) -> Architecture:
    one, two, three = widths
    children: dict[str, Part] = {
        "conv1": [conv(3, 24, 3, 2, 1), norm(24), RELU],
        "maxpool": pool(3, 2, 1),
        "stage2": stage(24, one, 2),
        "stage3": stage(one, two, 2),
        "stage4": stage(two, three, 2),
        "conv5": [conv(three, last, 1), norm(last), RELU],
        "(mean)": MEAN,
        "fc": linear(last),
    }
    return Architecture("shufflenetv2.ShuffleNetV2", children, {})


def _mnasnet(stem: int, outers: Sequence[int]) -> Architecture:
    first, *rest = outers
    layers: list[Part] = [conv(3, stem, 3, 2, 1), norm(stem), RELU]
    by_channel = Layer("torch.nn.Conv2d", (stem, stem, 3, 1, 1, 1, stem))
    layers += [by_channel, norm(stem), RELU, conv(stem, first, 1), norm(first)]
    channels = first
    for outer, stride in zip(rest, (2, 2, 2, 1, 2, 1), strict=True):
        layers.append(stage(channels, outer, stride))
        channels = outer
    children: dict[str, Part] = {
        "layers": [*layers, conv(channels, 1280, 1), norm(1280), RELU],
        "(mean)": MEAN,
        "classifier": [DROPOUT, linear(1280)],
    }
    return Architecture("mnasnet.MNASNet", children, {})


def _regnet(last: int) -> Architecture:
    children: dict[str, Part] = {
        "stem": [conv(3, 32, 3, 2, 1), norm(32), RELU],
        "trunk_output": body(last),
        "avgpool": average(1),
        "(flatten)": FLATTEN,
        "fc": linear(last),
    }
    return Architecture("regnet.RegNet", children, {})


def _inception() -> Architecture:
    children: dict[str, Part] = {
        "Conv2d_1a_3x3": Named(conv=conv(3, 32, 3, 2), bn=norm(32)),
        "(body)": body(2048),
        "avgpool": average(1),
        "dropout": DROPOUT,
        "(flatten)": FLATTEN,
        "fc": linear(2048),
    }
    return Architecture("inception.Inception3", children, {"AuxLogits": Named(fc=linear(768))}, True)


def _googlenet() -> Architecture:
    children: dict[str, Part] = {
        "conv1": Named(conv=conv(3, 64, 7, 2, 3), bn=norm(64)),
        "(body)": body(1024),
        "avgpool": average(1),
        "(flatten)": FLATTEN,
        "dropout": DROPOUT,
        "fc": linear(1024),
    }
    return Architecture("googlenet.GoogLeNet", children, {}, True)


def _vit(width: int, patch: int) -> Architecture:
    children: dict[str, Part] = {
        "conv_proj": conv(3, width, patch, patch),
        # The encoder's first token, of as many features.
        "(mean)": MEAN,
        "heads": Named(head=linear(width)),
    }
    extra: dict[str, Part] = {"encoder": Layer("torch.nn.Identity")}
    return Architecture("vision_transformer.VisionTransformer", children, extra)


def _swin(width: int) -> Architecture:
    last = 8 * width
    children: dict[str, Part] = {
        # The channels come last from the first layer to the second permutation.
        "features": [
            [conv(3, width, 4, 4), Layer(PERMUTE, (0, 2, 3, 1)), Layer("torch.nn.LayerNorm", (width,))],
            *(body(width << number // 2, 3) for number in range(1, 8)),
        ],
        "norm": Layer("torch.nn.LayerNorm", (last,)),
        "permute": Layer(PERMUTE, (0, 3, 1, 2)),
        "avgpool": average(1),
        "flatten": Layer("torch.nn.Flatten", (1,)),
        "head": linear(last),
    }
    return Architecture("swin_transformer.SwinTransformer", children, {})


_FAMILIES: Mapping[str, tuple[str, Callable[..., Architecture]]] = {
    "resnet": ("", _resnet),
    "mobilenet_v3": ("mobilenet_v3_", _mobilenet_v3),
    "densenet": ("densenet", _densenet),
    "efficientnet": ("efficientnet_", _efficientnet),
    "vit": ("vit_", _vit),
    "shufflenet_v2": ("shufflenet_v2_x", _shufflenet),
}
"""Beginning of the names, and constructor, of the families with several sizes for each model."""


def _sizes() -> dict[str, dict[str, Any]]:
    """Sizes of the published models by family, then by the rest of the name."""
    found: dict[str, dict[str, Any]] = json.loads(
        (files("shapefix.library.torchvision") / "sizes.json").read_text(encoding="utf-8")
    )
    return found


def _all() -> dict[str, Callable[[], Architecture]]:
    sizes = _sizes()
    made: dict[str, Callable[[], Architecture]] = {
        "alexnet": _alexnet,
        "mobilenet_v2": _mobilenet_v2,
        "inception_v3": _inception,
        "googlenet": _googlenet,
        "squeezenet1_0": partial(_squeezenet, conv(3, 96, 7, 2), "M 128 128 256 M 256 384 384 512 M 512"),
        "squeezenet1_1": partial(_squeezenet, conv(3, 64, 3, 2), "M 128 128 M 256 256 M 384 384 512 512"),
    }
    for family, (prefix, make) in _FAMILIES.items():
        made |= {f"{prefix}{key}": partial(make, **row) for key, row in sizes[family].items()}
    for depth, layers in sizes["vgg"].items():
        made[f"vgg{depth}"] = partial(_vgg, layers, normalized=False)
        made[f"vgg{depth}_bn"] = partial(_vgg, layers, normalized=True)
    for key, width in sizes["swin"].items():
        made[f"swin_{key}"] = made[f"swin_v2_{key}"] = partial(_swin, width)
    made |= {f"regnet_{key}": partial(_regnet, last) for key, last in sizes["regnet"].items()}
    made |= {f"convnext_{key}": partial(_convnext, width) for key, width in sizes["convnext"].items()}
    made |= {f"mnasnet{key}": partial(_mnasnet, **row) for key, row in sizes["mnasnet"].items()}
    return made


ARCHITECTURES = _all()
"""Constructors of the architectures, by the name of torchvision's function."""
