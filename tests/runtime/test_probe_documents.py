"""`check --with-probe`: any document gives an answer or one clear line."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapefix.cli.main import run
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View
from shapefix.runtime.confirmation.confirm import Confirmer
from shapefix.runtime.confirmation.run_record import Record, UnusableRecord, read, record_of

CODE = """\
import torch


def flatten(x):
    B, T, C = x.shape
    return x.transpose(1, 2).view(B, T * C)


flatten(torch.zeros(4, 6, 8))
"""


def place(path: str, row: int, column: int, end: int) -> dict[str, Any]:
    return {
        "filename": path,
        "location": {"row": row, "column": column},
        "end_location": {"row": row, "column": end},
    }


def document(path: str) -> dict[str, Any]:
    """A document as the probe writes it, with the parts that are read back."""
    at = place(path, 6, 12, 44)
    return {
        "schema_version": 1,
        "executed": {
            "files": [{"filename": path, "sha256": hashlib.sha256(CODE.encode()).hexdigest()}],
            "reached": [
                {
                    "id": 1,
                    "at": at,
                    "returned": True,
                    "outer": [2],
                    "values": {"B": 4, "T": 6, "x": [4, 6, 8]},
                },
                {"id": 2, "at": place(path, 9, 1, 30), "returned": False, "outer": [], "values": {}},
            ],
            "returned": [{"filename": path, "row": 4, "function": "flatten"}],
        },
        "exceptions": [
            {"type": "RuntimeError", "message": "view size", "stack": [at], "swallowed_at": None},
            {"type": "ValueError", "message": "x", "stack": [], "swallowed_at": place(path, 9, 1, 30)},
        ],
        "findings": [{**at, "code": "SF101", "message": "in the run", "evidence": [place(path, 9, 1, 30)]}],
        "batches": [{"asked": None}, {"asked": place(path, 9, 1, 30)}],
    }


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, CheckSession]:
    folder = tmp_path_factory.mktemp("project").resolve()
    (folder / "train.py").write_text(CODE)
    path = str(folder / "train.py")
    session = CheckSession([path], Settings(CheckOptions(use_cache=False))).run()
    assert [each.code for each in session.findings()] == ["SF101"]
    return path, session


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just(10**400)
    | st.sampled_from([float("nan"), float("inf"), -1, 0, "\0", "\ud800", "/", "a" * 9_999, 2**63]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def answer(whole: object, session: CheckSession) -> Record | None:
    """Judge findings by a document and render them; None if the document is refused in one line."""
    try:
        record = record_of(whole)
    except UnusableRecord as refused:
        record, message = None, str(refused)
    if record is None:
        assert 0 < len(message) < 150
        assert "\n" not in message
        return None
    reported = Confirmer(record, session.data).judged(session.findings())
    assert len(reported) == 1
    for each in FINDING_FORMATS.values():
        text = "".join(each.render(reported, (), View("/", sources=session.source)))
        assert not {*text} & {*map(chr, (*range(10), *range(11, 32), *range(127, 160)))}
    return record


def test_the_document_that_is_changed_below_is_read(checked: tuple[str, CheckSession]) -> None:
    path, session = checked
    record = answer(document(path), session)
    assert record is not None
    assert len(record.reached) == 2


@given(JSON)
def test_any_json_is_no_internal_error(checked: tuple[str, CheckSession], whole: object) -> None:
    answer(whole, checked[1])
    answer({"schema_version": 1, "executed": whole}, checked[1])


def spots(part: Any) -> list[tuple[Any, Any]]:
    """Return every container of a document with each of its keys."""
    keys = list(part) if isinstance(part, dict) else range(len(part)) if isinstance(part, list) else ()
    found = []
    for key in keys:
        found += [(part, key), *spots(part[key])]
    return found


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10**6), JSON, st.integers(1, 3))
def test_a_document_with_other_values_in_it(
    checked: tuple[str, CheckSession], seed: int, value: object, times: int
) -> None:
    path, session = checked
    chosen = random.Random(seed)
    whole = document(path)
    for _ in range(times):
        container, key = chosen.choice(spots(whole))
        match chosen.randrange(4):
            case 0:
                del container[key]
            case 1 if isinstance(container, dict):
                container[str(value)[:20]] = copy.deepcopy(container[key])
            case 2:
                container[key] = copy.deepcopy(chosen.choice(spots(whole))[0])
            case _:
                container[key] = copy.deepcopy(value)
        if not spots(whole):
            break
    answer(whole, session)


TEXTS: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "NUL": lambda path: path.write_bytes(b"\0" * 100),
    "deep": lambda path: path.write_text("[" * 10**6),
    "deep objects": lambda path: path.write_text('{"a":' * 10**5),
    "digits": lambda path: path.write_text('{"schema_version": ' + "9" * 10**6 + "}"),
    "version": lambda path: path.write_text('{"schema_version": ' + "9" * 4_000 + "}"),
    "version text": lambda path: path.write_text('{"schema_version": "' + "9" * 10**6 + '"}'),
    "infinite": lambda path: path.write_text('{"schema_version": 1e400}'),
    "NaN": lambda path: path.write_text('{"schema_version": NaN}'),
    "pipe": lambda path: os.mkfifo(path),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path.name),
    "large": lambda path: path.write_bytes(b" " * 64_000_001),
}


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS.keys())
def test_what_is_not_a_document_is_one_line(
    make: Callable[[Path], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(CODE)
    make(tmp_path / "run.json")
    code = run(["check", "--with-probe", str(tmp_path / "run.json"), str(tmp_path / "train.py")])
    shown = capsys.readouterr()
    assert (code, shown.out) == (2, "")
    assert shown.err.startswith(f"error: {tmp_path}/run.json: ")
    assert shown.err.count("\n") == 1
    assert len(shown.err) < 400


def test_a_document_cut_off_anywhere(tmp_path: Path) -> None:
    text = json.dumps(document("/train.py"))
    file = tmp_path / "run.json"
    for end in range(0, len(text), 7):
        file.write_text(text[:end])
        with pytest.raises(UnusableRecord):
            read(str(file))


def test_a_large_document_is_read_in_seconds(checked: tuple[str, CheckSession]) -> None:
    path, session = checked
    whole = document(path)
    whole["executed"]["reached"] *= 5_000
    whole["findings"] *= 5_000
    whole["exceptions"] *= 5_000
    start = time.process_time()
    answer(whole, session)
    assert time.process_time() - start < 20
