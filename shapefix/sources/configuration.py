"""Read the configuration: `[tool.shapefix]` in the nearest pyproject.toml, or a shapefix.toml."""

# Paths are plain strings here, as elsewhere: a path is shown as it was given.
# ruff: noqa: PTH100, PTH111, PTH112, PTH113, PTH116, PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

from shapefix.diagnostics import Failure
from shapefix.sources.bounded_toml import InvalidToml, parse_toml
from shapefix.sources.declarations import InvalidDeclaration, declaration
from shapefix.sources.globs import MOST_PATTERNS, Globs, TooManyChoices
from shapefix.sources.text import Unreadable, read_settings
from shapefix.sources.versions import is_version

DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".shapefix_cache", ".svn", ".tox",
    ".venv", ".vscode", "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist",
    "node_modules", "site-packages", "venv",
)  # fmt: skip


class ConfigurationError(Exception):
    """An invalid setting; the message names the file or option, the key, and the expected value.

    path is that of the configuration file, None for an option of the command line.
    """

    path: str | None = None

    def failure(self) -> Failure | None:
        """Return the error as a failure of the configuration file; None if it is about an option."""
        if self.path is None:
            return None
        return Failure(self.path, str(self).removeprefix(f"{self.path}: "))


@dataclass(frozen=True)
class Configuration:
    """The settings for the files below root, an absolute path.

    path is the configuration file, None for the defaults. A key that is not set is None, except exclude,
    which has its default. cache_dir is absolute. per_file_ignores maps patterns to selectors, and signatures
    qualified names of functions to declared sizes.
    """

    root: str
    path: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    unsafe_fixes: bool | None = None
    preview: bool | None = None
    output_format: str | None = None
    cache_dir: str | None = None
    transformers_version: str | None = None
    signatures: tuple[tuple[str, str], ...] = ()

    def excludes(self, path: str) -> bool:
        """Check whether exclude or extend-exclude match this absolute path, regardless of its parents."""
        return self._excluded.matches(path)

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Return the selectors of per-file-ignores for the file at this absolute path.

        As with ruff, a pattern that starts with `!` holds for the files that it does not match.
        """
        return tuple(
            selector
            for globs, negated, selectors in self._ignores
            if globs.matches(path) != negated
            for selector in selectors
        )

    @cached_property
    def _excluded(self) -> Globs:
        return self._globs(self.exclude + self.extend_exclude, "exclude")

    @cached_property
    def _ignores(self) -> list[tuple[Globs, bool, tuple[str, ...]]]:
        return [
            (
                self._globs([pattern.removeprefix("!")], "per-file-ignores"),
                pattern.startswith("!"),
                selectors,
            )
            for pattern, selectors in self.per_file_ignores
        ]

    def _globs(self, patterns: Iterable[str], key: str) -> Globs:
        with self.blamed():
            try:
                return Globs(self.root, patterns)
            except TooManyChoices as error:
                raise ConfigurationError(f"{self.path}: {key}: {error}") from None

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Give an error raised here the path of this configuration, if it is about it."""
        try:
            yield
        except ConfigurationError as error:
            if self.path is not None and str(error).startswith(f"{self.path}: "):
                error.path = self.path
            raise


class Configurations:
    """The nearest configuration for each folder, each file read once.

    Folders without a configuration file have the defaults, with `fallback_root` (by default the working
    directory) as root.
    """

    def __init__(self, fallback_root: str | None = None) -> None:
        self._defaults = Configuration(os.path.realpath(fallback_root or os.curdir))
        self._nearest: dict[str, Configuration | ConfigurationError] = {}

    def nearest(self, folder: str) -> Configuration:
        """Return the configuration of a folder, an absolute path. Raises ConfigurationError."""
        known = self._nearest.get(folder)
        if known is None:
            try:
                known = configuration_in(folder)
                if known is None:
                    parent = os.path.dirname(folder)
                    known = self._defaults if parent == folder else self.nearest(parent)
            except ConfigurationError as error:
                known = error
            self._nearest[folder] = known
        if isinstance(known, ConfigurationError):
            raise known
        return known


def configuration_in(folder: str) -> Configuration | None:
    """Read shapefix.toml or else pyproject.toml in one folder; None if neither configures shapefix.

    Raises ConfigurationError. A pyproject.toml that does not contain "shapefix" is not parsed.
    """
    path = f"{folder}{os.sep}shapefix.toml"
    try:
        if _is_present(path):
            return parse_configuration(path, _parse(path, _read(path)), table="")
        path = f"{folder}{os.sep}pyproject.toml"
        if _is_present(path):
            data = _read(path)
            if b"shapefix" in data:
                tool = _parse(path, data).get("tool")
                if isinstance(tool, dict) and "shapefix" in tool:
                    return parse_configuration(path, tool["shapefix"], table="tool.shapefix")
    except ConfigurationError as error:
        error.path = path
        raise
    return None


def _is_present(path: str) -> bool:
    """Check whether there is a file; also true for a pipe or a link to itself."""
    if os.path.isfile(path):
        return True
    if not os.path.lexists(path) or os.path.isdir(path):
        return False
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    except OSError:
        pass
    return True


def read_configuration(path: str) -> Configuration:
    """Read one configuration file; the settings of a pyproject.toml are in [tool.shapefix].

    Raises ConfigurationError, also if the file cannot be read or does not configure shapefix.
    """
    path = os.path.abspath(path)
    content = _parse(path, _read(path))
    if not path.endswith("pyproject.toml"):
        return parse_configuration(path, content, table="")
    tool = content.get("tool")
    if not isinstance(tool, dict) or "shapefix" not in tool:
        raise ConfigurationError(f"{path}: has no table [tool.shapefix]")
    return parse_configuration(path, tool["shapefix"], table="tool.shapefix")


def parse_configuration(path: str, content: Any, table: str) -> Configuration:
    """Check the content of a configuration table, read from path; table is its name, "" at the top level."""
    where = f"{path}: [{table}]" if table else path
    if not isinstance(content, dict):
        raise ConfigurationError(f"{where} must be a table, not {_kind(content)}")
    root = os.path.dirname(path)
    settings: dict[str, Any] = {}
    for key, value in content.items():
        at = f"{where}: {key}"
        match key:
            case "select" | "ignore" | "extend-select" | "exclude" | "extend-exclude":
                settings[key.replace("-", "_")] = _strings(at, value)
            case "per-file-ignores":
                settings["per_file_ignores"] = _strings_by_pattern(at, value)
            case "unsafe-fixes" | "preview":
                settings[key.replace("-", "_")] = _expect(at, value, bool, "true or false")
            case "output-format":
                settings["output_format"] = _expect(at, value, str, "a string")
            case "cache-dir":
                folder = os.path.expanduser(_expect(at, value, str, "a string"))
                settings["cache_dir"] = os.path.normpath(os.path.join(root, folder))
            case "transformers-version":
                settings["transformers_version"] = _version(at, value)
            case "signatures":
                settings["signatures"] = _signatures(at, value)
            case _:
                hint = suggestion(key, _KEYS, f"; known keys are {', '.join(_KEYS)}")
                raise ConfigurationError(f"{where}: unknown key {_shortened(key)!r}{hint}")
    return Configuration(root, path, **settings)


_KEYS = (
    "select", "ignore", "extend-select", "exclude", "extend-exclude", "per-file-ignores", "unsafe-fixes",
    "preview", "output-format", "cache-dir", "transformers-version", "signatures",
)  # fmt: skip


def suggestion(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return `; did you mean "…"?` with the closest known word, or otherwise."""
    if len(word) > 100:
        return otherwise
    by_lowered = {each.lower().replace("_", "-"): each for each in known}
    asked = word.lower().replace("_", "-")
    close = get_close_matches(asked, by_lowered, n=10, cutoff=0.6)
    if not close:
        return otherwise
    # Of words as close as each other, the one with most letters in their own places.
    in_place = [sum(a == b for a, b in zip(asked, each, strict=False)) for each in close]
    best = close[in_place.index(max(in_place))]
    return f"; did you mean {by_lowered[best]!r}?"


def _read(path: str) -> bytes:
    try:
        return read_settings(path)
    except Unreadable as error:
        raise ConfigurationError(f"{path}: {error.message}") from None


def _parse(path: str, data: bytes) -> dict[str, Any]:
    try:
        return parse_toml(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path}: is not valid UTF-8, as TOML must be") from None
    except InvalidToml as error:
        raise ConfigurationError(f"{path}: {error}") from None


T = TypeVar("T")


def _expect(at: str, value: Any, kind: type[T], expected: str) -> T:
    if not isinstance(value, kind):
        raise ConfigurationError(f"{at} must be {expected}, not {_kind(value)}")
    return value


def _version(at: str, value: Any) -> str:
    text = _expect(at, value, str, "a string")
    if not is_version(text):
        raise ConfigurationError(f'{at} must be a version, like "4.57", not {_kind(value)}')
    return text.strip()


def _strings(at: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, list):
        _expect_few(at, value)
        for each in value:
            _expect(at, each, str, "a list of strings")
        return tuple(value)
    raise ConfigurationError(f"{at} must be a list of strings, not {_kind(value)}")


def _strings_by_pattern(at: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{at} must be a table from patterns to lists of rules, not {_kind(value)}")
    _expect_few(at, value)
    return tuple((pattern, _strings(f"{at}.{pattern!r}", selectors)) for pattern, selectors in value.items())


def _signatures(at: str, value: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{at} must be a table from functions to their sizes, not {_kind(value)}")
    _expect_few(at, value)
    for name, text in value.items():
        where = f"{at}.{_shortened(name)!r}"
        if not all(part.isidentifier() for part in name.split(".")) or "." not in name:
            raise ConfigurationError(f'{where} must be a full name, like "mylib.Block.forward"')
        try:
            declaration(_expect(where, text, str, "a string"))
        except InvalidDeclaration as error:
            raise ConfigurationError(f"{where} {error}") from None
    return tuple(value.items())


def _expect_few(at: str, value: Sized) -> None:
    if len(value) > MOST_PATTERNS:
        raise ConfigurationError(f"{at} must have at most {MOST_PATTERNS:,} entries")


def _shortened(value: Any) -> Any:
    return f"{value[:60]}…" if isinstance(value, str) and len(value) > 60 else value


def _kind(value: Any) -> str:
    """Return the TOML type of a value."""
    for kind, words in (
        (bool, "a boolean"), (int, "an integer"), (float, "a float"),
        (str, f"the string {_shortened(value)!r}"), (list, "a list"), (dict, "a table"),
    ):  # fmt: skip
        if isinstance(value, kind):
            return words
    return "a date or time"
