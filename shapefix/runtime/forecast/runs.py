"""The runs that a forecast is made of: the script as it is, with other batches, with what saves memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shapefix.runtime.forecast import batch_settings
from shapefix.runtime.forecast.batch_settings import Knob
from shapefix.runtime.forecast.prediction import Fit, Forecast, Measured, Saving, measured, search
from shapefix.runtime.report.text_report import Run
from shapefix.runtime.run import probe

_STEPS = 2


@dataclass(frozen=True)
class Script:
    """What is run: the interpreter, the script with its arguments, the time for each run in seconds.

    options are more of the agent's own, for each run.
    """

    python: str
    name: str
    arguments: Sequence[str]
    timeout: float
    options: Sequence[str] = ()

    def run(self, vram: int, options: Sequence[str] = (), arguments: Sequence[str] | None = None) -> Run:
        """One run, for two steps: the second is the first with the optimizer's state. Raises OSError."""
        given = self.arguments if arguments is None else arguments
        every = ["--device", "fake", "--vram", str(vram), *self.options, *options]
        return probe(self.python, self.name, given, _STEPS, self.timeout, every)


def forecast(
    script: Script, vram: int, told: Callable[[str], None] = lambda text: None
) -> tuple[Run, Forecast | None]:
    """Run a script as often as it takes; the first run, and what is foretold, None where nothing can be.

    vram is in bytes. told is called with what is about to be tried. Raises OSError.
    """
    told("as it is")
    run = script.run(vram)
    peak = measured(run.observed)
    if peak is None:
        return run, None
    ran = run.observed.first("script")
    source = _source(ran["file"] if ran else script.name)
    plain = Forecast(vram, peak, None, None, ())
    knob = None if peak.batch is None else batch_settings.batch(script.arguments, source, peak.batch)
    if knob is not None and knob.unsaid and run.observed.first("trainer"):
        knob = replace(knob, name="per_device_train_batch_size")
    fit: Fit | None = None
    if knob is not None:

        def measure(size: int, knob: Knob = knob) -> Measured | None:
            told(f"batch {size}")
            return _changed(script, vram, knob, size)

        fit = search(measure, peak, plain.budget)
        if len(fit.tried) < 2:  # nothing that was found changes the batch
            knob = fit = None
    savings = tuple(_savings(script, vram, peak, source, told))
    return run, Forecast(vram, peak, knob, fit, savings)


def _changed(script: Script, vram: int, knob: Knob, size: int) -> Measured | None:
    run = script.run(vram, knob.options(size), knob.arguments(script.arguments, size))
    return measured(run.observed)


def _savings(
    script: Script, vram: int, peak: Measured, source: str, told: Callable[[str], None]
) -> Iterator[Saving]:
    for what, how in (("checkpointing", "gradient checkpointing"), ("bf16", "autocast to bf16")):
        told(how)
        found = measured(script.run(vram, [f"--{what}"]).observed)
        if found is not None and what in found.trials and found.live < peak.live:
            yield Saving(what, how, found)
    knob = None if peak.length is None else batch_settings.length(script.arguments, source, peak.length)
    if knob is None or knob.value < 4:
        return
    told(f"{knob.name} {knob.value // 2}")
    found = _changed(script, vram, knob, knob.value // 2)
    if found is not None and found.length != peak.length and found.live < peak.live:
        yield Saving("length", f"{knob.name} {knob.value // 2} instead of {knob.value}", found)


def _source(name: str) -> str:
    """The text of the script in which numbers may be replaced; empty for a notebook."""
    if name.endswith(".ipynb"):
        return ""
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
