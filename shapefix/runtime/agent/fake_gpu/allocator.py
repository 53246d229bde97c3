"""A model of PyTorch's caching allocator for CUDA: counts allocated and reserved bytes."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
ROUNDING = 512
_SMALL_REQUEST = MIB
_SMALL_SEGMENT, _LARGE_SEGMENT = 2 * MIB, 20 * MIB
_LARGE_REQUEST, _LARGE_ROUNDING = 10 * MIB, 2 * MIB


def rounded(size: int) -> int:
    """The bytes taken by a request in a segment."""
    return max(ROUNDING, -(-size // ROUNDING) * ROUNDING)


def segment(size: int) -> int:
    """The bytes requested from the driver if no free block fits a rounded request."""
    if size <= _SMALL_REQUEST:
        return _SMALL_SEGMENT
    if size < _LARGE_REQUEST:
        return _LARGE_SEGMENT
    return -(-size // _LARGE_ROUNDING) * _LARGE_ROUNDING


@dataclass
class MemoryBlock:
    """A part of a segment; the blocks of a segment are linked in the order of their addresses."""

    small: bool
    size: int
    free: bool = False
    before: MemoryBlock | None = None
    after: MemoryBlock | None = None


class CachingAllocator:
    """The segments of one GPU. Counts are in bytes; the peaks are those since the last reset.

    Requests up to 1 MiB share segments of 2 MiB, those up to 10 MiB segments of 20 MiB, and larger ones get
    segments of their own. The smallest free block that fits is taken, and split if enough remains; free
    neighbors are merged.
    """

    def __init__(self) -> None:
        self.allocated = self.reserved = 0
        self.peak_allocated = self.peak_reserved = 0
        self._free: dict[bool, list[MemoryBlock]] = {True: [], False: []}

    def allocate(self, request: int) -> MemoryBlock | None:
        """Allocate a block for a number of bytes; None for 0 bytes."""
        if request == 0:
            return None
        size = rounded(request)
        small = size <= _SMALL_REQUEST
        fitting = [block for block in self._free[small] if block.size >= size]
        if fitting:
            block = min(fitting, key=lambda each: each.size)
            self._free[small].remove(block)
        else:
            block = MemoryBlock(small, segment(size))
            self.reserved += block.size
            self.peak_reserved = max(self.peak_reserved, self.reserved)
        block.free = False
        self._split(block, size)
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: MemoryBlock) -> None:
        """Free a block, and merge it with free neighbors."""
        self.allocated -= block.size
        block.free = True
        after, before = block.after, block.before
        if after is not None and after.free:
            self._free[block.small].remove(after)
            block.size += after.size
            _link(block, after.after)
        if before is not None and before.free:
            before.size += block.size
            _link(before, block.after)
        else:
            self._free[block.small].append(block)

    def release_cached(self) -> None:
        """Return unused segments to the driver, like torch.cuda.empty_cache."""
        for small, blocks in self._free.items():
            whole = [block for block in blocks if block.before is None and block.after is None]
            self.reserved -= sum(block.size for block in whole)
            self._free[small] = [block for block in blocks if block.before or block.after]

    def reset_peaks(self) -> None:
        """Set the peaks to the current counts."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def _split(self, block: MemoryBlock, size: int) -> None:
        rest = block.size - size
        if rest >= ROUNDING if block.small else rest > _SMALL_REQUEST:
            remains = MemoryBlock(block.small, rest, free=True)
            _link(remains, block.after)
            _link(block, remains)
            block.size = size
            self._free[block.small].append(remains)


def _link(block: MemoryBlock, after: MemoryBlock | None) -> None:
    block.after = after
    if after is not None:
        after.before = block
