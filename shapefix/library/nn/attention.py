"""MultiheadAttention and the Transformer layers built on it."""

from __future__ import annotations

from shapefix.domains.gradients import Gradients
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, LibraryObject, Unknown, Value, as_size
from shapefix.library.nn.layers import computed_dtype, layer, result
from shapefix.library.nn.linear import last_size_is
from shapefix.library.nn.module import call_module
from shapefix.library.registry import function
from shapefix.library.rejections import operand_number
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import as_result
from shapefix.tensors import networks, tensor_iterator
from shapefix.tensors.attention import AttentionInput, check_attention
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, unknown_strides
from shapefix.tensors.networks import check_divisible
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size


def _heads_fit(given: BoundArguments) -> None:
    for name in ("embed_dim", "d_model"):
        width, heads = given.size(name), given.size("num_heads" if name == "embed_dim" else "nhead")
        if name in given.values and width is not None and heads is not None:
            check_divisible(width, heads, name)


def _own(given: BoundArguments, name: str, otherwise: Size | None) -> Size | None:
    """Setting of this name, or otherwise if it is None."""
    unset = given.is_none(name)
    return otherwise if unset else None if unset is None else given.size(name)


def _fit(
    given: BoundArguments,
    names: tuple[str, str, str],
    widths: tuple[Size | None, Size | None, Size | None],
    *,
    mask: str,
    padding_mask: str,
    heads: Size | None,
) -> None:
    """Check the named query, key and value. Raises ShapeError if they provably do not fit each other."""
    first = next(name for name in ("query", "src", "tgt") if name in given.values)

    def part(name: str) -> AttentionInput:
        tensor = given.tensor(name)
        return AttentionInput(
            None if tensor is None else tensor.layout, operand_number(given.values, first, name)
        )

    for name, width in zip(names, widths, strict=True):
        last_size_is(given.tensor(name), width, part(name).operand)
    query, key, value = map(part, names)
    check_attention(
        query,
        key,
        value,
        heads=heads,
        batch_first=given.flag("batch_first"),
        mask=part(mask),
        padding_mask=part(padding_mask),
    )


@layer("MultiheadAttention", validate=_heads_fit)
def multihead_attention(call: Call, given: BoundArguments) -> Value:
    query, key = given.tensor("query"), given.tensor("key")
    heads, batch_first = given.size("num_heads"), given.flag("batch_first")
    average, needed = given.flag("average_attn_weights"), given.flag("need_weights")
    output, weights = None, None
    width = given.size("embed_dim")
    _fit(
        given,
        ("query", "key", "value"),
        (width, _own(given, "kdim", width), _own(given, "vdim", width)),
        mask="attn_mask",
        padding_mask="key_padding_mask",
        heads=heads,
    )
    if query is not None and key is not None and query.layout is not None and key.layout is not None:
        if batch_first is not None:
            output, weights = networks.multihead_attention(
                query.layout,
                key.layout,
                heads=heads or 1,
                batch_first=batch_first,
                average=average is not False,
                fast_path=_fast_path(call, given),
            )
        elif query.layout is not None:
            output = unknown_strides(query.layout.sizes)
    dtype = computed_dtype(query)
    attended = result(call, query, output, Op.MULTIHEAD_ATTENTION, dtype=dtype, last=given.size("embed_dim"))
    if needed is False:
        return TupleValue((attended, NONE))
    if average is None or heads is None or needed is None:
        return TupleValue((attended, Unknown("weights")))
    if given.flag("add_zero_attn") or given.flag("add_bias_kv"):
        weights = None
    return TupleValue((attended, result(call, query, weights, Op.MULTIHEAD_ATTENTION)))


def _fast_path(call: Call, given: BoundArguments) -> bool | None:
    """Check whether torch takes its fast path (evaluation, without gradients); None if it may."""
    if call.ev.state[Gradients].recording is not False:
        return False
    heads = given.number("num_heads")
    apart = given.value("query") is not given.value("key") or given.value("key") is not given.value("value")
    if apart or given.flag("bias") is False or (heads is not None and heads % 2):
        return False
    return None


@layer("TransformerEncoderLayer", "TransformerDecoderLayer", validate=_heads_fit)
def transformer_layer(call: Call, given: BoundArguments) -> Value:
    """Result of one layer: contiguous after a final norm; with norm_first it is a residual sum."""
    name = "src" if "src" in given.values else "tgt"
    tensor, norm_first = given.tensor(name), given.flag("norm_first")
    ends_in_norm = norm_first is False
    width, heads = given.size("d_model"), given.size("nhead")
    every = (width, width, width)
    own, padding = f"{name}_mask", f"{name}_key_padding_mask"
    _fit(given, (name, name, name), every, mask=own, padding_mask=padding, heads=heads)
    if name == "tgt":
        memories = ("tgt", "memory", "memory")
        padding = "memory_key_padding_mask"
        _fit(given, memories, every, mask="memory_mask", padding_mask=padding, heads=heads)
    layout: Layout | None = None
    if tensor is not None and tensor.layout is not None:
        layout = contiguous(tensor.layout.sizes)
        if not ends_in_norm and is_contiguous(tensor.layout) is not True:
            layout = tensor_iterator.elementwise(tensor.layout, layout)
            # Without gradients torch may take a fast path that copies.
            if norm_first is None or name == "src":
                layout = unknown_strides(layout.sizes)
    op = Op.TRANSFORMER_LAYER
    return result(call, tensor, layout, op, is_contiguous=ends_in_norm, last=width)


@layer("TransformerEncoder", "TransformerDecoder")
def transformer_stack(call: Call, given: BoundArguments) -> Value:
    """Result of a stack of layers, all alike, and of the final norm."""
    is_encoder = "encoder_layer" in given.values
    block = given.value("encoder_layer" if is_encoder else "decoder_layer")
    norm = given.value("norm")
    if not isinstance(block, LibraryObject) or not block.kind.startswith("torch.nn.Transformer"):
        return Unknown()
    output = call_module(Call(call.ev, f"{block.kind}.__call__", call.place, call.arguments, block))
    if isinstance(norm, LibraryObject) and isinstance(output, TensorValue):
        arguments = type(call.arguments)([output])
        return call_module(Call(call.ev, f"{norm.kind}.__call__", call.place, arguments, norm))
    return output if given.is_none("norm") else Unknown()


@layer("Transformer")
def transformer(call: Call, given: BoundArguments) -> Value:
    tensor = given.tensor("tgt")
    if given.is_none("custom_decoder") is not True:
        return Unknown()
    width, heads = given.size("d_model"), given.size("nhead")
    every = (width, width, width)
    for query, key in (("src", "src"), ("tgt", "tgt"), ("tgt", "memory")):
        padding, own = f"{key}_key_padding_mask", f"{key}_mask"
        names = (query, *("src" if key == "memory" else key,) * 2)
        _fit(given, names, every, mask=own, padding_mask=padding, heads=heads)
    layout = None if tensor is None or tensor.layout is None else contiguous(tensor.layout.sizes)
    op = Op.TRANSFORMER
    return result(call, tensor, layout, op, is_contiguous=True, last=given.size("d_model"))


@function("torch.nn.Transformer.generate_square_subsequent_mask")
def subsequent_mask(call: Call) -> Value:
    """Create an (n, n) mask of zeros and -inf."""
    count = as_size(call.value(0, "sz") or Unknown())
    layout = None if count is None else contiguous((count, count))
    dtype = None if call.value(2, "dtype") is not None else "float32"
    return as_result(call, layout, Op.CREATION, dtype=dtype, is_contiguous=True)
