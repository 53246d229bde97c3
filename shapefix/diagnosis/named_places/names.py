"""Places of unknown names: attributes of a class, variables of a function."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from shapefix.diagnosis.named_places.failures import ExplainedFailure, classes_named, parsed_file, search_for
from shapefix.diagnosis.named_places.results import returned_tuples
from shapefix.diagnosis.named_places.training import logged_names
from shapefix.diagnosis.size_origins import last_name, option_name
from shapefix.diagnostics import Evidence

_MOST_ATTRIBUTES = 6
_SHORTEST = 3
"""The fewest letters of an abbreviation."""


@search_for("missing-attribute")
def _similar_attribute(failure: ExplainedFailure) -> Iterator[Evidence]:
    if failure.fields["type"] == "AttributeDict":
        yield from _stored_parameters(failure)
    elif failure.fields["type"] == "Namespace":
        yield from _missing_option(failure)
    else:
        yield from _missing_attribute(failure)
        kind = failure.fields["type"]
        if kind == "tuple":
            yield from _predictions(failure)
            yield from returned_tuples(failure)
        elif kind == "list":
            yield from _batched_maps(failure)
        elif kind == "NoneType":
            yield from _unset_datamodule(failure)


def _batched_maps(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the `batched=True` of a `map` in the stack."""
    for parsed, node in failure.lines():
        for keyword in node.keywords if isinstance(node, ast.Call) and last_name(node.func) == "map" else ():
            if keyword.arg == "batched" and ast.unparse(keyword.value) == "True":
                yield parsed.place(keyword.value, "with `batched=True`, the function gets lists of values")


def _unset_datamodule(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the call of the trainer without a data module."""
    reads = {node.attr for _, node in failure.line() if isinstance(node, ast.Attribute)}
    for parsed, node in failure.lines() if "datamodule" in reads else ():
        if isinstance(node, ast.Call) and last_name(node.func) in ("fit", "validate", "test", "predict"):
            yield parsed.place(node, "no `datamodule` is passed here")


def _predictions(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the settings for predictions of several tensors, and the trainer with the failing metric."""
    reads = {node.attr for _, node in failure.line() if isinstance(node, ast.Attribute)}
    if "predictions" not in reads:
        return
    for name in ("output_hidden_states", "output_attentions"):
        for parsed in failure.files(name):
            for node in ast.walk(parsed.tree):
                if isinstance(node, ast.keyword) and node.arg == name and ast.unparse(node.value) == "True":
                    yield parsed.place(node.value, "with it, `predictions` is a tuple: take its first item")
    for parsed in failure.files("compute_metrics"):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.keyword) and node.arg == "compute_metrics":
                yield parsed.place(node.value, "the trainer passes all outputs of the model to this function")


def _missing_option(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the option of the command line with a similar name, or the parser without it."""
    name = failure.fields["name"]
    options: dict[str, Evidence] = {}
    for parsed, call in failure.calls("add_argument"):
        for option in (str(each.value) for each in call.args if isinstance(each, ast.Constant)):
            options[option_name(option)] = parsed.place(call, f"a similar option: `{option}`")
    if name in options:
        return
    for similar in similar_names(name, options)[:1]:
        yield options[similar]
    for parsed, call in failure.calls("ArgumentParser"):
        yield parsed.place(call, f"no option of this parser sets `{name}`")


@search_for("unpickled-name")
def _moved_definition(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the class or function with the name in a saved object."""
    name, module = failure.fields["name"], failure.fields["module"]
    for parsed in failure.files(name):
        for node in ast.walk(parsed.tree):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == name:
                yield parsed.place(node, f"`{name}` is defined here, and not in `{module}`")


def _missing_attribute(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the class of the project with the missing attribute, and an attribute with a similar name."""
    name, owner = failure.fields["name"], failure.fields["type"]
    found = list(classes_named(failure.frames, failure.folder, owner))
    if len(found) != 1:
        return
    parsed, cls = found[0]
    attributes = _attributes(cls)
    if name in attributes:
        for node in attributes[name]:
            yield parsed.place(node, f"`{name}` is set here, too late or in another branch")
        return
    for similar in similar_names(name, attributes)[:1]:
        yield parsed.place(attributes[similar][0], f"a similar name: `{similar}`")
    listed = ", ".join(f"`{each}`" for each in list(attributes)[:_MOST_ATTRIBUTES])
    more = " and others" if len(attributes) > _MOST_ATTRIBUTES else ""
    has = f"it has {listed}{more}" if attributes else "it sets none"
    yield parsed.place(cls, f"`{owner}` never sets `{name}`; {has}")


def similar_names(name: str, names: Collection[str]) -> list[str]:
    """Return the names similar to a wrong one: close ones, and its long forms."""
    close = get_close_matches(name, [each for each in names if each != name], 2, 0.75)
    short = [each for each in names if _abbreviates(name, each) or _abbreviates(each, name)]
    return list(dict.fromkeys((*close, *short)))


def _abbreviates(short: str, name: str) -> bool:
    """Check whether a name has the letters of a short one in their order, as `attention` has `attn`."""
    letters = iter(name)
    is_short = _SHORTEST <= len(short) < len(name)
    return is_short and short[0] == name[0] and all(each in letters for each in short)


def _attributes(cls: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    """Return the attributes of a class with the statements of their assignments, and its methods."""
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(cls):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = [
                each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.expr)
            ]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                found.setdefault(target.attr, []).append(node)  # type: ignore[arg-type]
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("__"):
            found.setdefault(method.name, []).append(method)
    return found


def _stored_parameters(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the `__init__` of the class of a failing line with `self.hparams`."""
    frame = failure.frames[-1]
    parsed = parsed_file(frame.span.path, "save_hyperparameters")
    for cls in ast.walk(parsed.tree) if parsed is not None else ():
        if parsed is None or not isinstance(cls, ast.ClassDef):
            continue
        if not cls.lineno <= frame.span.row + parsed.whole.rows_before <= (cls.end_lineno or 0):
            continue
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                yield parsed.place(method, "`self.hparams` has the parameters of this method")


@search_for("missing-forward")
def _without_forward(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the class without `forward`, and a method with a similar name."""
    for parsed, cls in classes_named(failure.frames, failure.folder, failure.fields["type"]):
        methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
        for similar in get_close_matches("forward", list(methods), 1, 0.6):
            yield parsed.place(methods[similar], f"`{similar}` is not `forward`")
        yield parsed.place(cls, f"`{cls.name}` has no method `forward`")


@search_for("unset-variable")
def _conditional_assignments(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the assignments of an unset variable in the function of the failing line."""
    name, row = failure.fields["name"], failure.frames[-1].span.row
    parsed = parsed_file(failure.frames[-1].span.path)
    for function in ast.walk(parsed.tree) if parsed is not None else ():
        if parsed is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        shown = row + parsed.whole.rows_before
        if not function.lineno <= shown <= (function.end_lineno or 0):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.For, ast.Delete, ast.With)):
                stored = {
                    each.id
                    for each in _own_expressions(node)
                    if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
                }
                if name in stored and node.lineno != shown:
                    yield parsed.place(node, f"`{name}` is set only if this line runs")


def _own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without those of its body."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


@search_for("unknown-name")
def _similar_names(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the assignments, functions and imports with a name similar to an unknown one."""
    name = failure.fields["name"]
    parsed = parsed_file(failure.frames[-1].span.path)
    if parsed is None:
        return
    found: dict[str, ast.stmt] = {}
    for node in ast.walk(parsed.tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, node)
    if name in found:
        yield parsed.place(found[name], f"`{name}` is set here, later or in another function")
        return
    for similar in get_close_matches(name, list(found), 1, 0.8):
        yield parsed.place(found[similar], f"a similar name: `{similar}`")


@search_for("missing-key")
def _similar_keys(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the keys of the project's dictionaries with a name similar to the missing one."""
    name = failure.fields["key"]
    found: dict[str, list[Evidence]] = {}
    for parsed in failure.files() if len(name) >= _SHORTEST and not name.isdigit() else ():
        for key in _keys(parsed.tree):
            found.setdefault(str(key.value), []).append(parsed.place(key, f"a similar key: `{key.value!s}`"))
    if name not in found:
        for similar in similar_names(name, found):
            yield from found[similar]
        # The Trainer puts this prefix before the names of `compute_metrics`.
        for parsed in failure.files("metric") if name.startswith("eval_") else ():
            for key in logged_names(parsed.tree):
                yield parsed.place(key, f"the metrics have `{key.value!s}`, with `eval_` before it")


def _keys(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the keys of dictionaries: of literals, and of assignments to an item."""
    for node in ast.walk(tree):
        keys = node.keys if isinstance(node, ast.Dict) else ()
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            keys = [node.slice]
        yield from (each for each in keys if isinstance(each, ast.Constant) and isinstance(each.value, str))
