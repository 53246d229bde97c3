"""Name lookup: local, enclosing, module, other files of the project, built-ins."""

from __future__ import annotations

import builtins
from itertools import pairwise

import libcst as cst

from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.evaluator import Evaluator, Frame
from shapefix.interpreter.modules import Module, Statement, dotted_name, nodes
from shapefix.interpreter.truth import truth
from shapefix.interpreter.values import Imported, ModuleValue, Reference, Scope, Unknown, Value

_BUILTINS = frozenset(dir(builtins))


def look_up(ev: Evaluator, name: str) -> Value:
    """Value of name in the current frame."""
    frame = ev.frames[-1]
    scope: Scope | None = frame.scope
    while scope is not None:
        value = scope.names.get(name)
        if value is not None:
            if isinstance(value, Imported):
                value = resolve(ev, value)
                with ev.outside_branches():
                    ev.journal.write(scope.names, name, value)
            return value
        scope = scope.outer
    value = module_name(ev, frame.module, name)
    if value is not None:
        return value
    if name in _BUILTINS or ev.library.function(f"builtins.{name}") is not None:
        return Reference(f"builtins.{name}")
    return Unknown(name)


def is_bound(ev: Evaluator, name: str) -> bool:
    """Check whether the code binds a name; others come from `import *`, or do not exist."""
    scope: Scope | None = ev.frame.scope
    while scope is not None:
        if name in scope.names:
            return True
        scope = scope.outer
    return module_name(ev, ev.frame.module, name) is not None


def peek(ev: Evaluator, node: cst.BaseExpression) -> Value:
    """Value of an expression, without reading another file for it."""
    if type(node) is cst.Name:
        scope: Scope | None = ev.frames[-1].scope
        while scope is not None:
            value = scope.names.get(node.value)
            if isinstance(value, Imported):
                return value
            scope = scope.outer
    elif type(node) is cst.Attribute and type(node.value) is cst.Name:
        owner = peek(ev, node.value)
        if isinstance(owner, Imported) and owner.name is None:
            return Imported(owner.path, node.attr.value)
    return ev.evaluate(node)


def scope_of(ev: Evaluator, module: Module) -> Scope:
    """Top-level scope of a module, filled on demand."""
    scope = ev.module_scopes.get(module.path)
    if scope is None:
        scope = ev.module_scopes[module.path] = Scope()
    return scope


def module_name(ev: Evaluator, module: Module, name: str) -> Value | None:
    """Top-level value of name in a module, from only its binding statements; None if unbound."""
    found = _own_name(ev, module, name)
    if found is None:
        for other in star_imported(ev, module):
            found = _own_name(ev, other, name)
            if found is not None:
                break
    return found


def _own_name(ev: Evaluator, module: Module, name: str) -> Value | None:
    """Top-level value of name in a module, without its star imports; None if unbound."""
    scope = scope_of(ev, module)
    found = scope.names.get(name)
    if found is None and name not in scope.names:
        bindings = module.bindings.get(name)
        if bindings is not None and id(bindings) not in ev.visited:
            # Marked first: a module that needs itself to define a name gets no further.
            ev.visited.add(id(bindings))
            _define(ev, module, name, bindings)
            found = scope.names.get(name)
    if isinstance(found, Imported):
        found = resolve(ev, found)
        with ev.outside_branches():
            ev.journal.write(scope.names, name, found)
    return found


def _define(ev: Evaluator, module: Module, name: str, statements: list[Statement]) -> None:
    if len(ev.frames) > 40:
        return
    calls, ev.calls = ev.calls, ()
    try:
        with ev.outside_branches():
            for statement in statements:
                if not _is_for_other_versions(ev, module, statement):
                    _execute_for(ev, module, name, statement)
    finally:
        ev.calls = calls


def _is_for_other_versions(ev: Evaluator, module: Module, statement: Statement) -> bool:
    """Check whether no permitted version of a library runs a statement: `if torch.__version__ >= "1.7":`."""
    # The path to a node takes a pass over the whole file.
    path = module.path_to(statement) if "__version__" in module.text else ()
    for outer, inner in pairwise(path):
        if isinstance(outer, cst.If) and inner is not outer.test and module.once(outer, _reads_version):
            ev.frames.append(Frame(module, scope_of(ev, module)))
            try:
                known = truth(ev.evaluate(outer.test))
            finally:
                ev.frames.pop()
            if known is not None and known is not (inner is outer.body):
                return True
    return False


def _reads_version(node: cst.If) -> bool:
    return any(isinstance(each, cst.Name) and each.value == "__version__" for each in nodes(node.test))


def _execute_for(ev: Evaluator, module: Module, name: str, statement: Statement) -> None:
    """Run a top-level statement for the sake of one name bound by it."""
    top = scope_of(ev, module)
    scope = top
    if not isinstance(statement, (cst.FunctionDef, cst.ClassDef, cst.Import, cst.ImportFrom)):
        # The other names that it binds keep their values: they are evaluated when needed.
        scope = Scope()
        if name in top.names:
            scope.names[name] = top.names[name]
    ev.frames.append(Frame(module, scope))
    try:
        ev.execute(statement)
    finally:
        ev.frames.pop()
    if scope is not top and name in scope.names:
        ev.journal.write(top.names, name, scope.names[name])


def star_imported(ev: Evaluator, module: Module) -> tuple[Module, ...]:
    """Other modules of the project with names in module by star imports, in the order of their lookup.

    They are found once: star imports in a circle, or of the same modules, have a great many paths.
    """
    known = ev.star_imports.get(module.path)
    if known is None:
        reached: dict[str, Module] = {}
        _follow_star_imports(ev, module, reached)
        known = ev.star_imports[module.path] = tuple(
            other for other in reached.values() if other is not module
        )
    return known


def _follow_star_imports(ev: Evaluator, module: Module, reached: dict[str, Module]) -> None:
    reached[module.path] = module
    for statement in module.bindings.get("*", ()):
        if not isinstance(statement, cst.ImportFrom):
            continue
        named = dotted_name(statement.module) if statement.module is not None else ""
        path = ev.files.locate(module, named, len(statement.relative))
        other = ev.files.module(path) if path is not None else None
        if other is not None and other.path not in reached:
            _follow_star_imports(ev, other, reached)


def resolved(ev: Evaluator, value: Value) -> Value:
    """Value with an unread import resolved."""
    return resolve(ev, value) if isinstance(value, Imported) else value


def resolved_deep(ev: Evaluator, value: Value) -> Value:
    """Value for a library function: unread imports in it are resolved, also in a tuple."""
    if isinstance(value, TupleValue) and any(isinstance(item, Imported) for item in value.items):
        return TupleValue(tuple(resolved(ev, item) for item in value.items), value.names)
    return resolved(ev, value)


def resolve(ev: Evaluator, imported: Imported) -> Value:
    """Value of an import of a project file; Unknown if the file or the name is missing."""
    module = ev.files.module(imported.path)
    if module is None:
        return Unknown(imported.name or "")
    if imported.name is None:
        return ModuleValue(module)
    if imported.name in module.rebound:
        # The import bound the value of that moment, which is not recorded.
        return Unknown(imported.name)
    asked = (imported.path, imported.name)
    if asked in ev.resolving:
        # Two files import the name from each other.
        return Unknown(imported.name)
    ev.resolving.add(asked)
    try:
        value = module_name(ev, module, imported.name)
    finally:
        ev.resolving.discard(asked)
    if value is None:
        # `from package import submodule`
        path = ev.files.locate(module, imported.name, 1) if module.path.endswith("__init__.py") else None
        if path is not None:
            return resolve(ev, Imported(path, None))
        return Unknown(imported.name)
    return value
