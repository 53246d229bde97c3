"""The script: its start, its executed parts, and its end."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from .values import UserPlace

EndReason = Literal[
    "finished", "stopped", "exit", "os._exit", "uncaught", "time limit", "stuck", "missing", "no torch",
    "no device",
]  # fmt: skip


class StartLine(TypedDict):
    """Torch is imported and all hooks are set."""

    kind: Literal["start"]
    python: str
    executable: str
    torch: str
    devices: list[str]


class ScriptLine(TypedDict):
    """The file of the script, known once a module is found."""

    kind: Literal["script"]
    file: str


class SourceLine(TypedDict):
    """An executed file of the user's."""

    kind: Literal["source"]
    file: str
    sha256: str


class SkippedMagicLine(TypedDict):
    """A skipped line of a notebook, for IPython."""

    kind: Literal["skipped_magic"]
    file: str
    row: int
    text: str


class ProcessesRequestedLine(TypedDict):
    """The script requested several processes."""

    kind: Literal["processes_requested"]
    requested: Any
    called_at: UserPlace | None


class CallSiteLine(TypedDict):
    """An executed call in the user's code. outer has the ids of the calls around it.

    values are whole numbers, and sizes of tensors, by the names of the frame.
    """

    kind: Literal["call_site"]
    id: int
    site: UserPlace
    outer: list[int]
    values: dict[str, int | list[int]]


class CallSiteReturnedLine(TypedDict):
    """The call of this id returned at least once."""

    kind: Literal["call_site_returned"]
    id: int


class ForwardReturnedLine(TypedDict):
    """A forward of the user's returned at least once."""

    kind: Literal["forward_returned"]
    file: str
    row: int
    function: str


class LoopTruncatedLine(TypedDict):
    """A loop of the script was cut short; it may be the cause of later exceptions."""

    kind: Literal["loop_truncated"]
    reason: str
    site: UserPlace | None


class StopLine(TypedDict):
    """The probe stops the script; unpredictable says that the rest depends on unknown values."""

    kind: Literal["stop"]
    reason: str
    unpredictable: bool


class EndLine(TypedDict):
    """The end of the script. Memory is in bytes, and None if it cannot be measured."""

    kind: Literal["end"]
    how: EndReason
    site: UserPlace | None
    message: str | None
    code: int | None
    usage_error: bool
    exceptions: list[int]
    seconds: float | None
    forced: bool
    peak_process: int | None
    peak_cuda: int | None
    reserved_cuda: int | None
