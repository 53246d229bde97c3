"""All rules: importing this module fills the table."""

from shapefix.checks import collation, discarded, layout, map_padding, padding, stacking, writes
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (collation, discarded, layout, map_padding, padding, stacking, writes)

__all__ = ["RULES", "Rule", "findings"]
