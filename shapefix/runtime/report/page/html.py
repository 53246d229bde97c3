"""The HTML page of a run, with its styles and diagrams inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import shapefix
from shapefix.diagnostics import Diagnostic, Severity
from shapefix.report.view import View, one_line, visible
from shapefix.runtime.findings.collect import ProbeFindings
from shapefix.runtime.forecast.prediction import MemoryForecast
from shapefix.runtime.forecast.text_report import forecast_lines
from shapefix.runtime.observations import Observations, ObservedModule
from shapefix.runtime.protocol import GradientsLine, StartLine
from shapefix.runtime.report.formatting import (
    ShowPath,
    arguments_text,
    byte_size,
    counted,
    duration,
    loss_value,
    parameters_text,
    place_text,
    quantity,
    value_text,
)
from shapefix.runtime.report.module_tree import FoldedCalls, folded_calls
from shapefix.runtime.report.page.excerpts import Excerpt, excerpts
from shapefix.runtime.report.page.flow import SizeDiagram, size_diagram
from shapefix.runtime.report.page.timeline import MemoryPlot, memory_plot
from shapefix.runtime.report.step_speed import step_speed
from shapefix.runtime.report.text_report import (
    call_text,
    ending,
    first_batches,
    gradients_text,
    lacking_gradients,
    last_output,
    losses,
    model_label,
    models_of,
    protection,
    written_files,
)
from shapefix.runtime.run import ProbeRun

_MODELS = 8
_NARROW, _WIDE = 340, 760


@dataclass(frozen=True)
class FindingSection:
    """A finding with its source."""

    finding: Diagnostic
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class ModuleNode:
    """One call of a module in the tree; failed says that it did not return."""

    name: str
    type: str
    given: str
    returned: str
    seconds: str
    constructed: str
    failed: bool
    parameters: str
    children: tuple[ModuleNode, ...]


@dataclass(frozen=True)
class ModuleTree:
    """An outermost call of a model."""

    how: str
    root: ModuleNode
    modules: int
    parameters: str


@dataclass(frozen=True)
class GradientSummary:
    """The gradients of an optimizer: a sentence, the missing ones, and the norms of the modules."""

    text: str
    lacking: tuple[tuple[str, str], ...]
    norms: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class StepParts:
    """The time of a step, and its parts: name, time and share."""

    text: str
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class StaticVerdict:
    """A finding of `check` with the verdict of the run."""

    verdict: str
    place: str
    text: str
    reason: str


@dataclass(frozen=True)
class BatchTable:
    """A batch: its source, and a row for each of its parts."""

    text: str
    rows: tuple[tuple[str, str], ...]


def page(
    run: ProbeRun,
    arguments: Sequence[str],
    found: ProbeFindings,
    view: View,
    forecast: MemoryForecast | None = None,
) -> str:
    """The page of a run, with its findings and its forecast. Raises ImportError without Jinja2."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Text that is marked as safe comes from the template.
        finalize=lambda each: visible(each, "\n\t") if type(each) is str else each,
    )
    observed = run.observed
    models = models_of(observed)

    def show(path: str) -> str:
        return one_line(view.relative(path))

    files = [
        (name, f"{title} {what}", list(map(show, paths)))
        for name, title, what, paths in written_files(observed)
    ]
    title, text = protection(observed, show)
    if title and files:
        files.append(("protection", "Protection of the working tree", [f"{title} {text}"]))
    return environment.get_template("page.html.j2").render(
        script=show(run.script),
        command=" ".join([show(run.script), *arguments]),
        verdict=_verdict(run, found),
        ending=ending(run, show),
        facts=list(_facts(run, found)),
        findings=[FindingSection(each, tuple(excerpts(each, view))) for each in found.diagnostics],
        early_stop_artifact=found.early_stop_artifact,
        artifact_cause=found.artifact_cause,
        flow=_diagram(observed),
        tables=[
            BatchTable(f"First batch of {source}", tuple(rows))
            for source, rows in first_batches(observed, show)
        ],
        trees=[_tree(each, models, show) for each in models[:_MODELS]],
        not_shown=max(len(models) - _MODELS, 0),
        plots=_plots(observed),
        forecast=None if forecast is None else list(_forecast(forecast, run, arguments, show)),
        gradients=[_gradients(observed, line) for line in observed.of(GradientsLine)],
        speed=_step_parts(observed),
        static=list(_verdicts(found, show)),
        files=files,
        last_output=[] if run.complete else last_output(run),
        environment=_environment(run),
        version=shapefix.__version__,
    )


def _verdict(run: ProbeRun, found: ProbeFindings) -> tuple[str, str]:
    """The style and the text of the verdict."""
    counts = Counter(each.severity for each in found.diagnostics)
    if counts[Severity.ERROR]:
        return "error", counted(counts[Severity.ERROR], "error")
    if found.diagnostics:
        return "warning", counted(len(found.diagnostics), "finding")
    if not run.complete:
        return "warning", "incomplete"
    return "works", "nothing found in the part that ran" if run.cut_short else "nothing found"


def _facts(run: ProbeRun, found: ProbeFindings) -> Iterator[tuple[str, str]]:
    observed, end = run.observed, run.observed.end
    yield "training steps", str(observed.steps)
    values = [each for each in map(loss_value, losses(observed)) if each is not None]
    if values:
        yield "loss" if len(values) == 1 else "losses", ", ".join(values)
    for line in observed.of(GradientsLine):
        yield "gradients", f"{line['with_gradient']} of {line['with_gradient'] + line['without_gradient']}"
    if end is not None and end["peak_cuda"]:
        yield "peak memory (GPU)", byte_size(end["peak_cuda"])
    elif end is not None and end["peak_process"]:
        yield "peak memory (process)", byte_size(end["peak_process"])
    model = _trained_model(observed)
    if model is not None and model.parameters is not None:
        yield "parameters", quantity(model.parameters)
    speed = step_speed(observed)
    if speed is not None:
        yield "time of a step", duration(speed.seconds)
    yield "time", duration(run.process.seconds)


def _environment(run: ProbeRun) -> str:
    start = run.observed.first(StartLine)
    if start is None:
        return "torch was not imported"
    return f"Python {start['python']}, torch {start['torch']}, {', '.join(start['devices']) or 'no GPU'}"


def _diagram(observed: Observations) -> SizeDiagram | None:
    model = _trained_model(observed)
    return None if model is None else size_diagram(observed, model)


def _trained_model(observed: Observations) -> ObservedModule | None:
    """The outermost call with the most modules, one with gradient if there is one."""
    models = models_of(observed)
    trained = [each for each in models if each.grad_enabled] or models
    return max(trained, key=_count, default=None)


def _tree(module: ObservedModule, models: Sequence[ObservedModule], show: ShowPath) -> ModuleTree:
    parameters = "" if module.model is None else parameters_text(module.model, module.multiplications)
    whole = FoldedCalls(module, model_label(module, models), 1, module.seconds, module.parameters)
    return ModuleTree(call_text(module, show), _node(whole, None, show), _count(module), parameters)


def _node(calls: FoldedCalls, parent: ObservedModule | None, show: ShowPath) -> ModuleNode:
    module = calls.first
    own_line = parent is None or module.constructed_at != parent.constructed_at
    return ModuleNode(
        calls.name,
        module.type if calls.times == 1 else f"{calls.times} × {module.type}",
        arguments_text(module.input),
        "" if module.out is None else value_text(module.out),
        "" if calls.seconds is None else duration(calls.seconds),
        place_text(module.constructed_at, show) if own_line else "",
        module.out is None,
        quantity(calls.parameters) if calls.parameters else "",
        tuple(_node(each, module, show) for each in folded_calls(module)),
    )


def _count(module: ObservedModule) -> int:
    return 1 + sum(map(_count, module.children))


def _plots(observed: Observations) -> tuple[MemoryPlot, MemoryPlot] | None:
    """The same plot for a narrow screen and for a wide one."""
    narrow, wide = memory_plot(observed, _NARROW, 200), memory_plot(observed, _WIDE, 260)
    return None if narrow is None or wide is None else (narrow, wide)


def _gradients(observed: Observations, line: GradientsLine) -> GradientSummary:
    lacking = tuple((what, ", ".join(names)) for what, names in lacking_gradients(line))
    norms = tuple(
        (each["module"] or "the model", f"{each['norm']:.3g}", f"{each['weights']:.3g}")
        for each in line["norms"]
    )
    return GradientSummary(f"gradients for {gradients_text(observed, line)}", lacking, norms)


def _step_parts(observed: Observations) -> StepParts | None:
    speed = step_speed(observed)
    if speed is None:
        return None
    rate = "" if speed.rows_per_second is None else f", {speed.rows_per_second:,.0f} samples/s"
    whole = max(speed.seconds, 1e-9)
    rows = tuple((name, duration(each), f"{100 * each / whole:.0f} %") for name, each in speed.parts)
    return StepParts(f"{duration(speed.seconds)}{rate} ({speed.basis})", rows)


def _verdicts(found: ProbeFindings, show: ShowPath) -> Iterator[StaticVerdict]:
    for each in found.static:
        if each.confirmation is not None:
            where, confirmation = place_text(each.span, show), each.confirmation
            yield StaticVerdict(
                confirmation.verdict.value, where, f"{each.code} {each.message}", confirmation.reason
            )


def _forecast(
    forecast: MemoryForecast, run: ProbeRun, arguments: Sequence[str], show: ShowPath
) -> Iterator[tuple[str, str]]:
    for (name, _), *rest in forecast_lines(forecast, run.script, arguments, show):
        yield name.strip(), "".join(text for text, _ in rest).strip()
