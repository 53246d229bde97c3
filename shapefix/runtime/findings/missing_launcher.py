"""Scripts for torchrun, started without it."""

from __future__ import annotations

import re

from shapefix.diagnostics import Diagnostic, Severity
from shapefix.runtime.findings.constructor_fixes import read_text
from shapefix.runtime.findings.environment import ENVIRONMENT
from shapefix.runtime.observations import Observations, RaisedException

OPTION = "--launched"
"""The option of the agent to set the variables of torchrun."""

_VARIABLE = re.compile(r"\b(?:(?:LOCAL_|GROUP_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_(?:ADDR|PORT))\b")


def missing_launcher(observed: Observations) -> RaisedException | None:
    """The exception of a script without a variable of torchrun, if any."""
    return next((each for each in observed.exceptions if each.ended_script and variable_of(each)), None)


def variable_of(failure: RaisedException) -> str:
    """The missing variable of torchrun; empty for another failure."""
    if failure.type not in ("KeyError", "TypeError") or not failure.stack:
        return ""
    place = failure.stack[0]
    rows = (read_text(place.path) or "").splitlines()[place.row - 1 : place.end_row]
    # `int(os.environ.get("RANK"))` fails for None.
    text = failure.message if failure.type == "KeyError" else "".join(rows)
    found = _VARIABLE.search(text) if "environ" in "".join(rows) or "getenv" in "".join(rows) else None
    return "" if found is None else found[0]


def launcher_note(failure: RaisedException) -> Diagnostic:
    """The note on a run with the variables of torchrun, after a run without them has failed."""
    text = (
        f"reads `{variable_of(failure)}`, which torchrun sets: this is a run as its only process; "
        "`--nproc 2` starts two"
    )
    return Diagnostic(ENVIRONMENT, "missing-launcher", Severity.INFO, text, failure.stack[0])
