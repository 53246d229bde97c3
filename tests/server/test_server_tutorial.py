"""The tutorial of the editor shows what the server answers."""

# ruff: noqa: F811

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from editor_client import EditorClient, editor, project  # noqa: F401
from tutorials import BLOCK, FOLDER, checked

pytestmark = pytest.mark.slow

PAGE = FOLDER / "tutorial-editor.md"


def test_the_tutorial_of_the_editor(editor: EditorClient, project: Path) -> None:
    page = PAGE.read_text("utf-8")
    (code,) = (block["body"] for block in BLOCK.finditer(page) if block["name"] == "train.py")
    uri = (project / "train.py").as_uri()
    editor.open(uri, code)
    findings = editor.diagnostics(uri)

    def ask(method: str, **more: object) -> Any:
        return editor.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})

    def actions(row: int) -> list[dict[str, Any]]:
        (finding,) = (each for each in findings if each["range"]["start"]["line"] == row - 1)
        found: list[dict[str, Any]] = ask(
            "codeAction", range=finding["range"], context={"diagnostics": [finding]}
        )
        return [each for each in found if "quickfix" in each["kind"]]

    def shown(what: str, row: int, column: int) -> str:
        if what == "findings":
            starts = [each["range"]["start"] for each in findings]
            return "\n".join(
                f"{at['line'] + 1}:{at['character'] + 1} {each['code']} {each['message']}"
                for at, each in zip(starts, findings, strict=True)
            )
        if what == "hints":
            every = {"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}}
            labels = {each["position"]["line"]: each["label"] for each in ask("inlayHint", range=every)}
            rows = code.splitlines()
            width = max(len(rows[at]) for at in labels)
            return "\n".join(f"{at + 1} | {rows[at]:<{width}}  {labels[at].strip()}" for at in sorted(labels))
        if what == "hover":
            answer = ask("hover", position={"line": row - 1, "character": column - 1})
            return str(answer["contents"]["value"]).replace("```text\n", "").replace("```", "").strip()
        if what == "actions":
            return "\n".join(each["title"] for each in actions(row))
        first = actions(row)[0]
        (edit,) = first["edit"]["changes"][uri]
        assert edit["range"]["start"]["line"] == edit["range"]["end"]["line"] == row - 1
        start, end = (edit["range"][key]["character"] for key in ("start", "end"))
        line = code.splitlines()[row - 1]
        return f"{line[:start]}{edit['newText']}{line[end:]}".strip()

    def answered(block: re.Match[str]) -> str:
        if block["kind"] != "text":
            return block[0]
        row, column, *_ = [*map(int, re.findall(r"\d+", block["name"])), 0, 0]
        what = block["name"].split()[0]
        return f'```text title="{block["name"]}"\n{shown(what, row, column)}\n```'

    checked(PAGE, BLOCK.sub(answered, page))
    editor.close(uri)
