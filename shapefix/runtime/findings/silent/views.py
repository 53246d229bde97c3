"""Views that are legal for no other reason than that a dimension has the size 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shapefix.diagnostics import Condition, Evidence
from shapefix.runtime.findings.silent.registry import Seen, detector
from shapefix.runtime.observations import Module, Observations, Value, span
from shapefix.runtime.report.formatting import sized


@detector
def _lucky(observed: Observations) -> Iterator[Seen]:
    alone = _one_row(observed)
    for line in observed.of("lucky view"):
        at = span(line["called"])
        if at is None:
            continue
        value, number = line["value"], line["dimension"]
        strides = f"({', '.join(map(str, value['stride']))})"
        is_batch = alone and line["outermost"]
        what = "the batch is of one row" if is_batch else f"dimension {number} has the size 1"
        yield Seen(
            "lucky-view" if is_batch else "view-of-one",
            f"`.view({', '.join(map(str, line['wanted']))})` of {sized(value)} passes only because {what}",
            at,
            (Evidence(at, f"viewed here: {sized(value)} strides {strides}"),),
            Condition(
                "the batch holds more than one row" if is_batch else f"dimension {number} is larger than 1"
            ),
        )


def _one_row(observed: Observations) -> bool:
    """Whether the model was trained with batches of one row."""
    for batch in observed.batches:
        sizes = [each["size"] for each in _tensors(batch.value) if each["size"]]
        if sizes:
            return all(size[0] == 1 for size in sizes)
    for module in observed.modules:
        given: list[Value] = [*module.input["args"], *module.input["kwargs"].values()]
        sizes = [each["size"] for value in given for each in _tensors(value) if len(each["size"]) > 1]
        if sizes and _is_model(module):
            return all(size[0] == 1 for size in sizes)
    return False


def _is_model(module: Module) -> bool:
    return not (module.type.endswith("Loss") and not module.children)


def _tensors(value: Mapping[str, Any]) -> Iterator[Value]:
    if value["is"] == "tensor":
        yield value
    items = value.get("items") or []
    for each in items.values() if isinstance(items, Mapping) else items:
        yield from _tensors(each)
