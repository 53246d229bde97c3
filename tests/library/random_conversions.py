"""Random modules with parameters, buffers and plain tensors, which are converted and then called."""

from __future__ import annotations

import random

from running_programs import Running

TENSORS = (
    "torch.ones(4)", "torch.rand(4, 4)", "torch.ones(4, dtype=torch.float64)", "torch.linspace(0, 1, 4)",
    "torch.tensor([1.0, 2.0, 3.0, 4.0])", "torch.arange(4) / 4", "torch.arange(4.0)", "torch.eye(4)",
    "1.0 / torch.arange(1, 5)", "torch.ones(4, dtype=torch.float16)", "torch.empty(4).fill_(2.0)",
    "torch.randn(4, 4).half()", "torch.from_numpy(numpy.ones(4))", "torch.full((4,), 0.5)",
    "torch.tensor(numpy.ones(4, dtype=numpy.float32))", "torch.zeros(4).double()",
)  # fmt: skip
WHOLE = (
    "torch.arange(4)", "torch.ones(4, 4).tril() == 0", "torch.zeros(4, dtype=torch.int32)", "torch.tensor(3)",
    "torch.full((4,), 1)", "torch.tensor([0, 1, 2, 3])", "torch.ones(4).long()", "torch.ones(4).bool()",
)  # fmt: skip
MEMBERS = {
    "self.{name} = nn.Parameter({tensor})": "{name}",
    "self.{name} = nn.Parameter({tensor}, requires_grad=False)": "{name}",
    'self.register_parameter("{name}", nn.Parameter({tensor}))': "{name}",
    'self.register_buffer("{name}", {tensor})': "{name}",
    'self.register_buffer("{name}", {whole})': "{name}",
    'self.register_buffer("{name}", {tensor}, persistent=False)': "{name}",
    'self.register_buffer("{name}", None); self.{name} = {tensor}': "{name}",
    'self.register_buffer("{name}", torch.zeros(1)); self.{name} = {tensor}': "{name}",
    "self.{name} = nn.Buffer({tensor})": "{name}",
    "self.{name} = {tensor}": "{name}",
    "self.{name} = {whole}": "{name}",
    "self.{name} = nn.ParameterList([nn.Parameter({tensor}), nn.Parameter({tensor})])": "{name}[0]",
    'self.{name} = nn.ParameterDict({{"a": nn.Parameter({tensor})}})': "{name}['a']",
    "self.{name} = nn.Linear(4, 4)": "{name}.weight",
    "self.{name} = nn.Linear(4, 4, bias=False, dtype=torch.float64)": "{name}.weight",
    "self.{name} = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))": "{name}.weight",
    "self.{name} = nn.LayerNorm(4)": "{name}.weight",
    "self.{name} = nn.BatchNorm1d(4)": "{name}.running_mean",
    "self.{name} = nn.Embedding(5, 4)": "{name}.weight",
    "self.{name} = nn.ModuleList([nn.Linear(4, 4), nn.LayerNorm(4)])": "{name}[0].weight",
    "self.{name} = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.LayerNorm(4))": "{name}[0].weight",
    "self.{name} = Inner()": "{name}.scale",
}
"""What a module may have, and an expression for a tensor of it."""
CONVERSIONS = (
    ".half()", ".double()", ".float()", ".bfloat16()", ".to(torch.float64)", ".to(torch.float16)", ".cpu()",
    ".to(dtype=torch.bfloat16)", ".to('cpu')", ".to('cpu', torch.float64)", ".type(torch.float64)",
    ".to(torch.zeros(1, dtype=torch.float64))", ".type(torch.DoubleTensor)", ".requires_grad_(False)",
    ".to(torch.device('cpu'))", ".eval()", ".to('cpu', dtype=torch.float64, non_blocking=True)",
    ".apply(lambda module: None)", ".to(memory_format=torch.channels_last)",
)  # fmt: skip
STATEMENTS = (
    "net = copy.deepcopy(net)",
    "for each in net.parameters(): each.data = each.data.double()",
    "for each in net.parameters(): each.requires_grad = False",
    "for each in net.buffers(): each.data = each.data.double()",
    "net.load_state_dict(net.state_dict())",
    "net = nn.Sequential(net).double()[0]",
    "wrapped = nn.Sequential(net); wrapped.half()",
    "nets = [Net().double() for _ in range(2)]; net = nets[0]",
)
USES = (
    "x = x * {tensor}", "x = x + {tensor}", "x = x @ {tensor}", "x = F.linear(x, {tensor})",
    "x = x.to({tensor}.dtype) @ {tensor}", "x = x * {tensor}.to(x.dtype)", "x = x * {tensor}.type_as(x)",
    "x = x + {tensor}.to(x)", "x = torch.cat([x, {tensor}.expand(2, 4)])[:2]",
    "x = torch.where({tensor} > 0, x, 0.0)", "x = x.masked_fill({tensor} == 0, 0.0)",
    "x = F.layer_norm(x, (4,), {tensor})", "x = torch.addmm(x, x, {tensor})",
    "x = torch.einsum('bi,i->bi', x, {tensor})", "x = x.float()", "x = x.to({tensor}.dtype)",
    "x = x.to(next(self.parameters()).dtype)", "x = x * {tensor}.mean()", "x = torch.maximum(x, {tensor})",
    "x = torch.stack([x, {tensor}.expand_as(x)]).sum(0)", "x = x.clone(); x[:, 0] = {tensor}.sum()",
    "x = x.index_add(0, torch.arange(1), {tensor}.expand(1, 4))", "x = x.new_ones(2, 4) * {tensor}",
    "x = torch.lerp(x, {tensor}.expand_as(x), 0.5)", "x = F.embedding(torch.arange(2), {tensor}) + x",
    "x = F.mse_loss(x, {tensor}.expand_as(x), reduction='none')", "x = torch.dot(x[0], {tensor}) + x",
    "x = torch.zeros(2, 4, dtype=x.dtype) + {tensor} * x", "x = F.batch_norm(x, {tensor}, {tensor})",
    "x = torch.empty_like(x).copy_({tensor}.expand_as(x)) + x", "x = torch.bmm(x[None], {tensor}[None])[0]",
)  # fmt: skip
INPUTS = ("torch.rand(2, 4)", "torch.rand(2, 4).double()", "torch.rand(2, 4).half()", "torch.ones(2, 4)")
CALLS = (
    "y = net(x)", "y = net(x)", "y = net(x.double())", "with torch.no_grad(): y = net(x)",
    "with torch.autocast('cpu', dtype=torch.bfloat16): y = net(x)",
    "y = net(x.to(next(net.parameters()).dtype))",
)  # fmt: skip
PROGRAM = """
import copy
import numpy

{default}

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", {tensor})

    def forward(self, x):
        return x * self.scale

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {members}

    def forward(self, x):
        {uses}
        return x

net = Net()
{conversions}
x = {given}
{call}
"""


def draft(draw: random.Random) -> Running:
    """Write a module, conversions of it, and a call, which torch may refuse."""
    names = [f"part{number}" for number in range(draw.randint(2, 4))]
    kinds = {name: draw.choice(list(MEMBERS)) for name in names}
    tensors = {name: MEMBERS[kind].format(name=name) for name, kind in kinds.items()}
    members = [
        kind.format(name=name, tensor=draw.choice(TENSORS), whole=draw.choice(WHOLE))
        for name, kind in kinds.items()
    ]
    if draw.random() < 0.2:
        members.append("self" + draw.choice(CONVERSIONS[:9]))
    uses = [
        draw.choice(USES).format(tensor=f"self.{tensors[draw.choice(names)]}")
        for _ in range(draw.randint(1, 4))
    ]
    conversions = [_conversion(draw, names) for _ in range(draw.choice((0, 1, 1, 2)))]
    text = PROGRAM.format(
        default="torch.set_default_dtype(torch.float64)" if draw.random() < 0.1 else "",
        tensor=draw.choice(TENSORS),
        members="\n        ".join(members),
        uses="\n        ".join(uses),
        conversions="\n".join(conversions),
        given=draw.choice(INPUTS),
        call=draw.choice(CALLS),
    )
    return Running(text, (*(f"net.{tensor}" for tensor in tensors.values()), "y"))


def _conversion(draw: random.Random, names: list[str]) -> str:
    conversion = draw.choice(CONVERSIONS)
    forms = (f"net = net{conversion}", f"net{conversion}", f"net.{draw.choice(names)}{conversion}")
    return draw.choice((*forms, draw.choice(STATEMENTS)))
