"""Faults without an exception. Importing this package registers all checks."""

from shapefix.runtime.findings.silent import (
    batch_keys,
    copies,
    distribution_samples,
    gradients,
    loss_scores,
    loss_targets,
    not_finite,
    operands,
    overfit,
    parameters,
    replicas,
    row_trials,
    schedules,
    steps,
    views,
    worker_starts,
)
from shapefix.runtime.findings.silent.registry import PROBE, silent_faults

MODULES = (
    copies,
    distribution_samples,
    gradients,
    batch_keys,
    not_finite,
    operands,
    parameters,
    loss_targets,
    loss_scores,
    overfit,
    replicas,
    row_trials,
    schedules,
    steps,
    views,
    worker_starts,
)

__all__ = ["PROBE", "silent_faults"]
