"""Searches for the repair of a script, as `probe --repair` does."""

from __future__ import annotations

import os
from pathlib import Path

import fork_server

from shapefix.runtime.repair.search import SearchResult, search
from shapefix.runtime.repair.static_findings import StaticFindings
from shapefix.runtime.repair.trials import ProbeCommand, TrialRunner

# Small models are slower with several threads, the more so where other tests run.
os.environ["OMP_NUM_THREADS"] = "1"


def searched(folder: Path, script: str, most: int = 8) -> SearchResult:
    """The outcome for a script of a folder that is the current one, after so many runs at most."""
    command = ProbeCommand(fork_server.interpreter(), script, (), 1, 120.0)
    before = Path.cwd()
    os.chdir(folder)
    try:
        return search(TrialRunner(command, most), StaticFindings(script))
    finally:
        os.chdir(before)
