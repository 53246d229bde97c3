"""Results of functions: returned tuples, samples of datasets, results without a `return`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.bindings import own_nodes
from shapefix.diagnosis.named_places.failures import ExplainedFailure, parsed_file
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Evidence

_RETURNING = frozenset({"forward", "__call__", "predict_step", "training_step", "validation_step"})


def returned_tuples(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the tuples returned by the modules of the project, and by the steps of Lightning."""
    for parsed in failure.files("def "):
        for function in ast.walk(parsed.tree):
            if isinstance(function, ast.FunctionDef) and function.name in _RETURNING:
                for node in ast.walk(function):
                    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                        yield parsed.place(node, f"`{function.name}` returns a tuple here")


def returned_texts(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the texts in dictionaries returned by the functions called on the lines of the stack."""
    called = {last_name(node.func) for _, node in failure.lines() if isinstance(node, ast.Call)}
    for parsed in failure.files("def "):
        for function in ast.walk(parsed.tree):
            if not isinstance(function, ast.FunctionDef) or function.name not in called:
                continue
            for node in own_nodes(function):
                value = node.value if isinstance(node, ast.Return) else None
                for each in value.values if isinstance(value, ast.Dict) else ():
                    if isinstance(each, ast.Constant) and isinstance(each.value, str):
                        yield parsed.place(each, "this value is text")


def sample_results(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the results of the datasets in the file of the failing line."""
    parsed = parsed_file(failure.frames[-1].span.path)
    for method in ast.walk(parsed.tree) if parsed is not None else ():
        if parsed is not None and isinstance(method, ast.FunctionDef) and method.name == "__getitem__":
            for each in ast.walk(method):
                if isinstance(each, ast.Return):
                    yield parsed.place(each, "a sample is returned here")


def without_result(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the functions with an assignment at their end, and without a `return`."""
    for parsed in failure.files("def "):
        for function in ast.walk(parsed.tree):
            if not isinstance(function, ast.FunctionDef) or function.name == "__init__":
                continue
            last = function.body[-1]
            is_result = isinstance(last, ast.Assign) and isinstance(last.targets[0], ast.Name)
            inner = list(own_nodes(function))
            returns = any(isinstance(each, (ast.Return, ast.Yield)) for each in inner)
            is_global = any(isinstance(each, (ast.Global, ast.Nonlocal)) for each in inner)
            if is_result and not returns and not is_global and function.args.args:
                yield parsed.place(last, f"`{function.name}` ends here, and returns nothing")
