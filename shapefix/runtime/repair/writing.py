"""Write the files of a proved copy: all of them or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from shapefix.repair import writes
from shapefix.sources.text import SourceText

Write = Callable[[str, bytes, bytes], None]


class FilesNotWritten(Exception):
    """A file could not be written; those before it were restored. The message is for the user."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def write_all(changes: Sequence[tuple[SourceText, SourceText]], write: Write = writes.write) -> None:
    """Write the new text of each file if it still has its old text.

    If that fails or is interrupted, the files already written are restored. Raises FilesNotWritten.
    """
    done: list[tuple[str, bytes, bytes]] = []
    try:
        for old, new in changes:
            before, after = old.encode(), new.encode()
            done.append((old.path, before, after))
            try:
                write(old.path, after, before)
            except (OSError, writes.LeftAlone) as error:
                done.pop()
                text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                raise FilesNotWritten(old.path, text) from error
    except BaseException:
        for path, before, after in reversed(done):
            # A file that was not yet written still has its old text.
            with contextlib.suppress(OSError, writes.LeftAlone):
                write(path, before, after)
        raise
