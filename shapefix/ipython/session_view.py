"""Reports with the cells of a session, for terminals and notebooks."""

from __future__ import annotations

import html
import re
from typing import Any

from shapefix.diagnostics import cell_of
from shapefix.light_dataclasses import dataclass
from shapefix.report.view import View

_WIDTH = 100
_ESCAPE = re.compile(r"\x1b\[([\d;]*)m")
_BLOCK = (
    "white-space: pre; overflow-x: auto; word-break: normal; overflow-wrap: normal;"
    " margin: 0; padding: 0 var(--jp-code-padding, 5px);"
    " font-size: var(--jp-code-font-size, 13px); line-height: var(--jp-code-line-height, 1.3)"
)
"""Rows scroll together: carets below a row point at it only without wrapping."""
_LONG_ROW = "white-space: pre-wrap; overflow-wrap: anywhere"
"""A row without a place for carets, such as the message of an exception."""
_STYLES = {
    1: "font-weight: bold",
    31: "color: var(--jp-error-color1, #c62828)",
    32: "color: var(--jp-success-color0, #2e7d32)",
    33: "color: var(--jp-warn-color0, #b26a00)",
    34: "color: var(--jp-info-color0, #1565c0)",
    36: "color: var(--jp-info-color0, #00838f)",
    90: "opacity: 0.6",
}
"""Styles in a notebook for the codes of colors in a terminal; the themes of JupyterLab set the variables."""


@dataclass(frozen=True)
class SessionView(View):
    """The settings of a report about a session; its cells are named `In [3]`."""

    notebook: str = ""

    def relative(self, path: str) -> str:
        """Return the path for display, `In [3]` for a cell of the session."""
        cell = cell_of(path)
        if cell is not None and self.absolute(cell[0]) == self.notebook:
            return f"In [{cell[1]}]"
        return super().relative(path)


def is_notebook_front_end(shell: Any) -> bool:
    """Check for a shell of a kernel, as Jupyter starts it."""
    return getattr(shell, "kernel", None) is not None


def width_of(shell: Any) -> int:
    """Return the columns of a report."""
    if is_notebook_front_end(shell):
        return _WIDTH
    import shutil

    return max(shutil.get_terminal_size().columns, 40)


def show(shell: Any, text: str) -> None:
    """Display a report with the colors of a terminal: as HTML in a notebook, else as text."""
    if not is_notebook_front_end(shell):
        print(text, end="")
        return
    bundle = {"text/plain": _ESCAPE.sub("", text).rstrip("\n"), "text/html": as_html(text)}
    shell.display_pub.publish(data=bundle)


def as_html(text: str) -> str:
    """Return a text with the colors of a terminal as HTML."""
    rows: list[str] = []
    style = ""
    for row in text.rstrip("\n").split("\n"):
        pieces: list[str] = []
        done = 0
        for found in _ESCAPE.finditer(row):
            pieces.append(_styled(row[done : found.start()], style))
            done = found.end()
            codes = [int(code) for code in found[1].split(";") if code]
            style = "; ".join(_STYLES[code] for code in codes if code in _STYLES)
        pieces.append(_styled(row[done:], style))
        made = "".join(pieces)
        is_long = len(_ESCAPE.sub("", row)) > _WIDTH
        rows.append(f'<span style="{_LONG_ROW}">{made}</span>' if is_long else made)
    return f'<pre style="{_BLOCK}">' + "\n".join(rows) + "</pre>"


def _styled(text: str, style: str) -> str:
    escaped = html.escape(text)
    return f'<span style="{style}">{escaped}</span>' if style and text else escaped
