"""`shapefix server`, `mcp` and `generate-shell-completion`: for other programs."""

from __future__ import annotations

import click

from shapefix.cli.group import cli


@cli.command(short_help="Run a server for coding agents (Model Context Protocol).")
def mcp() -> int:
    """Offer check, shapes, explain, diagnose and fix as tools of the Model Context Protocol.

    The server reads standard input and writes standard output; start it in the project's folder. It requires
    `pip install 'shapefix[mcp]'`. More: `shapefix help agents`.
    """
    from shapefix.cli.mcp_server import serve

    return serve()


@cli.command(short_help="Run the language server for an editor.")
@click.option("--stdio", is_flag=True, hidden=True, help="The default; some clients add it.")
def server(stdio: bool) -> int:
    """Run the language server on standard input and output. Editors start it.

    It shows findings as you type and offers fixes. More: `shapefix help editors`.
    """
    from shapefix.cli.server import server

    return server()


@cli.command("generate-shell-completion", short_help="Print a completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def generate_shell_completion(shell: str) -> int:
    """Print a completion script for a shell: commands, options, rules and topics.

    \b
    bash  echo 'eval "$(shapefix generate-shell-completion bash)"' >> ~/.bashrc
    zsh   echo 'eval "$(shapefix generate-shell-completion zsh)"' >> ~/.zshrc
    fish  shapefix generate-shell-completion fish > ~/.config/fish/completions/shapefix.fish
    """
    from shapefix.cli.completion import script

    click.echo(script(shell))
    return 0
