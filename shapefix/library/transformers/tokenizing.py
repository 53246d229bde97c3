"""Call of a tokenizer: rows of ids for each text, or tensors of them."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.batches import Batches
from shapefix.domains.devices import CPU, placed
from shapefix.domains.tokens import Tokenized, Tokens
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import NO_AXES, DictValue, ListValue, RaggedDim, TupleValue, elements
from shapefix.interpreter.iteration import each
from shapefix.interpreter.tensor_values import TokenRow
from shapefix.interpreter.values import TEXT, Constant, Integer, LibraryObject, Reference, Unknown, Value
from shapefix.library.registry import method
from shapefix.library.signatures import BoundArguments, arguments_under, bound
from shapefix.library.tensors import contiguous_result
from shapefix.library.transformers.batch_encoding import ENCODING
from shapefix.library.transformers.pad_tokens import asks_for_pad_token, note_padding, strategy
from shapefix.library.transformers.tokenized_texts import (
    NOT_KNOWN,
    TokenizedTexts,
    Varies,
    cuts,
    fixed_length,
    length,
    of_one_call,
    texts,
    with_pairs,
)
from shapefix.library.transformers.tokenizers import TOKENIZER
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import Symbol, TokenId

_MIDDLE = "add_special_tokens=True, padding=False, truncation=None, max_length=None, stride=0"
_EXTRAS = (
    "return_token_type_ids=None, return_attention_mask=None, return_overflowing_tokens=False, "
    "return_special_tokens_mask=False, return_offsets_mapping=False, return_length=False"
)
_REST = (
    f"is_split_into_words=False, pad_to_multiple_of=None, padding_side=None, return_tensors=None, {_EXTRAS}"
)
_CALL = f"text=None, text_pair=None, text_target=None, text_pair_target=None, {_MIDDLE}, {_REST}"
_ENCODE_PLUS = f"text, text_pair=None, {_MIDDLE}, {_REST}"
_BATCH_ENCODE_PLUS = f"batch_text_or_text_pairs, {_MIDDLE}, {_REST}"
_ENCODE = f"text, text_pair=None, {_MIDDLE}, padding_side=None, return_tensors=None, {_EXTRAS}"
_TEMPLATE = (
    "conversation, tools=None, documents=None, chat_template=None, add_generation_prompt=False, "
    "continue_final_message=False, tokenize=True, padding=False, truncation=False, max_length=None, "
    f"return_tensors=None, return_dict=None, {_EXTRAS}"
)

SIGNATURES = {"__call__": _CALL, "encode": _ENCODE, "apply_chat_template": _TEMPLATE}
"""Parameters of the methods of every version."""

_SUBJECTS = ("text", "text_target", "batch_text_or_text_pairs", "conversation")


@method(TOKENIZER, "__call__")
def tokenize_texts(call: Call) -> Value:
    """Apply `tokenizer(texts)`: an encoding with `input_ids`; with targets it also has `labels`."""
    given = BoundArguments(bound(_CALL, call.arguments))
    words = given.flag("is_split_into_words")
    mapping = call.ev.state[Batches].mapping
    # A column passed by `map` row by row is one text, or the list of its words.
    one = False if mapping is not None and mapping[1] is False else None
    in_batch = mapping is not None and mapping[1] is not False
    target = texts(given.value("text_target"), words, one, in_batch=in_batch)
    targets = with_pairs(target, given.value("text_pair_target"))
    if given.is_none("text"):
        return _encoding(call, given, targets)
    sources = texts(given.value("text"), words, one, in_batch=in_batch)
    encoding = _encoding(call, given, with_pairs(sources, given.value("text_pair")))
    if given.is_none("text_target") is None:
        encoding.closed = False
    elif not given.is_none("text_target"):
        encoding.fields["labels"] = _Rows(call, given, targets, "text_target").of("id")
        encoding.written["labels"] = call.place
    return encoding


@method(TOKENIZER, "encode_plus")
def encode_one(call: Call) -> Value:
    given = BoundArguments(bound(_ENCODE_PLUS, call.arguments))
    return _encoding(call, given, with_pairs(_one(given.value("text")), given.value("text_pair")))


@method(TOKENIZER, "batch_encode_plus")
def encode_several(call: Call) -> Value:
    given = BoundArguments(bound(_BATCH_ENCODE_PLUS, call.arguments))
    words = given.flag("is_split_into_words")
    return _encoding(
        call, given, texts(given.value("batch_text_or_text_pairs"), words, several=True, in_batch=True)
    )


@method(TOKENIZER, "encode")
def encode(call: Call) -> Value:
    """Encode texts to ids only."""
    given = BoundArguments(bound(_ENCODE, call.arguments))
    text = given.value("text")
    one = _one(text) if _is_before_five(call) else texts(text, False, several=False)
    sources = with_pairs(one, given.value("text_pair"))
    rows = _Rows(call, given, sources)
    result = rows.of("id")
    _tell(call, given, rows, result)
    return result


def _one(value: Value) -> TokenizedTexts:
    """One text, perhaps as a list of its words."""
    known = texts(value, True, several=False)
    return known if known.several is False else TokenizedTexts(False, Varies.CALLS)


def _is_before_five(call: Call) -> bool:
    """Check for a transformers before version 5 in the project; an unknown version is the newest."""
    major = call.ev.versions.get("transformers", "5").partition(".")[0]
    return major.isdigit() and int(major) < 5


@method(TOKENIZER, "apply_chat_template")
def apply_chat_template(call: Call) -> Value:
    """Text of a conversation, or its ids: of one, a list of messages, or of several."""
    given = BoundArguments(bound(_TEMPLATE, call.arguments))
    conversations = _conversations(call, given.value("conversation"))
    tokenizes = given.flag("tokenize")
    if tokenizes is None or conversations.several is None:
        return Unknown()
    if not tokenizes:
        axes = frozenset({conversations.axis}) if conversations.axis is not None else NO_AXES
        return ListValue(None, TEXT, conversations.count, axes) if conversations.several else TEXT
    wanted = given.flag("return_dict") if "return_dict" in call.arguments.keywords else None
    if wanted is None and ("return_dict" in call.arguments.keywords or call.arguments.open):
        return Unknown()
    if wanted or (wanted is None and not _is_before_five(call)):
        return _encoding(call, given, conversations)
    rows = _Rows(call, given, conversations)
    result = rows.of("id")
    _tell(call, given, rows, result)
    return result


def _conversations(call: Call, value: Value) -> TokenizedTexts:
    if not isinstance(value, (ListValue, TupleValue)):
        return NOT_KNOWN
    first = each(call.ev, value)
    if isinstance(first, DictValue):
        return TokenizedTexts(False, Varies.CALLS)
    if not isinstance(first, (ListValue, TupleValue)):
        return NOT_KNOWN
    known = texts(value, False)
    return known if known.varies is Varies.ROWS else TokenizedTexts(True, Varies.UNKNOWN, known.count)


@method(TOKENIZER, "tokenize")
def tokens(call: Call) -> Value:
    """Tokens of one text."""
    one = _one(arguments_under(call, f"{TOKENIZER}.tokenize").value("text"))
    return ListValue(None, TEXT, length(one, "none", None, call.place))


class _Rows:
    """Form of the ids of a call: lists, tensors, or unknown."""

    def __init__(self, call: Call, given: BoundArguments, sources: TokenizedTexts, text: str = "") -> None:
        overflows = given.flag("return_overflowing_tokens")
        if overflows or overflows is None:
            # A long text is split into several rows.
            sources = sources.along(RaggedDim()) if overflows else NOT_KNOWN
        # The effect of `pad_to_max_length=True` of older versions is not modeled.
        others = call.arguments.keywords.keys() - given.values.keys()
        padding, fixed = None if others else strategy(given.value("padding")), fixed_length(given)
        mapping = call.ev.state[Batches].mapping
        in_map = mapping is not None and mapping[1] is not False
        self.call = call
        self.given = sources
        several = sources.several and not (sources.count is not None and sources.count.value == 1)
        kept = "none" if padding == "longest" and several is False else padding
        known = kept if kept != "longest" or several else None
        tokenizer = call.receiver if isinstance(call.receiver, LibraryObject) else LibraryObject(TOKENIZER)
        tokens = Tokens(call.place, given.value(text or _subject(given)), known, tokenizer)
        self.ids = TokenId("id", frozenset({tokens}))
        self.tensors = tensors_asked(given)
        asked = _padding_asked(call)
        is_cut = cuts(given)
        self.length = length(sources, padding, fixed, call.place, in_map=in_map, cuts=is_cut, asked=asked)
        self.count = Size.of(1) if sources.several is False else sources.count or Size.symbol("B")
        in_tensor = length(of_one_call(sources), padding, fixed, call.place, in_map=in_map, asked=asked)
        self.tensor_length = in_tensor or Size.symbol("length")

    def of(self, name: str) -> Value:
        """Ids, or another integer for each token."""
        if self.tensors is None:
            return Unknown(name)
        symbol = self.ids if name == "id" else Symbol(name, least=0)
        if self.tensors:
            sizes = [self.count, self.tensor_length]
            on_cpu = placed(self.call.ev, CPU, self.call.place)
            made = contiguous_result(self.call, sizes, Op.TOKENIZE, dtype="int64", device=on_cpu)
            made.row = TokenRow(symbol)
            return made
        return self.listed(Integer(Size.from_symbol(symbol)))

    def lengths(self) -> Value | None:
        """Number of tokens of each row, as a list; None if unknown."""
        if self.tensors is not False or not self.given.several or self.length is None:
            return None
        return self._several(Integer(self.length))

    def listed(self, item: Value) -> Value:
        """List of items for each text, one item for each token."""
        if self.given.several is None:
            return Unknown()
        row = ListValue(None, item, self.length)
        if not self.given.several:
            return row
        if self.given.count is not None and self.given.count.value == 1:
            return ListValue((row,))
        return self._several(row)

    def _several(self, item: Value) -> Value:
        """List of one item for each text."""
        axes = NO_AXES if self.given.axis is None else frozenset({self.given.axis})
        return ListValue(None, item, self.given.count, axes)


def _subject(given: BoundArguments) -> str:
    """Argument with the texts."""
    names = (name for name in _SUBJECTS if name in given.values and not given.is_none(name))
    return next(names, "text")


def _padding_asked(call: Call) -> str:
    """Padding argument of the call as the code has it; empty if it states none."""
    given = call.arguments.keywords.get("padding")
    return f"padding={given.value!r}" if isinstance(given, Constant) else ""


def tensors_asked(given: BoundArguments) -> bool | None:
    """Check whether torch tensors are requested; None if the format may be another one."""
    value = given.value("return_tensors")
    if isinstance(value, Reference) and value.name.endswith(".TensorType.PYTORCH"):
        return True
    if isinstance(value, Constant):
        return {None: False, "pt": True}.get(value.value)
    return None


def _encoding(call: Call, given: BoundArguments, sources: TokenizedTexts) -> DictValue:
    """Encoding with all certain keys."""
    rows = _Rows(call, given, sources)
    fields: dict[object, Value] = {"input_ids": rows.of("id")}
    types = rows.of("token_type_id")
    inputs = inputs_of(call.receiver)
    closed = inputs is not None
    for flag, key in (
        ("return_attention_mask", "attention_mask"),
        ("return_token_type_ids", "token_type_ids"),
        ("return_special_tokens_mask", "special_tokens_mask"),
    ):
        wanted = given.flag(flag)
        if given.is_none(flag):
            wanted = key in inputs if inputs is not None else key == "attention_mask" or None
        if wanted:
            fields[key] = types if key == "token_type_ids" else rows.of("mask")
        closed = closed and wanted is not None
    if given.flag("return_offsets_mapping"):
        number = Integer(Size.symbol("offset", least=0))
        fields["offset_mapping"] = Unknown() if rows.tensors else rows.listed(TupleValue((number, number)))
    if given.flag("return_overflowing_tokens"):
        fields["overflow_to_sample_mapping"] = Unknown()
    lengths = rows.lengths() if given.flag("return_length") else None
    if lengths is not None:
        fields["length"] = lengths
    for flag in ("return_offsets_mapping", "return_overflowing_tokens", "return_length"):
        closed = closed and given.flag(flag) is False

    def absent(key: object) -> Value:
        return types if key == "token_type_ids" else others.setdefault(key, Unknown(str(key)))

    others: dict[object, Value] = {}
    written = dict.fromkeys(fields, call.place)
    encoding = DictValue(fields, closed, ENCODING, absent, written)
    _tell(call, given, rows, encoding)
    return encoding


def inputs_of(tokenizer: Value | None) -> list[object] | None:
    """Default keys of the tokenizer's result; None if unknown."""
    stated = tokenizer.fields.get("model_input_names") if isinstance(tokenizer, LibraryObject) else None
    items = elements(stated) if isinstance(stated, Value) else None
    if items is None or not all(isinstance(item, Constant) for item in items):
        return None
    return [item.value for item in items if isinstance(item, Constant)]


def _tell(call: Call, given: BoundArguments, rows: _Rows, result: Value) -> None:
    """Report the tokenization, and a missing pad token if one is needed."""
    tokenizer = call.receiver
    if not isinstance(tokenizer, LibraryObject):
        return
    mapped, batched, count = call.ev.state[Batches].mapping or (None, None, None)
    lists = rows.listed(Integer(Size.symbol("id", least=0))) if rows.tensors else None
    several = rows.given.several
    step = (
        call.place,
        call.ev.calls,
        tokenizer,
        given.values,
        several,
        result,
        mapped,
        batched,
        lists,
        count,
    )
    call.ev.emit(Tokenized(*step))
    padding = given.value("padding")
    if asks_for_pad_token(tokenizer, padding, given.value("max_length")):
        asked = f"padding={padding.value!r}" if isinstance(padding, Constant) else "padding"
        note_padding(call, tokenizer, asked, subject=subject_of(call))


def subject_of(call: Call) -> cst.CSTNode | None:
    """Name in the code of the tokenizer called here, itself or by a method."""
    node = call.place.node
    if not isinstance(node, cst.Call):
        return None
    if call.name.endswith(".__call__"):
        return node.func
    return node.func.value if isinstance(node.func, cst.Attribute) else None
