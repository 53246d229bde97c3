"""SF802: a clamped metric or loss, or a number returned in place of an exception."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.batch_loops import is_in_batches
from shapefix.checks.support.displayed_metrics import is_beside_loss
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.handlers import (
    header_span,
    is_swallowed_again,
    is_swallowing,
    report_of,
    tells_only,
    tests_exception,
)
from shapefix.checks.support.loss_clamps import clamping_step, has_upper_bound, without_clamp
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.exponentials import ClampedExp
from shapefix.domains.training import Backward
from shapefix.domains.try_blocks import ExceptClause, StepKind, TryBlock
from shapefix.interpreter.modules import dotted_name, nodes
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.ops import Op

_SMALLEST, _LARGEST = 2.0, 1e6
"""A perplexity is at least 1; above the largest, all are equally bad."""
_PERPLEXITY = re.compile(r"(?:^|_)ppl|perplexity", re.IGNORECASE)
_LOSS = re.compile(rf"loss|nll|entropy|(?:^|_)ce(?:_|$)|{_PERPLEXITY.pattern}", re.IGNORECASE)


@rule("SF802", on=ClampedExp)
def clamped_perplexity(event: ClampedExp, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not _SMALLEST < event.bound < _LARGEST or not _is_of_loss(event) or is_beside_loss(event):
        return
    bound = f"{event.bound:.6g}"
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(event.place.code)}` caps perplexity at {bound}: all larger values look the same",
        evidence=[
            *call_trace(event),
            Evidence(event.exponential.span, "perplexity computed here"),
            Evidence(event.place.span, f"capped at {bound} here"),
        ],
        fixes=list(_uncapped(event)),
    )


def _is_of_loss(event: ClampedExp) -> bool:
    """Whether the capped value is the exponential of a loss, or is named perplexity."""
    node = event.exponential.node
    named = [each.value for each in nodes(node) if isinstance(each, cst.Name)]
    named += [str(each.evaluated_value) for each in nodes(node) if isinstance(each, cst.SimpleString)]
    if any(_LOSS.search(name) for name in named):
        return True
    results: list[str] = []
    for each in enclosing(event.place.module, event.place.node):
        if isinstance(each, cst.Assign):
            results += [dotted_name(target.target) for target in each.targets]
        elif isinstance(each, cst.FunctionDef):
            results.append(each.name.value)
    return any(_PERPLEXITY.search(name.rpartition(".")[2]) for name in results)


def _uncapped(event: ClampedExp) -> Iterator[Fix]:
    """Remove the cap, if the exponential is in the same expression."""
    outer, inner, module = event.place.node, event.exponential.node, event.place.module
    message = "report the perplexity without a cap"
    if not isinstance(outer, cst.Call) or event.exponential.module is not module:
        return
    if outer is inner:
        least = outer.args[0].value
        kept = (
            [arg.value for arg in least.args if not _is_number(arg.value)]
            if isinstance(least, cst.Call)
            else []
        )
        if len(kept) == 1:
            edit = Edit(module.span(least), module.code(kept[0]))
            yield Fix(Applicability.UNSAFE, message, (edit,))
    elif inner in list(nodes(outer)) and isinstance(outer.func, cst.Name):
        yield Fix(Applicability.UNSAFE, message, (Edit(event.place.span, module.code(inner)),))


def _is_number(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float))


@rule("SF802", on=TryBlock)
def number_for_exception(event: TryBlock, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if not _evaluates(event):
        return
    for handler in event.handlers:
        if handler.catches_all and not handler.acts:
            yield from _returned(event, handler, rule)
            yield from _averages_over_nothing(event, handler, rule)
            return


def _evaluates(event: TryBlock) -> bool:
    """Whether a try statement contains an evaluation: a loss, or a model and batches, without backward."""
    kinds = {act.kind for act in event.acts}
    if StepKind.BACKWARD in kinds or event.tries_settings:
        return False
    over_batches = any(loop.over_batches for loop in event.loops) or StepKind.LOADER in kinds
    return StepKind.LOSS in kinds or (over_batches and StepKind.MODEL in kinds)


def _returned(event: TryBlock, handler: ExceptClause, rule: Rule) -> Iterator[Diagnostic]:
    """Report a handler returning a number like a result of the evaluation."""
    module, node = event.place.module, handler.node
    last = _last_statement(node.body)
    if not isinstance(last, cst.Return) or last.value is None or not tells_only(module, node):
        return
    value = number_of(last.value)
    if value is None:
        return
    span = module.span(last)
    code = abbreviate(module.code(last.value))
    yield rule.diagnostic(
        span,
        f"returns `{code}` after any exception, which looks like a real score",
        evidence=[
            *call_trace(event),
            Evidence(header_span(module, node), "every exception of the evaluation caught here"),
            Evidence(span, f"and replaced by `{code}`"),
        ],
        fixes=_raised(event),
    )


def _raised(event: TryBlock) -> list[Fix]:
    """Raise in every handler with a number as its result; nothing if a caller swallows it."""
    module = event.place.module
    ends = [_last_statement(handler.node.body) for handler in event.handlers if handler.catches_all]
    edits = [
        Edit(module.span(last), "raise")
        for last in ends
        if isinstance(last, cst.Return) and last.value is not None and number_of(last.value) is not None
    ]
    if is_swallowed_again(event):
        return []
    return [Fix(Applicability.UNSAFE, "re-raise it: the run stops", tuple(edits))]


def _averages_over_nothing(event: TryBlock, handler: ExceptClause, rule: Rule) -> Iterator[Diagnostic]:
    """Report the result of zero counted batches: `return float("inf")` after `if count == 0`."""
    module = event.place.module
    if not is_in_batches(event) or not is_swallowing(module, handler.node):
        return
    if report_of(module, handler.node) is not None:
        # Each failed batch leaves a trace beside the number.
        return
    if any(tests_exception(handler.node, test) for test in _tests(handler.node.body)):
        return
    tried = event.place.node
    counted = {
        each.target.value
        for each in nodes(tried.body)  # type: ignore[attr-defined]
        if isinstance(each, cst.AugAssign) and isinstance(each.target, cst.Name)
    }
    around = event.function if event.function is not None else module.tree
    for node, value in _stand_ins(around, counted):
        span = module.span(node)
        code = abbreviate(module.code(value))
        verb = "returns" if isinstance(node, cst.Return) else "gives"
        yield rule.diagnostic(
            span,
            f"{verb} `{code}` if every batch fails, which looks like a real score",
            evidence=[
                *call_trace(event),
                Evidence(header_span(module, handler.node), "failed batches swallowed here"),
                Evidence(span, f"result if no batch was counted: `{code}`"),
            ],
            follows=Cause("SF801", header_span(module, handler.node)),
        )


def _stand_ins(around: cst.CSTNode, counted: set[str]) -> Iterator[tuple[cst.CSTNode, cst.BaseExpression]]:
    """Yield the numbers used as a result if nothing was counted, with their statement or expression."""
    for node in nodes(around):
        if isinstance(node, cst.IfExp) and _mentions(node.test, counted):
            for value in (node.body, node.orelse):
                if number_of(value) is not None:
                    yield node, value
        elif isinstance(node, cst.If) and _mentions(node.test, counted):
            for block in (node.body, node.orelse.body if isinstance(node.orelse, cst.Else) else None):
                last = _last_statement(block) if block is not None else None
                if isinstance(last, (cst.Return, cst.Assign)) and last.value is not None:
                    if number_of(last.value) is not None:
                        yield last, last.value


def _mentions(test: cst.BaseExpression, names: set[str]) -> bool:
    return any(isinstance(each, cst.Name) and each.value in names for each in nodes(test))


def _last_statement(block: cst.BaseSuite) -> cst.CSTNode | None:
    last = block.body[-1]
    if isinstance(last, cst.SimpleStatementLine):
        return last.body[-1]
    return last if isinstance(last, cst.BaseSmallStatement) else None


def _tests(block: cst.BaseSuite) -> Iterator[cst.BaseExpression]:
    for statement in block.body:
        if isinstance(statement, cst.If):
            yield statement.test


def number_of(node: cst.BaseExpression) -> float | None:
    """Return the number of an expression, `float("inf")`, `math.nan` or `0.0`, and None for anything else.

    For a tuple of numbers it is the first one.
    """
    if isinstance(node, cst.Tuple):
        numbers = [number_of(element.value) for element in node.elements]
        return numbers[0] if numbers and None not in numbers else None
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.evaluated_value)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = number_of(node.expression)
        return None if inner is None else -inner
    if dotted_name(node) in ("math.inf", "np.inf", "numpy.inf", "torch.inf"):
        return math.inf
    if dotted_name(node) in ("math.nan", "np.nan", "numpy.nan", "torch.nan"):
        return math.nan
    if isinstance(node, cst.Call) and dotted_name(node.func) == "float" and len(node.args) == 1:
        text = node.args[0].value
        if isinstance(text, cst.SimpleString) and isinstance(text.evaluated_value, str):
            try:
                return float(text.evaluated_value)
            except ValueError:
                return None
    return None


@rule("SF802", on=Backward)
def clamped_loss(event: Backward, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    step = clamping_step(event.loss.origin) if isinstance(event.loss, TensorValue) else None
    if step is None or not isinstance(step.place.node, cst.Call):
        return
    node, place = step.place.node, step.place
    if step.op is Op.NAN_TO_NUM:
        outcome = "hides a nan loss: training continues, and gradients can still be nan"
    elif has_upper_bound(node, step.op):
        outcome = "has zero gradient above its limit: batches with a large loss train nothing"
    else:
        return
    yield rule.diagnostic(
        place.span,
        f"`{abbreviate(place.code)}` {outcome}",
        evidence=[
            *call_trace(event),
            Evidence(
                place.span,
                "the loss is clamped here" if step.op is not Op.NAN_TO_NUM else "nan is replaced here",
            ),
            Evidence(event.place.span, "gradients computed here, of the changed loss"),
        ],
        fixes=list(without_clamp(place, node)),
    )
