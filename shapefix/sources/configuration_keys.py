"""The keys of the configuration: names, types, defaults and documentation, in one table.

The table validates files and `--config`, and `shapefix config` and the JSON schema are made from it.
"""

# ruff: noqa: PTH111, PTH118

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sized
from dataclasses import field
from typing import Any, TypeVar

from shapefix.light_dataclasses import dataclass
from shapefix.sources.declarations import InvalidDeclaration, declaration
from shapefix.sources.globs import MOST_PATTERNS
from shapefix.sources.versions import is_version

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".history", ".ipynb_checkpoints",
    ".mypy_cache", ".nox", ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".shapefix_cache",
    ".svn", ".tox", ".venv", ".vscode", "__pycache__", "__pypackages__", "_build", "buck-out", "build",
    "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip


class InvalidSetting(ValueError):
    """A value of another type than its key has; the message names the key and the expected value."""


Reader = Callable[[str, Any, str], Any]
"""Returns the checked value of a key. Gets its name for messages, the value, and the folder of the file."""


@dataclass(frozen=True)
class ValueKind:
    """A type of values: its text for people, its JSON schema, and its reader.

    rules marks a list of rules, for which the schema also has their codes and names.
    """

    text: str
    schema: Mapping[str, Any]
    read: Reader
    rules: bool = False


@dataclass(frozen=True)
class ConfigurationKey:
    """One key: its default as a JSON value, its documentation, and an example in TOML."""

    name: str
    kind: ValueKind
    default: Any
    help: str
    example: str
    attribute: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "attribute", self.name.replace("-", "_"))


T = TypeVar("T")


def _expect(at: str, value: Any, kind: type[T], expected: str) -> T:
    if not isinstance(value, kind):
        raise InvalidSetting(f"{at} must be {expected}, not {kind_of(value)}")
    return value


def _expect_few(at: str, value: Sized) -> None:
    if len(value) > MOST_PATTERNS:
        raise InvalidSetting(f"{at} must have at most {MOST_PATTERNS:,} entries")


def _boolean(at: str, value: Any, folder: str) -> bool:
    return _expect(at, value, bool, "true or false")


def _string(at: str, value: Any, folder: str) -> str:
    return _expect(at, value, str, "a string")


def _path(at: str, value: Any, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(_string(at, value, folder))))


def _version(at: str, value: Any, folder: str) -> str:
    text = _string(at, value, folder)
    if not is_version(text):
        raise InvalidSetting(f'{at} must be a version, like "4.57", not {kind_of(value)}')
    return text.strip()


def _strings(at: str, value: Any, folder: str) -> tuple[str, ...]:
    if isinstance(value, list):
        _expect_few(at, value)
        for each in value:
            _expect(at, each, str, "a list of strings")
        return tuple(value)
    raise InvalidSetting(f"{at} must be a list of strings, not {kind_of(value)}")


def _rules_by_pattern(at: str, value: Any, folder: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(f"{at} must be a table from patterns to lists of rules, not {kind_of(value)}")
    _expect_few(at, value)
    return tuple((each, _strings(f"{at}.{each!r}", rules, folder)) for each, rules in value.items())


def _signatures(at: str, value: Any, folder: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise InvalidSetting(f"{at} must be a table from functions to their sizes, not {kind_of(value)}")
    _expect_few(at, value)
    for name, text in value.items():
        where = f"{at}.{shortened(name)!r}"
        if not all(part.isidentifier() for part in name.split(".")) or "." not in name:
            raise InvalidSetting(f'{where} must be a full name, like "mylib.Block.forward"')
        try:
            declaration(_string(where, text, folder))
        except InvalidDeclaration as error:
            raise InvalidSetting(f"{where} {error}") from None
    return tuple(value.items())


_STRINGS = {"type": "array", "items": {"type": "string"}}
BOOLEAN = ValueKind("boolean", {"type": "boolean"}, _boolean)
STRING = ValueKind("string", {"type": "string"}, _string)
PATH = ValueKind("path", {"type": "string"}, _path)
VERSION = ValueKind("version", {"type": "string", "pattern": r"^\s*\d"}, _version)
PATTERNS = ValueKind("list of patterns", _STRINGS, _strings)
RULES = ValueKind("list of rules", _STRINGS, _strings, rules=True)
RULES_BY_PATTERN = ValueKind(
    "table from patterns to lists of rules",
    {"type": "object", "additionalProperties": _STRINGS},
    _rules_by_pattern,
    rules=True,
)
SIGNATURES = ValueKind(
    "table from functions to their sizes",
    {"type": "object", "additionalProperties": {"type": "string"}},
    _signatures,
)

KEYS = (
    ConfigurationKey(
        "extend",
        PATH,
        None,
        "A configuration file to build on. The keys of this file override those of the extended one, and its"
        " selection of rules is applied after it. Patterns stay relative to the file that they are in.",
        'extend = "../base.toml"',
    ),
    ConfigurationKey(
        "select",
        RULES,
        None,
        "Enable only these rules: codes, prefixes, names or ALL. By default, all rules of severity error and"
        " warning are enabled.",
        'select = ["SF1", "ragged-labels"]',
    ),
    ConfigurationKey("ignore", RULES, [], "Disable rules.", 'ignore = ["SF701"]'),
    ConfigurationKey("extend-select", RULES, [], "Enable additional rules.", 'extend-select = ["SF102"]'),
    ConfigurationKey(
        "exclude",
        PATTERNS,
        list(DEFAULT_EXCLUDE),
        "Skip files and folders that match one of these patterns instead of the default ones.",
        'exclude = ["build", "old/*.py"]',
    ),
    ConfigurationKey(
        "extend-exclude",
        PATTERNS,
        [],
        "Skip additional files and folders, those that match one of these patterns.",
        'extend-exclude = ["third_party"]',
    ),
    ConfigurationKey(
        "force-exclude",
        BOOLEAN,
        False,
        "Also apply excludes to files passed explicitly, as pre-commit passes them.",
        "force-exclude = true",
    ),
    ConfigurationKey(
        "per-file-ignores",
        RULES_BY_PATTERN,
        {},
        "Disable rules in the files that match a pattern; `!` at the start of a pattern inverts it.",
        'per-file-ignores = { "tests/*" = ["SF105"] }',
    ),
    ConfigurationKey(
        "extend-per-file-ignores",
        RULES_BY_PATTERN,
        {},
        "Like per-file-ignores, in addition to those of the extended file.",
        'extend-per-file-ignores = { "demo.py" = ["SF105"] }',
    ),
    ConfigurationKey("fixable", RULES, ["ALL"], "Only apply the fixes of these rules.", 'fixable = ["SF1"]'),
    ConfigurationKey(
        "unfixable",
        RULES,
        [],
        "Show the fixes of these rules, but do not apply them.",
        'unfixable = ["SF701"]',
    ),
    ConfigurationKey("unsafe-fixes", BOOLEAN, False, "Include unsafe fixes.", "unsafe-fixes = true"),
    ConfigurationKey(
        "preview", BOOLEAN, False, "Report findings that depend on an assumption.", "preview = true"
    ),
    ConfigurationKey(
        "show-fixes", BOOLEAN, False, "List the fixed findings, even with --quiet.", "show-fixes = true"
    ),
    ConfigurationKey("output-format", STRING, "full", "Output format.", 'output-format = "concise"'),
    ConfigurationKey(
        "cache-dir",
        PATH,
        None,
        "Folder for cached results, below that of the file. By default, it is in the user's cache folder.",
        'cache-dir = ".cache/shapefix"',
    ),
    ConfigurationKey(
        "transformers-version",
        VERSION,
        None,
        "Version of transformers to check against. By default, it comes from the requirements of the project,"
        " or is the newest one.",
        'transformers-version = "4.57"',
    ),
    ConfigurationKey(
        "signatures",
        SIGNATURES,
        {},
        "Declared sizes of functions and layers that shapefix cannot follow.",
        'signatures = { "mylib.FlashBlock.forward" = "x: f[B, T, D] -> f[B, T, D]" }',
    ),
)


def shortened(value: Any) -> Any:
    return f"{value[:60]}…" if isinstance(value, str) and len(value) > 60 else value


def kind_of(value: Any) -> str:
    """Return the TOML type of a value."""
    for kind, words in (
        (bool, "a boolean"), (int, "an integer"), (float, "a float"),
        (str, f"the string {shortened(value)!r}"), (list, "a list"), (dict, "a table"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return words
    return "a date or time"
