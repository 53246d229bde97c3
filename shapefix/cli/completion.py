"""Completion of command lines in shells."""

from __future__ import annotations

import os

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from shapefix.cli.main import COMPLETION, cli


def script(shell: str) -> str:
    """Return the script for a shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(cli, {}, "shapefix", COMPLETION).source()


def complete() -> int:
    """Write the completions for the command line in the variables of the shell; return the exit code."""
    return shell_complete(cli, {}, "shapefix", COMPLETION, os.environ[COMPLETION])


def rules(ctx: click.Context, option: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete the last of several rules: a code or a name."""
    from shapefix.rulebook.pages import pages

    before, comma, last = text.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{word}", help=page.summary)
        for page in pages()
        for word in (page.code, page.name)
        if word.startswith(last)
    ]


def topics(ctx: click.Context, option: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete a topic of the manual, or a command."""
    from shapefix.cli.manual import topics

    named = [CompletionItem(topic.name, help=topic.summary()) for topic in topics()]
    commands = [CompletionItem(name) for name in cli.commands if name not in {each.value for each in named}]
    return [each for each in (*named, *commands) if each.value.startswith(text)]


def keys(ctx: click.Context, option: click.Parameter, text: str) -> list[CompletionItem]:
    """Complete a key of the configuration."""
    from shapefix.sources.configuration_keys import KEYS

    return [CompletionItem(key.name, help=key.help) for key in KEYS if key.name.startswith(text)]
