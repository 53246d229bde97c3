"""SF103: a view used to transpose; it mixes up the elements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext, lineage
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace, layout_trace
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.checks.support.view_calls import method_name, viewed_code
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, Fix
from shapefix.domains.operations import Viewed
from shapefix.interpreter.modules import dotted_name, nodes
from shapefix.interpreter.tensor_values import LayoutStep, TensorValue
from shapefix.tensors.ops import JOINED, PADDED, Op
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import Illegal

_OF_NUMPY = frozenset({Op.NUMPY_CREATION, Op.NUMPY_CONVERSION})
_CREATIONS = frozenset({Op.CREATION, Op.NUMPY_CREATION, Op.RANDOM_SAMPLING})
_UNIFORM = frozenset(
    {
        *("zeros", "ones", "empty", "full", "rand", "randn", "randint"),
        *("random", "random_sample", "standard_normal", "normal", "uniform", "integers"),
    }
)
"""Functions that create a tensor or an array of equal or independent elements."""


_HABIT = "a view for a transposition"


@rule("SF103", on=Viewed)
def view_as_transpose(event: Viewed, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    # One size and a -1 do not show an intended transpose: `.view(beams, -1)`.
    if isinstance(event.verdict, Illegal) or event.stated < 2:
        return
    have, want = list(event.layout.sizes), list(event.target)
    if len(have) == 2 and all(size.value is not None for size in have):
        # Reading a (2, 3) matrix as (3, 2) may be intended.
        return
    order, split = _permutation(have, want), _misplaced_split(have, want)
    if (order is None and split is None) or _is_uniform(event.tensor):
        return
    if order is not None and _is_squeezed(event, want):
        return
    if (
        _is_cut_again(event)
        or event.call in context.cut_views
        or any(_is_intended(step, event, context) for step in lineage(event.tensor))
    ):
        return
    is_right_elsewhere = _is_right_for_others(event, context)
    if is_right_elsewhere and any(size.value is None for size in have):
        # The two sizes may be equal in the other calls of the function.
        return
    subject, call = viewed_code(event), abbreviate(event.place.code)
    if order is None:
        if split is not None:
            yield _of_split(event, context, rule, split)
        return
    swap = _swapped(order)
    moves = f"swap dimensions {swap[0]} and {swap[1]} of" if swap else "permute"
    is_array = event.tensor.origin is not None and event.tensor.origin.op in _OF_NUMPY
    whole = f"{'transpose' if is_array else 'permute'}({', '.join(map(str, order))})"
    instead = f"transpose({swap[0]}, {swap[1]})" if swap and not is_array else whole
    yield rule.diagnostic(
        event.place.span,
        f"`{call}` does not {moves} `{subject}`: it scrambles the elements; use `.{instead}`",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(event.place.span, f"same elements in memory order, read as {context.shape(want)}"),
        ],
        fixes=[] if is_right_elsewhere else _permute_instead(event, instead),
        habit=_HABIT,
    )


def _is_right_for_others(event: Viewed, context: CheckContext) -> bool:
    """Whether the same view keeps the order of the dimensions in another call of its function."""
    return any(
        isinstance(other, Viewed)
        and other is not event
        and other.call is event.call
        and _permutation(list(other.layout.sizes), list(other.target)) is None
        for _, other in (context.numbered.get(Viewed, ()) if event.calls else ())
    )


def _is_cut_again(event: Viewed) -> bool:
    """Whether a view is viewed again with a -1: rows cut into pieces, of a computed number.

    That the number equals an earlier size may be chance: `x.view(batch, -1, 88).view(-1, 32, 88)`.
    """
    step = event.tensor.origin
    return step is not None and step.op in (Op.VIEW, Op.RESHAPE) and event.stated < len(event.target)


def _is_uniform(tensor: TensorValue) -> bool:
    """Whether all elements are equal or drawn alike, so that their order does not matter."""
    step = tensor.origin
    node = step.place.node if step is not None and step.op in _CREATIONS else None
    return isinstance(node, cst.Call) and dotted_name(node.func).rpartition(".")[2] in _UNIFORM


def _is_squeezed(event: Viewed, want: list[Size]) -> bool:
    """Whether the code squeezes the result: a moved dimension of size 1 moves no elements."""
    around = enclosing(event.place.module, event.call)
    if any(size.value == 1 for size in want):
        return False
    assigned = next((node for node in reversed(around) if isinstance(node, cst.Assign)), None)
    name = dotted_name(assigned.targets[0].target) if assigned is not None else ""
    scope = enclosing_function(event.place) or event.place.module.tree
    return any(
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value in ("squeeze", "squeeze_")
        and (node.func.value is event.call or (name != "" and dotted_name(node.func.value) == name))
        for node in nodes(scope)
    )


def _is_intended(step: LayoutStep, event: Viewed, context: CheckContext) -> bool:
    """Whether an earlier step shows an intended read of the elements at another width.

    Relative positions are shifted this way: prepend a column, view the rows at another width, drop a part,
    and view the rest at the old width. Returning to earlier sizes of the tensor undoes an earlier view.
    """
    if step.op in JOINED | PADDED or step.place.node in context.cut_views:
        return True
    return step.layout is not None and step.layout.sizes == event.target


def _permute_instead(event: Viewed, instead: str) -> list[Fix]:
    name = method_name(event.call)
    if event.method not in ("view", "reshape") or not isinstance(event.call, cst.Call):
        return []
    remark = "results change"
    message = f"use `.{instead}`; {remark}"
    end = event.place.span
    if name is not None and not event.free:
        start = event.place.module.span(name)
        whole = start.to(end)
        return [Fix(Applicability.UNSAFE, message, (Edit(whole, instead),), remark=remark)]
    subject = event.call.args[0].value
    if not isinstance(subject, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)):
        return []
    code = event.place.module.code(subject)
    return [Fix(Applicability.UNSAFE, message, (Edit(end, f"{code}.{instead}"),), remark=remark)]


def _of_split(event: Viewed, context: CheckContext, rule: Rule, split: tuple[int, int]) -> Diagnostic:
    """Return the finding for a dimension split before the one in front of it."""
    kept, subject, call = event.layout.sizes[split[0]], viewed_code(event), abbreviate(event.place.code)
    size, want = context.text(kept), list(event.target)
    inner = [*want[: split[0]], want[split[1]], want[split[0]], want[split[1] + 1]]
    sizes = [*inner, *want[split[1] + 2 :]]
    swap = f"transpose({split[0]}, {split[1]})"
    return rule.diagnostic(
        event.place.span,
        f"`{call}` mixes dimension {split[0]} of `{subject}` (size {size}) with the last; "
        f"split the last dimension first, then `.{swap}`",
        evidence=[
            *call_trace(event),
            *layout_trace(event.tensor, context),
            Evidence(event.place.span, f"same elements in memory order, read as {context.shape(want)}"),
        ],
        fixes=[
            rewrites.unsafe_or_advice(
                f"view as {context.shape(sizes)}, then `.{swap}`; results change",
                _split_last(event, split, swap),
            )
        ],
        habit=_HABIT,
    )


def _split_last(event: Viewed, split: tuple[int, int], swap: str) -> Edit | None:
    """Return the edit to split the last dimension and transpose; None for other forms of the call."""
    call, module = event.call, event.place.module
    if event.free or not isinstance(call, cst.Call) or len(call.args) != len(event.target):
        return None
    if any(each.star or each.keyword is not None for each in call.args):
        return None
    codes = [module.code(each.value) for each in call.args]
    codes[split[0]], codes[split[1]] = codes[split[1]], codes[split[0]]
    return Edit(event.place.span, f"{module.code(call.func)}({', '.join(codes)}).{swap}")


def _misplaced_split(have: list[Size], want: list[Size]) -> tuple[int, int] | None:
    """Return the places of a size before and after a view splitting the last dimension in front of it.

    `[B, L, D]` read as `[B, H, L, D / H]`, the heads of an attention: the rows of L do not stay together.
    None for any other view, and for sizes found twice.
    """
    if len(want) != len(have) + 1 or len(have) < 3:
        return None
    place = len(have) - 2
    kept = have[place]
    if want[:place] != have[:place] or want[place + 1] != kept or kept.value == 1:
        return None
    if have.count(kept) != 1 or want.count(kept) != 1 or want[place].value == 1 or want[-1].value == 1:
        return None
    return (place, place + 1) if want[place] * want[-1] == have[-1] else None


def _permutation(have: list[Size], want: list[Size]) -> list[int] | None:
    """Return the dims of `have` in the order of `want`; None unless `want` permutes its sizes.

    Dimensions of equal sizes, like those of a square picture, keep their order.
    """
    if len(have) != len(want) or have == want or Counter(have) != Counter(want):
        return None
    if len(set(have)) < len(have) and not _is_moved_channel(have, want):
        return None
    places = {size: iter([dim for dim, each in enumerate(have) if each == size]) for size in have}
    order = [next(places[size]) for size in want]
    moved = [size for size in have if size.value != 1]
    # Moving dimensions of size 1 moves no elements.
    return None if moved == [size for size in want if size.value != 1] else order


def _is_moved_channel(have: list[Size], want: list[Size]) -> bool:
    """Whether only the last dimension, the three colors of square pictures, is read before the sides."""
    channels, side = have[-1], have[-2]
    if channels.value not in _COLORS or side == channels or have[-3:-2] != [side]:
        return False
    return want == [*have[:-3], channels, side, side]


_COLORS = (3, 4)


def _swapped(order: list[int]) -> tuple[int, int] | None:
    moved = [dim for dim, source in enumerate(order) if dim != source]
    return (moved[0], moved[1]) if len(moved) == 2 else None
