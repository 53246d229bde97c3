"""The text report of a run: the first batch, the modules with their sizes, the loss, and the end."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath

from shapefix.runtime.agent.session import AFTER_STEP
from shapefix.runtime.findings.silent.overfit import first_and_last
from shapefix.runtime.observations import Observations, ObservedModule, span
from shapefix.runtime.protocol import (
    BackwardLine,
    ExtraBatchLine,
    GradientsLine,
    LoopTruncatedLine,
    OverfitLine,
    ProcessesRequestedLine,
    SkippedMagicLine,
    StartLine,
    StopLine,
    UploadSkippedLine,
    WriteProtectionLine,
)
from shapefix.runtime.report import module_tree
from shapefix.runtime.report.formatting import (
    Line,
    ShowPath,
    byte_size,
    counted,
    duration,
    extra_batch_text,
    gradient_count,
    listed,
    loss_value,
    named_parts,
    parameters_text,
    place_text,
    value_text,
)
from shapefix.runtime.report.step_speed import speed_text, step_speed
from shapefix.runtime.run import ProbeRun

_Section = Callable[[Observations, ShowPath, int], Iterator[Line]]

_MODELS = 8
_OUTPUT_ROWS = 12
_NORMS = 3


def report_lines(run: ProbeRun, show: ShowPath, width: int, printed: Sequence[Line] = ()) -> Iterator[Line]:
    """The report, in rows of about width cells; show converts a path into the one to print.

    printed are the rows of forward_lines, if any; they are not repeated unless they have changed.
    """
    body = list(_sections(run.observed, show, width, (*_FORWARD, _training, _disk)))
    known = list(printed[2:])
    if known and body[: len(known)] == known:
        rest = body[len(known) :]
        yield from ([], _head(run), *(rest if rest[0] else rest[1:]))
    else:
        yield from (_head(run), [], *body)
    yield from _end(run, show)


def forward_lines(script: str, observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    """The first batch and the model, after its first call and before the end of the run."""
    *rows, _ = _sections(observed, show, width, _FORWARD)
    yield from ([(script, "name"), (f": running{_environment(observed)}", "code")], [], *rows)


def _sections(
    observed: Observations, show: ShowPath, width: int, sections: Sequence[_Section]
) -> Iterator[Line]:
    for section in sections:
        rows = list(section(observed, show, width))
        if rows:
            yield from rows
            yield []


def _head(run: ProbeRun) -> Line:
    steps = run.observed.steps
    processes = max((int(line["requested"]) for line in run.observed.of(ProcessesRequestedLine)), default=1)
    made = counted(steps, "training step") if steps else "no training step"
    alone = f", as the first of {processes} processes" if processes > 1 else ""
    return [(run.script, "name"), (f": {made}{alone}{_environment(run.observed)}", "code")]


def _environment(observed: Observations) -> str:
    start = observed.first(StartLine)
    if start is None:
        return ""
    device = start["devices"][0] if start["devices"] else "no GPU"
    return f" (Python {start['python']}, torch {start['torch']}, {device})"


def _skipped_magics(observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    """The skipped lines for IPython."""
    lines = observed.of(SkippedMagicLine)
    shown = [f"`{line['text']}` ({show(line['file']).rpartition(':')[2]})" for line in lines]
    if shown:
        yield [("not executed", "name"), (f" {listed(shown)}", "warning")]


def _batches(observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    for source, parts in first_batches(observed, show):
        yield [("first batch", "name"), (f" of {source}", "code")]
        room = max(len(name) for name, _ in parts)
        for name, text in parts:
            yield [(f"  {name:<{room}}  ", "step"), (text, "code")]


def first_batches(observed: Observations, show: ShowPath) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The first batch of each loader, its loader and its parts, without repeating equal ones."""
    seen: list[tuple[str, list[tuple[str, str]]]] = []
    for batch in observed.batches:
        if batch.number != 1:
            continue
        loader = observed.loaders.get(batch.loader)
        parts = [(name, value_text(value)) for name, value in named_parts(batch.value)]
        collate = "?" if loader is None else loader["collate"]["name"]
        if (collate, parts) in seen:
            continue
        seen.append((collate, parts))
        created_at = place_text(None if loader is None else span(loader["created_at"]), show)
        source = f"the loader at {created_at}" if created_at else "a loader"
        if loader is not None:
            rows = f"{loader['length']} rows" if loader["length"] else loader["dataset"]
            source += f", of {rows}"
        yield f"{source}, collated by {collate}", parts


def model_lines(observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    """The calls of outermost modules, each as a tree."""
    models = models_of(observed)
    inner: set[str] = set()
    shown: set[str] = set()
    counted: set[str] = set()
    # A call in a loop is recorded after one before the loop, such as that of a summary.
    last = {model_label(each, models): each for each in models[:_MODELS] if each.grad_enabled}
    for module in models[:_MODELS]:
        label = model_label(module, models)
        yield [(label, "name"), (f" {call_text(module, show)}", "code")]
        if module.model is not None and label not in shown | counted:
            counted.add(label)
            yield [(f"  {parameters_text(module.model, module.multiplications)}", "code")]
        # The inner modules are the same for a second call, with other sizes.
        before = label in shown or (label == module.type and module.type in inner)
        repeated = before or (module.grad_enabled and last[label] is not module)
        depth = [0] if repeated and module.out else []
        yield from module_tree.tree_lines(module, width, *depth)
        if not depth:
            shown.add(label)
            inner |= _types(module)
    if len(models) > _MODELS:
        yield [(f"… and {len(models) - _MODELS} more", "gutter")]


_FORWARD: tuple[_Section, ...] = (_skipped_magics, _batches, model_lines)


def models_of(observed: Observations) -> list[ObservedModule]:
    """The calls of outermost modules except losses, and beside models those of modules without parameters.

    Equal calls at one place, such as those of the models in a list, are one.
    """
    every = [each for each in observed.modules if not is_loss(each)]
    with_parameters = {each.type for each in every if each.model is not None}
    known: dict[str, list[ObservedModule]] = {}
    for each in every:
        if not with_parameters or each.type in with_parameters or each.out is None:
            facts = (each.type, each.variable, each.grad_enabled, each.called_at, each.input, each.out)
            known.setdefault(repr(facts), []).append(each)
    return [replace(calls[0], equal_calls=len(calls)) for calls in known.values()]


def model_label(module: ObservedModule, models: Sequence[ObservedModule]) -> str:
    """The type of an outermost module, with its variable if the models have several of the type."""
    variables = {each.variable for each in models if each.type == module.type}
    return f"{module.type} `{module.variable}`" if len(variables) > 1 and module.variable else module.type


def call_text(module: ObservedModule, show: ShowPath) -> str:
    """Place of an outermost module's call, and whether gradients are enabled."""
    place = f", called at {place_text(module.called_at, show)}" if module.called_at else ""
    times = f", {module.equal_calls} equal calls" if module.equal_calls > 1 else ""
    return f"{'with' if module.grad_enabled else 'without'} gradient{place}{times}"


def is_loss(module: ObservedModule) -> bool:
    """Whether an outermost module is a loss, not a model."""
    return not module.children and module.type.endswith("Loss")


def _types(module: ObservedModule) -> set[str]:
    return {module.type}.union(*map(_types, module.children))


def _training(observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    for loss in losses(observed):
        value = loss_value(loss) or ("unknown" if loss["loss"]["size"] == [] else "not a scalar")
        style = "code" if loss["value"] is not None else "warning"
        at = place_text(span(loss["called_at"]), show)
        yield [
            ("loss", "name"),
            (f" {value}", style),
            (f", {value_text(loss['loss'])}, backward at {at}", "code"),
        ]
    overfit, values = observed.first(OverfitLine), first_and_last(observed)
    if overfit is not None and values is not None:
        what = "on one batch" if overfit["same_input"] else "with different inputs"
        text = f": loss {values[0]:.4g} -> {values[1]:.4g} in {overfit['steps']} steps {what}"
        yield [("overfit", "name"), (text, "code")]
        if overfit["unchanged"]:
            yield [(f"  unchanged: {listed([each or '?' for each in overfit['unchanged']])}", "warning")]
    optimizers = list(observed.of(GradientsLine))
    for line in optimizers[:_MODELS]:
        yield [("gradients", "name"), (f" for {gradients_text(observed, line)}", "code")]
        for what, text in extreme_norms(line):
            yield [(f"  {what}: {text}", "code")]
        for what, names in lacking_gradients(line):
            yield [(f"  {what}: {listed(names)}", "warning")]
    if len(optimizers) > _MODELS:
        yield [(f"… and gradients of {len(optimizers) - _MODELS} more optimizers", "gutter")]
    for place, text in extra_batches(observed, show):
        yield [("more batches", "name"), (f"{f' of the loader at {place}' if place else ''}: {text}", "code")]
    speed = step_speed(observed)
    if speed is not None:
        yield [("time of a step", "name"), (f" {speed_text(speed)}", "code")]
    end = observed.end
    if end is not None and end["peak_cuda"]:
        reserved = f", {byte_size(end['reserved_cuda'])} reserved" if end["reserved_cuda"] else ""
        yield [("peak memory", "name"), (f": {byte_size(end['peak_cuda'])} on the GPU{reserved}", "code")]
    elif end is not None and end["peak_process"]:
        yield [("peak memory", "name"), (f": {byte_size(end['peak_process'])} (whole process)", "code")]


def extra_batches(observed: Observations, show: ShowPath) -> Iterator[tuple[str, str]]:
    """The batches after the wanted steps: the place of their loader, and a text."""
    by_loader: dict[int, list[str]] = {}
    for line in observed.of(ExtraBatchLine):
        by_loader.setdefault(line["loader"], []).append(extra_batch_text(line))
    for number, texts in by_loader.items():
        loader = observed.loaders.get(number)
        place = place_text(None if loader is None else span(loader["created_at"]), show)
        yield place, ", ".join(dict.fromkeys(texts))


def losses(observed: Observations) -> list[BackwardLine]:
    """The first loss of each place of backward."""
    known: dict[str, BackwardLine] = {}
    for line in observed.of(BackwardLine):
        known.setdefault(str(line["called_at"]), line)
    return list(known.values())


def gradients_text(observed: Observations, line: GradientsLine) -> str:
    """The number of gradients of an optimizer, and their norm; its models if there are several optimizers."""
    several = sum(1 for _ in observed.of(GradientsLine)) > 1
    models = f" of {', '.join(line['models'])}" if several and line["models"] else ""
    norm = "" if line["norm"] is None else f", norm {line['norm']:.3g}"
    return f"{gradient_count(line)}{models} ({line['optimizer']}){norm}"


def extreme_norms(line: GradientsLine) -> Iterator[tuple[str, str]]:
    """The modules with the largest and the smallest norms of gradients, if they are several."""
    ordered = sorted(line["norms"], key=lambda each: -each["norm"])
    if len(ordered) < 2:
        return
    shown = min(_NORMS, len(ordered) // 2)
    for what, some in (("largest", ordered[:shown]), ("smallest", ordered[-shown:])):
        yield what, ", ".join(f"{each['module'] or 'the model'} {each['norm']:.2g}" for each in some)


def lacking_gradients(line: GradientsLine) -> Iterator[tuple[str, list[str]]]:
    """The parameters of an optimizer without a gradient, and those with a nan or infinite one."""
    for what, names in (("without gradient", line["missing"]), ("gradient not finite", line["not_finite"])):
        if names:
            yield what, [name or "?" for name in names]


def written_files(observed: Observations) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """The files of the script's writes: an identifier, a title in two parts, and the paths."""
    for name, title, what, paths in (
        ("written", "Written", "to a temporary folder", observed.written),
        ("deleted", "Deleted", "for the script only", observed.deleted),
        ("refused", "Not written", "(the probe cannot redirect these writes)", observed.refused),
        ("changed", "Changed", "in the working tree during the run", observed.changed),
    ):
        if paths:
            yield name, title, what, paths


def protection(observed: Observations, show: ShowPath) -> tuple[str, str]:
    """The title and text on the protection of the working tree; both empty if unknown."""
    line = observed.first(WriteProtectionLine)
    if line is None:
        return "", ""
    folders = listed([show(root) for root in line["roots"]])
    compared = "" if observed.compared else "; too many files to look for changes"
    match line["method"]:
        case "overlay":
            elsewhere = "elsewhere, writes by native code and other programs are not redirected"
            return "Protected", f"by an overlay mount: {folders}; {elsewhere}"
        case "landlock":
            text = "writes by native code and other programs fail; their changes of modes and times do not"
            return "Protected", f"by Landlock: {folders}; {text}{compared}"
        case "none":
            reason = f" ({line['reason']})" if line["reason"] else ""
            return "Not protected", f"against writes by native code and other programs{reason}{compared}"


def _disk(observed: Observations, show: ShowPath, width: int) -> Iterator[Line]:
    for name, title, what, paths in written_files(observed):
        shown = list(dict.fromkeys(_top(show(path)) for path in paths))
        style = "name" if name in ("written", "deleted") else "warning"
        yield [(title.lower(), style), (f" {what}: {listed(shown)}", "code")]
    title, text = protection(observed, show)
    if title and any(written_files(observed)):
        yield [(title.lower(), "name"), (f" {text}", "code")]
    for line in observed.of(UploadSkippedLine):
        yield [("not uploaded", "name"), (f" {line['function']} to {line['repository']}", "code")]


def _top(path: str) -> str:
    """The entry of the current folder around a path; a path elsewhere unchanged."""
    parts = PurePath(path).parts
    return path if len(parts) < 2 or PurePath(path).is_absolute() else f"{parts[0]}/"


def _end(run: ProbeRun, show: ShowPath) -> Iterator[Line]:
    yield [("ended", "name"), (f" after {duration(run.process.seconds)}: {ending(run, show)}", "code")]
    end = run.observed.end
    explained = run.complete or (end is not None and end["how"] in ("uncaught", "stuck"))
    if not explained and run.process.output.strip():
        yield [("last output", "name")]
        for row in last_output(run):
            yield [(f"  {row}", "gutter")]


def last_output(run: ProbeRun) -> list[str]:
    """The last rows printed by the process."""
    return run.process.output.strip().splitlines()[-_OUTPUT_ROWS:]


def end_reason(run: ProbeRun) -> str:
    """How the run ended, in a word or two; from its process if the agent could not write it."""
    if run.observed.end is not None:
        return run.observed.end["how"]
    if run.process.killed:
        return "time limit"
    return "signal" if run.process.code < 0 else "silent"


def ending(run: ProbeRun, show: ShowPath) -> str:
    """How the run ended, and how far it came, as a sentence."""
    observed, end = run.observed, run.observed.end
    progress = _progress(observed)
    if end is None:
        code = run.process.code
        if run.process.killed:
            return f"killed at the time limit of {run.timeout:g} s, {progress}"
        if code < 0:
            return f"the process was killed by {_signal(code)}, {progress}"
        return f"the process exited unexpectedly with code {code}, {progress}"
    at = place_text(span(end["site"]), show)
    place = f" at {at}" if at else ""
    match end["how"]:
        case "no torch":
            return f"{end['message']}; choose another interpreter with --python"
        case "missing":
            return str(end["message"])
        case "no device":
            return f"{end['message']} (requested by --device)"
        case "stuck":
            return f"stopped{place}: the ranks wait for each other at different collectives"
        case "time limit":
            return f"stopped at the time limit of {end['seconds']:g} s{place}, {progress}"
        case "stopped":
            stop = observed.first(StopLine)
            forced = " (by force: the script catches all exceptions)" if end["forced"] else ""
            reason = stop["reason"] if stop else progress
            when = reason if reason.startswith(AFTER_STEP) else f"by the probe: {reason}"
            return f"stopped{forced} {when}; later code did not run"
        case "finished":
            truncated = observed.first(LoopTruncatedLine)
            if truncated is not None:
                where = place_text(span(truncated["site"]), show)
                at_loop = f" at {where}" if where else ""
                return (
                    f"reached the last line, but {truncated['reason']}{at_loop}; later iterations did not run"
                )
            return "the script finished" if run.complete else f"the script finished, {progress}"
        case "uncaught":
            return f"uncaught exception, {progress}"
        case "exit" | "os._exit":
            text = f": {end['message']}" if end["message"] else ""
            call = "os._exit" if end["how"] == "os._exit" else "sys.exit"
            usage = ""
            if end["usage_error"]:
                example = f"shapefix probe {run.script} -- --epochs 3"
                usage = f". Put the script's own arguments after `--`: `{example}`"
            return f"{call}({end['code']}){place}{text}, {progress}{usage}"


def _progress(observed: Observations) -> str:
    if observed.steps:
        return "after a training step"
    if observed.first(BackwardLine):
        return "after backward, before a training step"
    if observed.modules:
        return f"after calling `{(models_of(observed) or observed.modules)[-1].type}`"
    if observed.batches:
        return "after the first batch, before a model was called"
    if observed.loaders:
        return "before the first batch"
    return "before any batch or model" if observed.first(StartLine) else "before the script started"


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
