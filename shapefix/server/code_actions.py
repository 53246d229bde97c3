"""Code actions: the fixes of findings, all safe repairs of a file, and comments to suppress findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import SequenceMatcher

from lsprotocol import types

from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.server.open_files import OpenFile
from shapefix.server.open_texts import PositionedText
from shapefix.sources.suppressions import suppression_for
from shapefix.sources.text import SourceText, rows_of

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.shapefix"
KINDS = (types.CodeActionKind.QuickFix, FIX_ALL)


def is_wanted(kind: str, only: Iterable[str] | None) -> bool:
    """Check whether a kind of actions is among the requested ones, or below one of them."""
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in only)


def quick_fixes(
    finding: Diagnostic, shown: types.Diagnostic, path: str, file: OpenFile, versioned: bool
) -> Iterator[types.CodeAction]:
    """Yield an action for each fix of a finding in an open text, and one for a comment to suppress it.

    shown is its diagnostic, and path is the path of the text in findings.
    """
    for place, fix in enumerate(finding.fixes):
        edits = None if fix.applicability is Applicability.DISPLAY else _edits(fix, file)
        if edits is None:
            continue
        is_safe = fix.applicability is Applicability.SAFE
        yield types.CodeAction(
            title=_sentence(fix.message) + ("" if is_safe else " (unsafe)"),
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[shown],
            is_preferred=is_safe and place == 0,
            edit=workspace_edit(edits, file, versioned),
        )
    text = file.parts[path].text
    suppression = suppression_for(SourceText(path, text.text), finding)
    if suppression is not None:
        edit = types.TextEdit(text.range(suppression.span), suppression.content)
        yield types.CodeAction(
            title=f"Suppress {finding.code} in this line with a comment",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[shown],
            edit=workspace_edit({path: [edit]}, file, versioned),
        )


def has_safe_fix(findings: Iterable[Diagnostic]) -> bool:
    """Check whether the first fix of a finding is safe."""
    return any(each.fix is not None and each.fix.applicability is Applicability.SAFE for each in findings)


def fix_all(new_texts: Mapping[str, str], file: OpenFile, versioned: bool) -> types.WorkspaceEdit:
    """Return the edit from the open texts of a file to their repaired ones."""
    edits = {
        path: list(text_edits(part.text, new_texts[path]))
        for path, part in file.parts.items()
        if path in new_texts
    }
    return workspace_edit(edits, file, versioned)


def text_edits(old: PositionedText, new: str) -> Iterator[types.TextEdit]:
    """Yield edits of whole rows from a text to another one."""
    before, after = rows_of(old.text), rows_of(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, first, last, start, end in matcher.get_opcodes():
        if kind != "equal":
            rows = types.Range(old.position(first + 1, 1), old.position(last + 1, 1))
            if first == len(before) and before and not before[-1].endswith(("\n", "\r")):
                rows = types.Range(old.row_end(first), old.row_end(first))
            yield types.TextEdit(rows, "".join(after[start:end]))


def workspace_edit(
    edits: Mapping[str, list[types.TextEdit]], file: OpenFile, versioned: bool
) -> types.WorkspaceEdit:
    """Return edits by path as an edit of the workspace; a versioned one is rejected for a newer text."""
    if not versioned:
        return types.WorkspaceEdit({file.parts[path].uri: each for path, each in edits.items()})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(file.parts[path].uri, file.parts[path].version),
                each,
            )
            for path, each in edits.items()
        ]
    )


def _edits(fix: Fix, file: OpenFile) -> dict[str, list[types.TextEdit]] | None:
    """Return the edits of a fix by path; None if one of them is in another file."""
    found: dict[str, list[types.TextEdit]] = {}
    for edit in fix.edits:
        part = file.parts.get(edit.span.path)
        if part is None:
            return None
        found.setdefault(edit.span.path, []).append(types.TextEdit(part.text.range(edit.span), edit.content))
    return found


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def at_range(shown: types.Diagnostic, wanted: types.Range) -> bool:
    """Check whether a diagnostic and a range have a position in common."""
    start, end = shown.range.start, shown.range.end
    return (start.line, start.character) <= (wanted.end.line, wanted.end.character) and (
        wanted.start.line,
        wanted.start.character,
    ) <= (end.line, end.character)
