"""An explained error with the files of its project, and the searches by the name of its page."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.project_frames import ProjectFrame, searched_sources
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnosis.value_search import ValueSearch
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.diagnostics import Evidence, Role, Span
from shapefix.engine.parse_limits import LARGEST
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable


@dataclass(frozen=True)
class ParsedFile:
    """A parsed file of the project."""

    whole: WholeText
    tree: ast.Module

    def place(self, node: ast.expr | ast.stmt, text: str) -> Evidence:
        path, row = self.whole.place(node.lineno)
        last = row + (node.end_lineno or node.lineno) - node.lineno
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.With, ast.For)) or last > row + 2:
            return Evidence(Span(path, row, node.col_offset + 1, row, 10_000), text, Role.CAUSE, text)
        end = (node.end_col_offset or node.col_offset) + 1
        return Evidence(Span(path, row, node.col_offset + 1, last, end), text, Role.CAUSE, text)

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Return the exact place of a node; its columns count characters."""
        rows = self.whole.text.split("\n")
        path, row = self.whole.place(node.lineno)
        last = node.end_lineno or node.lineno
        start = len(rows[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace"))
        end = len(rows[last - 1].encode()[: node.end_col_offset or 0].decode(errors="replace"))
        return Span(path, row, start + 1, row + last - node.lineno, end + 1)


@dataclass(frozen=True)
class ExplainedFailure:
    """An explained error with its frames, and the folder of the project.

    raised_in is the path of the innermost frame, perhaps of a library.
    """

    explanation: MessageExplanation
    frames: Sequence[ProjectFrame]
    folder: str
    raised_in: str = ""

    @property
    def fields(self) -> dict[str, str]:
        return dict(self.explanation.fields)

    def line(self) -> Iterator[tuple[ParsedFile, ast.expr]]:
        """Yield the expressions of the failing statement."""
        parsed = parsed_file(self.frames[-1].span.path)
        if parsed is not None:
            search = ValueSearch(self.frames)
            yield from ((parsed, node) for node in search.expressions(len(self.frames) - 1))

    def lines(self) -> Iterator[tuple[ParsedFile, ast.expr]]:
        """Yield the expressions of all statements of the stack, the innermost first."""
        search = ValueSearch(self.frames)
        for number in reversed(range(len(self.frames))):
            parsed = None if self.frames[number].is_missing else parsed_file(self.frames[number].span.path)
            if parsed is not None:
                yield from ((parsed, node) for node in search.expressions(number))

    def files(self, name: str = "") -> Iterator[ParsedFile]:
        """Yield the files of the stack, then all others of the project, if they have a name."""
        yield from project_files(self.frames, self.folder, name)

    def calls(self, name: str) -> Iterator[tuple[ParsedFile, ast.Call]]:
        """Yield the calls of functions with a name in the files of the project."""
        for parsed in self.files(name):
            for node in ast.walk(parsed.tree):
                if isinstance(node, ast.Call) and last_name(node.func) == name:
                    yield parsed, node


def project_files(frames: Sequence[ProjectFrame], folder: str, name: str = "") -> Iterator[ParsedFile]:
    """Yield the files of a stack, then all others of the project, if they have a name."""
    own = (frame.span.path for frame in reversed(frames) if not frame.is_missing)
    for path in dict.fromkeys((*own, *searched_sources(folder))):
        parsed = parsed_file(path, name)
        if parsed is not None:
            yield parsed


def classes_named(
    frames: Sequence[ProjectFrame], folder: str, name: str
) -> Iterator[tuple[ParsedFile, ast.ClassDef]]:
    """Yield the classes of the project with a name."""
    for parsed in project_files(frames, folder, f"class {name}"):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.ClassDef) and node.name == name:
                yield parsed, node


def parsed_file(path: str, name: str = "") -> ParsedFile | None:
    """Parse a file of the project with a name in it; None without one, or for a broken file."""
    try:
        whole = whole_text(path)
        if name not in whole.text or len(whole.text) > LARGEST:
            return None
        return ParsedFile(whole, ast.parse(whole.text))
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


Search = Callable[[ExplainedFailure], Iterator[Evidence]]
SEARCHES: dict[str, Search] = {}
"""The search for each error page."""


def search_for(*pages: str) -> Callable[[Search], Search]:
    """Register a search for the places of the names in the messages of error pages."""

    def register(search: Search) -> Search:
        SEARCHES.update(dict.fromkeys(pages, search))
        return search

    return register
