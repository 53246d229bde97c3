"""Random scripts with loops of many iterations that write attributes, entries and items through calls."""

from __future__ import annotations

import random
from collections.abc import Sequence

HEAD = """\
import torch
from torch import nn
from elsewhere import coin, count
"""
SHAPES = ("2", "3", "2, 2", "2, 3", "3, 2", "4, 1, 2")
TENSORS = ("a", "b", "c")
"""Attributes with tensors; `late` is missing at first."""
NUMBERS = ("n", "m")


class Writer:
    """Methods and functions of one script, each only calling those written before it."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.methods: list[str] = []
        self.functions: list[str] = []

    def fresh(self) -> str:
        rng = self.rng
        dtype = rng.choice(("", "", ", dtype=torch.int64"))
        return f"torch.zeros({rng.choice(SHAPES)}{dtype})"

    def tensor(self, owner: str, given: Sequence[str]) -> str:
        rng = self.rng
        name = rng.choice(TENSORS)
        forms = [
            self.fresh(),
            self.fresh(),
            f"{owner}.{name}",
            f"{owner}.{name}",
            f"{owner}.{name}.t()" if rng.random() < 0.3 else f"{owner}.{name}.unsqueeze(0).squeeze(0)",
            f"torch.zeros({owner}.n, 2)",
            f'{owner}.box["{rng.choice("xy")}"]',
            f"{owner}.items[-1]",
            f"{owner}.part.held",
            "shared",
            *given,
        ]
        return rng.choice(forms)

    def number(self, owner: str) -> str:
        rng = self.rng
        name = rng.choice(NUMBERS)
        return rng.choice((str(rng.randint(1, 4)), f"{owner}.{name}", f"min({owner}.{name} + 1, 5)"))

    def condition(self, owner: str) -> str:
        return self.rng.choice(
            (
                f"{owner}.{self.rng.choice(NUMBERS)} > {self.rng.randint(1, 3)}",
                f"{owner}.flag",
                f"not {owner}.flag",
                f"{owner}.{self.rng.choice(TENSORS)}.dim() == 2",
                f"{owner}.part.held.dim() == 2",
                f"{owner}.maybe is None",
                f'hasattr({owner}, "late")',
                '"z" in ' + owner + ".box",
                "coin()",
            )
        )

    def statement(self, owner: str, given: Sequence[str], depth: int) -> list[str]:
        rng = self.rng
        if rng.random() < 0.35 and depth < 2:
            lines = [f"if {self.condition(owner)}:", *self.block(owner, given, depth + 1)]
            if rng.random() < 0.6:
                lines += ["else:", *self.block(owner, given, depth + 1)]
            return lines
        value = self.tensor(owner, given)
        forms = [
            f"{owner}.{rng.choice(TENSORS)} = {value}",
            f"{owner}.{rng.choice(TENSORS)} = {value}",
            f"{owner}.{rng.choice(NUMBERS)} = {self.number(owner)}",
            f"{owner}.flag = {rng.choice(('True', 'False', f'not {owner}.flag'))}",
            f"{owner}.maybe = {value}",
            f"{owner}.late = {value}",
            f'{owner}.box["{rng.choice("xyz")}"] = {value}',
            f"{owner}.items.append({value})",
            f"{owner}.items[0] = {value}",
            f"{owner}.part.held = {value}",
            f"{owner}.part.buffer = {value}",
            *(f"{owner}.{rng.choice(TENSORS)} = {name}({owner}, {value})" for name in self.functions[-2:]),
            *(f"{owner}.{rng.choice(TENSORS)} = {owner}.{name}({value})" for name in self.methods[-2:]),
            *(f"{owner}.{name}({value})" for name in self.methods[-2:]),
        ]
        return [rng.choice(forms)]

    def block(self, owner: str, given: Sequence[str], depth: int = 0) -> list[str]:
        lines = [line for _ in range(self.rng.randint(1, 3)) for line in self.statement(owner, given, depth)]
        return [f"    {line}" for line in lines]

    def define(self, kind: str) -> list[str]:
        owner = "self" if kind == "method" else "box"
        names = self.methods if kind == "method" else self.functions
        name = f"{kind}{len(names)}"
        lines = [f"def {name}({owner}, k):"]
        if kind == "function" and self.rng.random() < 0.6:
            lines.append("    global shared")
            lines.append(f"    shared = {self.tensor(owner, ['k'])}")
        lines += self.block(owner, ["k"])
        lines.append(f"    return {self.tensor(owner, ['k'])}")
        names.append(name)
        return lines


def write(seed: int) -> str:
    """Text of a script with the loop of this seed."""
    writer = Writer(seed)
    rng = writer.rng
    lines = ["class Part(nn.Module):", "    def __init__(self):", "        super().__init__()"]
    lines.append(f'        self.register_buffer("buffer", {writer.fresh()}, persistent=False)')
    lines += [f"        self.held = {writer.fresh()}", ""]
    for _ in range(rng.randint(0, 2)):
        lines += writer.define("function")
    lines += ["class State:", "    def __init__(self):"]
    lines += [f"        self.{name} = {writer.fresh()}" for name in TENSORS]
    lines += [f"        self.{name} = {rng.randint(1, 3)}" for name in NUMBERS]
    lines += [f"        self.flag = {rng.random() < 0.5}", "        self.maybe = None"]
    lines += [f'        self.box = {{"x": {writer.fresh()}, "y": {writer.fresh()}}}']
    lines += [f"        self.items = [{writer.fresh()}]", "        self.part = Part()"]
    for _ in range(rng.randint(1, 3)):
        lines += [f"    {line}" for line in writer.define("method")]
    lines += [f"shared = {writer.fresh()}", "state = State()", f"y = {writer.fresh()}"]
    many = rng.choice(("12", "12", "9", "count() + 2"))
    lines.append(f"for loop1 in range({many}):")
    lines += writer.block("state", ["y"])
    called = rng.choice(
        [f"state.{name}(y)" for name in writer.methods] + [f"{n}(state, y)" for n in writer.functions]
    )
    lines.append(f"    {rng.choice(('y = ', 'z = ', ''))}{called}")
    if rng.random() < 0.3:
        lines.append(f"ys = [{called} for loop2 in range({many})]")
        lines.append("reveal(ys[-1])")
    shown = [f"state.{name}" for name in (*TENSORS, *NUMBERS, "flag", "maybe")]
    shown += ['state.box["x"]', 'state.box["y"]', "state.items[0]", "state.items[-1]", "len(state.items)"]
    shown += ["state.part.held", "state.part.buffer", "shared", "y", "len(state.box)"]
    lines += [f"reveal({each})" for each in shown]
    lines += [
        'if hasattr(state, "late"):',
        "    reveal(state.late)",
        'if "z" in state.box:',
        '    reveal(state.box["z"])',
    ]
    lines += [f"reveal(state.{writer.methods[-1]}(y))"]
    return HEAD + "\n".join(lines) + "\n"
