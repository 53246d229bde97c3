"""Logs made to cost time or memory, or to break the reader: each is answered, soon."""

# Long lines are those of the logs.
# ruff: noqa: E501

from __future__ import annotations

import io
import time
import tracemalloc
from pathlib import Path

import pytest

from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnosis.tracebacks import read_reports

HEADER = "Traceback (most recent call last):\n"
VIEW = (
    "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension"
    " spans across two contiguous subspaces). Use .reshape(...) instead.\n"
)
LONG = 19_900
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
SUM = "a = b" + " + b" * 40_000
LOGS = {
    "row of many digits": f'{HEADER}  File "train.py", line {"9" * 5_000}, in f\n    x\n{VIEW}',
    "cell of many digits": f"RuntimeError   Traceback (most recent call last)\nCell In[{'9' * 5_000}], line 1\n{VIEW}",
    "path of a folder": f'{HEADER}  File ".", line 1, in f\n    x\n  File "..", line 1\n  File "/", line 1\n{VIEW}',
    "path of a device": f'{HEADER}  File "/dev/zero", line 1, in f\n    x\n  File "\0", line 1\n{VIEW}',
    "chain": "".join(f'{HEADER}  File "train.py", line 1, in f\n    x\n{VIEW}{DIRECT}' for _ in range(300)),
    "words without spaces": HEADER + f"RuntimeError: {'x' * LONG}\n" * 20,
    "words that start templates": HEADER
    + "".join(
        f"RuntimeError: {word * (LONG // len(word))}\n" for word in ("expected ", "size ", "got ", "(a) ")
    ),
    "label of digits": f"{'1' * LONG} {HEADER}" + f"{'1' * LONG} x\n" * 100,
    "label of a type": f"{'a' * LONG}Traceback (most recent call last)\n" * 20,
    "workers": f"{HEADER}RuntimeError: " + f"{'Caught a in ' * (LONG // 12)}\n" * 40,
    "box": "╭───── Traceback (most recent call last) ──────╮\n" + f"│ {'x ' * 40} │\n" * 5_000,
    "many members": "  + Exception Group Traceback (most recent call last):\n  | ExceptionGroup: x (9 sub-exceptions)\n"
    + "".join(f"    +---------------- {n} ----------------\n    | ValueError: x\n" for n in range(3_000)),
    "many files": HEADER
    + "".join(f'  File "/x/f{n}.py", line 1, in f\n    x\n' for n in range(2_000))
    + VIEW,
    "many rows": HEADER
    + "".join(f'  File "train.py", line {n + 9}, in f\n    x = {n}\n' for n in range(2_000))
    + VIEW,
    "handlers": "failed with a "
    + "b c " * 4_000
    + "RuntimeError: CUDA error: device-side assert triggered\n",
    "bytes": "\ud8ff" * 9 + HEADER + '  File "train.py", line 3\n' + VIEW,
}
FIELDS = "".join("{n} b {n} c " for _ in range(40))
TRAIN = "".join(f"x = {n}\n" for n in range(10_000)) + (
    f"try:\n    f()\nexcept Exception as error:\n    print(f'failed with {FIELDS}{{error}} c {FIELDS}')\n"
)


def diagnosed(log: str, folder: Path) -> Diagnosis | None:
    return diagnose_log(log_lines(io.BytesIO(log.encode("utf-8", "surrogatepass"))), str(folder))


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS.keys())
def test_a_hostile_log_is_answered_soon(tmp_path: Path, log: str) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "deep.py").write_text(f"try:\n    f()\nexcept E as e:\n    print({'(' * 5_000})\n")
    (tmp_path / "sum.py").write_text(f"try:\n    {SUM}\nexcept E as e:\n    print(f'failed with {{e}}')\n")
    for number in range(50):
        (tmp_path / f"empty{number}.py").touch()
    diagnosed(HEADER + VIEW, tmp_path)
    start = time.process_time()
    diagnosed(log, tmp_path)
    assert time.process_time() - start < 3


def test_a_chain_has_each_exception_once() -> None:
    log = (
        "".join(f"{HEADER}ValueError: {number}\n{DIRECT}" for number in range(4)) + f"{HEADER}ValueError: 4\n"
    )
    (report,) = read_reports(log.splitlines())
    assert [each.message for each in report.chain()] == ["4", "3", "2", "1", "0"]


def test_the_memory_for_a_log_does_not_grow_with_it() -> None:
    tracemalloc.start()
    try:
        for head, line in (
            ("╭───── Traceback (most recent call last) ──────╮", f"│ {'x' * LONG} │"),
            (f"{HEADER}ValueError: x", f"Caught ValueError in process 1 {'x' * LONG}"),
            ("Traceback (most recent call last):", "x" * LONG),
        ):
            lines = (head if number == 0 else f"{line}{number}" for number in range(200))
            assert len(list(read_reports(lines))) < 2
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "written",
    [
        r"C:\Users\me\project\sub\train.py",
        r"\\server\share\project\sub\train.py",
        r"\\?\D:\project\sub\train.py",
        r"sub\train.py",
        "/mnt/c/project/sub/train.py",
        "/Users/Zo\u0308e/project/sub/train.py",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_paths_of_other_systems_are_found_by_their_ends(tmp_path: Path, written: str, newline: str) -> None:
    for folder in ("sub", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "train.py").write_text("import torch\nx = torch.zeros(4, 4).t()\nx.view(16)\n")
    log = f'{HEADER}  File "{written}", line 3, in <module>\n    x.view(16)\n{VIEW}'
    found = diagnosed(log.replace("\n", newline), tmp_path)
    assert found is not None
    (frame,) = found.frames
    assert (frame.span.path, frame.span.row) == (str(tmp_path / "sub" / "train.py"), 3)
    assert [cause.finding.code for cause in found.causes] == ["SF101"]
