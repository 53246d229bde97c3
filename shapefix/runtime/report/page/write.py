"""`probe --report FILE`: the page of a run, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def unwritable(report: str) -> str | None:
    """Why no page can be written there, None where it can; known before anything is run."""
    path = Path(report)
    try:
        import jinja2  # noqa: F401
    except ImportError:
        return "a page needs Jinja2: pip install 'shapefix[probe]'"
    if path.is_dir():
        return "is a folder; name the file to write"
    if not path.absolute().parent.is_dir():
        return f"there is no folder {path.parent}"
    there = path if path.exists() else path.absolute().parent
    return None if os.access(there, os.W_OK) else "permission denied"


def write(report: str, page: str) -> None:
    """Write a page in the place of the file that is there. Raises OSError."""
    # A lone surrogate, as in the name of a file that is not UTF-8, cannot be written as it is.
    data = page.encode("utf-8", "backslashreplace")
    path = Path(os.path.realpath(report))
    if path.exists() and not path.is_file():  # such as /dev/stdout
        path.write_bytes(data)
        return
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with open(handle, "wb") as file:  # noqa: PTH123
            file.write(data)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
