"""torchvision's models, transforms and datasets: their sizes, as its sources state them.

torchvision is no dependency, so nothing here runs it. Its layers are those of torch, which other tests
compare with torch itself; these hold the sizes that its documentation and its sources give.
"""

from __future__ import annotations

import pytest
from checking import Check
from differential import interpret, revealed

from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Value
from shapefix.library.torchvision.architectures import ARCHITECTURES
from shapefix.library.torchvision.models import NAMES
from shapefix.tensors.errors import SizeMismatch

IMPORTS = """
import torch
import torchvision
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Subset, random_split
from torchvision import datasets, models, transforms
from torchvision.transforms import v2
images = torch.randn(8, 3, 224, 224)
"""


def shown(source: str) -> list[str]:
    return [_text(value) for value in revealed(IMPORTS + source)]


def _text(value: Value | None) -> str:
    if isinstance(value, TensorValue):
        sizes = "?" if value.layout is None else ", ".join(map(str, value.layout.sizes))
        return f"{value.dtype or '?'}[{sizes}]"
    if isinstance(value, TupleValue):
        return f"({', '.join(map(_text, value.items))})"
    return str(value.value) if isinstance(value, Constant) else "?"


def refused(source: str) -> list[OpRejected]:
    return [event for event in interpret(IMPORTS + source) if isinstance(event, OpRejected)]


HEADS = {
    "resnet18": ("fc", 512),
    "resnet34": ("fc", 512),
    "resnet50": ("fc", 2048),
    "resnet101": ("fc", 2048),
    "resnet152": ("fc", 2048),
    "wide_resnet50_2": ("fc", 2048),
    "resnext50_32x4d": ("fc", 2048),
    "alexnet": ("classifier[6]", 4096),
    "vgg11": ("classifier[6]", 4096),
    "vgg16": ("classifier[6]", 4096),
    "vgg19_bn": ("classifier[-1]", 4096),
    "densenet121": ("classifier", 1024),
    "densenet161": ("classifier", 2208),
    "densenet169": ("classifier", 1664),
    "densenet201": ("classifier", 1920),
    "mobilenet_v2": ("classifier[1]", 1280),
    "mobilenet_v3_small": ("classifier[3]", 1024),
    "mobilenet_v3_large": ("classifier[3]", 1280),
    "efficientnet_b0": ("classifier[1]", 1280),
    "efficientnet_b3": ("classifier[1]", 1536),
    "efficientnet_b7": ("classifier[1]", 2560),
    "efficientnet_v2_s": ("classifier[1]", 1280),
    "convnext_tiny": ("classifier[2]", 768),
    "convnext_large": ("classifier[2]", 1536),
    "swin_t": ("head", 768),
    "swin_v2_b": ("head", 1024),
    "vit_b_16": ("heads.head", 768),
    "vit_l_32": ("heads.head", 1024),
    "shufflenet_v2_x1_0": ("fc", 1024),
    "mnasnet1_0": ("classifier[1]", 1280),
    "regnet_y_400mf": ("fc", 440),
    "inception_v3": ("fc", 2048),
    "googlenet": ("fc", 1024),
}


@pytest.mark.parametrize("name", HEADS)
def test_the_layer_that_is_replaced_takes_as_many_features_as_the_body_gives(name: str) -> None:
    head, features = HEADS[name]
    model = (
        f"model = models.{name}(aux_logits=False)"
        if name in ("inception_v3", "googlenet")
        else (f"model = models.{name}(weights='DEFAULT')")
    )
    right, wrong = f"nn.Linear({features}, 10)", f"nn.Linear({features} + 1, 10)"
    assert shown(f"{model}\nreveal(model.{head}.in_features)") == [str(features)]
    assert shown(f"{model}\nmodel.{head} = {right}\nreveal(model(images))")[0].endswith("[8, 10]")
    (event,) = refused(f"{model}\nmodel.{head} = {wrong}\nmodel(images)")
    assert isinstance(event.error, SizeMismatch)
    assert (event.error.have.value, event.error.want.value) == (features, features + 1)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_model_takes_images_and_gives_a_score_for_each_class(name: str) -> None:
    extra = "aux_logits=False, " if name in ("inception_v3", "googlenet") else ""
    source = f"reveal(models.{name}({extra}num_classes=7)(images))"
    assert [text.rpartition("[")[2] for text in shown(source)] == ["8, 7]"]
    assert not refused(source)
    (event,) = refused(f"models.{name}()(torch.randn(8, 1, 224, 224))")
    assert event.function == "torch.nn.Conv2d"


@pytest.mark.parametrize(
    ("part", "sizes"),
    [
        ("nn.Sequential(*list(models.resnet50().children())[:-1])", "8, 2048, 1, 1"),
        ("nn.Sequential(*list(models.resnet18().children())[:-2])", "8, 512, 7, 7"),
        ("models.vgg16().features", "8, 512, 7, 7"),
        ("models.alexnet().features", "8, 256, 6, 6"),
        ("models.mobilenet_v2().features", "8, 1280, 7, 7"),
        ("models.mobilenet_v3_small().features", "8, 576, 7, 7"),
        ("models.efficientnet_b4().features", "8, 1792, 7, 7"),
        ("models.convnext_small().features", "8, 768, 7, 7"),
        ("models.vgg16().features[:5]", "8, 64, 112, 112"),
    ],
)
def test_parts_of_models_give_the_channels_and_sizes_of_their_last_layer(part: str, sizes: str) -> None:
    (text,) = shown(f"reveal({part}(images))")
    assert text.endswith(f"[{sizes}]")


@pytest.mark.parametrize(
    ("layers", "sizes"),
    [
        (
            "models.densenet161().features",
            "96,49,57 96,49,57 96,49,57 96,25,29 384,25,29 192,12,14 768,12,14 384,6,7 2112,6,7 1056,3,3"
            " 2208,3,3 2208,3,3",
        ),
        (
            "models.squeezenet1_0().features",
            "96,46,54 96,46,54 96,23,27 128,23,27 128,23,27 256,23,27 256,11,13 256,11,13 384,11,13"
            " 384,11,13 512,11,13 512,5,6 512,5,6",
        ),
        (
            "models.squeezenet1_1().features",
            "64,48,56 64,48,56 64,24,28 128,24,28 128,24,28 128,12,14 256,12,14 256,12,14 256,6,7"
            " 384,6,7 384,6,7 512,6,7 512,6,7",
        ),
        (
            "models.mnasnet0_5().layers",
            "16,49,57 16,49,57 16,49,57 16,49,57 16,49,57 16,49,57 8,49,57 8,49,57 16,25,29 24,13,15"
            " 40,7,8 48,7,8 96,4,4 160,4,4 1280,4,4 1280,4,4 1280,4,4",
        ),
    ],
)
def test_layers_give_the_sizes_that_torchvision_gives(layers: str, sizes: str) -> None:
    """Executed with torchvision 0.29."""
    steps = [f"x = layers[{number}](x)\nreveal(x)" for number in range(len(sizes.split()))]
    texts = shown("\n".join((f"layers = list({layers})", "x = torch.randn(1, 3, 97, 113)", *steps)))
    assert [text.partition("[1, ")[2][:-1].replace(" ", "") for text in texts] == sizes.split()


def test_swin_has_its_channels_last() -> None:
    steps = [f"x = models.swin_t().features[{number}](x)\nreveal(x)" for number in range(8)]
    text = "\n".join(("x = torch.randn(1, 3, 96, 96)", *steps))
    last = [row.rstrip("]").rpartition(" ")[2] for row in shown(text)]
    assert last == ["96", "96", "192", "192", "384", "384", "768", "768"]


@pytest.mark.parametrize(
    "change",
    [
        "model = models.resnet18()\nmodel.conv1 = nn.Conv2d(1, 64, 7, 2, 3)",
        "model = models.densenet121()\nmodel.features.conv0 = nn.Conv2d(1, 64, 7, 2, 3)",
        "model = models.vgg11()\nmodel.features[0] = nn.Conv2d(1, 64, 3, padding=1)",
        "model = models.efficientnet_b0()\nmodel.features[0][0] = nn.Conv2d(1, 32, 3, 2, 1)",
        "model = models.resnet18()\nsetattr(model, 'conv1', nn.Conv2d(1, 64, 7, 2, 3))",
        "model = models.vgg11()\nmodel.features[choose()] = nn.Conv2d(1, 64, 3, padding=1)",
        "model = models.resnet18()\nmodel.forward = lambda x: x",
    ],
)
def test_a_first_layer_that_was_replaced_is_what_it_was_replaced_by(change: str) -> None:
    assert not refused(f"{change}\nmodel(torch.randn(8, 1, 224, 224))")


@pytest.mark.parametrize(
    ("change", "sizes"),
    [
        ("model.fc = nn.Identity()", "8, 2048"),
        ("model.fc = nn.Sequential(nn.Linear(2048, 64), nn.ReLU(), nn.Linear(64, 5))", "8, 5"),
        ("model.fc = nn.Linear(model.fc.in_features, 3)", "8, 3"),
        ("model.avgpool = nn.AdaptiveAvgPool2d(1)", "8, 1000"),
        ("model = model.to('cuda').eval()", "8, 1000"),
        ("for p in model.parameters():\n    p.requires_grad = False", "8, 1000"),
    ],
)
def test_what_stands_in_the_place_of_the_last_layer_decides(change: str, sizes: str) -> None:
    source = f"model = models.resnet50()\n{change}\nreveal(model(images))"
    assert shown(source)[0].endswith(f"[{sizes}]")
    assert not refused(source)


def test_every_function_that_makes_a_model_has_an_architecture() -> None:
    assert sorted(ARCHITECTURES) == sorted(NAMES)


def test_arguments_that_change_the_layers_make_a_model_unknown() -> None:
    assert shown("reveal(models.mobilenet_v2(width_mult=0.5).classifier[1].in_features)") == ["?"]


def test_models_come_from_the_hub_and_by_their_names_too() -> None:
    hub = "torch.hub.load('pytorch/vision:v0.10.0', 'resnet18', pretrained=True)"
    assert shown(f"reveal({hub}(images))\nreveal(models.get_model('resnet34', num_classes=4)(images))") == [
        *shown("reveal(models.resnet18()(images))"),
        *shown("reveal(models.resnet34(num_classes=4)(images))"),
    ]


TRANSFORMS = [
    ("transforms.ToTensor()", "float32[3, 30, 40]"),
    ("v2.ToImage()", "uint8[3, 30, 40]"),
    ("transforms.PILToTensor()", "uint8[3, 30, 40]"),
    ("transforms.Compose([transforms.Resize((16, 24)), transforms.ToTensor()])", "float32[3, 16, 24]"),
    ("transforms.Compose([transforms.Resize([16, 24]), transforms.ToTensor()])", "float32[3, 16, 24]"),
    ("transforms.Compose([transforms.Resize(15), transforms.ToTensor()])", "float32[3, 15, 20]"),
    ("transforms.Compose([transforms.CenterCrop(20), transforms.ToTensor()])", "float32[3, 20, 20]"),
    ("transforms.Compose([transforms.RandomResizedCrop(9), transforms.ToTensor()])", "float32[3, 9, 9]"),
    ("transforms.Compose([transforms.Grayscale(), transforms.ToTensor()])", "float32[1, 30, 40]"),
    ("transforms.Compose([transforms.Grayscale(3), transforms.ToTensor()])", "float32[3, 30, 40]"),
    ("transforms.Compose([transforms.Pad(2), transforms.ToTensor()])", "float32[3, 34, 44]"),
    ("transforms.Compose([transforms.Pad((1, 2)), transforms.ToTensor()])", "float32[3, 34, 42]"),
    ("transforms.Compose([transforms.Pad((1, 2, 3, 4)), transforms.ToTensor()])", "float32[3, 36, 44]"),
    (
        "transforms.Compose([transforms.ToTensor(), transforms.RandomCrop(32, padding=4)])",
        "float32[3, 32, 32]",
    ),
    (
        "transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])",
        "float32[3, 30, 40]",
    ),
    ("transforms.Compose([transforms.RandomRotation(10), transforms.ToTensor()])", "float32[3, 30, 40]"),
    ("transforms.Compose([transforms.ToTensor(), transforms.Lambda(torch.flatten)])", "float32[3600]"),
    ("transforms.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])", "float32[3, 30, 40]"),
]


@pytest.mark.parametrize(("transform", "expected"), TRANSFORMS)
def test_transforms_leave_the_sizes_that_they_are_asked_for(transform: str, expected: str) -> None:
    image = "Image.open('x.png').convert('RGB').resize((40, 30))"
    assert shown(f"reveal(({transform})({image}))") == [expected]


def test_what_a_transform_leaves_open_is_a_symbol() -> None:
    (text,) = shown("reveal(transforms.ToTensor()(Image.open('x.png')))")
    assert text == "?[C, H, W]"
    (text,) = shown(
        "reveal(transforms.Compose([transforms.Resize(9), transforms.ToTensor()])(Image.open('x')))"
    )
    assert text == "?[C, H, W]"


def batches(dataset: str, settings: str = "batch_size=64") -> list[str]:
    return shown(
        f"for images, labels in DataLoader({dataset}, {settings}):\n    reveal(images)\n    reveal(labels)"
    )


TENSOR = "transform=transforms.ToTensor()"


@pytest.mark.parametrize(
    ("dataset", "sizes"),
    [
        (f"datasets.MNIST('data', train=True, download=True, {TENSOR})", "1, 28, 28"),
        (f"datasets.FashionMNIST('data', {TENSOR})", "1, 28, 28"),
        ("datasets.MNIST('data', True, transforms.ToTensor())", "1, 28, 28"),
        (f"torchvision.datasets.CIFAR10(root='data', {TENSOR})", "3, 32, 32"),
        (f"datasets.CIFAR100('data', {TENSOR})", "3, 32, 32"),
        (f"datasets.SVHN('data', split='train', {TENSOR})", "3, 32, 32"),
        (f"datasets.STL10('data', {TENSOR})", "3, 96, 96"),
        (f"datasets.ImageFolder('data', {TENSOR})", "3, H, W"),
        (f"datasets.FakeData(10, (3, 8, 9), {TENSOR})", "3, 8, 9"),
        ("datasets.ImageFolder('data', TF)", "3, 64, 64"),
        (f"Subset(datasets.CIFAR10('data', {TENSOR}), [1, 2])", "3, 32, 32"),
        (f"random_split(datasets.CIFAR10('data', {TENSOR}), [0.8, 0.2])[1]", "3, 32, 32"),
    ],
)
def test_batches_of_datasets_hold_images_and_labels(dataset: str, sizes: str) -> None:
    dataset = dataset.replace(
        "TF", "transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor()])"
    )
    images, labels = batches(dataset)
    assert images.startswith("float32[")
    assert images.endswith(f", {sizes}]")
    assert labels.startswith("int64[")


def test_datasets_have_the_lengths_and_tensors_that_they_are_published_with() -> None:
    source = """
train, test = datasets.MNIST("data"), datasets.MNIST("data", train=False)
reveal(len(train))
reveal(len(test))
reveal(train.data)
reveal(test.targets)
reveal(len(train.classes))
"""
    assert shown(source) == ["60000", "10000", "uint8[60000, 28, 28]", "int64[10000]", "10"]


@pytest.mark.parametrize("transform", ["None", "load()", "transforms.Compose(load())"])
def test_samples_that_are_no_tensors_for_certain_are_not_known(transform: str) -> None:
    images, _ = batches(f"datasets.MNIST('data', transform={transform})")
    assert images == "?"


def test_images_that_nobody_flattened_are_refused_by_a_linear_layer() -> None:
    (event,) = refused(
        f"""
loader = DataLoader(datasets.MNIST('data', {TENSOR}), batch_size=64)
model = nn.Sequential(nn.Linear(784, 10))
for images, labels in loader:
    model(images)
"""
    )
    assert isinstance(event.error, SizeMismatch)
    assert (event.error.have.value, event.error.want.value) == (28, 784)


def test_the_strided_layers_of_a_model_leave_the_sizes_that_torch_computes() -> None:
    """A convolution of kernel 3, stride 2 and padding 1 stands for a whole stage."""
    import torch

    for size in (28, 33, 224):
        rows = torch.nn.Conv2d(3, 4, 7, 2, 3)(torch.zeros(1, 3, size, size))
        rows = torch.nn.MaxPool2d(3, 2, 1)(rows)
        for _ in range(3):
            rows = torch.nn.Conv2d(4, 4, 3, 2, 1)(rows)
        last = tuple(rows.shape[2:])
        source = f"""
body = nn.Sequential(*list(models.resnet18().children())[:-2])
reveal(body(torch.randn(1, 3, {size}, {size})))
"""
        (value,) = revealed(IMPORTS + source)
        assert isinstance(value, TensorValue)
        assert value.layout is not None
        assert tuple(each.value for each in value.layout.sizes) == (1, 512, *last)


PLAIN = "class Images(nn.Module):\n    def __init__(self):\n        self.transform = {}\nimages = Images()\n"


@pytest.mark.parametrize(
    ("transform", "is_module"),
    [
        ("transforms.Compose([])", False),
        ("transforms.ToTensor()", False),
        ("transforms.Lambda(abs)", False),
        ("transforms.Resize(8)", True),
        ("v2.Compose([])", True),
        ("v2.ToImage()", True),
    ],
)
def test_transforms_of_the_first_version_are_no_modules_where_the_sources_say_so(
    transform: str, is_module: bool, check: Check
) -> None:
    assert bool(check(IMPORTS + PLAIN.format(transform), {"SF608"})) == is_module
