"""What conversions of a module do to its buffers and bare parameters, as torch has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import Check
from differential import IMPORTS, compare, executed, revealed

from shapefix.domains.gradients import carries_graph
from shapefix.engine.analysis import FileAnalyzer
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

MODULES = {
    "normalization": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
                self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1), False)
                self.conv = nn.Conv2d(3, 8, 3)
        net = Net()
        {convert}
        reveal(net.mean), reveal(net.std)
    """,
    "whole numbers and truth values": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("ids", torch.arange(4))
                self.register_buffer("mask", torch.ones(4, 4).tril() == 0)
                self.register_buffer("gates", torch.ones(4))
        net = Net()
        {convert}
        reveal(net.ids), reveal(net.mask), reveal(net.gates)
    """,
    "bare parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(4))
                self.fixed = nn.Parameter(torch.ones(4), requires_grad=False)
                self.offset = nn.Buffer(torch.zeros(4))
                self.register_parameter("shift", nn.Parameter(torch.zeros(4)))
        net = Net()
        {convert}
        reveal(net.scale), reveal(net.fixed), reveal(net.offset), reveal(net.shift)
    """,
    "plain attributes": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.table = torch.ones(4)
                self.parts = [nn.Parameter(torch.ones(4))]
        net = Net()
        {convert}
        reveal(net.table), reveal(net.parts[0])
    """,
    "below other modules": """
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("freq", 1.0 / torch.arange(1, 5).float())
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = Inner()
                self.some = nn.Sequential(nn.Linear(4, 4), Inner())
                self.list = nn.ModuleList([Inner()])
        net = Net()
        {convert}
        reveal(net.one.freq), reveal(net.some[1].freq), reveal(net.list[0].freq)
    """,
    "lists of parameters": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weights = nn.ParameterList([nn.Parameter(torch.ones(4)), nn.Parameter(torch.zeros(2))])
                self.named = nn.ParameterDict({{"one": nn.Parameter(torch.ones(4))}})
        net = Net()
        {convert}
        reveal(net.weights[0]), reveal(net.weights[1]), reveal(net.named["one"])
    """,
    "a buffer that is assigned": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.zeros(4))
                self.register_buffer("later", None)
        net = Net()
        net.state = net.state + torch.ones(4)
        net.later = torch.ones(4)
        {convert}
        reveal(net.state), reveal(net.later)
    """,
    "what the code had taken out": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.zeros(4))
                self.scale = nn.Parameter(torch.ones(4))
        net = Net()
        state, scale, copied = net.state, net.scale, net.scale + 1
        {convert}
        reveal(state), reveal(scale), reveal(copied), reveal(net.state), reveal(net.scale)
    """,
    "a part only": """
        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("freq", torch.ones(4))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = Inner()
                self.other = Inner()
        whole = Net()
        net = whole.one
        {convert}
        reveal(whole.one.freq), reveal(whole.other.freq)
    """,
    "complex": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("turns", torch.ones(4, dtype=torch.complex64))
                self.register_buffer("gates", torch.ones(4))
        net = Net()
        {convert}
        reveal(net.turns), reveal(net.gates)
    """,
}
CONVERSIONS = (
    "net.half()",
    "net.bfloat16()",
    "net.double()",
    "net.float()",
    "net.half().float()",
    "net.to(torch.float16)",
    "net.to(dtype=torch.bfloat16)",
    "net.to('cpu', torch.float64)",
    "net.to(device='cpu', dtype=torch.float16)",
    "net.to(torch.zeros(1).half())",
    "net.to('cpu')",
    "net.type(torch.float16)",
    "net = net.eval().half()",
    "if sizes(): net.half()",
    "for _ in range(2): net.half()",
    "nn.Module.half(net)",
    "nn.Module.to(net, torch.float64)",
    "for p in net.parameters(): p.data = p.data.double()",
    "for _, p in net.named_parameters(): p.data = p.data.to(torch.float64)",
    "for b in net.buffers(): b.data = b.data.double()",
    "for m in net.modules(): m.double()",
    "for m in net.children(): m.double()",
    "for _, m in net.named_modules(): m.to(torch.float64)",
    "net.apply(lambda m: m.double())",
    "net._apply(lambda t: t.double())",
    "net.load_state_dict({{k: v.double() for k, v in net.state_dict().items()}}, assign=True)",
)


@pytest.mark.filterwarnings(
    "ignore:Casting complex values to real", "ignore:Complex modules are a new feature"
)
@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("name", MODULES)
def test_dtypes_are_those_of_torch(name: str, convert: str) -> None:
    source = MODULES[name].format(convert=convert.format())
    ours, real = revealed(source), executed(source)
    assert len(ours) == len(real) > 0
    for one, other in zip(ours, real, strict=True):
        compare(one, other)


KNOWN = ("normalization", "whole numbers and truth values", "bare parameters", "below other modules")


@pytest.mark.parametrize("name", KNOWN)
def test_the_dtypes_are_known(name: str) -> None:
    for convert in ("net.half()", "net.to(torch.bfloat16)", "net.double()", "net.to('cpu', torch.float16)"):
        for one in revealed(MODULES[name].format(convert=convert)):
            assert isinstance(one, TensorValue)
            assert one.dtype is not None


CLASSIFIER = (
    IMPORTS
    + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        self.scale = nn.Parameter(torch.ones(3, 1, 1))
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, x):
        return self.conv((x - self.mean) / self.std * self.scale)

net = Net().{convert}
y = net(torch.zeros(1, 3, 8, 8, dtype={dtype}))
"""
)


@pytest.mark.parametrize("convert", ["half()", "bfloat16()", "double()", "to(torch.bfloat16)", "float()"])
@pytest.mark.parametrize("dtype", ["torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"])
def test_a_normalized_image_is_refused_where_torch_refuses_it(
    convert: str, dtype: str, tmp_path: Path
) -> None:
    text = CLASSIFIER.format(convert=convert, dtype=dtype)
    analyst = FileAnalyzer(Project(str(tmp_path)), frozenset({"SF512"}))
    findings = analyst.analyze("script.py", SourceText("script.py", text)).diagnostics
    try:
        exec(text, {})
    except RuntimeError as error:
        message = str(error)
    else:
        message = ""
    assert bool(message) == bool(findings)
    assert not message or "should be the same" in message or "same dtype" in message


CHANGES = (
    "for p in net.parameters(): p.data = p.data.half()",
    "for m in net.modules(): m.half()",
    "for m in net.children(): m.half()",
    "for m in net: m.half()",
    "for _, m in net.named_modules(): m.to(torch.float16)",
    "for m in net.modules():\n    if isinstance(m, nn.Linear): m.half()",
    "net.apply(lambda m: m.half())",
    "def low(m):\n    if isinstance(m, nn.Linear): m.half()\nnet.apply(low)",
    "def low(model):\n    for p in model.parameters():\n        p.data = p.data.half()\nlow(net)",
    "net._apply(lambda t: t.half())",
    "nn.Module.half(net)",
    "net.load_state_dict({k: v.half() for k, v in net.state_dict().items()}, assign=True)",
    "net[0].weight.data = net[0].weight.data.half(); net[0].bias.data = net[0].bias.data.half()",
    "net[0].weight = nn.Parameter(net[0].weight.half()); net[0].bias = nn.Parameter(net[0].bias.half())",
    "for m in net.modules():\n    if hasattr(m, 'weight'):\n"
    "        m.weight.data = m.weight.data.half(); m.bias.data = m.bias.data.half()",
    "net.type(torch.HalfTensor)",
    "for p in net.parameters(): p.requires_grad = False",
    "for p in net.parameters(): nn.init.zeros_(p)",
    "net.apply(lambda m: m.eval())",
    "for m in net.modules(): m.train()",
    "net.load_state_dict(net.state_dict())",
    "net[0].weight.data.normal_(0, 1)",
    "",
)


@pytest.mark.parametrize("change", CHANGES)
def test_weights_that_are_changed_elsewhere(change: str, check: Check) -> None:
    text = f"{IMPORTS}\nnet = nn.Sequential(nn.Linear(4, 4))\n{change}\nnet(torch.zeros(3, 4).half())\n"
    try:
        exec(text, {})
    except RuntimeError:
        assert len(check(text, ["SF512"])) == 1
    else:
        assert not check(text, ["SF512"])


@pytest.mark.parametrize(
    "change",
    [
        "fc.weight = nn.Parameter(torch.ones(2, 5))",
        "fc.weight.data = torch.ones(2, 5)",
        "fc.weight.data = fc.weight.data[:, torch.tensor([0, 1, 2, 2, 1])]",
        "fc.weight = nn.Parameter(torch.ones(2, 3))",
        "other = nn.Embedding(2, 3); fc.weight = other.weight",
        "fc.weight.data = fc.weight.data * 2",
        "",
    ],
)
def test_weights_of_other_sizes(change: str, check: Check) -> None:
    text = f"{IMPORTS}\nfc = nn.Linear(3, 2)\n{change}\nfc(torch.zeros(4, 5))\n"
    try:
        exec(text, {})
    except RuntimeError:
        assert len(check(text, ["SF501"])) == 1
    else:
        assert not check(text, ["SF501"])


@pytest.mark.parametrize(
    "move",
    [
        "for p in net.parameters(): p.data = p.data.cuda()",
        "for m in net.modules(): m.cuda()",
        "net.apply(lambda m: m.to('cuda'))",
        "net._apply(lambda t: t.cuda())",
        "nn.Module.cuda(net)",
        "net[0].weight.data = net[0].weight.data.cuda()",
        "net.type(torch.cuda.FloatTensor)",
    ],
)
def test_weights_that_are_moved_elsewhere(move: str, check: Check) -> None:
    text = f"{IMPORTS}\nnet = nn.Sequential(nn.Linear(4, 4))\n{{}}\nnet(torch.zeros(3, 4).cuda())\n"
    assert not check(text.format(move), ["SF602"])
    assert len(check(text.format(""), ["SF602"])) == 1


FROZEN = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))
            self.listed = nn.ParameterList([nn.Parameter(torch.ones(4))])
            self.named = nn.ParameterDict({{"one": nn.Parameter(torch.ones(4))}})
            self.layer = nn.Linear(4, 4)
    net = Net()
    {convert}
    {freeze}
    reveal(net.scale), reveal(net.listed[0]), reveal(net.named["one"]), reveal(net.layer.weight)
"""
FREEZING = (
    "net.requires_grad_(False)",
    "net.requires_grad_(False).requires_grad_()",
    "for each in net.parameters(): each.requires_grad = False",
    "for each in net.parameters(): each.requires_grad_(False)",
    "for _, each in net.named_parameters(): each.requires_grad = False",
    "net.listed.requires_grad_(False)",
    "pass",
)


@pytest.mark.parametrize("freeze", FREEZING)
@pytest.mark.parametrize("convert", ["pass", "net.double()", "net.half().float()"])
def test_parameters_of_every_kind_are_frozen(convert: str, freeze: str) -> None:
    source = FROZEN.format(convert=convert, freeze=freeze)
    for ours, real in zip(revealed(source), executed(source), strict=True):
        compare(ours, real)
        assert isinstance(ours, TensorValue)
        assert carries_graph(ours) is not None or freeze == "pass" or ".layer" in freeze


LATE_BUFFER = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {register}
        self.table = torch.eye(4)

    def forward(self, x):
        return x @ self.table

net = Net().cuda()
net(torch.ones(2, 4).cuda())
"""


@pytest.mark.parametrize("first", ["None", "torch.zeros(1)"])
def test_a_buffer_that_gets_its_tensor_later_moves_with_the_module(first: str, check: Check) -> None:
    text = LATE_BUFFER.format(register=f'self.register_buffer("table", {first})')
    assert not check(text)
    names: dict[str, object] = {}
    exec(text.replace(".cuda()", ".to('meta')"), names)
    assert [each.code for each in check(LATE_BUFFER.format(register="pass"))] == ["SF603"]
