"""A forecast of memory for people: a step of the script, the batch that fits, what saves how much."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shapefix.runtime.forecast.batch_settings import Knob
from shapefix.runtime.forecast.prediction import CONTEXT, Fit, Forecast, Measured, accumulation
from shapefix.runtime.report.formatting import size
from shapefix.runtime.report.text_report import Line

_ORDER = ("parameters", "gradients", "optimizer state", "activations", "inputs", "temporary")
_WHERE = {"step": "the optimizer's step", "loop": "the loop"}


def lines(
    forecast: Forecast, script: str, arguments: Sequence[str], show: Callable[[str], str]
) -> Iterator[Line]:
    """The forecast, in rows; show turns a path into the one to print."""
    head, *rows = _lines(forecast, script, arguments, show)
    room = max(len(row[0][0]) for row in rows)
    yield head
    for (name, style), *rest in rows:
        yield [(f"{name:<{room}}  ", style), *rest]


def _lines(
    forecast: Forecast, script: str, arguments: Sequence[str], show: Callable[[str], str]
) -> Iterator[Line]:
    peak = forecast.peak
    yield [
        ("memory", "name"),
        (f" of a training step, forecast for a GPU of {size(forecast.vram)} from sizes alone", "code"),
    ]
    of = f"batch {peak.batch}" if peak.batch is not None else "the script"
    of += f" ({peak.calls} calls of the model)" if peak.calls > 1 else ""
    yield _row(of, f"{_band(peak)}, {_verdict(forecast)}", "code" if forecast.fits else "warning")
    parts = [f"{kind} {size(peak.parts[kind])}" for kind in _ORDER if peak.parts.get(kind)]
    yield _row("at its peak", ", ".join(parts))
    yield _row("which is", _moment(peak, show))
    yield _row("besides", f"about {size(CONTEXT)} for CUDA itself: {size(forecast.budget)} are left")
    if forecast.fit is not None and forecast.knob is not None:
        yield from _fit(forecast, forecast.fit, forecast.knob, show(script), arguments)
    else:
        yield _row("largest batch", "unknown: nothing was found that changes the batch")
    for saving in forecast.savings:
        less = peak.live - saving.peak.live
        yield _row(saving.how, f"{_band(saving.peak)}, {size(less)} less ({less / peak.live:.0%})")


def _row(name: str, text: str, style: str = "code") -> Line:
    return [(f"  {name}", "step"), (text, style)]


def _band(peak: Measured) -> str:
    return f"{size(peak.live)} live, {size(peak.reserved)} reserved"


def _verdict(forecast: Forecast) -> str:
    if forecast.fits:
        return "fits"
    return "may not fit" if forecast.peak.live <= forecast.budget else "does not fit"


def _moment(peak: Measured, show: Callable[[str], str]) -> str:
    where = f"in {_WHERE.get(peak.phase, peak.phase)}"
    where += f", `{peak.module}`" if peak.module else ""
    operation = peak.operation.removeprefix("aten.").split(".")[0]
    where += f", by {operation}" if operation else ""
    return f"{where}, at {show(peak.site.path)}:{peak.site.row}" if peak.site else where


def _fit(forecast: Forecast, fit: Fit, knob: Knob, script: str, arguments: Sequence[str]) -> Iterator[Line]:
    batch = forecast.peak.batch
    assert batch is not None
    runs = f"from {len(fit.tried)} runs"
    if fit.largest is None:
        yield _row("largest batch", f"none: even {min(fit.tried)} does not fit ({runs})", "warning")
        return
    bound = "; the data has no more rows" if fit.limit == fit.largest else ""
    if fit.too_large is not None:
        bound = f"; {fit.too_large} does not fit"
    yield _row("largest batch", f"{fit.largest}: {_band(fit.tried[fit.largest])} ({runs}{bound})")
    new, steps = (batch, 1) if forecast.fits else accumulation(batch, fit.largest)
    if steps > 1:
        yield _row("keeps batch", f"{batch}: {steps} times batch {new} for each step of the optimizer")
        yield from (_row("edit", each) for each in _edits(knob, new, script, arguments))
    elif fit.largest > batch:
        yield from (_row("edit", each) for each in _edits(knob, fit.largest, script, arguments))


def _edits(knob: Knob, new: int, script: str, arguments: Sequence[str]) -> Iterator[str]:
    """What to change for another batch, in words."""
    if knob.argument is not None:
        changed = knob.arguments(arguments, new)
        first = knob.argument if "=" in arguments[knob.argument] else knob.argument - 1
        old = " ".join(arguments[first : knob.argument + 1])
        yield f"`{old}` -> `{' '.join(changed[first : knob.argument + 1])}`"
    for each in knob.literals:
        yield f"{script}:{each.row}: {each.name} {knob.value} -> {new}"
    if knob.unsaid:
        whose = " of the training DataLoader" if knob.name == "batch_size" else ""
        yield f"{knob.name}{whose}: {knob.value} -> {new}"
