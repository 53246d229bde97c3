"""Models of transformers, classified by the end of their class's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from shapefix.domains.batches import MODEL_OUTPUT
from shapefix.domains.devices import ModuleDevice
from shapefix.domains.gradients import Gradients
from shapefix.domains.tokens import Checkpoint
from shapefix.domains.try_blocks import StepKind, note_step
from shapefix.interpreter import hooks
from shapefix.interpreter.attributes import attribute
from shapefix.interpreter.calls import Arguments, Call, instantiate
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Fact, Facts
from shapefix.interpreter.values import (
    FALSE,
    NONE,
    ClassValue,
    Constant,
    Integer,
    LibraryObject,
    Unknown,
    Value,
    as_size,
    facts_of,
)
from shapefix.library.nn.layers import fields_of
from shapefix.library.nn.module import MODULE, convert_weights
from shapefix.library.nn.parameter_devices import device_of_model, model_where, note_model_place
from shapefix.library.nn.training import Trained, made_here
from shapefix.library.optim.modes import switch
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.signatures import arguments_under
from shapefix.library.tensors import default_dtype, dtype_of
from shapefix.library.transformers.added_tokens import Resized
from shapefix.library.transformers.architectures import OwnClass, class_of, configuration_of
from shapefix.library.transformers.checkpoints import WIDTH_NAMES, states_no_labels, widths_of
from shapefix.library.transformers.configuration_sizes import sizes_of
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size

BASE, CONFIGURATION = "transformers.PreTrainedModel", "transformers.PretrainedConfig"


@hooks.escape
def _invalidate(ev: Evaluator, value: Value) -> None:
    """Forget the resizing of the embedding of a model passed to unknown code."""
    if isinstance(value, LibraryObject) and derives(value.kind, BASE):
        ev.journal.write(value.facts, Resized, Resized())


CAUSAL, MASKED = "transformers.AutoModelForCausalLM", "transformers.AutoModelForMaskedLM"
SEQ2SEQ, TOKENS = "transformers.AutoModelForSeq2SeqLM", "transformers.AutoModelForTokenClassification"
SEQUENCES = "transformers.AutoModelForSequenceClassification"
IMAGES = "transformers.AutoModelForImageClassification"
ANSWERS, HIDDEN = "transformers.AutoModelForQuestionAnswering", "transformers.AutoModel"
MODELS = (CAUSAL, MASKED, SEQ2SEQ, TOKENS, SEQUENCES, IMAGES, ANSWERS, HIDDEN)

_BY_SUFFIX = {
    "ForCausalLM": CAUSAL,
    "LMHeadModel": CAUSAL,
    "ForMaskedLM": MASKED,
    "ForTokenClassification": TOKENS,
    "ForSequenceClassification": SEQUENCES,
    "ForImageClassification": IMAGES,
    "ForQuestionAnswering": ANSWERS,
    "PreTrainedModel": BASE,
    "Model": HIDDEN,
    "Config": CONFIGURATION,
}
_SEQ2SEQ = frozenset(
    f"{name}ForConditionalGeneration"
    for name in ("T5", "MT5", "LongT5", "Bart", "MBart", "Pegasus", "M2M100")
) | {"MarianMTModel", "AutoModelForSeq2SeqLM"}
_ELSE = frozenset({"BitsAndBytesConfig", "GenerationConfig"})
_SYNONYMS = {"hidden_size": ("n_embd", "d_model", "dim")}

declare(BASE, MODULE)
method(BASE, "@device")(device_of_model)
declare(CONFIGURATION, "builtins.object")
declare(MODEL_OUTPUT, "builtins.object")
for _kind in MODELS:
    declare(_kind, BASE)


@dataclass(frozen=True, slots=True)
class OutputOrder(Fact):
    """Names of the parts of a model's output, in their order."""

    names: tuple[str, ...]


_OTHERS = ("TF", "Flax", "DataCollator")
"""Prefixes of the names of classes that are not models of torch."""


def kind_of(name: str) -> str | None:
    """Class of the tables for a class of transformers; None if its name does not imply one."""
    last = name.rpartition(".")[2]
    if not name.startswith("transformers.") or last in _ELSE or last.startswith(_OTHERS):
        return None
    if last in _SEQ2SEQ:
        return SEQ2SEQ
    if last.endswith(("EncoderDecoderModel", "EncoderDecoderConfig")):
        return None
    return next((kind for suffix, kind in _BY_SUFFIX.items() if last.endswith(suffix)), None)


def _configuration(call: Call, known: Mapping[str, Value]) -> LibraryObject:
    """Configuration with known given sizes, and the usual symbols for the others."""
    fields = dict(known)
    for name, synonyms in _SYNONYMS.items():
        given = next((fields[synonym] for synonym in synonyms if synonym in fields), None)
        if name not in fields and given is not None:
            fields[name] = given
    for name, symbol in (("vocab_size", "V"), ("hidden_size", "D"), ("num_labels", "num_labels")):
        fields.setdefault(name, Integer(Size.symbol(symbol)))
    return LibraryObject(CONFIGURATION, {}, call.place, fields)


@function(CONFIGURATION, f"{CONFIGURATION}.from_pretrained")
def configuration(call: Call) -> Value:
    name, stored, _ = call.name.partition(".from_pretrained")
    keywords = call.arguments.keywords
    checkpoint = _checkpoint(call, CONFIGURATION) if stored else None
    known = _widths(call, checkpoint)
    if not stored and not call.arguments.open and not call.arguments.positional:
        known = _by_default(name, keywords)
    made = _configuration(call, {**known, **keywords})
    of_checkpoint = configuration_of(checkpoint.value) if _is_text(checkpoint) else None
    made.facts[OwnClass] = OwnClass(of_checkpoint if name.endswith(".AutoConfig") else name)
    return made


def _checkpoint(call: Call, kind: str) -> Value:
    """Name of the checkpoint loaded by `from_pretrained` of a model or a configuration."""
    return arguments_under(call, f"{kind}.from_pretrained").value("pretrained_model_name_or_path")


def _widths(call: Call, checkpoint: Value | None) -> dict[str, Value]:
    """Hidden size of a public checkpoint, unless the call may set another one."""
    if (
        call.arguments.open
        or not _is_text(checkpoint)
        or not WIDTH_NAMES.keys().isdisjoint(call.arguments.keywords)
    ):
        return {}
    return {name: Constant(width) for name, width in widths_of(checkpoint.value).items()}


_LABELS = frozenset({"num_labels", "id2label", "label2id"})


def _labels(call: Call, checkpoint: Value | None) -> dict[str, Value]:
    """Default number of labels for a public checkpoint without a head, unless the call sets another one."""
    if call.arguments.open or not _is_text(checkpoint) or not _LABELS.isdisjoint(call.arguments.keywords):
        return {}
    name = configuration_of(checkpoint.value) if states_no_labels(checkpoint.value) else None
    return {key: value for key, value in _by_default(name or "", {}).items() if key == "num_labels"}


def _by_default(name: str, keywords: Mapping[str, Value]) -> dict[str, Value]:
    """Default value of a configuration's field; labels may be named instead of counted."""
    given = {*keywords, "num_labels"} if {"id2label", "label2id"} & keywords.keys() else keywords
    sizes = sizes_of(name.rpartition(".")[2], given)
    return {key: Constant(number) for key, number in sizes.items()}


def _is_text(value: Value | None) -> TypeGuard[Constant]:
    return isinstance(value, Constant) and isinstance(value.value, str)


def _made(call: Call, config: Value) -> LibraryObject:
    """Model with the name of its class, and of an Auto class's configuration."""
    note_step(call.ev, StepKind.MADE, call.place.node)
    name = call.name
    for constructor in (".from_pretrained", "._from_config", ".from_config"):
        name = name.removesuffix(constructor)
    facts = Facts({OwnClass: OwnClass(name), Trained: _trained(call), ModuleDevice: model_where(call)})
    if call.name.endswith(".from_pretrained"):
        facts[Checkpoint] = Checkpoint(_checkpoint(call, BASE))
    return LibraryObject(kind_of(name) or BASE, {}, call.place, {"config": config}, facts)


_QUANTIZED = frozenset({"quantization_config", "load_in_8bit", "load_in_4bit"})


def _trained(call: Call) -> Trained | None:
    """Check whether the weights are trained: quantized ones are not, most of them."""
    is_whole = not call.arguments.open and _QUANTIZED.isdisjoint(call.arguments.keywords)
    return made_here(call) if is_whole else None


@function(*(f"{kind}.from_pretrained" for kind in MODELS))
def from_pretrained(call: Call) -> Value:
    given = call.arguments.keywords
    if "config" in given:
        return _made(call, given["config"])
    # Other settings (dtype, device) do not belong to a configuration.
    sizes = {name: value for name, value in given.items() if name in ("num_labels", "vocab_size")}
    checkpoint = _checkpoint(call, BASE)
    config = _configuration(call, {**_widths(call, checkpoint), **_labels(call, checkpoint), **sizes})
    config.facts[OwnClass] = OwnClass(configuration_of(checkpoint.value) if _is_text(checkpoint) else None)
    return _made(call, config)


@function(*MODELS, *(f"{kind}.from_config" for kind in MODELS))
def from_config(call: Call) -> Value:
    return _made(call, arguments_under(call, BASE).value("config"))


@method(BASE, "from_pretrained", "from_config", "_from_config")
def project_model(call: Call) -> Value:
    """Model of a project class, or one of transformers, created with a configuration."""
    if not isinstance(call.receiver, ClassValue):
        return from_config(call) if call.name.endswith("_from_config") else Unknown()
    stored = call.name.endswith("from_pretrained")
    given = arguments_under(call, f"{BASE}.from_pretrained" if stored else BASE)
    config = _configuration(call, {}) if given.is_none("config") else given.value("config")
    made = instantiate(call.ev, call.receiver, Arguments([config]), call.place.node)
    if stored:
        switch(call.ev, made, FALSE)
        convert_weights(call, made, _stored_dtype(call))
    return made


def _stored_dtype(call: Call) -> str | None:
    """Return the dtype of loaded weights: the requested one, and since transformers 5.0 that of the file."""
    keywords = call.arguments.keywords
    given = keywords.get("dtype", keywords.get("torch_dtype"))
    if given is not None:
        return dtype_of(given)
    is_default = not call.arguments.open and not is_at_least(call.ev, "5.0")
    return default_dtype(call) if is_default else None


@method(BASE, "__init__")
def initialize(call: Call) -> Value:
    config = arguments_under(call, BASE).value("config")
    call.ev.journal.write(fields_of(call.receiver), "config", config)
    return NONE


@method(BASE, "post_init", "init_weights", "gradient_checkpointing_enable", "gradient_checkpointing_disable")
@method(BASE, "save_pretrained", "enable_input_require_grads", "tie_weights")
def returns_none(call: Call) -> Value:
    return NONE


@method(BASE, "generate")
def generate(call: Call) -> Value:
    note_model_place(call, {})
    return Unknown()


@method(BASE, "set_input_embeddings")
def replace_embedding(call: Call) -> Value:
    call.ev.journal.write(facts_of(call.receiver), Resized, Resized())
    return NONE


@method(BASE, "resize_token_embeddings")
def resize(call: Call) -> Value:
    """Resize the embedding: the numbers of logits and rows change."""
    call.ev.journal.write(facts_of(call.receiver), Resized, Resized())
    config = fields_of(call.receiver).get("config")
    given = arguments_under(call, f"{BASE}.resize_token_embeddings")
    count = given.value("new_num_tokens")
    if isinstance(config, LibraryObject) and not given.is_none("new_num_tokens"):
        call.ev.journal.write(config.fields, "vocab_size", count)
    return Unknown()


def setting_of(call: Call, model: Value | None, name: str) -> Size | None:
    """Size in the configuration of a model."""
    config = fields_of(model).get("config")
    if config is None:
        return None
    return as_size(attribute(call.ev, config, name, call.place.node))


def classes_of(call: Call, model: Value | None) -> Size | None:
    """Number of classes of a model with a cross-entropy over classes; None for others."""
    own = class_of(model)
    is_classifier = own is not None and kind_of(own) in (SEQUENCES, TOKENS, IMAGES)
    return setting_of(call, model, "num_labels") if is_classifier else None


@function("peft.get_peft_model", "peft.prepare_model_for_kbit_training")
def wrapped(call: Call) -> Value:
    """Return the model itself, mostly frozen: its parameters and results stay the same."""
    call.ev.state[Gradients].frozen = True
    model = call.value(0, "model") or Unknown()
    switch(call.ev, model, Unknown())
    return model
