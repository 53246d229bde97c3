"""Regenerates what the README and the manual quote from shapefix: example output, and the table of rules."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import fork_server

import shapefix
from shapefix.diagnostics import Severity
from shapefix.rulebook.pages import Page

ROOT = Path(__file__).resolve().parents[2]

EXAMPLE = re.compile(r"^```console\n((?:\$ [^\n]+\n)+)(.*?)^```$", re.DOTALL | re.MULTILINE)
"""A fenced block: command lines that begin with `$`, and what they print."""
TABLE = re.compile(r"^\| code \| name \|.*?(?=^$)", re.DOTALL | re.MULTILINE)

RELEASED = re.compile(
    r"(?:(?<=repo: )https://github\.com/[\w.-]+/[\w.-]+(?= )|(?<=uses: )[\w.-]+/[\w.-]+(?=/shapefix/ci@)"
    r"|(?<=rev: )v[\d.]+|(?<=/shapefix/ci@)v[\d.]+|(?<=git\+)https://github\.com/[\w.-]+/[\w.-]+)"
)
"""The location of the repository, and the tag of the version, in examples of configurations."""
REPOSITORY: str = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]

_MEASURED = re.compile(
    r"\d+(?:\.\d+)?(?= (?:s|ms|KiB|MiB|GiB)\b)|(?<=\bloss )\d+\.\d+|Python \d[\w.]*, torch \d[\w.+]*"
)
"""Times, amounts of memory, losses and versions, which differ between machines."""


def updated(text: str, pages: Iterable[Page], columns: int, folder: Path) -> str:
    """Return a Markdown page with its examples and its table of rules brought up to date.

    An example in which only measured values changed is kept. columns is the width of the output, and folder
    is for files that the examples write.
    """
    text = EXAMPLE.sub(lambda block: _example(block, columns, folder), released(text))
    table = rule_table(pages)
    return TABLE.sub(lambda _: table, text) if table else text


def released(text: str) -> str:
    """Bring the location of the repository and the version in examples up to date."""
    return RELEASED.sub(lambda found: _released(found[0]), text)


def _released(shown: str) -> str:
    """Return a location or a tag as pyproject.toml and the package have them."""
    if shown.startswith("https:"):
        return REPOSITORY
    return REPOSITORY.removeprefix("https://github.com/") if "/" in shown else f"v{shapefix.__version__}"


def rule_table(pages: Iterable[Page]) -> str:
    """Render the table of rules with a line per page; empty if a page has no summary."""
    lines = ["| code | name | what it finds | fix |", "|---|---|---|---|"]
    for page in pages:
        if not page.summary:
            return ""
        off = " (off by default)" if page.severity is Severity.INFO else ""
        fix = page.fix or ""
        lines.append(f"| [{page.code}](rules/{page.path.name}) | {page.name} | {page.summary}{off} | {fix} |")
    return "\n".join(lines) + "\n"


def _example(block: re.Match[str], columns: int, folder: Path) -> str:
    commands, shown = block.groups()
    printed = "".join(_printed(line.removeprefix("$ "), columns, folder) for line in commands.splitlines())
    printed = printed.rstrip("\n") + "\n"
    if _MEASURED.sub("", printed) == _MEASURED.sub("", shown):
        return block[0]
    return f"```console\n{commands}{printed}```"


def _printed(line: str, columns: int, folder: Path) -> str:
    """Run a command line in the checkout. Files that it names after `>` are in folder."""
    program, *arguments = shlex.split(line)
    assert program == "shapefix", line
    redirected = arguments[-1] if arguments[-2:-1] == [">"] else None
    if redirected is not None:
        del arguments[-2:]
    arguments = [str(folder / each) if (folder / each).is_file() else each for each in arguments]
    if arguments[0] in ("check", "fix"):
        arguments.append("--no-cache")
    settings = {"COLUMNS": str(columns), "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": ""}
    if arguments[0] == "probe":
        # The scripts run in a Python that has torch imported already.
        settings |= {"OMP_NUM_THREADS": "1", "VIRTUAL_ENV": fork_server.virtual_environment()}
    ran = subprocess.run(
        [sys.executable, "-m", "shapefix", *arguments],
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    if redirected is None:
        return ran.stdout
    (folder / redirected).write_text(ran.stdout, "utf-8")
    return ""
