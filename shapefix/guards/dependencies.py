"""Look for a library among the imports and requirements of a project."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH119

from __future__ import annotations

import os
import re

from shapefix.sources.project import files_below
from shapefix.sources.text import Unreadable, read_bytes

_MOST_FILES = 5_000
_MOST_BYTES = 2_000_000
_LISTS = re.compile(
    r"(?:.*requirements.*\.(?:txt|in)|requirements.*|pyproject\.toml|setup\.(?:py|cfg)|environment.*\.ya?ml|Pipfile)"
)


def depends_on(path: str, root: str, library: str) -> bool:
    """Check whether the file at path, or another file of its project, imports or requires a library."""
    name = re.escape(library.encode())
    imported = re.compile(rb"^[ \t]*(?:import|from)[ \t]+" + name + rb"\b", re.MULTILINE)
    # A comment is not a requirement.
    listed = re.compile(rb"^[^#\n]*(?<![\w-])" + name + rb"(?![\w-])", re.MULTILINE)
    for number, each in enumerate([path, *files_below(root)]):
        if number > _MOST_FILES:
            return False
        pattern = imported if each.endswith((".py", ".ipynb")) else listed
        if pattern is listed and not _LISTS.fullmatch(os.path.basename(each)):
            continue
        try:
            if pattern.search(read_bytes(each, _MOST_BYTES)):
                return True
        except Unreadable:
            continue
    return False
