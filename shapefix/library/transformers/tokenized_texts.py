"""Texts passed to a tokenizer: one or several, and whether their lengths differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from shapefix.domains.raggedness import PADDED_IN_MAP, Origin
from shapefix.interpreter.containers import ListValue, RaggedDim, TupleValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Constant, Document, Text, Unknown, Value, is_text
from shapefix.library.signatures import BoundArguments
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import PerItemSize

_PIECE = re.compile(r"\w+|[^\w\s]")


class Varies(Enum):
    """Units with different numbers of tokens."""

    NEVER = "never"
    """A text stated in the code has one length."""
    CALLS = "calls"
    """From call to call; the rows of one call have one length."""
    ROWS = "rows"
    UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False, slots=True)
class TokenizedTexts:
    """One text or several: their number, axis, and variation of lengths.

    several is None if unknown. stated is True if all of them are constants, so that the longest
    is the same in each call. Each text has at least so many words. documents is whether they are long texts:
    of a map batch, the longest is cut.
    """

    several: bool | None
    varies: Varies
    count: Size | None = None
    axis: RaggedDim | None = None
    stated: bool = False
    words: int = 0
    documents: bool = False

    def along(self, axis: RaggedDim) -> TokenizedTexts:
        """The same texts, cut into an unknown number of rows."""
        return replace(self, several=True, varies=Varies.ROWS, count=None, axis=axis, stated=False, words=0)


NOT_KNOWN = TokenizedTexts(None, Varies.UNKNOWN)


def texts(
    value: Value, in_words: bool | None, several: bool | None = None, *, in_batch: bool = False
) -> TokenizedTexts:
    """Texts in value for a tokenizer; in_words means that a list of words is one text.

    several is the default of the method, for a value that does not decide it. in_batch is whether the code
    runs on a batch of rows, so that a list of unknown items is a column.
    """
    if is_text(value):
        return TokenizedTexts(False, Varies.NEVER if isinstance(value, Constant) else Varies.CALLS)
    if isinstance(value, (ListValue, TupleValue)) and in_words is not None:
        if not in_words:
            return _list(value)
        items = value.items
        first = items[0] if items else value.element if isinstance(value, ListValue) else None
        if first is not None and is_text(first):
            return TokenizedTexts(False, Varies.NEVER if _all_stated(items) else Varies.CALLS)
        is_column = in_batch and isinstance(first, Unknown) and isinstance(value, ListValue) and value.axes
        if is_column or isinstance(first, (ListValue, TupleValue)):
            # The rows of a column of words are lists themselves.
            return _list(value)
    if several is not None and isinstance(value, Unknown):
        return TokenizedTexts(several, Varies.UNKNOWN if several else Varies.CALLS)
    return NOT_KNOWN


def with_pairs(one: TokenizedTexts, pair: Value) -> TokenizedTexts:
    """Texts, each with a second one after it."""
    if one.varies is not Varies.NEVER or (isinstance(pair, Constant)):
        return one
    return replace(one, varies=Varies.UNKNOWN if one.several else Varies.CALLS, stated=False)


def _all_stated(items: Sequence[Value] | None) -> bool:
    return items is not None and all(isinstance(item, Constant) for item in items)


def _list(value: ListValue | TupleValue) -> TokenizedTexts:
    """Several texts."""
    items = value.items
    if items is not None:
        return _items(items)
    assert isinstance(value, ListValue)
    if value.axes or value.length is None:
        axis = next(iter(value.axes), None) or RaggedDim()
        documents = isinstance(value.element, Document)
        return TokenizedTexts(True, Varies.ROWS, value.length, axis, documents=documents)
    # Such as `[prompt] * n`: they may all be one text.
    return TokenizedTexts(True, Varies.UNKNOWN, value.length)


def _items(items: Sequence[Value]) -> TokenizedTexts:
    count, stated = Size.of(len(items)), _all_stated(items)
    different = {item.value if isinstance(item, Constant) else id(item): item for item in items}
    if len(different) <= 1:
        unsure = len(items) > 1 and not stated and isinstance(items[0], Text)
        varies = Varies.UNKNOWN if unsure else Varies.NEVER if stated else Varies.CALLS
        return TokenizedTexts(True, varies, count, stated=stated)
    if stated:
        lengths = {len(_PIECE.findall(str(word))) for word in different}
        if len(lengths) == 1:
            # Equal numbers of words may be equal numbers of tokens.
            return TokenizedTexts(True, Varies.UNKNOWN, count, stated=True)
    words = min(len(str(text).split()) for text in different) if stated else 0
    return TokenizedTexts(True, Varies.ROWS, count, RaggedDim(), stated, words)


def length(
    given: TokenizedTexts,
    padding: str | None,
    fixed: Size | None,
    place: Place,
    *,
    in_map: bool = False,
    cuts: bool = False,
    asked: str = "",
) -> Size | None:
    """Number of tokens of each row; None if unknown.

    padding is the call's `strategy`, fixed the length that it pads and cuts to, in_map whether the call
    gets the rows of one map batch after the other, cuts whether it cuts long texts, asked is the argument as
    the code has it: `padding=False`.
    """
    if padding == "max_length":
        return fixed
    if padding is None or given.varies is Varies.UNKNOWN:
        return None
    if given.varies is Varies.NEVER or (padding == "longest" and given.stated):
        return Size.symbol("length")
    if padding == "longest" and in_map and cuts and given.documents:
        return fixed or Size.symbol("length")
    if padding == "longest" and given.several:
        what = PADDED_IN_MAP if in_map else "padded to the longest of one call"
        return _varying("longest", None, place, what)
    unpadded = padding == "none"
    if unpadded and fixed is not None and fixed.value is not None and given.words >= fixed.value:
        # Each word is a token or more.
        return fixed
    what = f"tokenizer called with {asked}" if asked else "tokenizer called without padding"
    if not unpadded:
        what += " on one text"
    cut = fixed if unpadded else None
    return _varying("length", given.axis if given.varies is Varies.ROWS else None, place, what, cut)


def of_one_call(given: TokenizedTexts) -> TokenizedTexts:
    """Texts required for one tensor: the rows of a call have one length."""
    return replace(given, varies=Varies.CALLS, axis=None) if given.varies is Varies.ROWS else given


def _varying(name: str, axis: RaggedDim | None, place: Place, what: str, cut: Size | None = None) -> Size:
    return Size.from_symbol(PerItemSize(name, axis, Origin(place, what, cut), least=1))


def fixed_length(given: BoundArguments) -> Size | None:
    """Length of rows with `padding="max_length"`; None if longer ones may not be cut."""
    return given.size("max_length") if cuts(given) and given.is_none("max_length") is not True else None


def cuts(given: BoundArguments) -> bool:
    """Check whether a call cuts long texts, to `max_length` or to the limit of the model."""
    truncation = given.value("truncation")
    return isinstance(truncation, Constant) and truncation.value not in (None, False, "do_not_truncate")
