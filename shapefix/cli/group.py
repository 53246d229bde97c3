"""The group of all commands; the modules in `commands` add them to it."""

from __future__ import annotations

import os

import click

import shapefix

ENDS_PROCESS = "ends process"
"""The object of a root context whose command is the last act of its process."""


class _CommandGroup(click.Group):
    """The command group; suggests the closest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from shapefix.sources.configuration import suggestion

            known = self.list_commands(ctx)
            hint = suggestion(args[0], known, f"; choose from {', '.join(known)}")
            if os.path.exists(args[0]):  # noqa: PTH110
                hint = f"; did you mean `shapefix check {args[0]}`?"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


def _american_spelling(word: str) -> str:
    """Accept the British spelling of options."""
    return "color" if word == "colour" else word


@click.group(
    cls=_CommandGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": _american_spelling,
    },
    epilog="Run `shapefix help` for the manual.",
)
@click.version_option(shapefix.__version__, "--version", "-V", message="shapefix %(version)s")
def cli() -> None:
    """Find and fix crashes and silent errors in PyTorch training code before you run it."""
