"""`shapefix mcp`: a server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shapefix import __version__
from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.mcp_tools import TOOLS, Answer, ToolFailed
from shapefix.cli.terminal import echo_err

if TYPE_CHECKING:
    from mcp.server import MCPServer

_INSTRUCTIONS = (
    "Static checks of PyTorch and Hugging Face training code. Call `check` after you write or change such "
    "code, before you run it; `diagnose` with the traceback if a run fails."
)


def serve() -> int:
    """Serve the tools until standard input ends."""
    try:
        server = tool_server()
    except ImportError:
        echo_err("error: `shapefix mcp` requires the package mcp: pip install 'shapefix[mcp]'")
        return FAILED
    server.run("stdio")
    return CLEAN


def tool_server() -> MCPServer:
    """Return a server with all tools. Raises ImportError without the package mcp."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer("shapefix", version=__version__, instructions=_INSTRUCTIONS, log_level="ERROR")
    for name, (function, only_reads) in TOOLS.items():
        hints = ToolAnnotations(
            read_only_hint=only_reads, destructive_hint=not only_reads, open_world_hint=False
        )
        server.tool(name, description=inspect.getdoc(function), annotations=hints)(_in_main_thread(function))
    return server


def _in_main_thread(function: Callable[..., Answer]) -> Callable[..., Awaitable[Answer]]:
    """Return a coroutine function: only in the main thread an analysis of too much time can be ended."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(function)
    async def call(*arguments: object, **keywords: object) -> Answer:
        try:
            return function(*arguments, **keywords)
        except ToolFailed as error:
            raise ToolError(str(error)) from None

    return call
