"""Repairs of the failing line itself: of an operand, an argument or the called function. All are unsafe."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.fix_makers import end_of, fix_for, insertion, is_place, replacement
from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile
from shapefix.diagnosis.named_places.names import similar_names
from shapefix.diagnosis.size_origins import last_name, option_name
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix

_OF_TENSORS = frozenset({"size", "shape", "device", "dim", "dtype", "ndim", "to", "view"})
"""Attributes of tensors that a model reads first from its input."""
_TOKENIZER = re.compile(r"tok(?:enizer)?$|tokenizer")
_MOST_RENAMED = 20


def _calls(failure: ExplainedFailure, name: str) -> list[tuple[ParsedFile, ast.Call]]:
    """Return the calls of a function or method in the failing line."""
    return [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.Call) and last_name(node.func) == name
    ]


@fix_for("load-without-cuda")
def _load_to_cpu(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Load a checkpoint of a GPU to the CPU."""
    calls = _calls(failure, "load")
    if len(calls) != 1 or not calls[0][1].args:
        return None
    parsed, call = calls[0]
    why = "load the tensors to the CPU"
    for keyword in call.keywords:
        if keyword.arg == "map_location":
            return replacement(parsed, keyword.value, '"cpu"', why)
    last = max((*call.args, *(each.value for each in call.keywords)), key=end_of)
    return insertion(parsed, last, ', map_location="cpu"', why)


@fix_for("inverted-floats")
def _compared_mask(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Compare a mask of floats with zero instead of inverting it."""
    inverted = [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)
    ]
    if len(inverted) != 1:
        return None
    parsed, node = inverted[0]
    return replacement(parsed, node, f"({ast.unparse(node.operand)} == 0)", "compare the mask with zero")


@fix_for("gather-rank")
def _unsqueezed_index(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Add the missing dimension to the index of `x.gather(1, index).squeeze(1)`."""
    squeezed = {
        node.func.value
        for _, node in failure.line()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "squeeze"
    }
    calls = [(parsed, call) for parsed, call in _calls(failure, "gather") if call in squeezed]
    if len(calls) != 1 or len(calls[0][1].args) != 2 or calls[0][1].keywords:
        return None
    parsed, call = calls[0]
    dim, index = call.args
    if not isinstance(index, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)):
        return None
    return insertion(parsed, index, f".unsqueeze({ast.unparse(dim)})", "give the index a dimension more")


@fix_for("joined-scalars")
def _stacked(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Stack scalars instead of joining them."""
    calls = [each for name in ("cat", "concat") for each in _calls(failure, name)]
    if len(calls) != 1 or not isinstance(calls[0][1].func, ast.Attribute):
        return None
    parsed, call = calls[0]
    assert isinstance(call.func, ast.Attribute)
    code = f"{ast.unparse(call.func.value)}.stack"
    return replacement(parsed, call.func, code, "stack the scalars")


@fix_for("inference-tensor-saved", "inference-tensor-written")
def _no_grad(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Use `no_grad` instead of the only `inference_mode` of the project."""
    modes = [
        (parsed, node)
        for parsed in failure.files("inference_mode")
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Attribute) and node.attr == "inference_mode"
    ]
    if len(modes) != 1:
        return None
    parsed, node = modes[0]
    code = f"{ast.unparse(node.value)}.no_grad"
    return replacement(parsed, node, code, "tensors made under `no_grad` can be used in training")


@fix_for("loader-options")
def _without_exclusive(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Remove the exclusive option of a loader, if it is a keyword of the failing call."""
    message = failure.explanation.message
    unwanted: tuple[str, ...] = ("prefetch_factor",) if message.startswith("prefetch_factor") else ()
    if message.startswith("batch_sampler option"):
        unwanted = ("batch_size", "shuffle", "sampler", "drop_last")
    elif "expected unspecified" in message:
        unwanted = (failure.fields["options"],)
    elif message.startswith("persistent_workers"):
        unwanted = ("persistent_workers",)
    for parsed, call in _calls(failure, "DataLoader"):
        edits = tuple(
            edit
            for number, keyword in enumerate(call.keywords)
            if keyword.arg in unwanted and (edit := _without_keyword(parsed, call, number)) is not None
        )
        names = ", ".join(f"`{each.arg}`" for each in call.keywords if each.arg in unwanted)
        if edits:
            return Fix(Applicability.UNSAFE, f"leave {names} out", edits)
    return None


def _without_keyword(parsed: ParsedFile, call: ast.Call, number: int) -> Edit | None:
    """Return the edit to remove a keyword, with the comma before it."""
    before = [*call.args, *(each.value for each in call.keywords[:number])]
    if not before:
        return None
    first = parsed.span(max(before, key=end_of))
    return Edit(first.end().to(parsed.span(call.keywords[number].value).end()), "")


@fix_for("missing-attribute")
def _of_type(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Rename an option, or let a tokenizer return tensors."""
    name, owner = failure.fields["name"], failure.fields["type"]
    if owner == "Namespace":
        return _renamed_option(failure, name)
    if owner == "list" and name in _OF_TENSORS:
        return _tensors_of_tokenizer(failure, evidence)
    if owner in ("float", "int") and name == "backward":
        return _without_item(failure, evidence)
    return None


def _without_item(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Keep the tensors of a loss in the only shown line with `.item()`."""
    lines = [
        edits for each in evidence for parsed in failure.files(".item()") if (edits := _items(parsed, each))
    ]
    distinct = tuple(dict.fromkeys(lines))
    if len(distinct) != 1:
        return None
    return Fix(Applicability.UNSAFE, "keep the tensor: `.item()` is a number without a graph", distinct[0])


def _items(parsed: ParsedFile, place: Evidence) -> tuple[Edit, ...]:
    """Return the edits to remove each `.item()` at a place."""
    return tuple(
        Edit(parsed.span(node.func.value).end().to(parsed.span(node).end()), "")
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"
        if is_place(parsed, node, place)
    )


def _renamed_option(failure: ExplainedFailure, name: str) -> Fix | None:
    """Rename the attribute to the only similar option, wherever the file of the failing line reads it."""
    options = {
        option_name(str(each.value))
        for _, call in failure.calls("add_argument")
        for each in call.args
        if isinstance(each, ast.Constant)
    }
    similar = similar_names(name, options)
    used = [
        (parsed, node)
        for parsed, node in failure.line()
        if isinstance(node, ast.Attribute) and node.attr == name
    ]
    if name in options or len(similar) != 1 or not used:
        return None
    parsed, first = used[0]
    owner = ast.unparse(first.value) if isinstance(first, ast.Attribute) else ""
    edits = tuple(
        Edit(parsed.span(node), f"{owner}.{similar[0]}")
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == owner
    )
    why = f"the option is `{similar[0]}`"
    return Fix(Applicability.UNSAFE, why, edits) if len(edits) <= _MOST_RENAMED else None


def _tensors_of_tokenizer(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Let the only tokenizer among the shown places return tensors."""
    calls = [
        (parsed, node)
        for parsed in failure.files()
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Call) and any(is_place(parsed, node, each) for each in evidence)
        if _TOKENIZER.search(last_name(node.func)) and node.args
        if not any(keyword.arg in ("return_tensors", None) for keyword in node.keywords)
    ]
    if len(calls) != 1:
        return None
    parsed, call = calls[0]
    last = max((*call.args, *(each.value for each in call.keywords)), key=end_of)
    return insertion(parsed, last, ', return_tensors="pt"', "return tensors instead of lists")


@fix_for("missing-key")
def _by_position(failure: ExplainedFailure, evidence: Sequence[Evidence]) -> Fix | None:
    """Read rows of a table by position, `column.iloc[i]`, wherever the function reads one by this index."""
    key = failure.fields["key"]
    if not key.isdigit() or "pandas" not in failure.raised_in:
        return None
    found = [(parsed, node) for parsed, node in failure.line() if _is_row(node)]
    if not found:
        return None
    parsed, first = found[0]
    assert isinstance(first, ast.Subscript)
    index = ast.unparse(first.slice)
    edits = tuple(
        Edit(parsed.span(node.value).end(), ".iloc")
        for node in _same_function(parsed, first)
        if isinstance(node, ast.Subscript) and _is_row(node) and ast.unparse(node.slice) == index
    )
    return Fix(Applicability.UNSAFE, "read the rows by position, not by their label", edits)


def _is_row(node: ast.expr) -> bool:
    """Whether an expression is a value of a column by a variable: `self.df["length"][i]`, `self.y[i]`."""
    is_column = isinstance(node, ast.Subscript) and isinstance(node.value, (ast.Subscript, ast.Attribute))
    if not is_column or not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Name):
        return False
    column = node.value
    if isinstance(column, ast.Attribute):
        return column.attr not in ("loc", "iloc", "values", "at", "iat")
    return (
        isinstance(column, ast.Subscript)
        and isinstance(column.slice, ast.Constant)
        and isinstance(column.slice.value, str)
    )


def _same_function(parsed: ParsedFile, node: ast.expr) -> Iterator[ast.AST]:
    """Yield the nodes of the innermost function around a node; those of its own statement without one."""
    around = [
        each
        for each in ast.walk(parsed.tree)
        if isinstance(each, ast.FunctionDef) and each.lineno <= node.lineno <= (each.end_lineno or 0)
    ]
    yield from ast.walk(max(around, key=lambda each: each.lineno) if around else node)
