"""Add the magics to a shell of IPython, and take them away again."""

from __future__ import annotations

from typing import Any

from shapefix.ipython.magics import Magics

_KEY = "_shapefix_magics"


def load(shell: Any) -> None:
    """Add `%shapefix`, `%%check` and `%%shapes` to a shell."""
    magics = Magics(shell)
    setattr(shell, _KEY, magics)
    shell.register_magic_function(magics.line, "line", "shapefix")
    shell.register_magic_function(magics.check_cell, "cell", "check")
    shell.register_magic_function(magics.shapes_cell, "cell", "shapes")
    shell.events.register("post_run_cell", magics.cells.record)
    # After the check for a complete cell, so that a terminal waits for the end of the cell.
    shell.input_transformer_manager.line_transforms.insert(0, magics.transform)


def unload(shell: Any) -> None:
    """Take the magics away from a shell."""
    magics = getattr(shell, _KEY, None)
    if not isinstance(magics, Magics):
        return
    delattr(shell, _KEY)
    shell.events.unregister("post_run_cell", magics.cells.record)
    shell.input_transformer_manager.line_transforms.remove(magics.transform)
    for kind, name in (("line", "shapefix"), ("cell", "check"), ("cell", "shapes")):
        shell.magics_manager.magics[kind].pop(name, None)
