"""Dataclasses with a short definition: `frozen=True` is checked by mypy, not at run time.

The analysis has hundreds of them, and defining them takes a third of a cold start. Fields of a frozen class
can be assigned at run time, and all classes share one `__repr__`; they are the same otherwise.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

DEFINE: Callable[..., Any] = dataclasses.dataclass
"""The decorator of Python."""
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Make a dataclass; takes the options of dataclasses.dataclass."""
        return _defined(cls, options) if cls is not None else lambda each: _defined(each, options)


def _defined(cls: type, options: dict[str, bool]) -> type:
    own = cls.__dict__
    # Python sets the hash of a class with an `__eq__` alone to None.
    has_hash = "__hash__" in own and not (own["__hash__"] is None and "__eq__" in own)
    eq = options.get("eq", True)
    is_hashed = options.get("frozen", False) and eq and not has_hash
    chosen = options | {
        "frozen": False,
        "repr": False,
        # An `__eq__` of the class is kept in any case.
        "eq": eq and ("__eq__" not in own or is_hashed or options.get("order", False)),
        "unsafe_hash": options.get("unsafe_hash", False) or is_hashed,
    }
    made: type = DEFINE(**chosen)(cls)
    if options.get("repr", True) and "__repr__" not in own:
        made.__repr__ = _representation  # type: ignore[assignment, method-assign]
    return made


def _representation(self: Any) -> str:
    """`Name(field=value)`, as dataclasses have it."""
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
