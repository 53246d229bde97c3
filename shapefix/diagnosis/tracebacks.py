"""Read tracebacks out of the lines of a log, as Python, IPython and rich print them."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from shapefix.diagnosis.error_reports import ErrorReport, StackFrame
from shapefix.diagnostics import path_of
from shapefix.light_dataclasses import dataclass

_HEADER = re.compile(r"(?P<before>.*?)(?:Original |Exception Group )?Traceback \(most recent call last\)")
_NOTEBOOK_HEADER = re.compile(
    r"(?P<before>.*?)(?<![\w.])(?P<type>[A-Za-z_][\w.]*) {2,}Traceback \(most recent call last\)$"
)
_RICH_HEADER = re.compile(r"(?P<before>.*?)[╭┌+][─━-]+ Traceback \(most recent call last\) [─━-]+[╮┐+]$")

_FRAME = re.compile(r'\s*(?:> )?File "(?P<path>[^"]+)", line (?P<row>\d{1,9})(?:, in (?P<function>.+))?$')
_ERROR = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.|<locals>\.)*(?P<name>[A-Za-z_]\w*))(?:: ?(?P<message>.*))?$")
_SHOUTED = re.compile(r"[A-Z]+$")
_LOWERCASE_ERRORS = ("error", "timeout", "gaierror", "herror")

_NOTEBOOK_FRAMES = (
    re.compile(
        r"(?:Cell |Input )In ?\[(?P<cell>\d{1,9})\](?:, line (?P<row>\d{1,9}))?(?:, in (?P<function>.+))?$"
    ),
    re.compile(r"File (?P<path>.+?):(?P<row>\d{1,9})(?:, in (?P<function>.+))?$"),
    re.compile(r"<ipython-input-(?P<cell>\d{1,9})-\w+>(?::(?P<row>\d{1,9}))? in (?P<function>.+)$"),
    re.compile(
        r"(?P<path>.+\.ipynb) Cell (?P<number>\d{1,9})'?(?: line (?P<row>\d{1,9}))?(?: in (?P<function>.+))?$"
    ),
    re.compile(r"(?P<path><(?:timed exec|timed eval|magic-timeit|string)>) in (?P<function>.+)$"),
    re.compile(r"(?P<path>(?:[~/.]|[A-Za-z]:\\)[^:]*\.py)(?::(?P<row>\d{1,9}))? in (?P<function>.+)$"),
)
_ARROW = re.compile(r"-+> ?(?P<row>\d{1,9}) ?(?P<text>.*)$")
_QUOTED_ROW = re.compile(r"(?: *\(\.\.\.\))? +(?P<row>\d{1,9})(?: (?P<text>.*))?$")
_LINK = re.compile(r"</?a\b[^>]*>")
"""Links around paths and rows, as Visual Studio Code stores them."""
_COPIED_LINK = re.compile(r"^\[(?P<place>[^\]]+)\]\(https?://[^)\s]*\)(?= in )")
"""A link around the place of a frame, as Colab puts it into the clipboard."""
_RICH_FRAME = re.compile(r"(?P<path>\S.*?): ?(?P<row>\d{1,9})(?: in (?P<function>\S.*))?$")
_RICH_WITHOUT_FILE = re.compile(r"in (?P<function><?\w+>?)$")
"""The position of a frame of code without a file, as `exec` runs it."""
_RICH_INSIDE = re.compile(r"[│┃] \S.*\.py:\d{1,9} in \S.* [│┃]$")
"""The position of a frame in a box."""
_LABELED_FRAME = re.compile(r'(?P<label>(?:\[[\w:/.-]{1,40}\]:? )+) *File "[^"]+", line \d')
_RICH_ARROW = re.compile(r"[❱>] *(?P<row>\d{1,9}) ?(?P<text>.*)$")

_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_WRAPPED = re.compile(
    r"Caught \w+ in (?:\w+ ){0,4}(?:process|replica) \d+|Process \d+ terminated with the following error"
)
"""Words of an exception that repeats the one of another process or thread below it."""

_BAR = re.compile(r"it/s|s/it|\d%\||\?, ?\?")
"""Parts of a progress bar."""
_TIME = re.compile(r"\d[\d/.:,TZ+-]*:\d\d[\d/.:,TZ+-]*")
_NEXT_RECORD = re.compile(
    r"\[?\d{4}-\d\d-\d\d|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\b|\[rank\d|wandb: |srun: |\$ |>>> "
    r"|\[[WEI]\d{3,}| *\d+%\||[IWEF]\d{4} \d\d:\d\d:\d\d"
)
"""Starts of lines that are another record of the log, not the message's next line."""
_OF_COMPILER = frozenset(
    {"Unsupported", "UserError", "TorchRuntimeError", "InternalTorchDynamoError", "BackendCompilerFailed"}
)
"""Exceptions of `torch.compile`; their messages have empty lines, and the user's own stack at the end."""
_USER_CODE = "from user code:"
_MEMBER = re.compile(r"(?P<indentation>.*)\+-+ (?:\d+|\.\.\.) -+$")
_GROUP_END = re.compile(r"(?P<indentation>.*)\+-{30,}$")

_MOST_ROWS = 40
"""The most lines of one message."""
_MOST_NOISE = 200
"""The most unreadable lines in a stack; a process that is interrupted leaves more."""
_MOST_FRAMES = 2_000
_MOST_LINKED = 50
"""The most exceptions of a chain, and of a group."""
_LONGEST_LABEL = 200
_LONGEST_HEAD = 600
_LONGEST_MESSAGE = 20_000
_MOST_STACKS = 256
"""The most stacks read at the same time, for as many processes."""


def read_reports(lines: Iterable[str]) -> Iterator[ErrorReport]:
    """Yield the errors in a log, each when its message ends."""
    return _Reader().read(lines)


class _Reader:
    """The unfinished stacks of a log, by the label of their lines."""

    def __init__(self) -> None:
        self._open: dict[str, _Stack] = {}
        self._done: list[ErrorReport] = []

    def read(self, lines: Iterable[str]) -> Iterator[ErrorReport]:
        for line in lines:
            self._take(line)
            if self._done:
                yield from self._done
                self._done.clear()
        for key in sorted(self._open, key=len, reverse=True):
            self._close(key)
        yield from self._done

    def _take(self, line: str) -> None:
        if "(most recent call last)" in line and self._start(line):
            return
        if self._open and (end := _GROUP_END.match(line)):
            self._end_group(f"{end['indentation']}| ")
            return
        if self._open and (member := _MEMBER.match(line)):
            self._add(_PythonStack(f"{member['indentation'].replace('+-', '  ')}| "))
            return
        for key in sorted(self._open, key=len, reverse=True):
            stack = self._open[key]
            text = stack.content(line)
            if text is None:
                continue
            if stack.prefix != key:
                key = self._rename(key)
            if stack.take(text):
                return
            self._close(key)
            if stack.finished:
                break
            return
        started = _without_beginning(line)
        if started is not None:
            started.take(line[len(started.prefix) :])
            self._add(started)

    def _rename(self, key: str) -> str:
        """File a stack under its present label; return the label."""
        stack = self._open.pop(key)
        if stack.prefix in self._open:
            self._close(stack.prefix)
        self._open[stack.prefix] = stack
        return stack.prefix

    def _start(self, line: str) -> bool:
        """Start a stack at its header."""
        if (found := _NOTEBOOK_HEADER.match(line)) and not found["before"].strip():
            return self._add(_NotebookStack(found["before"], found["type"]))
        if found := _RICH_HEADER.match(line):
            return self._add(_RichStack(found["before"]))
        found = _HEADER.match(line)
        if found is None or not line.endswith((":", ")")):
            return False
        before = found["before"]
        if _BAR.search(before) or len(before) > _LONGEST_LABEL:
            before = ""
        if "Exception Group Traceback" in line:
            return self._add(_PythonStack(before.replace("+", "|", 1), is_group=True))
        if before.rstrip().endswith(("'", '"')):
            return False
        return self._add(_PythonStack(before))

    def _add(self, stack: _Stack) -> bool:
        key = stack.prefix
        before = self._open.get(key)
        if before is not None:
            if before.expects_next():
                stack.earlier = (*before.earlier, replace(before.report(), earlier=()))[-_MOST_LINKED:]
                if before.wraps:
                    stack.outer = before.report()
                    stack.earlier = before.earlier
                del self._open[key]
            else:
                self._close(key)
        elif len(self._open) >= _MOST_STACKS:
            self._close(next(iter(self._open)))
        self._open[key] = stack
        return True

    def _close(self, key: str) -> None:
        stack = self._open.pop(key)
        if not stack.has_error():
            return
        report = stack.report()
        group = self._group_of(key)
        if group is not None:
            del group.members[_MOST_LINKED - 1 :]
            group.members.append(report)
        else:
            self._done.append(report)

    def _end_group(self, key: str) -> None:
        """Close the last member of an exception group, and the group."""
        group = self._group_of(key)
        if key in self._open:
            self._close(key)
        if group is not None:
            self._close(group.prefix)

    def _group_of(self, key: str) -> _Stack | None:
        """Return the exception group around the stack with this label."""
        inside = [
            stack
            for other, stack in self._open.items()
            if stack.is_group and "|" in key and len(other) < len(key)
        ]
        return max(inside, key=lambda stack: len(stack.prefix), default=None)


def _without_beginning(line: str) -> _Stack | None:
    """Return the stack of a frame without a header in the log."""
    if line.startswith(("│", "┃")):
        return _RichStack("") if _RICH_INSIDE.match(line) else None
    if 'File "' not in line:
        return None
    if line.lstrip().startswith("File"):
        return _PythonStack("", is_truncated=True) if _FRAME.match(line) else None
    found = _LABELED_FRAME.match(line)
    return None if found is None else _PythonStack(found["label"], is_truncated=True)


@dataclass
class _Stack(ABC):
    """An unfinished stack: its frames, then its type and message, then the link to the next one."""

    prefix: str
    is_truncated: bool = False
    is_group: bool = False
    frames: list[StackFrame] = field(default_factory=list)
    type: str = ""
    message: list[str] = field(default_factory=list)
    earlier: tuple[ErrorReport, ...] = ()
    outer: ErrorReport | None = None
    members: list[ErrorReport] = field(default_factory=list)
    noise: int = 0
    blank: int = 0
    linked: bool = False
    wraps: bool = False
    is_user_code: bool = False
    finished: bool = False
    _settled: bool = False

    def content(self, line: str) -> str | None:
        """Return a line without the label of this stack; None for a line of another one."""
        if not self.prefix:
            return line
        if line.startswith(self.prefix):
            self._settled = True
            return line[len(self.prefix) :]
        if line == self.prefix.rstrip():
            return ""
        if _TIME.search(self.prefix):
            pattern = r"[\d/.:,TZ+-]+".join(re.escape(part) for part in _TIME.split(self.prefix))
            found = re.match(pattern, line)
            if found:
                self._settled = True
                return line[found.end() :]
        if not self._settled and _FRAME.match(line):
            # The words before the header were a message, not the label of each line.
            self.prefix, self._settled = "", True
            return line
        return None

    def take(self, line: str) -> bool:
        """Read a line; false if it is not part of this stack."""
        if self.type:
            return self._take_message(line)
        if self.take_frame(line):
            return True
        self.noise += 1
        return self.noise <= _MOST_NOISE

    @abstractmethod
    def take_frame(self, line: str) -> bool:
        """Read a line before the message; false for noise."""

    def _take_message(self, line: str) -> bool:
        text = line.strip()
        if text.startswith(_CHAINED):
            self.linked = True
            return True
        if _WRAPPED.search(text):
            self.linked = self.wraps = True
        if self.linked:
            # A label of the next stack, such as `multiprocess.pool.RemoteTraceback:` and quotes.
            self.noise += bool(text)
            return self.noise <= _MOST_NOISE
        if self.type.rpartition(".")[2] in _OF_COMPILER and self._take_user_code(line, text):
            return True
        if not text or text == '"""':
            self.blank += 1
            return self.blank <= 2
        if self.blank or len(self.message) >= _MOST_ROWS or _NEXT_RECORD.match(line) or _FRAME.match(line):
            self.finished = True
            return False
        self.message.append(line)
        return True

    def _take_user_code(self, line: str, text: str) -> bool:
        """Read a line of the user's own stack in a message, or one before it."""
        self.noise += 1
        if text == _USER_CODE:
            self.is_user_code = True
        elif not self.is_user_code:
            return not text and self.noise <= _MOST_ROWS
        elif found := _FRAME.match(line):
            self._frame(StackFrame(found["path"], int(found["row"]), found["function"] or ""))
        elif text and line[:1] in (" ", "\t"):
            self._text_of_last(text)
        else:
            return False
        return True

    def take_error(self, line: str) -> bool:
        """Read the line with the type and the message; false if it is another one."""
        found = _ERROR.match(line)
        if found is None:
            return False
        name = found["name"]
        is_shouted = len(name) > 1 and _SHOUTED.match(name)
        if is_shouted or not (name[0].isupper() or name.endswith(_LOWERCASE_ERRORS)):
            return False
        if found["message"] is None and " " in line:
            return False
        self.type = found["type"]
        self.message.append(found["message"] or "")
        self.linked = self.wraps = bool(_WRAPPED.search(line))
        self.is_group = self.is_group or (bool(self.prefix) and name.endswith("ExceptionGroup"))
        self.noise = 0
        return True

    def expects_next(self) -> bool:
        """Whether the next stack belongs to the same error."""
        return bool(self.type) and self.linked

    def has_error(self) -> bool:
        return bool(self.type)

    def report(self) -> ErrorReport:
        """Return the error of the read lines."""
        frames = tuple(self.frames)
        if self.outer is not None:
            frames = (*self.outer.frames, *frames)[-_MOST_FRAMES:]
        return ErrorReport(
            self.type,
            "\n".join(self.message).strip()[:_LONGEST_MESSAGE],
            frames,
            self.earlier,
            tuple(self.members),
            self.prefix if self.prefix.strip("| +") else "",
            self.is_truncated,
        )

    def _frame(self, frame: StackFrame) -> None:
        if len(self.frames) < _MOST_FRAMES:
            self.frames.append(frame)
        else:
            self.frames[-1] = frame

    def _text_of_last(self, text: str) -> None:
        if self.frames and not self.frames[-1].text:
            self.frames[-1] = replace(self.frames[-1], text=text)


class _PythonStack(_Stack):
    """A stack as Python prints it."""

    def take_frame(self, line: str) -> bool:
        if found := _FRAME.match(line):
            count = _count(found["path"])
            number = int(count) if count else None
            self._frame(StackFrame(found["path"], int(found["row"]), found["function"] or "", cell=number))
            return True
        text = line.strip()
        if not text:
            return True
        if line[0] in " \t":
            # Some loggers write the values of the names in a line below it.
            if not set(text) <= set("^~ ") and not text.startswith(("│", "└")):
                self._text_of_last(text)
            return True
        return bool(self.frames or not self.is_truncated) and self.take_error(line)


class _NotebookStack(_Stack):
    """A stack as IPython prints it; its header has the type of the exception."""

    def __init__(self, prefix: str, name: str) -> None:
        super().__init__(prefix)
        self._name = name

    def take_frame(self, line: str) -> bool:
        line = _COPIED_LINK.sub(r"\g<place>", _LINK.sub("", line))
        if found := _ARROW.match(line):
            if self.frames:
                row, text = int(found["row"]), found["text"].strip()
                self.frames[-1] = replace(self.frames[-1], row=row, text=text)
            return True
        if self.frames and (found := _QUOTED_ROW.match(line)):
            quote = int(found["row"]), (found["text"] or "").strip()
            self.frames[-1] = replace(self.frames[-1], quoted=(*self.frames[-1].quoted, quote))
            return True
        for pattern in _NOTEBOOK_FRAMES:
            if found := pattern.match(line):
                parts = found.groupdict()
                path = parts.get("path") or f"cell {parts['cell']}"
                if parts.get("number"):
                    path = path_of(path, int(parts["number"]))
                count = parts.get("cell") or _count(path)
                cell = int(count) if count else None
                function = re.sub(r"\(.*", "", parts.get("function") or "").strip()
                self._frame(StackFrame(path, int(parts.get("row") or 0), function, cell=cell))
                return True
        if line.startswith(self._name) and self.take_error(line):
            return True
        return not line or line[0] == " " or line.startswith("-----")


def _count(path: str) -> str | None:
    """Return the execution count in the name of a cell."""
    found = re.match(r"<ipython-input-(\d{1,9})", path)
    return found[1] if found else None


class _RichStack(_Stack):
    """A stack in a box, as rich prints it; long paths continue on the next line."""

    def __init__(self, prefix: str) -> None:
        super().__init__(prefix)
        self._head = ""
        self._in_box = True

    def take_frame(self, line: str) -> bool:
        if not self._in_box:
            return not line.strip() or self.take_error(line)
        if re.match(r"[╰└][─━]|\+-+\+$", line):
            self._in_box = False
            return True
        if not line.startswith(("│", "|", "┃")):
            return False
        text = line[2:-2]
        if found := _RICH_ARROW.match(text):
            if self.frames and self.frames[-1].row == int(found["row"]):
                self._text_of_last(found["text"].strip(" │|"))
            self._head = ""
        elif not text.strip() or re.match(r" +\d+ |[╭╰│]", text):
            self._head = ""
        else:
            self._take_head(text)
        return True

    def _take_head(self, text: str) -> None:
        """Read a line of the position of a frame."""
        if len(self._head) > _LONGEST_HEAD:
            self._head = ""
        had = _RICH_FRAME.match(self._head.strip())
        # A line is broken between words, or within one that is too long for it.
        heads = [re.sub(r" +", " ", f"{self._head}{between}{text}".strip()) for between in ("", " ")]
        found = _RICH_FRAME.match(heads[0]) or _RICH_FRAME.match(heads[1])
        self._head = heads[0] if found is None else found[0]
        if found is None:
            return
        frame = StackFrame(found["path"], int(found["row"]), found["function"] or "")
        if without_file := _RICH_WITHOUT_FILE.match(found["path"]):
            frame = replace(frame, path="<string>", function=without_file["function"])
        if had is not None and self.frames:
            self.frames[-1] = frame
        else:
            self._frame(frame)
