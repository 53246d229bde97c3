"""SF514: scores in a loss of probabilities, or of their logarithms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.score_sources import Source, source_of, source_of_input
from shapefix.checks.support.syntax import enclosing_function
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.losses import LossComputed
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, LibraryObject, Number, as_tensor
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op

_SCORES = frozenset({Op.LINEAR, Op.BILINEAR, Op.CONVOLUTION, Op.ADDMM})
"""Layers with results of any value."""
_PROBABILITIES = frozenset({Op.SOFTMAX, Op.SIGMOID})
_LOGARITHMS = frozenset({Op.LOG_SOFTMAX})


@dataclass(frozen=True, slots=True)
class Expectation:
    """Expected input of a loss.

    wrong are operations with other results, and what happens then. twin is the name of the loss
    of scores, empty without one.
    """

    what: str
    wrong: Mapping[frozenset[Op], str]
    twin: str = ""
    error: ExpectedError | None = None


_NLL = Expectation(
    "log-probabilities",
    {
        _SCORES: "the loss is their negative, and falls without a limit",
        _PROBABILITIES: "the loss of each sample stays between -1 and 0",
    },
    "cross_entropy",
)
_BCE = Expectation(
    "probabilities",
    {_SCORES: "values outside of 0 and 1 raise an error", _LOGARITHMS: "negative values raise an error"},
    "binary_cross_entropy_with_logits",
    ExpectedError("RuntimeError", "all elements of input should be between 0 and 1"),
)
_KL = Expectation(
    "log-probabilities",
    {
        _SCORES: "the loss is not a divergence",
        _PROBABILITIES: "the loss is not a divergence, and may be negative",
    },
)
_EXPECTED = {
    "torch.nn.NLLLoss": _NLL,
    "torch.nn.functional.nll_loss": _NLL,
    "torch.nn.BCELoss": _BCE,
    "torch.nn.functional.binary_cross_entropy": _BCE,
    "torch.nn.KLDivLoss": _KL,
    "torch.nn.functional.kl_div": _KL,
}
_LAYERS = {"cross_entropy": "CrossEntropyLoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss"}
"""Losses of scores: the class by the function."""
_LOGARITHMIC = {
    "torch.softmax": "log_softmax",
    "torch.Tensor.softmax": "log_softmax",
    "torch.nn.functional.softmax": "log_softmax",
    "torch.nn.Softmax": "LogSoftmax",
}


@rule("SF514", on=LossComputed, reads=(OperationCalled,))
def unnormalized_scores(event: LossComputed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    expected = _EXPECTED.get(event.function)
    source = source_of_input(event)
    if expected is None or source is None or isinstance(event.given.get("target"), (Constant, Number)):
        # A number as a target raises another error.
        return
    consequence = next((text for ops, text in expected.wrong.items() if source.op in ops), None)
    if consequence is None or _is_of_one_class(source):
        return
    loss = event.function.rpartition(".")[2]
    kind = _kind(source.op)
    yield rule.diagnostic(
        event.place.span,
        f"`{loss}` expects {expected.what}, but gets {kind} of `{source.code}`; {consequence}",
        error=expected.error,
        evidence=[
            *call_trace(event),
            Evidence(source.place.span, f"{source.op.text} here", Role.CAUSE, f"returns {kind}"),
            Evidence(event.place.span, f"`{loss}` expects {expected.what}"),
        ],
        fixes=_fixes(event, expected, source, context),
    )


def _is_of_one_class(source: Source) -> bool:
    """Whether the scores may be those of a single class: their softmax is 1 everywhere, its logarithm 0."""
    layout = source.step.layout
    normalized = source.op in (Op.SOFTMAX, Op.LOG_SOFTMAX)
    return normalized and layout is not None and any(size.value == 1 for size in layout.sizes[1:])


def _kind(op: Op) -> str:
    if op in _PROBABILITIES:
        return "the probabilities"
    return "the log-probabilities" if op in _LOGARITHMS else "the scores"


def _fixes(
    event: LossComputed, expected: Expectation, source: Source, context: CheckContext
) -> Iterator[Fix]:
    target = as_tensor(event.given.get("target"))
    other = None if target is None else source_of(target)
    if source.op is Op.SOFTMAX and expected is _KL and other is not None and other.op is Op.LOG_SOFTMAX:
        message = "exchange the arguments: the log-probabilities are the first one"
        edits = _exchanged(event.place)
        yield Fix(Applicability.UNSAFE if edits else Applicability.DISPLAY, message, edits)
    elif source.op is Op.SOFTMAX:
        if _has_other_users(event, source):
            yield rewrites.unsafe_or_advice("pass their logarithm: `.log()`", None)
            return
        name = _LOGARITHMIC.get(source.function(context))
        layer = source.step.producer
        made = layer.place if isinstance(layer, LibraryObject) else source.place
        edit = None if name is None or made is None else _renamed(made, name)
        yield rewrites.unsafe_or_advice("take the log-softmax instead of the softmax", edit)
    elif source.op in _SCORES and expected.twin:
        name = expected.twin if event.layer is None else _LAYERS[expected.twin]
        made = event.layer.place if isinstance(event.layer, LibraryObject) else event.place
        edit = None if made is None else _renamed(made, name)
        yield rewrites.unsafe_or_advice(f"use `{name}`, which expects scores", edit)
    elif source.op in _SCORES:
        yield rewrites.unsafe_or_advice("apply `log_softmax` to the scores", None)


def _exchanged(place: Place) -> tuple[Edit, ...]:
    """Return the edits to exchange the first two arguments of a call; none without two plain ones."""
    given = place.node.args[:2] if isinstance(place.node, cst.Call) else ()
    if len(given) < 2 or any(each.star or each.keyword is not None for each in given):
        return ()
    spans = [place.module.span(each.value) for each in given]
    texts = [place.module.code(each.value) for each in given]
    return tuple(Edit(span, text) for span, text in zip(spans, reversed(texts), strict=True))


def _has_other_users(event: LossComputed, source: Source) -> bool:
    """Whether a method other than forward returns the probabilities, as those of a policy."""
    made = enclosing_function(source.step.place) if source.step.place is not None else None
    return made is not None and made.name.value != "forward" and made is not enclosing_function(event.place)


def _renamed(place: Place, name: str) -> Edit | None:
    node = place.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    return rewrites.renamed(place.module, node.func, name)
