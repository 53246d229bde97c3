"""`shapefix check`, `shapefix fix` and `shapefix clean`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import click

from shapefix.cli.group import ENDS_PROCESS, cli
from shapefix.cli.options import environment_variable, shared_options

if TYPE_CHECKING:
    from shapefix.cli.request import CheckRequest


class _FilesCommand(click.Command):
    """The command check or fix; explains other linters' options."""

    WITHOUT_VALUE: ClassVar = {"--add-noqa": "--add-noqa=", "--changed": "--changed=HEAD"}
    HINTS: ClassVar = {
        ("fix", "--fix"): "use `shapefix fix --apply` to write the repairs",
        ("fix", "--diff"): "`shapefix fix` shows the diff without any option",
        ("check", "--version"): "use `shapefix --version`",
        ("fix", "--version"): "use `shapefix --version`",
    }

    def invoke(self, ctx: click.Context) -> Any:
        from shapefix.engine import light_libcst
        from shapefix.engine.gc_control import gc_paused

        ends_process = ctx.find_root().obj == ENDS_PROCESS
        if ends_process:
            light_libcst.is_own_process = True
        # Importing the analysis alone would start 150 collections, and none of them frees anything.
        with gc_paused(until_exit=ends_process):
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # As with ruff, an optional value follows `=` only: in `--add-noqa src`, src is a path.
        args = [self.WITHOUT_VALUE.get(word, word) for word in args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            hint = self.HINTS.get((str(self.name), error.option_name))
            if hint is None:
                raise
            raise click.UsageError(f"no such option {error.option_name!r}; {hint}", ctx) from None


@cli.command(cls=_FilesCommand, short_help="Find crashes and silent errors.")
@shared_options
@click.option(
    "--with-probe",
    type=click.Path(),
    metavar="FILE",
    help="Confirm or refute findings with a probe run, saved by `shapefix probe --output-format json`.",
)
@click.option(
    "--fix/--no-fix", default=False, help="Write safe fixes to the files, like `shapefix fix --apply`."
)
@click.option("--diff", is_flag=True, help="Only show the fixes, as a diff. Exit with 0 if there are none.")
@click.option(
    "--fix-only", is_flag=True, help="Write fixes; do not report remaining findings or fail because of them."
)
@click.option(
    "--show-fixes/--no-show-fixes", default=None, help="List the fixed findings, even with --quiet."
)
@click.option("--exit-non-zero-on-fix", is_flag=True, help="Exit with 1 if a file was changed.")
@click.option(
    "--baseline",
    type=click.Path(),
    metavar="FILE",
    help="Only report findings that are not in FILE.",
)
@click.option("--write-baseline", is_flag=True, help="Write all findings to the --baseline file and exit.")
@click.option(
    "--add-noqa",
    metavar="[=REASON]",
    help="Add a `# noqa` comment, with an optional reason, for each finding.",
)
@click.option(
    "--changed",
    metavar="[=REF]",
    help="Only report findings in lines changed since REF. [default: HEAD]",
)
@click.option("--watch", "-w", is_flag=True, help="Check again whenever a file changes.")
@click.option("--statistics", is_flag=True, help="Only show the number of findings per rule.")
@click.option(
    "--output-file",
    "-o",
    type=click.Path(),
    metavar="FILE",
    help="Write the report to FILE instead of standard output.",
    **environment_variable("output-file"),
)
@click.option("--show-files", is_flag=True, help="List the files that would be checked and exit.")
@click.option("--show-settings", is_flag=True, help="Show the effective settings and exit.")
def check(**given: Any) -> int:
    """Find crashes and silent errors in files and folders. [default: the current folder]

    The code is read, never imported or run. Use - to read from standard input.

    Exit codes: 0 if there are no findings, 1 if there are (with --fix: if any remain), 2 if a file could not
    be checked.
    """
    from shapefix.cli.output import output_to
    from shapefix.cli.request import parse_request

    request = parse_request(given)
    with output_to(given["output_file"]):
        if given["watch"]:
            from shapefix.cli.watch import watch

            return watch(request, _check)
        return _check(request)


def _check(request: CheckRequest) -> int:
    if request.add_noqa is not None:
        from shapefix.cli.fix import add_noqa

        return add_noqa(request, request.add_noqa.strip())
    if request.repairs:
        from shapefix.cli.fix import fix

        return fix(request)
    from shapefix.cli.check import check

    return check(request)


@cli.command(cls=_FilesCommand, short_help="Show fixes as a diff, or apply them.")
@shared_options
@click.option("--apply", is_flag=True, help="Write the fixes to the files.")
def fix(**given: Any) -> int:
    """Show fixes for files and folders as a diff. With --apply, write them.

    Exit codes: 0 if there are no findings, 1 if there are (with --apply: if any remain), 2 if a file could
    not be checked or fixed.
    """
    from shapefix.cli.fix import fix
    from shapefix.cli.request import parse_request

    return fix(parse_request(given))


@cli.command(short_help="Delete cached results.")
@click.option(
    "--cache-dir",
    type=click.Path(),
    metavar="FOLDER",
    help="The folder of the results. [default: those of the projects in the current folder]",
    **environment_variable("cache-dir"),
)
def clean(cache_dir: str | None) -> int:
    """Delete the cached results of the projects in the current folder and below it.

    Results in other folders stay; those of unused projects are removed after two months.
    """
    from shapefix.cli.clean import clean

    return clean(cache_dir)
