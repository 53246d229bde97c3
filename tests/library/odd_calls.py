"""Calls of every library function and method with arguments of all kinds, most of them wrong."""

from __future__ import annotations

import ast
import random

from shapefix.library.registry import FUNCTIONS, METHODS, TENSOR

_VALUES = (
    *("()", "[]", "{}", "None", "''", "b''", "-1", "0", "1e400", "True", "2**70", "-(10**30)", "..."),
    *("x", "y", "z", "u", "u.a", "m", "int", "open", "nn.Linear", "nn.Module", "lambda: 0", "f'{u}'"),
    *("[()]", "[[]]", "[[1], [1, 2]]", "[x, y]", "(x, ())", "[x, None]", "{'a': []}", "{'input_ids': x}"),
    *("range(0)", "slice(0)", "(1,) * 70", "torch.float16", "'cuda'"),
)
_KEYWORDS = (
    *("dim", "axis", "size", "shape", "input", "x", "k", "n", "dtype", "device", "out", "keepdim", "index"),
    *("labels", "weight", "reduction", "padding", "kernel_size", "batch_size", "fn"),
)
_TENSORS = ("x", "y", "z", "u.view(-1)")
_LOCALS = frozenset({"x", "y", "z", "u"})
_HEAD = "x = torch.zeros(2, 3)\ny = torch.zeros(())\nz = torch.arange(4)\nm = nn.Linear(3, 3)\n"


def odd_calls(chooser: random.Random) -> list[str]:
    """A call of each registered function and method, in random order."""
    calls = [f"{name}({_arguments(chooser)})" for name in FUNCTIONS]
    for kind, names in METHODS.items():
        for name in names:
            made = f"{kind}({_arguments(chooser) if chooser.random() < 0.5 else ''})"
            receiver = chooser.choice(_TENSORS) if kind == TENSOR else made
            calls.append(f"{receiver}.{name}({_arguments(chooser)})")
    chooser.shuffle(calls)
    return [call.replace("builtins.", "") for call in calls if _is_parsed(call)]


def script(calls: list[str]) -> str:
    """A script with these calls; an exception in one of them does not end it."""
    modules = {part for call in calls for part in _modules(call)} | {"torch"}
    imports = "".join(f"import {module}\n" for module in sorted(modules))
    tried = "".join(f"try:\n    v = {call}\nexcept E:\n    pass\n" for call in calls)
    return f"{imports}import torch.nn as nn\n{_HEAD}{tried}"


def _modules(call: str) -> list[str]:
    names = call.partition("(")[0].split(".")
    return [] if names[0] in _LOCALS else [".".join(names[:end]) for end in range(1, len(names))]


def _arguments(chooser: random.Random) -> str:
    if chooser.random() < 0.15:
        return ""
    given = [chooser.choice(_VALUES) for _ in range(chooser.choice((1, 1, 2, 2, 3, 4, 6)))]
    if chooser.random() < 0.25:
        given = [f"*{chooser.choice(_VALUES)}", *given[:1]]
    keywords = chooser.sample(_KEYWORDS, chooser.choice((0, 0, 1, 2)))
    given += [f"{keyword}={chooser.choice(_VALUES)}" for keyword in keywords]
    if chooser.random() < 0.1:
        given.append("**u")
    return ", ".join(given)


def _is_parsed(call: str) -> bool:
    try:
        ast.parse(call)
    except SyntaxError:
        return False
    return True
