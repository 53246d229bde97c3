"""Exception handlers: do they swallow the exception, and are they for out-of-memory errors?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Flag, StrEnum, auto

import libcst as cst

from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Edit, Span
from shapefix.domains.try_blocks import TryBlock
from shapefix.interpreter.modules import Module, children, dotted_name, nodes, target_names

ExceptHandler = cst.ExceptHandler | cst.ExceptStarHandler

_PRINTING = frozenset({"print", "pprint", "print_exc", "print_exception", "print_stack", "secho", "echo"})
"""Functions and methods that write to the terminal."""
_TELLING = _PRINTING | {
    "debug",
    "info",
    "warning",
    "warn",
    "error",
    "exception",
    "critical",
    "log",
    "format_exc",
}
"""Functions and methods that only report."""
_TIDYING = frozenset(
    {
        "empty_cache",
        "collect",
        "ipc_collect",
        "zero_grad",
        "synchronize",
        "reset_peak_memory_stats",
        "flush",
        "sleep",
        "set_postfix",
        "set_description",
        "type",
        "str",
        "repr",
        "len",
        "round",
        "join",
        "format",
        "get",
        "memory_allocated",
        "memory_reserved",
        "memory_summary",
    }
)
"""Functions and methods that clean up, or format the report."""
_TEXTS = ("format_exc", "exc_info")
"""Functions that tell what the exception is."""
_STREAMS = ("tqdm.write", "sys.stderr.write", "sys.stdout.write")
_MEMORY = re.compile(r"(?:out of|gpu|cuda|enough|insufficient) memory|\boom\b|\bvram\b", re.IGNORECASE)
_BATCH_SIZE = re.compile(r"batch_?size|^bs(?:z)?$", re.IGNORECASE)
_DEEPEST = 2


class Ends(Flag):
    """How the paths through a block end."""

    FALLS = auto()
    """After the block; the exception is reported at most."""
    SWALLOWS = auto()
    """By a `continue`, or by a bare `return`."""
    DEALS = auto()
    """With a reaction to the exception: it is raised, counted, stored or replaced."""


def is_swallowing(module: Module, handler: ExceptHandler) -> bool:
    """Whether a handler only reports an exception, and continues.

    If it tests the exception, the branch for other errors counts.
    """
    return not ends(module, handler, handler.body.body) & Ends.DEALS


class Report(StrEnum):
    """How a handler reports each exception, as a verb."""

    PRINTS = "prints"
    LOGS = "logs"
    COUNTS = "counts"


def report_of(module: Module, handler: ExceptHandler, depth: int = 0) -> Report | None:
    """Return how a handler reports every exception; None if some of them leave no trace."""
    return _report_in(module, handler, handler.body.body, depth)


def _report_in(
    module: Module, handler: ExceptHandler, block: Sequence[cst.CSTNode], depth: int
) -> Report | None:
    counts = False
    for statement in block:
        if isinstance(statement, cst.If) and statement.orelse is not None and not depth:
            both = _report_of_branches(module, handler, statement)
            if both is not None:
                return both
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
                found = _report_of_call(module, handler, small.value, depth)
                if found is not None:
                    return found
            counts = counts or (
                isinstance(small, cst.AugAssign)
                and isinstance(small.operator, cst.AddAssign)
                and isinstance(small.value, cst.Integer)
            )
    return Report.COUNTS if counts else None


def _report_of_branches(module: Module, handler: ExceptHandler, node: cst.If) -> Report | None:
    """Return the report of the last branch if all branches report."""
    first = _report_in(module, handler, node.body.body, 0)
    if first is None or node.orelse is None:
        return None
    if isinstance(node.orelse, cst.If):
        return _report_of_branches(module, handler, node.orelse)
    return _report_in(module, handler, node.orelse.body.body, 0)


def _report_of_call(module: Module, handler: ExceptHandler, call: cst.Call, depth: int) -> Report | None:
    dotted = dotted_name(call.func)
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted
    if dotted in _STREAMS or last.startswith("print_") or last in _PRINTING:
        return Report.PRINTS
    if (last in _TELLING and last not in _TEXTS) or last.startswith("log_"):
        return Report.LOGS
    own = module.bindings.get(last, ()) if isinstance(call.func, cst.Name) and depth < _DEEPEST else ()
    if len(own) == 1 and isinstance(own[0], cst.FunctionDef):
        return _report_in(module, handler, own[0].body.body, depth + 1)
    return None


def tells_only(module: Module, handler: ExceptHandler) -> bool:
    """Whether a handler only reports an exception before its last statement."""
    *before, last = handler.body.body
    if isinstance(last, cst.SimpleStatementLine) and len(last.body) > 1:
        return False
    return ends(module, handler, before) == Ends.FALLS


def ends(module: Module, handler: ExceptHandler, block: Sequence[cst.CSTNode], depth: int = 0) -> Ends:
    """Return how the paths through a block of a handler end."""
    found = Ends(0)
    for node in block:
        if isinstance(node, cst.SimpleStatementLine):
            for small in node.body:
                if isinstance(small, cst.Continue) or (isinstance(small, cst.Return) and depth):
                    return found | Ends.SWALLOWS
                if not _is_harmless(module, handler, small, depth):
                    return found | Ends.DEALS
        elif isinstance(node, cst.If):
            several = _branches(module, handler, node, depth)
            found |= several & ~Ends.FALLS
            if not several & Ends.FALLS:
                return found
        else:
            return found | Ends.DEALS
    return found | Ends.FALLS


def _branches(module: Module, handler: ExceptHandler, node: cst.If, depth: int) -> Ends:
    other = Ends.FALLS
    if isinstance(node.orelse, cst.If):
        other = _branches(module, handler, node.orelse, depth)
    elif node.orelse is not None:
        other = ends(module, handler, node.orelse.body.body, depth)
    if tests_exception(handler, node.test):
        # `if "out of memory" not in str(e): raise`: only the expected error continues.
        return Ends.DEALS if _raises(node.body) else other
    return other | ends(module, handler, node.body.body, depth)


def _raises(block: cst.BaseSuite) -> bool:
    last = block.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        last = last.body[-1]
    return isinstance(last, cst.Raise)


def tests_exception(handler: ExceptHandler, test: cst.BaseExpression) -> bool:
    """Whether a condition reads the exception or its text: `"out of memory" in str(e)`."""
    return not _names_of_exception(handler).isdisjoint(_names(test))


def _names_of_exception(handler: ExceptHandler) -> set[str]:
    """Return the name of the exception and the names computed from it: `message = str(e)`."""
    found = {bound_name(handler), *_TEXTS} - {""}
    for statement in handler.body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            for small in statement.body:
                if isinstance(small, cst.Assign) and not found.isdisjoint(_names(small.value)):
                    found.update(name for each in small.targets for name in target_names(each.target))
    return found


def bound_name(handler: ExceptHandler) -> str:
    """Return `e` of `except RuntimeError as e`, or an empty string if the exception has no name."""
    node = handler.name.name if handler.name is not None else None
    return node.value if isinstance(node, cst.Name) else ""


def _is_harmless(module: Module, handler: ExceptHandler, node: cst.CSTNode, depth: int) -> bool:
    if isinstance(node, (cst.Pass, cst.Del, cst.Import, cst.ImportFrom)):
        return True
    if isinstance(node, cst.Expr):
        return _only_tells(module, handler, node.value, depth)
    if isinstance(node, cst.Assign):
        names = {name for target in node.targets for name in target_names(target.target)}
        plain = all(isinstance(target.target, cst.Name) for target in node.targets)
        outside = _names_outside(module, handler)
        return plain and names.isdisjoint(outside) and _only_tells(module, handler, node.value, depth)
    if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
        # An unused count.
        return node.target.value not in module.once(module.tree, _read_names)
    return False


def _only_tells(module: Module, handler: ExceptHandler, node: cst.CSTNode, depth: int) -> bool:
    """Whether an expression calls only functions for reports or cleanup."""
    if isinstance(node, (cst.Await, cst.Yield, cst.NamedExpr)):
        return False
    if isinstance(node, cst.Call) and not _is_known(module, handler, node, depth):
        return False
    return all(_only_tells(module, handler, child, depth) for child in children(node))


def _is_known(module: Module, handler: ExceptHandler, call: cst.Call, depth: int) -> bool:
    dotted = dotted_name(call.func)
    last = call.func.attr.value if isinstance(call.func, cst.Attribute) else dotted
    if last in _TELLING or last in _TIDYING or dotted in _STREAMS:
        return True
    if last.startswith(("print_", "log_")):
        return True
    if isinstance(call.func, cst.Name) and depth < _DEEPEST:
        own = module.bindings.get(last, ())
        return len(own) == 1 and _tidies(module, handler, own[0], depth)
    return False


def _tidies(module: Module, handler: ExceptHandler, own: cst.CSTNode, depth: int) -> bool:
    """Whether a function of the file only reports or cleans up: `def clear_memory(): …`."""
    if not isinstance(own, cst.FunctionDef):
        return False
    return not ends(module, handler, own.body.body, depth + 1) & Ends.DEALS


def is_swallowed_again(event: TryBlock) -> bool:
    """Whether an outer `try`, here or in a caller, swallows an exception raised by a handler of this one."""
    for place in (event.place, *reversed(event.calls)):
        around = enclosing(place.module, place.node)
        inner = max(
            (number for number, node in enumerate(around) if isinstance(node, cst.FunctionDef)), default=0
        )
        for outer, block in zip(around[inner:], around[inner + 1 :], strict=False):
            if not isinstance(outer, (cst.Try, cst.TryStar)) or block is not outer.body:
                continue
            if any(_is_broad(each) and is_swallowing(place.module, each) for each in outer.handlers):
                return True
    return False


_BROAD = frozenset({"Exception", "BaseException", "RuntimeError"})


def _is_broad(handler: ExceptHandler) -> bool:
    """Whether a handler catches torch's exceptions."""
    return handler.type is None or not _BROAD.isdisjoint(_names(handler.type))


def means_memory(module: Module, handler: ExceptHandler) -> bool:
    """Whether a handler frees memory, or mentions it."""
    return speaks_of_memory(handler) or any(
        isinstance(node, cst.Attribute) and node.attr.value == "empty_cache" for node in nodes(handler.body)
    )


def speaks_of_memory(handler: ExceptHandler) -> bool:
    """Whether a string in a handler mentions running out of memory."""
    return any(
        isinstance(node, (cst.SimpleString, cst.FormattedStringText)) and bool(_MEMORY.search(node.value))
        for node in nodes(handler.body)
    )


def shrinks_batches(handler: ExceptHandler) -> str:
    """Return the name of the batch size reduced by a handler, or an empty string."""
    for node in nodes(handler.body):
        target: cst.BaseExpression | None = None
        if isinstance(node, cst.AugAssign) and isinstance(
            node.operator, (cst.FloorDivideAssign, cst.DivideAssign)
        ):
            target = node.target
        elif isinstance(node, cst.Assign) and any(
            isinstance(each, cst.BinaryOperation) and isinstance(each.operator, (cst.FloorDivide, cst.Divide))
            for each in nodes(node.value)
        ):
            target = node.targets[0].target
        name = dotted_name(target) if target is not None else ""
        if _BATCH_SIZE.search(name.rpartition(".")[2]):
            return name
    return ""


def _names_outside(module: Module, handler: ExceptHandler) -> frozenset[str]:
    """Return the names in the file outside of the handler."""
    inside = set(nodes(handler))
    return frozenset(
        node.value for node in nodes(module.tree) if isinstance(node, cst.Name) and node not in inside
    )


def _read_names(tree: cst.CSTNode) -> frozenset[str]:
    """Return all names except targets of assignments."""
    targets = {
        target
        for node in nodes(tree)
        if isinstance(node, (cst.AugAssign, cst.AssignTarget))
        for target in (node.target,)
        if isinstance(target, cst.Name)
    }
    return frozenset(node.value for node in nodes(tree) if isinstance(node, cst.Name) and node not in targets)


def _names(node: cst.CSTNode) -> Iterator[str]:
    return (each.value for each in nodes(node) if isinstance(each, cst.Name))


def header_span(module: Module, handler: ExceptHandler) -> Span:
    """Return the span of `except Exception as e`, without the body."""
    span = module.span(handler)
    last = handler.name or handler.type
    if last is None:
        return Span(span.path, span.row, span.column, span.row, span.column + len("except"))
    end = module.span(last)
    return span.to(end)


def header_text(module: Module, handler: ExceptHandler) -> str:
    """Return `except Exception` for a message, without the name of the exception."""
    return "except" if handler.type is None else f"except {abbreviate(module.code(handler.type), 40)}"


def memory_errors_only(module: Module, handler: ExceptHandler) -> Edit | None:
    """Return the edit to catch only out-of-memory errors, or None for a tuple of exceptions."""
    wanted = "torch.cuda.OutOfMemoryError"
    if handler.type is not None:
        if isinstance(handler.type, cst.Tuple):
            return None
        return Edit(module.span(handler.type), wanted)
    span = header_span(module, handler)
    end = Span(span.path, span.row, span.end_column, span.row, span.end_column)
    return Edit(end, f" {wanted}")
