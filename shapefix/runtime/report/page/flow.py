"""A diagram of sizes: from the batch through the modules to the loss, in the order of the calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from shapefix.runtime.observations import Observations, ObservedModule
from shapefix.runtime.protocol import BackwardLine, GradientsLine, LossCallLine
from shapefix.runtime.report.formatting import (
    arguments_text,
    duration,
    gradient_count,
    loss_value,
    named_parts,
    value_text,
)

WIDTH = 340
_NODES = 14
_CHARACTERS = 40
_TOP, _NODE, _LINE, _EDGE = 8, 26, 17, 34


@dataclass(frozen=True)
class DiagramText:
    """One row of text; full is the whole text if it was cut."""

    y: float
    text: str
    full: str
    style: str


@dataclass(frozen=True)
class DiagramBox:
    """A node: the batch, a module, the loss or the gradients. kind is its style, label its name."""

    kind: str
    label: str
    y: float
    height: float
    texts: tuple[DiagramText, ...]


@dataclass(frozen=True)
class DiagramEdge:
    """An arrow from one node to the next; changed says that the sizes change between them."""

    y: float
    end: float
    changed: bool
    texts: tuple[DiagramText, ...]


@dataclass(frozen=True)
class SizeDiagram:
    """The whole diagram, in its own units; text describes it."""

    width: int
    height: float
    boxes: tuple[DiagramBox, ...]
    edges: tuple[DiagramEdge, ...]
    text: str


@dataclass(frozen=True)
class _Step:
    kind: str
    label: str
    rows: tuple[str, ...]
    given: str = ""
    returned: str = ""


def size_diagram(observed: Observations, model: ObservedModule) -> SizeDiagram:
    """The diagram of one outermost call of a model, with its batch and its loss."""
    steps = list(_steps(observed, model))
    boxes: list[DiagramBox] = []
    edges: list[DiagramEdge] = []
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
    return SizeDiagram(WIDTH, y + _TOP, tuple(boxes), tuple(edges), text)


def _box(step: _Step, y: float) -> DiagramBox:
    first, *rest = step.rows
    texts = [_text(first, y + 20, "name")]
    texts += [_text(row, y + 20 + _LINE * number, "size") for number, row in enumerate(rest, 1)]
    return DiagramBox(step.kind, step.label, y, _NODE + _LINE * len(rest) + 4, tuple(texts))


def _edge(before: _Step, after: _Step | None, y: float) -> DiagramEdge:
    given = after.given if after is not None else ""
    # A loss also gets the labels: its arguments contain the output before it.
    if before.returned and given and before.returned not in given:
        texts = (_text(before.returned, y + 20, "size"), _text(given, y + 20 + _LINE + 9, "size"))
        return DiagramEdge(y, y + _EDGE + _LINE + 9, True, texts)
    label = given or before.returned
    if not label:
        return DiagramEdge(y, y + 20, False, ())
    return DiagramEdge(y, y + _EDGE, False, (_text(label, y + 21, "size"),))


def _text(text: str, y: float, style: str) -> DiagramText:
    cut = text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
    return DiagramText(y, cut, text if cut != text else "", style)


def _steps(observed: Observations, model: ObservedModule) -> Iterator[_Step]:
    yield _batch(observed, model)
    groups = _groups(model)
    yield from (_module(alike, model) for alike in groups)
    if model.out is None:
        if groups[-1][-1].out is not None:
            yield _Step("failed", "raised", (model.name, "raised outside the modules that it calls"))
        return
    loss = observed.first(LossCallLine)
    if loss is not None and not groups[-1][-1].type.endswith("Loss"):
        yield _Step("loss", "loss", (loss["name"],), arguments_text(loss["input"]), "")
    backward = observed.first(BackwardLine)
    if backward is not None:
        value = f"loss {loss_value(backward) or ''}".strip()
        given = [f"gradients for {gradient_count(line)}" for line in observed.of(GradientsLine)]
        yield _Step("backward", "backward", (value, *given), value_text(backward["loss"]), "")


def _batch(observed: Observations, model: ObservedModule) -> _Step:
    batch = next((each for each in observed.batches if each.number == 1), None)
    if batch is None:
        return _Step("batch", "input", ("input of the model",), "", arguments_text(model.input))
    rows = [f"{name} {value_text(value)}".strip() for name, value in named_parts(batch.value)]
    more = [f"and {len(rows) - 6} more"] if len(rows) > 6 else []
    return _Step("batch", "batch", ("batch", *rows[:6], *more), "", "")


def _module(alike: tuple[ObservedModule, ...], model: ObservedModule) -> _Step:
    first, last = alike[0], alike[-1]
    name = first.name.removeprefix(f"{model.name}.")
    kind = first.type if name != first.type else ""
    failed = last.out is None
    result = "raised" if failed else duration(sum(each.seconds or 0 for each in alike))
    if len(alike) > 1:
        name = f"{name} … {_number(first.name, last.name)}"
        result = f"{len(alike)} times, {result}"
    returned = "" if last.out is None else value_text(last.out)
    rows = (name, f"{kind}, {result}" if kind else result)
    return _Step("failed" if failed else "module", "module", rows, arguments_text(first.input), returned)


def _number(first: str, last: str) -> str:
    """The changed number in the last name; the whole name without one."""
    pairs = zip(re.findall(r"\d+", first), re.findall(r"\d+", last), strict=False)
    return next((two for one, two in pairs if one != two), last)


def _groups(model: ObservedModule) -> list[tuple[ObservedModule, ...]]:
    """The modules of a call in order, as deep as there is space for them; equal neighbors are grouped."""
    groups: list[tuple[ObservedModule, ...]] = [(model,)]
    while True:
        deeper: list[tuple[ObservedModule, ...]] = []
        for group in groups:
            inner = group[0].children if len(group) == 1 else ()
            deeper += [tuple(each) for _, each in groupby(inner, _likeness)] if inner else [group]
        if deeper == groups or len(deeper) > _NODES:
            return groups
        groups = deeper


def _likeness(module: ObservedModule) -> tuple[object, ...]:
    name = re.sub(r"\d+", "#", module.name)
    returned = None if module.out is None else value_text(module.out)
    return name, module.type, arguments_text(module.input), returned
