"""`shapefix config`: the keys of the configuration."""

from __future__ import annotations

import click

from shapefix.cli.exit_codes import CLEAN
from shapefix.cli.output import write
from shapefix.report import configuration_reference as reference
from shapefix.rulebook.pages import pages
from shapefix.sources.configuration import suggestion
from shapefix.sources.configuration_keys import KEYS


def describe(name: str | None, output_format: str) -> int:
    """List the keys, or show the documentation of one. Raises click.UsageError for an unknown one."""
    if name is None:
        if output_format == "schema":
            own = [page for page in pages() if page.plugin is None]
            write(reference.render_schema(KEYS, own))
        else:
            write(reference.render_names(KEYS) if output_format == "text" else reference.render_json(KEYS))
        return CLEAN
    key = next((each for each in KEYS if each.name == name), None)
    if key is None:
        known = [each.name for each in KEYS]
        raise click.UsageError(
            f"unknown key {name!r}{suggestion(name, known, '; `shapefix config` lists all')}"
        )
    if output_format == "schema":
        raise click.UsageError("the schema is about all keys; leave out the name")
    write(reference.render_key(key) if output_format == "text" else reference.render_one_json(key))
    return CLEAN
