"""Autograd graphs of results: whether they require a gradient, and its origin.

These facts were executed with torch 2.13: every operation of the tables whose result
never requires a gradient is listed here by its name, and tests check all others with torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from shapefix.domains.gradients import (
    ENABLE_GRAD,
    SET_GRAD_ENABLED,
    Gradients,
    RecordedBefore,
    records_gradients,
    require_grad,
)
from shapefix.interpreter.calls import Call, after_call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.refused_calls import note_refused
from shapefix.interpreter.tensor_values import CutKind, GraphCut, TensorValue, requires_grad
from shapefix.interpreter.values import (
    Constant,
    InstanceValue,
    Integer,
    IntegerLiteral,
    LibraryObject,
    Number,
    Reference,
    Slice,
    Text,
    Unknown,
    Value,
    facts_of,
)
from shapefix.library.nn.training import Frozen, Trained
from shapefix.library.registry import function
from shapefix.library.tensors import dtype_of, is_no_dtype
from shapefix.tensors.dtypes import can_require_grad

_SPACES = ("torch.", "operator.", "einops.", "transformers.", "builtins.sum")
_ELSEWHERE = ("torch.utils.", "torch.jit.", "torch.compile", "torch.load", "torch.hub.", "torch.autograd.")
"""Functions of torch without a computation of their own."""
_CUT = frozenset(
    {
        "detach",
        "data",
        "tensor",
        "from_numpy",
        "item",
        "numpy",
        "tolist",
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_tensor",
        "argmax",
        "argmin",
        "argsort",
        "bincount",
        "bucketize",
        "searchsorted",
        "count_nonzero",
        "nonzero",
        "one_hot",
        "multinomial",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "isnan",
        "isinf",
        "isfinite",
        "isclose",
        "histc",
        "greater",
        "less",
        "greater_equal",
        "less_equal",
        "not_equal",
        "logical_and",
        "logical_or",
        "logical_not",
        "logical_xor",
        "all",
        "any",
        "long",
        "int",
        "short",
        "char",
        "byte",
        "bool",
        "is_nonzero",
        "equal",
        "allclose",
        "numel",
    }
)
"""Results of these never require a gradient."""
_LEGACY = frozenset({"Tensor", "FloatTensor"})
"""Constructors with such results, if they get a list; a tensor keeps its graph."""
_OF_ONE = frozenset(
    {
        "getitem",
        "expand_as",
        "view_as",
        "reshape_as",
        "type_as",
        "to",
        "index_select",
        "gather",
        "masked_select",
        "repeat_interleave",
        "take_along_dim",
    }
)
"""Results of these carry a graph if the first operand does."""
_CONVERSIONS = frozenset({"to", "type", "type_as"})
_PLAIN = (Constant, Integer, Number, Text, Reference, Slice)
_DEEPEST = 3


def note_graph(call: Call, made: Value, trained: bool | None = False) -> None:
    """Record whether a torch function's result carries a graph, and its sources.

    trained is whether trained parameters take part in it, besides the operands. Facts known
    already of a result stay unchanged, and so do operands returned as results.
    """
    if not call.name.startswith(_SPACES):
        return
    if isinstance(made, TensorValue):
        # Nearly all results are single tensors, and many are known already.
        if made.graph is not None or made.sources:
            return
        results: Iterable[TensorValue] = (made,)
    else:
        parts = _flat((made,)) if isinstance(made, (TupleValue, ListValue)) else ()
        results = [
            part
            for part in parts
            if isinstance(part, TensorValue) and part.graph is None and not part.sources
        ]
    if not results or call.name.startswith(_ELSEWHERE):
        return
    last = call.name.rpartition(".")[2]
    tensors, others = _operands(call, last)
    results = [part for part in results if not any(part is tensor for tensor in tensors)]
    is_cut = last in _CUT or (last in _LEGACY and isinstance(call.value(0), ListValue))
    stays = all(part.dtype is not None and can_require_grad(part.dtype) for part in results)
    known = False if is_cut else _carried(call, tensors, others, trained, stays)
    for part in results:
        _note(call.ev, part, known, () if is_cut else tensors)
        if requires_grad(part) is False:
            part.cut = _cut(call, tensors, others, trained)
        if "requires_grad" in call.arguments.keywords:
            asked = call.constant(-1, "requires_grad")
            if asked is True and part.dtype is not None and not can_require_grad(part.dtype):
                # Only Tensors of floating point and complex dtype can require gradients.
                note_refused(call.ev, call.place.node, call.receiver or part)
            require_grad(call.ev, part, asked if isinstance(asked, bool) else None)


after_call(note_graph)


def _cut(call: Call, tensors: list[TensorValue], others: bool, trained: bool | None) -> GraphCut | None:
    """Find the end of the graph of a result without one: this call, or an earlier one."""
    state = call.ev.state[Gradients]
    is_unrecorded = state.recording is False and call.name.rpartition(".")[2] not in _CUT
    kind = CutKind.UNRECORDED if is_unrecorded else CutKind.OPERATION
    switch = state.stopped if is_unrecorded else None
    first = call.value(0)
    is_list = isinstance(first, (ListValue, TupleValue))
    known = [trained, *map(requires_grad, tensors)]
    if True in known:
        return GraphCut(kind, call.place, call.name, True, is_list, switch)
    earlier = [tensor.cut for tensor in tensors if tensor.cut is not None]
    certain = next((cut for cut in earlier if cut.is_known), None)
    if certain is not None:
        return certain
    frozen = facts_of(call.receiver).known(Trained) if trained is False else None
    if isinstance(frozen, Frozen):
        return GraphCut(CutKind.FROZEN, call.place, call.name, True, is_list, frozen.place)
    # A number may be one of a tensor: `torch.tensor(float(loss))`.
    if None in known or (not earlier and (others or isinstance(first, Number))):
        return GraphCut(kind, call.place, call.name, False, is_list, switch)
    return next(iter(earlier), None)


def _note(ev: Evaluator, part: TensorValue, known: bool | None, tensors: Sequence[TensorValue]) -> None:
    if known is not False and ev.state[Gradients].recording is False:
        # A possible operand, or a view of one, keeps its own requires_grad.
        same = part.origin is None or any(
            part.origin is tensor.origin or part.storage is tensor.storage for tensor in tensors
        )
        known = None if same else False
    elif known and ev.state[Gradients].recording is None:
        known = None
    part.graph = known
    if known is not False and ev.state[Gradients].recording is not False:
        part.sources = tuple(tensors)


def _carried(
    call: Call, tensors: list[TensorValue], others: bool, trained: bool | None, stays: bool
) -> bool | None:
    """Check whether a result carries a graph while torch records gradients.

    stays is whether the dtype of the result is one with gradients.
    """
    if not stays and _may_convert(call):
        return None
    known = [trained, *map(requires_grad, tensors)]
    if True in known:
        return True
    return None if others or None in known else False


def _may_convert(call: Call) -> bool:
    """Check whether a conversion may be one to integers; integers carry no graph."""
    last = call.name.rpartition(".")[2]
    if last == "view":
        return dtype_of(call.value(0, "dtype")) is not None
    if last not in _CONVERSIONS:
        return False
    for value in (*call.arguments.positional, *call.arguments.keywords.values()):
        other = value.dtype if isinstance(value, TensorValue) else dtype_of(value)
        if other is None and (isinstance(value, TensorValue) or not is_no_dtype(value)):
            return True
    return call.arguments.open


def _operands(call: Call, last: str) -> tuple[list[TensorValue], bool]:
    """Tensors reachable by gradients, and whether there may be others."""
    given = call.arguments
    values = [*given.positional, *given.keywords.values()]
    if call.receiver is not None and not isinstance(call.receiver, (InstanceValue, LibraryObject)):
        values.insert(0, call.receiver)
    if last in _OF_ONE:
        values = values[:1]
    tensors: list[TensorValue] = []
    others = given.open and last not in _OF_ONE
    for value in _flat(values):
        kind = type(value)
        if kind is TensorValue:
            tensors.append(value)  # type: ignore[arg-type]
        elif kind is not IntegerLiteral and not isinstance(value, _PLAIN):
            tensor = value.tensor if isinstance(value, Unknown) else None
            if tensor is not None:
                tensors.append(tensor)
            else:
                others = True
    return tensors, others


def _flat(values: Iterable[Value], depth: int = 0) -> Iterator[Value]:
    """Values with lists and tuples replaced by their items; None for unknown contents."""
    for value in values:
        if not isinstance(value, (TupleValue, ListValue)):
            yield value
            continue
        items = elements(value) if depth < _DEEPEST else None
        if items is not None:
            yield from _flat(items, depth + 1)
        elif isinstance(value, ListValue) and value.element is not None:
            yield value.element
        else:
            yield Unknown()


def note_graph_write(call: Call, tensor: TensorValue, values: Iterable[Value]) -> None:
    """Record that values were written into the memory of a tensor, or added to its contents."""
    if call.ev.state[Gradients].recording is False or call.name.startswith("torch.nn.init."):
        return
    given = [value.tensor if isinstance(value, Unknown) else value for value in _flat(values)]
    known = [
        requires_grad(part) if isinstance(part, TensorValue) else None
        for part in given
        if not isinstance(part, _PLAIN)
    ]
    if not any(each is not False for each in known):
        if tensor.graph and call.name != "operator.iadd":
            call.ev.journal.write(tensor, "graph", None)
        return
    if call.name.rpartition(".")[2].removesuffix("_") in _CUT:
        call.ev.journal.write(tensor, "graph", None)
        return
    tensor.storage.grafted = True
    if True in known and call.ev.state[Gradients].recording:
        call.ev.journal.write(tensor, "graph", True)
        if not any(frame.undecided for frame in call.ev.frames):
            written = [part for part in given if isinstance(part, TensorValue) and requires_grad(part)]
            others = [part for part in written if part is not tensor and part not in tensor.sources]
            tensor.sources = (*tensor.sources, *others)
    elif tensor.graph is False:
        call.ev.journal.write(tensor, "graph", None)


@function("torch.inference_mode", "torch.autograd.inference_mode")
def inference_mode(call: Call) -> Value:
    """Context or decorator with its requested setting."""
    mode = call.value(0, "mode")
    return LibraryObject("torch.inference_mode", {} if mode is None else {"mode": mode}, call.place)


@function(ENABLE_GRAD, "torch.autograd.enable_grad")
def enable_grad(call: Call) -> Value:
    return LibraryObject(ENABLE_GRAD, {}, call.place)


@function(SET_GRAD_ENABLED, "torch.autograd.set_grad_enabled")
def set_grad_enabled(call: Call) -> Value:
    """Set gradient recording from now on; as a context, until its block ends."""
    mode = call.value(0, "mode") or Unknown()
    state = call.ev.state[Gradients]
    before = Facts.of(RecordedBefore(state.recording))
    made = LibraryObject(SET_GRAD_ENABLED, {"mode": mode}, call.place, facts=before)
    after = records_gradients(made, state.recording)
    unsure = call.ev.frame.undecided and after is not state.recording
    state.recording = None if unsure else after
    state.stopped = call.place
    return made
