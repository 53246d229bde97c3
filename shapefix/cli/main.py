"""The command line: commands, options, and one-line errors."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

import shapefix

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("full", "concise", "json", "github")


class _Commands(click.Group):
    """The command group; suggests the closest command for an unknown one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from shapefix.sources.configuration import suggestion

            known = self.list_commands(ctx)
            hint = suggestion(args[0], known, f"; choose from {', '.join(known)}")
            if os.path.exists(args[0]):  # noqa: PTH110
                hint = f"; did you mean `shapefix check {args[0]}`?"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class _Probe(click.Command):
    """The command probe; suggests a command line for launchers and for the script's own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from shapefix.cli.launchers import instead

        given = list(args)
        meant = instead(given)
        if meant is not None:
            raise click.UsageError(f"pass the script itself; did you mean `{meant}`?", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            place = next((n for n, word in enumerate(given) if word.startswith(error.option_name)), 0)
            if not any(os.path.exists(word) for word in given[:place]):  # noqa: PTH110
                raise
            meant = " ".join(["shapefix", "probe", *given[:place], "--", *given[place:]])
            raise click.UsageError(
                f"no such option {error.option_name!r}; put the script's own arguments after `--`: `{meant}`",
                ctx,
            ) from None


def _american(word: str) -> str:
    """Accept the British spelling of options."""
    return "color" if word == "colour" else word


def _listed(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _version(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from shapefix.sources.requirements import is_version

    if not is_version(value):
        raise click.BadParameter(f"{value!r} is not a version, for example 4.57 or 5", ctx, option)
    return value.strip()


def _size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """Parse an amount of memory, such as 4GiB, 4G or 800MB, into bytes."""
    if value is None:
        return None
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?", value.strip(), re.IGNORECASE)
    amount = float(read[1]) * 1024 ** ("KMGT".index(read[2].upper()) + 1) if read else 0
    if amount < 1:
        problem = "needs a unit" if value.strip().isdigit() else "is not an amount of memory"
        raise click.BadParameter(f"{value!r} {problem}, for example 4GiB or 800MiB", ctx, option)
    return int(amount)


def _rules_option(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, multiple=True, metavar="RULES", callback=_listed, help=text)


_transformers_option = click.option(
    "--transformers-version",
    metavar="VERSION",
    callback=_version,
    help="Version of transformers to check against. [default: from the requirements, or the newest]",
)
_color_option = click.option(
    "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Control colored output."
)


def _shared(command: Command) -> Command:
    """Add the options that check and fix share."""
    options = [
        click.argument("paths", nargs=-1),
        _rules_option("--select", "Enable only these rules: codes, prefixes, names or ALL, comma-separated."),
        _rules_option("--ignore", "Disable rules."),
        _rules_option("--extend-select", "Enable additional rules."),
        click.option("--unsafe-fixes/--no-unsafe-fixes", default=None, help="Include unsafe fixes."),
        click.option("--output-format", type=click.Choice(FORMATS), help="Output format. [default: full]"),
        click.option(
            "--config", type=click.Path(), metavar="FILE", help="Use this configuration file for all paths."
        ),
        click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
        _transformers_option,
        click.option("--force-exclude", is_flag=True, help="Apply excludes to files passed explicitly, too."),
        click.option("--stdin-filename", metavar="NAME", help="File name to use for code read from stdin."),
        click.option(
            "--cache-dir",
            type=click.Path(),
            metavar="FOLDER",
            help="Folder for cached results. [default: .shapefix_cache]",
        ),
        click.option("--no-cache", "-n", is_flag=True, help="Do not read or write the cache."),
        click.option(
            "--jobs",
            "-j",
            type=click.IntRange(min=1),
            metavar="N",
            help="Number of processes. [default: number of CPUs]",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings."),
        click.option(
            "--verbose",
            "-v",
            is_flag=True,
            help="Show the number of checked files, and where analysis limits were reached.",
        ),
        click.option("--quiet", "-q", is_flag=True, help="Print findings and errors only."),
        _color_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=_Commands,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": _american,
    },
    epilog="The manual: `shapefix help`.",
)
@click.version_option(shapefix.__version__, "--version", "-V", message="shapefix %(version)s")
def cli() -> None:
    """Find crashes and silent corruption in PyTorch training code before the run does, and repair them."""


@cli.command(short_help="Report crashes and silent errors.")
@_shared
@click.option(
    "--with-probe",
    type=click.Path(),
    metavar="FILE",
    help="Annotate findings with a probe run, from `shapefix probe --output-format json`.",
)
@click.option("--statistics", is_flag=True, help="Show only the number of findings per rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked, and exit.")
@click.option("--show-settings", is_flag=True, help="Show the effective settings, and exit.")
def check(**given: Any) -> int:
    """Report crashes and silent errors in files and folders. [default: the current folder]

    Reads the code; never imports or runs it. The path - reads standard input.

    Exit codes: 0 without findings, 1 with findings, 2 if a file could not be checked.
    """
    from shapefix.cli.commands import check
    from shapefix.cli.request import request

    return check(request(given))


@cli.command(short_help="Show repairs as a diff, or apply them.")
@_shared
@click.option("--apply", is_flag=True, help="Write the repairs to the files.")
def fix(**given: Any) -> int:
    """Show repairs for files and folders as a diff. With --apply, write them.

    Exit codes without --apply: 0 if nothing would change, 1 if something would. With --apply: 0 if no
    findings remain, 1 if some do. In both cases 2 if a file could not be checked or repaired.
    """
    from shapefix.cli.commands import fix
    from shapefix.cli.request import request

    return fix(request(given))


@cli.command(cls=_Probe, short_help="Run a script for one training step and report what happened.")
@click.option("-m", "module", metavar="MODULE", help="Run a module like `python -m`, instead of SCRIPT.")
@click.option("--python", metavar="PYTHON", help="Python interpreter. [default: the script's environment]")
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of training steps.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the script after this time, and report what is known.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "fake"]),
    default="auto",
    show_default=True,
    help="Device that the script sees. fake: a simulated GPU with sizes but no values.",
)
@click.option(
    "--vram",
    metavar="SIZE",
    callback=_size,
    help="Forecast the memory of a step, and the largest batch that fits, for example in 4GiB.",
)
@click.option(
    "--output-format",
    type=click.Choice(["full", "json", "github"]),
    default="full",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair a copy and run it until it trains; show the diff and the proof.",
)
@click.option("--apply", is_flag=True, help="Write the repairs proved by --repair.")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write an HTML report.")
@click.option(
    "--nproc",
    "processes",
    type=click.IntRange(1, 16),
    default=1,
    metavar="N",
    help="Run with N ranks under torchrun (gloo backend), and compare them.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print findings and errors only.")
@_color_option
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]...")
def probe(**given: Any) -> int:
    """Run a script, unchanged, for one training step and one evaluation pass.

    SCRIPT is a Python file, a notebook, or a folder with a `__main__.py`. It runs in its own interpreter with
    the arguments after `--`; files that it writes go to a temporary folder. The report shows the first batch,
    the sizes in every module, loss, gradients, memory, and findings.

    With --vram, the script runs several times on a simulated GPU to forecast its memory.

    With --repair, a copy is repaired and run until it trains. Nothing is written without --apply.

    Exit codes: 0 without findings, 1 with findings (--vram: or if the step does not fit; --repair: if some
    remain), 2 if the run shows too little to judge the script. More: `shapefix help probe`.
    """
    from shapefix.cli.probe import probe
    from shapefix.cli.probe_options import Asked

    module, script, arguments = given.pop("module"), given.pop("script"), given.pop("arguments")
    if module is not None:
        named = () if script is None else (script,)
        return probe(Asked(script=module, arguments=(*named, *arguments), module=True, **given))
    if script is None:
        raise click.UsageError("missing argument 'SCRIPT'")
    return probe(Asked(script=script, arguments=arguments, **given))


@cli.command(short_help="Explain a rule.")
@click.argument("rule")
@click.option("--examples", is_flag=True, help="Show more examples: what is reported, and what is not.")
def explain(rule: str, examples: bool) -> int:
    """Explain a rule: what it does, why, how to fix it, and when to ignore it.

    RULE is a code like SF101 or a name like view-across-stride-gap. A prefix like SF1 lists its rules.
    """
    from shapefix.cli import commands

    return commands.explain(rule, examples)


@cli.command()
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
def rules(output_format: str) -> int:
    """List all rules."""
    from shapefix.cli import commands

    return commands.rules(output_format)


@cli.command(short_help="Show a model's source with tensor sizes beside it.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="INPUT",
    help="Value of a parameter of forward or __init__: `x: f32[8, 3, H, W]`, `n: 2`. Repeatable.",
)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Output format.")
@_transformers_option
@_color_option
def shapes(**given: Any) -> int:
    """Show the source of a function with the size of every assigned tensor beside it.

    NAME is a class (its forward is shown), a function, or Class.method. [default: all modules of the file]

    Sizes come from the first call in the file, or from --input. The code is never imported or run.
    """
    from shapefix.cli import commands

    return commands.shapes(**given)


@cli.command("help", short_help="Show the manual.")
@click.argument("topic", required=False)
@click.pass_context
def help_(context: click.Context, topic: str | None) -> None:
    """Show a topic of the manual, or without TOPIC the list of topics.

    The name of a command shows its options.
    """
    from shapefix.cli import manual

    assert context.parent is not None
    manual.show(topic, context.parent)


def main() -> None:
    """Run the command line of this process and exit."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _nobody_listens()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    from shapefix.cli.terminal import prepare_streams, say

    prepare_streams()
    try:
        # Not cli.main: it would turn a reader who goes away into exit code 1.
        with cli.make_context("shapefix", list(arguments)) as context:
            return cli.invoke(context) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return 2
    except click.ClickException as error:
        message = error.format_message()
        message = message[:1].lower() + message[1:]
        if "did you mean" not in message.lower() and "`shapefix " not in message:
            message = f"{message.rstrip('.')} (see `{_command_path(error, arguments)} --help`)"
        say(f"error: {message}")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _nobody_listens()
    except Exception as error:
        return _failed(error, verbose=bool({"--verbose", "-v"} & set(arguments)))


def _command_path(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Name the command that error is about. click does not always say."""
    where = getattr(error, "ctx", None)
    if where is not None:
        return str(where.command_path)
    return f"shapefix {arguments[0]}" if arguments and arguments[0] in cli.commands else "shapefix"


def _failed(error: Exception, verbose: bool) -> int:
    from shapefix.cli.terminal import say
    from shapefix.rulebook.pages import RulebookError
    from shapefix.sources.configuration import ConfigurationError

    if isinstance(error, (ConfigurationError, RulebookError)):
        say(f"error: {error}")
        return 2
    if verbose:
        import traceback

        traceback.print_exception(error)
    say(
        f"error: internal error, please report it: {type(error).__name__}: {error}"
        + ("" if verbose else " (--verbose shows the traceback)")
    )
    return 2


def _nobody_listens() -> int:
    """Exit like a program whose output is closed early, for example by `head`."""
    # Python would complain at exit about what it could not flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13
