"""Labels in the memory of the input ids."""

from __future__ import annotations

from shapefix.checks.support.liveness import Bound, last_bound
from shapefix.checks.support.torch_errors import EMBEDDED
from shapefix.diagnostics import Evidence, Role
from shapefix.domains.masks import Holder, MaskWritten
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class SharedLabels:
    """Labels with -100 written into them, the assignment sharing them, and the input ids."""

    labels: Holder
    bound: Bound
    inputs: Holder

    @property
    def names(self) -> tuple[str, str]:
        return self.labels.key or self.labels.name, self.inputs.key or self.inputs.name


def masked(event: MaskWritten, inputs: str) -> Evidence:
    """Return the write of -100, with the exception of an embedding of the inputs."""
    message = f"-100 written here, into `{inputs}`, too"
    label = f"-100 also in `{inputs}`; an embedding raises {EMBEDDED}"
    return Evidence(event.place.span, message, Role.FAILURE, label)


def shared_labels(holders: list[Holder], inputs: Holder) -> SharedLabels | None:
    """Return the outermost holder, bound to the second name, with the inputs, or None."""
    for labels in reversed(holders):
        bound = last_bound(labels)
        is_other = (labels.name, labels.key, labels.body) != (inputs.name, inputs.key, inputs.body)
        if is_other and bound is not None:
            return SharedLabels(labels, bound, inputs)
    return None
