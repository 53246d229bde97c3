"""Compare the ranks of one run: different collectives, and ranks waiting for others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from shapefix.diagnostics import Diagnostic, Evidence, Severity, Span
from shapefix.runtime.findings.collect import ProbeFindings, collect_findings
from shapefix.runtime.findings.constructor_fixes import ReadText, read_text
from shapefix.runtime.observations import Observations, ObservedModule, RaisedException, span
from shapefix.runtime.protocol import BackwardLine, CollectiveLine, DescribedValue
from shapefix.runtime.report.formatting import (
    Line,
    ShowPath,
    counted,
    named_parts,
    place_text,
    value_text,
)
from shapefix.runtime.run import ProbeRun

COLLECTIVE = "collective"
"""The code of findings about ranks that call different collectives."""

# The errors of a rank whose peer has ended; the cause is in the observations of the peer.
_PEER_LOST = re.compile(
    r"[Cc]onnection (closed|reset) by peer|[Cc]onnection refused|[Bb]roken pipe|gloo/transport|"
    r"[Tt]imed out|remote process exited"
)
_ON_RANKS = re.compile(r" \(on rank [\d, ]+ only\)$")
_ENDED = ("finished", "exit", "os._exit")


def rank_findings(run: ProbeRun, read: ReadText = read_text) -> ProbeFindings:
    """The findings of a run of several ranks, without repetitions; read is that of collect_findings."""
    single = [collect_findings(_without_lost_peers(each, run.ranks), read) for each in run.ranks]
    known: dict[tuple[object, ...], tuple[Diagnostic, list[int]]] = {}
    for rank, found in enumerate(single):
        for each in found.diagnostics:
            known.setdefault((each.code, each.name, each.span), (each, []))[1].append(rank)
    own = tuple(_with_ranks(each, ranks, len(single)) for each, ranks in known.values())
    notes = {(each.name, each.span): each for found in single for each in found.notes}
    different = () if _raised(run) else tuple(_different_collectives(run.ranks))
    waits = () if different or own else tuple(_waiting_ranks(run.ranks))
    first = next((each for each in single if each.early_stop_artifact is not None), single[0])
    diagnostics = (*own, *different, *waits)
    return ProbeFindings(diagnostics, first.early_stop_artifact, tuple(notes.values()), first.artifact_cause)


def rank_lines(run: ProbeRun, show: ShowPath) -> Iterator[Line]:
    """A summary of each rank, and different sizes; show converts a path into its displayed form."""
    yield [("ranks", "name"), (f": {len(run.ranks)} (gloo backend)", "code")]
    for rank, observed in enumerate(run.ranks):
        calls = sum(1 for _ in observed.of(CollectiveLine))
        loss = observed.first(BackwardLine)
        value = f"loss {loss['value']:.4g}, " if loss and loss["value"] is not None else ""
        text = f"{counted(observed.steps, 'training step')}, {value}{counted(calls, 'collective')}"
        position = _position(observed)
        yield [(f"  {rank}  ", "step"), (text, "code")]
        if position is not None:
            at = f" at {place_text(position[1], show)}" if position[1] else ""
            yield [(f"     {position[0]}{at}", "warning")]
    for name, each in _differences(run.ranks):
        yield [("  differs  ", "step"), (f"{name}: {each}", "code")]


def _with_ranks(each: Diagnostic, ranks: list[int], of: int) -> Diagnostic:
    if len(ranks) == of:
        return each
    named = ", ".join(map(str, ranks))
    return replace(each, message=f"{each.message} (on rank {named} only)")


def without_ranks(message: str) -> str:
    """The message of a finding without the part about its ranks."""
    return _ON_RANKS.sub("", message)


def _raised(run: ProbeRun) -> bool:
    """Whether a rank was ended by an exception of its own, not by the end of another rank."""
    return any(
        raised.ended_script and not _PEER_LOST.search(raised.message)
        for observed in run.ranks
        for raised in observed.exceptions
    )


def _without_lost_peers(observed: Observations, ranks: Sequence[Observations]) -> Observations:
    """The observations without exceptions caused only by the end of another rank."""
    lost = {each.id for each in observed.exceptions if _PEER_LOST.search(_messages(each))}
    if not lost or len(ranks) < 2:
        return observed
    return replace(
        observed,
        lines=tuple(
            line
            for line in observed.lines
            if not (line["kind"] == "exception" and line["id"] in lost)
            and not (line["kind"] == "exception_swallowed" and line["id"] in lost)
        ),
    )


def _messages(raised: RaisedException) -> str:
    return " ".join([raised.message, *(text for _, text in raised.causes)])


def _different_collectives(ranks: Sequence[Observations]) -> Iterator[Diagnostic]:
    """The first collective of each group called differently by two of its ranks."""
    calls = [_by_group(observed, len(ranks)) for observed in ranks]
    for group in dict.fromkeys(key for each in calls for key in each):
        first, *others = [rank for rank in group if rank < len(ranks)]
        for other in others:
            pairs = zip(calls[first].get(group, ()), calls[other].get(group, ()), strict=False)
            different = next(((one, two) for one, two in pairs if _agreement(one) != _agreement(two)), None)
            if different is not None:
                yield _difference(first, other, *different)
                break


def _difference(first: int, other: int, one: CollectiveLine, two: CollectiveLine) -> Diagnostic:
    places = {rank: span(call["called_at"]) for rank, call in ((first, one), (other, two))}
    message = (
        f"rank {first} calls {_call_text(one)} while rank {other} calls {_call_text(two)}: both wait forever"
    )
    evidence = tuple(
        Evidence(place, f"rank {rank} calls {_call_text(call)} here")
        for (rank, place), call in zip(places.items(), (one, two), strict=True)
        if place is not None
    )
    at = places[first] or places[other] or Span("<unknown>", 1, 1, 1, 1)
    return Diagnostic(COLLECTIVE, "different-collectives", Severity.ERROR, message, at, evidence)


def _waiting_ranks(ranks: Sequence[Observations]) -> Iterator[Diagnostic]:
    """The first rank waiting at a collective for a rank elsewhere or already ended."""
    waiting = [(rank, each) for rank, observed in enumerate(ranks) if (each := observed.waiting) is not None]
    for rank, call in waiting:
        place = span(call["called_at"])
        members = call["group"] or range(len(ranks))
        absent = [each for each in members if each not in dict(waiting) and each < len(ranks)]
        if place is None or not absent:
            continue
        other = absent[0]
        end = ranks[other].end
        if end is None or end["how"] not in (*_ENDED, "time limit"):
            continue  # the probe stopped it, or its process was killed
        at = span(end["site"])
        over = end["how"] in _ENDED
        what = "which has ended" if over else "which did not get there before the time limit"
        evidence = [Evidence(place, f"rank {rank} waits here")]
        if at is not None:
            evidence.append(Evidence(at, f"rank {other} {'ends' if over else 'is'} here"))
        yield Diagnostic(
            COLLECTIVE, "waiting-rank", Severity.ERROR if over else Severity.WARNING,
            f"rank {rank} waits at {_call_text(call)} for rank {other}, {what}", place, tuple(evidence),
        )  # fmt: skip
        return


def _by_group(observed: Observations, size: int) -> dict[tuple[int, ...], list[CollectiveLine]]:
    calls: dict[tuple[int, ...], list[CollectiveLine]] = {}
    for line in observed.of(CollectiveLine):
        calls.setdefault(tuple(line["group"] or range(size)), []).append(line)
    return calls


def _agreement(call: CollectiveLine) -> tuple[object, ...]:
    """The parts of a collective required to agree on all ranks."""
    tensor = call["tensor"] or DescribedValue()
    return call["name"], tensor.get("size"), tensor.get("dtype"), call["root"]


def _call_text(call: CollectiveLine) -> str:
    name = "the backward of DistributedDataParallel" if call["name"] == "backward" else f"`{call['name']}`"
    tensor = f" of {value_text(call['tensor'])}" if call["tensor"] else ""
    root = f" with root {call['root']}" if call["root"] is not None else ""
    return name + tensor + root


def _position(observed: Observations) -> tuple[str, Span | None] | None:
    """The last place of a rank, unless it was stopped."""
    call = observed.waiting
    if call is not None:
        return f"waits at {_call_text(call)}", span(call["called_at"])
    end = observed.end
    if end is None:
        return "ended unexpectedly", None
    return None if end["how"] == "stopped" else (end["how"], span(end["site"]))


def _differences(ranks: Sequence[Observations]) -> Iterator[tuple[str, str]]:
    """Differences between ranks in the parts of the first batch, and in the modules called."""
    batches = [{key: value_text(value) for key, value in _first_batch(each).items()} for each in ranks]
    yield from _unequal(batches)
    trees = [{"modules with gradient": _modules_text(each)} for each in ranks]
    yield from _unequal(trees)


def _unequal(known: Sequence[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    for key in dict.fromkeys(key for each in known for key in each):
        values = [each.get(key, "nothing") for each in known]
        if len(set(values)) > 1:
            yield key, ", ".join(f"{value} on rank {rank}" for rank, value in enumerate(values))


def _first_batch(observed: Observations) -> dict[str, DescribedValue]:
    first = next(iter(observed.batches), None)
    return {} if first is None else dict(named_parts(first.value))


def _modules_text(observed: Observations) -> str:
    trained = [each for each in observed.modules if each.grad_enabled]
    types = ", ".join(each.type for each in trained[:3])
    return f"{sum(map(_call_count, trained))} calls of {types or 'none'}"


def _call_count(module: ObservedModule) -> int:
    return 1 + sum(map(_call_count, module.children))
