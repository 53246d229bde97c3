"""The number that a layer was made with, changed where the code writes it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.support.evidence import layer_code
from shapefix.checks.support.layer_settings import (
    GIVES,
    can_be,
    chosen_by,
    constructor,
    from_end,
    item_edit,
    taken_by,
)
from shapefix.checks.support.literal_sites import edit_of, given_to, product_of, stated
from shapefix.checks.support.rewrites import line_of
from shapefix.diagnostics import Applicability, Edit, Evidence, Fix
from shapefix.interpreter.containers import elements
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.values import LibraryObject
from shapefix.tensors.bounds import same
from shapefix.tensors.errors import SizeMismatch
from shapefix.tensors.polynomials import product


def fitting(event: OpRejected, error: SizeMismatch, have: int, want: int) -> tuple[str, Edit | None]:
    """How the layer is made for what it is handed, and the edit that does it where there is one."""
    setting, layer = taken_by(event), event.layer
    if setting is not None and elements(event.settings.get(setting.name)) is not None:
        edit = item_edit(layer, setting, have, from_end(event, error))
        return f"make the layer with {have} in its {setting.name}", edit
    merged = merged_sizes(event, error) if from_end(event, error) == -1 else ()
    return other_number(event, have, want, merged)


def other_number(
    event: OpRejected, have: int, want: int, merged: tuple[int, ...] = ()
) -> tuple[str, Edit | None]:
    """How the layer is made for another number, and the edit that does it where there is one.

    merged are the sizes that were flattened into it.
    """
    taken, layer = taken_by(event), event.layer
    setting = "" if taken is None else taken.name
    told = f"make the layer with {setting}={have}"
    given = None
    is_own = isinstance(layer, LibraryObject) and constructor(layer) is not None
    if taken is not None and is_own and isinstance(layer, LibraryObject) and can_be(layer, taken, have):
        given = given_to(layer, taken.position, setting)
    if given is None or not isinstance(layer, LibraryObject) or layer.place is None:
        return told, None
    module = layer.place.module
    if isinstance(given, cst.Integer):
        return told, edit_of(module, given, str(have))
    if merged and (text := product_of(given, want, merged)) is not None:
        return f"make the layer with {setting}={text}", edit_of(module, given, text)
    number = stated(layer, setting, given)
    if number is None:
        return told, None
    place, node = number.place, number.place.node
    if not isinstance(node, cst.BaseExpression):
        return told, None
    text = (product_of(node, want, merged) if merged else None) or str(have)
    line = line_of(place, event.place.module)
    if not number.alone:
        name = f"`{number.name}`" if number.name else "it"
        return f"{told}: {name} is {want} from {line}, and used elsewhere, too", None
    name = f"`{number.name}` ({line})" if number.name else f"the {want} in {line}"
    return f"set {name} to {text}", edit_of(place.module, node, text)


def written_at(event: OpRejected) -> Iterator[Evidence]:
    """Where the number stands that the layer was made with, unless the call that makes it states it."""
    taken, layer = taken_by(event), event.layer
    if taken is None or not isinstance(layer, LibraryObject) or constructor(layer) is None:
        return
    given = given_to(layer, taken.position, taken.name)
    number = None if given is None else stated(layer, taken.name, given)
    if number is not None and number.name:
        yield Evidence(number.place.span, f"`{number.name}` is {number.place.code} here")


def merged_sizes(event: OpRejected, error: SizeMismatch) -> tuple[int, ...]:
    """The sizes that were flattened into the last one of what the layer takes; none where they were not."""
    step = event.operands[error.operand].tensor.origin
    while step is not None and step.source is not None:
        before = step.source.layout
        if step.layout is None or before is None or not step.layout.rank or not before.rank:
            return ()
        if same(step.layout.sizes[-1], error.have) is not True:
            return ()
        if same(before.sizes[-1], error.have) is not True:
            for start in range(before.rank - 1, 0, -1):
                if same(product(before.sizes[start:]), error.have):
                    sizes = [size.value for size in before.sizes[start:]]
                    return tuple(size for size in sizes if size is not None)
            return ()
        step = step.source
    return ()


def number_fixes(event: OpRejected, error: SizeMismatch, otherwise: str = "") -> Iterator[Fix]:
    """Make the layer with the number that it is handed, or the layer that gave it with another one.

    Only shown where a layer of the model gave it, and where something else may have been meant: otherwise.
    """
    setting = taken_by(event)
    have, want = error.have.value, error.want.value
    if setting is None or have is None or want is None:
        return
    told, edit = fitting(event, error, have, want)
    edits = () if edit is None else (edit,)
    giver = giver_of(event, error)
    if giver is not None:
        told += f", or `{layer_code(giver)}` with {GIVES[giver.kind].name}={want}"
    if otherwise:
        told += f", or {otherwise}"
    is_sure = (
        not otherwise and giver is None and edit is not None and edit.span.path == event.place.module.path
    )
    yield Fix(Applicability.UNSAFE if is_sure else Applicability.DISPLAY, told, edits)


def giver_of(event: OpRejected, error: SizeMismatch) -> LibraryObject | None:
    """The layer whose setting gave the tensor the size that does not fit; None where no layer chose it."""
    step, dim = event.operands[error.operand].tensor.origin, from_end(event, error)
    while step is not None:
        if step.layout is not None:
            sizes = step.layout.sizes
            if -dim > len(sizes) or same(sizes[dim], error.have) is not True:
                return None
        if isinstance(step.producer, LibraryObject) and chosen_by(step.producer, dim) is not None:
            return step.producer
        step = step.source
    return None
