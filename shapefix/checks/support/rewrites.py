"""Edits of statements and calls in the style of the surrounding code."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support.syntax import enclosing, enclosing_line
from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.interpreter.modules import Module, Place


def line_of(place: Place, seen_from: Module) -> str:
    """Return `line 9` for a place in the same file, `data.py:9` for another file."""
    span = place.span
    if place.module is seen_from:
        return f"line {span.row}"
    return f"{span.path.replace(chr(92), '/').rpartition('/')[2]}:{span.row}"


def unsafe_or_advice(message: str, edit: Edit | None) -> Fix:
    """Return an unsafe fix of one edit; without an edit its message as advice."""
    if edit is None:
        return Fix(Applicability.DISPLAY, message, ())
    return Fix(Applicability.UNSAFE, message, (edit,))


def without_statement(place: Place) -> Edit | None:
    """Return the edit to remove a simple statement; None for the only one of its block."""
    line = enclosing_line(place)
    if line is None or len(line.body) != 1:
        return None
    block = enclosing(place.module, line)[-2]
    if isinstance(block, (cst.IndentedBlock, cst.Module)) and len(block.body) < 2:
        return None
    span = place.module.span(line)
    return Edit(Span(span.path, span.row, 1, span.end_row + 1, 1), "")


def after_statement(place: Place, code: str) -> Edit | None:
    """Return the edit to insert a line of code after the statement around place."""
    line = enclosing_line(place)
    if line is None:
        return None
    span = place.module.span(line)
    rows = place.module.text.split("\n")
    first = rows[span.row - 1]
    indent = first[: len(first) - len(first.lstrip())]
    rest = rows[span.end_row - 1][span.end_column - 1 :]
    # Nothing can follow a comment or another statement on the same line.
    end = end_of_line(rows, span) if rest.strip() else span.end()
    return Edit(end, f"\n{indent}{code}")


def end_of_line(rows: list[str], span: Span) -> Span:
    """Return the end of the last line of a statement, after its comment."""
    column = len(rows[span.end_row - 1].rstrip("\r")) + 1
    return Span(span.path, span.end_row, column, span.end_row, column)


def before_statement(place: Place, code: str) -> Edit | None:
    """Return the edit to insert a line of code before the statement around place."""
    line = enclosing_line(place)
    if line is None:
        return None
    indent = _indent(place.module, line)
    return None if indent is None else Edit(place.module.span(line).start(), f"{code}\n{indent}")


def inside_block(place: Place, header: str) -> Edit | None:
    """Return the edit to put the one-line statement around place into a block: `with torch.no_grad():`."""
    line = enclosing_line(place)
    if line is None or len(line.body) != 1:
        return None
    span, indent = place.module.span(line), _indent(place.module, line)
    if indent is None or span.row != span.end_row:
        return None
    step = "\t" if indent.startswith("\t") else "    "
    return Edit(span.start(), f"{header}\n{indent}{step}")


def _indent(module: Module, line: cst.SimpleStatementLine) -> str | None:
    """Return the indentation of a line; None on the line of its block header: `if norm: clip(...)`."""
    span = module.span(line)
    first = module.text.split("\n")[span.row - 1]
    indent = first[: len(first) - len(first.lstrip())]
    return indent if len(indent) == span.column - 1 else None


def renamed(module: Module, function: cst.BaseExpression, name: str) -> Edit:
    """Return the edit to call another function of the same namespace."""
    last = function.attr if isinstance(function, cst.Attribute) else function
    return Edit(module.span(last), name)


def appended(module: Module, call: cst.Call, argument: str) -> Edit:
    """Return the edit to add a last argument to a call."""
    if not call.args:
        span = module.span(call)
        return Edit(
            Span(span.path, span.end_row, span.end_column - 1, span.end_row, span.end_column - 1), argument
        )
    last = call.args[-1]
    return Edit(module.span(last).end(), following(module, last, call, argument))


def following(module: Module, last: cst.CSTNode, header: cst.CSTNode, code: str) -> str:
    """Return the text of a further item of a list, on a line of its own if the last item has one.

    header is the node at the start of the list.
    """
    span = module.span(last)
    margin = module.text.split("\n")[span.row - 1][: span.column - 1]
    on_own_line = not margin.strip() and span.row != module.span(header).row
    return f",\n{margin}{code}" if on_own_line else f", {code}"


def behind(module: Module, argument: cst.Arg, text: str) -> Edit:
    """Return the edit to add an argument after another one."""
    span = module.span(argument)
    return Edit(span.end(), f", {text}")


def replaced(module: Module, argument: cst.Arg, text: str) -> Edit:
    """Return the edit to replace an argument."""
    return Edit(module.span(argument), text)


def dropped(module: Module, call: cst.Call, argument: cst.Arg) -> Edit:
    """Return the edit to remove an argument other than the first."""
    before = call.args[call.args.index(argument) - 1]
    start, end = module.span(before), module.span(argument)
    rows = module.text.split("\n")
    first, rest = rows[end.row - 1][: end.column - 1], rows[end.end_row - 1][end.end_column - 1 :]
    between = "\n".join(rows[start.end_row - 1 : end.row])[start.end_column - 1 :]
    kept = between[: len(between) - len(rows[end.row - 1]) + end.column - 1]
    comment = rest.lstrip(" \t,")
    if not first.strip() and "#" in kept + comment and comment[:1] in ("", "#", "\r"):
        return Edit(Span(end.path, end.row, 1, end.end_row + 1, 1), "")
    return Edit(start.end().to(end), kept if "#" in kept else "")


def argument(call: cst.Call, position: int, name: str) -> cst.Arg | None:
    """Return the argument of a call at this position or with this name."""
    for index, given in enumerate(call.args):
        if given.star:
            return None
        if given.keyword is not None and given.keyword.value == name:
            return given
        if given.keyword is None and index == position:
            return given
    return None


def argument_name(given: cst.Arg | None) -> str:
    """Return the name in a plain-name argument; empty for any other."""
    return given.value.value if given is not None and isinstance(given.value, cst.Name) else ""


def method_called(module: Module, node: cst.BaseExpression, method: str) -> Edit:
    """Return the edit to call a method of an expression: `x.flatten(1)`, `(a + b).flatten(1)`."""
    span = module.span(node)
    code = module.code(node)
    if isinstance(node, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        end = span.end()
        return Edit(end, f".{method}")
    if not node.lpar:
        return Edit(span, f"({code}).{method}")
    # The span is inside of existing parentheses.
    before = node.rpar[0].whitespace_before
    if len(node.rpar) == 1 and isinstance(before, cst.SimpleWhitespace) and "\n" not in before.value:
        column = span.end_column + len(before.value) + 1
        return Edit(Span(span.path, span.end_row, column, span.end_row, column), f".{method}")
    return Edit(span, f"{code}.{method}")


def without_short_batch(loader: Place | None) -> list[Fix]:
    """Return the fix to drop the smaller last batch of a DataLoader; empty for unpacked arguments."""
    call = None if loader is None else loader.node
    if loader is None or not isinstance(call, cst.Call) or any(each.star for each in call.args):
        return []
    given = argument(call, 8, "drop_last")
    if given is None:
        edit = appended(loader.module, call, "drop_last=True")
    elif isinstance(given.value, cst.Name) and given.value.value == "False":
        edit = Edit(loader.module.span(given.value), "True")
    else:
        return []
    return [Fix(Applicability.UNSAFE, "drop a smaller last batch: `drop_last=True`", (edit,))]
