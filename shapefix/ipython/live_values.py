"""Describe the values of a failed program, without an import of their libraries.

Only attributes stored in an object are read, and the known properties of tensors and arrays: no code of
the user runs.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any

from shapefix.diagnosis.live_facts import LiveLayer, LiveValue

_STORED = ("_parameters", "_buffers", "_modules")
"""Attributes of a module with its parts by name."""
_MOST_ITEMS = 4
_MOST_VALUES = 8
_MOST_MODULES = 20_000
_LONGEST_TEXT = 40
_LONGEST_CODE = 160
_COUNTED = 1_000_000
"""The most elements of a tensor whose smallest and largest values are shown."""


def described(name: str, value: object) -> LiveValue | None:
    """Return the description of a value; None if a description says nothing about sizes or types."""
    if is_tensor(value):
        return LiveValue(name, *_tensor(value))
    if _is_array(value):
        sizes = _sizes(value)
        return LiveValue(name, f"{type(value).__name__} {list(sizes)} {_dtype(value)}", sizes)
    if is_module(value):
        return LiveValue(name, layer_code(value))
    if value is None or isinstance(value, (bool, int, float)):
        return LiveValue(name, repr(value), (value,) if type(value) is int and value > 1 else ())
    if isinstance(value, str):
        text = repr(value) if len(value) <= _LONGEST_TEXT else f"text of {len(value)} characters"
        return LiveValue(name, text)
    if isinstance(value, (list, tuple)):
        return LiveValue(name, _sequence(value))
    items = stored_items(value)
    if items is not None:
        return LiveValue(name, _mapping(type(value).__name__, items))
    return None


def is_tensor(value: object) -> bool:
    """Check for a tensor of torch, or of a class derived from it."""
    return any(each.__module__ == "torch" and each.__name__ == "Tensor" for each in type(value).__mro__)


def is_module(value: Any) -> bool:
    """Check for a module of torch."""
    return any(
        each.__name__ == "Module" and each.__module__ == "torch.nn.modules.module"
        for each in type(value).__mro__
    )


def layer_code(module: Any) -> str:
    """Return the code of a module: `Linear(in_features=512, out_features=10, bias=True)`."""
    name = type(module).__name__
    parts = module.__dict__.get("_modules") or {}
    if not parts and type(module).__module__.startswith("torch.nn."):
        code = f"{name}({module.extra_repr()})"
        code = code if len(code) <= _LONGEST_CODE else f"{name}(…)"
    else:
        number = f"{len(parts)} layer{'s' if len(parts) != 1 else ''}"
        code = f"{name} with {number}" if parts else name
    where = sorted({str(each.device) for each in _parameters(module)})
    return f"{code} on {' and '.join(where)}" if where else code


def _parameters(module: Any) -> Iterator[Any]:
    """Yield some parameters of a module."""
    for count, (_, part) in enumerate(_parts(module, "")):
        if count > _MOST_MODULES // 20:
            return
        stored = part.__dict__.get("_parameters")
        if isinstance(stored, dict):
            yield from (each for each in stored.values() if is_tensor(each))


def _parts(module: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield a module and the modules in it, with their names."""
    pending = [(name, module)]
    seen: set[int] = set()
    while pending and len(seen) < _MOST_MODULES:
        name, module = pending.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield name, module
        stored = module.__dict__.get("_modules")
        if isinstance(stored, dict):
            pending += [(f"{name}.{key}", each) for key, each in stored.items() if is_module(each)]


def _is_array(value: object) -> bool:
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__ == "ndarray"


def _sizes(value: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in value.shape)


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def _tensor(value: Any) -> tuple[str, tuple[int, ...]]:
    """Return the description of a tensor, and its sizes."""
    sizes = _sizes(value)
    dtype = _dtype(value)
    words = [type(value).__name__, str(list(sizes)), dtype, str(value.device)]
    if str(value.layout) == "torch.strided" and not value.is_contiguous():
        words.append(f"strides {tuple(value.stride())}")
    text = " ".join(words)
    integer = dtype.startswith(("int", "uint")) and type(value).__name__ == "Tensor"
    if integer and str(value.device) == "cpu" and 0 < value.numel() <= _COUNTED:
        text += f", values {int(value.min())} to {int(value.max())}"
    return text, sizes


def _sequence(value: list[Any] | tuple[Any, ...]) -> str:
    kind = type(value).__name__
    first = described("", value[0]) if value and not isinstance(value[0], (list, tuple, dict)) else None
    if first is None:
        return f"{kind} of {len(value)}"
    if len(value) <= _MOST_ITEMS and all(isinstance(each, (bool, int, float)) for each in value):
        return f"{kind} {value!r}" if kind == "Size" else repr(value)
    return f"{kind} of {len(value)}, the first: {first.text}"


def stored_items(value: object) -> Mapping[Any, Any] | None:
    """Return the items of a dict, or of an object around one, such as the output of a tokenizer."""
    if isinstance(value, dict):
        return value
    stored = getattr(value, "__dict__", None)
    data = stored.get("data") if isinstance(stored, dict) else None
    return data if isinstance(data, dict) else None


def _mapping(kind: str, items: Mapping[Any, Any]) -> str:
    shown = []
    for key, each in list(items.items())[:_MOST_ITEMS]:
        value = described("", each)
        shown.append(f"{key}: {value.text if value is not None else type(each).__name__}")
    more = len(items) - len(shown)
    rest = f", and {more} more" if more > 0 else ""
    return f"{kind} with {'; '.join(shown)}{rest}" if shown else f"empty {kind}"


def values_of(code: str, frame: FrameType) -> tuple[LiveValue, ...]:
    """Return the described values of the names and attributes in some code, as a frame has them."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, LiveValue] = {}
    for node in _references(tree):
        name = ast.unparse(node)
        value = _value(node, frame)
        if name in found or value is _MISSING or (callable(value) and not is_module(value)):
            continue
        if is_module(value) and any(each.startswith(f"{name}.") for each in found):
            continue
        shown = described(name, value)
        if shown is not None:
            found[name] = shown
    return tuple(list(found.values())[:_MOST_VALUES])


_MISSING = object()


def _references(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the names, attributes and items read by some code, the longest first."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
        yield node
        # `x.shape` says less than x.
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            yield from _references(node.value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _references(child)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """Return the value of a name, an attribute or an item, if it can be read without running code."""
    match node:
        case ast.Name(id=name):
            return frame.f_locals.get(name, frame.f_globals.get(name, _MISSING))
        case ast.Attribute(value=owner, attr=name):
            return _member(_value(owner, frame), name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)):
            whole = _value(owner, frame)
            if isinstance(whole, (list, tuple)) and isinstance(key, int):
                return whole[key] if -len(whole) <= key < len(whole) else _MISSING
            items = stored_items(whole)
            return items.get(key, _MISSING) if items is not None else _MISSING
    return _MISSING


def _member(owner: Any, name: str) -> Any:
    stored = getattr(owner, "__dict__", None) if owner is not _MISSING else None
    if not isinstance(stored, dict) or isinstance(owner, type):
        return _MISSING
    if name in stored:
        return stored[name]
    for kind in _STORED:
        part = stored.get(kind)
        if isinstance(part, dict) and name in part:
            return part[name]
    items = stored_items(owner)
    return items.get(name, _MISSING) if items is not None and is_module(owner) is False else _MISSING


def failed_layer(traceback: TracebackType | None) -> LiveLayer | None:
    """Return the innermost module in the frames of a traceback, with its arguments."""
    frames: list[FrameType] = []
    while traceback is not None:
        frames.append(traceback.tb_frame)
        traceback = traceback.tb_next
    owners = [(frame, owner) for frame in frames if is_module(owner := frame.f_locals.get("self"))]
    if not owners:
        return None
    frame, owner = owners[-1]
    given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    arguments = [
        shown
        for name in given
        if isinstance(value := frame.f_locals.get(name), tuple) or is_tensor(value)
        if (shown := described(name, value)) is not None
    ]
    return LiveLayer(_name_of(owner, frames), layer_code(owner), tuple(arguments[:_MOST_ITEMS]))


def _name_of(module: Any, frames: list[FrameType]) -> str:
    """Return the name of a module, from the outermost variable with it or with a module around it."""
    for frame in frames:
        variables = _of_module(frame) if is_module_level(frame.f_code) else frame.f_locals
        for name, value in list(variables.items()):
            if name.startswith("_") or not is_module(value):
                continue
            for path, part in _parts(value, name):
                if part is module:
                    return path
    return ""


def is_module_level(code: CodeType) -> bool:
    """Check for code outside of functions; versions of IPython name that of cells in different ways."""
    return not code.co_flags & inspect.CO_OPTIMIZED


def _of_module(frame: FrameType) -> Mapping[str, Any]:
    """Return the variables of a module or cell, those in its running code first."""
    used = {name: frame.f_globals[name] for name in frame.f_code.co_names if name in frame.f_globals}
    return {**used, **frame.f_globals}
