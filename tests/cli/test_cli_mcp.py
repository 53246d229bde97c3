"""`shapefix mcp`, called by the client of the package mcp over standard input and output."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from asked_programs import LOG, NET, VIEW

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
REPAIRED = "-y = x.view(-1, 8)\n+y = x.reshape(-1, 8)\n"


def test_a_session_over_standard_input_and_output(tmp_path: Path) -> None:
    import anyio
    from mcp import Client, StdioServerParameters

    (tmp_path / "train.py").write_text(VIEW)
    (tmp_path / "model.py").write_text(NET)
    (tmp_path / "broken.py").write_text("import torch\nx = (\n")
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "shapefix", "mcp"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")},
        cwd=tmp_path,
    )

    async def session() -> None:
        async with Client(server, read_timeout_seconds=60) as client:

            async def answer(tool: str, **arguments: object) -> Any:
                called = await client.call_tool(tool, arguments)
                assert not called.is_error, called.content
                return called.structured_content

            async def refusal(tool: str, **arguments: object) -> str:
                called = await client.call_tool(tool, arguments)
                assert called.is_error
                (content,) = called.content
                return str(getattr(content, "text", ""))

            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert list(tools) == ["check", "shapes", "explain", "diagnose", "fix"]
            assert all(tool.description for tool in tools.values())
            assert set(tools["check"].input_schema["properties"]) == {"paths", "select", "ignore"}
            hints = {name: tool.annotations for name, tool in tools.items()}
            assert [name for name, hint in hints.items() if hint and not hint.read_only_hint] == ["fix"]

            found = await answer("check", paths=["."])
            (finding,) = found["findings"]
            assert (finding["code"], finding["severity"], finding["at"]) == ("SF101", "error", "train.py:4:5")
            assert finding["fix"]["kind"] == "safe"
            assert REPAIRED in finding["fix"]["patch"]
            (unchecked,) = found["not_checked"]
            assert unchecked.startswith("broken.py:2:")
            assert found["summary"] == "1 finding"
            clean = await answer("check", paths=["model.py"])
            assert clean == {"findings": [], "summary": "0 findings"}
            assert "XX9" in await refusal("check", paths=["."], select=["XX9"])

            assert (await answer("explain", rule="SF101"))["page"].startswith("# view-across-stride-gap")
            assert "SF101" in (await answer("explain", rule="SF1"))["rules"]
            assert "unknown rule 'SF000'" in await refusal("explain", rule="SF000")

            listing = (await answer("shapes", target="model.py:Net", inputs=["x: f32[B, 3]"]))["listings"]
            assert "return  f32[B, 4]" in listing["Net.forward"]
            assert "Missing" in await refusal("shapes", target="model.py:Missing")
            assert "gone.py" in await refusal("shapes", target="gone.py")

            diagnosis = await answer("diagnose", log=LOG)
            assert diagnosis["certainty"] == "proved"
            assert (diagnosis["cause"]["code"], diagnosis["lines"]) == ("SF101", ["train.py:4"])
            assert REPAIRED in diagnosis["patch"]
            assert "no error found" in await refusal("diagnose", log="loss 0.5")

            shown = await answer("fix", paths=["train.py"])
            assert REPAIRED in shown["diff"]
            assert (shown["summary"], "written" in shown) == ("1 repaired, 0 remain", False)
            assert (tmp_path / "train.py").read_text() == VIEW
            assert (await answer("fix", paths=["train.py"], apply=True))["written"] is True
            assert (tmp_path / "train.py").read_text() == VIEW.replace("view", "reshape")

    anyio.run(session)


def test_the_package_mcp_is_optional(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from shapefix.cli.main import run

    monkeypatch.setitem(sys.modules, "mcp.server", None)
    assert run(["mcp"]) == 2
    assert capsys.readouterr().err == (
        "error: `shapefix mcp` requires the package mcp: pip install 'shapefix[mcp]'\n"
    )
