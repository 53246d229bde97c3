"""All rules: importing this module fills the table."""

from shapefix.checks import collation, discarded, layout, stacking, writes
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (collation, discarded, layout, stacking, writes)

__all__ = ["RULES", "Rule", "findings"]
