"""`shapefix shapes`: show source code with the sizes of its tensors."""

# ruff: noqa: PTH109

from __future__ import annotations

import os
import sys

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.output import say_failures, write
from shapefix.cli.terminal import colour_wanted, say, width
from shapefix.engine.batch import root_of
from shapefix.engine.settings import Options, Settings
from shapefix.engine.source_overlay import real
from shapefix.report.formats import SHAPE_FORMATS
from shapefix.report.view import View, one_line


def shapes(
    target: str, inputs: tuple[str, ...], output_format: str, transformers_version: str | None, color: str
) -> int:
    """Show the source of functions with the sizes in it. Raises ConfigurationError."""
    from shapefix.shapes.inputs import BadInput
    from shapefix.shapes.run import Unanswered, shapes, split_name
    from shapefix.shapes.targets import NotShown

    view = View(os.getcwd(), width(sys.stdout), colour_wanted(color, sys.stdout))
    path, name = split_name(target)
    settings = Settings(Options(transformers_version=transformers_version))
    at = real(path)
    try:
        version = settings.transformers_version(at, root_of(at, ()))
        listings = shapes(path, name, inputs, settings.rules(at), version)
    except Unanswered as error:
        say_failures([error.failure], view)
        return FAILED
    except (NotShown, BadInput) as error:
        say(f"error: {one_line(str(error))}")
        return FAILED
    write(SHAPE_FORMATS[output_format].render(listings, view))
    return CLEAN
