"""Configurations in files of the project: `yaml.safe_load(open("config.yaml"))`."""

from __future__ import annotations

import json
from typing import Any

from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.option_flags import OptionTest, OptionText, note_option_loss
from shapefix.interpreter.values import Constant, Isolation, OpenedFile, Unknown, Value, unfollowed
from shapefix.library.registry import function
from shapefix.light_dataclasses import dataclass

_READING = frozenset({"r", "rb", "rt"})
_SETTINGS = ("conf", "cfg", "param", "setting", "args")
"""Parts of the names of files that people write; programs write most other files of JSON."""
MOST_VALUES = 1_000
"""The number of values of the largest configuration that is followed."""


class _TooLarge(Exception):
    """More values than followed: aliases in YAML may multiply them."""


def _library_result(call: Call) -> Unknown:
    """Unknown result of a function; no argument changes by it."""
    value = unfollowed(call.place)
    value.isolation = Isolation()
    return value


@function("builtins.open")
def opened(call: Call) -> Value:
    path, mode = call.value(0, "file"), call.constant(1, "mode", "r")
    file = OpenedFile(path if mode in _READING and path is not None else Unknown())
    file.origin, file.isolation = call.place, Isolation()
    return file


@function("yaml.safe_load", "yaml.load", "yaml.full_load", "yaml.unsafe_load", "json.load")
def loaded(call: Call) -> Value:
    """Contents of a file of the project as they are now."""
    file = call.value(0)
    path = file.path if isinstance(file, OpenedFile) else None
    name = (
        path.default if isinstance(path, OptionText) else path.value if isinstance(path, Constant) else None
    )
    if not isinstance(name, str) or not _may_be_read(call.name, name):
        return _library_result(call)
    text = call.ev.files.text(call.ev.frames[0].module, name)
    if text is None:
        return _library_result(call)
    if isinstance(path, OptionText) and not call.ev.takes_defaults:
        # The command line may name another file.
        note_option_loss(call.ev)
        return _library_result(call)
    try:
        return _Reader(call.ev.takes_defaults).value("", _parsed(call.name, text))
    except (ValueError, RecursionError, ImportError, _TooLarge):
        return _library_result(call)


def _may_be_read(function_: str, name: str) -> bool:
    last = name.rpartition("/")[2].lower()
    if function_.startswith("json"):
        return last.endswith(".json") and any(part in last for part in _SETTINGS)
    return last.endswith((".yaml", ".yml"))


def _parsed(function_: str, text: str) -> Any:
    """Parse a text. Raises ValueError, and ImportError without a parser."""
    if function_.startswith("json"):
        return json.loads(text)
    # libcst depends on it; its import takes time.
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


@dataclass(slots=True)
class _Reader:
    """Values of the interpreter for parsed data.

    Another configuration may have other texts and truths: code for each of them runs, as for options of the
    command line, unless takes_defaults is set.
    """

    takes_defaults: bool
    left: int = MOST_VALUES

    def value(self, name: str, data: Any) -> Value:
        """Value of data under this name. Raises _TooLarge."""
        self.left -= 1
        if self.left < 0:
            raise _TooLarge
        if isinstance(data, dict):
            return DictValue({key: self.value(str(key), each) for key, each in data.items()})
        if isinstance(data, list):
            return ListValue(tuple(self.value(name, each) for each in data))
        if isinstance(data, bool) and not self.takes_defaults:
            return OptionTest(name)
        if isinstance(data, str) and data and not self.takes_defaults:
            return OptionText(name, data)
        return Constant(data) if data is None or isinstance(data, (str, int, float)) else Unknown(name)
