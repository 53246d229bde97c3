"""Values of parameters, derived from their annotations."""

from __future__ import annotations

import re

import libcst as cst

from shapefix.interpreter.containers import DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.names import peek
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, PerhapsNone, Reference, Text, Unknown, Value
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.polynomials import Size

_DTYPES = {
    "Float": None,
    "Int": None,
    "Bool": "bool",
    "Float16": "float16",
    "BFloat16": "bfloat16",
    "Float32": "float32",
    "Float64": "float64",
    "Int8": "int8",
    "Int16": "int16",
    "Int32": "int32",
    "Int64": "int64",
    "UInt8": "uint8",
}

_LISTS = frozenset({"builtins.list", "typing.List", "typing.Sequence", "collections.abc.Sequence"})


def annotated_value(ev: Evaluator, annotation: cst.Annotation | None, name: str) -> Value | None:
    """Value of a parameter called name, from its annotation; None if the annotation implies nothing.

    An optional tensor is an Unknown that refers to the tensor.
    """
    return None if annotation is None else _value(ev, annotation.annotation, name)


def annotated_tensor(ev: Evaluator, param: cst.Param) -> TensorValue | None:
    """Tensor of a parameter annotated as one."""
    value = annotated_value(ev, param.annotation, param.name.value)
    return value if isinstance(value, TensorValue) else None


def annotated_result(ev: Evaluator, annotation: cst.Annotation | None) -> TensorValue | None:
    """Tensor of the sizes in the annotation of a result; None without sizes.

    Names are the sizes of the parameters in the running frame.
    """
    if annotation is None or not isinstance(annotation.annotation, (cst.Subscript, cst.SimpleString)):
        return None
    value = annotated_value(ev, annotation, "")
    return value if isinstance(value, TensorValue) and value.layout is not None else None


def note_dimensions(ev: Evaluator, annotation: cst.Annotation, tensor: TensorValue) -> None:
    """Note the sizes of an argument under the names in the annotation of its parameter."""
    node = annotation.annotation
    if not isinstance(node, cst.Subscript) or tensor.layout is None:
        return
    meaning = peek(ev, node.value)
    entries = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
    if not isinstance(meaning, Reference) or not meaning.name.startswith("jaxtyping.") or len(entries) != 2:
        return
    shape = ev.evaluate(entries[1])
    words = shape.value.split() if isinstance(shape, Constant) and isinstance(shape.value, str) else []
    if len(words) != tensor.layout.rank:
        return
    for word, size in zip(words, tensor.layout.sizes, strict=True):
        if re.fullmatch(r"[A-Za-z]\w*", word):
            ev.frame.dimensions.setdefault(word, size)


def _value(ev: Evaluator, node: cst.BaseExpression, name: str) -> Value | None:
    if isinstance(node, (cst.SimpleString, cst.ConcatenatedString)):
        text = node.evaluated_value
        if not isinstance(text, str) or len(text) > 200:
            return None
        try:
            return _value(ev, cst.parse_expression(text.strip()), name)
        except cst.ParserSyntaxError:
            return None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _either(ev, [node.left, node.right], name)
    if isinstance(node, cst.Subscript):
        return _subscripted(ev, node, name)
    if isinstance(node, (cst.Name, cst.Attribute)):
        meaning = peek(ev, node)
        if isinstance(meaning, Reference):
            if meaning.name == "builtins.int":
                return Unknown(name)
            return ev.library.annotated(meaning.name)
    return None


def _either(ev: Evaluator, nodes: list[cst.BaseExpression], name: str) -> Value | None:
    values = [_value(ev, node, name) for node in nodes if not _is_none(node)]
    tensors = [value for value in values if isinstance(value, TensorValue)]
    if len(values) == len(tensors) == 1:
        return Unknown(name, tensor=tensors[0])
    known = values[0] if len(values) == 1 else None
    return PerhapsNone(known) if isinstance(known, (LibraryObject, DictValue)) else None


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _subscripted(ev: Evaluator, node: cst.Subscript, name: str) -> Value | None:
    meaning = peek(ev, node.value)
    if not isinstance(meaning, Reference):
        return None
    entries = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
    if meaning.name == "typing.Optional" and entries:
        return _either(ev, entries[:1], name)
    if meaning.name == "typing.Union":
        return _either(ev, entries, name)
    if meaning.name == "typing.Annotated" and entries:
        return _value(ev, entries[0], name)
    if meaning.name in _LISTS and len(entries) == 1:
        item = _value(ev, entries[0], name)
        return ListValue(None, item) if isinstance(item, Text) else None
    if meaning.name.startswith("jaxtyping.") and len(entries) == 2:
        tensor = _value(ev, entries[0], name)
        shape = ev.evaluate(entries[1])
        if isinstance(tensor, TensorValue) and isinstance(shape, Constant) and isinstance(shape.value, str):
            sizes = _dimensions(ev, shape.value)
            dtype = _DTYPES.get(meaning.name.rpartition(".")[2])
            return TensorValue(None if sizes is None else unknown_strides(sizes), dtype=dtype)
    return None


def _dimensions(ev: Evaluator, text: str) -> list[Size] | None:
    """Sizes named by a jaxtyping string; None for an open rank."""
    known = ev.frame.dimensions
    sizes = []
    for word in text.split():
        word = word.lstrip("#?").rpartition("=")[2]
        if word.isdigit():
            sizes.append(Size.of(int(word)))
        elif re.fullmatch(r"[A-Za-z]\w*", word):
            if word not in known:
                known[word] = Size.symbol(word)
            sizes.append(known[word])
        elif word == "_":
            sizes.append(Size.symbol("_"))
        elif re.fullmatch(r"[A-Za-z]\w*\s*[-+]\s*\d+", word):
            base, sign, number = re.split(r"([-+])", word)
            size = known.setdefault(base, Size.symbol(base))
            sizes.append(size + int(number) if sign == "+" else size - int(number))
        else:
            return None
    return sizes
