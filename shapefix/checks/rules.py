"""All rules: importing this module fills the table."""

from shapefix.checks import (
    chunks,
    collation,
    discarded,
    end_of_text,
    features,
    keys,
    label_copies,
    label_masks,
    label_padding,
    label_shifts,
    layout,
    lists_of_tensors,
    map_padding,
    moves,
    padding,
    shape_operations,
    stacking,
    trainer_columns,
    writes,
)
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (
    chunks,
    collation,
    discarded,
    end_of_text,
    features,
    keys,
    label_copies,
    label_masks,
    label_padding,
    label_shifts,
    layout,
    lists_of_tensors,
    map_padding,
    moves,
    padding,
    shape_operations,
    stacking,
    trainer_columns,
    writes,
)

__all__ = ["RULES", "Rule", "findings"]
