"""The report of a run for people: the first batch, the modules with their sizes, the loss, and the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from shapefix.diagnostics import Span
from shapefix.runtime.child import Ended
from shapefix.runtime.observations import Module, Observations, span
from shapefix.runtime.report import module_tree
from shapefix.runtime.report.formatting import duration, size, words

Line = list[tuple[str, str]]
"""One row: stretches of text, each with the name of its style."""

_NAMES = 6
_MODELS = 8
_LAST_WORDS = 12


@dataclass(frozen=True)
class Run:
    """What there is to tell of: the script as it was named, what was observed, and how the process ended.

    ranks has the observations of each rank where there were several; observed are those of the first.
    """

    script: str
    observed: Observations
    ended: Ended
    timeout: float
    ranks: tuple[Observations, ...] = ()

    @property
    def trained(self) -> bool:
        return self.observed.steps > 0

    @property
    def reached(self) -> bool:
        """Whether it came as far as a batch or a model."""
        return bool(self.observed.modules or self.observed.batches)

    @property
    def complete(self) -> bool:
        """Whether the script was seen to work: it made a training step, or came to its end after a model.

        Of several ranks, one has, and the others have, too, or wait for it.
        """
        done = [(_complete(each), each.waiting) for each in self.ranks or (self.observed,)]
        return any(well for well, _ in done) and all(well or waits is not None for well, waits in done)


def _complete(observed: Observations) -> bool:
    end = observed.end
    if end is None or end["how"] in ("missing", "no torch", "no device"):
        return False
    if any(stop.get("unforeseen") for stop in observed.of("stop")):
        return False
    well = end["how"] in ("finished", "stopped") or (end["how"] == "exit" and end["code"] == 0)
    return well and (observed.steps > 0 or bool(observed.modules))


def lines(run: Run, show: Callable[[str], str], width: int) -> Iterator[Line]:
    """The report, in rows of about width cells; show turns a path into the one to print."""
    observed = run.observed
    yield _head(run)
    yield []
    for section in (_left_out, _batches, modules, _training, _disk):
        rows = list(section(observed, show, width))
        if rows:
            yield from rows
            yield []
    yield from _end(run, show)


def _head(run: Run) -> Line:
    start = run.observed.first("start")
    with_what = ""
    asked = max((int(line["asked"]) for line in run.observed.of("processes")), default=1)
    if start is not None:
        devices = start["devices"]
        with_what = (
            f" (Python {start['python']}, torch {start['torch']}, {devices[0] if devices else 'no GPU'})"
        )
    steps = run.observed.steps
    made = f"{steps} training step{'' if steps == 1 else 's'}" if steps else "no training step"
    alone = f", the first of {asked} processes" if asked > 1 else ""
    return [(run.script, "name"), (f": {made}{alone}{with_what}", "code")]


def _at(place: Mapping[str, Any] | None, show: Callable[[str], str]) -> str:
    where: Span | None = span(place)
    return "" if where is None else f"{show(where.path)}:{where.row}"


def _left_out(observed: Observations, show: Callable[[str], str], width: int) -> Iterator[Line]:
    """What IPython would have handed on, and the probe has not."""
    said = [f"`{line['text']}` ({show(line['file']).rpartition(':')[2]})" for line in observed.of("left out")]
    if said:
        more = f" and {len(said) - _NAMES} more" if len(said) > _NAMES else ""
        yield [("not executed", "name"), (f" {', '.join(said[:_NAMES])}{more}", "warning")]


def _batches(observed: Observations, show: Callable[[str], str], width: int) -> Iterator[Line]:
    told: list[tuple[str, list[tuple[str, str]]]] = []
    for batch in observed.batches:
        if batch.number != 1:
            continue
        loader = observed.loaders.get(batch.loader, {})
        made = _at(loader.get("made"), show)
        by = f"{made}, " if made else ""
        collate = loader.get("collate", {}).get("name", "?")
        of = f"{loader['length']} rows" if loader.get("length") else loader.get("dataset", "rows")
        parts = batch.value.get("items") or {}
        named = parts.items() if isinstance(parts, Mapping) else ((f"[{n}]", v) for n, v in enumerate(parts))
        shown = [(name, words(value)) for name, value in named] or [("", words(batch.value))]
        if (collate, shown) in told:
            continue
        told.append((collate, shown))
        yield [("first batch", "name"), (f" of the loader at {by}of {of}, collated by {collate}", "code")]
        room = max(len(name) for name, _ in shown)
        for name, text in shown:
            yield [(f"  {name:<{room}}  ", "step"), (text, "code")]


def modules(observed: Observations, show: Callable[[str], str], width: int) -> Iterator[Line]:
    shown: set[str] = set()
    for module in observed.modules[:_MODELS]:
        if not module.children and module.type.endswith("Loss"):
            continue
        how = "with" if module.training else "without"
        place = f", called at {show(module.called.path)}:{module.called.row}" if module.called else ""
        yield [(module.type, "name"), (f" {how} gradient{place}", "code")]
        # The parts are the same for a second call, with other sizes.
        yield from module_tree.lines(module, width, *([0] if module.type in shown and module.out else []))
        shown |= _types(module)
    if len(observed.modules) > _MODELS:
        yield [(f"… and {len(observed.modules) - _MODELS} more", "gutter")]


def _types(module: Module) -> set[str]:
    return {module.type}.union(*map(_types, module.children))


def _training(observed: Observations, show: Callable[[str], str], width: int) -> Iterator[Line]:
    loss = observed.first("backward")
    if loss is not None:
        value = loss["text"] or ("without a value" if loss["loss"]["size"] == [] else "of several elements")
        value = f"{loss['value']:.4g}" if loss["value"] is not None else value
        style = "code" if loss["value"] is not None else "warning"
        yield [
            ("loss", "name"),
            (f" {value}", style),
            (f", {words(loss['loss'])}, backward at {_at(loss['called'], show)}", "code"),
        ]
    for line in observed.of("gradients"):
        total = line["given"] + line["without"]
        frozen = f", {line['frozen']} frozen" if line["frozen"] else ""
        yield [
            ("gradients", "name"),
            (f" in {line['given']} of {total} parameters{frozen} ({line['optimizer']})", "code"),
        ]
        for key, what in (("missing", "without gradient"), ("not_finite", "gradient not finite")):
            names = [name or "?" for name in line[key]]
            if names:
                more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
                yield [(f"  {what}: {', '.join(names[:_NAMES])}{more}", "warning")]
    end = observed.end or {}
    if end.get("peak_cuda"):
        yield [
            ("memory", "name"),
            (
                f" {size(end['peak_cuda'])} at its peak on the GPU, {size(end['reserved_cuda'])} reserved",
                "code",
            ),
        ]
    elif end.get("peak_process"):
        yield [
            ("memory", "name"),
            (f" {size(end['peak_process'])} at its peak, of the whole process", "code"),
        ]


def _disk(observed: Observations, show: Callable[[str], str], width: int) -> Iterator[Line]:
    for paths, name, what in (
        (observed.written, "written", "into a temporary folder"),
        (observed.refused, "not written", "as the probe cannot redirect it"),
        (observed.changed, "changed", "in the working tree while the script ran"),
    ):
        shown = list(dict.fromkeys(_top(show(path)) for path in paths))
        if shown:
            more = f" and {len(shown) - _NAMES} more" if len(shown) > _NAMES else ""
            style = "name" if paths is observed.written else "warning"
            yield [(name, style), (f" {what}: {', '.join(shown[:_NAMES])}{more}", "code")]
    for line in observed.of("upload"):
        yield [("not uploaded", "name"), (f" {line['function']} to {line['to']}", "code")]


def _top(path: str) -> str:
    """The file or folder of the current folder that a path is in; a path elsewhere as it is."""
    parts = PurePath(path).parts
    return path if len(parts) < 2 or PurePath(path).is_absolute() else f"{parts[0]}/"


def _end(run: Run, show: Callable[[str], str]) -> Iterator[Line]:
    yield [("ended", "name"), (f" after {duration(run.ended.seconds)}: {ending(run, show)}", "code")]
    end = run.observed.end
    quiet = run.complete or (end is not None and end["how"] in ("uncaught", "stuck"))
    if not quiet and run.ended.output.strip():
        yield [("its last words", "name")]
        for row in run.ended.output.strip().splitlines()[-_LAST_WORDS:]:
            yield [(f"  {row}", "gutter")]


def how(run: Run) -> str:
    """How the run ended, in a word or two; where the agent has not lived to tell, how its process did."""
    if run.observed.end is not None:
        return str(run.observed.end["how"])
    if run.ended.killed:
        return "time limit"
    return "signal" if run.ended.code < 0 else "silent"


def ending(run: Run, show: Callable[[str], str]) -> str:
    """How the run ended, and how far it came, in a sentence."""
    observed, end = run.observed, run.observed.end
    far = _far(observed)
    if end is None:
        if run.ended.killed:
            return f"killed at the time limit of {run.timeout:g} s, {far}"
        if run.ended.code < 0:
            return f"the process was killed by {_signal(run.ended.code)}, {far}"
        return f"the process ended with code {run.ended.code} without a word, {far}"
    how, at = end["how"], _at(end.get("site"), show)
    place = f" at {at}" if at else ""
    if how == "no torch":
        return f"{end['python']} has no torch ({end['message']}); name another interpreter with --python"
    if how == "missing":
        return str(end["message"])
    if how == "no device":
        return f"{end['message']}; it was asked for by --device"
    if how == "stuck":
        return f"stopped{place}, where the ranks wait for each other at different collectives"
    if how == "time limit":
        return f"stopped at the time limit of {end['seconds']:g} s{place}, {far}"
    if how == "stopped":
        stop = observed.first("stop")
        forced = ", by force: the script catches everything" if end.get("forced") else ""
        return f"stopped by the probe, {stop['why'] if stop else far}{forced}"
    if how == "finished":
        return "the script came to its end" if run.complete else f"the script came to its end, {far}"
    if how == "uncaught":
        return f"an exception, {far}"
    text = f": {end['text']}" if end.get("text") else ""
    if end.get("usage"):
        text += f"; the arguments of {run.script} go behind `--`"
    call = "os._exit" if how == "os._exit" else "sys.exit"
    return f"{call}({end['code']}){place}{text}, {far}"


def _far(observed: Observations) -> str:
    if observed.steps:
        return "after a training step"
    if observed.first("backward"):
        return "after backward, and before a training step"
    if observed.modules:
        return f"after `{observed.modules[-1].type}` was called"
    if observed.batches:
        return "after the first batch, and before a model was called"
    if observed.loaders:
        return "before the first batch"
    return "before any batch or model" if observed.first("start") else "before the script began"


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
