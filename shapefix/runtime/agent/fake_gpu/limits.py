"""Exceptions of the simulated GPU, not of the script."""

from __future__ import annotations

import re

_LIMITS = re.compile(
    r"from the 'CUDA' backend|not linked with support for cuda|Cannot initialize CUDA"
    r"|not compiled with CUDA enabled|requires CUDA support|Cannot get CUDA generator"
    r"|accelerator device when none is available|dummy base class (?:Event|Stream)$"
    r"|module 'torch\._C' has no attribute '_\w+'|[Ff]ake ?[Tt]ensor",
    re.MULTILINE,
)
_TYPES = ("DataDependentOutputException", "DynamicOutputShapeException", "UnsupportedFakeTensorException",
          "UnsupportedOperatorException", "GuardOnDataDependentSymNode")  # fmt: skip


def exceeded_limit(error: BaseException) -> str:
    """The limit of the simulation in an exception, in words; empty for another exception."""
    if not isinstance(error, Exception):
        return ""
    text = str(error)
    if type(error).__name__ not in _TYPES and _LIMITS.search(text) is None:
        return ""
    first = re.split(r"\. |\n", text.strip() or type(error).__name__)[0]
    return f"{type(error).__name__}: {first[:200].rstrip('.')}"
