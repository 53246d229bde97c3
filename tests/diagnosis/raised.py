"""Runs a script in this process, and returns the traceback that Python would print for it."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path


def traceback_of(script: Path) -> str:
    """Return the traceback of a failing script."""
    before, path = Path.cwd(), list(sys.path)
    os.chdir(script.parent)
    sys.path.insert(0, str(script.parent))
    try:
        exec(compile(script.read_text("utf-8"), str(script), "exec"), {"__name__": "__main__"})
    except Exception as error:
        stack = error.__traceback__.tb_next if error.__traceback__ else None
        return "".join(traceback.format_exception(type(error), error, stack))
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in [each.stem for each in script.parent.glob("*.py")]:
            sys.modules.pop(name, None)
    raise AssertionError("the script raises nothing")
