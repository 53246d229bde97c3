"""Styles of terminal output."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shapefix.report.frame import Line
from shapefix.report.view import visible

_STYLES = {
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold blue",
    "name": "bold",
    "gutter": "bright_black",
    "step": "cyan",
    "note": "bold",
    "fix": "green",
}


def painter(color: bool) -> Callable[[Iterable[Line]], str]:
    """Return a function to join lines to text, with escape sequences if color is true.

    Control characters within a line are replaced by printable ones.
    """
    if not color:
        return lambda lines: "".join(visible("".join(text for text, _ in line)) + "\n" for line in lines)
    from rich.color import ColorSystem
    from rich.style import Style

    styles = {name: Style.parse(words) for name, words in _STYLES.items()}

    def stretch(text: str, style: str) -> str:
        # The sixteen colors of the terminal's theme are readable on its background.
        shown = visible(text)
        return styles[style].render(shown, color_system=ColorSystem.STANDARD) if style in styles else shown

    return lambda lines: "".join("".join(stretch(*piece) for piece in line) + "\n" for line in lines)
