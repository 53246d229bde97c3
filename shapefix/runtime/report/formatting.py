"""Text for the probe's reports: described values such as `f32[16, 20]`, sizes, times, places, lists."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shapefix.diagnostics import Span
from shapefix.runtime.protocol import (
    BackwardLine,
    CallArguments,
    DescribedValue,
    ExtraBatchLine,
    GradientsLine,
    ModelParametersLine,
)

Line = list[tuple[str, str]]
"""One row of a report: parts of its text, each with the name of its style."""

ShowPath = Callable[[str], str]
"""Converts a path into the one to print."""

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_SHOWN = 4
_NAMES = 6


def value_text(value: DescribedValue | None, depth: int = 0) -> str:
    """A value as text, with strides if it is not contiguous, and with the device unless it is the CPU."""
    if value is None:
        return "?"
    kind = value["kind"]
    if kind == "tensor":
        text = dtype_and_size(value)
        if value.get("contiguous") is False:
            text += f" strides {_tuple(value['stride'])}"
        return text if value["device"] == "cpu" else f"{text} on {value['device']}"
    if kind == "array":
        return f"numpy {dtype_and_size(value)}"
    if kind in ("sequence", "mapping"):
        return _container(value, depth)
    return str(value["text"]) if kind == "number" else str(value["type"])


def dtype_and_size(value: DescribedValue) -> str:
    """The dtype and sizes of a tensor, such as `f32[16, 20]`."""
    dtype = str(value["dtype"])
    return f"{_DTYPES.get(dtype, dtype)}[{', '.join(map(str, value['size']))}]"


def arguments_text(call: CallArguments) -> str:
    """The arguments of a call, without None and booleans."""
    parts = [value_text(each, 1) for each in call["args"] if _is_shown(each)]
    parts += [f"{name}={value_text(each, 1)}" for name, each in call["kwargs"].items() if _is_shown(each)]
    return ", ".join(parts)


def byte_size(number: int) -> str:
    """A number of bytes, such as `1.5 GiB`."""
    amount, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 100 or unit == "B" else f"{amount:.1f} {unit}"


def quantity(number: int) -> str:
    """A large number, such as `124.4 M`."""
    for limit, unit in ((1_000_000_000, "B"), (1_000_000, "M"), (10_000, "k")):
        if number >= limit:
            return f"{number / (1000 if unit == 'k' else limit):.1f} {unit}"
    return f"{number:,}"


def parameters_text(line: ModelParametersLine, multiplications: int = 0) -> str:
    """The parameters of a model: their number, the trainable ones, and their bytes by dtype.

    multiplications are those of the layers in a call.
    """
    total, trainable = line["total"], line["trainable"]
    share = {total: "all trainable", 0: "none trainable"}.get(trainable, f"{quantity(trainable)} trainable")
    parts = ", ".join(f"{byte_size(size)} {_DTYPES.get(name, name)}" for name, size in line["bytes"].items())
    buffers = f", {byte_size(line['buffer_bytes'])} buffers" if line["buffer_bytes"] else ""
    products = f", {quantity(multiplications)} MACs in its layers" if multiplications else ""
    return f"{quantity(total)} parameters, {share}, {parts}{buffers}{products}"


def counted(number: int, what: str) -> str:
    """A number of things, such as `1 run` and `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time, such as `3.2 ms`."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def listed(names: Sequence[str], most: int = _NAMES) -> str:
    """The first of some names, such as `a, b and 2 more`."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def place_text(place: Span | None, show: ShowPath) -> str:
    """A place as an editor accepts it, such as `train.py:12`; empty for None."""
    return "" if place is None else f"{show(place.path)}:{place.row}"


def named_parts(value: DescribedValue) -> list[tuple[str, DescribedValue]]:
    """The parts of a batch by key or position; the batch itself, with an empty name, if it has none."""
    items = value.get("items") or {}
    if isinstance(items, Mapping):
        return list(items.items()) or [("", value)]
    return [(f"[{number}]", each) for number, each in enumerate(items)]


def loss_value(loss: BackwardLine) -> str | None:
    """The value of a loss, None if it is not a single number."""
    return f"{loss['value']:.4g}" if loss["value"] is not None else loss["text"]


def gradient_count(line: GradientsLine) -> str:
    """The parameters of an optimizer with a gradient, such as `4 of 6 parameters, 2 frozen`."""
    total = line["with_gradient"] + line["without_gradient"]
    frozen = f", {line['frozen']} frozen" if line["frozen"] else ""
    return f"{line['with_gradient']} of {total} parameters{frozen}"


def _container(value: DescribedValue, depth: int) -> str:
    items = value.get("items")
    lengths = value.get("lengths")
    if lengths and isinstance(items, list) and all(each["kind"] == "sequence" for each in items):
        rows = f"{value['length']} rows of {min(lengths)}"
        return rows + (f" to {max(lengths)}, ragged" if value.get("ragged") else "")
    if items is None or depth > 2:
        return str(value["type"])
    more = value["length"] > _SHOWN
    if isinstance(items, dict):
        parts = [f"{name}: {value_text(each, depth + 1)}" for name, each in list(items.items())[:_SHOWN]]
        return f"{{{', '.join(parts)}{', …' if more else ''}}}"
    parts = [value_text(each, depth + 1) for each in items[:_SHOWN]]
    if parts and len(set(parts)) == 1 and value["length"] > 2:
        return f"{value['length']} x {parts[0]}"
    left, right = "()" if value["type"] == "tuple" else "[]"
    return f"{left}{', '.join(parts)}{', …' if more else ''}{right}"


def _is_shown(value: DescribedValue) -> bool:
    return value["kind"] != "number" or value["type"] not in ("NoneType", "bool")


def _tuple(numbers: list[int]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


def extra_batch_text(line: ExtraBatchLine) -> str:
    """A batch after the wanted steps, and the rows of a shorter one."""
    if line["which"] == "next":
        return "the second batch"
    if line["which"] == "pass":
        return "a batch of the next pass"
    usual = f" instead of {line['usual_rows']}" if line["usual_rows"] is not None else ""
    return "the last batch" + (f" ({counted(line['rows'], 'row')}{usual})" if line["rows"] else "")
