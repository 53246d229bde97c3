"""Tracebacks are read back out of logs, in every form that Python, IPython and rich print."""

from __future__ import annotations

import io
import re
import traceback
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.traceback import Traceback

from shapefix.diagnosis.diagnose import last_error
from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnosis.log_lines import log_lines
from shapefix.diagnosis.project_frames import is_installed
from shapefix.diagnosis.tracebacks import read_reports


class OwnError(Exception):
    pass


def _read(text: str | bytes) -> list[ErrorReport]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(read_reports(log_lines(io.BytesIO(data))))


def _fail(depth: int, error: Exception) -> None:
    if depth:
        _fail(depth - 1, error)
    raise error


def _caught(depth: int, errors: list[Exception], chained: bool) -> BaseException:
    """Raise the errors, each while the one before is handled, and return the last one."""
    try:
        if len(errors) == 1:
            _fail(depth, errors[0])
        else:
            try:
                raise _caught(depth, errors[:-1], chained)
            except Exception as before:
                if chained:
                    raise errors[-1] from before
                raise errors[-1]  # noqa: B904
    except Exception as error:
        return error
    raise AssertionError


def _rows(error: BaseException) -> list[tuple[str, int, str]]:
    stack = traceback.extract_tb(error.__traceback__)
    return [(each.filename, each.lineno or 0, each.name) for each in stack]


def _name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


_WORDS = st.text("abcxyzé 0189()[]'`,.=x-", max_size=60).map(str.strip)
_ERRORS = st.builds(
    lambda kind, words: kind(words), st.sampled_from([ValueError, RuntimeError, OwnError]), _WORDS
)
_PREFIXES = st.sampled_from(
    ["", "[rank0]: ", "0: ", "  ", "(RayTrainWorker pid=4711) ", "2026-03-01 12:00:01,123 - ERROR - ", "x | "]
)


@settings(max_examples=30)
@given(st.lists(_ERRORS, min_size=1, max_size=3), st.booleans(), st.integers(0, 2), _PREFIXES, st.booleans())
def test_exceptions_are_read_back(
    errors: list[Exception], chained: bool, depth: int, prefix: str, colored: bool
) -> None:
    error = _caught(depth, errors, chained)
    lines = "".join(traceback.format_exception(error)).splitlines()
    if colored:
        lines = [f"\x1b[31m{line}\x1b[0m" for line in lines]
    log = ["step 1: loss 0.5", *(prefix + line for line in lines), prefix, "INFO done"]
    (report,) = _read("\n".join(log) + "\n")
    expected: BaseException | None = error
    for read in (report, *reversed(report.earlier)):
        assert expected is not None
        assert (read.type, read.message) == (_name(expected), str(expected))
        assert [(each.path, each.row, each.function) for each in read.frames] == _rows(expected)
        assert all(each.text for each in read.frames)
        expected = expected.__cause__ or expected.__context__
    assert expected is None
    assert report.prefix == (prefix if prefix.strip() else "")


@settings(max_examples=40)
@given(_ERRORS, st.integers(0, 2), st.integers(40, 140), st.booleans())
def test_rich_tracebacks_are_read_back(error: Exception, depth: int, width: int, plain: bool) -> None:
    raised = _caught(depth, [error], chained=False)
    shown = io.StringIO()
    console = Console(file=shown, width=width, safe_box=plain)
    console.print(Traceback.from_exception(type(raised), raised, raised.__traceback__))
    (report,) = _read(shown.getvalue())
    assert report.name == type(raised).__name__
    assert re.sub(r"\s", "", report.message) == re.sub(r"\s", "", str(raised))
    assert [(each.path, each.row, each.function) for each in report.frames] == _rows(raised)


@settings(max_examples=20)
@given(st.lists(_ERRORS, min_size=2, max_size=4), st.randoms())
def test_interleaved_ranks_are_told_apart(errors: list[Exception], random: object) -> None:
    raised = [_caught(1, [error], chained=False) for error in errors]
    texts = [
        [f"[rank{number}]: {line}" for line in "".join(traceback.format_exception(each)).splitlines()]
        for number, each in enumerate(raised)
    ]
    log = []
    while any(texts):
        rank = random.choice([each for each in texts if each])  # type: ignore[attr-defined]
        log.append(rank.pop(0))
    reports = sorted(_read("\n".join(log)), key=lambda report: report.prefix)
    assert [report.prefix for report in reports] == [f"[rank{number}]: " for number in range(len(raised))]
    assert [report.message for report in reports] == [str(each) for each in raised]
    assert [len(report.frames) for report in reports] == [len(_rows(each)) for each in raised]


@pytest.mark.parametrize(
    "message",
    [
        "[/pytorch/third_party/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:7073."
        " This is typically caused by a remote worker crashing.",
        "NCCL communicator was aborted on rank 0. ncclRemoteError: A call failed possibly due to a network"
        " error or a remote process exiting prematurely.",
    ],
)
def test_the_end_of_a_peer_is_no_error_of_its_own(message: str) -> None:
    """The rank with the cause comes first: the others notice its end."""
    first = _caught(1, [ValueError("a real one")], chained=False)
    second = _caught(1, [RuntimeError(message)], chained=False)
    log = [
        f"[rank{rank}]: {line}"
        for rank, each in ((1, first), (0, second))
        for line in "".join(traceback.format_exception(each)).splitlines()
    ]
    found = last_error(_read("\n".join(log)))
    assert found is not None
    assert (found.prefix, found.message) == ("[rank1]: ", "a real one")


@pytest.mark.parametrize("before", ["", "      \x1b[A", "Epoch 3 failed: "])
def test_words_before_the_first_header_do_not_break_a_chain(before: str) -> None:
    """A nested progress bar leaves spaces and a cursor movement there."""
    raised = _caught(2, [KeyError("loss"), ValueError("no metric")], chained=True)
    text = before + "".join(traceback.format_exception(raised))
    (report,) = _read("\n".join(log_lines(io.BytesIO(text.encode()))))
    assert report.message == str(raised)
    assert [each.type for each in report.chain()] == ["ValueError", "KeyError"]


def test_frames_of_compiled_libraries_are_not_the_users() -> None:
    assert all(map(is_installed, ["pyarrow/error.pxi", "pandas/_libs/hashtable.pyx", "h5py/_objects.pyx"]))


def _group() -> ExceptionGroup[Exception]:
    members: list[Exception] = [ValueError("first")]
    inner = _caught(1, [OwnError("second")], chained=False)
    assert isinstance(inner, Exception)
    members.append(ExceptionGroup("nested", [inner, KeyError("k")]))
    try:
        raise ExceptionGroup("several", members)
    except ExceptionGroup as group:
        return group


@pytest.mark.parametrize("after", ["", "\nTraceback (most recent call last):\nValueError: later\n"])
def test_exception_groups_have_members(after: str) -> None:
    report, *later = _read("".join(traceback.format_exception(_group())) + after)
    assert (report.name, report.message) == ("ExceptionGroup", "several (2 sub-exceptions)")
    first, nested = report.members
    assert (first.type, first.message, first.frames) == ("ValueError", "first", ())
    assert [(each.name, each.message) for each in nested.members] == [
        ("OwnError", "second"),
        ("KeyError", "'k'"),
    ]
    assert [each.name for each in report.chain()] == [
        "ExceptionGroup", "ValueError", "ExceptionGroup", "OwnError", "KeyError",
    ]  # fmt: skip
    assert len(nested.members[0].frames) == 3
    assert [each.message for each in later] == (["later"] if after else [])


_IPYTHON_9 = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
Cell In[2], line 3
      2 try:
----> 3     {}['key']
      4 except KeyError:

KeyError: 'key'

During handling of the above exception, another exception occurred:

RuntimeError                              Traceback (most recent call last)
Cell In[2], line 5
      3     {}['key']
      4 except KeyError:
----> 5     net.forward(y)

File ~/proj/model.py:4, in Net.forward(self, x)
      2 def forward(self, x):
      3     x = x + 1
----> 4     return self.fc(x)

RuntimeError: mat1 and mat2 shapes cannot be multiplied (5120x4000 and 271x256)
"""
_IPYTHON_7 = """\
---------------------------------------------------------------------------
KeyError                                  Traceback (most recent call last)
<ipython-input-2-9b5bd9a9df9a> in <cell line: 0>()
      2 try:
----> 3     {}['key']
      4 except KeyError:

KeyError: 'key'

During handling of the above exception, another exception occurred:

RuntimeError                              Traceback (most recent call last)
<ipython-input-2-9b5bd9a9df9a> in <cell line: 0>()
      3     {}['key']
      4 except KeyError:
----> 5     net.forward(y)

~/proj/model.py in forward(self, x)
      2     def forward(self, x):
      3         x = x + 1
----> 4         return self.fc(x)
      5
      6     def fc(self, x):

RuntimeError: mat1 and mat2 shapes cannot be multiplied (5120x4000 and 271x256)
"""


_COLAB = re.sub(r"(?m)^(\S+)(?= in )", r"[\1](https://localhost:8080/#)", _IPYTHON_7)


@pytest.mark.parametrize("text", [_IPYTHON_9, _IPYTHON_7, _COLAB])
def test_tracebacks_of_notebooks(text: str) -> None:
    (report,) = _read("Epoch 1\n" + text + "\nnext output\n")
    assert report.message == "mat1 and mat2 shapes cannot be multiplied (5120x4000 and 271x256)"
    cell, module = report.frames
    assert (cell.cell, cell.row, cell.text) == (2, 5, "net.forward(y)")
    assert (module.path, module.row, module.text) == ("~/proj/model.py", 4, "return self.fc(x)")
    assert module.function.endswith("forward")
    (before,) = report.earlier
    assert (before.type, before.message, before.frames[0].row) == ("KeyError", "'key'", 3)


_WORKER = """\
Traceback (most recent call last):
  File "train.py", line 9, in <module>
    for batch in loader:
  File "/venv/lib/torch/_utils.py", line 7, in reraise
    raise exception
RuntimeError: Caught RuntimeError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/venv/lib/torch/utils/data/_utils/worker.py", line 3, in _worker_loop
    data = fetcher.fetch(index)
RuntimeError: stack expects each tensor to be equal size, but got [3] at entry 0 and [4] at entry 1

"""


def test_the_error_of_a_worker_replaces_its_repetition() -> None:
    (report,) = _read(_WORKER)
    assert report.message.startswith("stack expects each tensor")
    assert [each.row for each in report.frames] == [9, 7, 3]
    assert report.earlier == ()


_PLAIN = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    g()\nValueError: no\n'


@pytest.mark.parametrize(
    "log",
    [
        _PLAIN,
        _PLAIN.replace("\n", "\r\n"),
        "  0%|          | 0/3 [00:00<?, ?it/s]" + _PLAIN,
        " 10%|#  | 1/9 [00:00<00:03, 3.0it/s]\r 20%|## | 2/9\r" + _PLAIN,
        "ERROR:root:the batch failed\n" + _PLAIN,
        _PLAIN.split("\n", 1)[1],
        _PLAIN.replace("    g()\n", "    g()\n    ~^^\n"),
        _PLAIN.replace("    g()\n", ""),
        _PLAIN.encode("utf-16"),
        b"\xff\xfe"[:1] + _PLAIN.encode(),
        _PLAIN + "wandb: Run history\nINFO next\n",
        "x" * 300_000 + "\n" + _PLAIN,
    ],
)
def test_surroundings_of_a_traceback(log: str | bytes) -> None:
    (report,) = _read(log)
    assert (report.type, report.message) == ("ValueError", "no")
    assert [(each.path, each.row, each.function) for each in report.frames] == [("a.py", 3, "f")]


def test_a_stack_without_its_start_is_marked() -> None:
    (cut,), (whole,) = _read(_PLAIN.split("\n", 1)[1]), _read(_PLAIN)
    assert (cut.is_truncated, whole.is_truncated) == (True, False)


def test_a_rank_without_the_start_of_its_stack_is_read() -> None:
    log = """\
[rank2]:     loss = step(batch)
[rank2]:   File "train.py", line 7, in <module>
[rank0]:   File "train.py", line 7, in <module>
[rank2]:     main()
[rank2]:   File "train.py", line 5, in main
[rank2]:     return x.view(-1)
[rank2]: ValueError: bad
W1128 12:00:00.000000 1234 torch/distributed/elastic/multiprocessing/api.py:900] Sending SIGTERM
"""
    (report,) = read_reports(log.splitlines())
    assert [(frame.row, frame.text) for frame in report.frames] == [(7, "main()"), (5, "return x.view(-1)")]
    assert (report.message, report.is_truncated) == ("bad", True)


def test_a_box_without_its_start_is_read() -> None:
    log = """\
│   3 import torch                                     │
│ ❱ 7 main()                                           │
│                                                      │
│ /home/me/train.py:5 in main                          │
│                                                      │
│   4 │   x = torch.zeros(2, 3, 4).transpose(1, 2)     │
│ ❱ 5 │   return x.view(-1)                            │
│   6                                                  │
╰──────────────────────────────────────────────────────╯
ValueError: bad
"""
    (report,) = read_reports(log.splitlines())
    assert [(frame.path, frame.row, frame.text) for frame in report.frames] == [
        ("/home/me/train.py", 5, "return x.view(-1)")
    ]
    assert report.message == "bad"


def test_a_message_ends_at_the_next_record_of_torchrun() -> None:
    log = """\
Traceback (most recent call last):
  File "train.py", line 5, in main
    return x.view(-1)
ValueError: bad
W1128 12:00:00.000000 1234 torch/distributed/elastic/multiprocessing/api.py:900] Sending SIGTERM
"""
    (report,) = read_reports(log.splitlines())
    assert report.message == "bad"


def test_code_without_a_file_in_a_box_is_not_the_users() -> None:
    log = """\
╭───────── Traceback (most recent call last) ──────────╮
│ in <module>:4                                        │
│                                                      │
│ /home/me/train.py:5 in main                          │
│                                                      │
│ ❱ 5 │   return x.view(-1)                            │
╰──────────────────────────────────────────────────────╯
ValueError: bad
"""
    (report,) = read_reports(log.splitlines())
    assert [(frame.path, frame.row) for frame in report.frames] == [("<string>", 4), ("/home/me/train.py", 5)]


@pytest.mark.parametrize(
    "log",
    ["", "loss 0.3\nValueError: printed only\n", "Traceback (most recent call last):\n", "no\x00thing\n\r\n"],
)
def test_logs_without_a_traceback(log: str) -> None:
    assert _read(log) == []


def test_a_message_of_several_lines() -> None:
    text = "Error(s) in loading state_dict for Net:\n\tsize mismatch for a\n\tsize mismatch for b"
    error = _caught(0, [RuntimeError(text)], chained=False)
    (report,) = _read("".join(traceback.format_exception(error)) + "\n" + "later output\n")
    assert report.message == text


def test_a_long_log_is_read_in_constant_memory() -> None:
    record = _PLAIN.encode() + b"x" * 200_000 + b"\n" + b"step\n" * 100

    class Long(io.BytesIO):
        left = 100

        def read(self, size: int | None = -1) -> bytes:
            self.left -= 1
            return record if self.left > 0 else b""

    tracemalloc.start()
    found = sum(1 for _ in read_reports(log_lines(Long())))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == 99
    assert peak < 3 * len(record)


@settings(max_examples=30)
@given(
    st.lists(
        st.sampled_from([*f"{_PLAIN}{_IPYTHON_9}{_WORKER}".splitlines(), "+---- 1 ---"])
        | st.text(max_size=30),
        max_size=40,
    )
)
def test_any_lines_are_read_without_an_error(lines: list[str]) -> None:
    assert all(report.type for report in _read("\n".join(lines).encode("utf-8", "replace")))


def test_frames_have_the_first_line_of_their_statement() -> None:
    log = _PLAIN.replace("    g()\n", "    g(\n    ^^\n      1,\n    )\n")
    assert _read(log)[0].frames == (StackFrame("a.py", 3, "f", "g("),)


def test_values_below_a_line_are_no_code() -> None:
    """loguru marks the frame with the handler, and writes the values of names below its text."""
    (report,) = _read(
        "Traceback (most recent call last):\n\n"
        '> File "train.py", line 17, in <module>\n'
        "    print(net(batch))\n"
        "          │   └ tensor([[1, 2],\n"
        "          │             [3, 4]])\n"
        "          └ Conv2d(3, 8)\n\n"
        "RuntimeError: no\n"
    )
    assert report.frames == (StackFrame("train.py", 17, "<module>", "print(net(batch))"),)
    assert (report.type, report.message) == ("RuntimeError", "no")


def test_the_stack_in_a_message_of_the_compiler_is_the_users() -> None:
    log = """\
Traceback (most recent call last):
  File "/venv/lib/python3.11/site-packages/torch/_dynamo/eval_frame.py", line 841, in compile_wrapper
    raise e.with_traceback(None) from e.__cause__
torch._dynamo.exc.Unsupported: Data-dependent branching
  Explanation: Detected data-dependent branching.

      The branch condition involves a tensor computed as follows:

from user code:
   File "model.py", line 7, in forward
    if x.sum() > 0:

Set TORCHDYNAMO_VERBOSE=1 for the internal stack trace
epoch 2
"""
    (report,) = read_reports(log.splitlines())
    assert report.name == "Unsupported"
    assert (report.frames[-1].path, report.frames[-1].row) == ("model.py", 7)
    assert report.frames[-1].text == "if x.sum() > 0:"
    assert "epoch 2" not in report.message
