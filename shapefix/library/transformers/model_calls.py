"""Calls of models: arguments of the call against the parameters of forward."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.batches import CallSignature, ModelCalled
from shapefix.domains.lost_values import note_batch
from shapefix.domains.tokens import note_inputs
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter.calls import Call
from shapefix.interpreter.classes import assigned_late, is_closed, member, outside_bases
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Place, children
from shapefix.interpreter.values import Binding, FunctionValue, InstanceValue, LibraryObject, Unknown, Value
from shapefix.library.transformers import forward_signatures
from shapefix.library.transformers.added_tokens import note_rows_missing
from shapefix.library.transformers.architectures import class_of
from shapefix.library.transformers.token_losses import token_loss

HARMLESS = frozenset(
    {
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "huggingface_hub.PyTorchModelHubMixin",
    }
)
"""Bases unknown to the library that do not change calls."""


def note_call(call: Call, model: Value | None) -> None:
    """Report a call of a model with a known forward.

    Code that catches the TypeError of a wrong argument expects it.
    """
    ev, given = call.ev, call.arguments
    note_inputs(ev, call.place.node, given.everything)
    if model is not None:
        note_step(ev, StepKind.MODEL, call.place.node)
    if isinstance(model, InstanceValue):
        note_batch(ev, call.place, (*given.everything, *((Unknown(),) if given.open else ())))
    note_rows_missing(call, model, call.value(0, "input_ids"))
    if model is None or not isinstance(call.place.node, cst.Call) or ev.expects("TypeError"):
        return
    if not (given.keywords or given.unpacked):
        # All arguments are positional: there are no names to compare.
        return
    signature = signature_of(ev, model)
    if signature is not None:
        ev.emit(
            ModelCalled(
                call.place,
                ev.calls,
                model,
                signature,
                len(given.positional),
                dict(given.keywords),
                given.unpacked,
                frozenset(given.keywords),
                not given.open,
                undecided=ev.frame.undecided,
                first=given.positional[0] if given.positional else None,
                loss=token_loss(model),
            )
        )


def signature_of(ev: Evaluator, model: Value) -> CallSignature | None:
    """Signature of a model's forward; None if unknown, or if the code may have replaced it."""
    if isinstance(model, InstanceValue):
        return _of_project(ev, model)
    name = class_of(model)
    if not isinstance(model, LibraryObject) or name is None:
        return None
    return _of_transformers(ev, name, class_of(model.fields.get("config")))


def _of_transformers(ev: Evaluator, name: str, made_with: str | None = None) -> CallSignature | None:
    """Signature of a head of transformers, in the project's version."""
    version = ev.versions.get("transformers")
    last = name.rpartition(".")[2]
    if not last.startswith("Auto"):
        one = forward_signatures.of_class(last, version)
        if one is None:
            return None
        raises = not one.swallows
        return CallSignature(f"{last}.forward", one.named, one.required, raises, None, one.used, not raises)
    known = forward_signatures.of_auto(last, version, made_with)
    if known is None:
        return None
    if len(known.classes) == 1:
        return _of_transformers(ev, known.classes[0])
    certain = True if known.raises else False if known.swallows else None
    named = tuple(sorted(known.named))
    return CallSignature(f"{last}.forward", named, known.required, certain, None, known.used, known.swallows)


def _of_project(ev: Evaluator, model: InstanceValue) -> CallSignature | None:
    # An object of unknown origin may be of a derived class, and its forward may take more.
    if model.open or "forward" in model.fields or "forward" in assigned_late(model.cls):
        return None
    others = [base for base in outside_bases(model.cls) if base not in HARMLESS]
    if not is_closed(model.cls) or not all(ev.library.is_class(base) for base in others):
        return None
    forward = member(model.cls, "forward")
    if forward is None:
        inherited = [base for base in others if base.startswith("transformers.")]
        return _of_transformers(ev, inherited[0]) if inherited else None
    if (
        not isinstance(forward, FunctionValue)
        or forward.binding is not Binding.PLAIN
        or forward.owner is None
    ):
        return None
    if not isinstance(forward.node, cst.FunctionDef) or len(forward.node.params.posonly_params) > 1:
        return None
    params = forward.node.params
    ordered = [*params.posonly_params, *params.params]
    if not ordered:
        return None
    named = [*ordered[1:], *params.kwonly_params]
    return CallSignature(
        f"{forward.owner.name}.forward",
        tuple(param.name.value for param in named),
        frozenset(param.name.value for param in named if param.default is None),
        params.star_kwarg is None,
        Place(forward.module, forward.node.name),
        unused=params.star_kwarg is not None and forward.module.once(forward.node, _ignores_others),
    )


def _ignores_others(node: cst.FunctionDef) -> bool:
    """Check that the body does not read `**kwargs`."""
    name = node.params.star_kwarg.name.value if node.params.star_kwarg is not None else ""
    return not _mentions(node.body, name)


def _mentions(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.Name):
        return node.value in (name, "locals")
    return any(_mentions(child, name) for child in children(node))
