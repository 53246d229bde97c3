"""Reads the rule book: the examples of a page, with what each of their lines is said to do.

A page's ```python blocks are examples. Comments at the end of a line say what is expected there:
`# error: [SF101] "part of the message"`, `warning` and `info` likewise, with `when "part of the condition"`
where one is stated, several on a line where several findings are; `# revealed: ...` after `reveal(x)`.
A block that follows one directly belongs to it: ```python fixed is its text after `fix --apply`
(```python fixed unsafe: with `--unsafe-fixes`), and ```python run calls what it defines, in the same
namespace; there `# raises: part of the message` marks the calls that fail.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

RULES = Path(__file__).resolve().parents[2] / "rules"

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPECTATION = re.compile(r"[ \t]+# (?:error|warning|info|revealed|raises): .*$")
_FINDING = re.compile(
    r"# (?P<severity>error|warning|info): \[(?P<code>SF\d{3})\]"
    r' "(?P<message>[^"]+)"(?: when "(?P<condition>[^"]+)")?(?=\s+#|$)'
)
_REVEALED = re.compile(r"# revealed: (?P<text>.+)$")
_RAISES = re.compile(r"# raises: (?P<message>.+)$")


@dataclass(frozen=True)
class Expected:
    """A finding that a page promises: message and condition are parts of those that are reported."""

    line: int
    severity: str
    code: str
    message: str
    condition: str | None = None


@dataclass(frozen=True)
class Fixed:
    """The text of an example after its repair, and whether that takes --unsafe-fixes."""

    text: str
    unsafe: bool


@dataclass(frozen=True)
class Example:
    """One example: text is without the comments that state expectations, so lines keep their numbers.

    revealed maps lines to what `reveal` says there. run holds the calls that follow, raises the lines of
    run that must fail, with part of the message.
    """

    page: Path
    line: int
    heading: str
    text: str
    findings: tuple[Expected, ...]
    revealed: dict[int, str]
    fixed: Fixed | None = None
    run: str = ""
    raises: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.page.stem.split('-')[0]}-{self.line}"


def _plain(body: str) -> str:
    return "\n".join(_EXPECTATION.sub("", line) for line in body.split("\n"))


def _example(page: Path, line: int, heading: str, body: str) -> Example:
    findings: list[Expected] = []
    revealed: dict[int, str] = {}
    for number, text in enumerate(body.split("\n"), start=1):
        found = list(_FINDING.finditer(text))
        if len(found) != len(re.findall(r"# (?:error|warning|info):", text)):
            raise ValueError(f"{page.name}:{line + number}: cannot read the expectation: {text.strip()}")
        for match in found:
            severity, code, message, condition = match.groups()
            findings.append(Expected(number, severity, code, message, condition))
        if reveal := _REVEALED.search(text):
            revealed[number] = reveal["text"].strip()
    return Example(page, line, heading, _plain(body), tuple(findings), revealed)


def examples(page: Path) -> list[Example]:
    """The examples of a page, in order. Raises ValueError, with the line, where a block makes no sense."""
    text = page.read_text("utf-8")
    found: list[Example] = []
    end_of_last = -1
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        words = fence["info"].split()
        if words[:1] != ["python"]:
            raise ValueError(f"{page.name}:{line}: a block must say python, not {fence['info']!r}")
        if words == ["python"]:
            heading = re.findall(r"^## (.+)$", text[: fence.start()], re.MULTILINE)[-1]
            found.append(_example(page, line, heading, fence["body"]))
        elif not found or text[end_of_last : fence.start()].strip():
            raise ValueError(f"{page.name}:{line}: no example directly before this block")
        elif words in (["python", "fixed"], ["python", "fixed", "unsafe"]):
            found[-1] = replace(found[-1], fixed=Fixed(fence["body"], "unsafe" in words))
        elif words == ["python", "run"]:
            raises = tuple(
                (number, match["message"])
                for number, row in enumerate(fence["body"].split("\n"), start=1)
                if (match := _RAISES.search(row))
            )
            found[-1] = replace(found[-1], run=_plain(fence["body"]), raises=raises)
        else:
            raise ValueError(f"{page.name}:{line}: unknown kind of block: {fence['info']!r}")
        end_of_last = fence.end()
    return found


def front_matter(page: Path) -> dict[str, str]:
    """The `key: value` lines between the two `---` that open a page."""
    _, head, _ = page.read_text("utf-8").split("---\n", 2)
    return dict(line.split(": ", 1) for line in head.splitlines())


def pages() -> list[Path]:
    """Every page of the rule book, by code."""
    return sorted(RULES.glob("SF*.md"))
