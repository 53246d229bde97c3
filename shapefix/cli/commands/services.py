"""`shapefix server` and `shapefix mcp`: servers for other programs."""

from __future__ import annotations

import click

from shapefix.cli.group import cli


@cli.command(short_help="Serve the checks to coding agents (Model Context Protocol).")
def mcp() -> int:
    """Serve check, shapes, explain, diagnose and fix as tools of the Model Context Protocol.

    The server reads standard input and writes standard output; start it in the project's folder. It requires
    `pip install 'shapefix[mcp]'`. More: `shapefix help agents`.
    """
    from shapefix.cli.mcp_server import serve

    return serve()


@cli.command(short_help="Run the language server for an editor.")
@click.option("--stdio", is_flag=True, hidden=True, help="The default; some clients add it.")
def server(stdio: bool) -> int:
    """Run the language server on standard input and output, for an editor to start.

    It shows findings as you type, and offers their repairs. More: `shapefix help editors`.
    """
    from shapefix.cli.server import server

    return server()
