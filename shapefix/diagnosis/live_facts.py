"""Facts of a running program about its error: the values in the failing frame, and the layer in it."""

from __future__ import annotations

import re

from shapefix.light_dataclasses import dataclass

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class LiveValue:
    """A name or attribute in a failing line, and its value in words: `Tensor [32, 784] float32 cpu`."""

    name: str
    text: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class LiveLayer:
    """The innermost failed module: its name, its code, and its arguments.

    name starts with a variable of the program, `model.encoder.0`; it is "" for a module without one.
    """

    name: str
    code: str
    arguments: tuple[LiveValue, ...]

    @property
    def attribute(self) -> str:
        """The last attribute in the name, without the numbers of a container."""
        parts = [part for part in self.name.split(".") if not part.isdecimal()]
        return parts[-1] if parts else ""


@dataclass(frozen=True)
class LiveFacts:
    """The values in the innermost line of the user's own code, and the failed module, if any."""

    values: tuple[LiveValue, ...] = ()
    layer: LiveLayer | None = None

    @property
    def numbers(self) -> frozenset[str]:
        """All sizes of the values and of the layer."""
        found = {str(size) for value in self.values for size in value.sizes}
        if self.layer is not None:
            found |= {str(size) for value in self.layer.arguments for size in value.sizes}
            found.update(_NUMBER.findall(self.layer.code))
        return frozenset(found)
