"""argparse: options of the command line and their defaults.

A number with a default is a CommandLineOption: the default only holds for runs without another value.
"""

from __future__ import annotations

import keyword

from shapefix.interpreter.calls import Arguments, Call, call_value
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import resolved
from shapefix.interpreter.option_flags import OptionFlag, OptionText
from shapefix.interpreter.records import fields_of_record
from shapefix.interpreter.values import (
    NONE,
    NUMBER,
    ClassValue,
    Constant,
    InstanceValue,
    Integer,
    LibraryObject,
    Reference,
    Unknown,
    Value,
    is_text,
)
from shapefix.library.nn.layers import fields_of
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import arguments_under
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import CommandLineOption

PARSER, GROUP, NAMESPACE = "argparse.ArgumentParser", "argparse._ArgumentGroup", "argparse.Namespace"
DATACLASSES = "transformers.HfArgumentParser"
_HUGGING_FACE = ("transformers", "transformers.hf_argparser", "trl")
_CONSTANT_FLAGS: dict[object, bool] = {"store_true": True, "store_false": False}
"""Actions and defaults of flags that have the same value with and without the flag."""
_OPTIONS = "_options"
"""Field of a parser and of its groups for the values of the options by name."""

declare(PARSER, "builtins.object")
declare(GROUP, PARSER)
declare(DATACLASSES, "builtins.object")


def option(name: str, default: Value, flag: str, place: Place) -> Value:
    """Value of a numeric option of this name, with its default if the command line omits it.

    flag is the option as typed, such as `--hidden`.
    Numbers below 1 are not sizes and stay unknown.
    """
    number = default.value if isinstance(default, Constant) else None
    if isinstance(number, bool):
        return OptionFlag(name, number, flag, place)
    if isinstance(number, str) and number:
        return OptionText(name, number)
    if isinstance(number, float):
        return NUMBER
    if type(number) is not int or number < 1:
        return Unknown(name)
    return Integer(Size.from_symbol(CommandLineOption(name, number, flag, place)))


def _options(owner: Value | None) -> DictValue:
    """Options of the parser so far; an object of a project class gets them with the first one."""
    fields = fields_of(owner)
    found = fields.get(_OPTIONS)
    if not isinstance(found, DictValue):
        found = fields[_OPTIONS] = DictValue({}, closed=False)
    return found


@function(PARSER)
def make(call: Call) -> Value:
    held: dict[object, Value] = {}
    for parent in elements(arguments_under(call, PARSER).value("parents")) or ():
        held |= _options(parent).fields
    return LibraryObject(PARSER, {}, call.place, {_OPTIONS: DictValue(held, closed=False)})


@method(PARSER, "__init__")
def initialize(call: Call) -> Value:
    _options(call.receiver)
    return NONE


@method(PARSER, "add_argument_group", "add_mutually_exclusive_group")
def group(call: Call) -> Value:
    """Return the parser itself: an option added to a group is added to the parser."""
    return LibraryObject(GROUP, {}, call.place, {_OPTIONS: _options(call.receiver)})


@method(PARSER, "add_argument")
def add(call: Call) -> Value:
    flags = [flag.value for flag in call.arguments.positional if isinstance(flag, Constant)]
    texts = [flag for flag in flags if isinstance(flag, str)]
    name = _destination(call, texts)
    if name is not None:
        shown = next((flag for flag in texts if flag.startswith("--")), texts[0] if texts else name)
        value = _value(call, name, shown)
        call.ev.journal.write(_options(call.receiver).fields, name, value)
    return Unknown()


def _destination(call: Call, flags: list[str]) -> str | None:
    """Attribute for the value of an argument."""
    asked = call.constant(-1, "dest")
    if isinstance(asked, str):
        return asked
    if "dest" in call.arguments.keywords or not flags:
        return None
    chosen = next((flag for flag in flags if flag.startswith("--")), flags[0])
    name = chosen.lstrip("-").replace("-", "_")
    return name if name.isidentifier() and not keyword.iskeyword(name) else None


def _value(call: Call, name: str, shown: str) -> Value:
    given = call.arguments.keywords
    kind, default = given.get("type"), given.get("default")
    action = call.constant(-1, "action", "store")
    typed = _CONSTANT_FLAGS.get(action)
    if typed is not None and not call.arguments.open and (default is None or isinstance(default, Constant)):
        otherwise = not typed if default is None else default.value
        return Constant(typed) if otherwise is typed else OptionFlag(name, bool(otherwise), shown, call.place)
    plain = action == "store"
    type_name = kind.name if isinstance(kind, Reference) else None
    if default is None or call.arguments.open or "nargs" in given or not plain:
        return Unknown(name)
    if type_name == "builtins.float":
        is_number = isinstance(default, Constant) and type(default.value) in (int, float)
        return NUMBER if is_number else Unknown(name)
    if kind is not None and type_name != ("builtins.str" if is_text(default) else "builtins.int"):
        return Unknown(name)
    return option(name, default, shown, call.place)


@method(PARSER, "set_defaults")
def set_defaults(call: Call) -> Value:
    fields = _options(call.receiver).fields
    for name, value in call.arguments.keywords.items():
        call.ev.journal.write(fields, name, option(name, value, f"--{name}", call.place))
    if call.arguments.open:
        _forget(call)
    return NONE


def _forget(call: Call) -> None:
    fields = _options(call.receiver).fields
    for name in list(fields):
        call.ev.journal.write(fields, name, Unknown(str(name)))


@method(PARSER, "parse_args", "parse_intermixed_args")
def parse(call: Call) -> Value:
    """Parse the options; unknown ones have a value of their own each time."""
    return _parsed(call)


@method(PARSER, "parse_known_args", "parse_known_intermixed_args")
def parse_known(call: Call) -> Value:
    return TupleValue((_parsed(call), ListValue(None)))


def _parsed(call: Call) -> Value:
    given = arguments_under(call, f"{PARSER}.parse_args")
    words = elements(given.value("args"))
    if not given.is_none("namespace") or not isinstance(call.receiver, (LibraryObject, InstanceValue)):
        return Unknown("args")
    chosen = not given.is_none("args")
    fields: dict[str, Value] = {}
    for name, value in _options(call.receiver).fields.items():
        if not isinstance(name, str):
            continue
        if chosen and words is None:
            value = Unknown(name)
        elif chosen:
            # The code states the arguments: without any, all options have their defaults.
            value = Unknown(name) if words else _default(value)
        elif call.ev.takes_defaults:
            value = _default(value)
        fields[name] = value
    return LibraryObject(NAMESPACE, {}, call.place, fields)


def _default(value: Value) -> Value:
    if isinstance(value, (OptionFlag, OptionText)):
        return Constant(value.default)
    symbol = value.size.only_symbol if isinstance(value, Integer) else None
    return Constant(symbol.default) if isinstance(symbol, CommandLineOption) else value


@method(PARSER, "get_default")
def get_default(call: Call) -> Value:
    held = _options(call.receiver).fields.get(arguments_under(call, f"{PARSER}.get_default").text("dest"))
    return Unknown() if held is None else _default(held)


@method(PARSER, "print_help", "print_usage", "error", "exit", "register", "add_subparsers")
def returns_none(call: Call) -> Value:
    """Return None: arguments of other commands' parsers are not followed."""
    return Unknown() if call.name.endswith("add_subparsers") else NONE


@function(*(f"{module}.HfArgumentParser" for module in _HUGGING_FACE))
def make_for_dataclasses(call: Call) -> Value:
    types = arguments_under(call, DATACLASSES).value("dataclass_types")
    return LibraryObject(DATACLASSES, {}, call.place, {"dataclass_types": types})


@method(DATACLASSES, "parse_args_into_dataclasses")
def parse_into_dataclasses(call: Call) -> Value:
    """Create an object of each dataclass, with fields as options."""
    given = arguments_under(call, f"{DATACLASSES}.parse_args_into_dataclasses")
    if not all(given.is_none(name) for name in ("args", "args_filename", "args_file_flag")):
        return _objects(call, by_option=False)
    made, and_rest = _objects(call, by_option=True), given.flag("return_remaining_strings")
    if and_rest is None:
        return ListValue(None)
    if isinstance(made, TupleValue) and and_rest:
        return TupleValue((*made.items, ListValue(None)))
    return made


@method(DATACLASSES, "parse_json_file", "parse_yaml_file", "parse_dict")
def read_dataclasses(call: Call) -> Value:
    """Create an object of each dataclass from another source."""
    return _objects(call, by_option=False)


def _objects(call: Call, *, by_option: bool) -> Value:
    types = fields_of(call.receiver).get("dataclass_types") or Unknown()
    classes = elements(types) if isinstance(types, (TupleValue, ListValue)) else (types,)
    if classes is None:
        return ListValue(None)
    return TupleValue(tuple(_object(call, resolved(call.ev, cls), by_option) for cls in classes))


def _object(call: Call, cls: Value, by_option: bool) -> Value:
    fields = fields_of_record(cls) if isinstance(cls, ClassValue) else None
    chosen: dict[str, Value] = {}
    for field in fields or ():
        if field.given:
            default = Unknown() if field.default is None else resolved(call.ev, field.default)
            value = option(field.name, default, f"--{field.name}", call.place)
            if by_option and call.ev.takes_defaults:
                value = _default(value)
            if by_option or isinstance(value, OptionFlag):
                chosen[field.name] = value
    # A class of a library has defaults, too.
    is_open = not by_option or (fields is None and not call.ev.takes_defaults)
    return call_value(call.ev, cls, Arguments([], chosen, open=is_open), call.place.node)
