"""The command line: commands, options, and one-line errors."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import click

import shapefix
from shapefix.cli.exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED
from shapefix.cli.options import (
    color_option,
    memory_size,
    shared_options,
    text_or_json_option,
    transformers_option,
)
from shapefix.report.formats import FINDING_FORMATS, PROBE_FORMATS, RULE_FORMATS, SHAPE_FORMATS

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


class _CommandGroup(click.Group):
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


class _FilesCommand(click.Command):
    """The command check or fix; explains other linters' options."""

    HINTS: ClassVar = {
        ("fix", "--fix"): "use `shapefix fix --apply` to write the repairs",
        ("fix", "--diff"): "`shapefix fix` shows the diff without any option",
        ("check", "--version"): "use `shapefix --version`",
        ("fix", "--version"): "use `shapefix --version`",
    }

    def invoke(self, ctx: click.Context) -> Any:
        from shapefix.engine.gc_control import gc_paused

        # Importing the analysis alone would start 150 collections, and none of them frees anything.
        with gc_paused():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # As with ruff, a reason follows `=` only: in `--add-noqa src`, src is a path.
        args = ["--add-noqa=" if word == "--add-noqa" else word for word in args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = self.HINTS.get((str(self.name), error.option_name))
            if hint is None:
                raise
            raise click.UsageError(f"no such option {error.option_name!r}; {hint}", ctx) from None


class _ProbeCommand(click.Command):
    """The command probe; suggests a command line for launchers and for the script's own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        from shapefix.cli.launchers import suggest_command

        given = list(args)
        meant = suggest_command(given)
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


def _american_spelling(word: str) -> str:
    """Accept the British spelling of options."""
    return "color" if word == "colour" else word


@click.group(
    cls=_CommandGroup,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "token_normalize_func": _american_spelling,
    },
    epilog="The manual: `shapefix help`.",
)
@click.version_option(shapefix.__version__, "--version", "-V", message="shapefix %(version)s")
def cli() -> None:
    """Find crashes and silent corruption in PyTorch training code before the run does, and repair them."""


@cli.command(cls=_FilesCommand, short_help="Report crashes and silent errors.")
@shared_options
@click.option(
    "--with-probe",
    type=click.Path(),
    metavar="FILE",
    help="Annotate findings with a probe run, from `shapefix probe --output-format json`.",
)
@click.option("--fix", is_flag=True, help="Write safe fixes to the files, like `shapefix fix --apply`.")
@click.option(
    "--diff", is_flag=True, help="Show the fixes as a diff, and nothing else. Exit with 0 if there are none."
)
@click.option(
    "--fix-only", is_flag=True, help="Write fixes, and neither report remaining findings nor fail for them."
)
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if a file was changed.")
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Report and fail for findings that are not in FILE only.",
)
@click.option(
    "--write-baseline", is_flag=True, help="Write the findings to the file of --baseline, and exit."
)
@click.option(
    "--add-noqa",
    metavar="[=REASON]",
    help="Write a `# noqa` comment, with the reason, for each finding.",
)
@click.option("--statistics", is_flag=True, help="Show only the number of findings per rule.")
@click.option("--show-files", is_flag=True, help="List the files that would be checked, and exit.")
@click.option("--show-settings", is_flag=True, help="Show the effective settings, and exit.")
def check(**given: Any) -> int:
    """Report crashes and silent errors in files and folders. [default: the current folder]

    Reads the code; never imports or runs it. The path - reads standard input.

    Exit codes: 0 without findings, 1 with findings (--fix: if some remain), 2 if a file could not be checked.
    """
    from shapefix.cli.check import check
    from shapefix.cli.request import parse_request

    request = parse_request(given)
    if request.add_noqa is not None:
        from shapefix.cli.fix import add_noqa

        return add_noqa(request, request.add_noqa.strip())
    if request.repairs:
        from shapefix.cli.fix import fix

        return fix(request)
    return check(request)


@cli.command(cls=_FilesCommand, short_help="Show repairs as a diff, or apply them.")
@shared_options
@click.option("--apply", is_flag=True, help="Write the repairs to the files.")
def fix(**given: Any) -> int:
    """Show repairs for files and folders as a diff. With --apply, write them.

    Exit codes: 0 without findings, 1 with findings (--apply: if some remain), 2 if a file could not be
    checked or repaired.
    """
    from shapefix.cli.fix import fix
    from shapefix.cli.request import parse_request

    return fix(parse_request(given))


@cli.command(cls=_ProbeCommand, short_help="Run a script for one training step and report what happened.")
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
    "--overfit",
    type=click.IntRange(min=2),
    metavar="N",
    help="Train on one batch for N steps, and report whether the loss falls.",
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
    callback=memory_size,
    help="Forecast the memory of a step, and the largest batch that fits, for example in 4GiB.",
)
@click.option(
    "--output-format",
    type=click.Choice([*PROBE_FORMATS, *(name for name in FINDING_FORMATS if name not in PROBE_FORMATS)]),
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
@color_option
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
    from shapefix.cli.probe_options import ProbeOptions

    module, script, arguments = given.pop("module"), given.pop("script"), given.pop("arguments")
    if module is not None:
        named = () if script is None else (script,)
        return probe(ProbeOptions(script=module, arguments=(*named, *arguments), module=True, **given))
    if script is None:
        raise click.UsageError("missing argument 'SCRIPT'")
    return probe(ProbeOptions(script=script, arguments=arguments, **given))


@cli.command(short_help="Explain the error in a log, and name its cause.")
@click.argument("log", type=click.Path(), default="-", required=False, metavar="[LOG]")
@click.option("--apply", is_flag=True, help="Write the fix of the cause to the file.")
@click.option("--unsafe-fixes", is_flag=True, help="With --apply, write an unsafe fix, too.")
@click.option(
    "--output-format",
    type=click.Choice(["text", "json", *(name for name in FINDING_FORMATS if name not in ("full", "json"))]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--verbose", "-v", is_flag=True, help="Show every step of the evidence.")
@transformers_option
@color_option
def diagnose(**given: Any) -> int:
    """Explain the last Python error in LOG, name its cause in your files, and show the repair.

    LOG is the output of a run: a file, or - for standard input (the default). Files of the traceback are
    looked up here, or by the end of their path below the current folder. Nothing is run or imported.

    Exit codes: 0 if the cause is named, 1 if the error is only explained, 2 without an error in the input.
    """
    from shapefix.cli.diagnose import DiagnoseRequest, diagnose
    from shapefix.engine.settings import CheckOptions

    names = ("isolated", "transformers_version", "verbose")
    options = CheckOptions(**{name: given.pop(name) for name in names})
    return diagnose(DiagnoseRequest(options=options, **given))


@cli.command(
    "run",
    short_help="Run a command, and diagnose its error if it fails.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@color_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def run_(color: str, command: tuple[str, ...]) -> int:
    """Run COMMAND, such as `python train.py`, and diagnose its error if it fails.

    The command keeps its terminal, signals and exit code. If it fails with a Python traceback, the diagnosis
    of `shapefix diagnose` follows on standard error.
    """
    from shapefix.cli.run import run_command

    return run_command(command, color)


@cli.command(short_help="Explain a rule.")
@click.argument("rule")
@click.option("--examples", is_flag=True, help="Show more examples: what is reported, and what is not.")
def explain(rule: str, examples: bool) -> int:
    """Explain a rule: what it does, why, how to fix it, and when to ignore it.

    RULE is a code like SF101 or a name like view-across-stride-gap. A prefix like SF1 lists its rules.
    """
    from shapefix.cli.rules import explain

    return explain(rule, examples)


@cli.command()
@click.option("--output-format", type=click.Choice([*RULE_FORMATS]), default="text", help="Output format.")
def rules(output_format: str) -> int:
    """List all rules."""
    from shapefix.cli.rules import rules

    return rules(output_format)


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
@click.option("--output-format", type=click.Choice([*SHAPE_FORMATS]), default="text", help="Output format.")
@transformers_option
@color_option
def shapes(**given: Any) -> int:
    """Show the source of a function with the size of every assigned tensor beside it.

    NAME is a class (its forward is shown), a function, or Class.method. [default: all modules of the file]

    Sizes come from the first call in the file, or from --input. The code is never imported or run.
    """
    from shapefix.cli.shapes import shapes

    return shapes(**given)


@cli.command(short_help="Write the sizes of a model into its code: asserts, annotations or comments.")
@click.argument("target", metavar="FILE[:NAME]")
@click.option(
    "--style",
    type=click.Choice(["asserts", "jaxtyping", "comments"]),
    help="What to write. [default: asserts] With --remove, what to remove. [default: all of them]",
)
@click.option("--apply", is_flag=True, help="Write the change to the file.")
@click.option("--remove", is_flag=True, help="Remove what `shapefix guard` wrote.")
@text_or_json_option
@click.option("--quiet", "-q", is_flag=True, help="Print the diff and errors only.")
@color_option
def guard(**given: Any) -> int:
    """Show asserts on the certainly needed sizes of a function as a diff. With --apply, write them.

    NAME is a class (its forward is guarded), a function, or Class.method. [default: all modules of the file]

    \b
    asserts    at the start of functions, on the sizes that certain calls need
    jaxtyping  the same as annotations, in a project that depends on jaxtyping
    comments   the sizes of assigned tensors, at the end of rows

    Exit codes: 0 if nothing changes or the change was written, 1 if there is a change to apply, 2 if the file
    could not be guarded. More: `shapefix help guard`.
    """
    from shapefix.cli.guard import guard

    return guard(**given)


@cli.command(short_help="Serve the checks to coding agents (Model Context Protocol).")
def mcp() -> int:
    """Serve check, shapes, explain, diagnose and fix as tools of the Model Context Protocol.

    The server reads standard input and writes standard output; start it in the project's folder. It requires
    `pip install 'shapefix[mcp]'`. More: `shapefix help agents`.
    """
    from shapefix.cli.mcp_server import serve

    return serve()


@cli.command(short_help="Run the language server for an editor.")
@click.option("--stdio", is_flag=True, hidden=True, help="The default; some clients add it.")
def server(stdio: bool) -> int:
    """Run the language server on standard input and output, for an editor to start.

    It shows findings as you type, and offers their repairs. More: `shapefix help editors`.
    """
    from shapefix.cli.server import server

    return server()


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
    from shapefix.cli.terminal import echo_err, open_missing_streams

    if not open_missing_streams():
        echo_err("error: standard output is closed")
        sys.exit(FAILED)
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _broken_pipe()
    except OSError as error:
        code = _failed(error, verbose=False)
    if code == FAILED:
        _discard_output()
    # Python collects garbage once more at its end: the memory of this process is freed in any case.
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code."""
    from shapefix.cli.terminal import echo_err, prepare_streams

    prepare_streams()
    try:
        # Not cli.main: it would turn a reader who goes away into exit code 1.
        with cli.make_context("shapefix", list(arguments)) as context:
            return cli.invoke(context) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        echo_err(error.format_message())
        return FAILED
    except click.ClickException as error:
        message = error.format_message()
        message = message[:1].lower() + message[1:]
        if "did you mean" not in message.lower() and "`shapefix " not in message:
            message = f"{message.rstrip('.')} (see `{_command_path(error, arguments)} --help`)"
        echo_err(f"error: {message}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _broken_pipe()
    except Exception as error:
        return _failed(error, verbose=bool({"--verbose", "-v"} & set(arguments)))


def _command_path(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Name the command of an error. click does not always report it."""
    where = getattr(error, "ctx", None)
    if where is not None:
        return str(where.command_path)
    return f"shapefix {arguments[0]}" if arguments and arguments[0] in cli.commands else "shapefix"


def _failed(error: Exception, verbose: bool) -> int:
    from shapefix.cli.terminal import InputUnreadable, echo_err
    from shapefix.rulebook.pages import RulebookError
    from shapefix.sources.configuration import ConfigurationError

    if isinstance(error, (ConfigurationError, RulebookError)):
        echo_err(f"error: {error}")
        return FAILED
    if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
        echo_err(f"error: output cannot be written: {error.strerror}")
        return FAILED
    if isinstance(error, InputUnreadable):
        echo_err(f"error: standard input cannot be read: {error}")
        return FAILED
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        echo_err("error: the current folder does not exist any more")
        return FAILED
    if verbose:
        import traceback

        traceback.print_exception(error)
    echo_err(
        f"error: internal error, please report it: {type(error).__name__}: {error}"
        + ("" if verbose else " (--verbose shows the traceback)")
    )
    return FAILED


def _has_current_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return False
    return True


def _broken_pipe() -> int:
    """Exit like a program after its output is closed early, for example by `head`."""
    _discard_output()
    return BROKEN_PIPE


def _discard_output() -> None:
    """Discard unflushable output: Python would complain about it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
