"""SF618: a statement names a method of torch, but does not call it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Diagnostic, Edit
from shapefix.domains.uncalled_methods import MethodNotCalled
from shapefix.sources.text import is_notebook

_EFFECTS = {
    "backward": "no gradients are computed",
    "eval": "dropout and batch norm stay in training mode",
    "step": "it changes nothing",
    "train": "the mode of the model does not change",
    "zero_grad": "gradients accumulate across batches",
}


@rule("SF618", on=MethodNotCalled)
def uncalled_method(event: MethodNotCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    module = event.place.module
    if is_notebook(module.path) and event.place.node in module.once(module.tree, _top_level):
        # The last line of a cell shows its value.
        return
    code = abbreviate(event.place.code)
    effect = _EFFECTS.get(event.method, "it has no effect")
    edit = None if event.needs_arguments else Edit(event.place.span.end(), "()")
    yield rule.diagnostic(
        event.place.span,
        f"`{code}` without parentheses calls nothing: {effect}",
        evidence=call_trace(event),
        fixes=[rewrites.unsafe_or_advice(f"call it: `{code}()`", edit)],
        habit="a method without parentheses",
    )


def _top_level(tree: cst.Module) -> frozenset[cst.CSTNode]:
    lines = [line for line in tree.body if isinstance(line, cst.SimpleStatementLine)]
    return frozenset(part for line in lines for part in line.body)
