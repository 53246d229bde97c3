"""Follow a value back along a stack: assignments, loops, calls, functions of other files, loads of data."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.bindings import (
    COMPREHENSIONS,
    adds_to_own,
    assigned,
    bound_names,
    called_names,
    default_of,
    is_access,
    methods_of,
    names_in,
    own_attribute,
    own_calls,
    own_nodes,
    own_targets,
    pairs_of,
    parameter_names,
    part_of,
    passed_values,
    position_of,
    same_name,
    statements_in,
    target_parts,
)
from shapefix.diagnosis.given_settings import given_settings
from shapefix.diagnosis.indexed_sources import IndexedSource, IndexedSources
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnosis.size_origins import SizeOrigin, last_name, values_in_files
from shapefix.engine.parse_limits import LARGEST
from shapefix.light_dataclasses import dataclass

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
_COMMON = frozenset(
    {"forward", "step", "train", "eval", "backward", "update", "get", "items", "values", "to"}
)
"""Names of methods that objects of libraries have, too."""
_OF_INSTANCES = ("forward", "__call__")
"""The methods run by a call of an object."""
_BUILTINS = frozenset({"abs", "float", "int", "len", "list", "max", "min", "print", "sum", "tuple", "zip"})
_MOST_STEPS = 60
_OF_INDEX = 3
"""The distance of an index from the value it is taken from."""
_MOST_CALLS = 4
"""The most calls of a class that are followed."""


def load_of(called: str, frames: Sequence[ProjectFrame]) -> SizeOrigin | None:
    """Return the only load of data on the way to the argument of a call in the last frame."""
    search = ValueSearch(frames)
    for call in search.calls(len(frames) - 1):
        if ast.unparse(call.func) == called and call.args:
            search.follow(len(frames) - 1, call.args[0])
    found = list(dict.fromkeys(search.found))
    return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class _Scope:
    """A statement on the way of a value; the rows are those of the whole text.

    caller is the number of the scope with the call of its function, None if it is unknown.
    """

    path: str
    row: int
    last: int
    caller: int | None


class ValueSearch:
    """Follows an argument back through assignments, loops and the calls of a stack, to loads of data.

    is_deep is false if only the value itself is wanted, not those it was computed from. folder is that of
    the project, to look for functions and calls in other files. Scopes are numbered: those of the frames
    first, then those of the statements on the way.
    """

    def __init__(
        self,
        frames: Sequence[ProjectFrame],
        folder: str = "",
        *,
        is_deep: bool = True,
        sources: IndexedSources | None = None,
    ) -> None:
        self._frames = frames
        self.sources = sources if sources is not None else IndexedSources(folder)
        self._scopes: list[_Scope] = []
        self._seen: set[tuple[str, int, str]] = set()
        self._is_deep = is_deep
        self.found: list[SizeOrigin] = []
        self.steps: list[SizeOrigin] = []
        """The assignments on the way, in the order of the search."""
        self._depth = 0
        self._depths: list[int] = []

    @property
    def nearest(self) -> list[SizeOrigin]:
        """The assignments on the way, those with the fewest others between them and the value first."""
        in_order = sorted(range(len(self.steps)), key=self._depths.__getitem__)
        return [self.steps[number] for number in in_order]

    def calls(self, number: int) -> Iterator[ast.Call]:
        """Yield the calls in the statement of a frame."""
        for node in self.expressions(number):
            if isinstance(node, ast.Call):
                yield node

    def expressions(self, number: int) -> Iterator[ast.expr]:
        """Yield the expressions in the statement of a frame."""
        scope, source = self._scope(number), self._source(number)
        if source is not None:
            yield from source.expressions(scope.row, scope.last)

    def conditions(self, number: int) -> Iterator[ast.expr]:
        """Yield the expressions in the condition around a frame's `raise`."""
        scope, source = self._scope(number), self._source(number)
        for node in source.statements if source is not None else ():
            if isinstance(node, ast.If):
                raised = (each for each in (*node.body, *node.orelse) if isinstance(each, ast.Raise))
                if any(each.lineno <= scope.row <= (each.end_lineno or 0) for each in raised):
                    yield from (each for each in ast.walk(node.test) if isinstance(each, ast.expr))

    def at(self, path: str, row: int, last: int) -> int:
        """Return the scope of a statement outside of the stack."""
        return self._scope_of(path, row, last, None)

    def follow(self, number: int, value: ast.expr, position: int | None = None) -> None:
        """Add the loads at the origin of a value in a frame.

        position is that of the wanted part of a tuple.
        """
        if position is not None and isinstance(value, ast.Tuple) and position < len(value.elts):
            value, position = value.elts[position], None
        source = self._source(number)
        if source is None or len(self._seen) > _MOST_STEPS:
            return
        self._depth += 1
        self._follow(number, value, position, source)
        self._depth -= 1

    def _follow(self, number: int, value: ast.expr, position: int | None, source: IndexedSource) -> None:
        whole = source.whole
        attribute = own_attribute(value)
        if attribute:
            self._follow_attribute(number, attribute, source)
            return
        if not self._is_deep and self._seen and not is_access(value):
            if isinstance(value, ast.Call):
                self._follow_results(number, value.func, source, position)
            return
        for node in ast.walk(value):
            if (
                isinstance(node, ast.Call)
                and last_name(node.func) in _LOADS
                and not self._is_own(node, source)
            ):
                path, row = whole.place(node.lineno)
                line = whole.text.split("\n")[node.lineno - 1].strip()
                self.found.append(SizeOrigin("", path, row, line))
                return
        called = {id(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
        for node in ast.walk(value):
            if isinstance(node, ast.Attribute) and not own_attribute(node) and is_access(node):
                if id(node) not in called:
                    self._follow_part(number, node, source)
            elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and self._is_deep:
                if isinstance(node.slice.value, str) and is_access(node.value):
                    self._follow_setting(number, node.slice.value, source, is_key=True)
        for node in ast.walk(value):
            if isinstance(node, ast.Call):
                self._follow_results(number, node.func, source, position if node is value else None)
        inner = {name for node in ast.walk(value) for name in own_targets(node)}
        parts = [node for node in ast.walk(value) if isinstance(node, ast.Subscript)]
        indices = {id(node) for part in parts for node in ast.walk(part.slice)}
        names = [node for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute))]
        for node in sorted(names, key=lambda node: id(node) in indices):
            # An index is farther from a value than what it is taken from.
            self._depth += _OF_INDEX * (id(node) in indices)
            if isinstance(node, ast.Attribute):
                if self._is_deep and (name := own_attribute(node)):
                    self._follow_attribute(number, name, source)
            elif isinstance(node.ctx, ast.Load) and node.id not in inner:
                self._follow_name(number, node.id, source)
            self._depth -= _OF_INDEX * (id(node) in indices)

    def _is_new(self, number: int, name: str, source: IndexedSource) -> bool:
        """Check and note that a name of a scope is new."""
        function = self._function(number, source)
        key = (self._scope(number).path, function.lineno if function is not None else 0, name)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def _follow_name(self, number: int, name: str, source: IndexedSource) -> None:
        if not self._is_new(number, name, source):
            return
        function = self._function(number, source)
        for expression in self.expressions(number):
            for part in expression.generators if isinstance(expression, COMPREHENSIONS) else ():
                if name in names_in([part.target]):
                    self._step(number, name, part.iter)
                    self.follow(number, part.iter)
                    return
        last = self._row(number)
        # Those after the failing line have not run yet.
        inside = source.statements if function is None else statements_in(function)
        run = [node for node in inside if node.lineno < last]
        known = len(self.steps)
        for node in sorted(run, key=lambda node: -node.lineno):
            if (value := assigned(node, name)) is not None:
                self._step(number, name, node)
                self.follow(self._at(number, node), value, part_of(node, name))
        if function is not None and name in parameter_names(function):
            self._follow_parameter(number, function, name, source)
            return
        if function is not None and name not in bound_names(function):
            self._follow_global(number, name, source)
        if len(self.steps) == known:
            self._follow_import(name, source)

    def _follow_global(self, number: int, name: str, source: IndexedSource) -> None:
        for statement in source.tree.body:
            if (value := assigned(statement, name)) is not None:
                self._step(number, name, statement)
                self.follow(self._at(number, statement, is_outer=True), value, part_of(statement, name))

    def _follow_import(self, name: str, source: IndexedSource) -> None:
        """Follow a name from a module of the project."""
        for node in source.imports:
            for each in node.names:
                if (each.asname or each.name) == name:
                    for path in self._modules(node.module or ""):
                        number = self._scope_of(path, LARGEST, LARGEST, None)
                        other = self._source(number)
                        if other is not None:
                            self._follow_global(number, each.name, other)

    def _imported(self, name: str, source: IndexedSource) -> Iterator[str]:
        """Yield the file of a module of the project with this name in a source, `import settings`."""
        for node in source.module_imports:
            for each in node.names:
                if (each.asname or each.name) == name:
                    yield from self._modules(each.name)
        for other in source.imports:
            for each in other.names:
                if (each.asname or each.name) == name:
                    yield from self._modules(f"{other.module}.{each.name}" if other.module else each.name)

    def _modules(self, name: str) -> list[str]:
        """Return the file of a module of the project, if there is only one."""
        end = name.replace(".", "/")
        ends = (f"/{end}.py", f"/{end}/__init__.py")
        found = [path for path in self.sources.paths if end and path.replace("\\", "/").endswith(ends)]
        return found if len(found) == 1 else []

    def _follow_parameter(
        self, number: int, function: ast.FunctionDef, name: str, source: IndexedSource
    ) -> None:
        """Follow a parameter to the calls of its function, or to its default."""
        owner = self._class(number, source)
        called = owner.name if function.name == "__init__" and owner is not None else function.name
        caller = self._scope(number).caller
        position = position_of(function, name)
        if caller is not None:
            passed = [(caller, value) for value in self._arguments(caller, called, position, name, function)]
        elif function.name == "__init__":
            passed = list(self._constructed(called, position, name))
        else:
            passed = []
        for at, value in passed:
            known = len(self.steps)
            self.follow(at, value)
            if len(self.steps) == known:
                self._step(at, name, value)
        default = default_of(function, name)
        if not passed and default is not None:
            self._step(number, name, default)
            if isinstance(default, ast.Name):
                self.follow(number, default)

    def _constructed(self, name: str, position: int, parameter: str) -> Iterator[tuple[int, ast.expr]]:
        """Yield the values of a parameter in the calls of a class of the project, with their scopes."""
        left = _MOST_CALLS
        for path in self._paths():
            found = self.sources.of(path, f"{name}(")
            for statement in found.statements if found is not None and name in found.whole.text else ():
                for call in own_calls(statement):
                    if last_name(call.func) == name and left:
                        left -= 1
                        scope = self._scope_of(path, statement.lineno, call.end_lineno or call.lineno, None)
                        for value in passed_values(call, position, parameter):
                            yield scope, value

    def _arguments(
        self, number: int, called: str, position: int, name: str, function: ast.FunctionDef
    ) -> Iterator[ast.expr]:
        """Yield the values of a parameter in the statement of a frame.

        A module is called by its own name, `model(images)`. A library may call a function that it gets, as in
        `dataset.map(encode)`.
        """
        calls = list(self.calls(number))
        named = [call for call in calls if last_name(call.func) == called]
        source = self._source(number)
        if not named and called in _OF_INSTANCES and source is not None:
            named = [
                call
                for call in calls
                if any(each is function for _, each in self._of_instance(number, call.func, source))
            ]
            called = last_name(named[0].func) if named else called
            # Not the functions around it, as in `sum(model(x).argmax(1) == y)`.
            own = [call for call in calls if isinstance(call.func, ast.Name) or own_attribute(call.func)]
            calls = [call for call in own if last_name(call.func) not in _BUILTINS] or calls
        for call in named or calls:
            by_name = [keyword.value for keyword in call.keywords]
            if not named and called in map(last_name, (*call.args, *by_name)):
                # `data.map(encode)` and `DataLoader(data, collate_fn=join)` pass their data to it.
                yield from [call.func.value] if isinstance(call.func, ast.Attribute) else call.args[:1]
                continue
            yield from passed_values(call, position, name)

    def _follow_attribute(self, number: int, name: str, source: IndexedSource) -> None:
        """Follow the assignments to an attribute of `self`, in the class of a frame."""
        owner = self._class(number, source)
        key = (self._scope(number).path, owner.lineno if owner is not None else 0, f"self.{name}")
        if key in self._seen:
            return
        self._seen.add(key)
        for node in ast.walk(owner or ast.Module([], [])):
            if isinstance(node, ast.Call) and adds_to_own(node, name):
                self._step(number, f"self.{name}", node)
            elif isinstance(node, ast.Assign) and name in map(own_attribute, target_parts(node.targets)):
                self._step(number, f"self.{name}", node)
                self.follow(self._at(number, node, is_outer=True), node.value)

    def _class(self, number: int, source: IndexedSource) -> ast.ClassDef | None:
        """Return the innermost class around a frame's statement."""
        return source.class_around(self._row(number))

    def _scope(self, number: int) -> _Scope:
        if number >= len(self._frames):
            return self._scopes[number - len(self._frames)]
        span = self._frames[number].span
        source = None if self._frames[number].is_missing else self.sources.of(span.path)
        before = source.whole.rows_before if source is not None else 0
        return _Scope(span.path, span.row + before, span.end_row + before, number - 1 if number else None)

    def _scope_of(self, path: str, row: int, last: int, caller: int | None) -> int:
        self._scopes.append(_Scope(path, row, last, caller))
        return len(self._frames) + len(self._scopes) - 1

    def _at(self, number: int, node: ast.stmt | ast.expr, *, is_outer: bool = False) -> int:
        """Return the scope of another statement of the same function, or of another one of its file."""
        scope = self._scope(number)
        last = node.lineno if isinstance(node, (ast.For, ast.AsyncFor)) else node.end_lineno or node.lineno
        return self._scope_of(scope.path, node.lineno, last, None if is_outer else scope.caller)

    def _row(self, number: int) -> int:
        return self._scope(number).row

    def _step(self, number: int, name: str, node: ast.stmt | ast.expr) -> None:
        source = self._source(number)
        if source is not None:
            path, row = source.whole.place(node.lineno)
            line = source.whole.text.split("\n")[node.lineno - 1].strip()
            self._add(SizeOrigin(name, path, row, line))

    def _add(self, step: SizeOrigin) -> None:
        self.steps.append(step)
        self._depths.append(self._depth)

    def _follow_results(
        self, number: int, called: ast.expr, source: IndexedSource, position: int | None = None
    ) -> None:
        """Follow the results of a function or method of the project, or one part of them."""
        name = last_name(called)
        part = "" if position is None else position
        if not name or not self._is_new(number, f"{name}(){part}", source):
            return
        functions = self._called(number, called, source)
        if not functions:
            self._follow_samples(number, name)
        for path, function in functions if len(functions) == 1 else ():
            for node in own_nodes(function):
                value = node.value if isinstance(node, (ast.Return, ast.Yield)) else None
                if value is None or (isinstance(value, ast.Constant) and value.value in (None, True, False)):
                    continue
                scope = self._scope_of(path, node.lineno, node.end_lineno or node.lineno, number)  # type: ignore[attr-defined]
                self._step(scope, f"{name}()", value)
                self.follow(scope, value, position)

    def _follow_samples(self, number: int, name: str) -> None:
        """Follow the samples of a dataset of the project, `Pairs(rows)`."""
        for path, cls in self._classes(name):
            for method in methods_of(cls):
                for node in own_nodes(method) if method.name == "__getitem__" else ():
                    if isinstance(node, ast.Return) and node.value is not None:
                        scope = self._scope_of(path, node.lineno, node.end_lineno or node.lineno, number)
                        self._step(scope, f"{name}[]", node)

    def _called(
        self, number: int, called: ast.expr, source: IndexedSource
    ) -> list[tuple[str, ast.FunctionDef]]:
        """Return the possible functions of a call in the project, with the paths of their files."""
        name = last_name(called)
        path = self._scope(number).path
        if isinstance(called, ast.Name):
            own = [
                (path, node)
                for node in source.tree.body
                if isinstance(node, ast.FunctionDef) and node.name == name
            ]
            return own or self._in_project(name) or self._of_instance(number, called, source)
        owner = self._class(number, source) if own_attribute(called) else None
        if owner is not None:
            methods = [(path, node) for node in methods_of(owner) if node.name == name]
            if methods:
                return methods
            instances = self._of_instance(number, called, source)
            if instances:
                return instances
        if not isinstance(called, ast.Attribute) or name in _COMMON:
            return []
        return self._in_project(name) or self._in_project(name, are_methods=True)

    def _of_instance(
        self, number: int, called: ast.expr, source: IndexedSource
    ) -> list[tuple[str, ast.FunctionDef]]:
        """Return the `forward` or `__call__` of an object's classes in the project."""
        return [
            (path, method)
            for name in self._created(number, called, source)
            for path, cls in self._classes(name)
            for method in methods_of(cls)
            if method.name in _OF_INSTANCES
        ]

    def _created(self, number: int, value: ast.expr, source: IndexedSource) -> tuple[str, ...]:
        """Return the names in the calls assigned to a name or attribute."""
        attribute = own_attribute(value)
        around = self._class(number, source) if attribute else self._function(number, source)
        inside = [node for node in statements_in(around) if isinstance(node, ast.Assign)] if around else []
        found = [
            name
            for node in (*inside, *(() if attribute else source.assignments))
            for target, given in pairs_of(node)
            if same_name(target, value)
            for name in called_names(given)
        ]
        return tuple(dict.fromkeys(found))

    def _follow_part(self, number: int, value: ast.Attribute, source: IndexedSource) -> None:
        """Follow an attribute of an object of a class of the project, `bank.items`, or of any object."""
        known = len(self.steps)
        for path in self._imported(ast.unparse(value.value), source):
            other = self.sources.of(path)
            if other is not None:
                self._follow_global(self._scope_of(path, LARGEST, LARGEST, None), value.attr, other)
        for name in self._created(number, value.value, source):
            for path, cls in self._classes(name):
                other = self.sources.of(path)
                if other is not None:
                    inside = self._scope_of(path, cls.lineno + 1, cls.lineno + 1, None)
                    self._follow_attribute(inside, value.attr, other)
        if len(self.steps) == known:
            self._follow_setting(number, value.attr, source, is_key=False)

    def _follow_setting(self, number: int, name: str, source: IndexedSource, *, is_key: bool) -> None:
        """Follow an attribute or a key to its assignments in the project."""
        if not self._is_new(number, f".{name}", source):
            return
        found = given_settings(self.sources, name, is_key=is_key)
        if not found:
            stated = values_in_files(name, self.sources.folder)
            for step in stated if len(stated) == 1 else ():
                self._add(step)
        for each in found:
            scope = self._scope_of(
                each.path, each.node.lineno, each.node.end_lineno or each.node.lineno, None
            )
            self._step(scope, name, each.node)
            if each.value is not None and not isinstance(each.value, ast.Constant):
                self.follow(scope, each.value)

    def _classes(self, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """Yield the classes of the project with a name."""
        for path in self._paths():
            found = self.sources.of(path, f"class {name}") if name else None
            for node in found.tree.body if found is not None else ():
                if isinstance(node, ast.ClassDef) and node.name == name:
                    yield path, node

    def _paths(self) -> tuple[str, ...]:
        """Return the files of the stack, then all others of the project."""
        own = (frame.span.path for frame in self._frames if not frame.is_missing)
        return tuple(dict.fromkeys((*own, *self.sources.paths)))

    def _is_own(self, call: ast.Call, source: IndexedSource) -> bool:
        """Whether a call is one of a function of the project, `load(path)`."""
        if not isinstance(call.func, ast.Name):
            return False
        name = call.func.id
        own = any(isinstance(each, ast.FunctionDef) and each.name == name for each in source.tree.body)
        return own or bool(self._in_project(name))

    def _in_project(self, called: str, *, are_methods: bool = False) -> list[tuple[str, ast.FunctionDef]]:
        """Return the functions of the project with a name, or the methods."""
        paths = self.sources.paths
        return [(path, found) for path in paths for found in self._functions(path, called, are_methods)]

    def _functions(self, path: str, name: str, are_methods: bool) -> Iterator[ast.FunctionDef]:
        found = self.sources.of(path, f"def {name}(")
        for node in found.tree.body if found is not None else ():
            inner = methods_of(node) if are_methods and isinstance(node, ast.ClassDef) else ()
            for each in inner if are_methods else (node,):
                if isinstance(each, ast.FunctionDef) and each.name == name:
                    yield each

    def _function(self, number: int, source: IndexedSource) -> ast.FunctionDef | None:
        """Return the innermost function around a frame's statement."""
        return source.function_around(self._row(number))

    def _source(self, number: int) -> IndexedSource | None:
        return self.sources.of(self._scope(number).path)
