"""`shapefix probe`, `shapefix run` and `shapefix diagnose`: runs of a script and their errors."""

from __future__ import annotations

import os
from typing import Any

import click

from shapefix.cli.group import cli
from shapefix.cli.options import color_option, memory_size, transformers_option
from shapefix.report.formats import FINDING_FORMATS, PROBE_FORMATS


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


@cli.command(cls=_ProbeCommand, short_help="Run a script for one training step and report what happened.")
@click.option("-m", "module", metavar="MODULE", help="Run a module, like `python -m`, instead of SCRIPT.")
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
@click.option("--no-eval", is_flag=True, help="Stop before the evaluation after the training steps.")
@click.option(
    "--full-eval", is_flag=True, help="Evaluate all batches, without the limits of batches and seconds."
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop the script after this time and report what is known.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda", "fake"]),
    default="auto",
    show_default=True,
    help="Device that the script sees; fake is a simulated GPU with sizes but no values.",
)
@click.option(
    "--vram",
    metavar="SIZE",
    callback=memory_size,
    help="Forecast the memory of a step and the largest batch that fits, for example in 4GiB.",
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
    help="Fix and run a copy until it trains; show the diff and the proof.",
)
@click.option("--apply", is_flag=True, help="Write the fixes proved by --repair, or the change of --vram.")
@click.option("--report", type=click.Path(), metavar="FILE", help="Write an HTML report.")
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Compare with an earlier run, written by --output-format json.",
)
@click.option(
    "--nproc",
    "processes",
    type=click.IntRange(1, 16),
    default=1,
    metavar="N",
    help="Run N ranks under torchrun (gloo backend) and compare them.",
)
@click.option("--quiet", "-q", is_flag=True, help="Only print findings and errors.")
@color_option
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]...")
def probe(**given: Any) -> int:
    """Run an unmodified script for one training step and one evaluation pass.

    SCRIPT is a Python file, a notebook, or a folder with a `__main__.py`. It runs in its own interpreter with
    the arguments after `--`. Files that it writes go to a temporary folder. The report shows the first batch,
    the sizes in every module, the loss, gradients, memory, and findings.

    --vram runs the script several times on a simulated GPU to forecast its memory.

    --repair fixes and runs a copy of the script until it trains. Only --apply changes your files.

    Exit codes: 0 if there are no findings, 1 if there are (with --vram: or if the step does not fit; with
    --repair: if any remain), 2 if the run shows too little to judge the script. More: `shapefix help probe`.
    """
    from shapefix.cli.launchers import node_command
    from shapefix.cli.probe import probe
    from shapefix.cli.probe_options import ProbeOptions

    module, script, arguments = given.pop("module"), given.pop("script"), given.pop("arguments")
    if module is not None:
        named = () if script is None else (script,)
        return probe(ProbeOptions(script=module, arguments=(*named, *arguments), module=True, **given))
    if script is None:
        raise click.UsageError("missing argument 'SCRIPT'")
    node = node_command((script, *arguments))
    if node is not None:
        given |= {"processes": node.processes, "launcher": node.options}
        return probe(
            ProbeOptions(script=node.script, arguments=node.arguments, module=node.is_module, **given)
        )
    return probe(ProbeOptions(script=script, arguments=arguments, **given))


@cli.command(short_help="Explain the error in a log and name its cause.")
@click.argument("log", type=click.Path(), default="-", required=False, metavar="[LOG]")
@click.option("--apply", is_flag=True, help="Write the fix to the file.")
@click.option("--unsafe-fixes", is_flag=True, help="With --apply, also write an unsafe fix.")
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
    """Explain the last Python error in LOG, name its cause in your files, and show the fix.

    LOG is the output of a run: a file, or - for standard input (the default). Files in the traceback are
    found by their path, or by the end of it below the current folder. Nothing is run or imported.

    Exit codes: 0 if the cause is named, 1 if the error is only explained, 2 if the input has no error.
    """
    from shapefix.cli.diagnose import DiagnoseRequest, diagnose
    from shapefix.engine.settings import CheckOptions

    names = ("isolated", "transformers_version", "verbose")
    options = CheckOptions(**{name: given.pop(name) for name in names})
    return diagnose(DiagnoseRequest(options=options, **given))


@cli.command(
    "run",
    short_help="Run a command and diagnose its error if it fails.",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@color_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def run_(color: str, command: tuple[str, ...]) -> int:
    """Run COMMAND, such as `python train.py`, and diagnose its error if it fails.

    The command keeps its terminal, signals and exit code. If it fails with a Python traceback, shapefix
    prints what `shapefix diagnose` says about it on standard error.
    """
    from shapefix.cli.run import run_command

    return run_command(command, color)
