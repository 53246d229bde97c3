"""Make the change of a forecast in the script's text or arguments, and prove it by another forecast."""

from __future__ import annotations

import ast
import tempfile
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from shapefix.guards.memory.keywords import ComputedKeyword, KeywordCode, with_keywords
from shapefix.guards.memory.savings import in_parts, with_adapters, with_autocast, with_checkpointing
from shapefix.guards.memory.trainers import is_trainer_arguments
from shapefix.runtime.forecast.batch_settings import BatchSetting
from shapefix.runtime.forecast.forecast_runs import ForecastScript
from shapefix.runtime.forecast.prediction import (
    FittingChange,
    MemoryForecast,
    StepPeak,
    accumulation,
    fitting_changes,
    step_peak,
)
from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import ScriptLine, SourceLine, TrainerCreatedLine
from shapefix.runtime.protocol.adapter_tasks import task_of
from shapefix.runtime.repair.patched_sources import OriginalSources, PatchedSources
from shapefix.sources.text import Unreadable

_MOST_RUNS = 6
_LARGEST_FILE = 1_000_000


@dataclass(frozen=True)
class ProposedChange:
    """New texts of files, by path, or new arguments, with a text for the change."""

    text: str
    texts: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None


@dataclass(frozen=True)
class ProvedChange:
    """A change proved by its own forecast, with its peak."""

    proposed: ProposedChange
    sources: PatchedSources
    peak: StepPeak


@dataclass(frozen=True)
class ChangeSearch:
    """The first proved change, if any, and the proposed ones too large, with their peaks."""

    proved: ProvedChange | None
    rejected: tuple[tuple[ProposedChange, StepPeak | None], ...]


def prove_change(
    script: ForecastScript,
    forecast: MemoryForecast,
    observed: Observations,
    progress: Callable[[str], None] = lambda text: None,
) -> ChangeSearch:
    """Try the changes named by a forecast, the smallest first. Raises OSError."""
    originals = OriginalSources()
    rejected: list[tuple[ProposedChange, StepPeak | None]] = []
    for proposed in _proposals(script, forecast, observed, originals):
        if len(rejected) >= _MOST_RUNS:
            break
        progress(proposed.text)
        sources = PatchedSources(originals, proposed.texts)
        peak = _forecast(script, forecast.vram, proposed, sources)
        if peak is not None and peak.reserved <= forecast.budget:
            return ChangeSearch(ProvedChange(proposed, sources, peak), tuple(rejected))
        rejected.append((proposed, peak))
    return ChangeSearch(None, tuple(rejected))


def _forecast(
    script: ForecastScript, vram: int, proposed: ProposedChange, sources: PatchedSources
) -> StepPeak | None:
    with tempfile.TemporaryDirectory(prefix="shapefix-forecast-", ignore_cleanup_errors=True) as folder:
        overlay = sources.write_overlay(Path(folder))
        options = () if overlay is None else ("--overlay", str(overlay))
        return step_peak(script.run(vram, options, proposed.arguments).observed)


def _proposals(
    script: ForecastScript, forecast: MemoryForecast, observed: Observations, originals: OriginalSources
) -> Iterator[ProposedChange]:
    found = _Proposals(script, forecast, observed, originals)
    for change in fitting_changes(forecast):
        try:
            yield from found.of(change)
        except ComputedKeyword:
            continue


class _Proposals:
    """The proposals for the changes of one forecast."""

    def __init__(
        self,
        script: ForecastScript,
        forecast: MemoryForecast,
        observed: Observations,
        originals: OriginalSources,
    ) -> None:
        self._arguments = tuple(script.arguments)
        self._forecast = forecast
        self._originals = originals
        self._has_trainer = observed.first(TrainerCreatedLine) is not None
        ran = observed.first(ScriptLine)
        self._script = ran["file"] if ran else script.name
        others = (line["file"] for line in observed.of(SourceLine))
        self._files = [path for path in dict.fromkeys([self._script, *others]) if path.endswith(".py")]

    def of(self, change: FittingChange) -> Iterator[ProposedChange]:
        """The proposals for a change. Raises ComputedKeyword."""
        if change.what == "batch":
            yield from self._batch()
        elif change.what == "length":
            yield from self._length(change)
        else:
            yield from self._switched(change)

    def _batch(self) -> Iterator[ProposedChange]:
        fit, batch = self._forecast.fit, self._forecast.peak.batch
        if fit is None or fit.largest is None or batch is None:
            return
        size, steps = accumulation(batch, fit.largest)
        if self._has_trainer:
            yield from self._trainer_batch(size, steps)
            return
        while size:
            texts = self._changed(lambda text, rows=size: in_parts(text, rows))  # type: ignore[misc]
            if not texts:
                return
            rows = "1 row" if size == 1 else f"{size} rows"
            yield ProposedChange(f"the step in parts of {rows}, whose gradients add up", texts)
            size //= 2

    def _trainer_batch(self, size: int, steps: int) -> Iterator[ProposedChange]:
        settings: Mapping[str, KeywordCode] = {
            "per_device_train_batch_size": lambda _: str(size),
            "gradient_accumulation_steps": lambda old: str((old or 1) * steps),
        }
        text = f"batch {size} and {steps} accumulation steps"
        texts = self._with_settings(settings)
        if texts:
            yield ProposedChange(text, texts)
        elif self._parses_arguments():
            given = _with_option(self._arguments, "per_device_train_batch_size", lambda _: str(size))
            given = _with_option(given, "gradient_accumulation_steps", lambda old: str(int(old or 1) * steps))
            yield ProposedChange(text, arguments=given)

    def _switched(self, change: FittingChange) -> Iterator[ProposedChange]:
        """Gradient checkpointing, bf16, both of them, or adapters."""
        kinds = change.what.split("+")
        if self._has_trainer and change.what != "lora":
            names = [_TRAINER[kind] for kind in kinds]
            texts = self._with_settings(dict.fromkeys(names, lambda _: "True"))
            if texts:
                yield ProposedChange(change.text, texts)
            elif self._parses_arguments():
                given = self._arguments
                for name in names:
                    given = _with_option(given, name, lambda _: "True")
                yield ProposedChange(change.text, arguments=given)
            return

        def changed(text: str) -> str | None:
            new: str | None = text
            for kind in kinds:
                new = None if new is None else _TEXTS[kind](new)
            return new

        texts = self._changed(changed)
        if not texts and len(kinds) > 1:
            # The model is in one file, the loop in another one.
            parts = [self._changed(_TEXTS[kind]) for kind in kinds]
            texts = {path: text for part in parts for path, text in part.items()} if all(parts) else {}
        if texts:
            yield ProposedChange(change.text, texts)

    def _length(self, change: FittingChange) -> Iterator[ProposedChange]:
        setting = change.setting
        if setting is None:
            return
        if setting.argument is not None:
            arguments = tuple(setting.arguments(self._arguments, setting.value // 2))
            yield ProposedChange(change.text, arguments=arguments)
            return
        text = self._text(self._script)
        if text is not None and setting.numbers:
            yield ProposedChange(
                change.text, {self._script: _with_numbers(text, setting, setting.value // 2)}
            )

    def _changed(self, change: Callable[[str], str | None]) -> dict[str, str]:
        """The changed text of the first file with a place for a change, by its path."""
        for path in self._files:
            text = self._text(path)
            if text is None:
                continue
            try:
                new = change(text)
            except (SyntaxError, tokenize.TokenError, RecursionError):
                continue
            if new is not None and new != text and _parses(new):
                return {path: new}
        return {}

    def _with_settings(self, settings: Mapping[str, KeywordCode]) -> dict[str, str]:
        return self._changed(lambda text: with_keywords(text, is_trainer_arguments, settings))

    def _parses_arguments(self) -> bool:
        return any("HfArgumentParser" in (self._text(path) or "") for path in self._files)

    def _text(self, path: str) -> str | None:
        try:
            text = self._originals.source(path).text
        except Unreadable:
            return None
        return text if len(text) <= _LARGEST_FILE else None


_TRAINER = {"checkpointing": "gradient_checkpointing", "bf16": "bf16"}
_TEXTS: Mapping[str, Callable[[str], str | None]] = {
    "checkpointing": with_checkpointing,
    "bf16": with_autocast,
    "lora": lambda text: with_adapters(text, task_of),
}


def _with_option(arguments: Sequence[str], name: str, value: Callable[[str | None], str]) -> tuple[str, ...]:
    """Arguments with an option `--name value`, in its place or at the end."""
    given = list(arguments)
    for number, each in enumerate(given):
        option, separator, old = each.partition("=")
        if option.lstrip("-").replace("-", "_") != name or not option.startswith("--"):
            continue
        if separator:
            given[number] = f"{option}={value(old)}"
        elif number + 1 < len(given) and not given[number + 1].startswith("--"):
            given[number + 1] = value(given[number + 1])
        return tuple(given)
    return (*given, f"--{name}", value(None))


def _with_numbers(text: str, setting: BatchSetting, new: int) -> str:
    rows = text.splitlines(keepends=True)
    for each in sorted(setting.numbers, key=lambda number: (number.row, number.start), reverse=True):
        data = rows[each.row - 1].encode()
        rows[each.row - 1] = (data[: each.start] + str(new).encode() + data[each.end :]).decode()
    return "".join(rows)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
