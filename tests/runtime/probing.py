"""Runs scripts under the probe, as a user's process, and shows what the tests ask about."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import dedent

import fork_server

from shapefix.checks.rules import RULES
from shapefix.diagnostics import Diagnostic
from shapefix.runtime.findings.collect import ProbeFindings, collect_findings
from shapefix.runtime.findings.silent.registry import KINDS, PROBE
from shapefix.runtime.ranks import rank_findings
from shapefix.runtime.report.text_report import ending, report_lines
from shapefix.runtime.run import ProbeRun, probe_script

# Small models are slower with several threads, the more so where other tests run.
os.environ["OMP_NUM_THREADS"] = "1"


ROOT = Path(__file__).resolve().parents[2]


def run_shapefix(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a virtual environment that has torch."""
    return subprocess.run(
        [sys.executable, "-m", "shapefix", *arguments],
        cwd=folder,
        env=os.environ
        | environment
        | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(ROOT),
            "VIRTUAL_ENV": fork_server.virtual_environment(),
        },
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )


@dataclass(frozen=True)
class Probed:
    """One run, in the folder that it was made in."""

    run: ProbeRun
    folder: Path

    @property
    def found(self) -> list[Diagnostic]:
        return list(self._told.diagnostics)

    @property
    def notes(self) -> list[Diagnostic]:
        """What may well be meant."""
        return list(self._told.notes)

    @cached_property
    def _told(self) -> ProbeFindings:
        return rank_findings(self.run) if self.run.ranks else collect_findings(self.run.observed)

    @property
    def places(self) -> list[tuple[str, str, int]]:
        """The code, the file's name and the row of each finding."""
        return [(each.code, Path(each.span.path).name, each.span.row) for each in self.found]

    @property
    def text(self) -> str:
        """The report for people."""
        rows = report_lines(self.run, lambda path: path.removeprefix(f"{self.folder}/"), 200)
        return "".join("".join(text for text, _ in row) + "\n" for row in rows)

    @property
    def ending(self) -> str:
        return ending(self.run, lambda path: Path(path).name)


def probed(
    folder: Path,
    script: str,
    *arguments: str,
    timeout: float = 120.0,
    python: str | None = None,
    **files: str,
) -> Probed:
    """Write a script, and files beside it, and run it under the probe with folder as the current one."""
    for name, text in {"train": script, **files}.items():
        (folder / f"{name}.py").write_text(dedent(text), "utf-8")
    return probed_file(folder, "train.py", *arguments, timeout=timeout, python=python)


def probed_file(
    folder: Path,
    script: str,
    *arguments: str,
    timeout: float = 120.0,
    options: tuple[str, ...] = (),
    processes: int = 1,
    python: str | None = None,
) -> Probed:
    """Run a script that is there under the probe; options are the agent's own.

    python is the interpreter, by default one that has torch imported already.
    """
    before = Path.cwd()
    os.chdir(folder)
    try:
        return Probed(
            probe_script(
                python or fork_server.interpreter(), script, arguments, 1, timeout, options, processes
            ),
            folder,
        )
    finally:
        os.chdir(before)


def named(kind: str) -> tuple[str, str]:
    """The code and the name that a kind of fault is reported by: those of its rule, where there is one."""
    code, _ = KINDS[kind]
    return (code, RULES[code].name) if code is not None and code in RULES else (PROBE, kind)


def row(text: str, mark: str) -> int:
    """The row of a text, from 1, that ends with a mark in a comment."""
    (found,) = [n for n, line in enumerate(dedent(text).splitlines(), 1) if line.endswith(f"# {mark}")]
    return found


def runs(process: int) -> bool:
    """Whether a process is alive, and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").is_dir()
    return state != "Z"
