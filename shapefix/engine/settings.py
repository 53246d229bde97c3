"""What holds for which file: the command line over the nearest configuration."""

# Paths are plain strings here, as in sources.
# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shapefix.diagnostics import Applicability, Fix
from shapefix.rulebook.pages import pages
from shapefix.sources.configuration import Configuration, Configurations, read_configuration
from shapefix.sources.discovery import discover
from shapefix.sources.requirements import Requirements
from shapefix.sources.selection import RuleRow, Selection, covered, selected

CACHE_FOLDER = ".shapefix_cache"


@dataclass(frozen=True)
class Options:
    """What the command line says; None where it says nothing.

    config is the path of a configuration that holds everywhere; isolated lets none hold. jobs counts
    processes.
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
    force_exclude: bool = False
    verbose: bool = False


class Settings:
    """Answers for one run; whatever reads a configuration raises ConfigurationError."""

    def __init__(self, options: Options, table: Sequence[RuleRow] | None = None) -> None:
        self.options = options
        self.table: tuple[RuleRow, ...] = tuple(
            [(page.code, page.name, page.severity) for page in pages()] if table is None else table
        )
        self._rules: dict[str | None, frozenset[str]] = {}
        self._requirements = Requirements()

    @cached_property
    def configurations(self) -> Configurations:
        """The configuration of each folder."""
        if self.options.config is not None:
            # As with ruff, the patterns of a file that is named count from where shapefix was called.
            here = os.path.realpath(os.curdir)
            return _Everywhere(replace(read_configuration(self.options.config), root=here))
        if self.options.isolated:
            return _Everywhere(Configuration(os.path.realpath(os.curdir)))
        return Configurations()

    def configuration(self, path: str) -> Configuration:
        """The configuration that holds for the file at this absolute path."""
        return self.configurations.nearest(os.path.dirname(path))

    def rules(self, path: str) -> frozenset[str]:
        """The codes that are wanted for a file, before per-file-ignores."""
        return self.rules_of(self.configuration(path))

    def rules_of(self, configuration: Configuration) -> frozenset[str]:
        """The codes that are wanted where a configuration holds."""
        known = self._rules.get(configuration.path)
        if known is None:
            known = self._rules[configuration.path] = selected(
                self.table,
                Selection.of(configuration),
                Selection(self.options.select, self.options.ignore, self.options.extend_select),
            )
        return known

    def reported(self, path: str) -> frozenset[str]:
        """The codes that are reported for a file."""
        configuration = self.configuration(path)
        ignored = configuration.ignored_in(path)
        rules = self.rules_of(configuration)
        if not ignored:
            return rules
        return rules - covered(self.table, ignored, f"{configuration.path}: per-file-ignores")

    def excludes(self, path: str) -> bool:
        """Tell whether the configuration excludes a file that exists."""
        return not discover([path], self.configurations, force_exclude=True).files

    def cache_dir(self, path: str) -> str | None:
        """The folder that caches the results for a file; None when nothing is to be cached."""
        if not self.options.use_cache:
            return None
        if self.options.cache_dir is not None:
            return os.path.abspath(self.options.cache_dir)
        configuration = self.configuration(path)
        return configuration.cache_dir or os.path.join(configuration.root, CACHE_FOLDER)

    def transformers_version(self, path: str, root: str) -> str | None:
        """The version of transformers that a file is written for, as `4.57`; None for the newest.

        root is the folder of its project, whose requirements tell it where nobody has set it.
        """
        if self.options.transformers_version is not None:
            return self.options.transformers_version
        chosen = self.configuration(path).transformers_version
        return chosen or self._requirements.transformers_version(os.path.dirname(path), root)

    def fixes(self, path: str, fix: Fix) -> bool:
        """Tell whether a fix is one that may be made in the file at path."""
        if fix.applicability is Applicability.UNSAFE:
            return self.unsafe_fixes(path)
        return fix.applicability is Applicability.SAFE

    def unsafe_fixes(self, path: str) -> bool:
        """Tell whether unsafe fixes are asked for in a file."""
        if self.options.unsafe_fixes is not None:
            return self.options.unsafe_fixes
        return bool(self.configuration(path).unsafe_fixes)


class _Everywhere(Configurations):
    """One configuration for all folders."""

    def __init__(self, configuration: Configuration) -> None:
        super().__init__()
        self._configuration = configuration

    def nearest(self, folder: str) -> Configuration:
        return self._configuration
