"""Faults without an exception. Importing this package registers all checks."""

from shapefix.runtime.findings.silent import (
    batch_keys,
    copies,
    gradients,
    loss_scores,
    loss_targets,
    not_finite,
    operands,
    parameters,
    row_trials,
    views,
)
from shapefix.runtime.findings.silent.registry import PROBE, silent_faults

MODULES = (
    copies,
    gradients,
    batch_keys,
    not_finite,
    operands,
    parameters,
    loss_targets,
    loss_scores,
    row_trials,
    views,
)

__all__ = ["PROBE", "silent_faults"]
