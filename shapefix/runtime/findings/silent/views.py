"""Views legal only for a dimension of size 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shapefix.diagnostics import Condition, Evidence
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, ObservedModule, span
from shapefix.runtime.protocol import Batch1ViewLine, DescribedValue
from shapefix.runtime.report.formatting import dtype_and_size


@silent_fault
def _legal_at_one(observed: Observations) -> Iterator[RuntimeFinding]:
    one_row = _has_one_row(observed)
    for line in observed.of(Batch1ViewLine):
        at = span(line["called_at"])
        if at is None:
            continue
        value, number = line["value"], line["dimension"]
        strides = f"({', '.join(map(str, value['stride']))})"
        is_batch = one_row and line["outermost"]
        why = "the batch has one row" if is_batch else f"dimension {number} has the size 1"
        yield RuntimeFinding(
            "batch1-view" if is_batch else "size1-view",
            f"`.view({', '.join(map(str, line['requested']))})` of {dtype_and_size(value)} "
            f"is legal only because {why}",
            at,
            (Evidence(at, f"viewed here: {dtype_and_size(value)} strides {strides}"),),
            Condition(
                "the batch has more than one row" if is_batch else f"dimension {number} is larger than 1"
            ),
        )


def _has_one_row(observed: Observations) -> bool:
    """Whether the model was trained with batches of one row."""
    for batch in observed.batches:
        sizes = [each["size"] for each in _tensors(batch.value) if each["size"]]
        if sizes:
            return all(size[0] == 1 for size in sizes)
    for module in observed.modules:
        given: list[DescribedValue] = [*module.input["args"], *module.input["kwargs"].values()]
        sizes = [each["size"] for value in given for each in _tensors(value) if len(each["size"]) > 1]
        if sizes and _is_model(module):
            return all(size[0] == 1 for size in sizes)
    return False


def _is_model(module: ObservedModule) -> bool:
    return not (module.type.endswith("Loss") and not module.children)


def _tensors(value: DescribedValue) -> Iterator[DescribedValue]:
    if value["kind"] == "tensor":
        yield value
    items = value.get("items") or []
    for each in items.values() if isinstance(items, Mapping) else items:
        yield from _tensors(each)
