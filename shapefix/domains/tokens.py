"""Token ids and labels: the texts of rows, their starts, and the places of -100 in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import ClassVar

import libcst as cst

from shapefix.domains.masks import MASK, is_mask, note_mask
from shapefix.interpreter import hooks
from shapefix.interpreter.containers import Contents, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.events import Event
from shapefix.interpreter.facts import Fact
from shapefix.interpreter.joins import join_integers
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import START, LabelMask, LayoutStep, TensorValue, TokenRow, tensor_row
from shapefix.interpreter.values import (
    Constant,
    Integer,
    LibraryObject,
    Slice,
    Unknown,
    Value,
    as_size,
    facts_of,
)
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import UNBOUNDED, ItemPosition, MaskedLabel, SpecialId, Symbol, TokenId


@dataclass(frozen=True, eq=False, slots=True)
class SpecialIds(Fact):
    """Ids of the special tokens of a tokenizer, created when first read."""

    by_token: dict[Value | str, Value] = field(default_factory=dict)


def special_id(tokenizer: Value, token: Value) -> Value | None:
    """Id of a special token read by the code; None for others."""
    ids = facts_of(tokenizer).known(SpecialIds)
    return None if ids is None else ids.by_token.get(token)


@dataclass(frozen=True, slots=True)
class Checkpoint(Fact):
    """Name of the checkpoint of a loaded model or tokenizer."""

    name: Value


@dataclass(frozen=True, eq=False, slots=True)
class Tokens:
    """Call of a tokenizer, the source of a TokenId: the text, or texts, and the padding of the rows.

    padding is "longest" or "max_length" if pad ids may be in the rows, "none" if there are no pad ids,
    and None if unknown.
    """

    place: Place
    text: Value
    padding: str | None
    tokenizer: LibraryObject


def row_of(value: Value | None) -> TokenRow | None:
    """Row in a list, or in the last dimension of a tensor; None if unknown."""
    if isinstance(value, Unknown):
        value = value.tensor
    if isinstance(value, TensorValue):
        return tensor_row(value)
    if not isinstance(value, ListValue) or not isinstance(value.element, Integer):
        return None
    symbol = value.element.size.only_symbol
    if symbol is None:
        return None
    source = symbol.source if isinstance(symbol, MaskedLabel) else None
    return TokenRow(symbol, mask=source if isinstance(source, LabelMask) else None)


def element_symbol(tensor: TensorValue) -> Symbol:
    """Symbol of any one element of a tensor of integers, for the list made of it."""
    row = tensor_row(tensor)
    if row is not None and row.start == START:
        return row.symbol if row.mask is None else MaskedLabel("label", row.mask)
    return Symbol("n", UNBOUNDED)


def is_same(one: TokenRow | None, other: TokenRow | None) -> bool:
    """Check whether two rows hold the same ids, one perhaps further on than the other."""
    if one is None or other is None:
        return False
    left, right = one.symbol, other.symbol
    if isinstance(left, TokenId) and isinstance(right, TokenId):
        return left.sources == right.sources and left.added == right.added
    return left is right


def tokens_of(row: TokenRow | None) -> tuple[Tokens, ...]:
    """Tokenizer calls with the ids in a row as results; empty if other ids may be among them."""
    symbol = row.symbol if row is not None else None
    return () if isinstance(symbol, TokenId) and symbol.added else sources_of(row)


def sources_of(row: TokenRow | None) -> tuple[Tokens, ...]:
    """Tokenizer calls of a row, with or without special tokens."""
    symbol = row.symbol if row is not None else None
    if not isinstance(symbol, TokenId):
        return ()
    return tuple(source for source in symbol.sources if isinstance(source, Tokens))


def added_to(row: TokenRow | None, special: Symbol) -> Place | None:
    """Place of the addition of a special token's id to a row; None if it was not added."""
    symbol = row.symbol if row is not None else None
    for one, place in symbol.added if isinstance(symbol, TokenId) else ():
        if one is special and isinstance(place, Place):
            return place
    return None


def put_together(contents: Contents, place: Place, *, leading: bool = False) -> Contents:
    """Contents of a list created at place, with the origins of -100 and special tokens among its ids."""
    element = contents.element
    symbol = element.size.only_symbol if isinstance(element, Integer) else None
    noted: Symbol
    if isinstance(symbol, MaskedLabel) and symbol.source is None:
        noted = MaskedLabel(symbol.name, LabelMask(place, leading))
    elif isinstance(symbol, TokenId) and any(known is None for _, known in symbol.added):
        added = frozenset((special, place if known is None else known) for special, known in symbol.added)
        noted = TokenId(symbol.name, symbol.sources, added)
    else:
        return contents
    return Contents(None, Integer(Size.from_symbol(noted)), contents.length, contents.axes)


def from_the_start(index: Value) -> bool:
    """Check whether the items selected by an index begin with the first one."""
    first = index.start if isinstance(index, Slice) else index
    return isinstance(first, Constant) and first.value in (None, 0)


@hooks.choose
def masked(ev: Evaluator, node: cst.IfExp, first: Value, second: Value) -> Value | None:
    """Label equal to -100 or an id, depending on the position; None for other conditional expressions.

    A condition on the id itself, or on an attention mask, may select the padding.
    """
    token = second if is_mask(first) else first
    if not (is_mask(first) or is_mask(second)) or not isinstance(token, Integer):
        return None
    if not isinstance(token.size.only_symbol, TokenId) or not isinstance(node.test, cst.Comparison):
        return None
    if _is_below(ev, node.test) is not is_mask(first):
        return None
    return Integer(Size.from_symbol(MaskedLabel("label", LabelMask(ev.place(node), True))))


def _is_below(ev: Evaluator, test: cst.Comparison) -> bool | None:
    """Check for a test of positions below a bound; False for those above, None for other tests."""
    if len(test.comparisons) != 1:
        return None
    target = test.comparisons[0]
    sides = [ev.evaluate(side) for side in _plain(test.left, target.comparator)]
    counters = [
        isinstance(side, Integer) and isinstance(side.size.only_symbol, ItemPosition) for side in sides
    ]
    if counters not in ([True, False], [False, True]):
        return None
    if isinstance(target.operator, (cst.LessThan, cst.LessThanEqual)):
        return counters[0]
    if isinstance(target.operator, (cst.GreaterThan, cst.GreaterThanEqual)):
        return counters[1]
    return None


def _plain(*sides: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """Sides safe to evaluate once more."""
    return (side for side in sides if isinstance(side, (cst.Name, cst.Integer, cst.Attribute)))


@dataclass(frozen=True, eq=False, slots=True)
class Tokenized(Event):
    """Call of a tokenizer.

    arguments are those of the call by name, with their defaults. several is whether it gets a list of texts,
    None if unknown. mapped is the call of `Dataset.map` that runs the function around this call,
    None outside of one; batched is whether that passes lists of samples, count the number of rows of the
    dataset. rows are the lists of ids that go into one tensor, None if no tensor is requested.
    """

    tokenizer: LibraryObject
    arguments: Mapping[str, Value]
    several: bool | None
    result: Value
    mapped: Place | None = None
    batched: bool | None = None
    rows: Value | None = None
    count: Value | None = None


@dataclass(frozen=True, eq=False, slots=True)
class PadTokenMissing(Event):
    """Padding by a tokenizer without a pad token at this moment.

    subject is its name in the code, asked is what needs the pad token: `padding=True`, `tokenizer.pad`, a
    collator. later is whether only the first batch raises.
    """

    tokenizer: LibraryObject
    subject: cst.CSTNode | None
    asked: str
    later: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class PadIdMissing(Event):
    """Batch of several rows for a classifier of sequences without a pad token in its configuration.

    model is the name of its class; created is the place of the configuration or model, is_trained whether a
    trainer makes the batches.
    """

    model: str
    created: Place | None
    is_trained: bool


@dataclass(frozen=True, eq=False, slots=True)
class TokensWithoutRow(Event):
    """Ids of a tokenizer with an added token, passed to a model with an embedding never resized.

    token is the first one added, at `added`; pads is whether it is the pad token, and the only one.
    """

    is_of_values: ClassVar[bool] = True

    model: LibraryObject
    tokenizer: LibraryObject
    token: str
    added: Place
    pads: bool


@dataclass(frozen=True, eq=False, slots=True)
class TokensCompared(Event):
    """Cross entropy over all targets other than -100, without weights.

    from_inputs is whether the scores are certainly computed from the same ids as the targets.
    """

    targets: TensorValue
    from_inputs: bool


@dataclass(eq=False, slots=True)
class ModelInputs:
    """State of the ids passed to models."""

    rows: dict[cst.CSTNode, tuple[TokenRow, ...]] = field(default_factory=dict)
    """Rows among the arguments of a call, by the call."""


def note_inputs(ev: Evaluator, node: cst.CSTNode, arguments: Iterable[Value]) -> None:
    """Record the rows of ids among the arguments of a model's call."""
    rows = tuple(row for row in map(row_of, arguments) if row is not None)
    if rows:
        ev.state[ModelInputs].rows[node] = rows


def is_computed_from(ev: Evaluator, scores: TensorValue, ids: TensorValue) -> bool:
    """Check whether scores are certainly computed from the ids in a tensor, or in a slice of them."""
    inputs = ev.state[ModelInputs].rows
    row = row_of(ids)
    tokenized = {step for step in _steps(ids) if step.op is Op.TOKENIZE}
    return any(
        step in tokenized or any(is_same(row, each) for each in inputs.get(step.place.node, ()))
        for step in _steps(scores)
    )


def _steps(tensor: TensorValue) -> Iterator[LayoutStep]:
    """Steps in the computation of a tensor, latest first."""
    step = tensor.origin
    while step is not None:
        yield step
        step = step.source or step.before


@join_integers
def _join_labels(left: Value, right: Value) -> Value | None:
    """Join two ids or labels."""
    sizes = [size for size in (as_size(left), as_size(right)) if size is not None]
    for item, size in zip((left, right), sizes, strict=True):
        if isinstance(size.only_symbol, MaskedLabel):
            return item
    if any(size.value == MASK for size in sizes):
        return Integer(Size.from_symbol(MaskedLabel("label")))
    return _join_ids(left, right)


def _join_ids(left: Value, right: Value) -> Value | None:
    """Join two ids of texts or special tokens; None if other values are among them."""
    items = [item for item in (left, right) if isinstance(item, Integer)]
    symbols = [item.size.only_symbol for item in items]
    ids = [(item, one) for item, one in zip(items, symbols, strict=True) if isinstance(one, TokenId)]
    special = frozenset((one, None) for one in symbols if isinstance(one, SpecialId))
    if not ids or len(ids) + len(special) < 2:
        return None
    item, first = ids[0]
    sources = first.sources.union(*(one.sources for _, one in ids))
    added = special.union(*(one.added for _, one in ids))
    if sources == first.sources and added == first.added:
        return item
    return Integer(Size.from_symbol(TokenId(first.name, sources, added)))


@hooks.concatenate
def _concatenate(left: Contents, contents: Contents, place: Place) -> Contents:
    return put_together(contents, place, leading=is_mask(ListValue.of(left)))


@hooks.set_item
def _set_item(
    ev: Evaluator, target: cst.Subscript, owner: ListValue, index: Value, value: Value, contents: Contents
) -> Contents:
    note_mask(ev, owner, value, target, target.value)
    return put_together(contents, ev.place(target), leading=from_the_start(index))
