"""All rules: importing this module fills the table."""

from shapefix.checks import (
    collation,
    discarded,
    keys,
    layout,
    lists_of_tensors,
    map_padding,
    moves,
    padding,
    stacking,
    writes,
)
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (
    collation,
    discarded,
    keys,
    layout,
    lists_of_tensors,
    map_padding,
    moves,
    padding,
    stacking,
    writes,
)

__all__ = ["RULES", "Rule", "findings"]
