"""Find the rule pages and read their metadata and text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import cache
from pathlib import Path

from shapefix.diagnostics import Applicability, Severity
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.plugins import RULES, Plugin, PluginProblem, note_problem, plugins

_IN_WHEEL = Path(__file__).parent / "pages"
_FOREIGN_CODE = re.compile(r"[A-Z]{2,10}[0-9]{2,5}")
_IN_CHECKOUT = Path(__file__).parents[2] / "rules"


class RulebookError(Exception):
    """The rule pages cannot be used."""


class MissingPages(RulebookError):
    """The rule pages are missing from their place of installation."""


class UnmatchedRule(RulebookError):
    """A rule without a page, or a page without a rule."""


class InvalidPage(RulebookError):
    """The front matter of a page lacks a key, or has a wrong value."""


class Raises(StrEnum):
    """Place of the exception raised by the reported code at run time."""

    HERE = "here"
    """At the finding or at a step of its evidence: a run that passes all of them does not have the fault."""
    LATER = "later"
    HIDDEN = "hidden"
    """The finding is the handler that hides an exception."""
    NEVER = "never"


@dataclass(frozen=True)
class Page:
    """One rule page: the metadata of the rule, and the path of its documentation.

    fix is the applicability of the usual fix, None without one. errors are parts of the messages of the
    exceptions that reported code raises. by_default is false for a rule that must be selected explicitly.
    plugin is the one with the rule, None for our own.
    """

    code: str
    name: str
    severity: Severity
    summary: str
    fix: Applicability | None
    raises: Raises
    errors: tuple[str, ...]
    by_default: bool
    since: str
    aliases: tuple[str, ...]
    path: Path
    plugin: Plugin | None = None

    @property
    def is_about_comments(self) -> bool:
        """Whether the rule is about suppression comments. The engine reports it; it has no check."""
        return self.code.startswith("SF0")

    def text(self, examples: bool = True) -> str:
        """The page as Markdown for readers, with or without its section "More examples"."""
        _, _, body = self.path.read_text("utf-8").split("---\n", 2)
        return documentation(body.lstrip("\n"), examples)


@cache
def pages() -> tuple[Page, ...]:
    """Every page, in the order of the codes, those of plugins last. Raises MissingPages and InvalidPage."""
    folder = rules_folder()
    found = [_page(path) for path in sorted(folder.glob("SF*.md"))]
    if not found:
        raise MissingPages(f"the rule pages are missing from {folder}; install shapefix again")
    for plugin in plugins(RULES):
        found += _pages_of(plugin, found)
    return tuple(found)


def _pages_of(plugin: Plugin, known: Sequence[Page]) -> list[Page]:
    """Return the pages of a plugin; none if one of them cannot be used."""
    folder = plugin.folder
    found: list[Page] = []
    path = folder or Path(plugin.module)
    try:
        for path in () if folder is None else sorted((folder / "pages").glob("*.md")):
            page = replace(_page(path), plugin=plugin)
            if not _FOREIGN_CODE.fullmatch(page.code) or page.code.startswith("SF"):
                raise InvalidPage(f"`{page.code}` is not a code like ACME101 with letters of its own")
            if any(page.code == other.code or page.name == other.name for other in (*known, *found)):
                raise InvalidPage(f"there is another rule {page.code} or `{page.name}`")
            found.append(page)
        if not found:
            raise InvalidPage("it has no pages in its folder `pages`")
    except (InvalidPage, OSError, UnicodeDecodeError, StopIteration) as error:
        problem = str(error).removeprefix(f"{path}: ") or "the page is empty"
        note_problem(
            plugin, PluginProblem(str(path), None, f"plugin {plugin.distribution} is not used: {problem}")
        )
        return []
    return found


def rules_folder() -> Path:
    """Return the folder of the rule pages, in the wheel or in the checkout."""
    return _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CHECKOUT


@cache
def pages_by_code() -> Mapping[str, Page]:
    """Every page by the code of its rule. Raises MissingPages."""
    return {page.code: page for page in pages()}


def page_of(rule: str) -> Page | None:
    """The page of the rule with this code, name or former name, in any capitalization."""
    wanted = rule.strip().lower()
    return next((page for page in pages() if wanted in (page.code.lower(), page.name, *page.aliases)), None)


def pages_under(prefix: str) -> tuple[Page, ...]:
    """The pages of the rules with a code prefix, like `SF5`, in any capitalization."""
    wanted = prefix.strip().upper()
    letters = re.match(r"[A-Z]*", wanted)
    return tuple(
        page
        for page in pages()
        if letters is not None
        and re.fullmatch(r"[A-Z]+\d*", wanted)
        and re.match(rf"{letters[0]}\d", page.code)
        and page.code.startswith(wanted)
    )


@cache
def aliases() -> dict[str, str]:
    """Former names of rules, with their codes."""
    return {alias: page.code for page in pages() for alias in page.aliases}


def names_and_severities() -> dict[str, tuple[str, Severity]]:
    """The name and severity of every rule, by code. Raises MissingPages."""
    return {page.code: (page.name, page.severity) for page in pages()}


def _page(path: Path) -> Page:
    with path.open(encoding="utf-8") as file:
        next(file)
        head: dict[str, str] = {}
        errors = []
        for line in file:
            if line.strip() == "---":
                break
            if line.startswith("  - "):
                errors.append(line.removeprefix("  - ").strip())
                continue
            key, _, value = line.partition(":")
            head[key.strip()] = value.strip()
    try:
        return _with_metadata(path, head, tuple(errors))
    except KeyError as error:
        raise InvalidPage(f"{path}: the front matter lacks `{error.args[0]}`") from None
    except ValueError as error:
        raise InvalidPage(f"{path}: the front matter has a wrong value: {error}") from None


def _with_metadata(path: Path, head: Mapping[str, str], errors: tuple[str, ...]) -> Page:
    former = head.get("aliases", "")
    return Page(
        head["code"],
        head["name"],
        Severity(head["severity"]),
        head["summary"],
        None if head["fix"] == "none" else Applicability(head["fix"]),
        Raises(head["raises"]),
        errors,
        head["default"] == "on",
        head["since"],
        tuple(name.strip() for name in former.split(",") if name.strip()),
        path,
    )


_BLOCK = re.compile(r"^```python(?P<kind>[^\n]*)\n(?P<code>.*?)^```\n?", re.MULTILINE | re.DOTALL)
_EXPECTED = re.compile(r"[ \t]+# (?:error|warning|info): \[[A-Z]+\d+\] .*$")
_REVEAL = re.compile(r"^[ \t]*reveal\([^\n]*\)[ \t]*\n", re.MULTILINE)
"""A line of `reveal(...)` without its answer: repairs keep it, and tests compare both answers."""
_FINDING = re.compile(r'# (error|warning|info): \[[A-Z]+\d+\] "([^"]+)"')


def documentation(body: str, examples: bool) -> str:
    """A page for readers: without blocks for tests only, and with findings as ordinary comments.

    examples includes the section "More examples".
    """
    head, more, rest = body.partition("\n## More examples\n")
    return _BLOCK.sub(_readable, head + more + rest if examples else head)


def _readable(block: re.Match[str]) -> str:
    kind = block["kind"].strip()
    if kind == "run":
        return ""
    before = block.string[: block.start()].rstrip()
    intro = ""
    if kind == "preamble":
        intro = "The examples below use these imports:\n\n"
    elif kind.startswith("fixed") and before.endswith("```"):
        intro = "\nAfter the fix:\n\n"
    code = _REVEAL.sub("", block["code"]) if kind.startswith("fixed") else block["code"]
    rows = [row for line in code.splitlines() for row in _row(line)]
    return "\n".join([f"{intro}```python", *rows, "```", ""])


def _row(line: str) -> list[str]:
    """A line of code, with its findings as comments below it."""
    found = _FINDING.findall(line)
    indent = line[: len(line) - len(line.lstrip())]
    return [_EXPECTED.sub("", line), *(f"{indent}# ^ {severity}: {message}" for severity, message in found)]
