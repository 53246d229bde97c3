"""What a run has shown to be wrong without an exception: importing this package fills the table."""

from shapefix.probe.detectors import gradients, numbers, parameters, targets
from shapefix.probe.detectors.seen import PROBE, Rules, seen

MODULES = (gradients, numbers, parameters, targets)

__all__ = ["PROBE", "Rules", "seen"]
