"""Recurrent layers, and packed sequences as their arguments and results."""

from __future__ import annotations

from shapefix.domains.devices import named_device
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import TupleValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Unknown, Value
from shapefix.library.nn.layers import functional, layer, result
from shapefix.library.nn.linear import last_size_is
from shapefix.library.registry import declare, function, method
from shapefix.library.rejections import operand_number
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import assume_rank
from shapefix.tensors import networks
from shapefix.tensors.layout import Layout, contiguous, permuted_dense
from shapefix.tensors.networks import check_cell_state, check_rank, check_state
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ONE, Size

PACKED = "torch.nn.utils.rnn.PackedSequence"
declare(PACKED, "builtins.tuple")


@layer("RNN", "LSTM", "GRU")
def recurrent(call: Call, given: BoundArguments) -> Value:
    kind = _kind(call, given)
    source = given.value("input")
    both_ways, batch_first = given.flag("bidirectional"), given.flag("batch_first")
    hidden, projection, layers = given.size("hidden_size"), _projection(given), given.size("num_layers")
    width = hidden if projection is None else projection
    op = Op[kind]
    last = None if both_ways is None or width is None else width * (2 if both_ways else 1)
    if isinstance(source, LibraryObject) and source.kind == PACKED:
        states = _states(call, kind, source.fields.get("batch"), width, hidden, layers, both_ways)
        fields = {**source.fields, "width": last}
        return TupleValue((LibraryObject(PACKED, {}, call.place, fields), states))
    tensor = given.tensor("input")
    ranks = [
        state.layout.rank
        for state in _states_given(given, kind)
        if state is not None and state.layout is not None
    ]
    if tensor is not None and ranks and ranks[0] in (2, 3):
        # torch rejects a state with another number of dimensions than the input.
        assume_rank(call, tensor, ranks[0])
    elif tensor is not None and batch_first:
        # A stated batch_first implies an input with a batch, most of the time.
        assume_rank(call, tensor, 3, certain=False)
    last_size_is(tensor, given.size("input_size"))
    if tensor is not None and tensor.layout is not None:
        count = None if layers is None or both_ways is None else layers * (2 if both_ways else 1)
        widths = (width, hidden)
        for part, state in enumerate(_states_given(given, kind)):
            number = operand_number(given.values, "input", "hx") + part
            if state is not None and state.layout is not None:
                check_state(tensor.layout, state.layout, number, widths[part], count, batch_first=batch_first)
    if (
        tensor is None
        or tensor.layout is None
        or hidden is None
        or layers is None
        or both_ways is None
        or batch_first is None
    ):
        output = result(call, tensor, None, op, last=last)
        # A packed or unpacked sequence.
        return TupleValue((output, Unknown() if kind == "LSTM" else TensorValue()))
    output_layout, state_layout = networks.recurrent(
        tensor.layout,
        hidden,
        layers=layers,
        bidirectional=both_ways,
        batch_first=batch_first,
        projection=projection,
        features=given.size("input_size"),
    )
    output = result(call, tensor, output_layout, op)
    state = result(call, tensor, state_layout, op)
    if kind != "LSTM":
        return TupleValue((output, state))
    cell = contiguous((*state_layout.sizes[:-1], hidden))
    return TupleValue((output, TupleValue((state, result(call, tensor, cell, op)))))


def _states_given(given: BoundArguments, kind: str) -> list[TensorValue | None]:
    """Hidden state passed to a layer, and the cell state of an LSTM; empty if unknown."""
    if not kind.startswith("LSTM"):
        return [given.tensor("hx")]
    parts = elements(given.value("hx"))
    return [BoundArguments({"hx": part}).tensor("hx") for part in parts] if parts and len(parts) == 2 else []


def _kind(call: Call, given: BoundArguments) -> str:
    if "proj_size" in given.values:
        return "LSTM"
    return "RNN" if "nonlinearity" in given.values else "GRU"


def _projection(given: BoundArguments) -> Size | None:
    size = given.size("proj_size") if "proj_size" in given.values else None
    return None if size is None or size.value == 0 else size


def _states(
    call: Call,
    kind: str,
    batch: object,
    width: Size | None,
    hidden: Size | None,
    layers: Size | None,
    both_ways: bool | None,
) -> Value:
    """h_n, and c_n of an LSTM, after a packed sequence."""
    state, cell = TensorValue(), TensorValue()
    if isinstance(batch, Size) and width is not None and hidden is not None and layers is not None:
        if both_ways is not None:
            count = layers * (2 if both_ways else 1)
            state = result(call, None, contiguous((count, batch, width)), Op[kind])
            cell = result(call, None, contiguous((count, batch, hidden)), Op[kind])
    return TupleValue((state, cell)) if kind == "LSTM" else state


@layer("RNNCell", "GRUCell")
def cell(call: Call, given: BoundArguments) -> Value:
    return _stepped(call, given, "cell")


def _stepped(call: Call, given: BoundArguments, kind: str) -> Value:
    """State after one step over (B, features), or over features without a batch."""
    tensor, hidden = given.tensor("input"), given.size("hidden_size")
    layout = None
    last_size_is(tensor, given.size("input_size"))
    if tensor is not None and tensor.layout is not None:
        check_rank(tensor.layout, (1, 2))
        for part, state in enumerate(_states_given(given, kind)):
            if state is not None and state.layout is not None and hidden is not None:
                check_cell_state(
                    tensor.layout, state.layout, operand_number(given.values, "input", "hx") + part, hidden
                )
    if tensor is not None and tensor.layout is not None and hidden is not None:
        layout = contiguous((*tensor.layout.sizes[:-1], hidden))
    return result(call, tensor, layout, Op.RECURRENT_CELL, is_contiguous=True, last=hidden)


@layer("LSTMCell")
def lstm_cell(call: Call, given: BoundArguments) -> Value:
    return TupleValue((_stepped(call, given, "LSTMCell"), _stepped(call, given, "LSTMCell")))


@functional("pack_padded_sequence", namespaces=("torch.nn.utils.rnn",))
def pack_padded_sequence(call: Call, given: BoundArguments) -> Value:
    tensor, batch_first = given.tensor("input"), given.flag("batch_first")
    fields: dict[str, object] = {}
    if (
        tensor is not None
        and tensor.layout is not None
        and tensor.layout.rank >= 2
        and batch_first is not None
    ):
        sizes = tensor.layout.sizes
        fields["batch"] = sizes[0] if batch_first else sizes[1]
        fields["width"] = sizes[2] if len(sizes) == 3 else ONE
    return LibraryObject(PACKED, {}, call.place, fields)


@functional("pack_sequence", namespaces=("torch.nn.utils.rnn",))
def pack_sequence(call: Call, given: BoundArguments) -> Value:
    return LibraryObject(PACKED, {}, call.place)


@function(PACKED)
def packed(call: Call) -> Value:
    """Packed steps, with the features of the given tensor."""
    steps = call.value(0, "data")
    layout = steps.layout if isinstance(steps, TensorValue) else None
    fields: dict[str, object] = {}
    if layout is not None and layout.rank:
        fields["width"] = layout.sizes[-1] if layout.rank > 1 else ONE
    return LibraryObject(PACKED, {}, call.place, fields)


@functional("pad_packed_sequence", namespaces=("torch.nn.utils.rnn",))
def pad_packed_sequence(call: Call, given: BoundArguments) -> Value:
    """Padded sequences, a transposed view with batch_first, and their lengths."""
    source, batch_first = given.value("sequence"), given.flag("batch_first")
    fields = source.fields if isinstance(source, LibraryObject) else {}
    batch, width = fields.get("batch"), fields.get("width")
    longest = Size.symbol("longest")
    if given.is_none("total_length") is False:
        longest = given.size("total_length") or longest
    layout: Layout | None = None
    if isinstance(batch, Size) and isinstance(width, Size) and batch_first is not None:
        layout = contiguous((longest, batch, width))
        if batch_first:
            layout = permuted_dense((batch, longest, width), (1, 0, 2))
    lengths = contiguous([batch]) if isinstance(batch, Size) else None
    padded = result(call, None, layout, Op.PAD_SEQUENCE)
    counts = result(call, None, lengths, Op.PAD_SEQUENCE, dtype="int64", is_contiguous=True)
    # On the CPU, wherever the sequences are.
    counts.device = named_device("cpu")
    return TupleValue((padded, counts))


@method(PACKED, "to", "cuda", "cpu", "pin_memory")
def itself(call: Call) -> Value:
    return call.receiver or Unknown()


@method(PACKED, "@data")
def data(call: Call) -> Value:
    """Steps of all sequences, one after another."""
    width = call.receiver.fields.get("width") if isinstance(call.receiver, LibraryObject) else None
    layout = contiguous((Size.symbol("steps"), width)) if isinstance(width, Size) else None
    return result(call, None, layout, Op.PACKED_SEQUENCE)
