"""Select rules by codes, prefixes, names and ALL, with ruff's precedence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shapefix.diagnostics import Severity
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import aliases
from shapefix.sources.configuration import Configuration, ConfigurationError, suggestion

RuleRow = tuple[str, str, Severity]
"""Code, name and severity of one rule."""


@dataclass(frozen=True)
class Selection:
    """The selectors of a configuration file or of the command line.

    select None keeps the choices of the layer before. source is the origin of the selectors, for messages;
    the key follows it: keys are those of select and ignore.
    """

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    source: str = "--"
    keys: tuple[str, str] = ("select", "ignore")

    @classmethod
    def layers(cls, configuration: Configuration) -> tuple[Selection, ...]:
        """Return the selectors of a configuration, a layer for each origin."""
        return tuple(
            cls(each.select, each.ignore, each.extend_select, each.source) for each in configuration.layers
        )

    @classmethod
    def of_fixes(cls, configuration: Configuration) -> tuple[Selection, ...]:
        """Return the selectors of the rules with permitted fixes."""
        everything = cls(("ALL",))
        return everything, *(
            cls(each.fixable, each.unfixable, (), each.source, ("fixable", "unfixable"))
            for each in configuration.layers
        )


def selected(rules: Iterable[RuleRow], *layers: Selection) -> frozenset[str]:
    """Return the selected codes; later layers override earlier ones.

    Without any choice these are the rules of severity error and warning. A rule of severity info is turned on
    by its full code, its name or ALL only. Within a layer the more specific selector wins (name and code over
    longer prefix over shorter prefix over ALL), and ignore over select where they are alike.

    Raises ConfigurationError for a selector that names no rule.
    """
    table = _Table(tuple(rules))
    codes = {code for code, _, severity in table.rules if severity is not Severity.INFO}
    for layer in layers:
        # Sorted by specificity, then deselecting after selecting: the last word on a code wins.
        choices: list[tuple[int, bool, set[str]]] = []
        for key, selectors in ((layer.keys[0], layer.select or ()), ("extend-select", layer.extend_select)):
            for selector in selectors:
                specificity, covered = table.resolve(selector, f"{layer.source}{key}")
                if 0 < specificity < _WHOLE_CODE:
                    covered -= table.hidden
                choices.append((specificity, False, covered))
        for selector in layer.ignore:
            specificity, covered = table.resolve(selector, f"{layer.source}{layer.keys[1]}")
            choices.append((specificity, True, covered))
        if layer.select is not None:
            codes = set()
        decided: dict[str, bool] = {}
        for _, dropped, covered in sorted(choices, key=lambda choice: choice[:2]):
            decided.update(dict.fromkeys(covered, not dropped))
        codes = {code for code in table.codes if decided.get(code, code in codes)}
    return frozenset(codes)


def covered(rules: Iterable[RuleRow], selectors: Sequence[str], source: str) -> frozenset[str]:
    """Return every code covered by the selectors, of any severity (for per-file-ignores).

    source is the origin of the selectors. Raises ConfigurationError for a selector that names no rule.
    """
    table = _Table(tuple(rules))
    return frozenset(code for selector in selectors for code in table.resolve(selector, source)[1])


_WHOLE_CODE = 1_000


class _Table:
    """The rules, ready to resolve selectors against."""

    def __init__(self, rules: tuple[RuleRow, ...]) -> None:
        self.rules = rules
        self.codes = [code for code, _, _ in rules]
        self.hidden = {code for code, _, severity in rules if severity is Severity.INFO}
        self._code_of = {name: code for code, name, _ in rules} | {code: code for code in self.codes}

    def resolve(self, selector: str, source: str) -> tuple[int, set[str]]:
        """Return the specificity of a selector (0 for ALL, else the prefix length) and its codes."""
        if selector == "ALL":
            return 0, set(self.codes)
        code = self._code_of.get(selector) or aliases().get(selector)
        if code is not None and code in self.codes:
            return _WHOLE_CODE, {code}
        below = {code for code in self.codes if is_prefix(selector, code)}
        if below:
            return len(selector), below
        known = ["ALL", *self._code_of]
        shown = selector if len(selector) <= 60 else f"{selector[:60]}…"
        if re.fullmatch(r"[A-Z]+\d+", selector) and not selector.startswith("SF"):
            raise ConfigurationError(f"{source}: {shown!r} is not a shapefix rule")
        raise ConfigurationError(f"{source}: unknown rule {shown!r}{suggestion(selector, known)}")


def is_prefix(selector: str, code: str) -> bool:
    """Check whether a selector covers a code: all of its letters, then any number of digits ("SF", "SF1")."""
    letters = re.match(r"[A-Z]+", code)
    return letters is not None and selector.startswith(letters[0]) and code.startswith(selector)
