"""`shapefix shapes`: show source code with the sizes of its tensors."""

# ruff: noqa: PTH109

from __future__ import annotations

import os
import sys

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.output import report_failures, write
from shapefix.cli.terminal import echo_err, use_color, width
from shapefix.engine.batch import project_root_of
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.engine.source_overlay import real_path
from shapefix.report.formats import SHAPE_FORMATS
from shapefix.report.view import View, one_line


def shapes(
    target: str, inputs: tuple[str, ...], output_format: str, transformers_version: str | None, color: str
) -> int:
    """Show the source of functions with the sizes in it. Raises ConfigurationError."""
    from shapefix.sizes.inputs import BadInput
    from shapefix.sizes.run import ListingFailed, shapes, split_name
    from shapefix.sizes.targets import UnknownTarget

    view = View(os.getcwd(), width(sys.stdout), use_color(color, sys.stdout))
    path, name = split_name(target)
    settings = Settings(CheckOptions(transformers_version=transformers_version))
    at = real_path(path)
    try:
        version = settings.transformers_version(at, project_root_of(at, ()))
        signatures = dict(settings.configuration(at).signatures)
        listings = shapes(path, name, inputs, settings.rules(at), version, signatures)
    except ListingFailed as error:
        report_failures([error.failure], view)
        return FAILED
    except (UnknownTarget, BadInput) as error:
        echo_err(f"error: {one_line(str(error))}")
        return FAILED
    write(SHAPE_FORMATS[output_format].render(listings, view))
    return CLEAN
