"""The output formats by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from shapefix.diagnostics import Diagnostic, Failure
from shapefix.report import concise, full, github, json
from shapefix.report.view import View

Format: TypeAlias = Callable[[Sequence[Diagnostic], Sequence[Failure], View], Iterator[str]]
"""From findings in the order to show them, files that could not be answered for, and the view, to text.

The pieces of text are to be written one after the other as they are: newlines are in them.
"""

FORMATS: Mapping[str, Format] = MappingProxyType(
    {"full": full.render, "concise": concise.render, "json": json.render, "github": github.render}
)
