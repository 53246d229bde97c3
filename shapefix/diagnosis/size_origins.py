"""Find the settings with the numbers of a message: names in sources, configuration files and options."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.project_frames import searched_settings, searched_sources
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import LARGEST_NOTEBOOK, Unreadable, read_bytes, read_settings

_MOST_WITH_BOTH = 20
"""The most files with the name and the number of a setting that are parsed."""
_MOST_SETTINGS = 12
_LONGEST_LINE = 100
"""The most characters of a row of settings that are shown; of a longer one the setting itself."""


@dataclass(frozen=True)
class SizeOrigin:
    """A place with the reason of a number: its name and code."""

    name: str
    path: str
    row: int
    code: str


def setting_of(name: str, number: str, folder: str, own: str) -> SizeOrigin | None:
    """Return the place of a name with this number in a file or below a folder, if there is only one."""
    everywhere = dict.fromkeys((own, *searched_sources(folder)))
    paths = [path for path in everywhere if _has_both(path, name, number)]
    if len(paths) > _MOST_WITH_BOTH:
        return None
    found = [each for path in paths for each in _in_source(path, name, number)]
    settings = searched_settings(folder)
    found += [each for path in settings for each in _in_settings(path, name, number)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class NumberSetting:
    """A place with a number under a name."""

    origin: SizeOrigin
    number: int


def settings_named(name: str, folder: str, own: str) -> tuple[NumberSetting, ...]:
    """Return the places of a name with a number in a file or below a folder; none if there are too many."""
    everywhere = dict.fromkeys((own, *searched_sources(folder)))
    paths = [path for path in everywhere if _has_both(path, name, "")]
    if len(paths) > _MOST_WITH_BOTH:
        return ()
    found = [each for path in paths for each in _numbers_in_source(path, name)]
    files = searched_settings(folder)
    found += [each for path in files for each in _numbers_in_settings(path, name)]
    return tuple(dict.fromkeys(found)) if len(found) <= _MOST_SETTINGS else ()


def _numbers_in_source(path: str, name: str) -> Iterator[NumberSetting]:
    for origin, value in _values_in_source(path, name):
        if isinstance(value, int) and not isinstance(value, bool):
            yield NumberSetting(origin, value)


def _numbers_in_settings(path: str, name: str) -> Iterator[NumberSetting]:
    for origin, value in _values_in_settings(path, name):
        if value.isdecimal():
            yield NumberSetting(origin, int(value[:12]))


def _has_both(path: str, name: str, number: str) -> bool:
    """Check for the name and the number anywhere in a file."""
    try:
        data = read_bytes(path, LARGEST_NOTEBOOK)
    except Unreadable:
        return False
    # A notebook may have other letters as escapes.
    return number.encode() in data and (not name.isascii() or name.encode() in data)


def _in_source(path: str, name: str, number: str) -> Iterator[SizeOrigin]:
    for origin, value in _values_in_source(path, name):
        if str(value) == number:
            yield origin


def _values_in_source(path: str, name: str) -> Iterator[tuple[SizeOrigin, object]]:
    try:
        whole = whole_text(path)
        tree = ast.parse(whole.text) if name in whole.text else ast.Module([], [])
    except (Unreadable, SyntaxError, ValueError, RecursionError):
        return
    for key, value in named_values(tree):
        if key == name and isinstance(value, ast.Constant):
            shown, row = whole.place(value.lineno)
            line = whole.text.split("\n")[value.lineno - 1].strip()
            yield SizeOrigin(name, shown, row, line), value.value


def named_values(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names, attributes, keys, parameters and options of a file with their values."""
    for node in ast.walk(tree):
        yield from _named_values(node)


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names, attributes, keys and parameters in a node with their values."""
    if isinstance(node, ast.Assign):
        yield from ((last_name(target), node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield last_name(node.target), node.value
    elif isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg, node.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                yield str(key.value), value
    elif isinstance(node, ast.arguments):
        ordered = [*node.posonlyargs, *node.args]
        for parameter, default in zip(reversed(ordered), reversed(node.defaults), strict=False):
            yield parameter.arg, default
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument") and node.args:
        option = node.args[0]
        for keyword in node.keywords:
            if keyword.arg == "default" and isinstance(option, ast.Constant):
                yield option_name(str(option.value)), keyword.value


def option_name(option: str) -> str:
    """Return the attribute of an option: `batch_size` for `--batch-size`."""
    return option.lstrip("-").replace("-", "_")


def last_name(target: ast.expr) -> str:
    """Return `size` for `size`, `config.size` and `config["size"]`, "" for anything else."""
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(slice=ast.Constant(value=str() as name)):
            return name
    return ""


def _in_settings(path: str, name: str, number: str) -> Iterator[SizeOrigin]:
    for origin, value in _values_in_settings(path, name):
        if value == number:
            yield origin


def values_in_files(name: str, folder: str) -> tuple[SizeOrigin, ...]:
    """Return the places of a name in the configuration files below a folder."""
    files = searched_settings(folder) if folder else ()
    return tuple(origin for path in files for origin, _ in _values_in_settings(path, name))


def _values_in_settings(path: str, name: str) -> Iterator[tuple[SizeOrigin, str]]:
    try:
        text = read_settings(path).decode("utf-8", "replace")
    except Unreadable:
        return
    # Several settings may be in one row of JSON, or in braces of YAML.
    pattern = re.compile(
        rf"""(?:^\s*|[{{,]\s*|^\s*-\s+)["']?{re.escape(name)}["']?\s*[:=]\s*([^\s,#}}\]]+)\s*(?=[,#}}\]]|$)"""
    )
    for row, line in enumerate(text.split("\n"), 1):
        for found in pattern.finditer(line):
            whole = line.strip().rstrip(",")
            code = whole if len(whole) <= _LONGEST_LINE else found[0].strip(" {,")
            yield SizeOrigin(name, path, row, code), found[1]
