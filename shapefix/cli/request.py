"""The parsed command line of check or fix."""

# ruff: noqa: PTH110

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from shapefix.engine.settings import CheckOptions
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class CheckRequest:
    """The parsed command line of check or fix; options has the rules and configuration."""

    paths: tuple[str, ...]
    options: CheckOptions
    stdin_filename: str | None
    reads_stdin: bool
    output_format: str | None
    color: str
    exit_zero: bool
    quiet: bool
    statistics: bool = False
    show_files: bool = False
    show_settings: bool = False
    apply: bool = False
    with_probe: str | None = None
    baseline: str | None = None
    write_baseline: bool = False
    add_noqa: str | None = None
    changed: str | None = None
    diff: bool = False
    fix_only: bool = False
    exit_non_zero_on_fix: bool = False

    @property
    def repairs(self) -> bool:
        """Whether check also repairs, or shows the repairs."""
        return self.apply or self.diff

    @property
    def verbose(self) -> bool:
        return self.options.verbose and not self.quiet


def parse_request(given: Mapping[str, Any]) -> CheckRequest:
    """Build a Request from click's parameters. Raises click.UsageError for contradictory options."""
    import click

    paths = tuple(given["paths"])
    stdin_filename = given["stdin_filename"]
    reads_stdin = paths == ("-",) or (not paths and stdin_filename is not None)
    if not reads_stdin and "-" in paths:
        raise click.UsageError("cannot combine standard input (-) with other paths")
    if not reads_stdin and stdin_filename is not None:
        raise click.UsageError("--stdin-filename requires standard input; pass - as the only path")
    file, inline = _configurations(given["config"], given["isolated"])
    options = CheckOptions(
        select=given["select"] or None,
        ignore=given["ignore"],
        extend_select=given["extend_select"],
        exclude=given["exclude"] or None,
        extend_exclude=given["extend_exclude"],
        per_file_ignores=given["per_file_ignores"] or None,
        extend_per_file_ignores=given["extend_per_file_ignores"],
        fixable=given["fixable"] or None,
        unfixable=given["unfixable"],
        ignore_noqa=given["ignore_noqa"],
        config=file,
        inline_config=inline,
        isolated=given["isolated"],
        transformers_version=given["transformers_version"],
        cache_dir=given["cache_dir"],
        use_cache=not given["no_cache"],
        jobs=given["jobs"],
        unsafe_fixes=given["unsafe_fixes"],
        preview=given["preview"],
        force_exclude=given["force_exclude"],
        show_fixes=given.get("show_fixes"),
        verbose=given["verbose"],
    )
    flags = (
        "output_format",
        "color",
        "exit_zero",
        "quiet",
        "statistics",
        "show_files",
        "show_settings",
        "apply",
        "with_probe",
        "baseline",
        "write_baseline",
        "add_noqa",
        "changed",
        "diff",
        "exit_non_zero_on_fix",
    )
    chosen = {flag: given[flag] for flag in flags if flag in given}
    if "fix" in given:
        chosen["apply"] = _repairs_of_check(given)
        chosen["fix_only"] = given["fix_only"] or given["diff"]
    return CheckRequest(paths or (".",), options, stdin_filename, reads_stdin, **chosen)


def _configurations(values: Sequence[str], isolated: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return the file and the settings among the values of --config. Raises click.UsageError."""
    import click

    settings = [each for each in values if "=" in each and not os.path.exists(each)]
    files = [each for each in values if each not in settings]
    if len(files) > 1:
        raise click.UsageError("--config accepts only one file")
    if files and isolated:
        raise click.UsageError("--config FILE and --isolated cannot be combined")
    return next(iter(files), None), tuple(settings)


_REPORTS = ("statistics", "show_files", "show_settings", "with_probe", "baseline", "changed")
"""The options of check for a report without repairs."""


def _repairs_of_check(given: Mapping[str, Any]) -> bool:
    """Return whether check writes fixes. Raises click.UsageError for contradictory options."""
    import click

    chosen = (each for each in ("add_noqa", "diff", "fix", "fix_only") if given[each] not in (False, None))
    repairing = next(chosen, None)
    report = next((each for each in _REPORTS if given[each]), None)
    if repairing is not None and report is not None:
        names = (f"--{each.replace('_', '-')}" for each in (repairing, report))
        raise click.UsageError("{} and {} cannot be combined; run the command twice".format(*names))
    if given["add_noqa"] is not None:
        if any(given[each] for each in ("diff", "fix", "fix_only")):
            raise click.UsageError("--add-noqa and fixes cannot be combined; run the command twice")
        if "-" in given["paths"] or given["stdin_filename"] is not None:
            raise click.UsageError("--add-noqa needs files, not standard input")
        if len(given["add_noqa"].splitlines()) > 1:
            raise click.UsageError("the reason of --add-noqa must be one line")
    if given["write_baseline"] and given["baseline"] is None:
        raise click.UsageError("--write-baseline needs a file: --baseline FILE --write-baseline")
    if given["diff"] and given["show_fixes"]:
        raise click.UsageError("--diff and --show-fixes cannot be combined")
    if given["changed"] is not None and given["write_baseline"]:
        raise click.UsageError("--changed and --write-baseline cannot be combined")
    if "-" in given["paths"] or given["stdin_filename"] is not None:
        needs_files = next((each for each in ("changed", "watch") if given[each]), None)
        if needs_files is not None:
            raise click.UsageError(f"--{needs_files} needs files, not standard input")
    if given["exit_non_zero_on_fix"] and given["exit_zero"]:
        raise click.UsageError("--exit-non-zero-on-fix and --exit-zero cannot be combined")
    return not given["diff"] and (given["fix"] or given["fix_only"])
