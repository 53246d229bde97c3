"""All rules: importing this module fills the table."""

from shapefix.checks import (
    channels,
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
    neighbours,
    norm_features,
    padding,
    shape_operations,
    stacking,
    trainer_columns,
    writes,
)
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (
    channels,
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
    neighbours,
    norm_features,
    padding,
    shape_operations,
    stacking,
    trainer_columns,
    writes,
)

__all__ = ["RULES", "Rule", "findings"]
