"""Repairs of causes without a rule, by the page of the error.

Each of them may be the wrong one of several, or change what the program computes: all are unsafe, unless the
message itself names the only repair.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from difflib import get_close_matches

# Importing a module registers its makers.
from shapefix.diagnosis import operand_fixes  # noqa: F401
from shapefix.diagnosis.fix_makers import MAKERS, end_of, fix_for, insertion, is_place, place_of, replacement
from shapefix.diagnosis.named_places.constructors import constructors
from shapefix.diagnosis.named_places.failures import ExplainedFailure, classes_named
from shapefix.diagnosis.named_places.names import similar_names
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix, Span

_SIMILAR = 0.75
_PREFIXES = ("module.", "_orig_mod.")
_CONVERSIONS = frozenset({"from_numpy", "tensor", "as_tensor"})
_WEIGHT_TYPES = frozenset({"unsigned char", "double", "long", "int", "Byte", "Double", "Long"})
"""The types of inputs that a layer of floats rejects on a CPU, in old and new wordings."""
_TO_NUMPY = frozenset({"numpy", "array", "asarray"})


def traced_fix(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Return the repair of an error with these places of its cause; None if there is not a certain one."""
    makers = MAKERS.get(failure.explanation.name, ())
    return next((fix for maker in makers if (fix := maker(failure, evidence)) is not None), None)


@fix_for("text-as-number", "dropout-range", "optimizer-setting", "operand-types")
def _conversion(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Give an option its type, or convert the text of a setting in the failing call."""
    options = [
        (parsed, node)
        for parsed, node in failure.calls("add_argument")
        if any(is_place(parsed, node, each) and "type=" in each.message for each in evidence)
    ]
    if len(options) == 1:
        parsed, option = options[0]
        kind = next(each.message for each in evidence if "type=" in each.message)
        given = re.search(r"type=\w+", kind)
        last = max((*option.args, *(each.value for each in option.keywords)), key=end_of)
        return insertion(parsed, last, f", {given[0]}" if given else "", "convert the option to a number")
    settings = [each for each in evidence if "as text" in each.message or "in quotes" in each.message]
    if len(settings) != 1:
        return None
    stated = re.match(r"`(\w+)` is text", settings[0].message)
    row = stated[1] if stated is not None else _row(settings[0])
    named = [
        (parsed, keyword.value)
        for parsed, node in failure.line()
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if (name := last_name(keyword.value)) and re.match(rf"\s*[\"']?{name}\b", row)
    ]
    if len(named) != 1:
        return None
    parsed, value = named[0]
    return replacement(parsed, value, f"float({ast.unparse(value)})", "convert the text to a number")


def _row(place: Evidence) -> str:
    """Return the text of a row of a file with settings."""
    try:
        with open(place.span.path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return stream.read().split("\n")[place.span.row - 1]
    except (OSError, IndexError):
        return ""


@fix_for("missing-attribute")
def _similar_attribute(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Rename an attribute of a class of the project to the only similar one."""
    name, owner = failure.fields["name"], failure.fields["type"]
    classes = list(classes_named(failure.frames, failure.folder, owner))
    used = [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.Attribute) and node.attr == name
    ]
    if len(classes) != 1 or len(used) != 1:
        return None
    _, cls = classes[0]
    names = {
        node.attr
        for node in ast.walk(cls)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    names |= {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    similar = similar_names(name, names)
    if name in names or len(similar) != 1:
        return None
    parsed, node = used[0]
    code = f"{ast.unparse(node.value)}.{similar[0]}"
    return replacement(parsed, node, code, f"`{owner}` has `{similar[0]}`")


@fix_for("unexpected-keyword")
def _similar_keyword(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Rename a keyword to the only similar parameter of a function of the project."""
    name = failure.fields["name"]
    keywords = [
        (parsed, keyword)
        for parsed, node in failure.line()
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == name
    ]
    signatures = [
        found[1] for each in evidence if (found := re.search(r"\((.*)\)` is defined", each.message))
    ]
    if len(keywords) != 1 or len(signatures) != 1:
        return None
    parameters = re.findall(r"(\w+)(?=\s*(?:[:=,]|$))", signatures[0])
    similar = get_close_matches(name, [each for each in parameters if each != "self"], 2, 0.7)
    if len(similar) != 1:
        return None
    parsed, keyword = keywords[0]
    span = parsed.span(keyword.value)
    start = place_of(parsed, keyword.lineno, keyword.col_offset)
    before = Span(span.path, start[0], start[1], start[0], start[1] + len(name))
    return Fix(Applicability.UNSAFE, f"the parameter is `{similar[0]}`", (Edit(before, similar[0]),))


@fix_for("module-not-initialized")
def _initialization(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Insert `super().__init__()` into the constructor without it."""
    missing = [each for each in constructors(failure) if not each.calls]
    body = [each for found in missing[:1] for each in found.node.body if not _is_docstring(each)]
    if not body:
        return None
    start = missing[0].parsed.span(body[0])
    indent = " " * (start.column - 1)
    place = Span(start.path, start.row, start.column, start.row, start.column)
    edit = Edit(place, f"super().__init__()\n{indent}")
    return Fix(Applicability.UNSAFE, "initialize the module before its layers", (edit,))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@fix_for("checkpoint-keys")
def _without_prefix(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Take the prefix of a wrapper from the names of a loaded state."""
    _, _, unexpected = failure.explanation.message.partition("Unexpected key(s)")
    names = re.findall(r'"([^"]+)"', unexpected)
    prefixes = [each for each in _PREFIXES if names and all(name.startswith(each) for name in names)]
    loads = [
        (parsed, node.args[0])
        for parsed, node in failure.line()
        if isinstance(node, ast.Call) and last_name(node.func) == "load_state_dict" and node.args
    ]
    if not prefixes or len(loads) != 1:
        return None
    parsed, state = loads[0]
    code = f'{{name.removeprefix("{prefixes[0]}"): value for name, value in {ast.unparse(state)}.items()}}'
    return replacement(parsed, state, code, f"remove `{prefixes[0]}` from the names")


@fix_for("missing-key")
def _similar_key(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Read the only similar key of the shown places."""
    key = failure.fields["key"].strip("'\"")
    used = [
        (parsed, node.slice)
        for parsed, node in failure.line()
        if isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == key
    ]
    keys = {
        text
        for each in evidence
        for parsed in failure.files()
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Dict) and is_place(parsed, node, each)
        for constant in node.keys
        if isinstance(constant, ast.Constant) and isinstance(text := constant.value, str)
    }
    similar = get_close_matches(key, keys, 2, _SIMILAR)
    if not used:
        return _renamed_key(failure, key, evidence)
    if len(used) != 1 or key in keys or len(similar) != 1:
        return None
    parsed, constant = used[0]
    return replacement(parsed, constant, f'"{similar[0]}"', f"the samples have `{similar[0]}`")


def _renamed_key(failure: ExplainedFailure, key: str, evidence: Sequence[Evidence]) -> Fix | None:
    """Rename the only similar key in a dictionary for a library."""
    similar = [each for each in evidence if each.message.startswith("a similar key")]
    found = [
        (parsed, node)
        for parsed in failure.files()
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Constant) and any(f"`{node.value!s}`" in each.message for each in similar)
        if any(is_place(parsed, node, each) for each in similar)
    ]
    if len(similar) != 1 or len(found) != 1:
        return None
    parsed, node = found[0]
    return replacement(parsed, node, f'"{key}"', f"the library reads `{key}`")


@fix_for("negative-stride")
def _copied_array(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Copy a reversed array before its conversion."""
    given = [
        (parsed, node.args[0])
        for parsed, node in failure.line()
        if isinstance(node, ast.Call) and last_name(node.func) in _CONVERSIONS and node.args
    ]
    if len(given) != 1 or not isinstance(given[0][1], (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
        return None
    parsed, value = given[0]
    return insertion(parsed, value, ".copy()", "copy the reversed array", Applicability.SAFE)


@fix_for("weight-type")
def _float_input(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Convert the input of the only call with one argument to the floats of the layer."""
    first, second = failure.fields["first"], failure.fields["second"]
    kind = first.removeprefix("torch.").removesuffix("Tensor")
    if kind not in _WEIGHT_TYPES or second not in ("float", "torch.FloatTensor"):
        return None
    calls = [
        (parsed, node.args[0])
        for parsed, node in failure.line()
        if isinstance(node, ast.Call)
        and len(node.args) == 1
        and not node.keywords
        and isinstance(node.args[0], ast.Name)
    ]
    if len(calls) != 1:
        return None
    parsed, value = calls[0]
    return insertion(parsed, value, ".float()", "convert the input to the weights' dtype")


@fix_for("numpy-of-gpu")
def _on_cpu(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Copy a tensor to the CPU before the only conversion to NumPy."""
    calls = [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.Call) and last_name(node.func) in _TO_NUMPY
    ]
    if len(calls) != 1:
        return None
    parsed, call = calls[0]
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr == "numpy" and not call.args
    value = call.func.value if is_method and isinstance(call.func, ast.Attribute) else None
    value = value or (call.args[0] if call.args else None)
    if not isinstance(value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript)):
        return None
    return insertion(parsed, value, ".cpu()", "copy the tensor to the CPU", Applicability.SAFE)
