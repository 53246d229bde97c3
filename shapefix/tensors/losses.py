"""Size checks of losses. Each raises ShapeError if torch certainly raises.

Operand numbers follow the order of the parameters: the prediction is operand 0, the target operand 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from shapefix.tensors.bounds import same
from shapefix.tensors.errors import ClassesLast, ShapeError, SizeMismatch, WrongRank
from shapefix.tensors.polynomials import ONE, Size
from shapefix.tensors.tensor_iterator import broadcast_sizes, check_expands_to

Sizes = tuple[Size, ...]


def class_ids(scores: Sizes, ids: Sizes) -> None:
    """Check class ids of sizes (N, ...) for scores (N, C, ...), with the classes in dimension 1."""
    rank = len(scores)
    if rank == 0:
        return
    if rank == 1:
        if len(ids) > 1:
            raise WrongRank(
                "0D or 1D target tensor expected, multi-target not supported", len(ids), (0, 1), 1
            )
        if ids and same(ids[0], 1) is False:
            raise SizeMismatch(
                f"For 1D input, 1D target must have size 1, but got target size: {ids[0]}",
                ids[0],
                Size.of(1),
                dim=0,
                operand=1,
            )
        return
    if len(ids) != rank - 1:
        raise WrongRank(
            f"expected class ids of {rank - 1} dimensions, not {len(ids)}", len(ids), (rank - 1,), 1
        )
    if rank > 2 and all(same(one, two) for one, two in zip(ids, scores[:-1], strict=True)):
        pairs = [(ids[dim], scores[dim + 1]) for dim in range(1, rank - 1)]
        if not all(same(one, two) for one, two in pairs):
            differ = any(same(one, two) is False for one, two in pairs)
            message = f"expected class ids of sizes {_text(wanted_ids(scores))}, not {_text(ids)}"
            raise ClassesLast(message, () if differ else pairs)
    _all_equal(ids, wanted_ids(scores), classes=1)


def wanted_ids(scores: Sizes) -> Sizes:
    """Sizes of the class ids for scores (N, C, ...)."""
    return (*scores[:1], *scores[2:])


def are_probabilities(scores: Sizes, target: Sizes) -> bool | None:
    """Check whether cross entropy takes a target as class probabilities: all sizes are equal.

    None if unknown.
    """
    if len(scores) != len(target):
        return False
    answers = [same(one, two) for one, two in zip(scores, target, strict=True)]
    return False if False in answers else None if None in answers else True


def equal_sizes(prediction: Sizes, target: Sizes) -> None:
    """Check a target required to have the sizes of the prediction, without broadcasting."""
    if len(prediction) != len(target):
        raise WrongRank(
            f"Using a target size {_text(target)} that is different to the input size {_text(prediction)}",
            len(target),
            (len(prediction),),
            1,
        )
    _all_equal(target, prediction)


def broadcast(*shapes: Sizes) -> None:
    """Check operands broadcast against each other."""
    broadcast_sizes(*shapes)


def broadcast_into(prediction: Sizes, target: Sizes) -> None:
    """Check a target broadcast to the sizes of the prediction."""
    check_expands_to(prediction, target)


def extra_dimension(longer: Sizes, shorter: Sizes) -> int | None:
    """Extra dimension of size 1 in longer, its only difference from shorter.

    Both then broadcast. None without one, or if all dimensions before it have
    size 1, as in (1, N) and (N,): then broadcasting only adds leading dimensions to shorter.
    """
    if len(longer) != len(shorter) + 1:
        return None
    for dim in range(1, len(longer)):
        if longer[dim].value == 1 and all(
            same(one, two) for one, two in zip((*longer[:dim], *longer[dim + 1 :]), shorter, strict=True)
        ):
            return dim if any(size.value != 1 for size in longer[:dim]) else None
    return None


def repeated_dimension(one: Sizes, two: Sizes) -> tuple[int, int] | None:
    """Return the operand repeated along a dimension of its size 1, and the dimension.

    Both have the same rank and differ in that dimension only. None for one number compared with all others.
    """
    if len(one) != len(two):
        return None
    differ = [dim for dim, (left, right) in enumerate(zip(one, two, strict=True)) if not same(left, right)]
    if len(differ) != 1:
        return None
    (dim,) = differ
    sizes = one[dim].value, two[dim].value
    if None in sizes or 1 not in sizes:
        return None
    operand = sizes.index(1)
    others = [size for at, size in enumerate((one, two)[operand]) if at != dim]
    return (operand, dim) if any(size.value != 1 for size in others) else None


def same_rank(*shapes: Sizes) -> None:
    """Check operands of equal rank, broadcast against each other."""
    for number, shape in enumerate(shapes[1:], 1):
        if len(shape) != len(shapes[0]):
            message = (
                f"all operands must have the same number of dimensions: {len(shapes[0])}, not {len(shape)}"
            )
            raise WrongRank(message, len(shape), (len(shapes[0]),), number)
    broadcast_sizes(*shapes)


def triplets(anchor: Sizes, positive: Sizes, negative: Sizes) -> None:
    """Check anchor, positive and negative: equal rank, with distances over the last dimension."""
    for number, shape in enumerate((positive, negative), 1):
        if len(shape) != len(anchor):
            message = f"all operands must have the same number of dimensions: {len(anchor)}, not {len(shape)}"
            raise WrongRank(message, len(shape), (len(anchor),), number)
    near, far = broadcast_sizes(anchor, positive), _broadcast_third(anchor, negative)
    broadcast_sizes(near[:-1], far[:-1])


def _broadcast_third(anchor: Sizes, negative: Sizes) -> Sizes:
    try:
        return broadcast_sizes(anchor, negative)
    except SizeMismatch as error:
        numbers = {0: 0, 1: 2}
        error.operand = numbers[error.operand]
        error.other = None if error.other is None else numbers[error.other]
        raise


def cosine_embedding(one: Sizes, two: Sizes, target: Sizes) -> None:
    """Check pairs of rows (N, D) with targets (N,), or one pair (D,) with a target of rank 0."""
    if len(target) > 1:
        raise WrongRank("0D or 1D target tensor expected, multi-target not supported", len(target), (0, 1), 2)
    for number, shape in enumerate((one, two)):
        if len(shape) != len(target) + 1:
            message = f"{len(target)}D target tensor expects {len(target) + 1}D input tensors"
            raise WrongRank(message, len(shape), (len(target) + 1,), number)
    together = broadcast_sizes(one, two)
    if target:
        _stretch(together[0], target[0])


def _stretch(rows: Size, targets: Size) -> None:
    """Check that one loss per row broadcasts with the targets."""
    try:
        broadcast_sizes((rows,), (targets,))
    except ShapeError:
        raise SizeMismatch(
            f"The size of tensor a ({targets}) must match the size of tensor b ({rows})",
            targets,
            rows,
            dim=0,
            operand=2,
            other=0,
            other_dim=0,
        ) from None


def one_id_per_row(scores: Sizes, ids: Sizes) -> None:
    """Check scores (N, C) with class ids (N,)."""
    if len(scores) > 2:
        raise WrongRank("expected scores of one or two dimensions", len(scores), (1, 2))
    if len(scores) < 2:
        class_ids((ONE,), ids)
        return
    if len(ids) > 1 or (not ids and same(scores[0], 1) is False):
        raise WrongRank(f"inconsistent target size: {len(ids)} dimensions", len(ids), (1,), 1)
    if len(ids) == 1 and same(ids[0], scores[0]) is False:
        raise SizeMismatch(
            f"inconsistent target size: {ids[0]} for {scores[0]} rows",
            ids[0],
            scores[0],
            dim=0,
            operand=1,
            other=0,
            other_dim=0,
        )


def ctc(log_probs: Sizes, lengths: Sequence[tuple[int, Sizes | None]], targets: Sizes | None) -> None:
    """Check CTC: log_probs (T, N, C), lengths of size N, and targets of N rows if of rank 2.

    lengths holds pairs of an operand number and sizes, None if unknown.
    """
    if len(log_probs) != 3:
        return
    batch = log_probs[1]
    rows: list[tuple[int, Sizes]] = [
        (number, sizes) for number, sizes in lengths if sizes is not None and len(sizes) == 1
    ]
    if targets is not None and len(targets) == 2:
        rows.append((1, targets))
    for number, sizes in rows:
        if same(sizes[0], batch) is False:
            raise SizeMismatch(
                f"input_lengths must be of size batch_size: {sizes[0]} for a batch of {batch}",
                sizes[0],
                batch,
                dim=0,
                operand=number,
                other=0,
                other_dim=1,
            )


def _all_equal(target: Sizes, wanted: Sizes, classes: int = 0) -> None:
    """Check that target and wanted sizes are equal; raises for the first provably different pair.

    classes is the number of class dimensions that the prediction has after dimension 0.
    """
    for dim, (have, want) in enumerate(zip(target, wanted, strict=True)):
        if same(have, want) is False:
            message = f"expected a target of sizes {_text(wanted)}, not {_text(target)}"
            place = dim + classes if dim else dim
            raise SizeMismatch(message, have, want, dim, operand=1, other=0, other_dim=place)


def _text(sizes: Sizes) -> str:
    return f"[{', '.join(map(str, sizes))}]"
