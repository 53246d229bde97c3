"""The language server: takes the texts of an editor, and answers its requests about them."""

from __future__ import annotations

import asyncio
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

import shapefix
from shapefix.diagnostics import Span, cell_of
from shapefix.engine.settings import CheckOptions
from shapefix.light_dataclasses import dataclass
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
from shapefix.server.hovers import PointedRule, pointed
from shapefix.server.inlay_hints import inlay_hints
from shapefix.server.lsp_diagnostics import lsp_diagnostic
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
from shapefix.server.open_documents import OpenDocuments, file_of
from shapefix.server.open_files import OpenCell, OpenFile
from shapefix.server.open_texts import Encoding, PositionedText
from shapefix.server.published_findings import PublishedFindings
from shapefix.server.script_actions import (
    GUARD_KIND,
    PROBE_KIND,
    explain_action,
    guard_action,
    probe_action,
)
from shapefix.server.shown_documents import ShownDocuments
from shapefix.server.values_of_texts import ValuesOfTexts
from shapefix.server.work_progress import WorkProgress

DEBOUNCE = 0.15
"""Seconds without a keystroke before a changed text is checked."""
_LONGEST_DEBOUNCE = 0.6

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


class ShapefixServer(LanguageServer):
    """The session of one client: its open files, and the analysis of their newest texts."""

    def __init__(self) -> None:
        super().__init__("shapefix", shapefix.__version__, notebook_document_sync=_NOTEBOOKS)
        self.opened = OpenDocuments()
        self._published = PublishedFindings(self, self.opened)
        self._known = ValuesOfTexts()
        self.options = ServerOptions()
        self._process: AnalysisProcess | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._checked = AwaitedAnswers()
        self._progress = WorkProgress(self, "shapefix: checking")
        self._valued = AwaitedAnswers()
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

    @property
    def encoding(self) -> Encoding:
        """The encoding of positions of this client."""
        return self.workspace.position_encoding or types.PositionEncodingKind.Utf16

    def encoded(self, text: str) -> PositionedText:
        """Return a text with the positions of this client."""
        return PositionedText(text, self.encoding)

    def set_notebook(self, path: str, cells: tuple[OpenCell, ...], at_once: bool) -> None:
        """Open or change a notebook."""
        self.set_file(self.opened.put_notebook(path, cells), at_once)

    def set_file(self, file: OpenFile, at_once: bool) -> None:
        """Open or change a file; check it soon, or at once."""
        self._published.clear(self.opened.put(file))
        self.update(TextUpdate({file.path: (file.number, file.data)}), at_once)

    def close_file(self, path: str) -> None:
        """Close a file; its findings disappear."""
        file = self.opened.remove(path)
        if file is None:
            return
        for each in (self._checked, self._valued, self._known, self._published):
            each.forget(path)
        self._published.clear(part.uri for part in file.parts.values())
        self.update(TextUpdate(closed=(path,)), at_once=True)

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
        if self.opened.files:
            self._progress.start()

    # Findings

    async def report(self, params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        """Return the diagnostics of an open text; cells of notebooks get theirs without a request."""
        known = self.opened.part(params.text_document.uri)
        if known is None or not self._published.is_pulled or cell_of(known[0]) is not None:
            return types.RelatedFullDocumentDiagnosticReport([])
        path, _ = known
        if not await self.is_checked(path):
            again = types.DiagnosticServerCancellationData(retrigger_request=True)
            code = types.LSPErrorCodes.ServerCancelled
            raise JsonRpcException("the text has changed", code, again)
        return self._published.report(path, params.previous_result_id)

    async def is_checked(self, path: str) -> bool:
        """Wait until the present text of a file is checked; False if this takes too long."""
        return await self._has_arrived(self._checked, path)

    async def has_values(self, path: str) -> bool:
        """Wait until the values of the present text of a file are known; False if this takes too long."""
        return await self._has_arrived(self._valued, path)

    async def _has_arrived(self, answers: AwaitedAnswers, path: str) -> bool:
        file = self.opened.files.get(path)
        if file is None or answers.has(file):
            return file is not None
        self.flush()
        return await answers.wait(file)

    async def _rewritten(self, path: str, guard: str | None) -> RepairedFile | None:
        """Return the texts of a file with all of its safe repairs, or with a guarded function.

        None if there is no answer, or the file has changed.
        """
        file = self.opened.files.get(path)
        if file is None or self._process is None or self._loop is None:
            return None
        self.flush()
        number = self.opened.next_number()
        future: asyncio.Future[RepairedFile] = self._loop.create_future()
        self._repairs[number] = future
        order = RepairOrder(number, path) if guard is None else GuardOrder(number, path, guard)
        self._process.send(order)
        try:
            answer = await within_patience(future)
        finally:
            self._repairs.pop(number, None)
        return answer if self.opened.files.get(path) is file else None

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
        known = self.opened.part(params.text_document.uri)
        if known is None or not await self.is_checked(file_of(known[0])):
            return []
        path, part = known
        file = self.opened.files.get(file_of(path))
        if file is None or file.parts.get(path) != part:
            return []
        only = params.context.only
        found: list[types.CodeAction] = []
        if is_wanted(types.CodeActionKind.QuickFix, only):
            for finding in self._published.found_in(path):
                shown = lsp_diagnostic(finding, part.text, lambda span: None)
                if at_range(shown, params.range):
                    found += quick_fixes(finding, shown, path, file, self._versioned_edits)
                    explained = explain_action(shown) if self.documents.is_supported else None
                    found += () if explained is None else (explained,)
        if is_wanted(FIX_ALL, only) and has_safe_fix(
            each for at in file.parts for each in self._published.found_in(at)
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
        file = self.opened.files.get(path)
        repaired = await self._rewritten(path, guard if isinstance(guard, str) else None)
        if file is None or repaired is None or repaired.problem:
            reason = types.CodeActionDisabled(repaired.problem if repaired else "the text has changed")
            return types.CodeAction(action.title, action.kind, disabled=reason)
        edit = fix_all(repaired.texts, file, self._versioned_edits)
        return types.CodeAction(action.title, action.kind, edit=edit)

    def _publish(self, checked: CheckedTexts) -> None:
        """Publish the findings of a project, unless one of its texts has changed since."""
        files = [self.opened.files.get(path) for path in checked.versions]
        current = [file for file in files if file is not None and file.number == checked.versions[file.path]]
        if len(current) < len(files):
            return
        for file in current:
            self._checked.add(file)
        self._published.publish(checked)
        self._checked.end_waiting(self.opened.files, checked.versions)
        if all(map(self._checked.has, self.opened.files.values())):
            self._progress.end()

    # Values

    def _take_values(self, known: ValuesFound) -> None:
        file = self.opened.files.get(known.path)
        if file is None or file.number != known.version:
            return
        is_new = not self._valued.has(file)
        self._valued.add(file)
        changed = self._known.take(file, known)
        was_awaited = self._valued.end_waiting(self.opened.files, {known.path: known.version})
        if changed and not (is_new and was_awaited):
            self._refresh_hints()

    def _refresh_hints(self) -> None:
        """Ask the client to request hints again."""
        workspace = self.client_capabilities.workspace
        hints = workspace.inlay_hint if workspace is not None else None
        if hints is not None and hints.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    async def hints(self, params: types.InlayHintParams) -> list[types.InlayHint]:
        """Return the inlay hints in a range of an open text."""
        known = self.opened.part(params.text_document.uri)
        if known is None or not self.options.hints:
            return []
        await self.has_values(file_of(known[0]))
        known = self.opened.part(params.text_document.uri)
        if known is None:
            return []
        path, part = known
        values, moved = self._known.values(path, part)
        rows = range(params.range.start.line + 1, params.range.end.line + 2)
        return list(inlay_hints(values, part.text, moved, rows, self.options.hint_dtypes))

    async def lenses(self, params: types.CodeLensParams) -> list[types.CodeLens]:
        """Return the calls of the modules in an open text, each above its `forward`."""
        known = self.opened.part(params.text_document.uri)
        if known is None:
            return []
        await self.has_values(file_of(known[0]))
        known = self.opened.part(params.text_document.uri)
        calls = None if known is None else self._known.calls(known[0])
        if known is None or calls is None:
            return []
        path, part = known
        _, moved = self._known.values(path, part)
        return list(code_lenses(calls, part.text, moved, self.options.hint_dtypes))

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        """Return the value of the name at a place, or the page of the rule in a comment."""
        known = self.opened.part(params.text_document.uri)
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
            await self.has_values(file_of(path))
            file = self.opened.files.get(file_of(path))
            text = None if file is None else self._known.described(at, path, file)
        if text is None:
            return None
        span = Span(path, at.row, at.column, at.row, at.end_column)
        content = types.MarkupContent(types.MarkupKind.Markdown, text)
        return types.Hover(content, part.text.range(span))
