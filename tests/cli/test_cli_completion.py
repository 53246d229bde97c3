"""Completion in shells: bash for real, the others by their protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import ROOT, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401
from test_cli_rules import imported

from shapefix.cli.main import COMPLETION


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which `shapefix` is a program."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "shapefix"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m shapefix "$@"\n')
    program.chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def completed(shell: str, line: str, environment: dict[str, str]) -> list[str]:
    """The words proposed at the end of a line, by the protocol of a shell."""
    words = line.split(" ")
    variables = {COMPLETION: f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    if shell == "fish":
        variables["COMP_CWORD"] = words[-1]
    ran = subprocess.run(
        ["shapefix"], env=environment | variables, capture_output=True, text=True, check=True
    )
    lines = ran.stdout.splitlines()
    if shell == "zsh":
        return lines[1::3]
    return [row.partition(",")[2].partition("\t")[0] for row in lines]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("shapefix expl", ["explain"]),
        ("shapefix explain SF10", ["SF101", "SF102", "SF103", "SF104", "SF105", "SF106"]),
        ("shapefix explain ragged-l", ["ragged-labels"]),
        ("shapefix check --select SF301,SF30", [f"SF301,SF30{number}" for number in range(1, 9)]),
        ("shapefix check --output-fo", ["--output-format"]),
        ("shapefix check --output-format gi", ["github", "gitlab"]),
        ("shapefix config extend-", ["extend-select", "extend-exclude", "extend-per-file-ignores"]),
        ("shapefix help mem", ["memory"]),
    ],
)
def test_words(installed: dict[str, str], line: str, expected: list[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        # What rules are described with may have a colon, which zsh gets escaped.
        assert completed(shell, line, installed) == expected, shell


def test_bash_itself(project: Project, installed: dict[str, str]) -> None:
    project(src__train=VIEW)
    script = """
eval "$(shapefix generate-shell-completion bash)"
COMP_WORDS=(shapefix check --output-format sa) COMP_CWORD=3
_shapefix_completion shapefix
echo "${COMPREPLY[@]}"
complete -p shapefix
"""
    ran = subprocess.run(
        ["bash", "--norc", "-c", script], env=installed, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[0] == "sarif"
    assert "-F _shapefix_completion shapefix" in ran.stdout
    assert ran.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_calls_us(shell: str) -> None:
    ran = shapefix("generate-shell-completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert f"{COMPLETION}={shell}_complete" in ran.out


def test_completion_costs_nothing_elsewhere() -> None:
    assert not {"click.shell_completion", "shapefix.cli.completion"} & imported("--version")
