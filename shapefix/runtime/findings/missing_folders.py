"""Exceptions about files in a missing folder."""

from __future__ import annotations

import re

from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.observations import Observations, RaisedException
from shapefix.runtime.protocol import SourceLine

_CREATES = re.compile(
    r"mkdir|makedirs|copytree|move\(|rename|extract|unpack|system\(|subprocess|Popen|save_|Trainer|Writer|Saver|Logger"
)
"""Calls that may create a folder."""


def missing_folder(failure: RaisedException, observed: Observations, read: ReadText) -> str:
    """The missing folder of a missing file; empty if skipped code may create it."""
    folder = failure.details.get("missing_folder", "")
    files = (line["file"] for line in observed.of(SourceLine)) if folder else ()
    return "" if any(_CREATES.search(read(path) or "") for path in files) else folder


def folder_text(failure: RaisedException) -> str:
    """The missing folder of a missing file, in words."""
    folder = failure.details.get("missing_folder")
    return "" if folder is None else f"; the folder `{folder}` does not exist"
