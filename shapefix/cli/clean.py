"""`shapefix clean`: delete cached results."""

# ruff: noqa: PTH118

from __future__ import annotations

import os

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.output import counted
from shapefix.cli.terminal import echo_err
from shapefix.engine.cache import remove_results
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.engine.source_overlay import real_path
from shapefix.report.view import one_line
from shapefix.sources.configuration import ConfigurationError
from shapefix.sources.discovery import discover
from shapefix.sources.text import reason


def clean(cache_dir: str | None) -> int:
    """Delete the results of the projects in the current folder and below it, or those in cache_dir."""
    settings = Settings(CheckOptions(cache_dir=cache_dir))
    here = os.path.join(os.path.realpath(os.curdir), "any.py")
    folders: dict[str, None] = {}
    failed = False
    for path in (here, *map(real_path, discover([os.curdir], settings.configurations).files)):
        try:
            folder = settings.cache_dir(path)
        except ConfigurationError as error:
            echo_err(f"error: {error}")
            failed = True
        else:
            if folder is not None:
                folders[folder] = None
    for folder in folders:
        try:
            removed = remove_results(folder)
        except OSError as error:
            echo_err(f"error: {one_line(folder)}: {reason(error)}")
            failed = True
        else:
            if removed is not None:
                echo_err(f"Removed {counted(removed, 'result')} in {one_line(folder)}")
    return FAILED if failed else CLEAN
