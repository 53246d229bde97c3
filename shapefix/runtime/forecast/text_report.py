"""The text report of a forecast: the memory of a step, the largest fitting batch, and savings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shapefix.runtime.forecast.batch_settings import BatchSetting
from shapefix.runtime.forecast.prediction import (
    CONTEXT,
    BatchSearch,
    MemoryForecast,
    StepPeak,
    accumulation,
    fitting_changes,
)
from shapefix.runtime.report.formatting import Line, ShowPath, byte_size

_ORDER = ("parameters", "gradients", "optimizer state", "activations", "inputs", "temporary")
_WHERE = {"step": "the optimizer's step", "loop": "the loop"}


def forecast_lines(
    forecast: MemoryForecast, script: str, arguments: Sequence[str], show: ShowPath
) -> Iterator[Line]:
    """The report in rows; show converts a path into the one to print."""
    head, *rows = _lines(forecast, script, arguments, show)
    room = max(len(row[0][0]) for row in rows)
    yield head
    for (name, style), *rest in rows:
        yield [(f"{name:<{room}}  ", style), *rest]


def _lines(forecast: MemoryForecast, script: str, arguments: Sequence[str], show: ShowPath) -> Iterator[Line]:
    peak = forecast.peak
    yield [
        ("memory", "name"),
        (f" of a training step, forecast for a GPU with {byte_size(forecast.vram)}", "code"),
    ]
    of = f"batch {peak.batch}" if peak.batch is not None else "the script"
    of += f" ({peak.calls} calls of the model)" if peak.calls > 1 else ""
    yield _row(of, f"{_band(peak)}, {_verdict(forecast)}", "code" if forecast.fits else "warning")
    parts = [f"{kind} {byte_size(peak.by_kind[kind])}" for kind in _ORDER if peak.by_kind.get(kind)]
    yield _row("at the peak", ", ".join(parts))
    yield _row("peak", _moment(peak, show))
    yield _row("CUDA itself", f"about {byte_size(CONTEXT)}; {byte_size(forecast.budget)} remain")
    if forecast.fit is not None and forecast.setting is not None:
        yield from _fit(forecast, forecast.fit, forecast.setting, show(script), arguments)
    else:
        yield _row("largest batch", "unknown: found no setting that changes the batch size")
    for saving in forecast.savings:
        less = peak.live - saving.peak.live
        yield _row(saving.label, f"{_band(saving.peak)}, {byte_size(less)} less ({less / peak.live:.0%})")
    if not forecast.fits:
        yield from _answer(forecast)


def _answer(forecast: MemoryForecast) -> Iterator[Line]:
    """The changes to make the step fit, or the nearest run."""
    changes = list(fitting_changes(forecast))
    for number, change in enumerate(changes):
        code = f": `{change.code}`" if change.code else ""
        text = f"{change.text}, at most {byte_size(change.reserved)} of {byte_size(forecast.budget)}{code}"
        yield _row("to make it fit" if number == 0 else "or", text)
    if not changes:
        tried = [
            *(forecast.fit.tried.values() if forecast.fit else ()),
            *(each.peak for each in forecast.savings),
        ]
        least = min((each.reserved for each in tried), default=forecast.peak.reserved)
        text = f"nothing that was tried: the least is {byte_size(least)} of {byte_size(forecast.budget)}"
        yield _row("to make it fit", text, "warning")


def _row(name: str, text: str, style: str = "code") -> Line:
    return [(f"  {name}", "step"), (text, style)]


def _band(peak: StepPeak) -> str:
    return f"{byte_size(peak.live)} live, {byte_size(peak.reserved)} reserved"


def _verdict(forecast: MemoryForecast) -> str:
    if forecast.fits:
        return "fits"
    return "may not fit" if forecast.peak.live <= forecast.budget else "does not fit"


def _moment(peak: StepPeak, show: ShowPath) -> str:
    where = f"in {_WHERE.get(peak.phase, peak.phase)}"
    where += f", `{peak.module}`" if peak.module else ""
    operation = peak.operation.removeprefix("aten.").split(".")[0]
    where += f", by {operation}" if operation else ""
    return f"{where}, at {show(peak.site.path)}:{peak.site.row}" if peak.site else where


def _fit(
    forecast: MemoryForecast, fit: BatchSearch, setting: BatchSetting, script: str, arguments: Sequence[str]
) -> Iterator[Line]:
    batch = forecast.peak.batch
    assert batch is not None
    runs = f"from {len(fit.tried)} runs"
    if fit.largest is None:
        yield _row("largest batch", f"none: even batch {min(fit.tried)} does not fit ({runs})", "warning")
        return
    bound = "; the data has no more rows" if fit.limit == fit.largest else ""
    if fit.too_large is not None:
        bound = f"; {fit.too_large} does not fit"
    yield _row("largest batch", f"{fit.largest}: {_band(fit.tried[fit.largest])} ({runs}{bound})")
    new, steps = (batch, 1) if forecast.fits else accumulation(batch, fit.largest)
    if steps > 1:
        yield _row("accumulate", f"{steps} x batch {new} per optimizer step gives batch {batch}")
        yield from (_row("edit", each) for each in _edits(setting, new, script, arguments))
    elif fit.largest > batch:
        yield from (_row("edit", each) for each in _edits(setting, fit.largest, script, arguments))


def _edits(setting: BatchSetting, new: int, script: str, arguments: Sequence[str]) -> Iterator[str]:
    """The edits for another batch size."""
    if setting.argument is not None:
        changed = setting.arguments(arguments, new)
        first = setting.argument if "=" in arguments[setting.argument] else setting.argument - 1
        old = " ".join(arguments[first : setting.argument + 1])
        yield f"`{old}` -> `{' '.join(changed[first : setting.argument + 1])}`"
    for each in setting.numbers:
        yield f"{script}:{each.row}: {each.name} {setting.value} -> {new}"
    if setting.is_implicit:
        whose = " of the training DataLoader" if setting.name == "batch_size" else ""
        yield f"{setting.name}{whose}: {setting.value} -> {new}"
