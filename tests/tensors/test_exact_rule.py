"""The exact rule of `.view` and the dimension order of elementwise results, for random strides."""

from __future__ import annotations

import math
import random

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.tensors import legality, memory_format, tensor_iterator, verdicts, views
from shapefix.tensors.layout import Layout, sizes_of

EXAMPLES = 250
CASES_OF_EACH = 20


def random_tensor(rng: random.Random, shape: list[int] | None = None) -> torch.Tensor:
    """Tensor of random sizes and strides: permuted, with gaps, expanded, overlapping or empty."""
    if shape is None:
        shape = [
            rng.choice((0, 1, 1, 2, 2, 3, 4)) if rng.random() < 0.9 else 2 for _ in range(rng.randint(0, 4))
        ]
        if rng.random() < 0.8:
            shape = [max(size, 1) for size in shape]
    strides, reach = [0] * len(shape), 1
    for dim in (
        rng.sample(range(len(shape)), len(shape)) if rng.random() < 0.5 else reversed(range(len(shape)))
    ):
        strides[dim] = 0 if rng.random() < 0.1 else reach
        reach *= max(shape[dim], 1)
        if rng.random() < 0.15:
            reach += rng.randint(1, 3)
    return torch.zeros(4096).as_strided(shape, strides)


def layout_of(tensor: torch.Tensor) -> Layout:
    return Layout(sizes_of(tensor.shape), sizes_of(tensor.stride()))


def random_shape(rng: random.Random, numel: int) -> list[int]:
    """Random sizes of the given number of elements, sometimes of another number."""
    shape: list[int] = []
    while numel > 1:
        size = rng.choice([n for n in range(2, numel + 1) if numel % n == 0])
        shape.append(size)
        numel //= size
    shape += [numel] * (numel == 0)
    for _ in range(rng.choice((0, 0, 1, 2))):
        shape.insert(rng.randint(0, len(shape)), 1)
    if shape and rng.random() < 0.05:
        shape[-1] += 1
    return shape


def viewed_by_torch(tensor: torch.Tensor, shape: list[int]) -> tuple[torch.Tensor | None, str]:
    """The view, or None and torch's error."""
    try:
        return tensor.view(shape), ""
    except RuntimeError as error:
        return None, str(error)


def counted(sizes: tuple[int, ...], strides: tuple[int | None, ...]) -> list[int | None]:
    """Strides that matter: those of dimensions of size other than 1, in nonempty tensors."""
    return (
        [stride for size, stride in zip(sizes, strides, strict=True) if size != 1] if math.prod(sizes) else []
    )


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(st.integers(0, 2**32 - 1))
def test_views_of_numbers_are_torchs(seed: int) -> None:
    for number in range(CASES_OF_EACH):
        rng = random.Random(f"{seed} {number}")
        tensor = random_tensor(rng)
        shape = random_shape(rng, tensor.numel())
        minus_one = rng.randrange(len(shape)) if shape and rng.random() < 0.3 else None
        asked = [-1 if place == minus_one else size for place, size in enumerate(shape)]
        verdict = legality.view(layout_of(tensor), *views.target_of(asked))
        case = f"{tuple(tensor.shape)} {tensor.stride()} view {asked}: {verdict}"
        viewed, refused = viewed_by_torch(tensor, asked)
        if viewed is None:
            incompatible = "not compatible with input tensor" in refused
            assert isinstance(verdict, verdicts.Illegal if incompatible else verdicts.WrongNumel), (
                f"{case}: {refused}"
            )
            if isinstance(verdict, verdicts.Illegal):
                between = tensor.shape[verdict.outer + 1 : verdict.inner]
                assert set(between) <= {1}, case
                # torch cannot merge these two dimensions, even alone.
                kept = {verdict.outer, verdict.inner}
                index = tuple(slice(None) if dim in kept else 0 for dim in range(tensor.dim()))
                assert viewed_by_torch(tensor[index], [-1])[0] is None, case
            continue
        assert isinstance(verdict, verdicts.Legal), case
        strides = tuple(stride.value for stride in verdict.layout.strides)
        assert tuple(size.value for size in verdict.layout.sizes) == tuple(viewed.shape), case
        assert counted(viewed.shape, strides) == counted(viewed.shape, viewed.stride()), case


@settings(max_examples=EXAMPLES, deadline=None, database=None)
@given(st.integers(0, 2**32 - 1))
def test_elementwise_results_of_numbers_are_torchs(seed: int) -> None:
    for number in range(CASES_OF_EACH):
        rng = random.Random(f"{seed} {number}")
        one = random_tensor(rng)
        shape = [size if rng.random() < 0.7 else 1 for size in one.shape][rng.randint(0, one.dim()) :]
        two = random_tensor(rng, shape)
        operands = [one, two] if rng.random() < 0.5 else [two, one]
        found = operands[0] + operands[1]
        layout = tensor_iterator.elementwise(*map(layout_of, operands))
        strides = tuple(stride.value for stride in layout.strides)
        case = f"{[(tuple(t.shape), t.stride()) for t in operands]}: {layout}, torch {found.stride()}"
        assert tuple(size.value for size in layout.sizes) == tuple(found.shape), case
        assert counted(found.shape, strides) == counted(found.shape, found.stride()), case
        copied = memory_format.preserve_format(layout_of(one))
        assert counted(one.shape, tuple(s.value for s in copied.strides)) == counted(
            one.shape, one.clone().stride()
        )
        dense = torch.ops.aten.is_non_overlapping_and_dense(one)
        assert tensor_iterator.is_dense(layout_of(one)) == dense, f"{tuple(one.shape)} {one.stride()}"
