"""The way of the sizes as a picture: from the batch through the modules, in the order of their calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise

from shapefix.runtime.observations import Module, Observations
from shapefix.runtime.report.formatting import arguments, duration, words

WIDTH = 340
_NODES = 14
_CHARACTERS = 40
_TOP, _NODE, _LINE, _EDGE = 8, 26, 17, 34


@dataclass(frozen=True)
class Text:
    """One row of text; full is what was cut, if it was."""

    y: float
    text: str
    full: str
    style: str


@dataclass(frozen=True)
class Box:
    """A node: the batch, a module, the loss or the gradients. kind is its style, label its name."""

    kind: str
    label: str
    y: float
    height: float
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Edge:
    """The way from one node to the next; changed is one on which the sizes become others."""

    y: float
    end: float
    changed: bool
    texts: tuple[Text, ...]


@dataclass(frozen=True)
class Flow:
    """The whole picture, in its own units; text says it in words."""

    width: int
    height: float
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    text: str


@dataclass(frozen=True)
class _Step:
    kind: str
    label: str
    rows: tuple[str, ...]
    given: str = ""
    returned: str = ""


def flow(observed: Observations, model: Module) -> Flow:
    """The picture of one outermost call of a model, with the batch before it and the loss behind it."""
    steps = list(_steps(observed, model))
    boxes: list[Box] = []
    edges: list[Edge] = []
    y: float = _TOP
    for before, step in pairwise([None, *steps]):
        if before is not None:
            edge = _edge(before, step, y)
            edges.append(edge)
            y = edge.end
        box = _box(step, y)  # type: ignore[arg-type]
        boxes.append(box)
        y += box.height
    text = "; ".join(" ".join(filter(None, (step.label, *step.rows))) for step in steps)
    return Flow(WIDTH, y + _TOP, tuple(boxes), tuple(edges), text)


def _box(step: _Step, y: float) -> Box:
    first, *rest = step.rows
    texts = [_text(first, y + 20, "name")]
    texts += [_text(row, y + 20 + _LINE * number, "size") for number, row in enumerate(rest, 1)]
    return Box(step.kind, step.label, y, _NODE + _LINE * len(rest) + 4, tuple(texts))


def _edge(before: _Step, after: _Step | None, y: float) -> Edge:
    given = after.given if after is not None else ""
    # A loss takes the labels, too: what came is among what it is given.
    if before.returned and given and before.returned not in given:
        texts = (_text(before.returned, y + 20, "size"), _text(given, y + 20 + _LINE + 9, "size"))
        return Edge(y, y + _EDGE + _LINE + 9, True, texts)
    label = given or before.returned
    if not label:
        return Edge(y, y + 20, False, ())
    return Edge(y, y + _EDGE, False, (_text(label, y + 21, "size"),))


def _text(text: str, y: float, style: str) -> Text:
    cut = text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
    return Text(y, cut, text if cut != text else "", style)


def _steps(observed: Observations, model: Module) -> Iterator[_Step]:
    yield _batch(observed, model)
    groups = _groups(model)
    yield from (_module(alike, model) for alike in groups)
    if model.out is None:
        if groups[-1][-1].out is not None:
            yield _Step("failed", "raised", (model.name, "raised, outside of the modules that it calls"))
        return
    loss = observed.first("loss")
    if loss is not None and not groups[-1][-1].type.endswith("Loss"):
        yield _Step("loss", "loss", (loss["name"],), arguments(loss["input"]), "")
    backward = observed.first("backward")
    if backward is not None:
        value = backward["value"]
        told = f"loss {value:.4g}" if value is not None else f"loss {backward['text'] or ''}".strip()
        given = [
            f"gradient in {line['given']} of {line['given'] + line['without']} parameters"
            for line in observed.of("gradients")
        ]
        yield _Step("backward", "backward", (told, *given), words(backward["loss"]), "")


def _batch(observed: Observations, model: Module) -> _Step:
    batch = next((each for each in observed.batches if each.number == 1), None)
    if batch is None:
        return _Step("batch", "input", ("what the model is given",), "", arguments(model.input))
    parts = batch.value.get("items") or {}
    named = parts.items() if isinstance(parts, Mapping) else ((f"[{n}]", v) for n, v in enumerate(parts))
    rows = [f"{name} {words(value)}" for name, value in named] or [words(batch.value)]
    more = [f"and {len(rows) - 6} more"] if len(rows) > 6 else []
    return _Step("batch", "batch", ("batch", *rows[:6], *more), "", "")


def _module(alike: tuple[Module, ...], model: Module) -> _Step:
    first, last = alike[0], alike[-1]
    name = first.name.removeprefix(f"{model.name}.")
    kind = first.type if name != first.type else ""
    failed = last.out is None
    told = "raised" if failed else duration(sum(each.seconds or 0 for each in alike))
    if len(alike) > 1:
        name = f"{name} … {_number(first.name, last.name)}"
        told = f"{len(alike)} times, {told}"
    returned = "" if last.out is None else words(last.out)
    rows = (name, f"{kind}, {told}" if kind else told)
    return _Step("failed" if failed else "module", "module", rows, arguments(first.input), returned)


def _number(first: str, last: str) -> str:
    """The number in which the last of some names differs from the first."""
    pairs = zip(re.findall(r"\d+", first), re.findall(r"\d+", last), strict=False)
    return next((two for one, two in pairs if one != two), last)


def _groups(model: Module) -> list[tuple[Module, ...]]:
    """The modules of a call in their order, as deep as there is room for them; equal neighbours together."""
    groups: list[tuple[Module, ...]] = [(model,)]
    while True:
        deeper: list[tuple[Module, ...]] = []
        for group in groups:
            inner = group[0].children if len(group) == 1 else ()
            deeper += [tuple(each) for _, each in groupby(inner, _likeness)] if inner else [group]
        if deeper == groups or len(deeper) > _NODES:
            return groups
        groups = deeper


def _likeness(module: Module) -> tuple[object, ...]:
    name = re.sub(r"\d+", "#", module.name)
    returned = None if module.out is None else words(module.out)
    return name, module.type, arguments(module.input), returned
