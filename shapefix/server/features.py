"""The requests and notifications of an editor, each with the server's answer."""

from __future__ import annotations

import os
from pathlib import Path

from lsprotocol import types
from pygls.uris import to_fs_path

from shapefix.server.code_actions import KINDS
from shapefix.server.language_server import ShapefixServer, server_options
from shapefix.server.messages import TextUpdate
from shapefix.server.open_files import OpenPart, changed_cells, opened_cells, python_file
from shapefix.server.script_actions import EXPLAIN, GUARD_KIND, PROBE, PROBE_KIND

_WATCHED = ("**/*.py", "**/*.ipynb", "**/pyproject.toml", "**/shapefix.toml", "**/.gitignore")
_SECTION = "shapefix"
"""The name of our settings in an editor."""
_SETTINGS = ("pyproject.toml", "shapefix.toml", ".gitignore")


def file_path(uri: str, folder: str | None) -> str | None:
    """Return the path for an open text; None for a scheme without Python files.

    A text that was never saved gets a name in the folder of the workspace.
    """
    scheme, _, rest = uri.partition(":")
    if scheme == "file":
        path = to_fs_path(uri)
        return None if path is None else os.path.normpath(path)
    if scheme == "untitled" and rest:
        name = os.path.basename(rest)  # noqa: PTH119
        return os.path.join(folder or str(Path.home()), f"{name}.py")  # noqa: PTH118
    return None


def notebook_path(uri: str) -> str | None:
    """Return the path of a saved notebook, None for another one."""
    path = to_fs_path(uri) if uri.startswith("file:") else None
    return os.path.normpath(path) if path is not None and path.endswith(".ipynb") else None


def make_server() -> ShapefixServer:
    """Return a server with all of its features."""
    server = ShapefixServer()

    at_start: list[object] = []
    """The initializationOptions; settings of the workspace come on top of them."""

    @server.feature(types.INITIALIZE)
    def initialize(ls: ShapefixServer, params: types.InitializeParams) -> None:
        at_start.append(params.initialization_options)
        ls.begin(server_options(*at_start))

    @server.feature(types.INITIALIZED)
    async def initialized(ls: ShapefixServer, params: types.InitializedParams) -> None:
        await register_watching(ls)
        workspace = ls.client_capabilities.workspace
        changing = workspace.did_change_configuration if workspace is not None else None
        if changing is not None and changing.dynamic_registration:
            options = types.DidChangeConfigurationRegistrationOptions(_SECTION)
            method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
            registration = types.Registration("shapefix-settings", method, options)
            await ls.client_register_capability_async(types.RegistrationParams([registration]))
        await read_settings(ls, None)

    async def read_settings(ls: ShapefixServer, sent: object) -> None:
        """Take over the settings of the client.

        sent are those of its notification; a client with workspace/configuration sends none.
        """
        workspace = ls.client_capabilities.workspace
        if workspace is not None and workspace.configuration:
            wanted = types.ConfigurationParams([types.ConfigurationItem(section=_SECTION)])
            answers = await ls.workspace_configuration_async(wanted)
            ls.configure(server_options(*at_start, *(answers or ())))
        elif isinstance(sent, dict):
            ls.configure(server_options(*at_start, sent.get(_SECTION, sent)))

    @server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)
    async def did_change_configuration(
        ls: ShapefixServer, params: types.DidChangeConfigurationParams
    ) -> None:
        await read_settings(ls, params.settings)

    async def register_watching(ls: ShapefixServer) -> None:
        workspace = ls.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is None or not watching.dynamic_registration:
            return
        watchers = [types.FileSystemWatcher(pattern) for pattern in _WATCHED]
        options = types.DidChangeWatchedFilesRegistrationOptions(watchers)
        method = types.WORKSPACE_DID_CHANGE_WATCHED_FILES
        registration = types.Registration("shapefix-files", method, options)
        await ls.client_register_capability_async(types.RegistrationParams([registration]))
        ls.watches_files = True

    @server.feature(types.SHUTDOWN)
    def shutdown(ls: ShapefixServer, params: None) -> None:
        ls.end()

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(ls: ShapefixServer, params: types.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        path = file_path(document.uri, ls.workspace.root_path)
        if path is None or not (document.language_id == "python" or path.endswith(".py")):
            return
        part = OpenPart(document.uri, document.version, ls.encoded(document.text))
        ls.set_file(python_file(path, ls.opened.next_number(), part), at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(ls: ShapefixServer, params: types.DidChangeTextDocumentParams) -> None:
        known = ls.opened.part(params.text_document.uri)
        if known is None or known[0] != ls.opened.path(params.text_document.uri):
            return
        path, part = known
        text = part.text.changed(params.content_changes)
        changed = OpenPart(part.uri, params.text_document.version, text)
        ls.set_file(python_file(path, ls.opened.next_number(), changed), at_once=False)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def did_save(ls: ShapefixServer, params: types.DidSaveTextDocumentParams) -> None:
        # A client that does not watch files says nothing about the others that have changed.
        ls.update(TextUpdate(with_new_files=not ls.watches_files), at_once=True)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(ls: ShapefixServer, params: types.DidCloseTextDocumentParams) -> None:
        known = ls.opened.part(params.text_document.uri)
        if known is not None:
            ls.close_file(known[0])

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open_notebook(ls: ShapefixServer, params: types.DidOpenNotebookDocumentParams) -> None:
        path = notebook_path(params.notebook_document.uri)
        if path is not None:
            cells = params.notebook_document.cells
            ls.set_notebook(path, opened_cells(cells, params.cell_text_documents, ls.encoding), at_once=True)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change_notebook(ls: ShapefixServer, params: types.DidChangeNotebookDocumentParams) -> None:
        path = notebook_path(params.notebook_document.uri)
        cells = None if path is None else ls.opened.cells(path)
        if path is not None and cells is not None and params.change.cells is not None:
            changed = changed_cells(cells, params.change.cells, ls.encoding)
            ls.set_notebook(path, changed, at_once=params.change.cells.structure is not None)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)
    def did_save_notebook(ls: ShapefixServer, params: types.DidSaveNotebookDocumentParams) -> None:
        ls.update(TextUpdate(with_new_files=not ls.watches_files), at_once=True)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close_notebook(ls: ShapefixServer, params: types.DidCloseNotebookDocumentParams) -> None:
        path = notebook_path(params.notebook_document.uri)
        if path is not None:
            ls.close_file(path)

    @server.feature(
        types.TEXT_DOCUMENT_DIAGNOSTIC,
        types.DiagnosticOptions(
            inter_file_dependencies=True, workspace_diagnostics=False, identifier="shapefix"
        ),
    )
    async def diagnostic(
        ls: ShapefixServer, params: types.DocumentDiagnosticParams
    ) -> types.DocumentDiagnosticReport:
        return await ls.report(params)

    @server.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions(code_action_kinds=(*KINDS, PROBE_KIND, GUARD_KIND), resolve_provider=True),
    )
    async def code_action(ls: ShapefixServer, params: types.CodeActionParams) -> list[types.CodeAction]:
        return await ls.code_actions(params)

    @server.command(EXPLAIN)
    def explain(ls: ShapefixServer, rule: str) -> None:
        ls.documents.explain(rule)

    @server.command(PROBE)
    async def probe(ls: ShapefixServer, path: str) -> int | None:
        return await ls.documents.probe(path)

    @server.feature(types.CODE_ACTION_RESOLVE)
    async def resolve_action(ls: ShapefixServer, action: types.CodeAction) -> types.CodeAction:
        return await ls.with_edit(action)

    @server.feature(types.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hint(ls: ShapefixServer, params: types.InlayHintParams) -> list[types.InlayHint]:
        return await ls.hints(params)

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def code_lens(ls: ShapefixServer, params: types.CodeLensParams) -> list[types.CodeLens]:
        return await ls.lenses(params)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(ls: ShapefixServer, params: types.HoverParams) -> types.Hover | None:
        return await ls.hover(params)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def did_change_files(ls: ShapefixServer, params: types.DidChangeWatchedFilesParams) -> None:
        changed: list[str] = []
        with_new_files = False
        for event in params.changes:
            path = file_path(event.uri, None)
            if path is None or (path in ls.opened.files and event.type != types.FileChangeType.Deleted):
                continue
            is_settings = path.endswith(_SETTINGS)
            with_new_files |= is_settings or event.type != types.FileChangeType.Changed
            changed.append(path)
        if changed:
            ls.update(TextUpdate(changed=tuple(changed), with_new_files=with_new_files), at_once=False)

    return server
