"""Tokenizers of transformers: constructors, special tokens, and methods other than the call.

The end of a name determines the class. Tokenizers whose call takes other arguments
(Tapas, LayoutLM, Luke …) are left out: their results are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping

from shapefix.domains.tokens import Checkpoint, SpecialIds
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import Contents, DictValue, ListValue, TupleValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.joins import join_objects, join_values
from shapefix.interpreter.values import (
    NONE,
    NUMBER,
    TEXT,
    Constant,
    Integer,
    LibraryObject,
    Text,
    Unknown,
    Value,
    facts_of,
)
from shapefix.library.registry import declare, function, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import arguments_under
from shapefix.library.transformers.added_tokens import note_added
from shapefix.library.transformers.checkpoints import Family, of_checkpoint, of_class
from shapefix.library.transformers.pad_tokens import PAD, PAD_ID
from shapefix.library.transformers.tokenizer_backends import never_pads
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import SpecialId

TOKENIZER = "transformers.PreTrainedTokenizerBase"
declare(TOKENIZER, "builtins.object")

_CHANGEABLE = (PAD, PAD_ID, "eos_token", "model_input_names")
"""Fields of a tokenizer that code may change through an argument."""


@hooks.escape
def _invalidate(ev: Evaluator, value: Value) -> None:
    if isinstance(value, LibraryObject) and value.kind == TOKENIZER:
        for name in _CHANGEABLE:
            ev.journal.write(value.fields, name, Unknown(name))


_SUFFIXES = ("Tokenizer", "TokenizerFast", "PreTrainedTokenizerBase", "TokenizersBackend")
_PARTS = frozenset(
    f"{name}Tokenizer" for name in ("Basic", "Wordpiece", "Character", "Mecab", "Sudachi", "Jumanpp", "Rag")
)
"""Classes of parts of tokenizers, or of pairs of them."""
_OTHER_CALLS = frozenset(
    {
        "DPRReader",
        "Jukebox",
        "LayoutLMv2",
        "LayoutLMv3",
        "LayoutXLM",
        "Luke",
        "MLuke",
        "MarkupLM",
        "RoCBert",
        "SeamlessM4T",
        "Tapas",
        "Tapex",
        "Udop",
        "Wav2Vec2",
    }
)
_NO_MASK = frozenset({"FNet", "TransfoXL"})
_SPECIAL = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_SPECIAL_TOKENS = tuple(f"{name}_token" for name in _SPECIAL)


def kind_of(name: str) -> str | None:
    """Class of the tables for a tokenizer of transformers; None for any other class."""
    if not name.startswith("transformers."):
        return None
    last = name.rpartition(".")[2]
    if last in _PARTS or last.startswith("TF") or not last.endswith(_SUFFIXES):
        return None
    family = last.removesuffix("Fast").removesuffix("Tokenizer")
    return None if family in _OTHER_CALLS or family in _NO_MASK else TOKENIZER


_PLAIN_INPUTS = ListValue((Constant("input_ids"), Constant("attention_mask")))
"""Keys of the result of a tokenizer without a class of its own."""


@function(TOKENIZER)
def made(call: Call) -> Value:
    """Tokenizer made of files; settings have the default of the class unless stated."""
    family = of_class(call.name.rpartition(".")[2])
    pad: Value = NONE if family is not None and not family.pads else Unknown(PAD)
    if family is None and never_pads(call.arguments.keywords.get("tokenizer_object")):
        # Special tokens are those of the arguments.
        own = _tokenizer(call, None, NONE, Unknown("name"), NONE)
        if call.name.endswith(".PreTrainedTokenizerFast") and is_at_least(call.ev, "5.0"):
            own.fields.setdefault("model_input_names", _PLAIN_INPUTS)
        return own
    return _tokenizer(call, family, pad, Unknown("name"))


@function(f"{TOKENIZER}.from_pretrained")
def from_pretrained(call: Call) -> Value:
    """Tokenizer with the settings of a checkpoint; it may give a pad token to any class."""
    name = arguments_under(call, f"{TOKENIZER}.from_pretrained").value("pretrained_model_name_or_path")
    text = name.value if isinstance(name, Constant) and isinstance(name.value, str) else ""
    public = of_checkpoint(text)
    family = public or of_class(call.name.rpartition(".")[0].rpartition(".")[2])
    pad: Value = NONE if public is not None and not public.pads else Unknown(PAD)
    tokenizer = _tokenizer(call, family, pad, name)
    if public is not None:
        tokenizer.fields.setdefault("model_max_length", Integer(Size.symbol("model_max_length")))
    # A new special token is added to the vocabulary.
    given = call.arguments.keywords
    note_added(call, tokenizer, {key: given[key] for key in _SPECIAL_TOKENS if key in given})
    return tokenizer


def _tokenizer(
    call: Call, family: Family | None, pad: Value, name: Value, ends: Value | None = None
) -> LibraryObject:
    if family is not None and family.pads:
        pad = Text()
    ends = ends or Unknown("eos_token")
    if family is not None:
        ends = Text() if family.ends else NONE
    fields: dict[str, Value] = {PAD: pad, "eos_token": ends}
    if family is not None and family.inputs:
        fields["model_input_names"] = ListValue(tuple(Constant(key) for key in family.inputs))
    facts = Facts.of(Checkpoint(name))
    return LibraryObject(TOKENIZER, {}, call.place, {**fields, **_settings(call)}, facts)


def _settings(call: Call) -> dict[str, Value]:
    """Settings stated by keyword arguments; those of `**kwargs` are unknown."""
    given: dict[str, Value] = {}
    for name in (PAD, "eos_token", "model_input_names", "model_max_length", "padding_side", "add_eos_token"):
        value = call.arguments.keywords.get(name)
        if value is None and call.arguments.open:
            value = Unknown(name)
        if isinstance(value, Constant) and value.value is None:
            # The meaning of None (the default, or no token) depends on the version.
            value = Unknown(name)
        if value is not None:
            given[name] = value
    return given


@join_values
def join_tokenizers(left: Value, right: Value, depth: int) -> Value | None:
    """Join two tokenizers to one with their common settings; None for other values."""
    if not (isinstance(left, LibraryObject) and isinstance(right, LibraryObject)):
        return None
    if left.kind != TOKENIZER or right.kind != TOKENIZER:
        return None
    joined = join_objects(left, right, depth)
    if isinstance(joined, LibraryObject):
        for name in left.fields.keys() ^ right.fields.keys():
            joined.fields[name] = Unknown(str(name))
    return joined


def unknown_tokenizer() -> LibraryObject:
    """Value of a parameter annotated with the class of a tokenizer."""
    fields: dict[str, Value] = {PAD: Unknown(PAD), "eos_token": Unknown("eos_token")}
    return LibraryObject(TOKENIZER, {}, None, fields)


def fields_of(call: Call) -> dict[object, Value]:
    """Fields of the tokenizer of the called method; a new dictionary for unknown objects."""
    return call.receiver.fields if isinstance(call.receiver, LibraryObject) else {}


def _ids_of(call: Call) -> SpecialIds:
    facts = facts_of(call.receiver)
    known = facts.known(SpecialIds)
    if known is None:
        known = facts[SpecialIds] = SpecialIds()
    return known


@dataclass(frozen=True, slots=True)
class NumberOfTokens(Fact):
    """Number of tokens of a tokenizer, added ones included."""

    number: Value


@dataclass(frozen=True, slots=True)
class VocabularySize(Fact):
    """Number of tokens of a tokenizer without added ones."""

    number: Value


@method(TOKENIZER, *(f"@{name}_token_id" for name in _SPECIAL))
def token_id(call: Call) -> Value:
    """Id of a special token: the same each time, and equal for equal tokens."""
    name = call.name.rpartition(".")[2].removesuffix("_id")
    fields = fields_of(call)
    token = fields.get(name)
    if isinstance(token, Constant) and token.value is None:
        return NONE
    ids = _ids_of(call).by_token
    key = token if token is not None else name
    if key not in ids:
        known = isinstance(token, (Constant, Text))
        special = Integer(Size.from_symbol(SpecialId(f"{name}_id", 0)))
        ids[key] = special if known else Unknown(f"{name}_id")
    return ids[key]


@method(TOKENIZER, "add_special_tokens")
def add_special_tokens(call: Call) -> Value:
    """Add special tokens, with keys for their names: `{"pad_token": "[PAD]"}`."""
    given = arguments_under(call, f"{TOKENIZER}.add_special_tokens").value("special_tokens_dict")
    tokens: Mapping[object, Value] = given.fields if isinstance(given, DictValue) else {}
    fields = fields_of(call)
    for name, token in tokens.items():
        call.ev.journal.write(fields, name, token)
    if not isinstance(given, DictValue) or not given.closed:
        for name in (PAD, "eos_token"):
            if name not in tokens:
                call.ev.journal.write(fields, name, Unknown(name))
    return _added(call, tokens if isinstance(given, DictValue) else {"": given})


@method(TOKENIZER, "add_tokens")
def add_tokens(call: Call) -> Value:
    """Add tokens, and return the number of new ones."""
    return _added(call, {"": arguments_under(call, f"{TOKENIZER}.add_tokens").value("new_tokens")})


def _added(call: Call, tokens: Mapping[object, Value]) -> Value:
    note_added(call, call.receiver, tokens)
    call.ev.journal.write(facts_of(call.receiver), NumberOfTokens, NumberOfTokens(Integer(Size.symbol("V"))))
    return NUMBER


@method(TOKENIZER, "__len__")
def number_of_tokens(call: Call) -> Value:
    facts = facts_of(call.receiver)
    known = facts.known(NumberOfTokens)
    if known is None:
        known = facts[NumberOfTokens] = NumberOfTokens(Integer(Size.symbol("V")))
    return known.number


@method(TOKENIZER, "@vocab_size")
def vocabulary_size(call: Call) -> Value:
    """Size of the vocabulary without added tokens."""
    facts = facts_of(call.receiver)
    known = facts.known(VocabularySize)
    if known is None:
        known = facts[VocabularySize] = VocabularySize(Integer(Size.symbol("V")))
    return known.number


@method(TOKENIZER, "convert_tokens_to_ids")
def token_ids(call: Call) -> Value:
    given = arguments_under(call, f"{TOKENIZER}.convert_tokens_to_ids").value("tokens")
    if isinstance(given, Text) or (isinstance(given, Constant) and isinstance(given.value, str)):
        return Integer(Size.symbol("id", least=0))
    contents = _contents(given)
    if contents is None:
        return Unknown()
    return ListValue(None, Integer(Size.symbol("id", least=0)), contents.length, contents.axes)


@method(TOKENIZER, "convert_ids_to_tokens")
def tokens_of_ids(call: Call) -> Value:
    contents = _contents(arguments_under(call, f"{TOKENIZER}.convert_ids_to_tokens").value("ids"))
    return Unknown() if contents is None else ListValue(None, TEXT, contents.length, contents.axes)


def _contents(value: Value | None) -> Contents | None:
    if isinstance(value, ListValue):
        return value.contents
    return Contents(value.items) if isinstance(value, TupleValue) else None


@method(TOKENIZER, "decode")
def decoded(call: Call) -> Value:
    """One text; version 5 returns several for several rows."""
    given = arguments_under(call, f"{TOKENIZER}.decode").value("token_ids")
    return TEXT if isinstance(given, ListValue) and isinstance(each(call.ev, given), Integer) else Unknown()


@method(TOKENIZER, "convert_tokens_to_string")
def joined(call: Call) -> Value:
    return TEXT


@method(TOKENIZER, "batch_decode")
def all_decoded(call: Call) -> Value:
    sequences = arguments_under(call, f"{TOKENIZER}.batch_decode").value("sequences")
    rows = iterate(call.ev, sequences, call.place.node)
    contents = _contents(rows)
    if contents is None:
        return ListValue(None, TEXT)
    return ListValue(None, TEXT, contents.length, contents.axes)
