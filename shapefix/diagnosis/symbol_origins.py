"""Find the settings with the numbers of a message, for sizes unknown to the interpreter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product

from shapefix.diagnosis.failing_runs import FailingRun, SeenValue
from shapefix.diagnosis.size_origins import NumberSetting, settings_named
from shapefix.diagnostics import Span
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import Atom, Symbol

_NUMBER = re.compile(r"\d+")
_MOST_NAMES = 5
_MOST_CHOICES = 400
_LONGEST_CHAIN = 60

_Choice = Mapping[str, NumberSetting]


def symbol_origins(run: FailingRun, message: str) -> Iterator[tuple[Span, str]]:
    """Yield the tensors with a size of the message, and the settings with its number.

    Settings are those of the project with the name of the unknown size. If several have that name, the
    numbers of the message decide between them.
    """
    stated = {number for found in _NUMBER.findall(message) if (number := int(found[:12])) > 1}
    unknown = dict.fromkeys(
        size
        for each in run.values
        if each.layout is not None
        for size in each.layout.sizes
        if size.value is None
    )
    names = list(dict.fromkeys(name for size in unknown for name in _names(size)))[:_MOST_NAMES]
    found = {name: settings_named(name, run.folder, run.frame.module.path) for name in names}
    choice = _best([*unknown], {name: each for name, each in found.items() if each}, stated)
    values = {size: value for size in unknown if (value := _value(size, choice)) is not None}
    explained = {size: number for size, number in values.items() if number in stated}
    for each in run.values:
        yield from _first_steps(each, explained)
    used = dict.fromkeys(name for size in explained for name in _names(size))
    for name in used:
        setting = choice[name]
        text = f"`{name}` is {setting.number} here: {setting.origin.code}"
        yield Span(setting.origin.path, setting.origin.row, 1, setting.origin.row, 10_000), text


def _first_steps(seen: SeenValue, explained: Mapping[Size, int]) -> Iterator[tuple[Span, str]]:
    """Yield the first operations of a tensor with its explained sizes."""
    for size in seen.layout.sizes if seen.layout is not None else ():
        step, left = seen.origin, _LONGEST_CHAIN
        if size not in explained or step is None:
            continue
        while step.source is not None and left:
            before = step.source.layout
            if before is None or size not in before.sizes:
                break
            step, left = step.source, left - 1
        code = " ".join(step.place.code.split())
        name = "" if str(size) == str(explained[size]) else f", `{size}`,"
        yield step.place.span, f"{explained[size]}{name} comes from `{code[:60]}`"


def _names(size: Size) -> Iterator[str]:
    for symbol in every_symbol(size):
        if not isinstance(symbol, Atom) and symbol.name.isidentifier():
            yield symbol.name


def _best(sizes: Sequence[Size], found: Mapping[str, Sequence[NumberSetting]], stated: set[int]) -> _Choice:
    """Return the settings with the most numbers of the message, without ambiguous ones."""
    best: list[_Choice] = []
    most = 0
    for settings in islice(product(*found.values()), _MOST_CHOICES):
        choice = dict(zip(found, settings, strict=True))
        explained = {number for size in sizes if (number := _value(size, choice)) in stated}
        if len(explained) > most:
            best, most = [], len(explained)
        if len(explained) == most and most:
            best.append(choice)
    if not best:
        return {}
    return {name: best[0][name] for name in found if all(each[name] == best[0][name] for each in best)}


def _value(size: Size, choice: _Choice) -> int | None:
    """Return the number of a size with some settings."""
    values: dict[Symbol, int | Size] = {
        symbol: choice[symbol.name].number for symbol in every_symbol(size) if symbol.name in choice
    }
    return substitute(size, values).value if values else None
