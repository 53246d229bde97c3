"""What the agent writes is read back, whatever the end of the process has left of it."""

from __future__ import annotations

import json
from pathlib import Path

from shapefix.diagnostics import Span
from shapefix.runtime.agent.handler_lookup import find_handler
from shapefix.runtime.observations import read
from shapefix.runtime.protocol import UserPlace

PLACE = UserPlace(file="/a.py", row=3, column=5, end_row=3, end_column=9, function="f")
TENSOR = {
    "kind": "tensor",
    "dtype": "float32",
    "size": [2],
    "stride": [1],
    "device": "cpu",
    "contiguous": True,
}
CALL = {"args": [TENSOR], "kwargs": {}}


def enter(number: int, parent: int | None, name: str) -> dict[str, object]:
    return {
        "kind": "module_enter", "id": number, "parent": parent, "name": name, "type": "Linear",
        "grad_enabled": True, "constructed_at": PLACE, "called_at": None, "variable": None, "input": CALL,
    }  # fmt: skip


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = [
        enter(1, None, "Net"),
        enter(2, 1, "fc"),
        {"kind": "module_exit", "id": 2, "seconds": 0.1, "multiplications": None, "out": TENSOR},
    ]
    text = "\n".join(map(json.dumps, whole)) + '\n{"kind": "module_exit", "id": 1, "sec'
    path = tmp_path / "observations.jsonl"
    path.write_text(text + "\udcff\x00", "utf-8", errors="surrogateescape")
    (net,) = read(path).modules
    assert (net.name, net.out, net.constructed_at) == ("Net", None, Span("/a.py", 3, 5, 3, 9))
    assert [(each.name, each.seconds) for each in net.children] == [("fc", 0.1)]


def test_no_observations_at_all(tmp_path: Path) -> None:
    observed = read(tmp_path / "nothing.jsonl")
    assert (observed.end, observed.steps, observed.modules, observed.exceptions) == (None, 0, (), ())


HANDLERS = """\
import contextlib
try:
    try:
        work()
    except (OSError, KeyError):
        pass
    except RuntimeError as error:
        raise
except Exception:
    pass
with contextlib.suppress(ValueError):
    work()
try:
    pass
except:
    work()
"""


def test_the_handler_that_takes_an_exception_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text(HANDLERS)

    def row(line: int, *names: str) -> int | None:
        found = find_handler(
            [*names, "Exception", "BaseException"], [{**PLACE, "file": str(path), "row": line}]
        )
        return None if found is None else int(found["row"])

    assert row(4, "KeyError", "LookupError") == 5
    assert row(4, "RuntimeError") == 9
    assert row(4, "TypeError") == 9
    assert row(12, "ValueError") == 11
    assert row(12, "TypeError") is None
    assert row(16, "TypeError") is None
