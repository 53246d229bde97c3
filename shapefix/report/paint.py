"""Colour: the styles of what is shown to people."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shapefix.report.frame import Line

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


def painter(colour: bool) -> Callable[[Iterable[Line]], str]:
    """Turns lines into text, with the escape sequences of their styles when colour is wanted."""
    if not colour:
        return lambda lines: "".join("".join(text for text, _ in line) + "\n" for line in lines)
    from rich.color import ColorSystem
    from rich.style import Style

    styles = {name: Style.parse(words) for name, words in _STYLES.items()}

    def stretch(text: str, style: str) -> str:
        # The sixteen colours of the terminal's own theme are readable on whatever it has as background.
        return styles[style].render(text, color_system=ColorSystem.STANDARD) if style in styles else text

    return lambda lines: "".join("".join(stretch(*piece) for piece in line) + "\n" for line in lines)
