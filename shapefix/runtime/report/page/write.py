"""`probe --report FILE`: write the page of a run, atomically."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def report_problem(report: str) -> str | None:
    """The reason why a page cannot be written to a path, if any; checked before the run."""
    path = Path(report)
    try:
        import jinja2  # noqa: F401
    except ImportError:
        return "requires Jinja2: pip install 'shapefix[report]'"
    if path.is_dir():
        return "is a directory"
    if not path.absolute().parent.is_dir():
        return f"directory {path.parent} does not exist"
    there = path if path.exists() else path.absolute().parent
    return None if os.access(there, os.W_OK) else "permission denied"


def write_page(report: str, page: str) -> None:
    """Write a page, replacing an existing file. Raises OSError."""
    # A lone surrogate, as in a file name that is not UTF-8, cannot be encoded.
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
