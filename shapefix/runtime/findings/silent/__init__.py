"""What a run has shown to be wrong without an exception: importing this package fills the table."""

from shapefix.runtime.findings.silent import (
    batch_keys,
    copies,
    gradients,
    loss_targets,
    not_finite,
    operands,
    parameters,
    views,
)
from shapefix.runtime.findings.silent.registry import PROBE, Rules, seen

MODULES = (copies, gradients, batch_keys, not_finite, operands, parameters, loss_targets, views)

__all__ = ["PROBE", "Rules", "seen"]
