"""Follow a value back along a stack: assignments, loops, calls, functions of other files, loads of data."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice

from shapefix.diagnosis.project_frames import ProjectFrame, source_files
from shapefix.diagnosis.size_origins import SizeOrigin, last_name
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.engine.parse_limits import LARGEST
from shapefix.sources.text import Unreadable

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


def load_of(called: str, frames: Sequence[ProjectFrame]) -> SizeOrigin | None:
    """Return the only load of data on the way to the argument of a call in the last frame."""
    search = ValueSearch(frames)
    for call in search.calls(len(frames) - 1):
        if ast.unparse(call.func) == called and call.args:
            search.follow(len(frames) - 1, call.args[0])
    found = list(dict.fromkeys(search.found))
    return found[0] if len(found) == 1 else None


class ValueSearch:
    """Follows an argument back through assignments, loops and the calls of a stack, to loads of data.

    is_deep is false if only the value itself is wanted, not those it was computed from. folder is that of
    the project, to look for functions in other files.
    """

    def __init__(self, frames: Sequence[ProjectFrame], folder: str = "", *, is_deep: bool = True) -> None:
        self._frames = frames
        self._folder = folder
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
            if isinstance(node, ast.Call) and last_name(node.func) in _LOADS and not self._is_own(node, tree):
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
                known = len(self.steps)
                self.follow(number - 1, value)
                if len(self.steps) == known:
                    self._step(number - 1, name, value)
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
            elif isinstance(node, ast.Assign) and name in map(_own_attribute, _parts(node.targets)):
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
        own = [each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == called]
        for function in own:
            for value in _results_of(function):
                self.follow(number, value)
        if not own:
            self._step_through(called)

    def _is_own(self, call: ast.Call, tree: ast.Module) -> bool:
        """Whether a call is one of a function of the project, `load(path)`."""
        if not isinstance(call.func, ast.Name):
            return False
        name = call.func.id
        own = any(isinstance(each, ast.FunctionDef) and each.name == name for each in tree.body)
        return own or bool(self._in_project(name))

    def _in_project(self, called: str) -> list[tuple[WholeText, ast.FunctionDef]]:
        """Return the functions of the project with a name."""
        if not self._folder:
            return []
        paths = islice(source_files(self._folder), _MOST_FILES)
        return [found for path in paths for found in _functions(path, called)]

    def _step_through(self, called: str) -> None:
        """Add the results of the only function of the project with a name, and the assignments to them."""
        found = self._in_project(called)
        if len(found) != 1:
            return
        whole, function = found[0]
        rows = whole.text.split("\n")
        returned = [node for node in ast.walk(function) if isinstance(node, ast.Return) and node.value]
        names = {each.id for node in returned for each in ast.walk(node) if isinstance(each, ast.Name)} - set(
            _parameters(function)
        )
        assigned = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and names & _names(node.targets)
        ]
        steps: list[tuple[str, ast.stmt]] = [(f"{called}()", node) for node in returned]
        assigned.sort(key=lambda node: -node.lineno)
        steps += [(ast.unparse(node.targets[0]), node) for node in assigned]
        for name, node in steps:
            path, row = whole.place(node.lineno)
            self.steps.append(SizeOrigin(name, path, row, rows[node.lineno - 1].strip()))

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


def _parts(targets: Sequence[ast.expr]) -> Iterator[ast.expr]:
    """Yield the targets of an assignment, and the parts of tuples."""
    for target in targets:
        yield from target.elts if isinstance(target, (ast.Tuple, ast.List)) else (target,)


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


def _functions(path: str, name: str) -> Iterator[tuple[WholeText, ast.FunctionDef]]:
    """Yield the functions of a file with a name, outside of classes."""
    try:
        whole = whole_text(path)
        is_there = f"def {name}" in whole.text and len(whole.text) <= LARGEST
        tree = ast.parse(whole.text if is_there else "")
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield whole, node
