"""Repairs of causes without a rule, by the page of the error.

Each of them may be the wrong one of several, or change what the program computes: all are unsafe, unless the
message itself names the only repair.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches

from shapefix.diagnosis.named_places.constructors import constructors
from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile, classes_named
from shapefix.diagnosis.named_places.names import similar_names
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix, Span

_SIMILAR = 0.75
_PREFIXES = ("module.", "_orig_mod.")
_CONVERSIONS = frozenset({"from_numpy", "tensor", "as_tensor"})
_WEIGHT_TYPES = frozenset({"unsigned char", "double", "long", "int", "Byte", "Double", "Long"})
"""The types of inputs that a layer of floats rejects on a CPU, in old and new wordings."""
_TO_NUMPY = frozenset({"numpy", "array", "asarray"})

_Maker = Callable[[ExplainedFailure, Sequence[Evidence]], Fix | None]
_MAKERS: dict[str, _Maker] = {}


def traced_fix(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Return the repair of an error with these places of its cause; None if there is not a certain one."""
    maker = _MAKERS.get(failure.explanation.name)
    return maker(failure, evidence) if maker is not None else None


def _fix_for(*pages: str) -> Callable[[_Maker], _Maker]:
    def register(maker: _Maker) -> _Maker:
        _MAKERS.update(dict.fromkeys(pages, maker))
        return maker

    return register


@_fix_for("text-as-number")
def _conversion(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Give an option its type, or convert the text of a setting in the failing call."""
    options = [
        (parsed, node)
        for parsed, node in failure.calls("add_argument")
        if any(_is_place(parsed, node, each) and "type=" in each.message for each in evidence)
    ]
    if len(options) == 1:
        parsed, option = options[0]
        kind = next(each.message for each in evidence if "type=" in each.message)
        given = re.search(r"type=\w+", kind)
        last = max((*option.args, *(each.value for each in option.keywords)), key=_end)
        return _insertion(parsed, last, f", {given[0]}" if given else "", "convert the option to a number")
    settings = [each for each in evidence if "as text" in each.message]
    if len(settings) != 1:
        return None
    row = _row(settings[0])
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
    return _replacement(parsed, value, f"float({ast.unparse(value)})", "convert the text to a number")


def _row(place: Evidence) -> str:
    """Return the text of a row of a file with settings."""
    try:
        with open(place.span.path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return stream.read().split("\n")[place.span.row - 1]
    except (OSError, IndexError):
        return ""


@_fix_for("missing-attribute")
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
    return _replacement(parsed, node, code, f"`{owner}` has `{similar[0]}`")


@_fix_for("unexpected-keyword")
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
    start = _place_of(parsed, keyword.lineno, keyword.col_offset)
    before = Span(span.path, start[0], start[1], start[0], start[1] + len(name))
    return Fix(Applicability.UNSAFE, f"the parameter is `{similar[0]}`", (Edit(before, similar[0]),))


@_fix_for("module-not-initialized")
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


@_fix_for("checkpoint-keys")
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
    return _replacement(parsed, state, code, f"remove `{prefixes[0]}` from the names")


@_fix_for("missing-key")
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
        if isinstance(node, ast.Dict) and _is_place(parsed, node, each)
        for constant in node.keys
        if isinstance(constant, ast.Constant) and isinstance(text := constant.value, str)
    }
    similar = get_close_matches(key, keys, 2, _SIMILAR)
    if len(used) != 1 or key in keys or len(similar) != 1:
        return None
    parsed, constant = used[0]
    return _replacement(parsed, constant, f'"{similar[0]}"', f"the samples have `{similar[0]}`")


@_fix_for("negative-stride")
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
    return _insertion(parsed, value, ".copy()", "copy the reversed array", Applicability.SAFE)


@_fix_for("weight-type")
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
    return _insertion(parsed, value, ".float()", "convert the input to the weights' dtype")


@_fix_for("numpy-of-gpu")
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
    return _insertion(parsed, value, ".cpu()", "copy the tensor to the CPU", Applicability.SAFE)


def _is_place(parsed: ParsedFile, node: ast.expr, place: Evidence) -> bool:
    path, row = parsed.whole.place(node.lineno)
    return path == place.span.path and place.span.row <= row <= place.span.end_row


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


def _place_of(parsed: ParsedFile, row: int, offset: int) -> tuple[int, int]:
    """Return the row and column of an offset in bytes; the row is that in the cell of a notebook."""
    line = parsed.whole.text.split("\n")[row - 1]
    return parsed.whole.place(row)[1], len(line.encode()[:offset].decode(errors="replace")) + 1


def _replacement(parsed: ParsedFile, node: ast.expr, code: str, why: str) -> Fix:
    return Fix(Applicability.UNSAFE, why, (Edit(parsed.span(node), code),))


def _insertion(
    parsed: ParsedFile, node: ast.expr, code: str, why: str, how: Applicability = Applicability.UNSAFE
) -> Fix:
    """Return the insertion of code after an expression."""
    span = parsed.span(node)
    after = Span(span.path, span.end_row, span.end_column, span.end_row, span.end_column)
    return Fix(how, why, (Edit(after, code),))
