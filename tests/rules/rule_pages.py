"""Read the rule pages: their metadata, their sections, and their examples with the expected behavior.

A page starts with front matter, the single source of the metadata of its rule:

    code, name, severity    as reported; `summary` is the row in the README's table of rules
    fix                     the applicability of the usual fix: safe, unsafe, display or none
    raises                  where the reported code raises an exception at run time: `here`, at the
                            reported line or at a line of the evidence; `later`, elsewhere or only
                            sometimes; `hidden`, the reported handler hides it; `never`, it computes or
                            learns something wrong
    errors                  if it raises: a list of parts of the exceptions' messages
    default                 on, or off if the rule must be selected explicitly
    since                   the first version with the rule
    aliases                 former names, separated by commas (optional)

Every fenced block of a page is one of these:

    ```python               An example. It is analyzed and executed on its own.
    ```python fixed         The example directly above, after `shapefix fix --apply`.
                            Only blank lines or the line "Use instead:" may separate the two.
    ```python fixed unsafe  The same, after `shapefix fix --apply --unsafe-fixes`.
    ```python run           Code to execute after the example, in the same namespace. It must not
                            change when the example is repaired: the repaired text runs with it, too.
    ```python preamble      Imports, once, at the start of "More examples". They are put before every
                            later example without a top-level import, and before its fixed text.
                            Line numbers in expectations count the visible lines only.

A comment at the end of a line states what is expected there:

    # error: [SF101] "part of the message"      A finding; also `warning` and `info`. Add
                                                `when "part of the condition"` to check the condition.
                                                Several findings on a line are written one after another.
    # revealed: f32[2, 3] strides (3, 1)        What `reveal(x)` reports.
    # raises: part of the message               In a run block: this statement raises.
    # corrupts                                  In a run block, after an `assert`: what it asserts is the
                                                damage. It holds for the example and fails for its repair.

An `assert` without `# corrupts` holds before and after the repair. An example without expected findings
must be silent and must run without an exception.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from shapefix.rulebook.pages import pages as installed_pages

SECTIONS = ("What it does", "Why is this bad?", "Example", "How to fix", "When to ignore", "More examples")

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_EXPECTATION = re.compile(r"[ \t]+# (?:(?:error|warning|info|revealed|raises): .*|corrupts)$")
_FINDING = re.compile(
    r"# (?P<severity>error|warning|info): \[(?P<code>[A-Z]+\d+)\]"
    r' "(?P<message>[^"]+)"(?: when "(?P<condition>[^"]+)")?(?=\s+#|$)'
)
_REVEALED = re.compile(r"# revealed: (?P<text>.+)$")
_RAISES = re.compile(r"# raises: (?P<message>.+)$")
_CORRUPTS = re.compile(r"^assert\b.*[ \t]+# corrupts$")
_LINE_NUMBER = re.compile(r"(?<=\bline )\d+\b")


@dataclass(frozen=True)
class Expected:
    """An expected finding: message and condition are parts of the reported ones."""

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
    """One example as it is analyzed and executed.

    text and fixed start with the preamble, which has as many lines as hidden says, and lack the comments
    that state expectations. Line numbers of findings and revealed count from the first visible line.
    raises maps lines of the run block to parts of messages; corrupts has the lines of its asserts that
    fail once the example is repaired.
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
    corrupts: frozenset[int] = frozenset()
    hidden: int = 0

    def __str__(self) -> str:
        return f"{self.page.stem.split('-')[0]}-{self.line}"

    def visible(self, message: str) -> str:
        """A message whose line numbers count from the first visible line."""
        return _LINE_NUMBER.sub(lambda number: str(int(number[0]) - self.hidden), message)


def _plain(body: str) -> str:
    return "\n".join(_EXPECTATION.sub("", line) for line in body.split("\n"))


def _has_import(text: str) -> bool:
    return any(isinstance(node, (ast.Import, ast.ImportFrom)) for node in ast.parse(text).body)


def _example(page: Path, line: int, heading: str, body: str, preamble: str) -> Example:
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
    text = _plain(body)
    if _has_import(text):
        preamble = ""
    return Example(
        page, line, heading, preamble + text, tuple(findings), revealed, hidden=preamble.count("\n")
    )


def _runs(example: Example, body: str, where: str) -> Example:
    rows = list(enumerate(body.split("\n"), start=1))
    raises = tuple((number, match["message"]) for number, row in rows if (match := _RAISES.search(row)))
    corrupts = frozenset(number for number, row in rows if _CORRUPTS.match(row))
    if len(corrupts) != body.count("# corrupts"):
        raise ValueError(f"{where}: `# corrupts` belongs after an assert of one line")
    return replace(example, run=_plain(body), raises=raises, corrupts=corrupts)


@cache
def examples(page: Path) -> tuple[Example, ...]:
    """The examples of a page, in order. Raises ValueError, with the line, if a block is malformed."""
    text = page.read_text("utf-8")
    found: list[Example] = []
    end_of_last = -1
    preamble = ""
    for fence in _FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        where = f"{page.name}:{line}"
        words = fence["info"].split()
        between = text[end_of_last : fence.start()].strip() if found else "no example yet"
        is_fixed = words in (["python", "fixed"], ["python", "fixed", "unsafe"])
        if words == ["python"]:
            heading = re.findall(r"^##+ (.+)$", text[: fence.start()], re.MULTILINE)[-1]
            found.append(_example(page, line, heading, fence["body"], preamble))
        elif words == ["python", "preamble"]:
            if preamble or not text[: fence.start()].rstrip().endswith("\n## More examples"):
                raise ValueError(f"{where}: a page has one preamble, at the start of `## More examples`")
            preamble = fence["body"].rstrip("\n") + "\n\n\n"
        elif between not in (("", "Use instead:") if is_fixed else ("",)):
            raise ValueError(f"{where}: no example directly before this block")
        elif is_fixed:
            hidden = "" if _has_import(fence["body"]) else preamble
            found[-1] = replace(found[-1], fixed=Fixed(hidden + fence["body"], "unsafe" in words))
        elif words == ["python", "run"]:
            found[-1] = _runs(found[-1], fence["body"], where)
        else:
            raise ValueError(f"{where}: unknown kind of block: {fence['info']!r}")
        end_of_last = fence.end()
    return tuple(found)


@cache
def front_matter(page: Path) -> dict[str, str]:
    """The `key: value` lines between the two `---` that open a page; a list has its items as lines."""
    _, head, _ = page.read_text("utf-8").split("---\n", 2)
    entries = re.findall(r"^(\w+):(?: (.+)|((?:\n  - .+)+))$", head, re.MULTILINE)
    return {key: value or items.replace("\n  - ", "\n").strip() for key, value, items in entries}


def stated_errors(page: Path) -> list[str]:
    """Parts of the messages of the exceptions that the reported code of a page raises."""
    return front_matter(page).get("errors", "").splitlines()


def pages() -> list[Path]:
    """Every rule page, by code, those of installed plugins last."""
    return [page.path for page in installed_pages()]
