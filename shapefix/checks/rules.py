"""All rules: importing this module fills the table."""

from shapefix.checks import discarded, layout, writes
from shapefix.checks.registry import RULES, Rule, findings

MODULES = (discarded, layout, writes)

__all__ = ["RULES", "Rule", "findings"]
