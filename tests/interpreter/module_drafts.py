"""A class of a random program as it is being written: each line is tried out with torch at once.

A site is a place in the text that can be written right or wrong: `«kind¦right¦wrong»`. What is tried out is
always the right one, so that the rest of the program fits, however the text is printed in the end.
"""

from __future__ import annotations

import random
import re
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

HEAD = """\
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
"""
LARGEST = 40_000
"""Tensors have at most so many elements."""

_MARK = "\0"
_SITE = re.compile(r"«([^«»¦]*)¦([^«»¦]*)¦([^«»¦]*)»")


def site(kind: str, right: str, wrong: str) -> str:
    """A place that is written right, or wrong in this way."""
    return f"«{kind}¦{right}¦{wrong}»"


def kinds_of(text: str) -> list[str]:
    """The kinds of the sites in a text, in their order."""
    return [found[1] for found in _SITE.finditer(text)]


def printed(text: str, broken: int | None = None) -> str:
    """The text with the site of this number wrong, all others right; lines that become empty are left out."""
    count = -1

    def choose(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return found[3] if count == broken else found[2]

    lines = []
    for line in text.split("\n"):
        chosen = _SITE.sub(choose, line)
        if chosen.strip() or not line.strip():
            lines.append(chosen)
    return "\n".join(lines)


def row_of(text: str, broken: int) -> int:
    """The row of `printed(text, broken)` with the wrong site, or the one after it where nothing is left."""
    count = -1

    def mark(found: re.Match[str]) -> str:
        nonlocal count
        count += 1
        return found[0] if count != broken else f"{_MARK}{found[3]}"

    before = _SITE.sub(mark, text).split(_MARK)[0]
    return printed(before + _MARK).count("\n") + 1


class Misfit(Exception):
    """What was about to be written does not run, or is too large."""


@dataclass
class Style:
    """How a program writes its sizes, and those that it has named so far.

    form is "literal", or where the settings stand: in a "dataclass", a "dict", a "namespace", in "constants"
    of the module, or in "parameters" of the constructors.
    """

    form: str
    settings: dict[str, int] = field(default_factory=dict)

    def code(self, name: str) -> str:
        if self.form == "dict":
            return f'cfg["{name}"]'
        return f"cfg.{name}" if self.form in ("dataclass", "namespace") else name


class Draft:
    """A class that is being written: the lines of its constructor and of its forward.

    names holds what the code can see; `x` is the tensor that flows through.
    """

    def __init__(
        self, rng: random.Random, style: Style, given: dict[str, Any], names: dict[str, Any]
    ) -> None:
        self.rng = rng
        self.style = style
        self.names = {**names, **given, "self": nn.Module()}
        self.parameters: dict[str, int] = {}
        self.init: list[str] = []
        self.lines: list[str] = []
        self.helpers: list[str] = []
        self.count = 0
        self.refresh()

    def refresh(self) -> None:
        """Bring the settings to where the code looks for them."""
        settings = self.style.settings
        if self.style.form in ("dataclass", "namespace"):
            self.names["cfg"] = types.SimpleNamespace(**settings)
        elif self.style.form == "dict":
            self.names["cfg"] = dict(settings)
        elif self.style.form == "constants":
            self.names.update(settings)

    @property
    def x(self) -> torch.Tensor:
        found = self.names["x"]
        assert isinstance(found, torch.Tensor)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.x.shape)

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def size(
        self, value: int, kind: str | None = None, wrong: str | None = None, *, called: bool = True
    ) -> str:
        """The code of a size in a constructor, by number or by name; a site where a kind is given."""
        right = self._named(value) if called and self.rng.random() < 0.4 else str(value)
        if kind is None:
            return right
        others = sorted({value + 1, value - 1, value * 2, value // 2, value + 4} - {value, 0, -1})
        return site(kind, right, wrong or str(self.rng.choice(others)))

    def here(self, value: int, kind: str | None = None) -> str:
        """The code of a size in forward, where the parameters of the constructor are out of sight."""
        return self.size(value, kind, called=self.style.form != "parameters")

    def _named(self, value: int) -> str:
        if self.style.form == "literal":
            return str(value)
        settings = self.parameters if self.style.form == "parameters" else self.style.settings
        name = next((each for each, known in settings.items() if known == value), None)
        if name is None:
            name = f"size_{len(settings) + 1}"
            name = name.upper() if self.style.form == "constants" else name
            settings[name] = value
            self.refresh()
            if self.style.form == "parameters":
                self.names[name] = value
        return self.style.code(name)

    def run(self, code: str) -> None:
        """Run the right one of a code; Misfit where it fails."""
        try:
            exec(printed(code), self.names)
        except Exception as error:
            raise Misfit(code) from error
        for value in self.names.values():
            if isinstance(value, torch.Tensor) and (value.numel() > LARGEST or not value.numel()):
                raise Misfit(code)

    def value(self, code: str) -> Any:
        """What the right one of a code is."""
        try:
            return eval(printed(code), self.names)
        except Exception as error:
            raise Misfit(code) from error

    def keep(self, stem: str, code: str) -> str:
        """Make an attribute of the module; gives its code, `self.conv3`."""
        name = f"self.{self.fresh(stem)}"
        self.run(f"{name} = {code}")
        self.init.append(f"{name} = {code}")
        return name

    def write(self, line: str) -> None:
        """Write a line of forward."""
        self.run(line)
        self.lines.append(line)

    def then(self, code: str) -> None:
        """Let x be this."""
        self.write(f"x = {code}")

    def attempt(self, step: Callable[[Draft], None]) -> bool:
        """Take a step if it can be taken; nothing is left of one that cannot."""
        before = dict(self.names)
        lines, init, helpers = list(self.lines), list(self.init), list(self.helpers)
        settings, parameters = dict(self.style.settings), dict(self.parameters)
        try:
            step(self)
        except Misfit:
            self.names, self.lines, self.init, self.helpers = before, lines, init, helpers
            self.style.settings, self.parameters = settings, parameters
            self.refresh()
            return False
        return True

    def text(self, name: str, inputs: str, result: str) -> str:
        """The class, its sites still open."""
        settings = "".join(f", {each}={value}" for each, value in self.parameters.items())
        if self.style.form in ("dataclass", "dict", "namespace"):
            settings = ", cfg" + settings
        lines = [
            f"class {name}(nn.Module):",
            f"    def __init__(self{settings}):",
            "        super().__init__()",
        ]
        lines += [f"        {line}" for part in self.init for line in part.split("\n")]
        lines += ["", f"    def forward(self, {inputs}):"]
        lines += [f"        {line}" for part in self.lines for line in part.split("\n")]
        return "\n".join([*lines, f"        return {result}"])
