"""Arguments of forward of the models of transformers, by version: generated tables.

`data/` holds the signatures of 4.57 and of 5.24, see
tests/library/generate_forward_signatures.py. Other versions count as the one of the same major version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from shapefix.light_dataclasses import dataclass

NEWEST = "5"
"""Version used by default."""
_TABLES = {"4": "4.57", "5": "5.24"}


@dataclass(frozen=True)
class ForwardSignature:
    """Arguments accepted by forward.

    named are its parameters in order, without self; required those without a default. If it
    swallows, an unknown keyword is ignored; otherwise it raises TypeError (Bloom in 4.57: ValueError). used
    are the keywords that are not named and yet are neither unknown nor ignored.
    """

    named: tuple[str, ...]
    required: frozenset[str]
    swallows: bool
    used: frozenset[str] = frozenset()

    def accepts(self, keyword: str) -> bool:
        """Check whether forward uses a keyword."""
        return keyword in self.named or keyword in self.used


@dataclass(frozen=True)
class AutoSignature:
    """Known arguments of forward of a model of one of several classes.

    named are the parameters that some class has, certainly_named those that all have, required those that
    all require. swallows is True if every class ignores unknown keywords, raises if none does. used are
    the keywords used by some class that does not name them.
    """

    classes: tuple[str, ...]
    named: frozenset[str]
    certainly_named: frozenset[str]
    required: frozenset[str]
    swallows: bool
    raises: bool
    used: frozenset[str]

    def accepts(self, keyword: str) -> bool:
        """Check whether forward of some of the classes uses a keyword."""
        return keyword in self.named or keyword in self.used


def of_class(name: str, version: str | None = None) -> ForwardSignature | None:
    """Signature of a class, `transformers.BertModel` or `BertModel`, in a version like `4.57`.

    None means the newest version. The result is None for an unknown class or one without forward,
    and for a version older than 4.
    """
    table = _table(version)
    return table.signature(_bare(name)) if table is not None else None


def of_auto(name: str, version: str | None = None, configuration: str | None = None) -> AutoSignature | None:
    """Signature shared by the models of an Auto class: `AutoModelForCausalLM`, perhaps with its module.

    configuration limits them to the models of a class like `BertConfig`. The result is None for
    a name that is not an Auto class of that version, or has no model for such a configuration.
    """
    table = _table(version)
    if table is None:
        return None
    return table.union(_bare(name), None if configuration is None else _bare(configuration))


def first_parameter(name: str, version: str | None = None, configuration: str | None = None) -> str | None:
    """First parameter of forward of a class or Auto class: `input_ids` for models of texts.

    configuration is as in of_auto. The result is None where the models of an Auto class differ, or if nothing
    is known.
    """
    if not _bare(name).startswith("Auto"):
        one = of_class(name, version)
        return one.named[0] if one is not None and one.named else None
    auto = of_auto(name, version, configuration)
    firsts = {first_parameter(cls, version) for cls in auto.classes} if auto is not None else set()
    return firsts.pop() if len(firsts) == 1 else None


def _bare(name: str) -> str:
    return name.rpartition(".")[2]


def _table(version: str | None) -> _Table | None:
    major = (version or NEWEST).partition(".")[0]
    if not major.isdigit() or int(major) < min(map(int, _TABLES)):
        return None
    return _read(_TABLES.get(major, _TABLES[NEWEST]))


@cache
def _read(version: str) -> _Table:
    folder = files("shapefix.library.transformers") / "data"
    names = (f"forward-{version}.json", f"models-{version}.json")
    forward, models = (json.loads((folder / name).read_text("utf-8")) for name in names)
    return _Table(forward, models)


class _Table:
    """The two files of one version."""

    def __init__(self, forward: Mapping[str, Any], models: Mapping[str, Any]) -> None:
        self._lines = forward["forward"]
        self._keywords = frozenset(models["kwargs"].split())
        self._refuses = frozenset(models["refuses"].split())
        self._used = _by_class(models["used"])
        self._auto: Mapping[str, Mapping[str, str]] = models["auto"]
        self._signatures: dict[str, ForwardSignature] = {}

    @cached_property
    def _line_of(self) -> dict[str, str]:
        return _by_class(self._lines)

    def signature(self, name: str) -> ForwardSignature | None:
        known = self._signatures.get(name)
        if known is None and name in self._line_of:
            words = self._line_of[name].split()
            takes_keywords = words[-1:] == ["**"]
            words = words[: len(words) - takes_keywords]
            swallows = takes_keywords and name not in self._refuses
            used = {*self._used.get(name, "").split(), *(self._keywords if takes_keywords else ())}
            named = tuple(word.removesuffix("!") for word in words)
            required = frozenset(word[:-1] for word in words if word.endswith("!"))
            known = self._signatures[name] = ForwardSignature(named, required, swallows, frozenset(used))
        return known

    def union(self, auto: str, configuration: str | None) -> AutoSignature | None:
        made = {
            cls for made_from, cls in self._made(auto) if configuration is None or made_from == configuration
        }
        known = {name: signature for name in sorted(made) if (signature := self.signature(name))}
        if not known:
            return None
        each = list(known.values())
        return AutoSignature(
            classes=tuple(known),
            named=frozenset().union(*(one.named for one in each)),
            certainly_named=frozenset(each[0].named).intersection(*(one.named for one in each)),
            required=each[0].required.intersection(*(one.required for one in each)),
            swallows=all(one.swallows for one in each),
            raises=not any(one.swallows for one in each),
            used=frozenset().union(*(one.used for one in each)),
        )

    def _made(self, auto: str) -> Iterable[tuple[str, str]]:
        """Configurations of an Auto class, each with the model class for it."""
        for ending, stems in self._auto.get(auto, {}).items():
            for stem in stems.split():
                if ending:
                    yield f"{stem}Config", stem + ending
                else:
                    configuration, _, cls = stem.partition(":")
                    yield configuration, cls


def _by_class(lines: Mapping[str, str]) -> dict[str, str]:
    """Line of each class, from the classes of each line."""
    return {name: line for line, names in lines.items() for name in names.split()}
