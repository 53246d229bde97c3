"""torchvision.models: constructors of classifiers. Architectures are only loaded when called."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.values import Unknown, Value
from shapefix.library.registry import function
from shapefix.library.signatures import arguments_under

NAMES = (
    "alexnet",
    "mobilenet_v2",
    "mobilenet_v3_large",
    "mobilenet_v3_small",
    "inception_v3",
    "googlenet",
    "squeezenet1_0",
    "squeezenet1_1",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "wide_resnet50_2",
    "wide_resnet101_2",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_64x4d",
    "vgg11",
    "vgg13",
    "vgg16",
    "vgg19",
    "vgg11_bn",
    "vgg13_bn",
    "vgg16_bn",
    "vgg19_bn",
    "densenet121",
    "densenet161",
    "densenet169",
    "densenet201",
    "efficientnet_b0",
    "efficientnet_b1",
    "efficientnet_b2",
    "efficientnet_b3",
    "efficientnet_b4",
    "efficientnet_b5",
    "efficientnet_b6",
    "efficientnet_b7",
    "efficientnet_v2_s",
    "efficientnet_v2_m",
    "efficientnet_v2_l",
    "regnet_y_400mf",
    "regnet_y_800mf",
    "regnet_y_1_6gf",
    "regnet_y_3_2gf",
    "regnet_y_8gf",
    "regnet_y_16gf",
    "regnet_y_32gf",
    "regnet_y_128gf",
    "regnet_x_400mf",
    "regnet_x_800mf",
    "regnet_x_1_6gf",
    "regnet_x_3_2gf",
    "regnet_x_8gf",
    "regnet_x_16gf",
    "regnet_x_32gf",
    "convnext_tiny",
    "convnext_small",
    "convnext_base",
    "convnext_large",
    "swin_t",
    "swin_s",
    "swin_b",
    "swin_v2_t",
    "swin_v2_s",
    "swin_v2_b",
    "vit_b_16",
    "vit_b_32",
    "vit_l_16",
    "vit_l_32",
    "vit_h_14",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0",
    "mnasnet0_5",
    "mnasnet0_75",
    "mnasnet1_0",
    "mnasnet1_3",
)


@function(*(f"torchvision.models.{name}" for name in NAMES))
def make(call: Call) -> Value:
    from shapefix.library.torchvision import classifiers

    return classifiers.make(call)


@function("torchvision.models.get_model")
def get_model(call: Call) -> Value:
    return _by_name(call, call.constant(0, "name"), frozenset({"name"}))


@function("torch.hub.load")
def load(call: Call) -> Value:
    """Load a model by name or from the hub; other functions are unknown."""
    given = arguments_under(call, "torch.hub.load")
    if (given.text("repo_or_dir") or "").partition(":")[0] != "pytorch/vision":
        return Unknown()
    return _by_name(call, given.text("model"), frozenset(given.values))


def _by_name(call: Call, name: object, own: frozenset[str]) -> Value:
    """Create the model of a given name, without the caller's own arguments."""
    from shapefix.library.torchvision import classifiers

    keywords = {key: value for key, value in call.arguments.keywords.items() if key not in own}
    return classifiers.make_by_name(call, name, Arguments([], keywords, call.arguments.open))
