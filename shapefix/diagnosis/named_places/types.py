"""Places of settings with a value of the wrong type: a tuple by a comma, a list, a text."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnosis.size_origins import last_name, named_values, option_name
from shapefix.diagnostics import Evidence

_NODES: dict[str, type[ast.expr]] = {"tuple": ast.Tuple, "list": ast.List, "dict": ast.Dict, "set": ast.Set}
_SEVERAL = ("+", "*")


@search_for("compared-types", "size-of-list")
def _settings_of_type(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the settings named by the lines of the stack with a value of a type in the message."""
    names = set(_read_names(failure))
    types = set(failure.fields.values()) & set(_NODES)
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


def _read_names(failure: ExplainedFailure) -> Iterator[str]:
    """Yield the names, attributes and keys in the lines of the stack."""
    for _, node in failure.lines():
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            yield last_name(node)
