"""Outputs of the models of transformers, by the task of their heads.

These facts were executed with transformers 5.23 on small random models, made from the configurations of
all architectures that take `input_ids`, in training and in evaluation: the logits of 111 causal and 41 masked
language models, of 76 token and 85 sequence classifiers are contiguous, and so is the last hidden state of
139 of 141 base models (Longformer and CpmAnt cut a padded one). The logits of question answering are not, in
4 of 31. Of the encoder-decoders T5, MT5, LongT5, BART, mBART, Pegasus, Marian and M2M100 were run: logits are
contiguous, and as long as the targets.
"""

from __future__ import annotations

from shapefix.domains.batches import MODEL_OUTPUT
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.refinement import refine_rank
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    NONE,
    Constant,
    LibraryObject,
    Unknown,
    Value,
    as_tensor,
    facts_of,
)
from shapefix.library.nn.layers import fields_of
from shapefix.library.nn.parameter_devices import note_model_place
from shapefix.library.nn.training import is_trained
from shapefix.library.ops.graphs import note_graph
from shapefix.library.registry import method
from shapefix.library.tensors import as_result
from shapefix.library.transformers.architectures import class_of
from shapefix.library.transformers.class_labels import compare_classes
from shapefix.library.transformers.classifier_padding import note_classified, rows_of
from shapefix.library.transformers.forward_signatures import first_parameter
from shapefix.library.transformers.models import (
    ANSWERS,
    CAUSAL,
    HIDDEN,
    IMAGES,
    MASKED,
    SEQ2SEQ,
    SEQUENCES,
    TOKENS,
    OutputOrder,
    kind_of,
    setting_of,
)
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_TEXTS = frozenset({CAUSAL, MASKED, SEQ2SEQ, TOKENS, SEQUENCES, ANSWERS})
_ANY_RANK = ("GPT2", "OPT")
"""Families of models that flatten the leading dimensions of their token ids, and accept a single row."""
_POOLED = ("Albert", "Bert", "Camembert", "Roberta", "XLMRoberta")
"""Families of models with a pooled state right after the last hidden state."""


def _first_parameter(call: Call) -> str | None:
    """Parameter of the first positional argument; None if unknown."""
    config = fields_of(call.receiver).get("config")
    own = class_of(call.receiver)
    if own is None:
        return None
    known = first_parameter(own, call.ev.versions.get("transformers"), class_of(config))
    # All Auto classes of these kinds are for texts; some models call their token ids otherwise.
    is_auto = own.rpartition(".")[2].startswith("Auto")
    return known or ("input_ids" if is_auto and kind_of(own) in _TEXTS else None)


def _given(call: Call, name: str) -> Value | None:
    """Argument for a parameter of forward, by its name or in the first position."""
    if name in call.arguments.keywords or not call.arguments.positional:
        return call.arguments.keywords.get(name)
    first = call.arguments.positional[0]
    if _first_parameter(call) == name:
        return first
    if name != "input_ids":
        return None
    # Neither images nor sounds are whole numbers of 64 bits.
    is_ids = isinstance(first, TensorValue) and first.dtype == "int64"
    is_named = isinstance(first, Unknown) and first.hint.rstrip("']").endswith("input_ids")
    return first if is_ids or is_named else None


def _leading(call: Call, *names: str) -> tuple[Size, Size] | None:
    """Batch and length of one of these arguments; symbols B and T if they are not given.

    None if they are unknown.
    """
    for name in names:
        value = _given(call, name)
        tensor = as_tensor(value)
        if tensor is None or (isinstance(value, Constant) and value.value is None):
            continue
        if tensor.layout is None and name != "inputs_embeds":
            tensor.certain = True
            refine_rank(
                call.ev, tensor, [Size.symbol("B"), Size.symbol("T")], certain=not _takes_any_rank(call)
            )
        if tensor.layout is not None and tensor.layout.rank >= 2:
            return tensor.layout.sizes[0], tensor.layout.sizes[1]
        return None
    if call.arguments.positional and "input_ids" in names:
        # Images or sounds, perhaps.
        return None
    return Size.symbol("B"), Size.symbol("T")


def _takes_any_rank(call: Call) -> bool:
    """Check for a model with token ids of any rank."""
    names = _class_names(call)
    if any(not name.startswith("Auto") for name in names):
        return any(name.startswith(_ANY_RANK) for name in names)
    return _is(call, CAUSAL) or _is(call, HIDDEN)


def _class_names(call: Call) -> list[str]:
    """Names of the classes of a model and of its configuration, as far as they are known."""
    config = fields_of(call.receiver).get("config")
    known = [class_of(value) for value in (call.receiver, config)]
    return [name.rpartition(".")[2] for name in known if name is not None]


_TARGETS = ("labels", "start_positions", "end_positions", "next_sentence_label", "mc_labels", "future_values")
"""Parameters of forward with a loss as the first output."""
_MOST_WITHOUT_LABELS = 3
_OF_TEXTS = frozenset({"input_ids", "inputs_embeds", "decoder_input_ids", "attention_mask"})
"""Parameters of forward of text models."""


def _output(call: Call, fields: dict[str, Layout | None]) -> Value:
    """Output object; its loss comes first if labels were given."""
    if "return_dict" in call.arguments.keywords:
        return Unknown()
    given = call.arguments.keywords
    labels = next((given[name] for name in _TARGETS if name in given), None)
    values: dict[str, Value] = {}
    order: list[str] | None = list(fields)
    # The labels may be among several arguments by position.
    has_others = len(call.arguments.positional) > _MOST_WITHOUT_LABELS
    if call.arguments.open or has_others or isinstance(labels, Unknown):
        values["loss"], order = as_result(call, Layout((), ()), Op.MODEL_LOSS), None
    elif labels is None or (isinstance(labels, Constant) and labels.value is None):
        values["loss"] = NONE
    else:
        values["loss"] = as_result(call, Layout((), ()), Op.MODEL_LOSS)
        order = ["loss", *fields]
    for name, layout in fields.items():
        values[name] = as_result(call, layout, Op.MODEL_OUTPUT)
    trained = is_trained(call, call.receiver)
    for value in values.values():
        note_graph(call, value, trained)
    note_model_place(call, values)
    facts = Facts() if order is None else Facts.of(OutputOrder(tuple(order)))
    return LibraryObject(MODEL_OUTPUT, {}, call.place, dict(values), facts)


@method(MODEL_OUTPUT, "__getitem__")
def output_item(call: Call) -> Value:
    """`outputs["logits"]`, or `outputs[0]` if the first field is known."""
    fields = fields_of(call.receiver)
    index = call.value(0)
    if isinstance(index, Constant) and isinstance(index.value, str):
        return fields.get(index.value) or Unknown(index.value)
    order = facts_of(call.receiver).known(OutputOrder)
    if isinstance(index, Constant) and isinstance(index.value, int) and order is not None:
        if 0 <= index.value < len(order.names):
            return fields[order.names[index.value]]
    return Unknown()


@method(CAUSAL, "forward")
@method(MASKED, "forward")
@method(TOKENS, "forward")
def forward_to_tokens(call: Call) -> Value:
    """Result of sizes (B, T, V), or (B, T, num_labels)."""
    width = setting_of(call, call.receiver, "num_labels" if _is(call, TOKENS) else "vocab_size")
    if _is(call, TOKENS):
        compare_classes(call, width)
    leading = _leading(call, "input_ids", "inputs_embeds")
    if leading is None or width is None:
        return _output(call, {"logits": None})
    batch, length = leading
    if "logits_to_keep" in call.arguments.keywords or "num_logits_to_keep" in call.arguments.keywords:
        length = Size.symbol("kept")
    return _output(call, {"logits": contiguous((batch, length, width))})


def _is(call: Call, kind: str) -> bool:
    return kind_of(call.name.rpartition(".")[0]) == kind


@method(SEQ2SEQ, "forward")
def forward_to_targets(call: Call) -> Value:
    """Result of sizes (B, T, V), with T the length of the targets."""
    width = setting_of(call, call.receiver, "vocab_size")
    given = [name for name in ("decoder_input_ids", "labels") if name in call.arguments.keywords]
    leading = _leading(call, *given) if given else (Size.symbol("B"), Size.symbol("T"))
    if leading is None or width is None:
        return _output(call, {"logits": None})
    return _output(call, {"logits": contiguous((*leading, width))})


@method(SEQUENCES, "forward")
@method(IMAGES, "forward")
def forward_to_classes(call: Call) -> Value:
    """Result of sizes (B, num_labels)."""
    count = setting_of(call, call.receiver, "num_labels")
    compare_classes(call, count)
    if not _is(call, IMAGES):
        note_classified(call, call.receiver, rows_of(_given(call, "input_ids")))
    names = ("pixel_values",) if _is(call, IMAGES) else ("input_ids", "inputs_embeds")
    leading = _image_batch(call) if names[0] == "pixel_values" else _leading(call, *names)
    if leading is None or count is None:
        return _output(call, {"logits": None})
    return _output(call, {"logits": contiguous((leading[0], count))})


def _image_batch(call: Call) -> tuple[Size, ...]:
    images = as_tensor(call.value(0, "pixel_values"))
    if images is None:
        return (Size.symbol("B"),)
    return (images.size(0, Size.symbol("B")),)


@method(ANSWERS, "forward")
def forward_to_answers(call: Call) -> Value:
    """Two results of sizes (B, T), not contiguous in every model."""
    leading = _leading(call, "input_ids", "inputs_embeds")
    layout = None if leading is None else unknown_strides(leading)
    return _output(call, {"start_logits": layout, "end_logits": layout})


@method(HIDDEN, "forward")
def forward_to_states(call: Call) -> Value:
    """Last hidden state (B, T, D), and its pooled form (B, D)."""
    width = setting_of(call, call.receiver, "hidden_size")
    targets = "decoder_input_ids" in call.arguments.keywords
    names = ("decoder_input_ids",) if targets else ("input_ids", "inputs_embeds")
    images = any(
        name in call.arguments.keywords for name in ("pixel_values", "input_values", "input_features")
    )
    leading = None if images or not _takes_ids(call) else _leading(call, *names)
    if leading is None or width is None:
        return _output(call, {"last_hidden_state": None, "pooler_output": None})
    batch, length = leading
    output = _output(
        call,
        {
            "last_hidden_state": contiguous((batch, length, width)),
            "pooler_output": contiguous((batch, width)),
        },
    )
    if isinstance(output, LibraryObject):
        del output.fields["loss"]
        pooled = ("pooler_output",) if _is_pooled(call) else ()
        output.facts[OutputOrder] = OutputOrder(("last_hidden_state", *pooled))
        states = TensorValue(unknown_strides((batch, length, width)))
        output.fields["hidden_states"] = ListValue(None, states)
    return output


def _takes_ids(call: Call) -> bool:
    """Check that a call may pass token ids, unlike one with `past_values` of a time series."""
    given = call.arguments
    return bool(
        given.open
        or given.positional
        or not given.keywords
        or not given.keywords.keys().isdisjoint(_OF_TEXTS)
    )


def _is_pooled(call: Call) -> bool:
    """Check for a model with a pooled state as its certain second output."""
    return any(
        name.removesuffix(end) in _POOLED for name in _class_names(call) for end in ("Model", "Config")
    )
