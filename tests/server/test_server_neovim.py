"""A real editor with the recipe of the manual: Neovim without a screen."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.editor,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("nvim") is None, reason="needs Neovim"),
]

ROOT = Path(__file__).resolve().parents[2]
VIEW = "import torch\n\nx = torch.zeros(4, 6, 8)[:, :-1].view(-1, 8)\n"
SESSION = """
local function wait(holds) return vim.wait(30000, holds, 50) end
local seen = {}
wait(function() return #vim.diagnostic.get(0) > 0 end)
seen.codes = vim.tbl_map(function(each) return each.code end, vim.diagnostic.get(0))
local place = { start = { line = 2, character = 0 }, ["end"] = { line = 2, character = 44 } }
local document = { uri = vim.uri_from_bufnr(0) }
local request = { textDocument = document, range = place, context = { diagnostics = {} } }
for _, answer in pairs(vim.lsp.buf_request_sync(0, "textDocument/codeAction", request, 30000)) do
  for _, action in ipairs(answer.result) do
    if action.isPreferred then vim.lsp.util.apply_workspace_edit(action.edit, "utf-16") end
  end
end
seen.is_clean = wait(function() return #vim.diagnostic.get(0) == 0 end)
seen.rows = vim.api.nvim_buf_get_lines(0, 0, -1, false)
vim.fn.writefile({ vim.fn.json_encode(seen) }, "seen.json")
"""


def test_a_finding_and_its_repair_in_neovim(tmp_path: Path) -> None:
    manual = (ROOT / "shapefix" / "docs" / "editors.md").read_text()
    recipe = re.search(r"```lua\n(.*?)```", manual, re.DOTALL)
    assert recipe is not None
    (tmp_path / "init.lua").write_text(recipe[1])
    (tmp_path / "session.lua").write_text(SESSION)
    (tmp_path / "train.py").write_text(VIEW)
    command = tmp_path / "bin" / "shapefix"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m shapefix "$@"\n')
    command.chmod(0o755)
    steps = ("luafile init.lua", "filetype on", "edit train.py", "luafile session.lua", "qa!")
    subprocess.run(
        ["nvim", "--headless", "-u", "NONE", *(f"+{step}" for step in steps)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
        timeout=120,
        check=True,
    )
    seen = json.loads((tmp_path / "seen.json").read_text())
    repaired = VIEW.replace(".view", ".reshape").splitlines()
    assert seen == {"codes": ["SF101"], "is_clean": True, "rows": repaired}
