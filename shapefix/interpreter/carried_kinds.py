"""Facts kept along a loop: the ranks of tensors, and the kinds of layers in lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import libcst as cst

from shapefix.interpreter.containers import CONTENTS, Contents
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.joins import join_contents, without_length
from shapefix.interpreter.journal import MISSING, Changes, Container, content
from shapefix.interpreter.loop_assignments import names_after_loops, read_first
from shapefix.interpreter.refinement import is_assumed_rank, note_open
from shapefix.interpreter.silent_runs import rehearsal
from shapefix.interpreter.stability import is_stable
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import InstanceValue, LibraryObject, OneOfItems, Unknown
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.layout import unknown_strides
from shapefix.tensors.polynomials import Size

Sizes = tuple[Size | None, ...]
"""Sizes of a tensor after any number of iterations; None for one that iterations change."""

_LAYERS = (InstanceValue, LibraryObject, OneOfItems)
MOST = 3
"""Maximum number of iterations that are run for what stays."""


@dataclass(frozen=True, slots=True)
class KeptRank:
    """A name for a tensor of one rank after each iteration.

    is_read is whether the first iteration may read it, is_assumed whether its rank is only likely.
    """

    name: str
    sizes: Sizes
    is_read: bool
    is_assumed: bool

    def write(self, ev: Evaluator) -> None:
        """Give the forgotten tensor of this name its rank again."""
        names = ev.frame.scope.names
        value = names.get(self.name)
        if _is_forgotten(value):
            sizes = [
                Size.symbol(f"size({dim})") if size is None else size for dim, size in enumerate(self.sizes)
            ]
            if self.is_assumed:
                note_open(ev, sizes)
            is_certain = not isinstance(value, TensorValue) or value.certain
            ev.journal.write(names, self.name, TensorValue(unknown_strides(sizes), certain=is_certain))

    def wider(self, ev: Evaluator, later: Sequence[Changes]) -> KeptRank | None:
        """Sizes after the iterations with these changes, too; None for another rank."""
        sizes: Sizes | None = self.sizes
        for path in later:
            sizes = None if sizes is None else _common(sizes, _after(ev, self.name, path))
        return None if sizes is None or not later else replace(self, sizes=sizes)

    def holds_after(self, other: KeptRank | KeptLayers | None) -> bool:
        """Check that an iteration begun with these sizes ends with them."""
        return not self.is_read or self == other


@dataclass(frozen=True, eq=False, slots=True)
class KeptLayers:
    """A list with layers of the same kinds from each iteration."""

    container: Container
    contents: Contents

    def write(self, ev: Evaluator) -> None:
        """Give the forgotten items their kinds again."""
        ev.journal.write(self.container, CONTENTS, self.contents)

    def wider(self, ev: Evaluator, later: Sequence[Changes]) -> KeptLayers | None:
        """Contents after the iterations with these changes, too; None for other items than layers."""
        joined = self.contents
        for path in later:
            written = path.written.get((id(self.container), CONTENTS))
            if written is not None:
                joined = join_contents(joined, without_length(written[2]))
        return KeptLayers(self.container, joined) if later and _are_layers(joined) else None

    def holds_after(self, other: KeptRank | KeptLayers | None) -> bool:
        """Check that an iteration begun with these layers adds no other ones."""
        if not isinstance(other, KeptLayers):
            return False
        one, two = self.contents.element, other.contents.element
        return one is two or (one is not None and two is not None and is_stable(one, two, 0))


class Carried(Protocol):
    """State before a loop, see LoopCarried."""

    def creates(self, ev: Evaluator, container: Container) -> bool: ...

    def forget(self, ev: Evaluator) -> None: ...


def find_kept(
    ev: Evaluator,
    loop: cst.For | cst.While,
    carried: Carried,
    first: Sequence[Changes],
    run: Callable[[], Sequence[Changes]],
) -> tuple[KeptRank | KeptLayers, ...]:
    """Run one more iteration with unknown values for the changed ones, to find the facts to keep.

    It has the facts of every later iteration: what it keeps, all of them do. first are the changes on the
    paths of the first iteration; run returns those of one more, and undoes them.
    """
    if ev.rehearsals or not first or ev.rehearsed > ev.rehearsal_allowance:
        return ()
    known: list[KeptRank | KeptLayers] = [*_forgotten(ev, loop, carried, first)]
    for _ in range(MOST):
        if not known:
            return ()
        ev.journal.begin()
        ev.journal.apply(first)
        carried.forget(ev)
        for kept in known:
            if not isinstance(kept, KeptRank) or kept.is_read:
                kept.write(ev)
        with rehearsal(ev):
            later = run()
        found = [kept.wider(ev, later) for kept in known]
        ev.journal.undo()
        is_fixed = all(old.holds_after(new) for old, new in zip(known, found, strict=True))
        known = [kept for kept in found if kept is not None]
        if is_fixed:
            return tuple(known)
    return ()


def _forgotten(
    ev: Evaluator, loop: cst.For | cst.While, carried: Carried, first: Sequence[Changes]
) -> Iterator[KeptRank | KeptLayers]:
    """Yield the tensors of known rank, and the lists of layers, that are forgotten after the loop."""
    names = ev.frame.scope.names
    before: dict[str, tuple[object, Sizes | None]] = {}
    lists: list[Container] = []
    for path in first:
        for container, key, after in path.written.values():
            if container is names:
                if _may_be_tensor(after):
                    before[key] = names.get(key, MISSING), _sizes(names.get(key), first[0])
            elif key == CONTENTS and _have_layers(after) and not carried.creates(ev, container):
                lists.append(container)
    if not before and not lists:
        return
    ev.journal.begin()
    ev.journal.apply(first)
    layers = [(container, without_length(content(container, CONTENTS))) for container in lists]
    carried.forget(ev)
    lost = [name for name in before if _is_forgotten(names.get(name))]
    emptied = [
        KeptLayers(container, contents)
        for container, contents in layers
        if _are_layers(contents) and content(container, CONTENTS).element is None
    ]
    ev.journal.undo()
    yield from emptied
    for name in _read(ev, loop, lost):
        value, sizes = before[name]
        is_read = value is not MISSING
        if is_read and sizes is None:
            continue
        is_assumed = _is_assumed(ev, sizes)
        for path in first:
            after = _after(ev, name, path)
            is_assumed = is_assumed or _is_assumed(ev, after)
            sizes = after if sizes is None else _common(sizes, after)
            if sizes is None:
                break
        else:
            if sizes is not None:
                yield KeptRank(name, sizes, is_read, is_assumed)


def _read(ev: Evaluator, loop: cst.For | cst.While, names: Sequence[str]) -> list[str]:
    """Names used after the loop, or read early in an iteration.

    The list is empty without any use after the loop.
    """
    if not names:
        return []
    module, code = ev.frame.module, ev.frame.function
    following = module.once(module.tree if code is None else code, names_after_loops)
    after = following.get(loop, frozenset())
    if after.isdisjoint(names):
        return []
    early = module.once(loop, read_first)
    return [name for name in names if name in after or name in early]


def _may_be_tensor(value: object) -> bool:
    """Check for a tensor, but not for an array of numpy."""
    tensor = value.tensor if isinstance(value, Unknown) else value
    return isinstance(tensor, TensorValue) and tensor.certain


def _have_layers(contents: object) -> bool:
    if not isinstance(contents, Contents):
        return False
    last = contents.items[-1] if contents.items else contents.element
    return isinstance(last, _LAYERS)


def _are_layers(contents: Contents) -> bool:
    return isinstance(contents.element, _LAYERS)


def _after(ev: Evaluator, name: str, path: Changes) -> Sizes | None:
    """Sizes of the tensor of a name at the end of a path."""
    names = ev.frame.scope.names
    written = path.written.get((id(names), name))
    return _sizes(names.get(name) if written is None else written[2], path)


def _sizes(value: object, path: Changes) -> Sizes | None:
    """Sizes of a tensor after a path; None for an unknown rank."""
    tensor = value.tensor if isinstance(value, Unknown) else value
    if not isinstance(tensor, TensorValue):
        return None
    written = path.written.get((id(tensor), "layout"))
    layout = tensor.layout if written is None else written[2]
    return None if layout is None else layout.sizes


def _is_assumed(ev: Evaluator, sizes: Sizes | None) -> bool:
    return is_assumed_rank(ev, [size for size in sizes or () if size is not None])


def _common(sizes: Sizes, others: Sizes | None) -> Sizes | None:
    """Equal sizes of two tensors; None for different ranks."""
    if others is None or len(sizes) != len(others):
        return None
    return tuple(one if one == other else None for one, other in zip(sizes, others, strict=True))


def _is_forgotten(value: object) -> bool:
    tensor = value.tensor if isinstance(value, Unknown) else value
    return isinstance(tensor, TensorValue) and tensor.layout is None
