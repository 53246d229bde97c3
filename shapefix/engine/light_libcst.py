"""Import libcst in less time."""

from __future__ import annotations

import dataclasses

from shapefix import light_dataclasses

is_own_process = False
"""Whether no other code uses the libcst of this process: set by the command line."""


def import_libcst() -> None:
    """Import libcst; in a process of shapefix's own, its two hundred nodes are defined lightly."""
    if is_own_process:
        dataclasses.dataclass = light_dataclasses.dataclass
    try:
        import libcst  # noqa: F401
    finally:
        dataclasses.dataclass = light_dataclasses.DEFINE
