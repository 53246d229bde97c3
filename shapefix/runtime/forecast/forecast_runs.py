"""The runs of a forecast: the unchanged script, other batch sizes, and memory-saving settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shapefix.runtime.forecast import batch_settings
from shapefix.runtime.forecast.batch_settings import BatchSetting
from shapefix.runtime.forecast.prediction import (
    BatchSearch,
    MemoryForecast,
    MemorySaving,
    StepPeak,
    search_batch,
    step_peak,
)
from shapefix.runtime.protocol import ScriptLine, SourceLine, TrainerCreatedLine
from shapefix.runtime.run import ProbeRun, probe_script

_STEPS = 2
_ADAPTERS = 'get_peft_model(model, LoraConfig(target_modules="all-linear"))'
_CODE = {
    "checkpointing": "torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)",
    "bf16": 'with torch.autocast("cuda", torch.bfloat16):',
    "lora": _ADAPTERS,
}
_TRAINER_CODE = {
    "checkpointing": "TrainingArguments(gradient_checkpointing=True)",
    "bf16": "TrainingArguments(bf16=True)",
    "lora": _ADAPTERS,
}
_TOGETHER = ("checkpointing", "bf16")
"""The changes that are tried together, too."""


@dataclass(frozen=True)
class ForecastScript:
    """The script of a forecast; timeout is in seconds per run, options are further options of the agent."""

    python: str
    name: str
    arguments: Sequence[str]
    timeout: float
    options: Sequence[str] = ()

    def run(self, vram: int, options: Sequence[str] = (), arguments: Sequence[str] | None = None) -> ProbeRun:
        """Run two steps: only the second begins with the optimizer's state. Raises OSError."""
        given = self.arguments if arguments is None else arguments
        every = ["--device", "fake", "--vram", str(vram), *self.options, *options]
        return probe_script(self.python, self.name, given, _STEPS, self.timeout, every)


def forecast_memory(
    script: ForecastScript, vram: int, progress: Callable[[str], None] = lambda text: None
) -> tuple[ProbeRun, MemoryForecast | None]:
    """Run a script several times; return the first run, and the forecast if one was possible.

    vram is in bytes. progress is called with a description of each run. Raises OSError.
    """
    progress("unchanged")
    run = script.run(vram)
    peak = step_peak(run.observed)
    if peak is None:
        return run, None
    ran = run.observed.first(ScriptLine)
    source = _source(ran["file"] if ran else script.name)
    plain = MemoryForecast(vram, peak, None, None, ())
    setting = (
        None if peak.batch is None else batch_settings.batch_setting(script.arguments, source, peak.batch)
    )
    if setting is not None and setting.is_implicit and run.observed.first(TrainerCreatedLine):
        setting = replace(setting, name="per_device_train_batch_size")
    fit: BatchSearch | None = None
    if setting is not None:

        def measure(size: int, setting: BatchSetting = setting) -> StepPeak | None:
            progress(f"batch {size}")
            return _changed(script, vram, setting, size)

        fit = search_batch(measure, peak, plain.budget)
        if len(fit.tried) < 2:  # no setting that was found changes the batch
            setting = fit = None
    trainer = run.observed.first(TrainerCreatedLine) is not None
    code = _TRAINER_CODE if trainer else _CODE
    savings = tuple(_savings(script, vram, peak, source, code, _uses_transformers(run), progress))
    if not plain.fits and not any(each.peak.reserved <= plain.budget for each in savings):
        savings += tuple(_combined(script, vram, savings, progress))
    return run, MemoryForecast(vram, peak, setting, fit, savings)


def _changed(script: ForecastScript, vram: int, setting: BatchSetting, size: int) -> StepPeak | None:
    run = script.run(vram, setting.options(size), setting.arguments(script.arguments, size))
    return step_peak(run.observed)


def _savings(
    script: ForecastScript,
    vram: int,
    peak: StepPeak,
    source: str,
    code: Mapping[str, str],
    uses_transformers: bool,
    progress: Callable[[str], None],
) -> Iterator[MemorySaving]:
    changes = [("checkpointing", "gradient checkpointing"), ("bf16", "autocast to bf16")]
    if uses_transformers:
        changes.append(("lora", "LoRA adapters instead of all weights"))
    for what, label in changes:
        progress(label)
        found = step_peak(script.run(vram, [f"--{what}"]).observed)
        if found is not None and what in found.trials and found.live < peak.live:
            yield MemorySaving(what, label, found, code[what])
    setting = (
        None if peak.length is None else batch_settings.length_setting(script.arguments, source, peak.length)
    )
    if setting is None or setting.value < 4:
        return
    progress(f"{setting.name} {setting.value // 2}")
    found = _changed(script, vram, setting, setting.value // 2)
    if found is not None and found.length != peak.length and found.live < peak.live:
        label = f"{setting.name} {setting.value // 2} instead of {setting.value}"
        yield MemorySaving("length", label, found, setting=setting)


def _combined(
    script: ForecastScript, vram: int, savings: Sequence[MemorySaving], progress: Callable[[str], None]
) -> Iterator[MemorySaving]:
    """Gradient checkpointing and bf16 together, if each of them saves memory."""
    known = {each.what: each for each in savings if each.what in _TOGETHER}
    if len(known) < 2:
        return
    label = " and ".join(each.label for each in known.values())
    progress(label)
    found = step_peak(script.run(vram, [f"--{what}" for what in known]).observed)
    if found is not None and found.trials >= set(known):
        yield MemorySaving("+".join(known), label, found, "; ".join(each.code for each in known.values()))


def _uses_transformers(run: ProbeRun) -> bool:
    """Whether an executed file of the project names transformers: peft knows its models."""
    script = run.observed.first(ScriptLine)
    files = [line["file"] for line in run.observed.of(SourceLine)]
    return any("transformers" in _source(name) for name in (*files, script["file"] if script else ""))


def _source(name: str) -> str:
    """The text of the script, for numbers to replace; empty for a notebook."""
    if name.endswith(".ipynb"):
        return ""
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
