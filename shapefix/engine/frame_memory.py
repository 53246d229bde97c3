"""Memory for the frames of nested calls."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

FRAME_BYTES = 4 << 20
"""Bytes for the frames of all nested calls; ten thousand of them take less."""
_BYTES_OF_A_SLOT = 8


def _call(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **keywords: Parameters.kwargs
) -> Result:
    return function(*arguments, **keywords)


# Python gets the memory of frames in blocks of 16 KB, and returns a block as soon as no frame is in it. A
# loop just below such a border then gets and returns one for each of its calls: the system has worked for
# 17 s for 4 s of a program. A frame with a large stack gets a block of twice its size; others get the rest.
_in_large_frame = FunctionType(
    _call.__code__.replace(co_stacksize=FRAME_BYTES // _BYTES_OF_A_SLOT), globals(), "_in_large_frame"
)


def with_memory_for_frames(
    function: Callable[Parameters, Result], *arguments: Parameters.args, **keywords: Parameters.kwargs
) -> Result:
    """Call a function with memory for its nested calls; the system provides the touched part."""
    result: Result = _in_large_frame(function, *arguments, **keywords)
    return result
