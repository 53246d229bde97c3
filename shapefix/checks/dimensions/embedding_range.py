"""SF505: ids out of range of an embedding."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, layer_code, made_at, shape_trace
from shapefix.checks.support.operands import contains, is_drawn, is_unlikely, named
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.torch_errors import EMBEDDED
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.tokens import TokensWithoutRow
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.tensors.bounds import at_least, same
from shapefix.tensors.errors import IndexOutOfRange

_EMBEDDINGS = (
    "torch.nn.Embedding",
    "torch.nn.EmbeddingBag",
    "torch.nn.functional.embedding",
    "torch.nn.functional.embedding_bag",
)


@rule("SF505", on=(OpRejected, TokensWithoutRow))
def embedding_range(
    event: OpRejected | TokensWithoutRow, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if isinstance(event, TokensWithoutRow):
        yield from _added(event, rule)
    elif event.function in _EMBEDDINGS and isinstance(event.error, IndexOutOfRange):
        if not is_unlikely(event):
            yield from _stated(event, event.error, context, rule)


def _stated(
    event: OpRejected, error: IndexOutOfRange, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    tensor = event.operands[0].tensor
    index, rows = context.text(error.index), context.concrete(error.size)
    layer = layer_code(event.layer)
    where = f"`{layer}`" if layer else "the weight"
    negative = at_least(error.index, 0) is False
    limit = "ids start at 0" if negative else f"{where} has only rows 0 to {context.concrete(error.size - 1)}"
    ids = named(event, 0)
    yield rule.diagnostic(
        event.place.span,
        f"{ids} {contains(tensor)} {index}, but {limit}",
        error=EMBEDDED,
        evidence=[
            *call_trace(event),
            *made_at(event.layer),
            *shape_trace(tensor, context)[-3:],
            Evidence(event.place.span, f"row {index} of {rows} is looked up"),
        ],
        condition=Condition(f"a random id is {rows} or more") if is_drawn(tensor) and not negative else None,
        fixes=[] if negative else _larger(event, error, context),
    )


def _larger(event: OpRejected, error: IndexOutOfRange, context: CheckContext) -> Iterator[Fix]:
    """Suggest an embedding with enough rows; a single missing row is an off-by-one error."""
    number = error.index.value
    if number is None:
        return
    edit = _setting(event.layer, number + 1)
    change = f"create the embedding with num_embeddings={number + 1}"
    if same(error.index, error.size) and edit is not None and edit.span.path == event.place.module.path:
        remark = f"the largest id is {number}"
        yield Fix(Applicability.UNSAFE, f"{change}: {remark}", (edit,), remark=remark)
    else:
        choices = f"{change}, or use at most {context.text(error.size)} different ids"
        yield Fix(Applicability.DISPLAY, choices, () if edit is None else (edit,))


def _setting(layer: Value | None, number: int) -> Edit | None:
    """Return the edit of the number of rows in the call creating the layer."""
    if not isinstance(layer, LibraryObject) or layer.place is None:
        return None
    node, module = layer.place.node, layer.place.module
    given = rewrites.argument(node, 0, "num_embeddings") if isinstance(node, cst.Call) else None
    if given is None or not isinstance(given.value, cst.Integer):
        return None
    return Edit(module.span(given.value), str(number))


def _added(event: TokensWithoutRow, rule: Rule) -> Iterator[Diagnostic]:
    tokenizer, model = event.tokenizer, event.model
    if model.place is None:
        return
    line = rewrites.line_of(event.added, event.place.module)
    made = rewrites.line_of(model.place, event.place.module)
    what = f"the pad token `{event.token}`" if event.pads else f"`{event.token}`"
    yield rule.diagnostic(
        event.place.span,
        f"{what} was added to the tokenizer ({line}), but the model ({made}) was not resized",
        error=EMBEDDED,
        evidence=[
            *call_trace(event),
            *_made(tokenizer),
            Evidence(event.added.span, f"`{event.token}` is a new token with the next free id"),
            Evidence(model.place.span, "one row per token of the original tokenizer"),
            Evidence(event.place.span, "ids are looked up here"),
        ],
        condition=Condition("a row is padded" if event.pads else "an added token is in a text"),
        fixes=_resized(event),
    )


def _made(tokenizer: LibraryObject) -> Iterator[Evidence]:
    if tokenizer.place is not None:
        yield Evidence(tokenizer.place.span, f"`{abbreviate(tokenizer.place.code)}` created here")


def _resized(event: TokensWithoutRow) -> Iterator[Fix]:
    """Insert a line to resize the model after both tokenizer and model are complete."""
    assert event.model.place is not None
    names = [_assigned(event.model.place), _receiver(event.added)]
    places = [event.model.place, event.added]
    message = "call `model.resize_token_embeddings(len(tokenizer))` after creating both"
    same_block = len({place.module.path for place in places}) == 1 and _block(places[0]) == _block(places[1])
    if None in names or not same_block:
        yield Fix(Applicability.DISPLAY, message, ())
        return
    last = max(places, key=lambda place: place.span.row)
    edit = rewrites.after_statement(last, f"{names[0]}.resize_token_embeddings(len({names[1]}))")
    if edit is None:
        yield Fix(Applicability.DISPLAY, message, ())
    else:
        yield Fix(Applicability.UNSAFE, "resize the embedding to the tokenizer", (edit,))


def _block(place: Place) -> cst.CSTNode | None:
    """Return the block of statements around a place."""
    around = enclosing(place.module, place.node)
    return next(
        (node for node in reversed(around) if isinstance(node, (cst.IndentedBlock, cst.Module))), None
    )


def _assigned(place: Place) -> str | None:
    """Return the name assigned the expression at a place: `model`, `self.bert`."""
    for node in reversed(enclosing(place.module, place.node)):
        if isinstance(node, cst.Assign):
            target = node.targets[0].target
            plain = len(node.targets) == 1 and isinstance(target, (cst.Name, cst.Attribute))
            return place.module.code(target) if plain else None
        if isinstance(node, cst.BaseStatement):
            return None
    return None


def _receiver(place: Place) -> str | None:
    """Return the tokenizer of `tokenizer.add_tokens(…)`, or the name of a new one."""
    node = place.node
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value == "from_pretrained":
            return _assigned(place)
        return place.module.code(node.func.value)
    return None
