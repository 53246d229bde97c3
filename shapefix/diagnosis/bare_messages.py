"""Find known messages in a log without a traceback, as a handler prints them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.explanations import explain_message

_HINTS = ("rror", "ailed", "xception", "arning", "RROR", "AILED", "AIL:")
"""Parts of lines about failures; the templates of all messages take much longer to compare."""
_LONGEST = 2_000
"""Characters of a line that are looked at."""
_SHORT = 40
"""The number of lines of a pasted message; in them every line may be a part of it."""
_TYPE = re.compile(
    r"(?:^|\W)(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning))\b:? (?P<message>.+)"
)


_PASTED = re.compile(r"\s*(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): \S")
"""The start of the last line of a traceback."""


class BareMessages:
    """The last known message of a log; without one the last error of a pasted text."""

    def __init__(self) -> None:
        self._line = ""
        self._unknown = ""

    def watch(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield the lines unchanged, and remember the last one with a known message."""
        for number, line in enumerate(lines):
            is_likely = number < _SHORT or any(hint in line for hint in _HINTS)
            if is_likely and explain_message(line[:_LONGEST]) is not None:
                self._line = line[:_LONGEST]
            elif number < _SHORT and _PASTED.match(line):
                self._unknown = line[:_LONGEST]
            yield line

    @property
    def line(self) -> str:
        """The line of the last known message, or of the last error of a pasted text; "" without one."""
        return self._line or self._unknown

    def report(self) -> ErrorReport | None:
        """Return the message as an error without a stack."""
        if not self.line:
            return None
        found = _TYPE.search(self.line)
        if found is None:
            return ErrorReport("", self.line.strip())
        return ErrorReport(found["type"], found["message"].strip())
