"""SF410: samples rejected by the default collation of a loader: None, images, objects of other classes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing, enclosing_function, holds
from shapefix.diagnostics import (
    Applicability,
    Condition,
    Diagnostic,
    Evidence,
    ExpectedError,
    Fix,
    Import,
    Role,
)
from shapefix.domains.batches import BatchesDrawn, Collated
from shapefix.interpreter.classes import is_closed, outside_bases
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue, elements
from shapefix.interpreter.events import WrongCountUnpacked
from shapefix.interpreter.modules import Place, dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Constant,
    InstanceValue,
    LibraryObject,
    PerhapsNone,
    Reference,
    Unknown,
    Value,
    is_text,
)

_REJECTED = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists"
_IMAGE = "PIL.Image.Image"
_DEEPEST = 3
_LOOKS = frozenset({"exists", "isfile", "is_file", "getsize"})
"""Functions that look for files."""


@rule("SF410", on=Collated)
def uncollatable_sample(event: Collated, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    drawn = _drawn(event, context)
    if not _is_by_default(event):
        return
    if drawn is None and (not _is_returned(event.place) or _is_lost(event, context)):
        return
    collated = Evidence((drawn or event).place.span, "collated here", Role.FAILURE)
    parts = _has_none_in_parts(event.sample)
    exits = [place for place in event.none if (_depends_on_file if parts else _depends_on_sample)(place)]
    found_none = ExpectedError("TypeError", f"{_REJECTED}; found <class 'NoneType'>")
    error = found_none if parts else _error_of_none(event.sample)
    if exits and error is not None:
        yield rule.diagnostic(
            event.place.span,
            f"`DataLoader` without a collate_fn gets None {'in' if parts else 'as'} a sample: "
            f"`{_name(exits[0])}` {_ends(exits[0])} ({rewrites.line_of(exits[0], event.place.module)})",
            evidence=[
                *call_trace(event),
                *(Evidence(place.span, f"`{_name(place)}` {_ends(place)}") for place in exits),
                collated,
            ],
            condition=Condition(f"{'a part of ' if parts else ''}a sample of the batch is None"),
            error=error,
            fixes=[] if parts else _without_none(event),
        )
        return
    found = next(_rejected(event.sample, "a sample", 0), None)
    if found is not None:
        part, value, name, kind = found
        made = value.place if isinstance(value, LibraryObject) else None
        yield rule.diagnostic(
            event.place.span,
            f"`DataLoader` without a collate_fn cannot combine {name}: {part} is one",
            evidence=[
                *call_trace(event),
                *([] if made is None else [Evidence(made.span, "created here")]),
                collated,
            ],
            error=ExpectedError("TypeError", _REJECTED + (f"; found <class '{kind}'>" if kind else "")),
        )


def _drawn(event: Collated, context: CheckContext) -> BatchesDrawn | None:
    """Return the first iteration over the loader in view; without one, no samples are combined."""
    return next(
        (
            each
            for each in context.events
            if isinstance(each, BatchesDrawn) and each.loader is event.place.node
        ),
        None,
    )


def _is_returned(place: Place) -> bool:
    """Whether a function creates a loader for its callers."""
    function = enclosing_function(place)
    if function is None:
        return False
    around = enclosing(place.module, place.node)
    assign = next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)
    names = {name for each in (assign.targets if assign else ()) for name in target_names(each.target)}
    returned = (node.value for node in nodes(function) if isinstance(node, (cst.Return, cst.Yield)))
    return any(
        part is place.node or (isinstance(part, cst.Name) and part.value in names)
        for value in returned
        if value is not None
        for part in nodes(value)
    )


def _is_lost(event: Collated, context: CheckContext) -> bool:
    """Whether unpacking the result of the function with the loader fails: the samples are never drawn."""
    failed = [each.place for each in context.events if isinstance(each, WrongCountUnpacked)]
    return any(
        place.module is call.module and holds(around, call.node)
        for place in failed
        for around in enclosing(place.module, place.node)
        if isinstance(around, cst.Assign)
        for call in event.calls
    )


def _is_by_default(event: Collated) -> bool:
    collator = event.collator
    is_named = isinstance(collator, Reference) and collator.name.endswith(".default_collate")
    return event.consumer.startswith("torch.") and (collator is None or is_named)


def _ends(place: Place) -> str:
    if not isinstance(place.node, cst.Return):
        return "may end without a `return`"
    is_plain = place.node.value is None or _is_none(place.node.value)
    return "returns None" if is_plain else "may return None"


def _has_none_in_parts(sample: Value) -> bool:
    """Return whether a part of the sample may be None."""
    parts = sample.fields.values() if isinstance(sample, DictValue) else elements(sample) or ()
    return any(isinstance(part, PerhapsNone) for part in parts)


def _name(place: Place) -> str:
    """Return the name of the function with an exit."""
    function = place.node if isinstance(place.node, cst.FunctionDef) else enclosing_function(place)
    return "__getitem__" if function is None else function.name.value


def _depends_on_file(place: Place) -> bool:
    """Return whether a missing or unreadable file makes a helper return None.

    Code that also looks for files elsewhere may have left out the missing ones.
    """
    function = enclosing_function(place)
    if function is None or not isinstance(place.node, cst.Return):
        return False
    around = enclosing(place.module, place.node)
    inner = around[around.index(function) :]
    handlers = [node for node in inner if isinstance(node, cst.ExceptHandler)]
    tests = [part for node in inner if isinstance(node, cst.If) for part in nodes(node.test)]
    here, everywhere = (sum(map(_looks_at_file, nodes(each))) for each in (function, place.module.tree))
    if here < everywhere:
        return False
    return bool(handlers) if not tests else any(map(_looks_at_file, tests))


def _looks_at_file(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) and dotted_name(node.func).rpartition(".")[2] in _LOOKS


def _depends_on_sample(place: Place) -> bool:
    """Return whether the samples decide about this exit of `__getitem__`, not the settings of the dataset.

    The end of a function is reached by a handler of its last statement, or past an `if` without an `else`.
    """
    if isinstance(place.node, cst.FunctionDef):
        body = place.node.body.body
        last = body[-1] if body else None
        if isinstance(last, cst.Try):
            return any(_is_of_samples(handler) and not _leaves(handler.body) for handler in last.handlers)
        return isinstance(last, cst.If) and last.orelse is None and _reads_local(last.test, place.node)
    function = enclosing_function(place)
    value = place.node.value if isinstance(place.node, cst.Return) else None
    if isinstance(value, cst.IfExp):
        return function is not None and _reads_local(value.test, function) and not _is_of_index(value.test)
    if value is not None and not _is_none(value):
        # Here a variable is returned, to which a branch assigns None.
        assigned = _assignments_of_none(value, function) if function is not None else ()
        return any(_depends_on_sample(Place(place.module, node)) for node in assigned)
    around = enclosing(place.module, place.node)
    inner = around[around.index(function) :] if function is not None else []
    handlers = [node for node in inner if isinstance(node, cst.ExceptHandler)]
    if handlers:
        return all(map(_is_of_samples, handlers))
    tests = [node.test for node in inner if isinstance(node, cst.If)]
    return function is not None and any(_reads_local(test, function) for test in tests)


def _is_of_index(test: cst.BaseExpression) -> bool:
    """Whether a condition compares a variable with a whole number: no index of the dataset may fulfill it."""
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.Name)
        and all(isinstance(each.comparator, cst.Integer) for each in test.comparisons)
    )


def _is_none(value: cst.BaseExpression) -> bool:
    return isinstance(value, cst.Name) and value.value == "None"


def _assignments_of_none(value: cst.BaseExpression, function: cst.FunctionDef) -> Iterator[cst.Assign]:
    """Yield the assignments of None to a variable in a function."""
    for node in nodes(function.body):
        if isinstance(node, cst.Assign) and _is_none(node.value) and isinstance(value, cst.Name):
            if any(value.value in target_names(target.target) for target in node.targets):
                yield node


def _is_of_samples(handler: cst.ExceptHandler) -> bool:
    """Return whether a sample may raise the exception of a handler: no index of a sampler is past the end."""
    return handler.type is None or dotted_name(handler.type) != "IndexError"


def _leaves(block: cst.BaseSuite) -> bool:
    """Return whether a block has a statement to leave it: the code has thought of its end."""
    return any(isinstance(node, (cst.Return, cst.Raise, cst.Continue)) for node in nodes(block))


def _reads_local(test: cst.BaseExpression, function: cst.FunctionDef) -> bool:
    """Return whether a condition reads a parameter or variable of a method, `self` excepted."""
    parameters = [param.name.value for param in function.params.params[1:]]
    targets = [
        target.value
        for node in nodes(function.body)
        for target in nodes(node)
        if isinstance(node, (cst.AssignTarget, cst.NamedExpr)) and isinstance(target, cst.Name)
    ]
    names = {node.value for node in nodes(test) if isinstance(node, cst.Name)}
    return not names.isdisjoint({*parameters, *targets} - {"self"})


def _error_of_none(sample: Value) -> ExpectedError | None:
    """Return the exception of a batch of such samples and None; None for texts, listed unseen."""
    if isinstance(sample, (TupleValue, ListValue)):
        return ExpectedError("TypeError", "object of type 'NoneType' has no len()")
    if isinstance(sample, DictValue):
        return ExpectedError("TypeError", "'NoneType' object is not subscriptable")
    if isinstance(sample, TensorValue):
        return ExpectedError("TypeError", "expected Tensor as element ... in argument 0, but got NoneType")
    if isinstance(sample, Unknown) or is_text(sample):
        return None
    return ExpectedError("TypeError", f"{_REJECTED}; found <class 'NoneType'>")


def _rejected(value: Value, part: str, depth: int) -> Iterator[tuple[str, Value, str, str]]:
    """Yield parts of a sample without a place in a tensor: the part, its value, and its kind.

    The kind is in words, and as Python shows the class; empty if that depends on the importing module.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, Constant) and value.value is None:
        yield part, value, "None", "NoneType"
    elif isinstance(value, LibraryObject) and value.kind == _IMAGE:
        yield part, value, "PIL images", _IMAGE
    elif isinstance(value, InstanceValue) and is_closed(value.cls):
        if set(outside_bases(value.cls)) <= {"builtins.object"}:
            yield part, value, f"objects of the class `{value.cls.name}`", ""
    elif isinstance(value, TupleValue):
        for number, inner in enumerate(value.items):
            yield from _rejected(inner, f"item {number} of {part}", depth + 1)
    elif isinstance(value, DictValue):
        for key, inner in value.fields.items():
            yield from _rejected(inner, f"`{key}` of {part}", depth + 1)


def _without_none(event: Collated) -> list[Fix]:
    """Return the fix to leave out None."""
    call = event.place.node
    if not isinstance(call, cst.Call) or event.collator is not None or any(given.star for given in call.args):
        return []
    if any(given.keyword is not None and given.keyword.value == "num_workers" for given in call.args):
        # Workers started by spawn cannot get a lambda.
        return []
    code = "collate_fn=lambda samples: default_collate([sample for sample in samples if sample is not None])"
    return [
        Fix(
            Applicability.UNSAFE,
            "leave out the samples that are None, so that some batches are smaller",
            (rewrites.appended(event.place.module, call, code),),
            (Import("torch.utils.data", "default_collate"),),
            remark="if no batch has only samples that are None",
        )
    ]
