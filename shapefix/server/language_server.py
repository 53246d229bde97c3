"""The language server: takes the texts of an editor, and publishes the findings in them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

import shapefix
from shapefix.diagnostics import Diagnostic, Failure, Span, cell_of
from shapefix.displayed_values import CallsOfForward, HeldName
from shapefix.engine.settings import CheckOptions
from shapefix.rulebook.pages import page_of
from shapefix.server.analysis_process import AnalysisProcess
from shapefix.server.awaited_answers import AwaitedAnswers, within_patience
from shapefix.server.code_actions import (
    FIX_ALL,
    at_range,
    fix_all,
    has_safe_fix,
    is_wanted,
    quick_fixes,
)
from shapefix.server.code_lenses import code_lenses
from shapefix.server.hovers import (
    PointedName,
    PointedRule,
    held_name,
    last_of_top_level,
    pointed,
    value_text,
)
from shapefix.server.inlay_hints import inlay_hints
from shapefix.server.lsp_diagnostics import failure_diagnostic, lsp_diagnostic
from shapefix.server.messages import (
    AnalysisLost,
    Answer,
    CheckedTexts,
    GuardOrder,
    RepairedFile,
    RepairOrder,
    TextUpdate,
    ValuesFound,
)
from shapefix.server.open_files import (
    OpenCell,
    OpenFile,
    OpenPart,
    notebook_file,
)
from shapefix.server.open_texts import Encoding, MovedRows, PositionedText, moved_rows
from shapefix.server.script_actions import (
    GUARD_KIND,
    PROBE_KIND,
    explain_action,
    guard_action,
    probe_action,
)
from shapefix.server.shown_documents import ShownDocuments
from shapefix.server.work_progress import WorkProgress
from shapefix.sources.text import Unreadable, read_source

DEBOUNCE = 0.15
"""Seconds without a keystroke before a changed text is checked."""
_LONGEST_DEBOUNCE = 0.6
_REFRESH = 0.3
"""Seconds for a client to request diagnostics by itself."""


# All cells are wanted: a finding counts the others, too.
_NOTEBOOKS = types.NotebookDocumentSyncOptions(
    [types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterNotebookType("jupyter-notebook"))]
)


@dataclass(frozen=True)
class ServerOptions:
    """Options of a client, from its initializationOptions: hints are sizes beside the code."""

    preview: bool | None = None
    hints: bool = True
    hint_dtypes: bool = True


def server_options(*given: object) -> ServerOptions:
    """Read the options of a client, the later ones first; those of an unexpected type are left out."""
    values: dict[str, object] = {}
    for each in given:
        values.update(each if isinstance(each, dict) else {})
    preview = values.get("preview")
    return ServerOptions(
        preview if isinstance(preview, bool) else None,
        values.get("inlayHints") is not False,
        values.get("inlayHintDtypes") is not False,
    )


@dataclass(frozen=True)
class _Report:
    """The diagnostics of an open text; another number says that they are others."""

    number: str
    shown: tuple[types.Diagnostic, ...]


class ShapefixServer(LanguageServer):
    """The state of one client: its open files, and the newest findings in them."""

    def __init__(self) -> None:
        super().__init__("shapefix", shapefix.__version__, notebook_document_sync=_NOTEBOOKS)
        self._cells: dict[str, tuple[OpenCell, ...]] = {}
        """The cells of each open notebook, by its path."""
        self.options = ServerOptions()
        self._process: AnalysisProcess | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._files: dict[str, OpenFile] = {}
        self._of_uri: dict[str, str] = {}
        """The file of each open text."""
        self._numbers = 0
        self._checked = AwaitedAnswers()
        self._findings: dict[str, tuple[Diagnostic, ...]] = {}
        self._reports: dict[str, _Report] = {}
        """The newest diagnostics of each open text."""
        self._pulled: dict[str, str] = {}
        """The number of the report that the client has of each open text."""
        self._refresh: asyncio.TimerHandle | None = None
        self._progress = WorkProgress(self, "shapefix: checking")
        self._valued = AwaitedAnswers()
        self._values: dict[str, tuple[str, tuple[HeldName, ...]]] = {}
        """The last known values in each open text, and the text that they are of."""
        self._calls: dict[str, tuple[CallsOfForward, ...]] = {}
        self._elsewhere: dict[str, set[str]] = {}
        """The files with findings that are not open, by the root of their project."""
        self._pending = TextUpdate()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._repairs: dict[int, asyncio.Future[RepairedFile]] = {}
        self.documents = ShownDocuments(self)
        self.watches_files = False

    # The process

    def begin(self, options: ServerOptions) -> None:
        """Start the analysis, so that it is warm when the first file is opened."""
        self.options = options
        self._loop = asyncio.get_running_loop()
        self._process = AnalysisProcess(CheckOptions(preview=options.preview), self._take_soon)
        self._process.send(TextUpdate())

    def configure(self, options: ServerOptions) -> None:
        """Take over changed options."""
        before, self.options = self.options, options
        if options.preview != before.preview:
            self.update(TextUpdate(options=CheckOptions(preview=options.preview)), at_once=True)
        if options != before:
            self._refresh_hints()

    def end(self) -> None:
        """End the analysis."""
        if self._process is not None:
            self._process.close()
            self._process = None
        self.documents.end()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error; a message box would interrupt the user."""
        self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"shapefix: {error}"))

    def _take_soon(self, answer: Answer) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, answer)

    def _take(self, answer: Answer) -> None:
        match answer:
            case CheckedTexts():
                self._publish(answer)
            case ValuesFound():
                self._take_values(answer)
            case RepairedFile():
                future = self._repairs.pop(answer.number, None)
                if future is not None and not future.done():
                    future.set_result(answer)
            case AnalysisLost():
                blamed = f" at {', '.join(answer.paths)}" if answer.paths else ""
                text = f"the analysis ended unexpectedly{blamed} and starts again"
                self.window_log_message(types.LogMessageParams(types.MessageType.Error, f"shapefix: {text}"))
                for future in self._repairs.values():
                    if not future.done():
                        future.cancel()
                self._repairs.clear()
                self._progress.end()

    # Texts

    def next_number(self) -> int:
        """Return a number for a changed file."""
        self._numbers += 1
        return self._numbers

    @property
    def encoding(self) -> Encoding:
        """The encoding of positions of this client."""
        return self.workspace.position_encoding or types.PositionEncodingKind.Utf16

    def encoded(self, text: str) -> PositionedText:
        """Return a text with the positions of this client."""
        return PositionedText(text, self.encoding)

    def cells(self, path: str) -> tuple[OpenCell, ...] | None:
        """Return the cells of an open notebook."""
        return self._cells.get(path)

    def set_notebook(self, path: str, cells: tuple[OpenCell, ...], at_once: bool) -> None:
        """Open or change a notebook."""
        self._cells[path] = cells
        self.set_file(notebook_file(path, self.next_number(), cells), at_once)

    def set_file(self, file: OpenFile, at_once: bool) -> None:
        """Open or change a file; check it soon, or at once."""
        before = self._files.get(file.path)
        for part in before.parts.values() if before is not None else ():
            self._of_uri.pop(part.uri, None)
        self._files[file.path] = file
        for part in file.parts.values():
            self._of_uri[part.uri] = file.path
        if before is not None:
            self._clear({part.uri for part in before.parts.values()} - self._of_uri.keys())
        self.update(TextUpdate({file.path: (file.number, file.data)}), at_once)

    def close_file(self, path: str) -> None:
        """Close a file; its findings disappear."""
        self._cells.pop(path, None)
        file = self._files.pop(path, None)
        if file is None:
            return
        for part in file.parts.values():
            self._of_uri.pop(part.uri, None)
        self._checked.forget(path)
        self._valued.forget(path)
        self._values = {at: known for at, known in self._values.items() if _file_of(at) != path}
        self._calls = {at: known for at, known in self._calls.items() if _file_of(at) != path}
        self._findings = {at: found for at, found in self._findings.items() if _file_of(at) != path}
        self._reports = {at: report for at, report in self._reports.items() if _file_of(at) != path}
        self._pulled = {at: number for at, number in self._pulled.items() if _file_of(at) != path}
        self._clear({part.uri for part in file.parts.values()})
        self.update(TextUpdate(closed=(path,)), at_once=True)

    def file(self, path: str) -> OpenFile | None:
        """Return an open file by its path."""
        return self._files.get(path)

    def part(self, uri: str) -> tuple[str, OpenPart] | None:
        """Return an open text and its path in findings; None for an unknown one."""
        file = self._files.get(self._of_uri.get(uri, ""))
        return next((each for each in file.parts.items() if each[1].uri == uri), None) if file else None

    def part_file(self, uri: str) -> str | None:
        """Return the path of the file of an open text."""
        return self._of_uri.get(uri)

    def findings_in(self, path: str) -> tuple[Diagnostic, ...]:
        """Return the findings in an open text, by its path in findings."""
        return self._findings.get(path, ())

    def update(self, update: TextUpdate, at_once: bool) -> None:
        """Pass changes on to the analysis at once, or after the last of several keystrokes."""
        assert self._loop is not None
        now = self._loop.time()
        if self._timer is None:
            self._deadline = now + _LONGEST_DEBOUNCE
        else:
            self._timer.cancel()
        self._pending = self._pending.then(update)
        delay = 0.0 if at_once else min(DEBOUNCE, max(self._deadline - now, 0.0))
        self._timer = self._loop.call_later(delay, self.flush)

    def flush(self) -> None:
        """Pass the collected changes on to the analysis."""
        if self._timer is None:
            return
        self._timer.cancel()
        self._timer = None
        update, self._pending = self._pending, TextUpdate()
        if self._process is not None:
            self._process.send(update)
        if self._files:
            self._progress.start()

    # Findings

    @property
    def _is_pulled(self) -> bool:
        """Whether the client requests diagnostics, also after a refresh.

        A change in one file changes the findings in another one: without that, all findings are sent.
        """
        document, workspace = self.client_capabilities.text_document, self.client_capabilities.workspace
        refreshed = workspace.diagnostics if workspace is not None else None
        return (
            document is not None
            and document.diagnostic is not None
            and refreshed is not None
            and bool(refreshed.refresh_support)
        )

    async def report(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """Return the diagnostics of an open text; cells of notebooks get theirs without a request."""
        known = self.part(params.text_document.uri)
        if known is None or not self._is_pulled or cell_of(known[0]) is not None:
            return types.RelatedFullDocumentDiagnosticReport([])
        path, _ = known
        if not await self.is_checked(path):
            again = types.DiagnosticServerCancellationData(retrigger_request=True)
            code = types.LSPErrorCodes.ServerCancelled
            raise JsonRpcException("the text has changed", code, again)
        report = self._reports[path]
        self._pulled[path] = report.number
        if params.previous_result_id == report.number:
            return types.RelatedUnchangedDocumentDiagnosticReport(report.number)
        return types.RelatedFullDocumentDiagnosticReport(list(report.shown), result_id=report.number)

    def _send_report(self, at: str, part: OpenPart, shown: list[types.Diagnostic]) -> None:
        """Send the diagnostics of an open text, or keep them for a request."""
        before = self._reports.get(at)
        if before is None or before.shown != tuple(shown):
            self._reports[at] = _Report(str(self.next_number()), tuple(shown))
        if not self._is_pulled or cell_of(at) is not None:
            params = types.PublishDiagnosticsParams(part.uri, shown, part.version)
            self.text_document_publish_diagnostics(params)
        elif self._refresh is None and self._loop is not None:
            # A changed text is requested by itself: only those that it changes are left after a while.
            self._refresh = self._loop.call_later(_REFRESH, self._refresh_reports)

    def _refresh_reports(self) -> None:
        """Ask the client to request diagnostics again, if it has old ones."""
        self._refresh = None
        pulled = {at: self._reports[at].number for at in self._pulled if at in self._reports}
        if pulled != self._pulled:
            self.workspace_diagnostic_refresh(None)

    async def is_checked(self, path: str) -> bool:
        """Wait until the present text of a file is checked; False if this takes too long."""
        return await self._has_arrived(self._checked, path)

    async def has_values(self, path: str) -> bool:
        """Wait until the values of the present text of a file are known; False if this takes too long."""
        return await self._has_arrived(self._valued, path)

    async def _has_arrived(self, answers: AwaitedAnswers, path: str) -> bool:
        file = self._files.get(path)
        if file is None or answers.has(file):
            return file is not None
        self.flush()
        return await answers.wait(file)

    async def _rewritten(self, path: str, guard: str | None) -> RepairedFile | None:
        """Return the texts of a file with all of its safe repairs, or with a guarded function.

        None if there is no answer, or the file has changed.
        """
        file = self._files.get(path)
        if file is None or self._process is None or self._loop is None:
            return None
        self.flush()
        number = self.next_number()
        future: asyncio.Future[RepairedFile] = self._loop.create_future()
        self._repairs[number] = future
        order = RepairOrder(number, path) if guard is None else GuardOrder(number, path, guard)
        self._process.send(order)
        try:
            answer = await within_patience(future)
        finally:
            self._repairs.pop(number, None)
        return answer if self._files.get(path) is file else None

    @property
    def _versioned_edits(self) -> bool:
        """Whether the client accepts edits of a version of a text."""
        workspace = self.client_capabilities.workspace
        edits = workspace.workspace_edit if workspace is not None else None
        return edits is not None and bool(edits.document_changes)

    @property
    def _resolves_edits(self) -> bool:
        """Whether the client asks for the edit of an action when it is chosen."""
        document = self.client_capabilities.text_document
        actions = document.code_action if document is not None else None
        resolved = actions.resolve_support if actions is not None else None
        return resolved is not None and "edit" in resolved.properties

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        """Return the actions for a range of an open text."""
        known = self.part(params.text_document.uri)
        if known is None or not await self.is_checked(_file_of(known[0])):
            return []
        path, part = known
        file = self._files.get(_file_of(path))
        if file is None or file.parts.get(path) != part:
            return []
        only = params.context.only
        found: list[types.CodeAction] = []
        if is_wanted(types.CodeActionKind.QuickFix, only):
            for finding in self.findings_in(path):
                shown = lsp_diagnostic(finding, part.text, lambda span: None)
                if at_range(shown, params.range):
                    found += quick_fixes(finding, shown, path, file, self._versioned_edits)
                    explained = explain_action(shown) if self.documents.is_supported else None
                    found += () if explained is None else (explained,)
        if is_wanted(FIX_ALL, only) and has_safe_fix(
            each for at in file.parts for each in self.findings_in(at)
        ):
            data = {"path": file.path}
            action = types.CodeAction("Repair all findings with a safe fix", FIX_ALL, data=data)
            found.append(action if self._resolves_edits else await self.with_edit(action))
        if is_wanted(PROBE_KIND, only) and self.documents.is_supported:
            probed = probe_action(file)
            found += () if probed is None else (probed,)
        # Its edit takes long: it waits until the action is chosen.
        if is_wanted(GUARD_KIND, only) and self._resolves_edits and path == file.path:
            guarded = guard_action(file, range(params.range.start.line + 1, params.range.end.line + 2))
            found += () if guarded is None else (guarded,)
        return found

    async def with_edit(self, action: types.CodeAction) -> types.CodeAction:
        """Return an action to repair or guard a file with its edit."""
        data = action.data if isinstance(action.data, dict) else {}
        path, guard = data.get("path"), data.get("guard")
        if action.edit is not None or not isinstance(path, str):
            return action
        file = self._files.get(path)
        repaired = await self._rewritten(path, guard if isinstance(guard, str) else None)
        if file is None or repaired is None or repaired.problem:
            reason = types.CodeActionDisabled(repaired.problem if repaired else "the text has changed")
            return types.CodeAction(action.title, action.kind, disabled=reason)
        edit = fix_all(repaired.texts, file, self._versioned_edits)
        return types.CodeAction(action.title, action.kind, edit=edit)

    def _value_text(self, at: PointedName, path: str) -> str | None:
        """Return the value of a name in an open text; in a notebook it may be of an earlier cell."""
        file = self._files.get(_file_of(path))
        if file is None or path not in file.parts:
            return None
        values, moved = self._known_values(path, file.parts[path])
        held = held_name(at, values, moved)
        earlier = list(file.parts)[: list(file.parts).index(path)]
        while not held and earlier:
            path = earlier.pop()
            values, moved = self._known_values(path, file.parts[path])
            held = last_of_top_level(at.name, values)
        return value_text(at.name, held, file.parts[path].text.rows, moved)

    def _publish(self, checked: CheckedTexts) -> None:
        """Publish the findings of a project, unless one of its texts has changed since."""
        files = {path: self._files.get(path) for path in checked.versions}
        if any(file is None or file.number != checked.versions[path] for path, file in files.items()):
            return
        found: dict[str, list[Diagnostic]] = {}
        for finding in checked.findings:
            found.setdefault(finding.span.path, []).append(finding)
        failed: dict[str, list[Failure]] = {}
        for failure in checked.failures:
            failed.setdefault(failure.path, []).append(failure)
        for path, file in files.items():
            assert file is not None
            self._checked.add(file)
            # A failure of a notebook as a whole is shown in its first cell.
            first = next(iter(file.parts), path)
            if path not in file.parts and path in failed:
                failed.setdefault(first, []).extend(failed.pop(path))
            for at, part in file.parts.items():
                self._findings[at] = tuple(found.pop(at, ()))
                shown = self._diagnostics(part.text, self._findings[at], failed.pop(at, ()))
                self._send_report(at, part, shown)
        self._publish_elsewhere(checked.root, found, failed)
        self._checked.end_waiting(self._files, checked.versions)
        if all(map(self._checked.has, self._files.values())):
            self._progress.end()

    def _publish_elsewhere(
        self,
        root: str,
        found: Mapping[str, Iterable[Diagnostic]],
        failed: Mapping[str, Iterable[Failure]],
    ) -> None:
        """Publish the findings in other files of the project; closed notebooks are left out."""
        shown: set[str] = set()
        for path in {*found, *failed}:
            uri = from_fs_path(path)
            if uri is None or cell_of(path) is not None or path in self._files:
                continue
            diagnostics = self._diagnostics(self._text(path), found.get(path, ()), failed.get(path, ()))
            shown.add(uri)
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))
        self._clear(self._elsewhere.get(root, set()) - shown - self._of_uri.keys())
        self._elsewhere[root] = shown

    # Values

    def _take_values(self, known: ValuesFound) -> None:
        file = self._files.get(known.path)
        if file is None or file.number != known.version:
            return
        is_new = not self._valued.has(file)
        self._valued.add(file)
        changed = False
        if known.values is not None:
            for at, part in file.parts.items():
                values = known.values.get(at, ())
                changed |= self._values.get(at, ("", ()))[1] != values
                self._values[at] = part.text.text, values
                self._calls[at] = known.calls.get(at, ())
        was_awaited = self._valued.end_waiting(self._files, {known.path: known.version})
        if changed and not (is_new and was_awaited):
            self._refresh_hints()

    def _refresh_hints(self) -> None:
        """Ask the client to request hints again."""
        workspace = self.client_capabilities.workspace
        hints = workspace.inlay_hint if workspace is not None else None
        if hints is not None and hints.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    def _known_values(self, path: str, part: OpenPart) -> tuple[tuple[HeldName, ...], MovedRows]:
        """Return the last known values in an open text, and the present places of their rows."""
        text, values = self._values.get(path, ("", ()))
        return values, moved_rows(text, part.text.text)

    async def hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """Return the inlay hints in a range of an open text."""
        known = self.part(params.text_document.uri)
        if known is None or not self.options.hints:
            return []
        await self.has_values(_file_of(known[0]))
        known = self.part(params.text_document.uri)
        if known is None:
            return []
        path, part = known
        values, moved = self._known_values(path, part)
        rows = range(params.range.start.line + 1, params.range.end.line + 2)
        return list(inlay_hints(values, part.text, moved, rows, self.options.hint_dtypes))

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """Return the calls of the modules in an open text, each above its `forward`."""
        known = self.part(params.text_document.uri)
        if known is None:
            return []
        await self.has_values(_file_of(known[0]))
        known = self.part(params.text_document.uri)
        if known is None or known[0] not in self._values:
            return []
        path, part = known
        _, moved = self._known_values(path, part)
        return list(code_lenses(self._calls.get(path, ()), part.text, moved, self.options.hint_dtypes))

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Return the value of the name at a place, or the page of the rule in a comment."""
        known = self.part(params.text_document.uri)
        if known is None:
            return None
        path, part = known
        row, column = part.text.place(params.position)
        at = pointed(part.text.text, row, column)
        if at is None:
            return None
        if isinstance(at, PointedRule):
            page = page_of(at.text)
            text = None if page is None else page.text(examples=False)
        else:
            await self.has_values(_file_of(path))
            text = self._value_text(at, path)
        if text is None:
            return None
        span = Span(path, at.row, at.column, at.row, at.end_column)
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, part.text.range(span))

    def _diagnostics(
        self, text: PositionedText, findings: Iterable[Diagnostic], failures: Iterable[Failure]
    ) -> list[types.Diagnostic]:
        return [
            *(lsp_diagnostic(finding, text, self._location) for finding in findings),
            *(failure_diagnostic(failure, text) for failure in failures),
        ]

    def _location(self, span: Span) -> types.Location | None:
        file = self._files.get(_file_of(span.path))
        part = file.parts.get(span.path) if file is not None else None
        if part is not None:
            return types.Location(part.uri, part.text.range(span))
        uri = from_fs_path(_file_of(span.path))
        if uri is None or cell_of(span.path) is not None:
            return None
        return types.Location(uri, self._text(span.path).range(span))

    def _text(self, path: str) -> PositionedText:
        """Return the text of a file on disk; an empty one if it cannot be read."""
        try:
            return self.encoded(read_source(path).text)
        except Unreadable:
            return self.encoded("")

    def _clear(self, uris: Iterable[str]) -> None:
        for uri in uris:
            self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))


def _file_of(path: str) -> str:
    """Return the file of a path in findings: that of a notebook for one of its cells."""
    cell = cell_of(path)
    return path if cell is None else cell[0]
