"""CUDA's caching allocator in numbers: what it would have reserved for storages that came and went."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
ROUNDING = 512
_SMALL_REQUEST = MIB
_SMALL_SEGMENT, _LARGE_SEGMENT = 2 * MIB, 20 * MIB
_LARGE_REQUEST, _LARGE_ROUNDING = 10 * MIB, 2 * MIB


def rounded(size: int) -> int:
    """The bytes that a request takes in a segment."""
    return max(ROUNDING, -(-size // ROUNDING) * ROUNDING)


def segment(size: int) -> int:
    """The bytes that are asked of the driver where no free block takes a rounded request."""
    if size <= _SMALL_REQUEST:
        return _SMALL_SEGMENT
    if size < _LARGE_REQUEST:
        return _LARGE_SEGMENT
    return -(-size // _LARGE_ROUNDING) * _LARGE_ROUNDING


@dataclass
class Block:
    """A stretch of a segment; the blocks of a segment are linked in the order of their addresses."""

    small: bool
    size: int
    free: bool = False
    before: Block | None = None
    after: Block | None = None


class Allocator:
    """The segments of one GPU. allocated and reserved are in bytes; the peaks are since they were reset.

    Requests up to 1 MiB share segments of 2 MiB, those up to 10 MiB segments of 20 MiB, and greater ones get
    segments of their own. The smallest free block that is large enough is taken, and split where enough
    remains; neighbours that are free become one block again.
    """

    def __init__(self) -> None:
        self.allocated = self.reserved = 0
        self.peak_allocated = self.peak_reserved = 0
        self._free: dict[bool, list[Block]] = {True: [], False: []}

    def take(self, request: int) -> Block | None:
        """A block for so many bytes; None for none."""
        if request == 0:
            return None
        size = rounded(request)
        small = size <= _SMALL_REQUEST
        fitting = [block for block in self._free[small] if block.size >= size]
        if fitting:
            block = min(fitting, key=lambda each: each.size)
            self._free[small].remove(block)
        else:
            block = Block(small, segment(size))
            self.reserved += block.size
            self.peak_reserved = max(self.peak_reserved, self.reserved)
        block.free = False
        self._split(block, size)
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def give(self, block: Block) -> None:
        """A block is free again."""
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

    def release(self) -> None:
        """Segments of which nothing is taken go back to the driver, as by torch.cuda.empty_cache."""
        for small, blocks in self._free.items():
            whole = [block for block in blocks if block.before is None and block.after is None]
            self.reserved -= sum(block.size for block in whole)
            self._free[small] = [block for block in blocks if block.before or block.after]

    def reset_peaks(self) -> None:
        """The peaks are of what is there now."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def _split(self, block: Block, size: int) -> None:
        rest = block.size - size
        if rest >= ROUNDING if block.small else rest > _SMALL_REQUEST:
            remains = Block(block.small, rest, free=True)
            _link(remains, block.after)
            _link(block, remains)
            block.size = size
            self._free[block.small].append(remains)


def _link(block: Block, after: Block | None) -> None:
    block.after = after
    if after is not None:
        after.before = block
