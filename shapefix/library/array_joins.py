"""Joins of arrays, images and tensors: one of several paths, or any item of a list."""

from __future__ import annotations

from shapefix.interpreter.joins import join_items, join_objects, join_values
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject, Value
from shapefix.library.numpy_arrays import ARRAY, SERIES, as_array
from shapefix.library.ops.value_range import any_of
from shapefix.library.reversed_arrays import reversed_on_a_path
from shapefix.library.torchvision.images import IMAGE, NUMBERS

_KINDS = (ARRAY, SERIES, IMAGE)


@join_values
def _array_or_image(left: Value, right: Value, depth: int) -> Value | None:
    """Array with the common sizes and dtype of two arrays."""
    turned = reversed_on_a_path(left, right, depth)
    if turned is not None:
        return turned
    if not isinstance(left, LibraryObject) or not isinstance(right, LibraryObject):
        return None
    if left.kind != right.kind or left.kind not in _KINDS:
        return None
    if left.kind != IMAGE and (as_array(left) is None or as_array(right) is None):
        return None
    return join_objects(left, right, depth)


@join_items
def _any_range(left: Value, right: Value, joined: Value) -> None:
    """Record the range of any item of a list: the smallest and the largest number of all of them."""
    one, other, made = (v if isinstance(v, TensorValue) else as_array(v) for v in (left, right, joined))
    if one is not None and other is not None and made is not None:
        made.extremes = any_of(one, other)
    images = [v for v in (left, right, joined) if isinstance(v, LibraryObject) and v.kind == IMAGE]
    if len(images) == 3 and all(NUMBERS in each.fields for each in images[:2]):
        images[2].fields[NUMBERS] = any_of(images[0].fields[NUMBERS], images[1].fields[NUMBERS])
