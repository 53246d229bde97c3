"""Render the keys of the configuration: for people, as JSON, and as a JSON schema."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from shapefix.report.formats import FINDING_FORMATS
from shapefix.rulebook.pages import Page
from shapefix.sources.configuration_keys import ConfigurationKey

_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The version of JSON Schema that SchemaStore recommends."""
_ID = "https://json.schemastore.org/shapefix.json"


def render_names(keys: Iterable[ConfigurationKey]) -> Iterator[str]:
    """Render a line per key."""
    for key in keys:
        yield f"{key.name}\n"


def render_key(key: ConfigurationKey) -> Iterator[str]:
    """Render the documentation of a key."""
    yield f"{textwrap.fill(key.help, 80)}\n\n"
    yield f"Default value: {'none' if key.default is None else json.dumps(key.default)}\n"
    yield f"Type: {key.kind.text}\n"
    yield f"Example usage:\n```toml\n{key.example}\n```\n"


def render_json(keys: Iterable[ConfigurationKey]) -> Iterator[str]:
    """Render an object with the documentation of each key, as ruff does."""
    documented = {key.name: key_document(key) for key in keys}
    yield json.dumps(documented, indent=2) + "\n"


def render_one_json(key: ConfigurationKey) -> Iterator[str]:
    """Render the object of one key."""
    yield json.dumps(key_document(key), indent=2) + "\n"


def key_document(key: ConfigurationKey) -> dict[str, Any]:
    """Return the documentation of a key."""
    return {
        "doc": key.help,
        "default": json.dumps(key.default),
        "value_type": key.kind.text,
        "example": key.example,
    }


def render_schema(keys: Iterable[ConfigurationKey], pages: Sequence[Page]) -> Iterator[str]:
    """Render the JSON schema of a shapefix.toml, or of [tool.shapefix], in the form of SchemaStore."""
    document = {
        "$schema": _DRAFT,
        "$id": _ID,
        "title": "shapefix",
        "description": "Configuration of shapefix: shapefix.toml, or [tool.shapefix] in pyproject.toml",
        "type": "object",
        "additionalProperties": False,
        "definitions": {"rule": {"type": "string", "anyOf": [{"enum": _selectors(pages)}, _PREFIX]}},
        "properties": {key.name: _schema(key) for key in sorted(keys, key=lambda key: key.name)},
    }
    yield json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_PREFIX = {"type": "string", "pattern": "^[A-Z]+[0-9]*$"}
"""A prefix, or a rule of a plugin."""


def _selectors(pages: Sequence[Page]) -> list[str]:
    names = sorted(name for page in pages for name in (page.name, *page.aliases))
    return ["ALL", *(page.code for page in pages), *names]


def _schema(key: ConfigurationKey) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": key.help, **key.kind.schema}
    if key.name == "output-format":
        schema["enum"] = list(FINDING_FORMATS)
    if key.kind.rules:
        rules = {"type": "array", "items": {"$ref": "#/definitions/rule"}}
        schema |= {"additionalProperties": rules} if schema["type"] == "object" else rules
    if key.default is not None:
        schema["default"] = key.default
    return schema
