"""Several processes of one run, compared: where their collectives part, and who waits for whom."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from shapefix.diagnostics import Diagnostic, Evidence, Severity, Span
from shapefix.runtime.findings.collect import Found, findings
from shapefix.runtime.findings.silent import Rules
from shapefix.runtime.observations import Failure, Module, Observations, span
from shapefix.runtime.report.formatting import words
from shapefix.runtime.report.text_report import Line, Run

COLLECTIVE = "collective"
"""What stands in the place of a code for ranks that do not meet."""

# How a rank hears of one that is gone; whose fault that is, the other one tells.
_GONE = re.compile(
    r"[Cc]onnection (closed|reset) by peer|[Cc]onnection refused|[Bb]roken pipe|gloo/transport|"
    r"[Tt]imed out|remote process exited"
)
_WELL = ("finished", "exit", "os._exit")


def found(run: Run, rules: Rules) -> Found:
    """What a run of several ranks has shown to be wrong, each fault once."""
    single = [findings(_without_echoes(each, run.ranks), rules) for each in run.ranks]
    told: dict[tuple[object, ...], tuple[Diagnostic, list[int]]] = {}
    for rank, known in enumerate(single):
        for each in known.diagnostics:
            told.setdefault((each.code, each.name, each.span), (each, []))[1].append(rank)
    alone = tuple(_where(each, ranks, len(single)) for each, ranks in told.values())
    notes = {(each.name, each.span): each for known in single for each in known.notes}
    parted = () if _raised(run) else tuple(_parted(run.ranks))
    waits = () if parted or alone else tuple(_waits(run.ranks))
    aftermath = next((each.aftermath for each in single if each.aftermath is not None), None)
    return Found((*alone, *parted, *waits), aftermath, tuple(notes.values()))


def lines(run: Run, show: Callable[[str], str]) -> Iterator[Line]:
    """What each rank did, and which sizes were others on each; show turns a path into the one to print."""
    yield [("ranks", "name"), (f" {len(run.ranks)}, with gloo", "code")]
    for rank, observed in enumerate(run.ranks):
        met = sum(1 for _ in observed.of("collective"))
        loss = observed.first("backward")
        value = f"loss {loss['value']:.4g}, " if loss and loss["value"] is not None else ""
        steps = f"{observed.steps} training step{'' if observed.steps == 1 else 's'}"
        text = f"{steps}, {value}{met} collective{'' if met == 1 else 's'}"
        place = _position(observed)
        yield [(f"  {rank}  ", "step"), (text, "code")]
        if place is not None:
            at = f" at {show(place[1].path)}:{place[1].row}" if place[1] else ""
            yield [(f"     {place[0]}{at}", "warning")]
    for name, each in _differences(run.ranks):
        yield [("  differs  ", "step"), (f"{name}: {each}", "code")]


def _where(each: Diagnostic, ranks: list[int], of: int) -> Diagnostic:
    if len(ranks) == of:
        return each
    named = ", ".join(map(str, ranks))
    return replace(each, message=f"{each.message} (on rank {named} only)")


def _raised(run: Run) -> bool:
    """Whether an exception of a rank's own, and not the end of another, has ended it."""
    return any(
        failure.ended and not _GONE.search(failure.message)
        for observed in run.ranks
        for failure in observed.failures
    )


def _without_echoes(observed: Observations, ranks: Sequence[Observations]) -> Observations:
    """The observations without what was raised only because another rank was gone."""
    gone = {each.number for each in observed.failures if _GONE.search(_said(each))}
    if not gone or len(ranks) < 2:
        return observed
    return Observations(
        tuple(
            line
            for line in observed.lines
            if not (line["kind"] == "failure" and line["id"] in gone)
            and not (line["kind"] == "swallowed" and line["failure"] in gone)
        )
    )


def _said(failure: Failure) -> str:
    return " ".join([failure.message, *(text for _, text in failure.causes)])


def _parted(ranks: Sequence[Observations]) -> Iterator[Diagnostic]:
    """The first collective of each group that two of its ranks call differently."""
    calls = [_by_group(observed, rank, len(ranks)) for rank, observed in enumerate(ranks)]
    for group in dict.fromkeys(key for each in calls for key in each):
        first, *others = [rank for rank in group if rank < len(ranks)]
        for other in others:
            pairs = zip(calls[first].get(group, ()), calls[other].get(group, ()), strict=False)
            different = next(((one, two) for one, two in pairs if _what(one) != _what(two)), None)
            if different is not None:
                yield _parting(first, other, *different)
                break


def _parting(first: int, other: int, one: Mapping[str, Any], two: Mapping[str, Any]) -> Diagnostic:
    places = {rank: span(call["called"]) for rank, call in ((first, one), (other, two))}
    message = f"rank {first} calls {_told(one)} where rank {other} calls {_told(two)}: they do not meet"
    evidence = tuple(
        Evidence(place, f"rank {rank} calls {_told(call)} here")
        for (rank, place), call in zip(places.items(), (one, two), strict=True)
        if place is not None
    )
    at = places[first] or places[other] or Span("<unknown>", 1, 1, 1, 1)
    return Diagnostic(COLLECTIVE, "different-collectives", Severity.ERROR, message, at, evidence)


def _waits(ranks: Sequence[Observations]) -> Iterator[Diagnostic]:
    """A rank that waits at a collective for one that is elsewhere, or has come to its end."""
    waiting = [(rank, each) for rank, observed in enumerate(ranks) if (each := observed.waiting) is not None]
    for rank, call in waiting:
        place = span(call["called"])
        members = call.get("group") or range(len(ranks))
        absent = [each for each in members if each not in dict(waiting) and each < len(ranks)]
        if place is None or not absent:
            continue
        other = absent[0]
        end = ranks[other].end
        if end is None or end["how"] not in (*_WELL, "time limit"):
            continue  # the probe has stopped it, or its process was ended from outside
        at = span(end.get("site"))
        over = end["how"] in _WELL
        what = "has come to its end" if over else "is elsewhere at the time limit"
        evidence = [Evidence(place, f"rank {rank} waits here")]
        if at is not None:
            evidence.append(Evidence(at, f"rank {other} {'ends' if over else 'is'} here"))
        yield Diagnostic(
            COLLECTIVE, "waiting-rank", Severity.ERROR if over else Severity.WARNING,
            f"rank {rank} waits at {_told(call)} for rank {other}, which {what}", place, tuple(evidence),
        )  # fmt: skip
        return


def _by_group(observed: Observations, rank: int, size: int) -> dict[tuple[int, ...], list[Mapping[str, Any]]]:
    made: dict[tuple[int, ...], list[Mapping[str, Any]]] = {}
    for line in observed.of("collective"):
        made.setdefault(tuple(line.get("group") or range(size)), []).append(line)
    return made


def _what(call: Mapping[str, Any]) -> tuple[Any, ...]:
    """What ranks must agree on."""
    given = call.get("given") or {}
    return call["name"], given.get("size"), given.get("dtype"), call.get("root")


def _told(call: Mapping[str, Any]) -> str:
    name = "the backward of DistributedDataParallel" if call["name"] == "backward" else f"`{call['name']}`"
    given = f" of {words(call['given'])}" if call.get("given") else ""
    root = f" with root {call['root']}" if call.get("root") is not None else ""
    return name + given + root


def _position(observed: Observations) -> tuple[str, Span | None] | None:
    """Where a rank was when it ended, unless it was stopped."""
    call = observed.waiting
    if call is not None:
        return f"waits at {_told(call)}", span(call["called"])
    end = observed.end
    if end is None:
        return "ended without a word", None
    return None if end["how"] == "stopped" else (end["how"], span(end.get("site")))


def _differences(ranks: Sequence[Observations]) -> Iterator[tuple[str, str]]:
    """The parts of the first batch, and the modules of training, that are not the same on all ranks."""
    batches = [{key: words(value) for key, value in _first_batch(each).items()} for each in ranks]
    yield from _unequal(batches)
    trees = [{"modules with gradient": _shape(each)} for each in ranks]
    yield from _unequal(trees)


def _unequal(known: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    for key in dict.fromkeys(key for each in known for key in each):
        values = [each.get(key, "nothing") for each in known]
        if len(set(values)) > 1:
            yield key, ", ".join(f"{value} on rank {rank}" for rank, value in enumerate(values))


def _first_batch(observed: Observations) -> Mapping[str, Any]:
    first = next(iter(observed.batches), None)
    if first is None:
        return {}
    parts = first.value.get("items") or {"": first.value}
    return parts if isinstance(parts, Mapping) else {f"[{n}]": each for n, each in enumerate(parts)}


def _shape(observed: Observations) -> str:
    trained = [each for each in observed.modules if each.training]
    return f"{sum(map(_count, trained))} calls of {', '.join(each.type for each in trained[:3]) or 'none'}"


def _count(module: Module) -> int:
    return 1 + sum(map(_count, module.children))
