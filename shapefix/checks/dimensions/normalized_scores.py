"""SF513: probabilities in a loss of scores."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.dimensions.softmax_over_batch import softmax_of_batch
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.score_sources import Source, source_of_input
from shapefix.diagnostics import Applicability, Cause, Diagnostic, Evidence, Fix, Role
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.modules import dotted_name, nodes
from shapefix.tensors.ops import Op

_NORMALIZING = {
    "torch.nn.CrossEntropyLoss": "softmax",
    "torch.nn.functional.cross_entropy": "softmax",
    "torch.nn.BCEWithLogitsLoss": "sigmoid",
    "torch.nn.functional.binary_cross_entropy_with_logits": "sigmoid",
}
"""Losses of scores (logits): the function that each applies to them."""
_PROBABILITIES = frozenset({Op.SOFTMAX, Op.SIGMOID, Op.GUMBEL_SOFTMAX})


@rule("SF513", on=LossComputed, reads=(OperationCalled,))
def normalized_scores(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if event.function not in _NORMALIZING:
        return
    source = source_of_input(event)
    if source is None or source.op not in _PROBABILITIES:
        return
    loss, applied = event.function.rpartition(".")[2], _NORMALIZING[event.function]
    activation = "sigmoid" if source.op is Op.SIGMOID else "softmax"
    over_batch = softmax_of_batch(event) is not None
    line = rewrites.line_of(event.place, source.place.module)
    yield rule.diagnostic(
        source.place.span,
        f"`{source.code}` returns probabilities, "
        f"but `{loss}` ({line}) expects scores: it applies {applied} itself",
        evidence=[
            *call_trace(event),
            Evidence(
                event.place.span,
                f"`{loss}` applies {applied} to the probabilities",
                Role.CAUSE,
                f"applies {applied} again",
            ),
            Evidence(source.place.span, f"{activation} applied here"),
        ],
        fixes=_fixes(event, source, activation, context),
        follows=Cause("SF515", source.place.span) if over_batch else None,
        habit="" if over_batch else f"{activation} before a loss that applies {applied}",
    )


def _fixes(event: LossComputed, source: Source, activation: str, context: CheckContext) -> Iterator[Fix]:
    call = event.place.node
    given = rewrites.argument(call, 0, "input") if isinstance(call, cst.Call) else None
    edits = source.bypass(event.place, given.value, context) if given is not None else ()
    if edits:
        yield Fix(Applicability.UNSAFE, f"pass the scores to the loss: `{edits[0].content}`", edits)
        return
    message = f"leave out the {activation}; apply it only where probabilities are needed"
    modules = {event.place.module, source.place.module, *(place.module for place in event.calls)}
    is_compared = any(module.once(module.tree, _compares_probabilities) for module in modules)
    yield rewrites.unsafe_or_advice(message, None if is_compared else source.removal(context))


def _compares_probabilities(tree: cst.Module) -> bool:
    """Whether code needs probabilities: it rounds, takes logarithms, or compares as in `output > 0.5`."""
    for node in nodes(tree):
        if isinstance(node, cst.Comparison):
            sides = [node.left, *(each.comparator for each in node.comparisons)]
            if any(_is_limit(side) or _is_one_score(side) for side in sides):
                return True
        elif isinstance(node, cst.Call):
            owner, _, called = dotted_name(node.func).rpartition(".")
            if called in ("round", "gt", "ge") or (owner in _LIBRARIES and called.startswith("log")):
                return True
    return False


_LIBRARIES = frozenset({"np", "numpy", "torch", "math"})


def _is_one_score(value: cst.BaseExpression) -> bool:
    """Whether an expression is a number of one class: `output[i][j].item()`."""
    method = value.func if isinstance(value, cst.Call) else None
    if not isinstance(method, cst.Attribute) or method.attr.value != "item":
        return False
    return isinstance(method.value, cst.Subscript)


def _is_limit(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Float) and 0 < value.evaluated_value < 1
