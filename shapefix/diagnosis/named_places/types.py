"""Places of settings with a value of the wrong type: a tuple by a comma, a list, a text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnosis.named_places.results import returned_tuples, sample_results, without_result
from shapefix.diagnosis.size_origins import last_name, named_values, option_name
from shapefix.diagnostics import Evidence

_NODES: dict[str, type[ast.expr]] = {"tuple": ast.Tuple, "list": ast.List, "dict": ast.Dict, "set": ast.Set}
_WORD = re.compile(r"\w+")
_SEVERAL = ("+", "*")
_OF_OPTIMIZERS = frozenset({"betas", "eps", "initial_lr", "lr", "momentum", "weight_decay"})


@search_for("compared-types", "size-of-list")
def _settings_of_type(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the settings named by the lines of the stack with a value of a type in the message."""
    names = set(_read_names(failure))
    types = set(_WORD.findall(failure.explanation.message)) & set(_NODES)
    for parsed in failure.files() if types else ():
        for name, value in named_values(parsed.tree):
            for kind in types:
                if name in names and isinstance(value, _NODES[kind]):
                    is_comma = isinstance(value, ast.Tuple) and len(value.elts) == 1
                    why = "; the comma at the end makes it one" if is_comma else ""
                    yield parsed.place(value, f"`{name}` is a {kind} here{why}")
    for parsed, call in failure.calls("add_argument") if "list" in types else ():
        options = [option_name(str(each.value)) for each in call.args if isinstance(each, ast.Constant)]
        given = {each.arg: each.value for each in call.keywords}
        takes = given.get("nargs")
        is_list = isinstance(takes, ast.Constant) and (
            takes.value in _SEVERAL or isinstance(takes.value, int)
        )
        if names & set(options) and (is_list or ast.unparse(given.get("type", takes or call)) == "list"):
            yield parsed.place(call, "with `nargs`, this option is a list" if is_list else "it is a list")


@search_for("list-element")
def _elements(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the returned tuples, and the results of the datasets in the file of the failing line."""
    if failure.fields.get("type") == "tuple":
        yield from returned_tuples(failure)
    yield from sample_results(failure)


@search_for("none-in-batch", "uncollatable-type")
def _missing_results(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the transforms of the project without a `return`, for samples of `None`."""
    if "NoneType" in failure.explanation.message:
        yield from without_result(failure)


@search_for("operand-of-list")
def _set_groups(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the assignments to the settings of an optimizer's groups, `group["lr"] = …`."""
    yield from _settings_of_type(failure)
    for parsed in failure.files("param_groups"):
        for node in ast.walk(parsed.tree):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Subscript):
                if last_name(target) in _OF_OPTIMIZERS:
                    yield parsed.place(node, f"`{last_name(target)}` of a group of the optimizer is set here")


def _read_names(failure: ExplainedFailure) -> Iterator[str]:
    """Yield the names, attributes and keys in the lines of the stack."""
    for _, node in failure.lines():
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield last_name(node)
