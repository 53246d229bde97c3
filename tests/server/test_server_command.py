"""The command `shapefix server`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from editor_client import EditorClient

from shapefix.cli.main import run


def test_a_missing_extra_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pygls" else found(name))
    assert run(["server"]) == 2
    message = "error: the language server needs more packages: pip install 'shapefix[editor]'\n"
    assert capfd.readouterr() == ("", message)


@pytest.mark.slow
def test_other_commands_do_not_import_the_protocol() -> None:
    code = "import sys, shapefix.cli.main as m; m.run(['check', '-']); "
    code += (
        "print([each for each in sys.modules if each.startswith(('pygls', 'lsprotocol', 'shapefix.server'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.mark.slow
def test_the_server_imports_nothing_of_the_analysis() -> None:
    """Its other process does; the server itself answers its first request without waiting for that."""
    code = "import sys, shapefix.server.features; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    imported = ran.stdout.decode().split()
    assert "pygls.lsp.server" in imported
    assert not {"libcst", "shapefix.engine.session", "shapefix.interpreter", "shapefix.tensors"} & {*imported}


def test_the_end_of_a_session(tmp_path: Path) -> None:
    # Clients of VS Code add the option.
    assert EditorClient(tmp_path, arguments=("--stdio",)).end() == 0
