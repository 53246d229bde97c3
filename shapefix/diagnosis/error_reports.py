"""Errors as a log shows them: type, message and stack."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_OF_LAUNCHERS = frozenset({"ChildFailedError", "CalledProcessError", "ProcessExitedException"})
"""Exceptions of a process about the failure of another one."""
_OF_PEOPLE = frozenset({"KeyboardInterrupt", "SystemExit", "BrokenPipeError", "SignalException"})
"""Exceptions of a process that is stopped from outside."""


@dataclass(frozen=True)
class StackFrame:
    """A line of a stack: the path as printed, the row, the function and the source text.

    function and text are "" if the log lacks them; cell is the execution count of a notebook's cell.
    """

    path: str
    row: int
    function: str = ""
    text: str = ""
    cell: int | None = None


@dataclass(frozen=True)
class ErrorReport:
    """An exception with its stack, outermost frame first.

    earlier are the exceptions before this one in its chain, oldest first; members are those of an exception
    group. prefix is the label of the lines of its process: `[rank0]: `. is_truncated is true if the log lacks
    the start of the stack.
    """

    type: str
    message: str
    frames: tuple[StackFrame, ...] = ()
    earlier: tuple[ErrorReport, ...] = ()
    members: tuple[ErrorReport, ...] = ()
    prefix: str = ""
    is_truncated: bool = False

    @property
    def name(self) -> str:
        """The last part of the type: `OutOfMemoryError` of `torch.OutOfMemoryError`."""
        return self.type.rpartition(".")[2]

    @property
    def is_consequence(self) -> bool:
        """Whether it only says that another process failed, or that the run was stopped."""
        return self.name in _OF_LAUNCHERS or self.name in _OF_PEOPLE

    def chain(self) -> Iterator[ErrorReport]:
        """Yield this exception, then the members of a group, then the earlier ones, latest first."""
        yield self
        for member in self.members:
            yield from member.chain()
        for each in reversed(self.earlier):
            yield from each.chain()
