"""Operations rejected by torch only for the last, smaller batch of a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from shapefix.domains.batches import Batches, OpRejectedForLastBatch
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, Integer, Value, as_size, integer
from shapefix.library.data.first_batches import is_first_pass
from shapefix.library.rejections import refusal
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import OneValuePerChannel, ShapeError
from shapefix.tensors.layout import substitute as substitute_layout
from shapefix.tensors.polynomials import Size
from shapefix.tensors.quotients import substitute
from shapefix.tensors.symbols import BatchSize, Symbol

Values = Mapping[str, Value]
_STATISTICS = "torch.nn.BatchNorm", "torch.nn.functional.batch_norm"
"""Operations that reject a batch of a single sample."""


def try_last_batch(
    call: Call,
    given: Values,
    again: Callable[[Values], object],
    *,
    function: str = "",
    layer: Value | None = None,
    settings: Values | None = None,
) -> None:
    """Repeat a successful operation with fewer samples, and report if torch rejects it.

    given are the operands and arguments by name, again repeats the operation with others. Only tried if
    the full number of samples is among them, so that it may have been meant for all batches, or for
    an operation that fails for a single sample.
    """
    ev = call.ev
    if not ev.state[Batches].vary or ev.silenced or is_first_pass(ev):
        return
    for batch in _batches(given):
        if batch in ev.state[Batches].compared:
            continue
        is_meant = any(_holds(value, batch.full) for value in given.values())
        if not is_meant and not function.startswith(_STATISTICS):
            continue
        for fewer in _fewer(batch):
            error = _error_of(call, again, {k: _with_size(v, {batch: fewer}) for k, v in given.items()})
            if error is not None and (is_meant or isinstance(error, OneValuePerChannel)):
                refused = refusal(call, error, given, function=function, layer=layer, settings=settings)
                if refused is not None:
                    ev.emit(OpRejectedForLastBatch(call.place, ev.calls, refused, batch))
                return


@hooks.compare
def _note_comparison(ev: Evaluator, left: Value, right: Value) -> None:
    """Note a test of the batch size, such as `if x.size(0) != batch_size: continue`."""
    if ev.state[Batches].vary:
        sizes = [size for size in (as_size(left), as_size(right)) if size is not None]
        ev.state[Batches].compared |= {
            symbol for size in sizes for symbol in size.symbols if isinstance(symbol, BatchSize)
        }


def _error_of(call: Call, again: Callable[[Values], object], given: Values) -> ShapeError | None:
    """Error of the operation for these values; no events are emitted meanwhile."""
    call.ev.silenced += 1
    try:
        again(given)
    except ShapeError as error:
        return error
    except IndexError:
        return None
    finally:
        call.ev.silenced -= 1
    return None


def _batches(given: Values) -> list[BatchSize]:
    found: dict[BatchSize, None] = {}
    for value in given.values():
        for part in elements(value) or (value,):
            if isinstance(part, TensorValue) and part.layout is not None:
                for size in part.layout.sizes:
                    found |= dict.fromkeys(s for s in size.symbols if isinstance(s, BatchSize))
    return list(found)


def _fewer(batch: BatchSize) -> Iterator[Size]:
    """Numbers of samples in the last batch to try: the actual one, or if it is unknown, any smaller one."""
    full = batch.full.value
    length = batch.length.value if batch.length is not None else None
    if full is not None and full > 0 and length is not None:
        yield Size.of(length % full)
        return
    yield batch.full - Size.from_symbol(Symbol("missing"))
    if full is not None and full > 0:
        yield Size.of(full - 1)


def _holds(value: Value, number: Size) -> bool:
    """Check whether a number is among the sizes of a value, or among its ints."""
    if isinstance(value, TensorValue):
        return value.layout is not None and any(same(size, number) for size in value.layout.sizes)
    if isinstance(value, Integer):
        return same(value.size, number) is True
    if isinstance(value, Constant):
        return type(value.value) is int and number.value == value.value
    return any(_holds(part, number) for part in elements(value) or ())


def _with_size(value: Value, sizes: Mapping[Symbol, Size]) -> Value:
    if isinstance(value, Integer):
        return integer(substitute(value.size, sizes))
    if isinstance(value, TensorValue) and value.layout is not None:
        return TensorValue(
            substitute_layout(value.layout, sizes),
            dtype=value.dtype,
            device=value.device,
            origin=value.origin,
        )
    if isinstance(value, TupleValue):
        return TupleValue(tuple(_with_size(part, sizes) for part in value.items), value.names)
    if isinstance(value, ListValue) and value.items is not None:
        return ListValue(tuple(_with_size(part, sizes) for part in value.items))
    return value
