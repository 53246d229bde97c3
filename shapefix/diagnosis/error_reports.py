"""Errors as a log shows them: type, message and stack."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shapefix.diagnostics import cell_of
from shapefix.light_dataclasses import dataclass

_CELL = re.compile(
    r"^cell \d+$|^<ipython-input-|[/\\](?:ipykernel_\d+[/\\]\d+|ipython-input-[\w-]+)\.py$|^<command-\d+"
)
"""Paths of cells in tracebacks of IPython, Jupyter, Colab and Databricks."""
_OF_LAUNCHERS = frozenset({"ChildFailedError", "CalledProcessError", "ProcessExitedException"})
"""Exceptions of a process about the failure of another one."""
_OF_PEOPLE = frozenset({"KeyboardInterrupt", "SystemExit", "BrokenPipeError", "SignalException"})
"""Exceptions of a process that is stopped from outside."""

_OF_PEERS = re.compile(
    r"Connection (?:closed|reset) by peer|ncclRemoteError|remote process exited or there was a network error"
    r"|typically caused by a remote worker crashing"
)
"""Messages of a process about the end of another one of the same training."""


@dataclass(frozen=True)
class StackFrame:
    """A line of a stack: the path as printed, the row, the function and the source text.

    function and text are "" if the log lacks them; cell is the execution count of a notebook's cell. quoted
    are the rows around it with their texts, as IPython shows them.
    """

    path: str
    row: int
    function: str = ""
    text: str = ""
    cell: int | None = None
    quoted: tuple[tuple[int, str], ...] = ()

    @property
    def is_cell(self) -> bool:
        """Whether it is code of a notebook's cell."""
        return self.cell is not None or _CELL.search(self.path) is not None or cell_of(self.path) is not None

    @property
    def quotes(self) -> tuple[tuple[int, str], ...]:
        """The shown rows with their texts, that of the frame first."""
        own = ((self.row, self.text),) if self.text else ()
        return own + tuple(each for each in self.quoted if each[0] != self.row)


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
        is_of_peer = _OF_PEERS.search(self.message) is not None
        return is_of_peer or self.name in _OF_LAUNCHERS or self.name in _OF_PEOPLE

    def chain(self) -> Iterator[ErrorReport]:
        """Yield this exception, then the members of a group, then the earlier ones, latest first."""
        yield self
        for member in self.members:
            yield from member.chain()
        for each in reversed(self.earlier):
            yield from each.chain()
