"""Pages of the site made from the rule book, the README and the changelog."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from shapefix.api import check_source
from shapefix.cli.manual import topics
from shapefix.diagnosis.explanations import template_pattern
from shapefix.light_dataclasses import dataclass
from shapefix.report.formats import FINDING_FORMATS
from shapefix.report.view import View
from shapefix.rulebook.error_pages import ErrorPage, error_pages
from shapefix.rulebook.pages import Page, pages, pages_by_code

ROOT = Path(__file__).resolve().parents[2]
FAMILIES = {
    "0": "Comments",
    "1": "Layout",
    "2": "Labels",
    "3": "Collation",
    "4": "Batches",
    "5": "Dimensions and dtypes",
    "6": "Devices and parameters",
    "7": "Memory",
    "8": "Training loops",
    "9": "Autograd",
}
"""Families of rules by the first digit of their codes."""
_FIELD = re.compile(r"\{(\w+)(?::int|:value)?\}")
_VALUE = re.compile(r"\{(\w+):value\}")
_WIDTH = 90


@dataclass(frozen=True)
class SitePage:
    """A page of the site: its place, its title, and its text in Markdown."""

    uri: str
    title: str
    text: str


def made_pages() -> list[SitePage]:
    """Return all pages besides those of the manual."""
    rules = [page for page in pages() if page.plugin is None]
    errors = error_pages()
    return [
        SitePage("index.md", "shapefix", (ROOT / "README.md").read_text("utf-8")),
        SitePage("CONTRIBUTING.md", "Contributing", (ROOT / "CONTRIBUTING.md").read_text("utf-8")),
        SitePage("CHANGELOG.md", "Changelog", (ROOT / "CHANGELOG.md").read_text("utf-8")),
        SitePage("rules/index.md", "Rules", _index_of_rules(rules)),
        *(SitePage(_uri(page), f"{page.code} {page.name}", _rule_text(page, errors)) for page in rules),
        SitePage("errors/index.md", "Error messages", _index_of_errors(errors)),
        *(SitePage(f"errors/{page.name}.md", _title(page), _error_text(page, rules)) for page in errors),
    ]


def navigation(made: Sequence[SitePage]) -> list[Any]:
    """Return the navigation: the manual by topics, the rules by families, and the index of messages."""
    rules = [page for page in made if page.uri.startswith("rules/SF")]
    families = [
        {title: [{page.title: page.uri} for page in rules if page.uri.startswith(f"rules/SF{digit}")]}
        for digit, title in FAMILIES.items()
    ]
    return [
        {"Start": "index.md"},
        {"Manual": [{topic.summary().replace("`", ""): f"{topic.name}.md"} for topic in topics()]},
        {"Rules": ["rules/index.md", *families]},
        {"Error messages": "errors/index.md"},
        {"Project": [{"Contributing": "CONTRIBUTING.md"}, {"Changelog": "CHANGELOG.md"}]},
    ]


def adapted(text: str, uri: str) -> str:
    """Adapt a page to mkdocs: lists for its Markdown, and links to rules and topics."""
    return _linked(_with_wide_lists(text), uri)


def _with_wide_lists(text: str) -> str:
    """Indent the rows of list items by four spaces: Python's Markdown ends a list at fewer."""
    rows: list[str] = []
    width, fenced = 0, False
    for row in text.split("\n"):
        item = re.match(r"- |\d+\. ", row)
        if row.startswith("```"):
            fenced = not fenced
        if fenced or (row and not row.startswith(" " * (width or 1)) and item is None):
            width = 0
        elif item is not None:
            if width and rows[-1].startswith("    "):
                # Otherwise the item would go on a paragraph of the one before.
                rows.append("")
            width = item.end()
        elif width and row:
            row = " " * (4 - width) + row
        rows.append(row)
    return "\n".join(rows)


def _linked(text: str, uri: str) -> str:
    """Link the rules and the topics of the manual in a page; code and headings stay."""
    up = "../" * uri.count("/")
    rules, names = pages_by_code(), {topic.name for topic in topics()}

    def rule(found: re.Match[str]) -> str:
        page = rules.get(found[0])
        return found[0] if page is None else f"[{found[0]}]({up}{_uri(page)})"

    def topic(found: re.Match[str]) -> str:
        return f"[{found[0]}]({up}{found[1]}.md)" if found[1] in names else found[0]

    rows, fenced = [], False
    for row in text.split("\n"):
        if row.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and not row.startswith(("#", "    ", "|")):
            row = re.sub(r"(?<!\[)`shapefix help ([\w-]+)`", topic, row)
            row = re.sub(r"(?<![\w`\[/(-])SF\d{3}\b(?![\w`\]-])", rule, row)
        rows.append(row)
    return "\n".join(rows)


def _uri(page: Page) -> str:
    return f"rules/{page.path.name}"


def _readable(template: str) -> str:
    """Return a text with its fields as words: `index <index> is out of bounds`."""
    return _FIELD.sub(r"<\1>", template)


def _in_prose(text: str) -> str:
    """Return a text with its fields in italics."""
    return _FIELD.sub(r"*\1*", _VALUE.sub(r"A value of type {\1}", text))


def _title(page: ErrorPage) -> str:
    return re.sub(r"([\\`*_{}\[\]<>#])", r"\\\1", _FIELD.sub("…", page.errors[0]))


def _index_of_rules(rules: Sequence[Page]) -> str:
    lines = ["# Rules", ""]
    for digit, title in FAMILIES.items():
        lines += [f"## {title}", "", "| code | name | what it finds | fix |", "|---|---|---|---|"]
        for page in rules:
            if page.code[2] == digit:
                off = "" if page.by_default else " (off by default)"
                name = f"[{page.code}]({page.path.name}) | {page.name}"
                lines.append(f"| {name} | {page.summary}{off} | {page.fix or ''} |")
        lines.append("")
    return "\n".join(lines)


def _index_of_errors(errors: Sequence[ErrorPage]) -> str:
    lines = ["# Error messages", "", "What runtime errors of PyTorch and Hugging Face libraries mean.", ""]
    lines += sorted(f"- [{_title(page)}]({page.name}.md)" for page in errors)
    return "\n".join(lines) + "\n"


def _explains(rule: Page, page: ErrorPage) -> bool:
    """Check whether a rule is about code with the exception of an error page."""
    return any(
        part in _FIELD.sub("", template) or template_pattern(template).search(part)
        for part in rule.errors
        for template in (*page.errors, *page.older)
    )


def _rule_text(page: Page, errors: Sequence[ErrorPage]) -> str:
    facts = [f"Severity: {page.severity}", f"fix: {page.fix or 'none'}", f"since {page.since}"]
    if not page.by_default:
        facts.append("off by default")
    heading, _, rest = page.text().partition("\n")
    text = f"{heading}\n\n*{' · '.join(facts)}*\n{rest}"
    messages = [each for each in errors if _explains(page, each)]
    if messages:
        listed = "\n".join(f"- [{_title(each)}](../errors/{each.name}.md)" for each in messages)
        text = f"{text.rstrip()}\n\n## Error messages\n\n{listed}\n"
    return text


def _error_text(page: ErrorPage, rules: Sequence[Page]) -> str:
    messages = "\n".join(_readable(each) for each in (*page.errors, *page.older))
    description = re.sub(r'["\\\\`]', "", _FIELD.sub("…", page.what))
    parts = [
        f'---\ndescription: "{description}"\n---',
        f"# {_title(page)}",
        f"```text\n{messages}\n```",
        _in_prose(page.what),
        "## Usual causes",
    ]
    parts += ["\n".join(f"- {_in_prose(cause)}" for cause in page.causes)]
    parts += ["## What to look at", _in_prose(page.look), "## Example"]
    shown = False
    for code in re.findall(r"^```python\n(.*?)^```$", page.path.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        parts.append(f"```python\n{code}```")
        found = _found(code)
        if found:
            shown = True
            parts += ["`shapefix check` reports it before the run:", f"```text\n{found}```"]
    if not shown:
        parts.append(
            "`shapefix run -- python train.py` and `shapefix diagnose train.log` explain this error, and look"
            " for its cause in your files."
        )
    related = [rule for rule in rules if _explains(rule, page)]
    if related:
        listed = "\n".join(f"- [{each.code} {each.name}](../{_uri(each)})" for each in related)
        parts += ["## Rules", listed]
    return "\n\n".join(parts) + "\n"


def _found(code: str) -> str:
    """Return the report of `shapefix check` for a text, "" without findings."""
    with tempfile.TemporaryDirectory() as folder:
        found = check_source(code, os.path.join(folder, "train.py"), isolated=True)  # noqa: PTH118
        if not found:
            return ""
        view = View(folder, _WIDTH, False, False, found.session.source, quiet=True)
        return "".join(_rows(FINDING_FORMATS["full"].render(found, (), view)))


def _rows(pieces: Any) -> Iterator[str]:
    text = "".join(pieces)
    yield re.sub(r"\n+\Z", "\n", text)
