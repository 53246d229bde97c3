"""One registry of output formats serves every command."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module

import click
import pytest
from command_line import VIEW, Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.cli.main import cli
from shapefix.report.formats import FINDING_FORMATS, PROBE_FORMATS, RULE_FORMATS, SHAPE_FORMATS, OutputFormat

TABLES: dict[str, Mapping[str, OutputFormat[...]]] = {
    "findings": FINDING_FORMATS,
    "probe": PROBE_FORMATS,
    "shapes": SHAPE_FORMATS,
    "rules": RULE_FORMATS,
}
EVERY = [(subject, each) for subject, table in TABLES.items() for each in table.values()]


def choices(command: str) -> list[str]:
    (option,) = [each for each in cli.commands[command].params if each.name == "output_format"]
    assert isinstance(option.type, click.Choice)
    return list(option.type.choices)


@pytest.mark.parametrize(("subject", "each"), EVERY, ids=lambda value: getattr(value, "renderer", value))
def test_every_renderer_exists_and_takes_what_its_command_passes(
    subject: str, each: OutputFormat[...]
) -> None:
    module, _, function = each.renderer.partition(":")
    taken = list(inspect.signature(getattr(import_module(module), function)).parameters)
    first = next(iter(TABLES[subject].values())).renderer.partition(":")
    assert taken == list(inspect.signature(getattr(import_module(first[0]), first[2])).parameters)


@pytest.mark.parametrize(
    ("command", "formats"),
    [
        ("check", [*FINDING_FORMATS]),
        ("fix", [*FINDING_FORMATS]),
        ("shapes", [*SHAPE_FORMATS]),
        ("rules", [*RULE_FORMATS]),
        ("probe", list(dict.fromkeys([*PROBE_FORMATS, *FINDING_FORMATS]))),
        ("diagnose", ["text", "json", *(name for name in FINDING_FORMATS if name not in ("full", "json"))]),
    ],
)
def test_the_choices_of_a_command_come_from_the_registry(command: str, formats: list[str]) -> None:
    assert choices(command) == formats


@pytest.mark.parametrize("name", FINDING_FORMATS)
def test_quiet_omits_the_summary_and_nothing_else(project: Project, name: str) -> None:
    project(train=VIEW)
    loud = shapefix("check", "--color", "never", "--output-format", name).out
    quiet = shapefix("check", "--color", "never", "--output-format", name, "--quiet").out
    assert loud.startswith(quiet)
    assert quiet.count("SF101") == loud.count("SF101") > 0
    assert (quiet == loud) == (name != "full")


@pytest.mark.parametrize("name", FINDING_FORMATS)
def test_applied_repairs_are_listed_on_stdout_only_in_formats_for_people(project: Project, name: str) -> None:
    project(train=VIEW)
    ran = shapefix("fix", "--apply", "--output-format", name)
    listed = "train.py: repaired 1 x SF101"
    assert (listed in ran.out) == FINDING_FORMATS[name].for_people
    assert (listed in ran.err) != FINDING_FORMATS[name].for_people
