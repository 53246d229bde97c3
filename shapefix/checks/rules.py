"""All rules: importing this module imports every rule's module."""

from importlib import import_module
from pkgutil import iter_modules

from shapefix import checks
from shapefix.checks.registry import RULES, Rule, findings, require_checks
from shapefix.rulebook import plugins


def _import_all() -> None:
    """Import the modules of all families of rules."""
    for family in iter_modules(checks.__path__, f"{checks.__name__}."):
        if family.ispkg and family.name != f"{checks.__name__}.support":
            for module in iter_modules(import_module(family.name).__path__, f"{family.name}."):
                import_module(module.name)


_import_all()
plugins.load(plugins.RULES)
require_checks()

__all__ = ["RULES", "Rule", "findings"]
