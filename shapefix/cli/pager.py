"""Show Markdown pages: rendered on a terminal, with a pager if they are long, and unchanged in a pipe."""

from __future__ import annotations

import os
import shutil
import sys

_WIDTH = 100
_LESS = "-FRX"
"""Options of less, as git sets them: keep colors, and quit at once if the page fits on the screen."""


def show_markdown(text: str, hint: str = "") -> None:
    """Show a page. On a terminal, the hint follows the page."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    import click
    from rich.console import Console
    from rich.markdown import Markdown

    from shapefix.cli.terminal import width

    console = Console(width=min(width(sys.stdout), _WIDTH), force_terminal=True)
    with console.capture() as capture:
        console.print(Markdown(f"{text}\n{hint}" if hint else text))
    rendered = capture.get()
    if rendered.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(rendered)
        return
    os.environ.setdefault("LESS", _LESS)
    click.echo_via_pager(rendered)
