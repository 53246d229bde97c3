"""The findings of a client: sent to it, or kept for its request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path

from shapefix.diagnostics import Diagnostic, Failure, Span, cell_of
from shapefix.light_dataclasses import dataclass
from shapefix.server.lsp_diagnostics import failure_diagnostic, lsp_diagnostic
from shapefix.server.messages import CheckedTexts
from shapefix.server.open_documents import OpenDocuments, file_of
from shapefix.server.open_files import OpenPart
from shapefix.server.open_texts import PositionedText
from shapefix.sources.text import Unreadable, read_source

_REFRESH = 0.3
"""Seconds for a client to request diagnostics by itself."""


@dataclass(frozen=True)
class _Report:
    """The diagnostics of an open text; another number says that they are others."""

    number: str
    shown: tuple[types.Diagnostic, ...]


class PublishedFindings:
    """The newest findings in the open texts of a client, and in the other files of their projects."""

    def __init__(self, server: LanguageServer, documents: OpenDocuments) -> None:
        self._server = server
        self._documents = documents
        self._findings: dict[str, tuple[Diagnostic, ...]] = {}
        self._reports: dict[str, _Report] = {}
        """The newest diagnostics of each open text."""
        self._pulled: dict[str, str] = {}
        """The number of the report that the client has of each open text."""
        self._refresh: asyncio.TimerHandle | None = None
        self._elsewhere: dict[str, set[str]] = {}
        """The files with findings that are not open, by the root of their project."""

    @property
    def is_pulled(self) -> bool:
        """Whether the client requests diagnostics, also after a refresh.

        A change in one file changes the findings in another one: without that, all findings are sent.
        """
        capabilities = self._server.client_capabilities
        document, workspace = capabilities.text_document, capabilities.workspace
        refreshed = workspace.diagnostics if workspace is not None else None
        return (
            document is not None
            and document.diagnostic is not None
            and refreshed is not None
            and bool(refreshed.refresh_support)
        )

    def found_in(self, path: str) -> tuple[Diagnostic, ...]:
        """Return the findings in an open text, by its path in findings."""
        return self._findings.get(path, ())

    def report(self, path: str, previous: str | None) -> types.DocumentDiagnosticReport:
        """Return the diagnostics of a checked text; previous is the number of the report of the client."""
        report = self._reports[path]
        self._pulled[path] = report.number
        if previous == report.number:
            return types.RelatedUnchangedDocumentDiagnosticReport(report.number)
        return types.RelatedFullDocumentDiagnosticReport(list(report.shown), result_id=report.number)

    def publish(self, checked: CheckedTexts) -> None:
        """Publish the findings of a project; each of its texts is as it was checked."""
        found: dict[str, list[Diagnostic]] = {}
        for finding in checked.findings:
            found.setdefault(finding.span.path, []).append(finding)
        failed: dict[str, list[Failure]] = {}
        for failure in checked.failures:
            failed.setdefault(failure.path, []).append(failure)
        for path in checked.versions:
            file = self._documents.files[path]
            # A failure of a notebook as a whole is shown in its first cell.
            first = next(iter(file.parts), path)
            if path not in file.parts and path in failed:
                failed.setdefault(first, []).extend(failed.pop(path))
            for at, part in file.parts.items():
                self._findings[at] = tuple(found.pop(at, ()))
                self._send(at, part, self._diagnostics(part.text, self._findings[at], failed.pop(at, ())))
        self._publish_elsewhere(checked.root, found, failed)

    def forget(self, path: str) -> None:
        """Forget a closed file."""
        self._findings = {at: found for at, found in self._findings.items() if file_of(at) != path}
        self._reports = {at: report for at, report in self._reports.items() if file_of(at) != path}
        self._pulled = {at: number for at, number in self._pulled.items() if file_of(at) != path}

    def clear(self, uris: Iterable[str]) -> None:
        """Remove the findings of texts from the client."""
        for uri in uris:
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def _send(self, at: str, part: OpenPart, shown: list[types.Diagnostic]) -> None:
        """Send the diagnostics of an open text, or keep them for a request."""
        before = self._reports.get(at)
        if before is None or before.shown != tuple(shown):
            self._reports[at] = _Report(str(self._documents.next_number()), tuple(shown))
        if not self.is_pulled or cell_of(at) is not None:
            params = types.PublishDiagnosticsParams(part.uri, shown, part.version)
            self._server.text_document_publish_diagnostics(params)
        elif self._refresh is None:
            # A changed text is requested by itself: only those that it changes are left after a while.
            self._refresh = asyncio.get_running_loop().call_later(_REFRESH, self._refresh_reports)

    def _refresh_reports(self) -> None:
        """Ask the client to request diagnostics again, if it has old ones."""
        self._refresh = None
        pulled = {at: self._reports[at].number for at in self._pulled if at in self._reports}
        if pulled != self._pulled:
            self._server.workspace_diagnostic_refresh(None)

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
            if uri is None or cell_of(path) is not None or path in self._documents.files:
                continue
            diagnostics = self._diagnostics(self._text(path), found.get(path, ()), failed.get(path, ()))
            shown.add(uri)
            self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))
        before = self._elsewhere.get(root, set())
        self.clear(uri for uri in before - shown if self._documents.path(uri) is None)
        self._elsewhere[root] = shown

    def _diagnostics(
        self, text: PositionedText, findings: Iterable[Diagnostic], failures: Iterable[Failure]
    ) -> list[types.Diagnostic]:
        return [
            *(lsp_diagnostic(finding, text, self._location) for finding in findings),
            *(failure_diagnostic(failure, text) for failure in failures),
        ]

    def _location(self, span: Span) -> types.Location | None:
        part = self._documents.part_at(span.path)
        if part is not None:
            return types.Location(part.uri, part.text.range(span))
        uri = from_fs_path(file_of(span.path))
        if uri is None or cell_of(span.path) is not None:
            return None
        return types.Location(uri, self._text(span.path).range(span))

    def _text(self, path: str) -> PositionedText:
        """Return the text of a file on disk; an empty one if it cannot be read."""
        encoding = self._server.workspace.position_encoding or types.PositionEncodingKind.Utf16
        try:
            return PositionedText(read_source(path).text, encoding)
        except Unreadable:
            return PositionedText("", encoding)
