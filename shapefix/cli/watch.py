"""`shapefix check --watch`: check again whenever a file changes."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH116, PTH120

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable

from shapefix.cli.exit_codes import FAILED, INTERRUPTED
from shapefix.cli.request import CheckRequest
from shapefix.cli.terminal import UnusableFile, echo_err
from shapefix.engine.session import discovered_files
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import real_path
from shapefix.rulebook.pages import RulebookError
from shapefix.sources.configuration import ConfigurationError

_PAUSE = 0.5
_SHARE = 10
"""Looking at many files takes long: the pause is this many times longer than a look."""

FileStates = dict[str, tuple[int, int]]
"""Time of change and size of each watched file."""


def watch(request: CheckRequest, check: Callable[[CheckRequest], int], rounds: int | None = None) -> int:
    """Check, and again after each change, until the user interrupts; at most this many times."""
    reason, done = "Watching for changes; Ctrl-C ends.", 0
    while True:
        # Before the check: a change during the check is one, too.
        states = file_states(request)
        code = _checked(request, check, reason)
        done += 1
        if done == rounds or code == INTERRUPTED:
            return code
        # A command runs without the collector, but this one runs for hours.
        gc.collect()
        _wait(request, states)
        reason = "Files changed."


def _wait(request: CheckRequest, states: FileStates) -> None:
    """Return when a file is new, removed or changed."""
    while True:
        started = time.monotonic()
        if file_states(request) != states:
            return
        time.sleep(max(_PAUSE, _SHARE * (time.monotonic() - started)))


def _checked(request: CheckRequest, check: Callable[[CheckRequest], int], reason: str) -> int:
    """Clear the terminal and check; an error in the configuration may be repaired while we watch."""
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[2J\x1b[3J\x1b[H")
    echo_err(reason)
    try:
        code = check(request)
    except (ConfigurationError, RulebookError, UnusableFile) as error:
        echo_err(f"error: {error}")
        return FAILED
    finally:
        sys.stdout.flush()
    return code


def file_states(request: CheckRequest) -> FileStates:
    """Return the states of the files under the paths of a request, and of their configurations."""
    settings = Settings(request.options)
    try:
        paths = {real_path(path) for path in discovered_files(request.paths, settings, None).files}
        folders = {os.path.dirname(path) for path in paths}
        layers = (layer for folder in folders for layer in settings.configurations.nearest(folder).layers)
        paths |= {layer.path for layer in layers if layer.path is not None}
    except ConfigurationError as error:
        paths = {path for path in (error.path, request.options.config) if path is not None}
    states: FileStates = {}
    for path in paths:
        try:
            state = os.stat(path)
        except OSError:
            continue
        states[path] = state.st_mtime_ns, state.st_size
    return states
