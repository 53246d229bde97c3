"""Read the configuration: `[tool.shapefix]` in the nearest pyproject.toml, or a shapefix.toml."""

# Paths are plain strings here, as elsewhere: a path is shown as it was given.
# ruff: noqa: PTH100, PTH112, PTH113, PTH116, PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

from shapefix.diagnostics import Failure
from shapefix.light_dataclasses import dataclass
from shapefix.sources.bounded_toml import InvalidToml, parse_toml
from shapefix.sources.configuration_keys import DEFAULT_EXCLUDE, KEYS, InvalidSetting, kind_of, shortened
from shapefix.sources.globs import Globs, TooManyChoices
from shapefix.sources.text import Unreadable, read_settings

IgnoresByPattern = tuple[tuple[str, tuple[str, ...]], ...]
"""Patterns with the selectors of the rules to ignore."""
MOST_EXTENDED = 20
"""Files in a chain of `extend`."""


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
class ConfigurationLayer:
    """The settings of one origin: a file, `--config "key = value"`, or the options of the command line.

    source is the origin in front of a key, for messages; path is that of a file. Patterns are relative to
    root, an absolute path. A list to which layers add is empty if it is not set; any other key is None.
    """

    source: str
    root: str
    path: str | None = None
    extend: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool | None = None
    per_file_ignores: IgnoresByPattern | None = None
    extend_per_file_ignores: IgnoresByPattern = ()
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    unsafe_fixes: bool | None = None
    preview: bool | None = None
    show_fixes: bool | None = None
    output_format: str | None = None
    cache_dir: str | None = None
    transformers_version: str | None = None
    signatures: tuple[tuple[str, str], ...] = ()

    def globs(self, patterns: Iterable[str], key: str) -> Globs:
        """Return the patterns of a key. Raises ConfigurationError."""
        try:
            return Globs(self.root, patterns)
        except TooManyChoices as error:
            raise ConfigurationError(f"{self.source}{key}: {error}") from None


@dataclass(frozen=True)
class FileIgnores:
    """A pattern with the selectors of the rules to ignore; source is its origin, for messages."""

    pattern: str
    globs: Globs
    selectors: tuple[str, ...]
    source: str

    def covers(self, path: str) -> bool:
        """Check whether it is about the file at an absolute path.

        As with ruff, a pattern that starts with `!` is about the files that it does not match.
        """
        return self.globs.matches(path) != self.pattern.startswith("!")


@dataclass(frozen=True)
class Configuration:
    """The settings for the files below root, an absolute path; path is the configuration file.

    Later layers override earlier ones: first the files that are extended, then the file, then the options.
    """

    root: str
    path: str | None = None
    layers: tuple[ConfigurationLayer, ...] = ()

    def setting_layer(self, attribute: str) -> ConfigurationLayer | None:
        """Return the deciding layer of a key; None if it is not set."""
        return next((each for each in reversed(self.layers) if getattr(each, attribute) is not None), None)

    def _setting(self, attribute: str) -> Any:
        layer = self.setting_layer(attribute)
        return None if layer is None else getattr(layer, attribute)

    @property
    def exclude(self) -> tuple[str, ...]:
        """The patterns of exclude and extend-exclude."""
        chosen: tuple[str, ...] | None = self._setting("exclude")
        added = [pattern for layer in self.layers for pattern in layer.extend_exclude]
        return (*(DEFAULT_EXCLUDE if chosen is None else chosen), *added)

    @property
    def force_exclude(self) -> bool:
        """Whether excludes apply to files passed explicitly."""
        return bool(self._setting("force_exclude"))

    @property
    def limits_fixes(self) -> bool:
        """Whether fixable or unfixable is set."""
        return any(each.fixable is not None or each.unfixable for each in self.layers)

    @property
    def unsafe_fixes(self) -> bool:
        """Whether to include unsafe fixes."""
        return bool(self._setting("unsafe_fixes"))

    @property
    def preview(self) -> bool:
        """Whether to report findings resting on an assumption."""
        return bool(self._setting("preview"))

    @property
    def show_fixes(self) -> bool:
        """Whether to list the repaired findings, also with --quiet."""
        return bool(self._setting("show_fixes"))

    @property
    def transformers_version(self) -> str | None:
        """The version of transformers to check against, None if it is not set."""
        version: str | None = self._setting("transformers_version")
        return version

    @property
    def signatures(self) -> tuple[tuple[str, str], ...]:
        """Qualified names of functions with their declared sizes."""
        merged = {name: text for layer in self.layers for name, text in layer.signatures}
        return tuple(merged.items())

    @cached_property
    def file_ignores(self) -> tuple[FileIgnores, ...]:
        """The entries of per-file-ignores and extend-per-file-ignores. Raises ConfigurationError."""
        chosen = self.setting_layer("per_file_ignores")
        found: list[FileIgnores] = []
        with self.blamed():
            for layer in self.layers:
                for key, ignores in (
                    ("per-file-ignores", layer.per_file_ignores if layer is chosen else None),
                    ("extend-per-file-ignores", layer.extend_per_file_ignores),
                ):
                    for pattern, selectors in ignores or ():
                        globs = layer.globs([pattern.removeprefix("!")], key)
                        found.append(FileIgnores(pattern, globs, selectors, f"{layer.source}{key}"))
        return tuple(found)

    def excludes(self, path: str) -> bool:
        """Check whether exclude or extend-exclude match this absolute path, regardless of its parents."""
        return any(globs.matches(path) for globs in self._excluded)

    @cached_property
    def excluding_root(self) -> str:
        """The outermost folder above root with patterns of a layer."""
        above = (
            each.root for each in self.layers if f"{self.root}{os.sep}".startswith(f"{each.root}{os.sep}")
        )
        return min((self.root, *above), key=len)

    @cached_property
    def _excluded(self) -> list[Globs]:
        chosen = self.setting_layer("exclude")
        found = [Globs(self.root, DEFAULT_EXCLUDE)] if chosen is None else []
        with self.blamed():
            for layer in self.layers:
                patterns = (*((layer.exclude or ()) if layer is chosen else ()), *layer.extend_exclude)
                if patterns:
                    found.append(layer.globs(patterns, "exclude"))
        return found

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Give an error raised here the path of this configuration, if it is about one of its files."""
        try:
            yield
        except ConfigurationError as error:
            files = [f"{layer.path}: " for layer in self.layers if layer.path is not None]
            if self.path is not None and str(error).startswith(tuple(files)):
                error.path = self.path
            raise


class Configurations:
    """The nearest configuration for each folder, each file read once.

    Folders without a configuration file have the defaults, with `fallback_root` (by default the working
    directory) as root. overrides are layers over all of them.
    """

    def __init__(
        self, fallback_root: str | None = None, overrides: tuple[ConfigurationLayer, ...] = ()
    ) -> None:
        self._overrides = overrides
        self._defaults = Configuration(os.path.realpath(fallback_root or os.curdir), None, overrides)
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
                else:
                    known = replace(known, layers=(*known.layers, *self._overrides))
            except ConfigurationError as error:
                known = error
            self._nearest[folder] = known
        if isinstance(known, ConfigurationError):
            raise known
        return known


class SingleConfiguration(Configurations):
    """One configuration for all folders."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self._configuration = configuration

    def nearest(self, folder: str) -> Configuration:
        return self._configuration


def configuration_in(folder: str) -> Configuration | None:
    """Read shapefix.toml or else pyproject.toml in one folder; None if neither configures shapefix.

    Raises ConfigurationError. A pyproject.toml that does not contain "shapefix" is not parsed.
    """
    path = f"{folder}{os.sep}shapefix.toml"
    try:
        if _is_present(path):
            return _configuration(path, _layer(path, _parse(path, _read(path)), ""))
        path = f"{folder}{os.sep}pyproject.toml"
        if _is_present(path):
            data = _read(path)
            if b"shapefix" in data:
                tool = _parse(path, data).get("tool")
                if isinstance(tool, dict) and "shapefix" in tool:
                    return _configuration(path, _layer(path, tool["shapefix"], "tool.shapefix"))
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
    return _configuration(path, _named_layer(path))


def read_inline(text: str, root: str) -> ConfigurationLayer:
    """Read the settings of `--config "key = value"`. Raises ConfigurationError."""
    try:
        content = parse_toml(text)
    except InvalidToml as error:
        raise ConfigurationError(
            f"--config: {shortened(text)!r} is neither a file nor a setting like 'preview = true': it {error}"
        ) from None
    if "extend" in content:
        raise ConfigurationError("--config: extend is a key of files; `--config FILE` names one")
    return ConfigurationLayer("--config: ", root, **_settings("--config", content, root))


def _configuration(path: str, layer: ConfigurationLayer) -> Configuration:
    """Return the configuration of a file and its extended files."""
    layers = [layer]
    while layers[0].extend is not None:
        extended = layers[0].extend
        if any(each.path == extended for each in layers) or len(layers) == MOST_EXTENDED:
            raise ConfigurationError(
                f"{layers[0].path}: extend: {shortened(extended)!r} leads back to this file"
            )
        layers.insert(0, _named_layer(extended))
    return Configuration(os.path.dirname(path), path, tuple(layers))


def _named_layer(path: str) -> ConfigurationLayer:
    """Read a file named by an option or by another file."""
    content = _parse(path, _read(path))
    if not path.endswith("pyproject.toml"):
        return _layer(path, content, "")
    tool = content.get("tool")
    if not isinstance(tool, dict) or "shapefix" not in tool:
        raise ConfigurationError(f"{path}: has no table [tool.shapefix]")
    return _layer(path, tool["shapefix"], "tool.shapefix")


def _layer(path: str, content: Any, table: str) -> ConfigurationLayer:
    """Check the content of a configuration table, read from path; table is its name, "" at the top level."""
    where = f"{path}: [{table}]" if table else path
    if not isinstance(content, dict):
        raise ConfigurationError(f"{where} must be a table, not {kind_of(content)}")
    root = os.path.dirname(path)
    return ConfigurationLayer(f"{path}: ", root, path, **_settings(where, content, root))


def _settings(where: str, content: dict[str, Any], root: str) -> dict[str, Any]:
    """Check the keys and values of a table; the results are by attribute."""
    known = {each.name: each for each in KEYS}
    settings: dict[str, Any] = {}
    for name, value in content.items():
        key = known.get(name)
        if key is None:
            if name == "lint" and isinstance(value, dict):
                raise ConfigurationError(f"{where}: there is no table 'lint'; its keys are at the top level")
            hint = suggestion(name, known, f"; known keys are {', '.join(known)}")
            raise ConfigurationError(f"{where}: unknown key {shortened(name)!r}{hint}")
        try:
            settings[key.attribute] = key.kind.read(f"{where}: {name}", value, root)
        except InvalidSetting as error:
            raise ConfigurationError(str(error)) from None
    return settings


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
