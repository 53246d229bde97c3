"""The model of CUDA's caching allocator, by the rules that c10/cuda/CUDACachingAllocator.cpp states."""

from __future__ import annotations

import random

import pytest

from shapefix.runtime.agent.fake_gpu.allocator import MIB, CachingAllocator, MemoryBlock, rounded, segment


def taken(allocator: CachingAllocator, request: int) -> MemoryBlock:
    block = allocator.allocate(request)
    assert block is not None
    return block


@pytest.mark.parametrize(("request_", "bytes_"), [(1, 512), (512, 512), (513, 1024), (1000, 1024)])
def test_requests_are_rounded_to_512_bytes(request_: int, bytes_: int) -> None:
    assert rounded(request_) == bytes_


@pytest.mark.parametrize(
    ("request_", "bytes_"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (11 * MIB, 12 * MIB),
        (100 * MIB + 512, 102 * MIB),
    ],
)
def test_what_is_asked_of_the_driver(request_: int, bytes_: int) -> None:
    assert segment(request_) == bytes_


def test_small_and_large_requests_have_segments_of_their_own() -> None:
    allocator = CachingAllocator()
    taken(allocator, 1000)
    assert (allocator.allocated, allocator.reserved) == (1024, 2 * MIB)
    taken(allocator, 3 * MIB)
    assert (allocator.allocated, allocator.reserved) == (1024 + 3 * MIB, 22 * MIB)
    taken(allocator, 17 * MIB)  # what is left of the segment
    assert allocator.reserved == 22 * MIB


def test_nothing_is_taken_for_nothing() -> None:
    allocator = CachingAllocator()
    assert allocator.allocate(0) is None
    assert allocator.reserved == 0


def test_a_rest_of_a_mebibyte_stays_with_its_block() -> None:
    allocator = CachingAllocator()
    block = taken(allocator, 19 * MIB + 512)
    assert block.size == allocator.allocated == 20 * MIB
    assert taken(allocator, 18 * MIB).size == 18 * MIB


def test_the_smallest_block_that_fits_is_taken() -> None:
    allocator = CachingAllocator()
    wide, _, narrow, _ = (taken(allocator, size * MIB) for size in (6, 2, 4, 2))
    allocator.free(wide)
    allocator.free(narrow)
    assert taken(allocator, 3 * MIB) is narrow
    assert allocator.reserved == 20 * MIB


def test_free_neighbours_become_one_block() -> None:
    allocator = CachingAllocator()
    first, second, third = (taken(allocator, 6 * MIB) for _ in range(3))
    for each in (first, third, second):
        allocator.free(each)
    assert allocator.allocated == 0
    taken(allocator, 20 * MIB - MIB)
    assert allocator.reserved == 20 * MIB


def test_the_peaks_stay_until_they_are_reset() -> None:
    allocator = CachingAllocator()
    block = taken(allocator, 30 * MIB)
    allocator.free(block)
    assert (allocator.peak_allocated, allocator.peak_reserved) == (30 * MIB, 30 * MIB)
    allocator.reset_peaks()
    assert (allocator.peak_allocated, allocator.peak_reserved) == (0, 30 * MIB)


def test_segments_that_are_free_can_be_released() -> None:
    allocator = CachingAllocator()
    alone, beside, _ = taken(allocator, 30 * MIB), taken(allocator, 5 * MIB), taken(allocator, 5 * MIB)
    allocator.free(alone)
    allocator.free(beside)
    allocator.release_cached()
    assert (allocator.allocated, allocator.reserved) == (5 * MIB, 20 * MIB)
    assert taken(allocator, 30 * MIB) is not alone


def test_what_is_given_back_is_there_again() -> None:
    """Whatever comes and goes: bytes add up, and the same course again reserves nothing more."""
    chance = random.Random(7)
    allocator = CachingAllocator()
    sizes = [chance.choice([700, 80_000, 3 * MIB, 14 * MIB]) + chance.randrange(9000) for _ in range(300)]
    reserved = []
    for _ in range(2):
        living: list[MemoryBlock] = []
        for size in sizes:
            living.append(taken(allocator, size))
            while living and chance.random() < 0.4:
                allocator.free(living.pop(chance.randrange(len(living))))
            assert allocator.allocated == sum(each.size for each in living) <= allocator.reserved
        for each in living:
            allocator.free(each)
        assert allocator.allocated == 0
        reserved.append(allocator.reserved)
    allocator.release_cached()
    assert allocator.reserved == 0
