"""The command line: commands and options, and one clear line for whatever goes wrong."""

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
    """The commands, and which of them somebody may have meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from shapefix.sources.configuration import suggestion

            known = self.list_commands(ctx)
            hint = suggestion(args[0], known, f"; the commands are {', '.join(known)}")
            if os.path.exists(args[0]):  # noqa: PTH110
                hint = f"; did you mean `shapefix check {args[0]}`?"
            raise click.UsageError(f"no such command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class _Probe(click.Command):
    """The command probe, and what to say to somebody who names a launcher or the script's own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from shapefix.cli.launchers import instead

        given = list(args)
        meant = instead(given)
        if meant is not None:
            raise click.UsageError(f"name the script itself; did you mean `{meant}`?", ctx)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            place = next((n for n, word in enumerate(given) if word.startswith(error.option_name)), 0)
            if not any(os.path.exists(word) for word in given[:place]):  # noqa: PTH110
                raise
            meant = " ".join(["shapefix", "probe", *given[:place], "--", *given[place:]])
            raise click.UsageError(
                f"{error.message}; what is the script's own goes behind `--`; did you mean `{meant}`?", ctx
            ) from None


def _listed(ctx: click.Context, option: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.strip() for value in values for part in value.split(",") if part.strip())


def _version(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from shapefix.sources.requirements import is_version

    if not is_version(value):
        raise click.BadParameter(f"{value!r} is not a version, like 4.57 or 5", ctx, option)
    return value.strip()


def _size(ctx: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """A size of memory in bytes: a number, and GiB, GB, G or MiB and their like behind it."""
    if value is None:
        return None
    read = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?B)?", value.strip(), re.IGNORECASE)
    amount = float(read[1]) * 1024 ** ("KMGT".index(read[2].upper()) + 1) if read else 0
    if amount < 1:
        raise click.BadParameter(f"{value!r} is no size, like 4GiB or 800MiB", ctx, option)
    return int(amount)


def _rules_option(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(flag, multiple=True, metavar="RULES", callback=_listed, help=text)


_transformers_option = click.option(
    "--transformers-version",
    metavar="VERSION",
    callback=_version,
    help="The version of transformers in use; else as the project requires it, or the newest.",
)
_color_option = click.option(
    "--color",
    "--colour",
    "color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Whether to use colours.",
)


def _shared(command: Command) -> Command:
    """The options that check and fix have in common."""
    options = [
        click.argument("paths", nargs=-1),
        _rules_option("--select", "Only these rules: codes, prefixes, names or ALL, with commas between."),
        _rules_option("--ignore", "Not these rules."),
        _rules_option("--extend-select", "These rules, too."),
        click.option(
            "--unsafe-fixes/--no-unsafe-fixes", default=None, help="Count, and make, unsafe fixes, too."
        ),
        click.option("--output-format", type=click.Choice(FORMATS), help="How to show findings."),
        click.option(
            "--config", type=click.Path(), metavar="FILE", help="The one configuration file to use."
        ),
        click.option("--isolated", is_flag=True, help="Use no configuration file."),
        _transformers_option,
        click.option("--force-exclude", is_flag=True, help="Exclude also what is named on the command line."),
        click.option(
            "--stdin-filename", metavar="NAME", help="What standard input (the path -) is to be taken for."
        ),
        click.option("--cache-dir", type=click.Path(), metavar="FOLDER", help="Where to cache results."),
        click.option("--no-cache", "-n", is_flag=True, help="Analyse everything anew."),
        click.option(
            "--jobs",
            "-j",
            type=click.IntRange(min=1),
            metavar="N",
            help="How many processes to use; as many as there are processors, when not given.",
        ),
        click.option("--exit-zero", is_flag=True, help="Exit with 0 also when something is found."),
        click.option(
            "--verbose", "-v", is_flag=True, help="Say what was looked at, and where work was bounded."
        ),
        click.option("--quiet", "-q", is_flag=True, help="Only findings and errors."),
        _color_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(shapefix.__version__, "--version", "-V", message="shapefix %(version)s")
def cli() -> None:
    """Find crashes and silent corruption in PyTorch training code before the run does, and repair them."""


@cli.command(short_help="Report what is wrong.")
@_shared
@click.option(
    "--with-probe",
    type=click.Path(),
    metavar="FILE",
    help="Say what the run saw of each finding; FILE is of `shapefix probe --output-format json`.",
)
@click.option("--statistics", is_flag=True, help="Only count the findings of each rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--show-settings", is_flag=True, help="Show the settings that hold for the files.")
def check(**given: Any) -> int:
    """Report what is wrong in files and folders (the current folder, when none is given).

    Exits with 0 when nothing is found, 1 when something is, and 2 when anything could not be checked.
    """
    from shapefix.cli.commands import check
    from shapefix.cli.request import request

    return check(request(given))


@cli.command(short_help="Show the repairs as a diff, or make them.")
@_shared
@click.option("--apply", is_flag=True, help="Write the repairs; without it, only their diff is shown.")
def fix(**given: Any) -> int:
    """Show the repairs for files and folders as a diff, or make them with --apply.

    Without --apply, exits with 1 when something would change; with it, when something remains; with 2 when
    anything could not be checked or repaired.
    """
    from shapefix.cli.commands import fix
    from shapefix.cli.request import request

    return fix(request(given))


@cli.command(cls=_Probe, short_help="Run a script for one training step, and report what happened.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, as `python -m` does; SCRIPT is left out.")
@click.option(
    "--python", metavar="PYTHON", help="The interpreter to run it with; else that of its environment."
)
@click.option(
    "--steps",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many training steps to make.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="When to end it, with what was learnt so far.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "fake"]),
    default="auto",
    show_default=True,
    help="What the script finds; fake is a GPU of sizes without values, which needs none.",
)
@click.option(
    "--vram",
    metavar="SIZE",
    callback=_size,
    help="Forecast the memory of a step on a GPU with so much, like 4GiB, and the batch that fits.",
)
@click.option(
    "--output-format",
    type=click.Choice(["full", "json", "github"]),
    default="full",
    show_default=True,
    help="How to show what happened.",
)
@click.option(
    "--repair",
    is_flag=True,
    help="Repair a copy, run it again, until it trains; show the diff, and what proves it.",
)
@click.option("--apply", is_flag=True, help="Write what --repair has proved.")
@click.option(
    "--report", type=click.Path(), metavar="FILE", help="Write a page that shows it, like report.html."
)
@click.option(
    "--nproc",
    "processes",
    type=click.IntRange(1, 16),
    default=1,
    metavar="N",
    help="Run it as so many ranks, under torchrun with gloo, and compare them.",
)
@click.option("--quiet", "-q", is_flag=True, help="Only findings and errors.")
@click.option(
    "--color",
    "--colour",
    "color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Whether to use colours.",
)
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]...")
def probe(**given: Any) -> int:
    """Run a script, unchanged, in its own interpreter for one training step and one pass of evaluation.

    SCRIPT is a file, a notebook, or a folder with a `__main__.py`. It is executed, with the arguments behind
    `--`. What it saves goes to a temporary folder. Reports the first batch, the sizes in every module, loss,
    gradients and memory, and what is wrong.

    With --vram, runs it several times on a GPU that is not there, and forecasts its memory; exits with 1,
    too, when a step does not fit.

    With --repair, runs it again with repairs in it, and keeps those that a run proves; nothing is written
    without --apply, nor without a run that passed. Exits with 0 when the repaired script trains.

    Exits with 0 when nothing is found, 1 when something is, and 2 when the script could not be seen to work.
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
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="How to show them."
)
def rules(output_format: str) -> int:
    """List the rules."""
    from shapefix.cli import commands

    return commands.rules(output_format)


@cli.command(short_help="Show a model's source with the sizes in it.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="INPUT",
    help="What a parameter, of __init__ too, is given: `x: f32[8, 3, H, W]`, `n: 2`; once for each.",
)
@click.option(
    "--output-format", type=click.Choice(["text", "json"]), default="text", help="How to show them."
)
@_transformers_option
@_color_option
def shapes(**given: Any) -> int:
    """Show the source of a function row by row, and beside it what the names assigned there hold.

    NAME is a class, whose forward is shown, a function, or Class.method; without it, the forward of every
    class of the file is shown. Where the file calls the model with known sizes, these are shown, else what
    --input says, or what can be told without. Nothing is imported or executed.
    """
    from shapefix.cli import commands

    return commands.shapes(**given)


def main() -> None:
    """Run the command line of this process, and exit."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _nobody_listens()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code."""
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
        if "did you mean" not in message.lower():
            where = getattr(error, "ctx", None)
            command = where.command_path if where is not None else "shapefix"
            message = f"{message.rstrip('.')} (see `{command} --help`)"
        say(f"error: {message}")
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return _nobody_listens()
    except Exception as error:
        return _failed(error, verbose=bool({"--verbose", "-v"} & set(arguments)))


def _failed(error: Exception, verbose: bool) -> int:
    from shapefix.cli.terminal import say
    from shapefix.rulebook.pages import MissingPages
    from shapefix.sources.configuration import ConfigurationError

    if isinstance(error, (ConfigurationError, MissingPages)):
        say(f"error: {error}")
        return 2
    if verbose:
        import traceback

        traceback.print_exception(error)
    say(
        f"error: internal error, please report it: {type(error).__name__}: {error}"
        + ("" if verbose else " (--verbose shows where)")
    )
    return 2


def _nobody_listens() -> int:
    """What a program is expected to do whose output is cut off, as by `head`."""
    # Python would complain at exit about what it could not flush.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + 13
