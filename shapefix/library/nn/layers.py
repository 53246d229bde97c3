"""Registration of layers and functions of torch.nn with handlers for arguments by name.

A layer's settings are in its fields under the names of its constructor's parameters, as they do in torch,
for an object of the library's class and for one of a project class that derives from it alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shapefix.domains.batches import Batches
from shapefix.domains.devices import ModuleDevice
from shapefix.domains.gradients import mark_leaf
from shapefix.interpreter.calls import Call
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.refused_calls import report_wrong_count
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, InstanceValue, LibraryObject, Unknown, Value, facts_of
from shapefix.library.data.last_batches import try_last_batch
from shapefix.library.data.rows import note_list
from shapefix.library.nn.changed_weights import note_weight
from shapefix.library.nn.dtypes import Registered, WeightDtype, check_dtypes, note_dtype, of_weights
from shapefix.library.nn.loss_checks import check_loss
from shapefix.library.nn.module import MODULE
from shapefix.library.nn.parameter_devices import made_where, note_place
from shapefix.library.nn.training import Trained, is_trained, made_here, takes_part
from shapefix.library.ops.graphs import note_graph
from shapefix.library.ops.in_place import emit_write, subject_of
from shapefix.library.ops.saved_tensors import note_saved_by_layer
from shapefix.library.registry import METHODS, declare, expanded_dim, function, method
from shapefix.library.rejections import reject, trace
from shapefix.library.signatures import BoundArguments, bound, lacks_nothing, most_positional, parameters
from shapefix.library.tensors import as_result, copied_or_same
from shapefix.library.torch_signatures import signature
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import Size

_BUFFERS = ("weight", "pos_weight")
"""Settings of losses that the layer registers as buffers."""

Handler = Callable[[Call, BoundArguments], Value]
WeightSizes = Callable[[BoundArguments], Sequence[Size | None] | None]
Validate = Callable[[BoundArguments], None]


def layer(
    *kinds: str,
    base: str = MODULE,
    extra_fields: Mapping[str, Value] | None = None,
    validate: Validate | None = None,
) -> Callable[[Handler], Handler]:
    """Register layers of torch.nn.

    The handler gets the settings and the call's arguments together. validate raises ShapeError for settings
    that the constructor rejects.
    """

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            name = f"torch.nn.{kind}"
            declare(name, base)
            function(name)(_constructor(name, extra_fields or {}, validate))
            method(name, "__init__")(_initializer(name, extra_fields or {}, validate))
            method(name, "forward")(_forward(handler, name))
        return handler

    return register


def functional(
    *names: str, namespaces: tuple[str, ...] = ("torch.nn.functional",)
) -> Callable[[Handler], Handler]:
    """Register functions of torch with handlers for named arguments."""

    def register(handler: Handler) -> Handler:
        for namespace in namespaces:
            for name in names:
                function(f"{namespace}.{name}")(_function(handler, f"{namespace}.{name}"))
        return handler

    return register


def weights(kinds: Sequence[str], switch: str = "", **sizes: WeightSizes) -> None:
    """Give these layers parameters of these names, their sizes computed from the settings.

    A parameter is None if the setting switch, or the constructor's own parameter of its name, is False.
    """
    for kind in kinds:
        for name, compute in sizes.items():
            method(f"torch.nn.{kind}", f"@{name}")(_parameter(name, switch or f"_{name}", compute))


def fields_of(value: Value | None) -> dict[str, Value]:
    """Attributes of an object."""
    return value.fields if isinstance(value, (LibraryObject, InstanceValue)) else {}


def result(
    call: Call,
    source: TensorValue | None,
    layout: Layout | None,
    op: Op,
    *,
    is_contiguous: bool = False,
    dtype: str | None = None,
    last: Size | None = None,
    channels: tuple[int, Size | None] | None = None,
) -> TensorValue:
    """Create the result of a layer.

    For an unknown rank, last is still the size of the last dimension, and channels a dimension
    counted from the end with its size.
    """
    device = None if source is None else source.device
    made = as_result(call, layout, op, dtype=dtype, device=device, is_contiguous=is_contiguous)
    if layout is None:
        if last is not None:
            made.set_size(-1, last)
        if channels is not None and channels[1] is not None:
            made.set_size(channels[0], channels[1])
    return made


def computed_dtype(tensor: TensorValue | None) -> str | None:
    """Dtype of a matrix product: autocast lowers the precision, except for float64."""
    return "float64" if tensor is not None and tensor.dtype == "float64" else None


def in_place(
    call: Call, tensor: TensorValue, given: BoundArguments, otherwise: Callable[[], TensorValue]
) -> TensorValue:
    """The tensor itself if the layer writes in place, else the result of otherwise."""
    writes = given.flag("inplace")
    if writes is None:
        return copied_or_same(call, tensor, Op.ACTIVATION)
    if not writes:
        return otherwise()
    emit_write(call, tensor, subject_of(call), expanded_dim(tensor.layout), refused=True)
    return tensor


def _constructor(
    name: str, initial: Mapping[str, Value], validate: Validate | None
) -> Callable[[Call], Value]:
    def make(call: Call) -> Value:
        settings = _settings(name, call)
        _check(call, name, settings, validate)
        fields = {key: value for key, value in settings.items() if f"@{key}" not in METHODS[name]}
        kept = {f"_{key}": value for key, value in settings.items() if key not in fields}
        return LibraryObject(
            name, settings, call.place, {**fields, **kept, **initial}, _facts_of_layer(call, settings)
        )

    return make


def _initializer(
    name: str, initial: Mapping[str, Value], validate: Validate | None
) -> Callable[[Call], Value]:
    def init(call: Call) -> Value:
        kind = call.name.rpartition(".")[0]
        settings = _settings(name, call)
        _check(call, name, settings, validate)
        for key, value in {**settings, **initial}.items():
            field = f"_{key}" if f"@{key}" in METHODS.get(kind, {}) else key
            call.ev.journal.write(fields_of(call.receiver), field, value)
        for fact, known in _facts_of_layer(call, settings).items():
            call.ev.journal.write(facts_of(call.receiver), fact, known)
        return NONE

    return init


def _facts_of_layer(call: Call, settings: Mapping[str, Value]) -> Facts:
    """Facts about a layer created by this call."""
    facts = {
        WeightDtype: of_weights(call),
        Trained: made_here(call),
        ModuleDevice: made_where(call, settings),
    }
    buffers = [name for name in _BUFFERS if isinstance(settings.get(name), TensorValue)]
    return Facts({**facts, Registered: Registered(frozenset(buffers))} if buffers else facts)


def _settings(name: str, call: Call) -> dict[str, Value]:
    """Arguments of a constructor, without private ones: `_weight`, passed by torch's own code."""
    given = bound(signature(name), call.arguments)
    return {key: value for key, value in given.items() if not key.startswith("_")}


def _check(call: Call, name: str, settings: Mapping[str, Value], validate: Validate | None) -> None:
    if validate is None:
        return
    try:
        validate(BoundArguments(settings))
    except ShapeError as error:
        reject(call, error, {}, function=name, settings=settings)


def _forward(handler: Handler, name: str) -> Callable[[Call], Value]:
    def forward(call: Call) -> Value:
        known = signature(f"{name}.forward")
        if not lacks_nothing(known, call.arguments):
            # A TypeError comes before any other one.
            _report_count(call, name, known)
            return TensorValue()
        if len(call.arguments.positional) > most_positional(known):
            _report_count(call, name, known)
        given = bound(known, call.arguments)
        return _run(handler, call, fields_of(call.receiver), given, name, call.receiver)

    return forward


def _report_count(call: Call, name: str, known: str) -> None:
    """Report a call of a layer with too few or too many arguments, all of them by position."""
    if not call.arguments.keywords:
        wanted = tuple(parameter for parameter, default in parameters(known) if default is None)
        given, kind = len(call.arguments.positional), name.rpartition(".")[2]
        report_wrong_count(call.ev, call.place, kind, "forward", wanted, most_positional(known), given)


def _function(handler: Handler, name: str) -> Callable[[Call], Value]:
    def function(call: Call) -> Value:
        return _run(handler, call, {}, bound(signature(name), call.arguments), call.name)

    return function


_OF_ANY_INPUT = frozenset({"Identity", "Sequential", "RNN", "LSTM", "GRU"})
"""Layers with other inputs than tensors: those that pass on any value, or take packed sequences."""


def _run(
    handler: Handler,
    call: Call,
    settings: Mapping[str, Value],
    given: Mapping[str, Value],
    name: str,
    layer: Value | None = None,
) -> Value:
    values = {**settings, **given}
    if name.rpartition(".")[2] not in _OF_ANY_INPUT:
        note_list(call, given.get("input"))
    try:
        made = handler(call, BoundArguments(values))
        check_dtypes(call, name, BoundArguments(given), values, layer)
        check_loss(call, name, given, values, layer)
    except ShapeError as error:
        reject(call, error, given, function=name, layer=layer, settings=values)
        # torch raises here: there is no result.
        return TensorValue()
    if call.ev.state[Batches].vary:
        try_last_batch(
            call,
            given,
            lambda fewer: handler(call, BoundArguments({**settings, **fewer})),
            function=name,
            layer=layer,
            settings=values,
        )
    note_dtype(call, name, made, values, layer)
    if layer is not None:
        note_graph(call, made, takes_part(call, name, layer))
        note_saved_by_layer(call, name, given, made)
        note_place(call, name, given, values, made, layer)
    return trace(call, made, next(iter(given.values()), None), layer)


def _parameter(name: str, switch: str, compute: WeightSizes) -> Callable[[Call], Value]:
    def parameter(call: Call) -> Value:
        fields = fields_of(call.receiver)
        given = BoundArguments(fields)
        if switch in fields and given.flag(switch) is not True:
            return NONE if given.flag(switch) is False else Unknown(name)
        sizes = compute(given)
        if sizes is None or None in sizes:
            made = TensorValue()
        else:
            made = as_result(call, contiguous([s for s in sizes if s is not None]), Op.PARAMETER)
        made.own = True
        made.graph = is_trained(call, call.receiver) if not name.startswith("running_") else False
        if made.graph:
            mark_leaf(call.ev, made)
        fields[name] = made
        note_weight(call, made)
        return made

    return parameter
