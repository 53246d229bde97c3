"""SF805: a DistributedSampler without `set_epoch`: every epoch has the same order."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.event_order import of_kind
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing, holds
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix, Role
from shapefix.domains.batches import EpochRepeated
from shapefix.domains.training import Backward
from shapefix.interpreter.modules import dotted_name, nodes, target_names

_CALL = "set_epoch"
_COUNTING = frozenset({"range", "trange"})


@rule("SF805", on=EpochRepeated)
def epochs_in_one_order(event: EpochRepeated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    modules = [event.place.module, event.sampler.module, *(each.module for each in event.calls)]
    if any(_CALL in each.text for each in modules) or not _counts(event.epochs.node):
        return
    inner = _trained_in(event, context)
    if inner is None or (holds(event.epochs.node, event.sampler.node) and not _names_epochs(event)):
        return
    header = event.epochs.node
    module = event.sampler.module
    yield rule.diagnostic(
        event.sampler.span,
        "each epoch has the samples in the same order: `sampler.set_epoch(epoch)` is never called",
        evidence=[
            *call_trace(event),
            Evidence(event.sampler.span, "shuffles with the number of the epoch, which stays 0", Role.CAUSE),
            Evidence(event.place.span, "the batches of an epoch"),
        ],
        fixes=_fixes(event, inner, header) if module is event.place.module else (),
    )


def _counts(node: cst.For | cst.While | cst.CompFor) -> bool:
    """Whether a loop counts: `for epoch in range(epochs)`."""
    if not isinstance(node, cst.For):
        return False
    calls = (each for each in nodes(node.iter) if isinstance(each, cst.Call))
    return any(dotted_name(each.func).rpartition(".")[2] in _COUNTING for each in calls)


def _names_epochs(event: EpochRepeated) -> bool:
    """Whether a loop with a sampler of its own in each pass is one over epochs, not over folds."""
    node = event.epochs.node
    return isinstance(node, cst.For) and any("epoch" in name for name in target_names(node.target))


def _trained_in(event: EpochRepeated, context: CheckContext) -> cst.For | None:
    """Return the loop over the batches, with a backward in it."""
    for backward in of_kind(context, Backward):
        for each in backward.loops:
            node = each.loop.node
            if isinstance(node, cst.For) and holds(node, event.place.node):
                if holds(node.iter, event.place.node) or node is event.place.node:
                    return node
    return None


def _fixes(event: EpochRepeated, inner: cst.For, header: cst.CSTNode) -> Iterator[Fix]:
    module = event.place.module
    loader = _loader(inner.iter)
    around = enclosing(module, inner)
    if not isinstance(header, cst.For) or not isinstance(header.target, cst.Name) or header not in around:
        return
    if loader is None or any(isinstance(each, cst.FunctionDef) for each in around[around.index(header) :]):
        return
    span = module.span(inner)
    indent = " " * (span.column - 1)
    code = f"{loader}.sampler.{_CALL}({header.target.value})\n{indent}"
    yield Fix(Applicability.UNSAFE, "give each epoch an order of its own", (Edit(span.start(), code),))


def _loader(node: cst.BaseExpression) -> str | None:
    """Return the name of the loader in `loader`, `enumerate(loader)`, `tqdm(loader)`."""
    while isinstance(node, cst.Call) and node.args:
        node = node.args[0].value
    return node.value if isinstance(node, cst.Name) else None
