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
    help="Argument of forward or __init__, such as `x: f32[8, 3, H, W]` or `n: 2`. Can be repeated.",
)
@click.option("--output-format", type=click.Choice([*SHAPE_FORMATS]), default="text", help="Output format.")
@transformers_option
@color_option
def shapes(**given: Any) -> int:
    """Show the source of a function with the size of each assigned tensor beside it.

    NAME is a class (its forward is shown), a function, or Class.method. [default: all modules of the file]

    The sizes come from the first call in the file, or from --input. The code is never imported or run.
    """
    from shapefix.cli.shapes import shapes

    return shapes(**given)


@cli.command(short_help="Add asserts on tensor sizes to a model, or handlers of exhausted memory.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--style",
    type=click.Choice(["asserts", "jaxtyping", "comments"]),
    help="What to write. [default: asserts] With --remove, what to remove. [default: all of them]",
)
@click.option(
    "--oom",
    is_flag=True,
    help="Write handlers of exhausted GPU memory around training steps. With --remove, remove only these.",
)
@click.option("--apply", is_flag=True, help="Write the change to the file.")
@click.option("--remove", is_flag=True, help="Remove what `shapefix guard` wrote.")
@text_or_json_option
@click.option("--quiet", "-q", is_flag=True, help="Only print the diff and errors.")
@color_option
def guard(**given: Any) -> int:
    """Show asserts on the tensor sizes required by a function, as a diff. With --apply, write them.

    NAME is a class (its forward is guarded), a function, or Class.method. [default: all modules of the file]

    \b
    asserts    asserts at the start of functions
    jaxtyping  the same as annotations, if the project depends on jaxtyping
    comments   comments with the sizes of assigned tensors, at the end of lines

    With --oom, a training step that runs out of GPU memory is repeated in parts of its batch, whose gradients
    add up. With accelerate or a Trainer, the library searches a batch size that fits.

    Exit codes: 0 if there is nothing to change or the change was written, 1 if there is a change to apply, 2
    if the file could not be guarded. More: `shapefix help guard`.
    """
    from shapefix.cli.guard import guard

    return guard(**given)
