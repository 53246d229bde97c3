"""Run the commands; each function returns an exit code."""

# ruff: noqa: PTH109, PTH112

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable

from shapefix.cli.output import report, say_failures, say_links, say_outside, say_refused, write, write_diff
from shapefix.cli.request import Request
from shapefix.cli.terminal import ProgressBar, colour_wanted, say, width
from shapefix.diagnostics import Diagnostic
from shapefix.engine.batch import root_of
from shapefix.engine.session import Examination, StandardInput, located
from shapefix.engine.settings import Options, Settings
from shapefix.engine.source_overlay import real
from shapefix.report.view import Coverage, View, one_line
from shapefix.sources.configuration import ConfigurationError, suggestion

CLEAN, FOUND, FAILED = 0, 1, 2


def check(request: Request) -> int:
    """Report findings. Raises ConfigurationError."""
    settings = Settings(request.options)
    if request.show_files or request.show_settings:
        return _show(request, settings)
    output_format = _output_format(request, settings)
    if request.with_probe is not None:
        from shapefix.runtime.confirmation.run_record import Unusable, read

        try:
            record = read(request.with_probe)
        except Unusable as error:
            say(f"error: {one_line(request.with_probe)}: {error}")
            return FAILED
    examination = _examined(request, settings)
    reported, failures = examination.findings(), examination.failures()
    if request.with_probe is not None:
        from shapefix.runtime.confirmation.confirm import Judge

        reported = Judge(record, examination.data).judged(reported)
    findings = tuple(finding for finding in _without_answers(reported) if not finding.is_refuted)
    view = view_of(request, settings, examination)
    if request.statistics:
        from shapefix.report import statistics

        write(statistics.render(findings, view))
        say_failures(failures, view)
    else:
        report(reported, failures, view, output_format, request.quiet)
    _tell(request, examination, view)
    return _exit_code(request, bool(findings), bool(failures))


def fix(request: Request) -> int:
    """Show repairs, or apply them. Raises ConfigurationError."""
    settings = Settings(request.options)
    output_format = _output_format(request, settings)
    examination = _examined(request, settings)
    view = view_of(request, settings, examination)
    if request.reads_stdin:
        return _fix_standard_input(request, examination, view, output_format)
    if request.apply:
        return _apply(request, examination, view, output_format)
    applied = 0
    files = 0
    for repair in examination.repair(None):
        say_refused(repair.refused, view)
        if repair.old != repair.new:
            applied += len(repair.applied)
            files += 1
            write_diff(view, repair.old.path, repair.old.text, repair.new.text)
    failures = examination.failures()
    say_failures(failures, view)
    say_outside(examination.outside(), view)
    if not request.quiet:
        from shapefix.report.summary import nothing_checked, remaining

        said = remaining(_without_answers(examination.findings()), view)
        if files:
            said.insert(
                0, f"Would repair {_counted(applied, 'finding')} in {_counted(files, 'file')} with --apply."
            )
        elif not said and not failures:
            said.append(nothing_checked(view) or "Nothing to repair.")
        if said:
            say(" ".join(said))
    _tell(request, examination, view)
    return _exit_code(request, bool(files), bool(failures))


def explain(rule: str, examples: bool) -> int:
    """Show the page of a rule, or list the rules of a prefix. Raises MissingPages and click.UsageError."""
    from shapefix.rulebook.pages import page_of, pages, pages_under

    page = page_of(rule)
    if page is not None:
        _show_page(page.text(examples), page.code, examples)
        return CLEAN
    below = pages_under(rule)
    if below:
        width_of_names = max(len(each.name) for each in below)
        for each in below:
            sys.stdout.write(f"{each.code}  {each.name:<{width_of_names}}  {each.summary}\n")
        return CLEAN
    import re

    import click

    if re.fullmatch(r"[A-Za-z]+\d+", rule) and not rule.upper().startswith("SF"):
        raise click.UsageError(f"{rule!r} is not a shapefix rule; `shapefix rules` lists all rules")
    known = [name for each in pages() for name in (each.code, each.name)]
    spelled = rule.upper() if rule.upper().startswith("SF") else rule.lower()
    hint = suggestion(spelled, known, "; `shapefix rules` lists all rules")
    raise click.UsageError(f"unknown rule {rule!r}{hint}")


def _show_page(text: str, code: str, examples: bool) -> None:
    """Print a page: as it is to a pipe, and rendered to a terminal, with a pager if it is longer."""
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return
    import shutil

    import click
    from rich.console import Console
    from rich.markdown import Markdown

    if not examples:
        text += f"\n`shapefix explain {code} --examples` shows more examples.\n"
    console = Console(width=min(width(sys.stdout), 110))
    with console.capture() as capture:
        console.print(Markdown(text))
    rendered = capture.get()
    if rendered.count("\n") < shutil.get_terminal_size().lines:
        sys.stdout.write(rendered)
    else:
        click.echo_via_pager(rendered)


def rules(output_format: str) -> int:
    """List all rules with their summaries. Raises MissingPages."""
    from shapefix.rulebook.pages import pages

    table = pages()
    if output_format == "json":
        import json

        entries = [
            {
                "code": rule.code,
                "name": rule.name,
                "severity": rule.severity.value,
                "summary": rule.summary,
                "fix": rule.fix and rule.fix.value,
            }
            for rule in table
        ]
        sys.stdout.write(json.dumps(entries, indent=2, ensure_ascii=False) + "\n")
        return CLEAN
    rows = [("code", "name", "severity", "fix", "what it finds")]
    rows += [(rule.code, rule.name, rule.severity, rule.fix or "-", rule.summary) for rule in table]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows:
        start = "  ".join(f"{cell:<{room}}" for cell, room in zip(row, widths, strict=False))
        sys.stdout.write(f"{start}  {row[-1]}\n")
    return CLEAN


def shapes(
    target: str, inputs: tuple[str, ...], output_format: str, transformers_version: str | None, color: str
) -> int:
    """Show the source of functions with the sizes in it. Raises ConfigurationError."""
    from shapefix.shapes.inputs import BadInput
    from shapefix.shapes.render import render, render_json
    from shapefix.shapes.run import Unanswered, shapes, split_name
    from shapefix.shapes.targets import NotShown

    view = View(os.getcwd(), width(sys.stdout), colour_wanted(color, sys.stdout))
    path, name = split_name(target)
    settings = Settings(Options(transformers_version=transformers_version))
    at = real(path)
    try:
        version = settings.transformers_version(at, root_of(at, ()))
        listings = shapes(path, name, inputs, settings.rules(at), version)
    except Unanswered as error:
        say_failures([error.failure], view)
        return FAILED
    except (NotShown, BadInput) as error:
        say(f"error: {one_line(str(error))}")
        return FAILED
    write((render_json if output_format == "json" else render)(listings, view))
    return CLEAN


def _examined(request: Request, settings: Settings) -> Examination:
    standard_input = None
    if request.reads_stdin:
        standard_input = StandardInput(sys.stdin.buffer.read(), request.stdin_filename)
    with ProgressBar("Checking", sys.stderr) as progress:
        examination = Examination(request.paths, settings, standard_input, progress)
    if not request.quiet:
        say_links(examination.links_outside, View(os.getcwd()), request.verbose)
    if not examination.files and not examination.failures() and not request.quiet:
        say("warning: no Python files found under the given paths")
    return examination


def _apply(request: Request, examination: Examination, view: View, output_format: str) -> int:
    from shapefix.repair import writes

    # Programs that parse findings from stdout must not see anything else there.
    stream = sys.stdout if output_format in ("full", "concise") else sys.stderr
    repaired = files = 0
    for repair in examination.repair(writes.write):
        say_refused(repair.refused, view)
        if repair.old == repair.new:
            continue
        repaired += len(repair.applied)
        files += 1
        if not request.quiet:
            path = one_line(view.relative(repair.old.path))
            counts = Counter(finding.code for finding in repair.applied)
            what = ", ".join(f"{number} x {code}" for code, number in sorted(counts.items()))
            stream.write(f"{path}: repaired {what}\n")
    if not request.quiet and files:
        stream.write(f"Repaired {_counted(repaired, 'finding')} in {_counted(files, 'file')}.\n")
    findings, failures = _without_answers(examination.findings()), examination.failures()
    if findings or failures or not files or output_format not in ("full", "concise"):
        report(findings, failures, view, output_format, request.quiet)
    say_outside(examination.outside(), view)
    _tell(request, examination, view)
    return _exit_code(request, bool(findings), bool(failures))


def _fix_standard_input(request: Request, examination: Examination, view: View, output_format: str) -> int:
    """Write the repaired text to stdout and messages to stderr."""
    for repair in examination.repair(None):
        say_refused(repair.refused, view)
    sys.stdout.flush()
    sys.stdout.buffer.write(examination.standard_output())
    findings, failures = _without_answers(examination.findings()), examination.failures()
    if findings or failures:
        from shapefix.report.formats import FORMATS

        sys.stderr.writelines(FORMATS[output_format](findings, failures, view))
    return _exit_code(request, bool(findings), bool(failures))


def _without_answers(reported: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Drop the answers to `reveal(x)`, which do not count as findings."""
    return tuple(finding for finding in reported if not finding.is_answer)


def _show(request: Request, settings: Settings) -> int:
    """List the files or the settings of a check without running it."""
    name = StandardInput(b"", request.stdin_filename) if request.reads_stdin else None
    found = located(request.paths, settings, name)
    view = View(os.getcwd())
    if request.show_files:
        for path in found.files:
            sys.stdout.write(view.absolute(path) + "\n")
    if request.show_settings:
        seen: set[str | None] = set()
        folders = [os.path.realpath(each) for each in request.paths if os.path.isdir(each)]
        for path in map(real, found.files):
            configuration = settings.configuration(path)
            if configuration.path in seen:
                continue
            seen.add(configuration.path)
            write(_settings(configuration.path, path, root_of(path, folders), settings))
    say_failures(found.failures, view)
    if not request.quiet:
        say_links(found.outside, view, verbose=True)
    return FAILED if found.failures else CLEAN


def _settings(source: str | None, path: str, root: str, settings: Settings) -> Iterable[str]:
    """Render the settings of one configuration file, as they apply to the file at path.

    root is that of its project.
    """
    configuration = settings.configuration(path)
    yield f"# {source or 'defaults, without a configuration file'}\n"
    yield f"root = {configuration.root}\n"
    yield f"rules = {', '.join(sorted(settings.rules_of(configuration))) or 'none'}\n"
    yield f"exclude = {', '.join(configuration.exclude + configuration.extend_exclude)}\n"
    for pattern, selectors in configuration.per_file_ignores:
        yield f"per-file-ignores = {pattern}: {', '.join(selectors)}\n"
    yield f"unsafe-fixes = {str(settings.unsafe_fixes(path)).lower()}\n"
    version = settings.transformers_version(path, root)
    yield f"transformers-version = {version or 'newest'}\n"
    yield f"cache-dir = {settings.cache_dir(path) or 'none'}\n"


def view_of(request: Request, settings: Settings, examination: Examination) -> View:
    return View(
        os.getcwd(),
        width(sys.stdout),
        colour_wanted(request.color, sys.stdout),
        settings.unsafe_fixes(os.path.join(os.path.realpath(os.curdir), "-")),  # noqa: PTH118
        examination.source,
        coverage=Coverage(examination.read, examination.tally.irrelevant, len(examination.notebooks)),
    )


def _output_format(request: Request, settings: Settings) -> str:
    from shapefix.report.formats import FORMATS

    if request.output_format is not None:
        return request.output_format
    configuration = settings.configurations.nearest(os.path.realpath(os.curdir))
    chosen = configuration.output_format or "full"
    if chosen not in FORMATS:
        hint = suggestion(chosen, FORMATS, f"; choose from {', '.join(FORMATS)}")
        raise ConfigurationError(f"{configuration.path}: output-format: unknown format {chosen!r}{hint}")
    return chosen


def _tell(request: Request, examination: Examination, view: View) -> None:
    """Print what --verbose adds."""
    if not request.verbose:
        return
    tally = examination.tally
    skipped = tally.irrelevant
    does = "does not import" if skipped == 1 else "do not import"
    why = f" ({skipped} skipped: {does} torch or transformers)" if skipped else ""
    say(f"Checked {_counted(tally.files, 'file')}{why}")
    for path, calls in sorted(tally.bounded.items()):
        place = one_line(view.relative(path))
        say(f"{place}: analysis limit reached, {_counted(calls, 'call')} not followed")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _exit_code(request: Request, found: bool, failed: bool) -> int:
    if failed:
        return FAILED
    return FOUND if found and not request.exit_zero else CLEAN
