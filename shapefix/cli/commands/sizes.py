"""`shapefix shapes` and `shapefix guard`: the sizes of a model."""

from __future__ import annotations

from typing import Any

import click

from shapefix.cli.group import cli
from shapefix.cli.options import color_option, text_or_json_option, transformers_option
from shapefix.report.formats import SHAPE_FORMATS


@cli.command(short_help="Show a model's source with tensor sizes beside it.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="INPUT",
    help="Value of a parameter of forward or __init__: `x: f32[8, 3, H, W]`, `n: 2`. Repeatable.",
)
@click.option("--output-format", type=click.Choice([*SHAPE_FORMATS]), default="text", help="Output format.")
@transformers_option
@color_option
def shapes(**given: Any) -> int:
    """Show the source of a function with the size of every assigned tensor beside it.

    NAME is a class (its forward is shown), a function, or Class.method. [default: all modules of the file]

    Sizes come from the first call in the file, or from --input. The code is never imported or run.
    """
    from shapefix.cli.shapes import shapes

    return shapes(**given)


@cli.command(short_help="Write the sizes of a model into its code: asserts, annotations or comments.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--style",
    type=click.Choice(["asserts", "jaxtyping", "comments"]),
    help="What to write. [default: asserts] With --remove, what to remove. [default: all of them]",
)
@click.option("--apply", is_flag=True, help="Write the change to the file.")
@click.option("--remove", is_flag=True, help="Remove what `shapefix guard` wrote.")
@text_or_json_option
@click.option("--quiet", "-q", is_flag=True, help="Print the diff and errors only.")
@color_option
def guard(**given: Any) -> int:
    """Show asserts on the certainly needed sizes of a function as a diff. With --apply, write them.

    NAME is a class (its forward is guarded), a function, or Class.method. [default: all modules of the file]

    \b
    asserts    at the start of functions, on the sizes that certain calls need
    jaxtyping  the same as annotations, in a project that depends on jaxtyping
    comments   the sizes of assigned tensors, at the end of rows

    Exit codes: 0 if nothing changes or the change was written, 1 if there is a change to apply, 2 if the file
    could not be guarded. More: `shapefix help guard`.
    """
    from shapefix.cli.guard import guard

    return guard(**given)
