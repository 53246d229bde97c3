"""Children of torchvision's image classifiers, in the order of execution.

From the sources of torchvision 0.29, never executed: it is not a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

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


_VGG = {
    11: "64 M 128 M 256 256 M 512 512 M 512 512 M",
    13: "64 64 M 128 128 M 256 256 M 512 512 M 512 512 M",
    16: "64 64 M 128 128 M 256 256 256 M 512 512 512 M 512 512 512 M",
    19: "64 64 M 128 128 M 256 256 256 256 M 512 512 512 512 M 512 512 512 512 M",
}


def _vgg(depth: int, *, normalized: bool) -> Architecture:
    features: list[Part] = []
    channels = 3
    for word in _VGG[depth].split():
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


def _densenet(first: int, last: int) -> Architecture:
    features = Named(
        conv0=conv(3, first, 7, 2, 3),
        norm0=norm(first),
        relu0=RELU,
        pool0=pool(3, 2, 1),
        denseblocks=body(last),
        norm5=norm(last),
    )
    children: dict[str, Part] = {
        "features": features,
        "(pool)": POOL,
        "(flatten)": FLATTEN,
        "classifier": linear(last),
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


def _squeezenet(first: Layer) -> Architecture:
    outer = first.settings[1]
    assert isinstance(outer, int)
    children: dict[str, Part] = {
        "features": [first, RELU, pool(3, 2, up=True), body(512)],
        "classifier": [DROPOUT, conv(512, CLASSES, 1), RELU, average(1)],
        "(flatten)": FLATTEN,
    }
    return Architecture("squeezenet.SqueezeNet", children, {})


def _shufflenet(widths: tuple[int, int, int], last: int) -> Architecture:
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


def _mnasnet(channels: int) -> Architecture:
    children: dict[str, Part] = {
        "layers": [conv(3, channels, 3, 2, 1), norm(channels), RELU, body(1280)],
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
            body(last, 3),
        ],
        "norm": Layer("torch.nn.LayerNorm", (last,)),
        "permute": Layer(PERMUTE, (0, 3, 1, 2)),
        "avgpool": average(1),
        "flatten": Layer("torch.nn.Flatten", (1,)),
        "head": linear(last),
    }
    return Architecture("swin_transformer.SwinTransformer", children, {})


_V3_LARGE = "16 24/2 24 40/2 40 40 80/2 80 80 80 112 112 160/2 160 160"
_V3_SMALL = "16/2 24/2 24 40/2 40 40 48 48 96/2 96 96"
_EFFICIENTNETS = {
    "b0": ("32 16 24/2 40/2 80/2 112 192/2 320", 1280),
    "b1": ("32 16 24/2 40/2 80/2 112 192/2 320", 1280),
    "b2": ("32 16 24/2 48/2 88/2 120 208/2 352", 1408),
    "b3": ("40 24 32/2 48/2 96/2 136 232/2 384", 1536),
    "b4": ("48 24 32/2 56/2 112/2 160 272/2 448", 1792),
    "b5": ("48 24 40/2 64/2 128/2 176 304/2 512", 2048),
    "b6": ("56 32 40/2 72/2 144/2 200 344/2 576", 2304),
    "b7": ("64 32 48/2 80/2 160/2 224 384/2 640", 2560),
    "v2_s": ("24 24 48/2 64/2 128/2 160 256/2", 1280),
    "v2_m": ("24 24 48/2 80/2 160/2 176 304/2 512", 1280),
    "v2_l": ("32 32 64/2 96/2 192/2 224 384/2 640", 1280),
}
_REGNETS = {
    "y_400mf": 440, "y_800mf": 784, "y_1_6gf": 888, "y_3_2gf": 1512, "y_8gf": 2016, "y_16gf": 3024,
    "y_32gf": 3712, "y_128gf": 7392, "x_400mf": 400, "x_800mf": 672, "x_1_6gf": 912, "x_3_2gf": 1008,
    "x_8gf": 1920, "x_16gf": 2048, "x_32gf": 2520,
}  # fmt: skip


_DEEP = (
    "resnet50",
    "resnet101",
    "resnet152",
    "wide_resnet50_2",
    "wide_resnet101_2",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
)
_DENSENETS = {"121": (64, 1024), "161": (96, 2208), "169": (64, 1664), "201": (64, 1920)}
_CONVNEXTS = {"tiny": 96, "small": 96, "base": 128, "large": 192}
_SWINS = {"t": 96, "s": 96, "b": 128}
_VITS = {"b_16": (768, 16), "b_32": (768, 32), "l_16": (1024, 16), "l_32": (1024, 32), "h_14": (1280, 14)}
_SHUFFLENETS = {
    "0_5": ((48, 96, 192), 1024),
    "1_0": ((116, 232, 464), 1024),
    "1_5": ((176, 352, 704), 1024),
    "2_0": ((244, 488, 976), 2048),
}
_MNASNETS = {"0_5": 16, "0_75": 24, "1_0": 32, "1_3": 40}


def _all() -> dict[str, Callable[[], Architecture]]:
    made: dict[str, Callable[[], Architecture]] = {
        "alexnet": _alexnet,
        "mobilenet_v2": _mobilenet_v2,
        "mobilenet_v3_large": partial(_mobilenet_v3, _V3_LARGE, 1280),
        "mobilenet_v3_small": partial(_mobilenet_v3, _V3_SMALL, 1024),
        "inception_v3": _inception,
        "googlenet": _googlenet,
        "squeezenet1_0": partial(_squeezenet, conv(3, 96, 7, 2)),
        "squeezenet1_1": partial(_squeezenet, conv(3, 64, 3, 2)),
    }
    made |= {name: partial(_resnet, 64, 512) for name in ("resnet18", "resnet34")}
    made |= {name: partial(_resnet, 256, 2048) for name in _DEEP}
    made |= {f"vgg{depth}": partial(_vgg, depth, normalized=False) for depth in _VGG}
    made |= {f"vgg{depth}_bn": partial(_vgg, depth, normalized=True) for depth in _VGG}
    made |= {f"densenet{key}": partial(_densenet, *sizes) for key, sizes in _DENSENETS.items()}
    made |= {f"efficientnet_{key}": partial(_efficientnet, *sizes) for key, sizes in _EFFICIENTNETS.items()}
    made |= {f"regnet_{key}": partial(_regnet, last) for key, last in _REGNETS.items()}
    made |= {f"convnext_{key}": partial(_convnext, channels) for key, channels in _CONVNEXTS.items()}
    for infix in ("", "v2_"):
        made |= {f"swin_{infix}{key}": partial(_swin, width) for key, width in _SWINS.items()}
    made |= {f"vit_{key}": partial(_vit, *sizes) for key, sizes in _VITS.items()}
    made |= {f"shufflenet_v2_x{key}": partial(_shufflenet, *sizes) for key, sizes in _SHUFFLENETS.items()}
    made |= {f"mnasnet{key}": partial(_mnasnet, channels) for key, channels in _MNASNETS.items()}
    return made


ARCHITECTURES = _all()
"""Constructors of the architectures, by the name of torchvision's function."""
