"""Random programs with torch: written statement by statement, each tried out as it is written.

What a name holds while the program is written is what it is likely to hold when it runs, so that most
statements make sense: branches, loops and calls may still turn out otherwise.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from random_expressions import Style, condition, expression

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
from functools import partial
from elsewhere import coin, count, perhaps_raise
"""

LARGEST = 3_000
"""Tensors have at most so many elements."""


@dataclass
class Program:
    """A text, the arguments of its function `program` where it has one, and the sizes that it names."""

    text: str
    arguments: tuple[torch.Tensor, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)


class Draft:
    """A block that is being written, with what its names hold at its end."""

    def __init__(self, rng: random.Random, names: dict[str, Any], counter: list[int]) -> None:
        self.rng = rng
        self.names = names
        self.counter = counter
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.style = Style()

    def inner(self) -> Draft:
        """A draft of a block inside this one."""
        names = {k: list(v) if isinstance(v, list) else v for k, v in self.names.items()}
        draft = Draft(self.rng, names, self.counter)
        draft.loops = list(self.loops)
        draft.style = self.style
        return draft

    def fresh(self, letter: str) -> str:
        self.counter[0] += 1
        return f"{letter}{self.counter[0]}"

    def target(self) -> str:
        """A new name for a tensor, or one that is taken."""
        taken = self.tensors()
        return self.rng.choice(taken) if taken and self.rng.random() < 0.4 else self.fresh("t")

    def tensors(self) -> list[str]:
        return [name for name, value in self.names.items() if isinstance(value, torch.Tensor)]

    def add(self, line: str) -> bool:
        """Write a line if it runs."""
        before = dict(self.names)
        try:
            exec(line, self.names)
        except Exception:
            self.names.clear()
            self.names.update(before)
            return False
        if any(isinstance(v, torch.Tensor) and v.numel() > LARGEST for v in self.names.values()):
            self.names.clear()
            self.names.update(before)
            return False
        self.lines.append(line)
        return True

    def block(self, head: str, body: Draft) -> None:
        """Write a compound statement without running it."""
        self.lines.append(head)
        self.lines += [f"    {line}" for line in body.lines or ["pass"]]

    def reveal(self, name: str) -> None:
        self.lines.append(f"reveal({name})")


def write(seed: int, symbolic: bool, certain: bool) -> Program:
    """A program; symbolic ones have their code in a function that nobody calls.

    In those that are certain everything that decides on the way that they take is known.
    """
    rng = random.Random(seed)
    names: dict[str, Any] = {}
    exec(textwrap.dedent(HEAD), names)
    outer = Draft(rng, names, [0])
    if not symbolic:
        outer.style = Style(certain=certain)
        for _ in range(rng.randint(2, 3)):
            tensor(outer)
        if rng.random() < 0.4:
            network(outer)
        statements(outer, rng.randint(6, 14), 0)
        return Program(HEAD + "\n".join(outer.lines) + "\n")
    arguments: list[torch.Tensor] = []
    sizes: dict[str, int] = {}
    draft = outer.inner()
    draft.style = Style(literal=False)
    parameters = []
    for _ in range(rng.randint(1, 3)):
        name = outer.fresh("x")
        shape = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(2, 4))]
        draft.names[name] = torch.randn(shape)
        arguments.append(draft.names[name].clone())
        parameters.append(name)
        dims = [f"{name.upper()}_{dim}" for dim in range(len(shape))]
        draft.add(f"{', '.join(dims)} = {name}.{rng.choice(('shape', 'size()'))}")
        sizes.update(zip(dims, shape, strict=True))
    statements(draft, rng.randint(6, 14), 0)
    body = Draft(rng, {}, outer.counter)
    body.block(f"def program({', '.join(parameters)}):", draft)
    return Program(HEAD + "\n".join(outer.lines + body.lines) + "\n", tuple(arguments), sizes)


def statements(draft: Draft, amount: int, depth: int) -> None:
    """Write some statements."""
    kinds = [kind for kind, _ in WEIGHTS]
    weights = [weight for _, weight in WEIGHTS]
    for _ in range(amount):
        kind = draft.rng.choices(kinds, weights)[0]
        if depth < 3 or kind in SIMPLE:
            kind(draft, depth)


def tensor(draft: Draft, depth: int = 0) -> None:
    rng = draft.rng
    shape = [rng.choice((1, 2, 2, 3, 4, 6)) for _ in range(rng.choice((1, 2, 3, 3, 4, 4)))]
    literal = ", ".join(map(str, shape))
    name = draft.fresh("t")
    draft.add(f"{name} = torch.{rng.choice(('randn', 'zeros', 'ones'))}({literal})")
    draft.reveal(name)


def assignment(draft: Draft, depth: int) -> None:
    """`t = …` of a random expression; now and then with other targets."""
    rng = draft.rng
    name = draft.target()
    code = expression(rng, draft.names, draft.style)
    if code is not None and draft.add(f"{name} = {code}"):
        draft.reveal(name)


def pieces(draft: Draft, depth: int) -> None:
    rng = draft.rng
    name = rng.choice(draft.tensors() or ["None"])
    value = draft.names.get(name)
    if value is None or value.dim() == 0 or 0 in value.shape:
        return
    dim = rng.randrange(value.dim())
    size = value.shape[dim]
    listed = draft.fresh("l")
    code = rng.choice(
        [
            f"{name}.split({max(1, size // 2)}, dim={dim})",
            f"{name}.unbind({dim})",
            f"[{name}, {name} * 2]",
            f"[{', '.join(rng.choices(draft.tensors(), k=3))}]",
            f"[row for row in {name}]",
            f"[part.transpose(0, -1) for part in {name}.unbind({dim})]",
        ]
    )
    if draft.style.literal and rng.random() < 0.2:
        # Of a size of 1 there is one chunk, but whoever asks for two counts on two.
        code = f"list({name}.chunk({min(size, 2)}, {dim}))"
    if not draft.add(f"{listed} = {code}") or not draft.names[listed]:
        return
    length = len(draft.names[listed])
    if length <= 4 and rng.random() < 0.5:
        targets = [draft.fresh("t") for _ in range(length)]
        if draft.add(f"{', '.join(targets)}, = {listed}"):
            draft.reveal(targets[-1])
            return
    joined = draft.target()
    again = rng.choice(
        [
            f"torch.cat({listed}, dim={dim})",
            f"torch.stack({listed}, dim={dim})",
            f"torch.stack([part.mT for part in {listed}])",
            f"{listed}[0]",
            f"{listed}[-1]",
            f"{listed}[{rng.randrange(length)}]",
            f"{listed}.pop()",
        ]
    )
    if rng.random() < 0.3:
        draft.add(f"{listed}.append({rng.choice(draft.tensors())})")
    if draft.add(f"{joined} = {again}"):
        draft.reveal(joined)


def number(draft: Draft, depth: int) -> None:
    rng = draft.rng
    name = rng.choice(draft.tensors() or ["None"])
    if name == "None" or draft.names[name].dim() == 0:
        return
    size = f"{name}.size({rng.randrange(draft.names[name].dim())})"
    forms = [
        size,
        f"{size} * 2",
        f"{size} // 2",
        f"{name}.shape[-1] + 1",
        f"len({name})",
        f"max({size}, 2)",
        f"min({size}, 3)",
        f"{size} % 2",
        f"{name}.numel()",
        f"{name}.dim()",
        f"{size} if {condition(rng, draft.names, draft.style)} else 1",
    ]
    target = draft.fresh("n")
    if draft.add(f"{target} = {rng.choice(forms)}"):
        draft.reveal(target)


def write_in_place(draft: Draft, depth: int) -> None:
    rng = draft.rng
    name = rng.choice(draft.tensors() or ["None"])
    if name == "None":
        return
    forms = [
        f"{name} += 1",
        f"{name}[0] = 0",
        f"{name}[..., 0] = 1",
        f"{name}.mul_(2)",
        f"{name}.zero_()",
        f"{name}[:] = 2",
        f"{name} *= {rng.choice(draft.tensors())}",
    ]
    if draft.style.literal:
        # Where the dtype is not known, `x.float()` may be x itself, which then changes, too.
        forms += [f"{name}.t_()", f"{name}.transpose_(0, -1)"]
        # In a loop the rank would change each time, and an index with a slice for each dimension tells it.
        forms += [] if draft.loops else [f"{name}.unsqueeze_(0)", f"{name}.squeeze_(0)"]
    line = rng.choice(forms)
    inner = draft.inner()
    if inner.add(line):
        draft.add(line)
    else:
        draft.lines.append("try:")
        draft.lines.append(f"    {line}")
        draft.lines += ["except Exception:", "    pass"]
    draft.reveal(name)


def branch(draft: Draft, depth: int) -> None:
    rng = draft.rng
    code = condition(rng, draft.names, draft.style)
    first, second = draft.inner(), draft.inner()
    statements(first, rng.randint(1, 3), depth + 1)
    statements(second, rng.randint(1, 3), depth + 1)
    draft.block(f"if {code}:", first)
    taken = first
    if rng.random() < 0.6:
        draft.block("else:", second)
        taken = rng.choice((first, second))
        both = set(first.names) & set(second.names)
    else:
        both = set(draft.names)
    _go_on(draft, taken, both)


def _go_on(draft: Draft, taken: Draft, names: set[str]) -> None:
    """Continue with what one path leaves behind, and show some of it."""
    for name in names:
        if name in taken.names:
            draft.names[name] = taken.names[name]
    shown = [name for name in draft.tensors() if name in names]
    for name in draft.rng.sample(shown, min(2, len(shown))):
        draft.reveal(name)


def loop(draft: Draft, depth: int) -> None:
    rng = draft.rng
    body = draft.inner()
    counter = draft.fresh("loop")
    body.loops.append(counter)
    body.names[counter] = 0
    known = draft.style.certain or rng.random() < 0.6
    lists = [n for n, v in draft.names.items() if isinstance(v, (list, tuple)) and v]
    if lists and rng.random() < 0.3:
        listed, item = rng.choice(lists), draft.fresh("t")
        head = f"for {counter}, {item} in enumerate({listed}):"
        body.names[item] = draft.names[listed][0]
        if not isinstance(body.names[item], torch.Tensor):
            return
    elif rng.random() < 0.2:
        draft.add(f"{counter} = 0")
        head = f"while {counter} < {'2' if known else 'count()'}:"
    else:
        head = f"for {counter} in range({rng.randint(1, 3) if known else 'count()'}):"
    statements(body, rng.randint(1, 4), depth + 1)
    if rng.random() < 0.4:
        stop = draft.inner()
        stop.names.update(body.names)
        statements(stop, rng.randint(0, 1), depth + 2)
        stop.lines.append(rng.choice(("break", "continue")) if not head.startswith("while") else "break")
        body.block(f"if {condition(rng, body.names, draft.style)}:", stop)
        statements(body, rng.randint(0, 2), depth + 1)
    if head.startswith("while"):
        body.lines.append(f"{counter} += 1")
    draft.block(head, body)
    if rng.random() < 0.2:
        other = draft.inner()
        statements(other, 1, depth + 1)
        draft.block("else:", other)
    _go_on(draft, body, set(draft.names))


def attempt(draft: Draft, depth: int) -> None:
    rng = draft.rng
    if draft.style.certain:
        return
    body, handler = draft.inner(), draft.inner()
    statements(body, rng.randint(1, 2), depth + 1)
    body.lines.insert(rng.randint(0, len(body.lines)) if not _is_nested(body) else 0, "perhaps_raise()")
    statements(handler, rng.randint(1, 2), depth + 1)
    draft.block("try:", body)
    draft.block("except ValueError:", handler)
    if rng.random() < 0.3:
        last = draft.inner()
        statements(last, 1, depth + 1)
        draft.block("finally:", last)
    _go_on(draft, body, set(draft.names))


def _is_nested(body: Draft) -> bool:
    return any(line.startswith(" ") for line in body.lines)


def context(draft: Draft, depth: int) -> None:
    body = draft.inner()
    statements(body, draft.rng.randint(1, 3), depth + 1)
    draft.block("with torch.no_grad():", body)
    _go_on(draft, body, set(body.names))


def function(draft: Draft, depth: int) -> None:
    """Define a function of some tensors, and call it."""
    rng = draft.rng
    given = rng.sample(draft.tensors(), min(rng.randint(1, 2), len(draft.tensors())))
    if not given:
        return
    name = draft.fresh("f")
    body = Draft(rng, {k: v for k, v in draft.names.items() if not _is_local(v)}, draft.counter)
    body.loops = ["called"]
    parameters = [body.fresh("a") for _ in given]
    body.style = draft.style
    body.names.update(zip(parameters, (draft.names[tensor] for tensor in given), strict=True))
    body.names["flag"] = True
    kind = rng.choice(("plain", "plain", "early", "pair", "lambda", "closure"))
    scope = ", ".join((*parameters, "flag=True"))
    if kind == "lambda":
        code = expression(rng, {k: body.names[k] for k in parameters}, draft.style)
        if code is None or not draft.add(f"{name} = lambda {scope}: {code}"):
            return
    else:
        statements(body, rng.randint(1, 4), depth + 2)
        if kind == "early":
            sooner = body.inner()
            statements(sooner, 1, depth + 2)
            sooner.lines.append(f"return {rng.choice(sooner.tensors())}")
            body.block(f"if {condition(rng, body.names, draft.style)}:", sooner)
            statements(body, 1, depth + 2)
        results = rng.choices(body.tensors(), k=2 if kind == "pair" else 1)
        body.lines.append(f"return {', '.join(results)}")
        whole = Draft(rng, {}, draft.counter)
        whole.block(f"def {name}({scope}):", body)
        if not _define(draft, name, whole):
            return
    for _ in range(rng.randint(1, 2)):
        arguments = list(given)
        if rng.random() < 0.5:
            arguments = rng.choices(draft.tensors(), k=len(given))
        if rng.random() < 0.3:
            arguments[-1] = f"{parameters[-1]}={arguments[-1]}"
        if rng.random() < 0.3:
            arguments.append(f"flag={rng.choice(('False', 'True' if draft.style.certain else 'coin()'))}")
        target = draft.target()
        if draft.add(f"{target} = {name}({', '.join(arguments)})"):
            value = draft.names[target]
            if isinstance(value, tuple):
                first, second = draft.fresh("t"), draft.fresh("t")
                draft.add(f"{first}, {second} = {target}")
                del draft.names[target]
                target = second
            draft.reveal(target)


def _is_local(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, list, tuple, int, torch.nn.Module))


def _define(draft: Draft, name: str, whole: Draft) -> bool:
    text = "\n".join(whole.lines)
    shown = {**draft.names, "reveal": lambda value: value}
    try:
        exec(text, shown)
    except Exception:
        return False
    draft.names[name] = shown[name]
    draft.lines += whole.lines
    return True


def network(draft: Draft, depth: int = 0) -> None:
    """Define a module, make one, and call it."""
    rng = draft.rng
    tensors = [name for name in draft.tensors() if draft.names[name].dim() >= 2]
    if not tensors or depth > 0:
        return
    name = rng.choice(tensors)
    width = draft.names[name].shape[-1]
    cls, instance = draft.fresh("Net"), draft.fresh("net")
    init = [
        "super().__init__()",
        "self.width = width",
        f"self.flag = {rng.choice(('True', 'False', 'False' if draft.style.certain else 'coin()'))}",
        f"self.linear = nn.Linear(width, {rng.choice((2, 4, 6))})",
        "self.norm = nn.LayerNorm(width)",
        f"self.heads = nn.GRU(width, {rng.choice((2, 4))}, batch_first={rng.choice(('True', 'False'))})",
        "self.drop = nn.Dropout(0.5)",
        "self.rest = nn.Sequential(nn.Linear(width, width), nn.ReLU())",
    ]
    head = [f"class {cls}(nn.Module):", "    def __init__(self, width):"]
    lines = [*head, *(f"        {line}" for line in init)]
    scope = {k: v for k, v in draft.names.items() if not _is_local(v)}
    with_init = {**scope}
    exec("\n".join(lines), with_init)
    body = Draft(rng, {**scope, "x": draft.names[name]}, draft.counter)
    body.names["self"] = with_init[cls](width)
    body.style = draft.style
    for _ in range(rng.randint(1, 4)):
        target = body.target()
        source = rng.choice(body.tensors())
        forms = (
            f"self.linear({source})",
            f"self.norm({source})",
            f"self.heads({source})[0]",
            f"self.drop({source})",
            f"self.rest({source})",
        )
        if body.add(f"{target} = {rng.choice(forms)}"):
            body.reveal(target)
        statements(body, 1, depth + 1)
    if rng.random() < 0.4:
        sooner = body.inner()
        statements(sooner, 1, depth + 2)
        sooner.lines.append(f"return {rng.choice(sooner.tensors())}")
        body.block("if self.flag:", sooner)
    body.lines.append(f"return {rng.choice(body.tensors())}")
    whole = Draft(rng, {}, draft.counter)
    whole.lines += [*lines, "    def forward(self, x):", *(f"        {line}" for line in body.lines)]
    if _define(draft, cls, whole) and draft.add(f"{instance} = {cls}({name}.size(-1))"):
        target = draft.target()
        if draft.add(f"{target} = {instance}({name})"):
            draft.reveal(target)


Kind = Callable[[Draft, int], None]
SIMPLE: tuple[Kind, ...] = (assignment, pieces, number, write_in_place)
WEIGHTS: list[tuple[Kind, int]] = [
    (assignment, 24),
    (pieces, 4),
    (number, 4),
    (write_in_place, 2),
    (branch, 4),
    (loop, 4),
    (attempt, 1),
    (context, 1),
    (function, 3),
]
