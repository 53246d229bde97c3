"""Settings per file: the command line overrides the nearest configuration."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from shapefix.diagnostics import Applicability, Failure, Fix
from shapefix.engine.user_cache import project_folder
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import pages
from shapefix.sources.configuration import (
    Configuration,
    ConfigurationError,
    ConfigurationLayer,
    Configurations,
    FileIgnores,
    IgnoresByPattern,
    SingleConfiguration,
    read_configuration,
    read_inline,
)
from shapefix.sources.discovery import discover
from shapefix.sources.requirements import Requirements
from shapefix.sources.selection import RuleRow, Selection, covered, selected


@dataclass(frozen=True)
class CheckOptions:
    """Options of the command line; None if an option is not given.

    config is the path of a configuration for all files, inline_config are settings like `preview = true`;
    isolated ignores all configuration files. jobs is the number of processes.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    per_file_ignores: IgnoresByPattern | None = None
    extend_per_file_ignores: IgnoresByPattern = ()
    fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] = ()
    ignore_noqa: bool = False
    config: str | None = None
    inline_config: tuple[str, ...] = ()
    isolated: bool = False
    transformers_version: str | None = None
    cache_dir: str | None = None
    use_cache: bool = True
    jobs: int | None = None
    unsafe_fixes: bool | None = None
    preview: bool | None = None
    force_exclude: bool | None = None
    show_fixes: bool | None = None
    verbose: bool = False


class Settings:
    """The settings of one run. Reading an invalid configuration raises ConfigurationError."""

    def __init__(self, options: CheckOptions, table: Sequence[RuleRow] | None = None) -> None:
        self.options = options
        self.table: tuple[RuleRow, ...] = tuple(
            [(page.code, page.name, page.severity) for page in pages()] if table is None else table
        )
        self._rules: dict[str | None, frozenset[str]] = {}
        self._fixable: dict[str | None, frozenset[str]] = {}
        self._requirements = Requirements()
        self._invalid: dict[str, ConfigurationError | None] = {}
        self._refused: dict[str, Failure] = {}

    @cached_property
    def configurations(self) -> Configurations:
        """The configuration of each folder, with the options of the command line over it."""
        here = os.path.realpath(os.curdir)
        overrides = self._overrides(here)
        if self.options.config is not None:
            # As with ruff, patterns in an explicit configuration are relative to the current folder.
            read = read_configuration(self.options.config)
            layers = (*read.layers[:-1], replace(read.layers[-1], root=here), *overrides)
            return SingleConfiguration(Configuration(here, read.path, layers))
        if self.options.isolated:
            return SingleConfiguration(Configuration(here, None, overrides))
        return Configurations(None, overrides)

    def _overrides(self, here: str) -> tuple[ConfigurationLayer, ...]:
        """Return the settings of --config, and those of the other options."""
        given = self.options
        options = ConfigurationLayer(
            "--",
            here,
            select=given.select,
            ignore=given.ignore,
            extend_select=given.extend_select,
            exclude=given.exclude,
            extend_exclude=given.extend_exclude,
            force_exclude=given.force_exclude,
            per_file_ignores=given.per_file_ignores,
            extend_per_file_ignores=given.extend_per_file_ignores,
            fixable=given.fixable,
            unfixable=given.unfixable,
            unsafe_fixes=given.unsafe_fixes,
            preview=given.preview,
            show_fixes=given.show_fixes,
            cache_dir=None if given.cache_dir is None else os.path.abspath(given.cache_dir),
            transformers_version=given.transformers_version,
        )
        return (*(read_inline(text, here) for text in given.inline_config), options)

    def configuration(self, path: str) -> Configuration:
        """Return the configuration of the file at this absolute path."""
        return self.configurations.nearest(os.path.dirname(path))

    def rules(self, path: str) -> frozenset[str]:
        """Return the selected codes for a file, before per-file-ignores."""
        return self.rules_of(self.configuration(path))

    def rules_of(self, configuration: Configuration) -> frozenset[str]:
        """Return the selected codes under a configuration."""
        known = self._rules.get(configuration.path)
        if known is None:
            with configuration.blamed():
                known = self._rules[configuration.path] = selected(
                    self.table, *Selection.layers(configuration)
                )
        return known

    def invalid(self, path: str) -> ConfigurationError | None:
        """Return the error in the configuration of a file; None if it is valid.

        Raises ConfigurationError for invalid options.
        """
        folder = os.path.dirname(path)
        if folder not in self._invalid:
            self._invalid[folder] = None
            try:
                configuration = self.configuration(path)
                self.rules_of(configuration)
                self._fixable_codes(configuration)
                for ignores in configuration.file_ignores:
                    self._covered(configuration, ignores)
            except ConfigurationError as error:
                if error.path is None:
                    raise
                self._invalid[folder] = error
        return self._invalid[folder]

    def reported(self, path: str) -> frozenset[str]:
        """Return the codes reported for a file; none if its configuration is invalid."""
        if self.invalid(path):
            return frozenset()
        configuration = self.configuration(path)
        reported = self.rules_of(configuration)
        for ignores in configuration.file_ignores:
            if ignores.covers(path):
                reported -= self._covered(configuration, ignores)
        return reported

    def _covered(self, configuration: Configuration, ignores: FileIgnores) -> frozenset[str]:
        with configuration.blamed():
            return covered(self.table, ignores.selectors, ignores.source)

    def excludes(self, path: str) -> bool:
        """Check whether the configuration excludes an existing file; an invalid one does."""
        return not discover([path], self.configurations, force_exclude=True).files

    def cache_dir(self, path: str) -> str | None:
        """Return the cache folder for a file; None if results are not cached.

        The configuration of a repository may name a folder in it, but not elsewhere.
        """
        if not self.options.use_cache:
            return None
        configuration = self.configuration(path)
        layer = configuration.setting_layer("cache_dir")
        if layer is None or layer.cache_dir is None:
            return project_folder(configuration.root)
        # The folder of an option, or of a file named by one, is the choice of the user.
        is_chosen = layer.path is None or self.options.config is not None
        if not is_chosen and not _is_below(os.path.realpath(layer.cache_dir), configuration.root):
            assert layer.path is not None
            self._refused[layer.path] = Failure(
                layer.path,
                f"cache-dir: {_shortened(layer.cache_dir)!r} is not below the folder of this file; it is not"
                " used (the option --cache-dir accepts any folder)",
            )
            return project_folder(configuration.root)
        return layer.cache_dir

    def unused(self) -> tuple[Failure, ...]:
        """Return the unusable settings: folders for the cache, and files with requirements."""
        return (*self._refused.values(), *self._requirements.unused())

    def transformers_version(self, path: str, root: str) -> str | None:
        """Return the version of transformers for a file, such as `4.57`; None for the newest.

        Unless it is set, it comes from the requirements of the project at root.
        """
        chosen = self.configuration(path).transformers_version
        return chosen or self._requirements.transformers_version(path, root)

    def oldest_versions(self, path: str, root: str) -> tuple[tuple[str, str], ...]:
        """Return the oldest permitted version of each library for a file; a missing one is the newest.

        It is the set version, or the lower bound in the requirements of the project at root.
        """
        found = self._requirements.oldest_versions(path, root)
        chosen = self.configuration(path).transformers_version
        if chosen is not None:
            found["transformers"] = chosen
        return tuple(sorted(found.items()))

    def fixes(self, path: str, fix: Fix, code: str) -> bool:
        """Check whether a fix of a rule may be applied in the file at path."""
        if fix.applicability is Applicability.DISPLAY or not self.is_fixable(path, code):
            return False
        return fix.applicability is Applicability.SAFE or self.unsafe_fixes(path)

    def is_fixable(self, path: str, code: str) -> bool:
        """Check whether fixable and unfixable permit the fixes of a rule."""
        configuration = self.configuration(path)
        return not configuration.limits_fixes or code in self._fixable_codes(configuration)

    def _fixable_codes(self, configuration: Configuration) -> frozenset[str]:
        known = self._fixable.get(configuration.path)
        if known is None:
            with configuration.blamed():
                layers = Selection.of_fixes(configuration)
                known = self._fixable[configuration.path] = selected(self.table, *layers)
        return known

    def unsafe_fixes(self, path: str) -> bool:
        """Check whether unsafe fixes are enabled for a file."""
        return self.configuration(path).unsafe_fixes

    def preview(self, path: str) -> bool:
        """Check whether findings with a reservation are reported for a file."""
        return self.configuration(path).preview


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"
