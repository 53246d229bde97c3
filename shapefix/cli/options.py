"""The options shared by several commands, and the parsing of their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from shapefix.report.formats import FINDING_FORMATS

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from shapefix.sources.configuration import IgnoresByPattern

Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]
Command = TypeVar("Command", bound=Callable[..., Any])


def _listed(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _version(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from shapefix.sources.versions import is_version

    if not is_version(value):
        raise click.BadParameter(f"{value!r} is not a version, for example 4.57 or 5", ctx, option)
    return value.strip()


def memory_size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Parse an amount of memory, such as 4GiB, 4G or 800MB, into bytes."""
    if value is None:
        return None
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?", value.strip(), re.IGNORECASE)
    amount = float(read[1]) * 1024 ** ("KMGT".index(read[2].upper()) + 1) if read else 0
    if amount < 1:
        problem = "needs a unit" if value.strip().isdigit() else "is not an amount of memory"
        raise click.BadParameter(f"{value!r} {problem}, for example 4GiB or 800MiB", ctx, option)
    return int(amount)


def _ignores(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> IgnoresByPattern:
    """Read `PATTERN:RULE,…`, the notation of ruff."""
    found: dict[str, list[str]] = {}
    for each in _listed(ctx, option, values):
        pattern, _, rule = (part.strip() for part in each.rpartition(":"))
        if not pattern or not rule:
            raise click.BadParameter(f"{each!r} is not PATTERN:RULE, for example tests/*:SF105", ctx, option)
        found.setdefault(pattern, []).append(rule)
    return tuple((pattern, tuple(rules)) for pattern, rules in found.items())


def completed_by(name: str) -> Completer:
    """Return the completion of a value by a function of `completion`, imported when a shell asks for it."""

    def complete(ctx: click.Context, option: click.Parameter, text: str) -> list[CompletionItem]:
        from shapefix.cli import completion

        found: Completer = getattr(completion, name)
        return found(ctx, option, text)

    return complete


def _list_option(flag: str, metavar: str, text: str) -> Callable[[Command], Command]:
    complete = completed_by("rules") if metavar == "RULES" else None
    return click.option(
        flag, multiple=True, metavar=metavar, callback=_listed, help=text, shell_complete=complete
    )


def _ignores_option(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, multiple=True, metavar="PATTERN:RULE", callback=_ignores, help=text)


def environment_variable(option: str) -> dict[str, Any]:
    """Return the settings of an option with a variable: that of ruff with our name."""
    return {"envvar": f"SHAPEFIX_{option.upper().replace('-', '_')}", "show_envvar": True}


transformers_option = click.option(
    "--transformers-version",
    metavar="VERSION",
    callback=_version,
    help="Version of transformers to check against. [default: from the requirements, else the newest]",
)
color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Control colored output."
)
text_or_json_option = click.option(
    "--output-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)


def shared_options(command: Command) -> Command:
    """Add the options shared by check and fix."""
    options = [
        click.argument("paths", nargs=-1, type=click.Path()),
        _list_option(
            "--select", "RULES", "Enable only these rules: codes, prefixes, names or ALL, comma-separated."
        ),
        _list_option("--ignore", "RULES", "Disable rules."),
        _list_option("--extend-select", "RULES", "Enable additional rules."),
        _ignores_option("--per-file-ignores", "Disable a rule in files that match a pattern."),
        _ignores_option("--extend-per-file-ignores", "The same, in addition to the configuration."),
        _list_option("--exclude", "PATTERNS", "Skip these files and folders instead of the default ones."),
        _list_option("--extend-exclude", "PATTERNS", "Skip additional files and folders."),
        _list_option("--fixable", "RULES", "Only apply the fixes of these rules."),
        _list_option("--unfixable", "RULES", "Show the fixes of these rules, but do not apply them."),
        click.option("--ignore-noqa", is_flag=True, help="Also report findings that comments suppress."),
        click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Include unsafe fixes."),
        click.option(
            "--preview/--no-preview", default=None, help="Include findings that depend on an assumption."
        ),
        click.option(
            "--output-format",
            type=click.Choice([*FINDING_FORMATS]),
            help="Output format. [default: full]",
            **environment_variable("output-format"),
        ),
        click.option(
            "--config",
            multiple=True,
            metavar="FILE|KEY=VALUE",
            help="Use this configuration file for all paths, or override a single key (in TOML).",
        ),
        click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
        transformers_option,
        click.option(
            "--force-exclude/--no-force-exclude",
            default=None,
            help="Also apply excludes to files passed explicitly.",
        ),
        click.option("--stdin-filename", metavar="NAME", help="File name to use for code read from stdin."),
        click.option(
            "--cache-dir",
            type=click.Path(),
            metavar="FOLDER",
            help="Folder for cached results. [default: in the user's cache folder]",
            **environment_variable("cache-dir"),
        ),
        click.option(
            "--no-cache",
            "-n",
            is_flag=True,
            help="Do not read or write the cache.",
            **environment_variable("no-cache"),
        ),
        click.option(
            "--jobs",
            "-j",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of processes. [default: number of CPUs]",
        ),
        click.option("--exit-zero", "-e", is_flag=True, help="Exit with 0 even if there are findings."),
        click.option(
            "--verbose",
            "-v",
            is_flag=True,
            help="Show all findings with every step of evidence, and what was not checked.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="Only print findings and errors."),
        color_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command
