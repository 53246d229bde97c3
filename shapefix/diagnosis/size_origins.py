"""Explain the numbers of a message: the setting with the size of a layer, and the load of its data."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from shapefix.diagnosis.project_frames import ProjectFrame, setting_files, source_files
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.sources.text import LARGEST_NOTEBOOK, Unreadable, read_bytes, read_settings

_LOADS = frozenset(
    {"load", "loadtxt", "genfromtxt", "fromfile", "memmap", "loadmat", "read_csv", "read_parquet"}
    | {
        "read_json",
        "read_pickle",
        "read_table",
        "read_excel",
        "load_dataset",
        "load_from_disk",
        "open_memmap",
    }
)
"""Last parts of the names of functions that read data from a file."""
_WRAPPERS = frozenset({"dict", "enumerate", "iter", "list", "next", "tqdm", "trange"})
"""Functions with the elements of their argument."""
_MOST_STEPS = 60
_MOST_FILES = 200
_MOST_WITH_BOTH = 20
"""The most files with the name and the number of a setting that are parsed."""
_MOST_SETTINGS = 12


@dataclass(frozen=True)
class SizeOrigin:
    """A place with the reason of a number: its name and code."""

    name: str
    path: str
    row: int
    code: str


def setting_of(name: str, number: str, folder: str, own: str) -> SizeOrigin | None:
    """Return the place of a name with this number in a file or below a folder, if there is only one."""
    everywhere = dict.fromkeys((own, *islice(source_files(folder), _MOST_FILES)))
    paths = [path for path in everywhere if _has_both(path, name, number)]
    if len(paths) > _MOST_WITH_BOTH:
        return None
    found = [each for path in paths for each in _in_source(path, name, number)]
    settings = islice(setting_files(folder), _MOST_FILES)
    found += [each for path in settings for each in _in_settings(path, name, number)]
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class NumberSetting:
    """A place with a number under a name."""

    origin: SizeOrigin
    number: int


def settings_named(name: str, folder: str, own: str) -> tuple[NumberSetting, ...]:
    """Return the places of a name with a number in a file or below a folder; none if there are too many."""
    everywhere = dict.fromkeys((own, *islice(source_files(folder), _MOST_FILES)))
    paths = [path for path in everywhere if _has_both(path, name, "")]
    if len(paths) > _MOST_WITH_BOTH:
        return ()
    found = [each for path in paths for each in _numbers_in_source(path, name)]
    files = islice(setting_files(folder), _MOST_FILES)
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


def load_of(called: str, frames: Sequence[ProjectFrame]) -> SizeOrigin | None:
    """Return the only load of data on the way to the argument of a call in the last frame."""
    search = ValueSearch(frames)
    for call in search.calls(len(frames) - 1):
        if ast.unparse(call.func) == called and call.args:
            search.follow(len(frames) - 1, call.args[0])
    found = list(dict.fromkeys(search.found))
    return found[0] if len(found) == 1 else None


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
    for node in ast.walk(tree):
        for key, value in _named_values(node):
            if key == name and isinstance(value, ast.Constant):
                shown, row = whole.place(value.lineno)
                line = whole.text.split("\n")[value.lineno - 1].strip()
                yield SizeOrigin(name, shown, row, line), value.value


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
                yield str(option.value).lstrip("-").replace("-", "_"), keyword.value


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


def _values_in_settings(path: str, name: str) -> Iterator[tuple[SizeOrigin, str]]:
    try:
        text = read_settings(path).decode("utf-8", "replace")
    except Unreadable:
        return
    pattern = re.compile(rf"""^\s*["']?{re.escape(name)}["']?\s*[:=]\s*([^\s,#]+)\s*(?:,|#|$)""")
    for row, line in enumerate(text.split("\n"), 1):
        found = pattern.match(line)
        if found is not None:
            yield SizeOrigin(name, path, row, line.strip().rstrip(",")), found[1]


class ValueSearch:
    """Follows an argument back through assignments, loops and the calls of a stack, to loads of data.

    is_deep is false if only the value itself is wanted, not those it was computed from.
    """

    def __init__(self, frames: Sequence[ProjectFrame], *, is_deep: bool = True) -> None:
        self._frames = frames
        self._wholes: dict[str, tuple[WholeText, ast.Module]] = {}
        self._seen: set[tuple[int, str]] = set()
        self._is_deep = is_deep
        self.found: list[SizeOrigin] = []
        self.steps: list[SizeOrigin] = []
        """The assignments on the way, the nearest first."""

    def calls(self, number: int) -> Iterator[ast.Call]:
        """Yield the calls in the statement of a frame."""
        for node in self.expressions(number):
            if isinstance(node, ast.Call):
                yield node

    def expressions(self, number: int) -> Iterator[ast.expr]:
        """Yield the expressions in the statement of a frame."""
        frame, parsed = self._frames[number], self._parsed(number)
        if parsed is None:
            return
        whole, tree = parsed
        first, last = frame.span.row + whole.rows_before, frame.span.end_row + whole.rows_before
        for node in ast.walk(tree):
            if isinstance(node, ast.expr) and first <= node.lineno <= last:
                yield node

    def follow(self, number: int, value: ast.expr) -> None:
        """Add the loads at the origin of a value in a frame."""
        parsed = self._parsed(number)
        if parsed is None or len(self._seen) > _MOST_STEPS:
            return
        whole, tree = parsed
        attribute = _own_attribute(value)
        if attribute:
            self._follow_attribute(number, attribute, tree)
            return
        if not self._is_deep and self._seen and not _is_access(value):
            return
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in _LOADS:
                path, row = whole.place(node.lineno)
                line = whole.text.split("\n")[node.lineno - 1].strip()
                self.found.append(SizeOrigin("", path, row, line))
                return
        for node in ast.walk(value):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                self._follow_results(number, node.func.id, tree)
        for node in ast.walk(value):
            if isinstance(node, ast.Name) and (number, node.id) not in self._seen:
                self._seen.add((number, node.id))
                self._follow_name(number, node.id, tree)

    def _follow_name(self, number: int, name: str, tree: ast.Module) -> None:
        function = self._function(number, tree)
        parameters = _parameters(function)
        if function is not None and name in parameters and number > 0:
            is_method = parameters[0] in ("self", "cls")
            is_by_name = name in [each.arg for each in function.args.kwonlyargs]
            position = -1 if is_by_name else parameters.index(name) - is_method
            for value in self._arguments(number - 1, function.name, position, name):
                self.follow(number - 1, value)
            return
        last = self._row(number)
        # Those after the failing line have not run yet.
        run = [
            node for node in ast.walk(function or tree) if isinstance(node, ast.stmt) and node.lineno < last
        ]
        for node in sorted(run, key=lambda node: -node.lineno):
            if isinstance(node, ast.Assign) and name in _names(node.targets):
                self._step(number, name, node)
                self.follow(number, node.value)
            elif isinstance(node, (ast.For, ast.AsyncFor)) and name in _names([node.target]):
                self._step(number, name, node)
                self.follow(number, node.iter)
        if function is not None and name not in _bound(function):
            for statement in tree.body:
                if isinstance(statement, ast.Assign) and name in _names(statement.targets):
                    self._step(number, name, statement)
                    self.follow(number, statement.value)

    def _arguments(self, number: int, called: str, position: int, name: str) -> Iterator[ast.expr]:
        """Yield the values of a parameter in the statement of a frame.

        A library may call a function that it gets, as in `dataset.map(encode)`.
        """
        calls = list(self.calls(number))
        named = [call for call in calls if last_name(call.func) == called]
        for call in named or calls:
            by_name = [keyword.value for keyword in call.keywords]
            if not named and called in map(last_name, (*call.args, *by_name)):
                if isinstance(call.func, ast.Attribute):
                    yield call.func.value
                continue
            yield from (keyword.value for keyword in call.keywords if keyword.arg == name)
            if len(call.args) > position >= 0:
                yield call.args[position]

    def _follow_attribute(self, number: int, name: str, tree: ast.Module) -> None:
        """Follow the assignments to an attribute of `self`, in the class of a frame."""
        if (number, f"self.{name}") in self._seen:
            return
        self._seen.add((number, f"self.{name}"))
        for node in ast.walk(self._class(number, tree) or ast.Module([], [])):
            if isinstance(node, ast.Call) and _fills(node, name):
                self._step(number, f"self.{name}", node)
            elif isinstance(node, ast.Assign) and name in map(_own_attribute, node.targets):
                self._step(number, f"self.{name}", node)
                function = _around(tree, node.lineno)
                if not (isinstance(node.value, ast.Name) and node.value.id in _parameters(function)):
                    self.follow(number, node.value)

    def _class(self, number: int, tree: ast.Module) -> ast.ClassDef | None:
        """Return the innermost class around a frame's statement."""
        row = self._row(number)
        around = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef) and node.lineno < row <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def _row(self, number: int) -> int:
        frame, parsed = self._frames[number], self._parsed(number)
        return frame.span.row + (parsed[0].rows_before if parsed is not None else 0)

    def _step(self, number: int, name: str, node: ast.stmt | ast.expr) -> None:
        parsed = self._parsed(number)
        if parsed is not None:
            path, row = parsed[0].place(node.lineno)
            line = parsed[0].text.split("\n")[node.lineno - 1].strip()
            self.steps.append(SizeOrigin(name, path, row, line))

    def _follow_results(self, number: int, called: str, tree: ast.Module) -> None:
        """Add the loads of data in a function of the file, if it returns their results."""
        if (number, f"{called}()") in self._seen:
            return
        self._seen.add((number, f"{called}()"))
        for function in tree.body:
            if isinstance(function, ast.FunctionDef) and function.name == called:
                for value in _results_of(function):
                    self.follow(number, value)

    def _function(self, number: int, tree: ast.Module) -> ast.FunctionDef | None:
        """Return the innermost function around a frame's statement."""
        return _around(tree, self._row(number))

    def _parsed(self, number: int) -> tuple[WholeText, ast.Module] | None:
        path = self._frames[number].span.path
        if path not in self._wholes:
            try:
                whole = whole_text(path)
                self._wholes[path] = whole, ast.parse(whole.text)
            except (Unreadable, SyntaxError, ValueError, RecursionError):
                return None
        return self._wholes[path]


def _own_attribute(node: ast.expr) -> str:
    """Return `best` for `self.best` and `self.best[0]`, "" for anything else."""
    while isinstance(node, ast.Subscript):
        node = node.value
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""


def _fills(node: ast.Call, name: str) -> bool:
    """Whether a call adds to a dictionary of `self`."""
    method = node.func
    is_addition = isinstance(method, ast.Attribute) and method.attr in ("setdefault", "update")
    return is_addition and isinstance(method, ast.Attribute) and _own_attribute(method.value) == name


def _is_access(node: ast.expr) -> bool:
    """Whether an expression only names a value: `batch`, `batch["ids"]`, `enumerate(loader)`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        if isinstance(node, ast.Call):
            if last_name(node.func) not in _WRAPPERS or not node.args:
                return False
            node = node.args[0]
        else:
            node = node.value
    return isinstance(node, ast.Name)


def _around(tree: ast.Module, row: int) -> ast.FunctionDef | None:
    """Return the innermost function around a row."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.lineno < row <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _parameters(function: ast.FunctionDef | None) -> list[str]:
    return (
        [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
        if function is not None
        else []
    )


def _names(targets: Sequence[ast.expr]) -> set[str]:
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def _bound(function: ast.FunctionDef) -> set[str]:
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return stored | {each.arg for each in function.args.args}


def _results_of(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """Yield the values returned by a function, and those of the names in them."""
    returned = [node.value for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
    yield from returned
    names = {node.id for value in returned for node in ast.walk(value) if isinstance(node, ast.Name)}
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and names & _names(node.targets):
            yield node.value
