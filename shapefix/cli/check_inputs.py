"""`shapefix check --show-files` and `--show-settings`."""

# ruff: noqa: PTH109, PTH112

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.output import report_failures, report_library_copies, report_skipped_links, write
from shapefix.cli.request import CheckRequest
from shapefix.engine.batch import project_root_of, requirements_root
from shapefix.engine.session import StandardInput, discovered_files
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import real_path
from shapefix.report.view import View, one_line


def show_inputs(request: CheckRequest, settings: Settings) -> int:
    """List the files or the settings of a check, without running it."""
    name = StandardInput(b"", request.stdin_filename) if request.reads_stdin else None
    found = discovered_files(request.paths, settings, name)
    view = View(os.getcwd())
    if request.show_files:
        for path in found.files:
            sys.stdout.write(one_line(view.absolute(path)) + "\n")
    if request.show_settings:
        seen: set[str | None] = set()
        folders = [os.path.realpath(each) for each in request.paths if os.path.isdir(each)]
        for path in map(real_path, found.files):
            configuration = settings.configuration(path)
            if configuration.path in seen:
                continue
            seen.add(configuration.path)
            root = requirements_root(project_root_of(path, folders), folders)
            shown = _settings(configuration.path, path, root, settings)
            write(one_line(line) + "\n" for line in shown)
    report_failures(found.failures, view)
    if not request.quiet:
        report_skipped_links(found.outside, view, verbose=True)
        report_library_copies(found.copies, view)
    return FAILED if found.failures else CLEAN


def _settings(source: str | None, path: str, root: str, settings: Settings) -> Iterable[str]:
    """Render the settings of one configuration file, as they apply to the file at path.

    root is the last folder with requirements for it.
    """
    configuration = settings.configuration(path)
    yield f"# {source or 'defaults, without a configuration file'}\n"
    for layer in configuration.layers:
        if layer.extend is not None:
            yield f"extend = {layer.extend}\n"
    yield f"root = {configuration.root}\n"
    yield f"rules = {', '.join(sorted(settings.rules_of(configuration))) or 'none'}\n"
    yield f"exclude = {', '.join(configuration.exclude)}\n"
    for ignores in configuration.file_ignores:
        yield f"per-file-ignores = {ignores.pattern}: {', '.join(ignores.selectors)}\n"
    yield f"unsafe-fixes = {str(settings.unsafe_fixes(path)).lower()}\n"
    yield f"preview = {str(settings.preview(path)).lower()}\n"
    version = settings.transformers_version(path, root)
    yield f"transformers-version = {version or 'newest'}\n"
    yield f"cache-dir = {settings.cache_dir(path) or 'none'}\n"
