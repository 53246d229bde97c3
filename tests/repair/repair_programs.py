"""Random programs in which the code of a finding with a safe repair runs, or raises because of the finding.

Each family makes the code of one kind of finding and surrounds it with what a repair could disturb: other
names of the same tensor, later writes, gradients, loops, branches, functions, methods and modules.
"""

# ruff: noqa: E501

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

HEAD = """\
import os
import random

import torch
from torch import nn
import torch.nn.functional as F

def unknown(name, value):
    return int(os.environ.get(name, value))
"""


@dataclass(frozen=True)
class Program:
    """A text with a finding, and texts that compute what its author wanted.

    If intended is empty, the repair may change nothing of a program that runs. free are names whose values
    the finding says will change in another way than that of their type. gpu says that it uses a GPU if
    there is one.
    """

    family: str
    text: str
    intended: tuple[str, ...] = ()
    free: frozenset[str] = frozenset()
    gpu: bool = False
    mixed: bool = False


@dataclass
class Draft:
    """Statements of a program: inputs are made by the caller, results are what it looks at."""

    inputs: dict[str, str]
    body: list[str]
    results: list[str]
    parameters: dict[str, str] = field(default_factory=dict)


def block(lines: Sequence[str]) -> str:
    return textwrap.indent("\n".join(lines), "    ")


def surrounded(draw: random.Random, body: list[str], first: int) -> list[str]:
    """Put the statements from first on into a loop, a branch, a context, or leave them."""
    head, rest = body[:first], body[first:]
    kind = draw.choice(["plain"] * 4 + ["for", "if", "else", "with", "try", "while"])
    opening = {
        "for": ["for turn in range(unknown('TURNS', 1)):"],
        "if": ["if unknown('FLAG', 1):"],
        "else": ["if unknown('OFF', 0):", "    pass", "else:"],
        "with": ["with torch.enable_grad():"],
        "try": ["try:"],
        "while": ["turns = 1", "while turns:", "    turns -= 1"],
    }.get(kind)
    if opening is None:
        return body
    closing = ["finally:", "    done = True"] if kind == "try" else []
    return [*head, *opening, block(rest), *closing]


ONCE = (
    *("top", "top", "function", "function", "method", "forward", "closure", "main", "fields", "nested"),
    *("generator", "static", "partial", "keywords", "base"),
)
AGAIN = ("twice", "comprehension")


def scoped(draw: random.Random, draft: Draft, once: bool = False) -> str:
    """Write the statements at the top level, in a function, a method, a module, a closure or a class.

    Some run them twice with the same inputs, unless once says that they must not.
    """
    names = list(draft.inputs)
    given = [f"{name} = {code}" for name, code in draft.inputs.items()]
    results = ", ".join(draft.results)
    parameters = ", ".join(names)
    style = draw.choice(ONCE if once else (*ONCE, *AGAIN))
    called = [f"def run({parameters}):", block([*draft.body, f"return {results},"]), *given]
    if style == "top":
        lines = [*given, *draft.body]
    elif style == "function":
        hinted = ", ".join(f"{name}: torch.Tensor" for name in names)
        signature = draw.choice([parameters, hinted])
        lines = [f"def run({signature}):", block([*draft.body, f"return {results},"]), *given]
        lines += [f"results = run({parameters})"]
    elif style == "twice":
        lines = [*called, f"results = run({parameters})", f"again = run({parameters})"]
    elif style == "comprehension":
        lines = [*called, f"results = [run({parameters}) for _ in range(2)]"]
    elif style == "generator":
        lines = [f"def run({parameters}):", block([*draft.body, f"yield {results},"]), *given]
        lines += [f"results = list(run({parameters}))"]
    elif style == "partial":
        lines = [
            "import functools",
            *called,
            f"results = functools.partial(run, {names[0]})({', '.join(names[1:])})",
        ]
    elif style == "keywords":
        lines = [*called, f"results = run(**{{{', '.join(f'{name!r}: {name}' for name in names)}}})"]
    elif style == "fields":
        fields = [f"{name}: torch.Tensor" for name in names]
        lines = [
            "import dataclasses",
            "@dataclasses.dataclass",
            "class Inputs:",
            block(fields),
            "def run(inputs):",
        ]
        lines += [
            block([*(f"{name} = inputs.{name}" for name in names), *draft.body, f"return {results},"]),
            *given,
        ]
        lines += [f"inputs = Inputs({parameters})", "results = run(inputs)"]
    elif style == "static":
        method = block([f"def run({parameters}):", block([*draft.body, f"return {results},"])])
        lines = ["class Runner:", "    @staticmethod", method, *given, f"results = Runner.run({parameters})"]
    elif style == "base":
        method = block([f"def run(self, {parameters}):", block([*draft.body, f"return {results},"])])
        inner = block([f"def run(self, {parameters}):", block([f"return super().run({parameters})"])])
        lines = ["class Base:", method, "class Runner(Base):", inner, *given]
        lines += [f"results = Runner().run({parameters})"]
    elif style == "nested":
        lines = [
            "class Inner(nn.Module):",
            block([f"def forward(self, {parameters}):", block([*draft.body, f"return {results},"])]),
            "class Outer(nn.Module):",
            block(["def __init__(self):", block(["super().__init__()", "self.parts = nn.ModuleList([Inner()])"])]),
            block([f"def forward(self, {parameters}):",
                   block(["for part in self.parts:", block([f"out = part({parameters})"]), "return out"])]),
            *given, f"results = Outer()({parameters})",
        ]  # fmt: skip
    elif style == "main":
        lines = ["def main():", block([*given, *draft.body, f"return {results}, {parameters}"])]
        lines += ["results = main()"]
    elif style == "closure":
        lines = [
            "def outer():",
            block(given),
            block(["def run():", block([*draft.body, f"return {results},"])]),
        ]
        lines += [block([f"return run(), {parameters}"]), "results = outer()"]
    else:
        base, method = ("nn.Module", "forward") if style == "forward" else ("object", "run")
        lines = [
            f"class Runner({base}):",
            block(["def __init__(self):", block(["super().__init__()", "self.calls = 0"])]),
            block([f"def {method}(self, {parameters}):", block([*draft.body, f"return {results},"])]),
            "runner = Runner()",
            *given,
            f"results = {'runner' if style == 'forward' else 'runner.run'}({parameters})",
        ]
    return HEAD + "\n".join(lines) + "\n"


def twice(draw: random.Random, draft: Draft, other: list[str], once: bool = False) -> tuple[str, str]:
    """Write two bodies in the same surroundings."""
    seed = draw.random()
    first = scoped(random.Random(seed), draft, once)
    second = scoped(random.Random(seed), Draft(draft.inputs, other, draft.results), once)
    return first, second


SIZES = (1, 2, 3, 4)


def views(draw: random.Random) -> Program:
    """SF101: a view of a tensor with gaps; in some programs the sizes are 1, and it runs."""
    sizes = [draw.choice(SIZES) for _ in range(3)]
    hidden = draw.random() < 0.5
    shown = [f"unknown('N{dim}', {size})" if hidden else str(size) for dim, size in enumerate(sizes)]
    source = draw.choice(["torch.randn", "torch.rand", "torch.zeros", "torch.ones"])
    made = draw.choice(
        [
            "h = x.transpose(1, 2)",
            "h = x.permute(0, 2, 1)",
            "h = x[:, :-1]",
            "h = x.mT",
            "h = x.transpose(0, 1)",
            "h = x[..., 1:]",
            "h = x.flip(0).transpose(1, 2)",
        ]
    )
    cut = "-1]" in made or "1:]" in made
    if cut and (sizes[1] < 2 or sizes[2] < 2):
        sizes[1:] = [3, 3]
        shown[1:] = ["3", "3"]
    view = draw.choice(
        [
            "view(-1)",
            "view(h.size(0), -1)",
            "view(h.shape[0] * h.shape[1], -1)",
            "view(-1, h.size(-1))",
            "view(torch.Size([-1]))",
        ]
    )
    after = draw.choice([
        [], ["s = y.sum()"], ["z = y * 2", "z[0] = 1"], ["y = y + 1"], ["y += 1"], ["y.mul_(2)"], ["y[0] = 7"],
        ["z = y[:1]", "z.fill_(3)"], ["z = y", "z += 1"], ["F.relu(y, inplace=True)"], ["nn.ReLU(inplace=True)(y)"],
        ["kept = [y]", "kept[0].add_(1)"], ["kept = {'y': y}", "kept['y'][0] = 5"],
        ["with torch.no_grad():", "    y.copy_(torch.zeros_like(y))"], ["torch.add(y, 1, out=y)"],
        ["for row in y:", "    row.mul_(2)"], ["y.data.zero_()"], ["y[0], other = 4, 2"],
        ["z = y.unsqueeze(0)", "z.sub_(2)"], ["def fill(t):", "    t.fill_(9)", "fill(y)"],
        ["z = y.detach()", "z.zero_()"], ["z = y.detach().numpy()"], ["z = y if unknown('A', 1) else h", "z += 3"],
        ["z = next(iter([y]))", "z *= 2"], ["torch.nn.init.zeros_(y)"], ["for name in ['add_']:", "    getattr(y, name)(1)"],
        ["h.add_(1)", "s = y.sum()"], ["h[0] = 3", "s = y * 2"],
    ])  # fmt: skip
    if draw.random() < 0.5:
        after = draw.choice([[], ["s = y.sum()"], ["y = y + 1"], ["z = y * 2"], ["z = y[:1]"], ["z = [y]"]])
    other_read = draw.choice([[], ["w = h.sum()"], ["w = h * 3"], ["w = x.sum()"]])
    begun, ended = [made], [*after, *other_read]
    write = draw.choice(
        [
            "h.{}[0] = 3",
            "h.{}.add_(1)",
            "h.{}.copy_(torch.zeros(()))",
            "torch.zeros((), out=h.{})",
            "F.relu_(h.{})",
            "h.{}.fill_(2)",
            "nn.init.ones_(h.{})",
            "h.{}[:1] += 1",
        ]
    )
    cores = [[f"y = h.{view}"], ["h = h.contiguous()", f"y = h.{view}"]]
    if draw.random() < 0.2:
        cores = [[write.format(view), "y = h * 1"], ["h = h.contiguous()", write.format(view), "y = h * 1"]]
    results = ["x", "h", "y", *(["w"] if other_read else [])]
    seed = draw.random()
    bodies = [surrounded(random.Random(seed), [*begun, *core, *ended], 1) for core in cores]
    text, intended = twice(draw, Draft({"x": f"{source}({', '.join(shown)})"}, bodies[0], results), bodies[1])
    return Program("SF101", text, (intended,))


def expanded(draw: random.Random) -> Program:
    """SF104: a write into an expanded tensor; with a size of 1 it runs, and reaches the original."""
    count = draw.choice((1, 2, 3))
    size = f"unknown('N', {count})" if draw.random() < 0.6 else str(count)
    form = draw.choice(
        [
            f"b.expand({size}, 3)",
            f"b.expand({size}, -1)",
            f"b.broadcast_to(({size}, 3))",
            f"torch.broadcast_to(b, ({size}, 3))",
            f"b.expand_as(torch.zeros({size}, 3))",
            f"torch.zeros(1, 3).expand({size}, 3)",
            f"b[:1].expand({size}, 3)",
        ]
    )
    write = draw.choice(
        [
            "e.add_(1)",
            "e += 1",
            "e[:] = 2",
            "e.mul_(b)",
            "F.relu(e, inplace=True)",
            "e[0] = 5",
            "e.masked_fill_(e > 0, 3)",
            "e[:, 0] = 1",
            "e.copy_(torch.ones_like(e))",
        ]
    )
    after = draw.choice([[], ["s = e.sum()"], ["c = b * 2"], ["e = e + 1"]])
    before = draw.choice([[], ["t = b.sum()"], ["c = b"]])
    body = surrounded(draw, [*before, f"e = {form}", write, *after], len(before))
    text = scoped(draw, Draft({"b": "torch.randn(1, 3)"}, body, ["e", "b"]))
    return Program("SF104", text)


TWINS = {
    "clamp(0)": "x.clamp_(0)", "abs()": "x.abs_()", "masked_fill(x > 0, 2)": "x.masked_fill_(x > 0, 2)",
    "mul(3)": "x.mul_(3)", "add(1)": "x.add_(1)", "double()": "x.data = x.data.double()",
    "to(torch.float64)": "x.data = x.data.double()", "half()": "x.data = x.data.half()",
    "transpose(0, 1)": "x.transpose_(0, 1)", "unsqueeze(0)": "x.unsqueeze_(0)", "squeeze(0)": "x.squeeze_(0)",
    "t()": "x.t_()", "detach()": "x.detach_()", "contiguous()": "pass", "view(-1)": "x.data = x.data.view(-1)",
    "flip(0)": "x.data = x.data.flip(0)", "to(device)": "pass", "cpu()": "pass", "float()": "pass",
    "long()": "x.data = x.data.long()",
}  # fmt: skip


def discarded(draw: random.Random) -> Program:
    """SF105 and SF601: a result that nothing uses, of a tensor that has other names, or gradients."""
    method = draw.choice(list(TWINS))
    source = draw.choice(
        [
            "torch.randn(3, 3)",
            "torch.randn(1, 3)",
            "torch.randn(3, 3).t()",
            "torch.ones(3, 3, requires_grad=True)",
            "nn.Parameter(torch.ones(3, 3))",
            "nn.Linear(3, 3)(torch.ones(2, 3))",
        ]
    )
    alias = draw.choice([[], [], ["y = x"], ["y = x[0]"], ["y = x.view(-1)"], ["y = [x]"], ["y = {'x': x}"]])
    target = {
        "y = x": "y",
        "y = x[0]": "y",
        "y = x.view(-1)": "y",
        "y = [x]": "y[0]",
        "y = {'x': x}": "y['x']",
    }
    writes = [["with torch.no_grad():", f"    {target[alias[0]]}.add_(1)"]] if alias else []
    after = draw.choice([
        ["z = x * 2"], ["z = x + 1"], ["z = x.sum()"], ["z = x @ torch.ones(3, 3)"], ["z = F.linear(x, torch.ones(3, 3))"],
        ["z = [x]"], ["with torch.no_grad():", "    x.add_(1)", "z = x.sum()"], ["x[0] = 1", "z = x"],
        ["z = nn.Linear(3, 2)(x)"], ["x = x + 1", "z = x"], ["z = x.shape[0]"], ["rows, columns = x.shape", "z = rows"],
        ["loss = (x * x).sum()", "loss.backward()" if "grad=" in source or "Param" in source or "Linear" in source else "pass",
         "z = loss.detach()"],
        ["z = torch.cat([x, torch.zeros(1, 3)])"], ["x.fill_(0)", "z = x"], ["z = x.t().reshape(-1)"],
        *(2 * [[*write, "z = x * 2"] for write in writes]),
    ])  # fmt: skip
    device = (
        ['device = torch.device("cuda" if torch.cuda.is_available() else "cpu")']
        if "device" in method
        else []
    )
    results = ["x", "z", *(["y"] if alias else [])]
    seed = draw.random()
    bodies = [
        surrounded(random.Random(seed), [*device, *alias, *core, *after], len(device) + len(alias))
        for core in ([f"x.{method}"], [TWINS[method]])
    ]
    # The twin writes into its input, which a second run would see.
    text, intended = twice(draw, Draft({"x": source}, bodies[0], results), bodies[1], once=True)
    return Program("SF601", text, (intended,), gpu=bool(device))


def accumulated(draw: random.Random) -> Program:
    """SF701: losses kept with their graphs, which later code may differentiate again."""
    kept = draw.choice(["total += loss", "total = total + loss", "total += loss * 2", "losses.append(loss)",
                        "losses.append(out)", "history['loss'].append(loss)", "total += loss / 3", "losses += [loss]",
                        "self_.losses.append(loss)", "self_.total += loss", "total = loss + total",
                        "history['total'] += loss"])  # fmt: skip
    holder = (
        "losses"
        if kept.startswith("losses")
        else "history"
        if "history" in kept
        else "self_"
        if "self_" in kept
        else "total"
    )
    summed = {"losses": "sum(each.sum() for each in losses)", "total": "total", "self_": "self_.total + sum(each.sum() for each in self_.losses)",
              "history": "history['total'] + sum(each.sum() for each in history['loss'])"}[holder]  # fmt: skip
    reset = {"losses": "losses = []", "total": "total = 0.0", "history": "history = {'loss': [], 'total': 0.0}",
             "self_": "self_.losses, self_.total = [], 0.0"}[holder]  # fmt: skip
    keep = draw.choice(["", "", "", "retain_graph=True"])
    use = draw.choice([
        "nothing", "nothing", "number", "number", "later", "window", "helper", "exclusive", "last", "stored",
        "grad", "penalty", "closure", "moved",
    ])  # fmt: skip
    backward = ["optimizer.zero_grad()", f"loss.backward({keep})", "optimizer.step()"]
    order = draw.random() < 0.5
    inner = [*backward, kept] if order else [kept, *backward]
    after: list[str] = [f"average = float({summed}) / 3"] if use == "number" else []
    if use in ("window", "moved"):
        finish = "total_loss = " + summed
        inner = [
            "if step % 3 == 2:", block([*backward, kept] if draw.random() < 0.5 else [kept, *backward]),
            block([reset]), "else:", block([kept]),
        ] if use == "moved" else [
            kept, "if step % 3 == 2:", block(["optimizer.zero_grad()", finish, "total_loss.backward()",
                                              "optimizer.step()", reset]),
        ]  # fmt: skip
    elif use == "exclusive":
        inner = ["if unknown('EACH', 0):", block(backward), "else:", block([kept])]
        after = [f"whole = {summed}", "optimizer.zero_grad()", "whole.backward()", "optimizer.step()"]
    elif use == "last":
        inner = [kept, "if step == 5:", block(["optimizer.zero_grad()", f"({summed}).backward()"])]
    elif use == "later":
        inner = (
            ["loss.backward(retain_graph=True)", kept]
            if order
            else [kept, "loss.backward(retain_graph=True)"]
        )
        after = [f"({summed}).backward()", "optimizer.step()"]
    elif use == "helper":
        after = [f"update({holder})"]
    elif use == "stored":
        after = [f"kept = {holder}", "shown = str(type(kept))"]
    elif use == "grad":
        inner = [
            kept,
            "grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)",
            "for p, g in zip(model.parameters(), grads):",
            "    p.grad = g",
            "optimizer.step()",
        ]
    elif use == "penalty":
        inner = [
            "optimizer.zero_grad()",
            "loss.backward()",
            kept,
            "penalty = model.weight.norm()",
            "penalty.backward()",
            "optimizer.step()",
        ]
    elif use == "closure":
        after = ["def finish():", f"    return {holder}", "kept = finish()"]
    helper = [
        "def update(values):",
        block(["parts = values if isinstance(values, list) else [values]",
               "found = [p for p in parts if isinstance(p, torch.Tensor) and p.requires_grad and p.grad_fn is not None]",
               "try:", "    sum(p.sum() for p in found).backward() if found else None",
               "except RuntimeError:", "    pass"]),
    ]  # fmt: skip
    body = [
        "total, losses, history = 0.0, [], {'loss': [], 'total': 0.0}",
        "self_ = State()",
        "for step in range(unknown('STEPS', 6)):",
        block(["out = model(torch.randn(4, 3))", "loss = (out - 1).pow(2).mean()", *inner]),
        *after,
    ]
    top = [
        "class State:", block(["def __init__(self):", block(["self.losses, self.total = [], 0.0"])]), *helper,
        "model = nn.Linear(3, 2)", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    ]  # fmt: skip
    shown = {"losses": "losses", "total": "total", "history": "history", "self_": "self_"}[holder]
    if draw.random() < 0.5:
        lines = [*top, *body, f"results = {shown}"]
    else:
        given = draw.choice(["model, optimizer", ""])
        returned = draw.choice([shown, "float(total)", "None"])
        lines = [
            *top,
            f"def train({given}):",
            block([*body, f"return {returned}"]),
            f"results = train({given})",
        ]
    return Program("SF701", HEAD + "\n".join(lines) + "\n")


def devices(draw: random.Random) -> Program:
    """SF602: a tensor that stays on the CPU, and code around the creation of either."""
    device = draw.choice(
        [
            '"cuda" if torch.cuda.is_available() else "cpu"',
            'torch.device("cuda" if torch.cuda.is_available() else "cpu")',
        ]
    )
    first = "x = torch.randn(3, 3).to(device)"
    second = draw.choice(["w = torch.ones(3, 3)", "w = torch.zeros(3)", "w = torch.full((3,), 2.0)", "w = torch.arange(3)",
                          "w = torch.tensor([1.0, 2.0, 3.0])", "w = make()", "w = torch.eye(3) * 2", "w = 1 + torch.ones(3)",
                          "w = [torch.ones(3)][0]", "w = torch.randn(2, 3)[0]", "w = torch.from_numpy(np.ones(3))"])  # fmt: skip
    use = draw.choice(
        [
            "z = x + w",
            "z = x * w",
            "z = torch.add(x, w)",
            "z = torch.stack([x[0], w.reshape(-1)[:3]])",
            "z = w - x",
            "z = combine(x, w)",
            "z = torch.cat([x.view(-1), w.view(-1)])",
        ]
    )
    place = draw.choice(["after", "before", "branch", "early", "loop", "shadow", "module", "late helper"])
    later = draw.choice(
        [
            [],
            ["w.add_(1)", "v = w.sum()"],
            ["v = w.sum()"],
            ["v = w.numpy()"],
            ["v = (w * torch.ones(3)).sum()"],
            ["w = w + 1"],
            ["k = [w]", "v = k[0] + torch.ones(3)"],
        ]
    )
    make = ["def make():", "    return torch.ones(3)"]
    combine = ["def combine(a, b):", "    return a + b"]
    bind = f"device = {device}"
    if place == "after":
        body = [bind, first, second, use]
    elif place == "before":
        body = [second, bind, first, use]
    elif place == "branch":
        body = [
            "if unknown('GPU', 1):",
            block([bind, first]),
            "else:",
            block(["x = torch.zeros(3, 3)"]),
            second,
            use,
        ]
    elif place == "early":
        body = [
            "w = torch.ones(3)",
            bind,
            "if unknown('MOVE', 1):",
            block([first]),
            "else:",
            block(["x = w * 2"]),
            use,
        ]
    elif place == "loop":
        body = [bind, "for turn in range(2):", block([first, second, use])]
    elif place == "shadow":
        body = [bind, first, "for device in ['nothing']:", "    pass", second, use]
    elif place == "module":
        body = [bind, "layer = nn.Linear(3, 3).to(device)", "x = torch.ones(2, 3)", "z = layer(x)"]
    else:
        body = ["w = make()", bind, first, use]
    if place == "module":
        later = draw.choice(
            [[], ["v = x.numpy()"], ["v = x.sum()"], ["v = x + torch.ones(3)"], ["x.add_(1)"]]
        )
    body += later
    head = HEAD + "import numpy as np\n"
    if draw.random() < 0.5:
        lines = [*make, *combine, *body]
    else:
        lines = [*make, *combine, "def main():", block([*body, "return z"]), "results = main()"]
    return Program("SF602", head + "\n".join(lines) + "\n", gpu=True)


def modules(draw: random.Random) -> Program:
    """SF603: tensors that a module makes on the CPU."""
    base = draw.choice(["", "", "class Base(nn.Module):\n    scale = 2\n    def mask(self):\n        return 1\n",
                        "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.mask = None\n",
                        "class Base(nn.Module):\n    @property\n    def mask(self):\n        return self._mask\n"
                        "    @mask.setter\n    def mask(self, value):\n        self._mask = value\n",
                        "class Base(nn.Module):\n    mask = None\n",
                        "class Base(nn.Module):\n    def __setattr__(self, name, value):\n        super().__setattr__(name, value)\n",
                        "class Base(nn.Module):\n    def reset(self):\n        self.mask = torch.ones(3)\n"])  # fmt: skip
    calm = draw.random() < 0.6
    base = "" if calm else base
    parent = "Base" if base else "nn.Module"
    layer = draw.choice(
        [
            "nn.Linear(3, 3)",
            "nn.LSTM(3, 3)",
            "nn.Identity()",
            "nn.Sequential(nn.Linear(3, 3))",
            "nn.LayerNorm(3)",
            "nn.GRU(3, 3)",
        ]
    )
    kind = draw.choice(["attribute", "attribute", "forward", "forward", "list", "arithmetic"])
    init = ["super().__init__()", f"self.layer = {layer}"]
    called = "h = self.layer(x)[0] if isinstance(self.layer, (nn.LSTM, nn.GRU)) else self.layer(x)"
    if kind == "attribute":
        init += [draw.choice(["self.mask = torch.ones(3)", "self.mask = torch.tril(torch.ones(3, 3))[:2]",
                              "self.mask = torch.tensor([1.0, 2.0, 3.0])"])]  # fmt: skip
        forward = [called, "return h * self.mask"]
    elif kind == "list":
        init += ["self.mask = [torch.ones(3)]"]
        forward = [called, "return h * self.mask[0]"]
    elif kind == "arithmetic":
        init += ["self.mask = torch.ones(3) * 2"]
        forward = [called, "return h * self.mask"]
    else:
        made = draw.choice(["m = torch.zeros(x.size(0), 3)", "m = torch.ones(3)", "m = torch.zeros(x.shape)",
                            "m = torch.ones(len(x), 3)"])  # fmt: skip
        combined = draw.choice(
            ["return h + m", "return self.layer(m)", "return x * m", "return torch.cat([x, m])"]
        )
        body = [called, made, combined]
        forward = draw.choice(
            [body, [called, "if unknown('FLAG', 1):", block([made]), "else:", block(["m = h"]), combined]]
        )
    more = draw.choice([[], [],
                        ["def set(self):", block(["self.mask = self.mask * 2"])]])  # fmt: skip
    more = [] if calm else more
    given = (
        draw.choice(["torch.ones(2, 3)", "torch.ones(2, 3)", "Sparse()", "Rows()"])
        if kind == "forward"
        else "torch.ones(2, 3)"
    )
    others = []
    if given != "torch.ones(2, 3)":
        others = [
            f"class {given[:-2]}(object):",
            block(
                [
                    "shape = (2, 3)",
                    "def size(self, dim):",
                    block(["return (2, 3)[dim]"]),
                    "def __len__(self):",
                    block(["return 2"]),
                    "def __mul__(self, other):",
                    block(["return other * 2"]),
                ]
            ),
        ]
        forward = [made, "return x * m"]
    lines = [
        *others, base, f"class Net({parent}):", block(["def __init__(self):", block(init)]),
        block(["def forward(self, x):", block(forward)]), block(more) if more else "",
        'device = "cuda" if torch.cuda.is_available() else "cpu"',
        "net = Net()", draw.choice(["net.to(device)", "net = net.to(device)", ""]),
        "before = sorted(net.state_dict())",
    ]  # fmt: skip
    moved = f"{given}.to(device)" if given.startswith("torch") and "net" in lines[-2] else given
    ends = draw.choice(
        [
            "",
            "net.set() if hasattr(net, 'set') and hasattr(net, 'mask') else None",
            "again = net(" + moved + ")",
            "net.reset() if hasattr(net, 'reset') else None",
            "net.mask = None",
            "net.mask = [1]",
            "class Sub(Net):\n    mask = 3\nsub = Sub()",
            "class Sub(Net):\n    def forward(self, x):\n        self.mask = 2\n"
            "        return x * self.mask\nsub = Sub()(" + moved + ")",
            "import copy; twin = copy.deepcopy(net)",
        ]
    )
    lines += [f"out = net({moved})", "" if calm else ends]
    return Program("SF603", HEAD + "\n".join(lines) + "\n", gpu=True)


def losses(draw: random.Random) -> Program:
    """SF508 and SF512: targets of a rank or dtype that the loss rejects, or takes only sometimes."""
    count, classes = draw.choice((1, 2, 4)), draw.choice((1, 2, 3))
    shown = f"unknown('B', {count})" if draw.random() < 0.4 else str(count)
    loss, scores, target = draw.choice([
        ("F.cross_entropy(p, t)", f"torch.randn({shown}, 3)", f"torch.zeros({shown}, 1, dtype=torch.long)"),
        ("nn.CrossEntropyLoss()(p, t)", f"torch.randn({shown}, 3)", f"torch.zeros({shown}, dtype=torch.int32)"),
        ("F.binary_cross_entropy_with_logits(p, t)", f"torch.randn({shown}, {classes})", f"torch.zeros({shown})"),
        ("nn.BCEWithLogitsLoss()(p, t)", f"torch.randn({shown})", f"torch.zeros({shown}, 1)"),
        ("F.binary_cross_entropy(p, t)", f"torch.rand({shown}, 1)", f"torch.ones({shown}, 1, dtype=torch.long)"),
        ("nn.BCELoss()(p, t)", f"torch.rand({shown})", f"torch.ones({shown}, dtype=torch.int32)"),
        ("F.mse_loss(p, t)", f"torch.rand({shown}, 1)", f"torch.ones({shown}, 1, dtype=torch.long)"),
        ("F.cross_entropy(p, t)", f"torch.randn({shown}, 5, 3)", f"torch.zeros({shown}, 5, dtype=torch.long)"),
        ("F.cross_entropy(p, t)", f"torch.randn({shown}, {classes}, {classes})", f"torch.zeros({shown}, {classes}, dtype=torch.long)"),
        ("F.nll_loss(p, t)", f"torch.randn({shown}, 3)", f"torch.zeros({shown}, dtype=torch.int16)"),
        ("F.binary_cross_entropy(p, t)", f"torch.rand(1, {shown})", f"torch.ones({shown})"),
        ("F.embedding(t, p)", "torch.randn(4, 3)", f"torch.zeros({shown}, dtype=torch.int16)"),
        ("p.gather(1, t)", f"torch.randn({shown}, 3)", f"torch.zeros({shown}, 1, dtype=torch.int32)"),
        ("F.one_hot(t, 4)", "torch.randn(4)", f"torch.zeros({shown}, dtype=torch.int32)"),
    ])  # fmt: skip
    body = [
        *draw.choice([[], ["k = t"]]),
        f"loss = {loss}",
        *draw.choice([[], ["k = t + 1"], ["t.add_(0)", "k = t"], ["k = p.sum()"]]),
    ]
    first = 0
    if draw.random() < 0.5 and "p," in loss:
        body = ["q = (p * 1).requires_grad_()", *(line.replace("(p, t)", "(q, t)") for line in body)]
        body += ["loss.backward()"] if "(q, t)" in "".join(body) else []
        first = 1
    body = surrounded(draw, body, first)
    return Program("SF508", scoped(draw, Draft({"p": scores, "t": target}, body, ["loss", "t", "p"])))


def scaled(draw: random.Random) -> Program:
    """SF604: steps of a GradScaler; on the CPU, so that they have values."""
    clip = draw.random() < 0.7
    scale = draw.random() < 0.7
    enabled = draw.choice(
        ["", ", enabled=True", ", enabled=bool(unknown('AMP', 1))", ", enabled=bool(unknown('AMP', 0))"]
    )
    more = draw.choice(["", "", "scaler.unscale_(optimizer)"])
    norm = draw.choice(
        [
            "nn.utils.clip_grad_norm_(model.parameters(), 0.5)",
            "nn.utils.clip_grad_value_(model.parameters(), 0.1)",
        ]
    )
    where = draw.choice(["plain", "if", "accumulate", "try"])
    update = where == "accumulate" or draw.random() < 0.6

    def step(plain: bool) -> list[str]:
        loss = ["loss.backward()"] if plain or not scale else ["scaler.scale(loss).backward()"]
        clipped = [norm] if clip else []
        if more and not plain and draw_late:
            clipped = [*clipped, more]
        ends = (
            ["optimizer.step()"]
            if plain
            else ["scaler.step(optimizer)", *(["scaler.update()"] if update else [])]
        )
        stepping = [*clipped, *ends]
        if where == "if":
            stepping = [*(["if unknown('CLIP', 1):", block(clipped)] if clipped else []), *ends]
        if where == "accumulate":
            stepping = ["if step % 2 == 1:", block([*stepping, "optimizer.zero_grad()"])]
        if where == "try":
            stepping = ["try:", block(stepping), "finally:", block(["done = step"])]
        zero = [] if where == "accumulate" else ["optimizer.zero_grad()"]
        return [*zero, "loss = model(torch.ones(4, 3)).pow(2).mean()", *loss, *stepping]

    draw_late = draw.random() < 0.3
    top = ["model = nn.Linear(3, 2)", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"]
    made = [f'scaler = torch.amp.GradScaler("cpu"{enabled})']
    function = draw.random() < 0.5

    def written(plain: bool) -> str:
        body = [*made, "for step in range(unknown('STEPS', 4)):", block(step(plain))]
        lines = [*top, *(["def train():", block(body), "train()"] if function else body)]
        return (
            HEAD + "\n".join(line for line in lines if line not in made) + "\n"
            if plain and not function
            else HEAD + "\n".join(lines) + "\n"
        )

    mixed = clip + (not scale) + (not update) > 1
    return Program("SF604", written(False), (written(True),), free=frozenset({"scaler"}), mixed=mixed)


def checkpoints(draw: random.Random) -> Program:
    """SF703: reentrant checkpoints whose inputs need no gradients."""
    form = draw.choice(
        ["{c}(model, x{r})", "{c}(model[0], x{r})", "{c}(lambda t: model(t), x{r})", "{c}(block, x{r})"]
    )
    reentrant = draw.choice([", use_reentrant=True", ", use_reentrant=True, preserve_rng_state=False"])
    call = form.format(c="checkpoint", r=reentrant)
    plain = {"{c}(model, x{r})": "model(x)", "{c}(model[0], x{r})": "model[0](x)"}.get(form, "model(x)")
    source = draw.choice(["torch.ones(2, 3)", "torch.randn(2, 3)"])
    drop = draw.choice(["nn.Identity()", "nn.Tanh()", "nn.LayerNorm(3)"])
    after = draw.choice([
        ["loss = (h * head.weight.sum()).sum()", "loss.backward()", "optimizer.step()"],
        ["loss = h.sum()"], ["loss = head(h).sum()", "loss.backward()", "optimizer.step()"],
        ["with torch.no_grad():", "    loss = h.sum()"], ["values = h.numpy()", "loss = 0.0"], ["values = h.numpy()", "loss = head(h).sum()", "loss.backward()"],
        ["h.mul_(2)", "loss = head(h).sum()", "loss.backward()"], ["loss = float(h.sum())"], ["h[0] = 1", "loss = h.sum()"],
    ])  # fmt: skip
    head = [
        "from torch.utils.checkpoint import checkpoint",
        f"model = nn.Sequential(nn.Linear(3, 3), {drop})", "head = nn.Linear(3, 1)",
        "optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)",
        "def block(t):", "    return model(t)",
    ]  # fmt: skip

    def written(core: str) -> str:
        body = [f"x = {source}", f"h = {core}", *after]
        return HEAD + "\n".join([*head, *body]) + "\n"

    graph = call.replace(", x", ", x.requires_grad_()")
    return Program("SF703", written(call), (written(plain), written(graph)))


def handlers(draw: random.Random) -> Program:
    """SF704: a second attempt inside of the handler."""
    error = draw.choice(["torch.cuda.OutOfMemoryError", "torch.OutOfMemoryError", "RuntimeError"])
    name = draw.choice(["", " as error"])
    again = draw.choice([["out = model(x[:1])"], ["out = model(x[:1])", "loss = out.sum()", "loss.backward()"],
                         ["torch.cuda.empty_cache()", "out = model(x[:1])"],
                         ["if x.size(0) > 1:", "    out = model(x[:1])", "else:", "    continue"],
                         ["out = model(x[:1])", "failed += 1", "continue"], ["failed += 1", "out = model(x[:1])", "break"],
                         ["out = torch.cat([model(part) for part in x.split(1)])", "failed += 1"]])  # fmt: skip
    note = [] if error != "RuntimeError" else ["print('out of memory')"]
    first = draw.choice(
        [["out = attempt(model, x, step)"], ["out = attempt(model, x, step)", "out.sum().backward()"]]
    )
    other = draw.choice([[], ["except ValueError:", block(["out = None"])]])
    after = draw.choice(
        [
            ["seen.append(float(out.sum()))"],
            ["seen.append(failed)"],
            ["seen.append(step)", "optimizer.step()"],
        ]
    )
    body = [
        "for step in range(4):",
        block(["x = torch.ones(2, 3) * step", "try:", block(first), *other, f"except {error}{name}:",
               block([*note, *again]), *after]),
    ]  # fmt: skip
    head = [
        "def attempt(model, x, step):",
        block(["if step % 2 == unknown('FAILS', 1):", block([f"raise {error}('CUDA out of memory')"]), "return model(x)"]),
        "model = nn.Linear(3, 2)", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
    ]  # fmt: skip
    setup = ["seen, failed = [], 0"]
    if draw.random() < 0.5:
        lines = [*head, *setup, *body]
    else:
        lines = [*head, "def train():", block([*setup, *body, "return seen, failed"]), "results = train()"]
    return Program("SF704", HEAD + "\n".join(lines) + "\n")


def labels(draw: random.Random) -> Program:
    """SF201 and SF202: labels that share rows, or memory, with the inputs."""
    if draw.random() < 0.4:
        copied = draw.choice(["ids.copy()", "list(ids)", "ids[:]", "ids"])
        ids = draw.choice(["[[1, 2, 3], [4, 5, 6]]", "[[1, 2, 3] for _ in range(2)]"])
        where = draw.choice(["batch['labels']", "labels"])
        write = draw.choice(
            [
                [f"for row in {where}:", "    row[0] = -100"],
                ["for i in range(2):", f"    {where}[i][:2] = [-100] * 2"],
                [f"{where} = {where}" if where == "labels" else "pass", f"{where}[0][1] = -100"],
            ]
        )
        body = ["ids = batch['input_ids']", f"{where} = {{}}", *write, "batch['labels'] = " + where]

        def written(code: str) -> str:
            inner = [line.format(code) if line == f"{where} = {{}}" else line for line in body]
            lines = [
                "import copy",
                "def encode(batch):",
                block([*inner, "return batch"]),
                f"source = {{'input_ids': {ids}}}",
                "results = encode(source)",
                "table = nn.Embedding(9, 2)",
                "vectors = table(torch.tensor(results['input_ids']))",
            ]
            return HEAD + "\n".join(lines) + "\n"

        return Program("SF201", written(copied), (written("copy.deepcopy(ids)"),))
    shared = draw.choice(["ids", "ids.view(-1, 3)", "ids.detach()", "(ids)", "ids if unknown('A', 1) else ids",
                          "ids.to(torch.long)", "ids[:, :]", "ids.long()", "ids.reshape(2, 3)", "ids[:]"])  # fmt: skip
    masking = draw.choice(["labels[mask] = -100", "labels.masked_fill_(mask, -100)", "labels[labels == 2] = -100",
                           "labels[:, 0] = -100"])  # fmt: skip
    after = draw.choice([
        'batch = {"input_ids": ids, "labels": labels}', 'batch = dict(input_ids=ids, labels=labels)',
        'batch = {"input_ids": ids, "labels": labels, "old": first}',
    ])  # fmt: skip
    in_function = draw.random() < 0.5
    source = "ids = torch.tensor([[1, 2, 3], [2, 3, 4]])"

    def text(code: str) -> str:
        steps = ["first = ids.sum()", "mask = ids == 3", f"labels = {code}", masking, after]
        lines = [source, *steps]
        if in_function:
            lines = ["def encode(ids):", block([*steps, "return batch"]), source, "batch = encode(ids)"]
        return HEAD + "\n".join(lines) + "\n"

    return Program("SF202", text(shared), (text(f"({shared}).clone()"),))


def batches(draw: random.Random) -> Program:
    """SF303, SF307, SF405 and SF507: rows of other lengths, a short last chunk, numbers of a batch."""
    kind = draw.choice(["ragged", "chunks", "guard", "number", "full batch"])
    if kind == "ragged":
        rows = draw.choice(["[[1, 2, 3], [4, 5]]", "[[1], [2, 3, 4]]"])
        name = draw.choice(["labels", "attention_mask", "token_type_ids"])
        form = draw.choice([f"torch.tensor([f['{name}'] for f in features])",
                            f"torch.stack([torch.tensor(f['{name}']) for f in features])",
                            f"torch.as_tensor([f['{name}'] for f in features])"])  # fmt: skip
        lines = [
            "def collate(features):",
            block([f"out = {form}", f"return {{'{name}': out}}"]),
            f"features = [{{'{name}': row}} for row in {rows}]",
            "loader = torch.utils.data.DataLoader(features, batch_size=2, collate_fn=collate)",
            "results = [batch for batch in loader]",
        ]
        return Program("SF303", HEAD + "\n".join(lines) + "\n")
    if kind == "chunks":
        total, size = draw.choice((7, 8, 9)), draw.choice((2, 3, 4))
        stop = draw.choice(["len(ids)", "total"])
        lines = [
            "from torch.utils.data import DataLoader",
            f"ids = list(range({total}))",
            "total = len(ids)",
            f"size = {size}",
            f"chunks = [torch.tensor(ids[i : i + size]) for i in range(0, {stop}, size)]",
            "batches = [b.sum() for b in DataLoader(chunks, batch_size=2)]",
        ]
        return Program("SF307", HEAD + "\n".join(lines) + "\n")
    if kind == "guard":
        move = draw.choice(
            [
                "batch = {k: v.to(device) for k, v in batch.items()}",
                "moved = {}\nfor k, v in batch.items():\n    moved[k] = v.to(device)",
                "batch = {k: v.to(device) for k, v in batch.items() if k != 'none'}",
            ]
        )
        lines = [
            'device = "cuda" if torch.cuda.is_available() else "cpu"',
            "batch = {'x': torch.ones(2, 3), 'name': ['a', 'b'], 'size': 3}",
            *move.split("\n"),
        ]
        return Program("SF405", HEAD + "\n".join(lines) + "\n", gpu=True)
    if kind == "number":
        read = draw.choice(
            [
                "value = loss.data[0]",
                "total += loss.data[0]",
                "value = loss[0]",
                "print(loss.data[0])",
                "values.append(loss.data[0])",
                "value = 2 * loss.data[0] + 1",
            ]
        )
        body = ["loss = (model(x) - 1).pow(2).mean()", "loss.backward()", read]
        lines = [
            "total, values = 0.0, []",
            "model = nn.Linear(3, 1)",
            "x = torch.ones(2, 3)",
            *surrounded(draw, body, 0),
        ]
        return Program("SF507", HEAD + "\n".join(lines) + "\n")
    size = draw.choice((2, 3))
    number = draw.choice([str(size), "size"])
    view = draw.choice(
        [f"batch.view({number}, -1)", f"batch.reshape({number}, 3)", f"batch.view(({number}, -1))"]
    )
    after = draw.choice(
        [[], [f"h = torch.zeros({size}, 3) + rows" if draw.random() < 0.2 else "h = rows.sum()"]]
    )
    lines = [
        f"size = {size}",
        f"data = torch.randn({draw.choice((5, 6, 7))}, 3)",
        "loader = torch.utils.data.DataLoader(data, batch_size=size)",
        "seen = []",
        "for batch in loader:",
        block([f"rows = {view}", *after, "seen.append(rows * 2)"]),
    ]
    return Program("SF507", HEAD + "\n".join(lines) + "\n")


def tokenized(draw: random.Random) -> Program:
    """SF301, SF302, SF304, SF305, SF307 and SF401: texts, tokens and batches of transformers."""
    kind = draw.choice(["texts", "texts", "pad", "chunks", "rows", "labels", "keys"])
    name = draw.choice(["bert-base-uncased", "gpt2", "t5-small"])
    texts = draw.choice([
        'texts = ["A short one.", "Paris is the capital of France."]',
        'texts = ["A short one.", "A short one."]', 'texts = ["Yes.", "A short one.", "Yes."]',
    ])  # fmt: skip
    lines = ["from transformers import AutoTokenizer", f'tokenizer = AutoTokenizer.from_pretrained("{name}")']
    lines += draw.choice([[], ["tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token"]])
    lines += [texts]
    if kind == "texts":
        given = draw.choice(
            [
                "",
                ", truncation=True",
                ", max_length=6",
                ", max_length=6, truncation=True",
                ", padding=False",
                ", padding='do_not_pad'",
                ", add_special_tokens=False",
            ]
        )
        call = f'tokenizer(texts{given}, return_tensors="pt")'
        after = draw.choice(
            [[], ['total = encoded["input_ids"].sum()'], ['width = encoded["input_ids"].shape[1]']]
        )
        body = [f"encoded = {call}", *after]
    elif kind == "pad":
        after = draw.choice([[], ["one = tokenizer(texts[0])['input_ids']"], ["size = len(tokenizer)"]])
        body = ['encoded = tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]', *after]
    elif kind == "chunks":
        size = draw.choice((2, 3, 4))
        stop = draw.choice(["len(tokens)", "total"])
        stacked = draw.choice(
            ["torch.tensor(windows)", "torch.stack([torch.tensor(row) for row in windows])"]
        )
        body = [
            "tokens = tokenizer(' '.join(texts))['input_ids']",
            "total = len(tokens)",
            f"windows = [tokens[i : i + {size}] for i in range(0, {stop}, {size})]",
            f"encoded = {stacked}",
        ]
    elif kind in ("rows", "labels"):
        made = "[dict(tokenizer(text)) for text in texts]"
        if kind == "labels":
            made = '[{"input_ids": ids, "labels": list(ids)} for ids in tokenizer(texts)["input_ids"]]'
        collator = (
            draw.choice(["", ", collate_fn=DataCollatorWithPadding(tokenizer)"]) if kind == "labels" else ""
        )
        imported = ["from transformers import DataCollatorWithPadding"] if collator else []
        body = [
            *imported,
            f"rows = {made}",
            f"loader = torch.utils.data.DataLoader(rows, batch_size=2{collator})",
            "encoded = [batch['input_ids'] for batch in loader]",
        ]
    else:
        key = draw.choice(["idx", "text", "label"])
        value = {
            "idx": "torch.arange(len(texts))",
            "text": "texts",
            "label": "torch.zeros(len(texts), dtype=torch.long)",
        }[key]
        called = draw.choice(
            [
                "model(**batch)",
                "model(**batch, return_dict=True)",
                f"model(input_ids=batch['input_ids'], {key}=batch['{key}'])",
                "model(**{k: v for k, v in batch.items()})",
            ]
        )
        lines[1] = 'tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")'
        later = draw.choice([[], [f"kept = batch['{key}']"], ["count = len(batch)"]])
        body = [
            "from transformers import AutoModelForSequenceClassification",
            'model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased")',
            'batch = dict(tokenizer(texts, padding=True, return_tensors="pt"))',
            f"batch['{key}'] = {value}",
            f"encoded = {called}.logits",
            *later,
        ]
    if draw.random() < 0.4 and kind not in ("keys", "labels"):
        lines += ["def encode(texts):", block([*body, "return encoded"]), "results = encode(texts)"]
    else:
        lines += body
    return Program("SF304", HEAD + "\n".join(lines) + "\n")


def runtime_views(draw: random.Random) -> Program:
    """SF102: views of attention and of feature maps, for inputs of both layouts."""
    write = draw.choice([[], [], [], [], ["y.add_(1)"], ["y[0] = 3"], ["z = y[:1]", "z.zero_()"], ["out.mul_(2)"],
                         ["F.relu(y, inplace=True)"], ["y = y * 2"], ["z = y.sum()"], ["kept = {'y': y}"]])  # fmt: skip
    if draw.random() < 0.5:
        made = draw.choice(["F.scaled_dot_product_attention(q, k, v, is_causal=True)",
                            "F.scaled_dot_product_attention(q, k, v)",
                            "F.scaled_dot_product_attention(q, k, v, dropout_p=0.0)"])  # fmt: skip
        view = draw.choice(["out.transpose(1, 2).view(B, T, H * D)", "out.view(B * H, T, D)", "out.transpose(1, 2).view(B, T, -1)",
                            "out.transpose(1, 2).view(*q.shape[:1], T, H * D)", "out.view(B, -1)"])  # fmt: skip
        heads = draw.choice(["torch.randn(2, 5, 4, 8).transpose(1, 2)", "torch.randn(2, 4, 5, 8)", "torch.randn(1, 4, 5, 8)",
                             "torch.randn(2, 1, 5, 8)", "torch.randn(2, 4, 5, 8, requires_grad=True)"])  # fmt: skip
        body = ["B, H, T, D = q.shape", f"out = {made}", f"y = {view}", *write, "return y, out"]
        lines = [
            "def attend(q, k, v):",
            block(body),
            f"heads = {heads}",
            "results = attend(heads, heads, heads)",
        ]
        if draw.random() < 0.5:
            lines = ["class Attention(nn.Module):", block(["def forward(self, q, k, v):", block(body)]),
                     f"heads = {heads}", "results = Attention()(heads, heads, heads)"]  # fmt: skip
        if "requires_grad" in heads and not write:
            lines += ["results[0].sum().backward()", "grad = heads.grad"]
        return Program("SF102", HEAD + "\n".join(lines) + "\n")
    maps = draw.choice(["F.max_pool2d(F.relu(self.conv(x)), 2)", "F.adaptive_avg_pool2d(self.conv(x), 4)", "self.conv(x)[:, :, :4, :4]",
                        "F.interpolate(self.conv(x), size=(4, 4))", "self.norm(self.conv(x))[..., :4, :4].relu()"])  # fmt: skip
    view = draw.choice(
        [
            "out.view(out.size(0), -1)",
            "out.view(-1, 4 * 4 * 4)",
            "out.view(len(x), 4, -1).flatten(1)",
            "out.view(out.shape[0], 64)",
        ]
    )
    images = draw.choice(["torch.randn(2, 3, 8, 8)", "torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)",
                          "torch.randn(2, 8, 8, 3).permute(0, 3, 1, 2)"])  # fmt: skip
    init = ["super().__init__()", "self.conv = nn.Conv2d(3, 4, 3, padding=1)", "self.norm = nn.BatchNorm2d(4)",
            "self.head = nn.Linear(64, 2)"]  # fmt: skip
    body = [f"out = {maps}", f"y = {view}", *write, "return self.head(y)"]
    lines = [
        "class Net(nn.Module):", block(["def __init__(self):", block(init)]), block(["def forward(self, x):", block(body)]),
        "net = Net()", f"images = {images}", "result = net(images)", "result.sum().backward()",
    ]  # fmt: skip
    return Program("SF102", HEAD + "\n".join(lines) + "\n")


def keys(draw: random.Random) -> Program:
    """SF401: keys that a forward does not take: of samples of a Dataset, of rows, and of columns of a table."""
    extra = draw.choice([["idx"], ["idx"], ["id", "name"], ["weight"]])
    value = {"idx": "i", "id": "i", "name": "'a'", "weight": "1.0"}
    kind = draw.choice(["dataset", "rows", "table", "table", "removed", "collated"])
    head = ["from torch.utils.data import DataLoader, Dataset"]
    pairs = ", ".join(f"'{key}': {value[key]}" for key in extra)
    row = f"{{'x': torch.ones(3) * i, 'y': torch.tensor(1.0), {pairs}}}"
    if kind == "dataset":
        data = ["class Rows(Dataset):", block(["def __len__(self):", block(["return 4"]), "def __getitem__(self, i):",
                block(draw.choice([[f"return {row}"], [f"item = {row}", "return item"]]))]), "data = Rows()"]  # fmt: skip
    elif kind in ("rows", "collated"):
        data = [f"data = [{row} for i in range(4)]"]
    else:
        columns = {
            "idx": "[0, 1, 2, 3]",
            "id": "[0, 1, 2, 3]",
            "name": "['a', 'b', 'c', 'd']",
            "weight": "[1.0] * 4",
        }
        listed = ", ".join(f"'{key}': {columns[key]}" for key in extra)
        more = "'text': ['p', 'q', 'r', 's'], 'old': [1, 2, 3, 4], "
        removal = draw.choice(
            ["['text', 'old']", "['text', \"old\"]", "('text', 'old')", "column_names=['text', 'old']"]
        )
        data = ["from datasets import Dataset as Table",
                f"data = Table.from_dict({{'x': [[1.0, 2.0, 3.0]] * 4, 'y': [1.0] * 4, {more}{listed}}})"]  # fmt: skip
        data += (
            [f"data = data.remove_columns({removal})"]
            if kind == "removed"
            else ["data = data.remove_columns(['old', 'text'])"]
        )
        data += [draw.choice(["data = data.with_format('torch')", "data.set_format('torch')"])]
    collate = ""
    if kind == "collated":
        data += ["def collate(rows):", block([f"return {{key: torch.stack([torch.as_tensor(row[key]) for row in rows]) "
                 f"for key in ['x', 'y', {', '.join(map(repr, [e for e in extra if e != 'name']))}]}}"])]  # fmt: skip
        collate = ", collate_fn=collate"
    filtered = f"{{k: v for k, v in batch.items() if k not in {tuple(extra)!r}}}"
    calls = draw.choice([
        ("model(**batch)", f"model(**{filtered})"),
        ("model(**batch)", f"model(**{filtered})"),
        ("model(**{k: v for k, v in batch.items()})", f"model(**{filtered})"),
        ("model(**batch, scale=2.0)", f"model(**{filtered}, scale=2.0)"),
        ("model(**dict(batch))", f"model(**{filtered})"),
        ("model.forward(**batch)", f"model(**{filtered})"),
        ("model(scale=1.0, **{**batch})", f"model(**{filtered}, scale=1.0)"),
        ("model(**{key: value.float() for key, value in batch.items()})", f"model(**{filtered})"),
        ("model(**{k: v for k, v in batch.items() if k != 'y'}, y=batch['y'])", f"model(**{filtered})"),
        ("(lambda inputs: model(**inputs))(batch)", f"model(**{filtered})"),
    ])  # fmt: skip
    reads = draw.choice([
        [], [], [], [], [f"seen.append(batch['{extra[0]}'])"], [f"seen.append(batch.get('{extra[0]}'))"], ["seen.append(len(batch))"],
        ["seen.append(sorted(batch))"], [f"key = '{extra[0][:1]}' + '{extra[0][1:]}'", "seen.append(batch[key])"],
        ["seen.append(data.column_names if hasattr(data, 'column_names') else 0)"],
        [f"seen.append(data[0]['{extra[0]}'])"],
        ["seen.append(list(data[0]))"], ["k, v = 1, 2", "seen.append(k + v)"], ["other(**batch)"], ["note(**batch)"], ["note(**batch)"],
        [f"seen.append(note({extra[0]}=batch, x=0, y=0))"],
    ])  # fmt: skip
    if "name" in extra and ".float()" in calls[0]:
        calls = ("model(**batch)", f"model(**{filtered})")
    around = draw.choice(["plain", "plain", "plain", "TypeError", "Exception", "off", "function", "method"])
    net = [
        "class Net(nn.Module):",
        block(["def __init__(self):", block(["super().__init__()", "self.linear = nn.Linear(3, 1)"]),
               "def forward(self, x, y, scale=1.0):",
               block(["return F.mse_loss(self.linear(x).squeeze(-1), y) * scale"])]),
        "def other(**inputs):", block(["seen.append(sorted(inputs))"]),
        f"def note({extra[0]}, x, y, name=None):", block([f"return {extra[0]}"]),
    ]  # fmt: skip
    top = ["seen = []", "model = Net()", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)",
           f"loader = DataLoader(data, batch_size=2{collate})"]  # fmt: skip

    def written(call: str) -> str:
        step = [f"loss = {call}", "loss.backward()", "optimizer.step()", "optimizer.zero_grad()"]
        if around == "TypeError":
            step = ["try:", block(step), "except TypeError:", block(["seen.append('refused')"])]
        elif around == "Exception":
            step = ["try:", block(step), "except Exception as error:", block(["print(error)"])]
        elif around == "off":
            step = ["if unknown('OFF', 0):", block(step)]
        before = draw_order
        body = ["for batch in loader:", block([*reads, *step] if before else [*step, *reads])]
        if around == "function":
            body = ["def train(model, loader):", block(body), "train(model, loader)"]
        elif around == "method":
            body = [
                "class Trainer:",
                block(["def train(self, model, loader):", block(body)]),
                "Trainer().train(model, loader)",
            ]
        return HEAD + "\n".join([*head, *net, *data, *top, *body]) + "\n"

    draw_order = draw.random() < 0.5
    # The repair may leave a column out of the table, and says so; then no batch has it.
    free = frozenset({"batch", "seen"}) if kind in ("table", "removed") else frozenset()
    return Program("SF401", written(calls[0]), (written(calls[1]),), free=free)


@dataclass(frozen=True)
class Fault:
    """Lines with a fault that runs on the CPU, and the lines that its author wanted."""

    lines: tuple[str, ...]
    wanted: tuple[str, ...] | None = None

    def written(self, plain: bool) -> list[str]:
        return list(self.wanted if plain and self.wanted is not None else self.lines)


IN_FORWARD = (
    Fault(("mask = torch.tril(torch.ones(h.size(1), h.size(1)))", "h = mask @ h")),
    Fault(("noise = torch.zeros(h.shape)", "h = h + noise")),
    Fault(("h = h + torch.arange(h.size(1)).unsqueeze(-1)",)),
    Fault(("h = h * self.scale",)),
    Fault(("h = h[:, :1].transpose(1, 2).view(h.size(0), -1).unsqueeze(1).expand(-1, 4, -1) + h",)),
    Fault(("h.float()", "h = h * 1")),
    Fault(("h.contiguous()",)),
    Fault(("h.clamp(min=0)", "h = h + 0"), ("h = h.clamp(min=0)", "h = h + 0")),
    Fault(("h = checkpoint(self.inner, h, use_reentrant=True)",)),
    Fault(("h = checkpoint(self.inner, h * 1, use_reentrant=True, preserve_rng_state=False)",)),
    Fault(("index = torch.zeros(h.size(0), 1, dim, dtype=torch.int32)", "h = h + h.gather(1, index.long())")),
    Fault(("row = torch.ones(1, dim)", "both = row.expand(1, dim)", "both.mul_(2)", "h = h * both")),
)
"""Lines of a forward, where `h` is [batch, 4, dim]."""
IN_STEP = (
    Fault(("total += loss",)),
    Fault(("total = total + loss * len(x)",)),
    Fault(("losses.append(loss)",)),
    Fault(("history['loss'].append(loss)",)),
    Fault(("kept = [*kept, loss]",)),
    Fault(("weights = torch.ones(1)", "loss = loss * weights.to(loss.device).mean()")),
    Fault(("offset = torch.zeros(x.size(0), 1)", "loss = loss + (out.detach().mean(1) * 0 + offset).mean()")),
    Fault(("total += loss.item()", "losses += [loss]")),
    Fault(("rows = x.view(2, -1)", "seen.append(rows.sum().item())")),
    Fault(("if 'extra' in batch_:", "    batch_ = {k: v.to(device) for k, v in batch_.items()}")),
    Fault(("x.to(device)",)),
)
"""Lines of a training step after the loss."""
PLAIN = ("optimizer.zero_grad()", "loss.backward()", "optimizer.step()")
CLIPPED = (
    "optimizer.zero_grad()",
    "loss.backward()",
    "nn.utils.clip_grad_norm_(model.parameters(), 0.1)",
    "optimizer.step()",
)
BACKWARD = (
    Fault(PLAIN),
    Fault(("scaler.scale(loss).backward()", "scaler.step(optimizer)", "optimizer.zero_grad()"),
          ("loss.backward()", "optimizer.step()", "optimizer.zero_grad()")),
    Fault(("optimizer.zero_grad(set_to_none=True)", "scaler.scale(loss).backward()", CLIPPED[2], "scaler.step(optimizer)",
           "scaler.update()"), CLIPPED),
    Fault(("optimizer.zero_grad()", "loss.backward()", "scaler.step(optimizer)", "scaler.update()"), PLAIN),
    Fault(("try:", "    optimizer.zero_grad()", "    loss.backward()", "except torch.cuda.OutOfMemoryError:",
           "    torch.cuda.empty_cache()", "    loss = model(x[:1]).mean()", "    loss.backward()", "optimizer.step()")),
    Fault(("(loss / 2).backward()", "if step % 2 == 1:", "    optimizer.step()", "    optimizer.zero_grad()")),
)  # fmt: skip


def trainings(draw: random.Random) -> Program:
    """Faults of several rules in scripts that train nested modules for three steps, and keep what they learned."""
    forward = draw.sample(IN_FORWARD, draw.randint(0, 2))
    step = draw.sample(IN_STEP, draw.randint(1, 2))
    backward = draw.choice(BACKWARD)
    first = draw.random() < 0.5
    shape = draw.choice(["script", "function", "class", "main"])
    evaluates = draw.random() < 0.4
    config = draw.random() < 0.5
    dim = "config.dim" if config else "3"
    depth = draw.choice(["1", "2"])
    loss = draw.choice(
        [
            "F.mse_loss(model(x).mean(1), y)",
            "criterion(model(x).mean(1), y)",
            "((model(x).mean(1) - y) ** 2).mean()",
        ]
    )
    optimizer = draw.choice(
        ["torch.optim.SGD(model.parameters(), lr=0.1)", "torch.optim.Adam(model.parameters(), lr=0.01)"]
    )
    device = draw.choice(['"cuda" if torch.cuda.is_available() else "cpu"',
                          'torch.device("cuda" if torch.cuda.is_available() else "cpu")'])  # fmt: skip

    def written(plain: bool, plain_forward: bool) -> str:
        inner = [line for fault in forward for line in fault.written(plain_forward)]
        block_class = [
            "class Block(nn.Module):",
            block(["def __init__(self, dim):", block([
                "super().__init__()", "self.inner = nn.Sequential(nn.Linear(dim, dim), nn.Tanh())",
                *(["self.scale = torch.full((dim,), 0.5)"] if "self.scale" in "".join(inner) else []),
            ])]),
            block(["def forward(self, x):", block(["dim = x.size(-1)", "h = self.inner(x)", *inner, "return h"])]),
        ]  # fmt: skip
        net = [
            "class Net(nn.Module):",
            block(["def __init__(self, dim, depth):", block([
                "super().__init__()", "self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])",
                "self.head = nn.Linear(dim, 1)",
            ])]),
            block(["def forward(self, x):", block(["for each in self.blocks:", block(["x = each(x)"]), "return self.head(x)"])]),
        ]  # fmt: skip
        after = [line for fault in step for line in fault.written(plain)]
        own = backward.written(plain)
        steps = [
            "x, y = batch['x'].to(device), batch['y'].to(device)", "batch_ = batch", "out = model(x)", f"loss = {loss}",
            *(own + after if first else after + own),
        ]  # fmt: skip
        made = [
            "total, losses, history, kept, seen = 0.0, [], {'loss': []}, [], []",
            "for step in range(3):", block(["batch = batches[step]", *steps]),
        ]  # fmt: skip
        ends = ["average = float(total) / 3"]
        evaluation = ["model.eval()", "with torch.no_grad():", block(["score = float(model(batches[0]['x'].to(device)).sum())"]),
                      "model.train()"] if evaluates else []  # fmt: skip
        setup = [
            f"model = Net({dim}, {depth})", "model.to(device)", f"optimizer = {optimizer}", "criterion = nn.MSELoss()",
            'scaler = torch.amp.GradScaler("cpu")' if "scaler" in "".join(backward.lines) else "scaler = None",
        ]  # fmt: skip
        top = [
            "from torch.utils.checkpoint import checkpoint",
            *(["from dataclasses import dataclass", "@dataclass", "class Config:", block(["dim: int = 3", "lr: float = 0.1"]),
               "config = Config()"] if config else []),
            *block_class, *net, f"device = {device}",
            "batches = [{'x': torch.randn(2, 4, 3), 'y': torch.randn(2, 1)} for _ in range(3)]",
        ]  # fmt: skip
        if shape == "script":
            lines = [*top, *setup, *made, *ends, *evaluation]
        elif shape == "function":
            lines = [*top, *setup, "def train(model, batches, optimizer):", block([*made, *ends, *evaluation, "return average"]),
                     "result = train(model, batches, optimizer)"]  # fmt: skip
        elif shape == "main":
            lines = [*top, "def main():", block([*setup, *made, *ends, *evaluation, "return model, average"]),
                     'if __name__ == "__main__":', block(["model, result = main()"])]  # fmt: skip
        else:
            lines = [
                *top, *setup, "class Trainer:",
                block(["def __init__(self, model, optimizer):", block(["self.model = model", "self.optimizer = optimizer"]),
                       "def fit(self, batches):",
                       block(["model, optimizer = self.model, self.optimizer", *made, *ends, *evaluation, "return average"])]),
                "result = Trainer(model, optimizer).fit(batches)",
            ]  # fmt: skip
        return HEAD + "\n".join(lines) + "\n"

    # Some of the faults are not reported, where it is not known what calls them.
    intended = (written(True, True), written(True, False), written(False, True))
    return Program(
        "trainings", written(False, False), intended, free=frozenset({"scaler"}), gpu=True, mixed=True
    )


FAMILIES: dict[str, Callable[[random.Random], Program]] = {
    each.__name__: each
    for each in (views, expanded, discarded, accumulated, devices, modules, losses, scaled, checkpoints,
                 handlers, labels, batches, tokenized, runtime_views, keys, trainings)
}  # fmt: skip
