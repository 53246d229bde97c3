"""Settings per file: the command line overrides the nearest configuration."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shapefix.diagnostics import Applicability, Failure, Fix
from shapefix.engine.user_cache import project_folder
from shapefix.rulebook.pages import pages
from shapefix.sources.configuration import (
    Configuration,
    ConfigurationError,
    Configurations,
    read_configuration,
)
from shapefix.sources.discovery import discover
from shapefix.sources.requirements import Requirements
from shapefix.sources.selection import RuleRow, Selection, covered, selected


@dataclass(frozen=True)
class CheckOptions:
    """Options of the command line; None if an option is not given.

    config is the path of a configuration for all files; isolated ignores all configurations. jobs is the
    number of processes.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    config: str | None = None
    isolated: bool = False
    transformers_version: str | None = None
    cache_dir: str | None = None
    use_cache: bool = True
    jobs: int | None = None
    unsafe_fixes: bool | None = None
    preview: bool | None = None
    force_exclude: bool = False
    verbose: bool = False


class Settings:
    """The settings of one run. Reading an invalid configuration raises ConfigurationError."""

    def __init__(self, options: CheckOptions, table: Sequence[RuleRow] | None = None) -> None:
        self.options = options
        self.table: tuple[RuleRow, ...] = tuple(
            [(page.code, page.name, page.severity) for page in pages()] if table is None else table
        )
        self._rules: dict[str | None, frozenset[str]] = {}
        self._requirements = Requirements()
        self._invalid: dict[str, ConfigurationError | None] = {}
        self._refused: dict[str, Failure] = {}

    @cached_property
    def configurations(self) -> Configurations:
        """The configuration of each folder."""
        if self.options.config is not None:
            # As with ruff, patterns in an explicit configuration are relative to the current folder.
            here = os.path.realpath(os.curdir)
            return _SingleConfiguration(replace(read_configuration(self.options.config), root=here))
        if self.options.isolated:
            return _SingleConfiguration(Configuration(os.path.realpath(os.curdir)))
        return Configurations()

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
                    self.table,
                    Selection.of(configuration),
                    Selection(self.options.select, self.options.ignore, self.options.extend_select),
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
                configuration.ignored_in(path)
                for _, selectors in configuration.per_file_ignores:
                    self._covered(configuration, selectors)
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
        ignored = configuration.ignored_in(path)
        rules = self.rules_of(configuration)
        if not ignored:
            return rules
        return rules - self._covered(configuration, ignored)

    def _covered(self, configuration: Configuration, selectors: tuple[str, ...]) -> frozenset[str]:
        with configuration.blamed():
            return covered(self.table, selectors, f"{configuration.path}: per-file-ignores")

    def excludes(self, path: str) -> bool:
        """Check whether the configuration excludes an existing file; an invalid one does."""
        return not discover([path], self.configurations, force_exclude=True).files

    def cache_dir(self, path: str) -> str | None:
        """Return the cache folder for a file; None if results are not cached.

        The configuration of a repository may name a folder in it, but not elsewhere.
        """
        if not self.options.use_cache:
            return None
        if self.options.cache_dir is not None:
            return os.path.abspath(self.options.cache_dir)
        configuration = self.configuration(path)
        chosen = configuration.cache_dir
        if chosen is None:
            return project_folder(configuration.root)
        if self.options.config is None and not _is_below(os.path.realpath(chosen), configuration.root):
            assert configuration.path is not None
            self._refused[configuration.path] = Failure(
                configuration.path,
                f"cache-dir: {_shortened(chosen)!r} is not below the folder of this file; it is not used"
                " (the option --cache-dir accepts any folder)",
            )
            return project_folder(configuration.root)
        return chosen

    def unused(self) -> tuple[Failure, ...]:
        """Return the unusable settings: folders for the cache, and files with requirements."""
        return (*self._refused.values(), *self._requirements.unused())

    def transformers_version(self, path: str, root: str) -> str | None:
        """Return the version of transformers for a file, such as `4.57`; None for the newest.

        Unless it is set, it comes from the requirements of the project at root.
        """
        if self.options.transformers_version is not None:
            return self.options.transformers_version
        chosen = self.configuration(path).transformers_version
        return chosen or self._requirements.transformers_version(path, root)

    def oldest_versions(self, path: str, root: str) -> tuple[tuple[str, str], ...]:
        """Return the oldest permitted version of each library for a file; a missing one is the newest.

        It is the set version, or the lower bound in the requirements of the project at root.
        """
        found = self._requirements.oldest_versions(path, root)
        chosen = self.options.transformers_version or self.configuration(path).transformers_version
        if chosen is not None:
            found["transformers"] = chosen
        return tuple(sorted(found.items()))

    def fixes(self, path: str, fix: Fix) -> bool:
        """Check whether a fix may be applied in the file at path."""
        if fix.applicability is Applicability.UNSAFE:
            return self.unsafe_fixes(path)
        return fix.applicability is Applicability.SAFE

    def unsafe_fixes(self, path: str) -> bool:
        """Check whether unsafe fixes are enabled for a file."""
        if self.options.unsafe_fixes is not None:
            return self.options.unsafe_fixes
        return bool(self.configuration(path).unsafe_fixes)

    def preview(self, path: str) -> bool:
        """Check whether findings with a reservation are reported for a file."""
        if self.options.preview is not None:
            return self.options.preview
        return bool(self.configuration(path).preview)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}…"


class _SingleConfiguration(Configurations):
    """One configuration for all folders."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self._configuration = configuration

    def nearest(self, folder: str) -> Configuration:
        return self._configuration
