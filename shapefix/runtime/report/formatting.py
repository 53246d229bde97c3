"""Values that the agent has described, in the words of a report: `f32[16, 20]`, `{ids: i64[8], …}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip
_SHOWN = 4


def words(value: Mapping[str, Any] | None, depth: int = 0) -> str:
    """A value in words; strides where the memory is not contiguous, the device where it is not the CPU."""
    if value is None:
        return "?"
    kind = value["is"]
    if kind == "tensor":
        text = sized(value)
        if value.get("contiguous") is False:
            text += f" strides {_tuple(value['stride'])}"
        return text if value["device"] == "cpu" else f"{text} on {value['device']}"
    if kind == "array":
        return f"numpy {sized(value)}"
    if kind in ("sequence", "mapping"):
        return _container(value, depth)
    return str(value["text"]) if kind == "number" else str(value["type"])


def sized(value: Mapping[str, Any]) -> str:
    """dtype and sizes of a tensor."""
    dtype = str(value["dtype"])
    return f"{_DTYPES.get(dtype, dtype)}[{', '.join(map(str, value['size']))}]"


def arguments(call: Mapping[str, Any]) -> str:
    """The arguments of a call, but for those that are None or a switch."""
    parts = [words(each, 1) for each in call["args"] if _tells(each)]
    parts += [f"{name}={words(each, 1)}" for name, each in call["kwargs"].items() if _tells(each)]
    return ", ".join(parts)


def size(number: int) -> str:
    """A number of bytes."""
    amount, unit = float(number), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if amount >= 100 or unit == "B" else f"{amount:.1f} {unit}"


def counted(number: int, what: str) -> str:
    """A number of things, as `1 run` and `2 runs`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def _container(value: Mapping[str, Any], depth: int) -> str:
    items = value.get("items")
    lengths = value.get("lengths")
    if lengths and items and all(each["is"] == "sequence" for each in items):
        rows = f"{value['length']} rows of {min(lengths)}"
        return rows + (f" to {max(lengths)}, ragged" if value.get("ragged") else "")
    if items is None or depth > 2:
        return str(value["type"])
    more = value["length"] > _SHOWN
    if value["is"] == "mapping":
        parts = [f"{name}: {words(each, depth + 1)}" for name, each in list(items.items())[:_SHOWN]]
        return f"{{{', '.join(parts)}{', …' if more else ''}}}"
    parts = [words(each, depth + 1) for each in items[:_SHOWN]]
    if parts and len(set(parts)) == 1 and value["length"] > 2:
        return f"{value['length']} x {parts[0]}"
    left, right = "()" if value["type"] == "tuple" else "[]"
    return f"{left}{', '.join(parts)}{', …' if more else ''}{right}"


def _tells(value: Mapping[str, Any]) -> bool:
    return value["is"] != "number" or value["type"] not in ("NoneType", "bool")


def _tuple(numbers: list[int]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"
