"""Places of the attributes named by a finding."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.named_places.failures import classes_named
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnostics import Evidence

_ATTRIBUTE = re.compile(r"`(self\.\w+)`")
_NAME = re.compile(r"`(\w+)`")


def attribute_places(frames: Sequence[ProjectFrame], folder: str, message: str) -> Iterator[Evidence]:
    """Yield the assignments of the attributes named by a finding, `self.members`, in the class it names."""
    attributes = frozenset(_ATTRIBUTE.findall(message))
    for name in _NAME.findall(message) if attributes else ():
        found = list(classes_named(frames, folder, name))
        for parsed, cls in found if len(found) == 1 else ():
            for node in ast.walk(cls):
                if isinstance(node, ast.Assign):
                    for target in attributes & set(map(ast.unparse, node.targets)):
                        yield parsed.place(node, f"`{target}` is set here")
