"""What a run has shown to be wrong without an exception: importing this package fills the table."""

from shapefix.probe.detectors import gradients, keys, numbers, parameters, targets, views
from shapefix.probe.detectors.seen import PROBE, Rules, seen

MODULES = (gradients, keys, numbers, parameters, targets, views)

__all__ = ["PROBE", "Rules", "seen"]
