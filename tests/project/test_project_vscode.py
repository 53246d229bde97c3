"""The settings of the VS Code extension are the options of the server."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from shapefix.server.language_server import ServerOptions, server_options

MANIFEST = json.loads((Path(__file__).parents[2] / "shapefix/editors/vscode/package.json").read_text())
SETTINGS: dict[str, dict[str, Any]] = MANIFEST["contributes"]["configuration"]["properties"]
OF_THE_CLIENT = {"shapefix.path", "shapefix.trace.server"}


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - OF_THE_CLIENT))
def test_the_server_knows_a_setting(name: str) -> None:
    option = name.removeprefix("shapefix.")
    assert server_options({option: True}) != server_options({option: False})


def test_each_option_is_a_setting() -> None:
    assert len(fields(ServerOptions)) == len(SETTINGS.keys() - OF_THE_CLIENT)
    defaults = {name.removeprefix("shapefix."): each["default"] for name, each in SETTINGS.items()}
    given = server_options(defaults)
    # A default of the editor would come before the settings of a project.
    assert given == ServerOptions()
