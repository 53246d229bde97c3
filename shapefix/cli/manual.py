"""The manual: one Markdown page per topic in `shapefix/docs`, shown by `shapefix help`."""

from __future__ import annotations

from pathlib import Path

import click

import shapefix
from shapefix.cli.pager import show_markdown
from shapefix.light_dataclasses import dataclass
from shapefix.rulebook.pages import MissingPages, page_of
from shapefix.sources.configuration import suggestion

_FOLDER = Path(shapefix.__file__).parent / "docs"


@dataclass(frozen=True)
class Topic:
    """A page of the manual. Its file is named after the topic, and its heading is the summary."""

    name: str
    path: Path

    def text(self) -> str:
        """Return the page as Markdown."""
        return self.path.read_text("utf-8")

    def summary(self) -> str:
        """Return the page's heading."""
        with self.path.open(encoding="utf-8") as page:
            return next(page).removeprefix("#").strip()


def topics() -> tuple[Topic, ...]:
    """Return all topics in alphabetical order. Raises MissingPages."""
    found = tuple(Topic(path.stem, path) for path in sorted(_FOLDER.glob("*.md")))
    if not found:
        raise MissingPages(f"the manual is missing from {_FOLDER}; install shapefix again")
    return found


def show(name: str | None, commands: click.Context) -> None:
    """Show a topic, a command's options, or without a name the list of topics.

    commands is the context of the command group. Raises click.UsageError if there is no such topic.
    """
    known = {topic.name: topic for topic in topics()}
    if name is None:
        click.echo(_listing(tuple(known.values())), nl=False)
    elif (topic := known.get(name.lower())) is not None:
        show_markdown(topic.text())
    else:
        click.echo(_command_help(name, tuple(known), commands))


def _listing(listed: tuple[Topic, ...]) -> str:
    column = max(len(topic.name) for topic in listed)
    lines = ["Topics (`shapefix help TOPIC` shows one):", ""]
    lines += [f"  {topic.name:<{column}}  {topic.summary()}" for topic in listed]
    lines += ["", "Options: `shapefix COMMAND --help`. Rules: `shapefix explain SF101`."]
    return "\n".join(lines) + "\n"


def _command_help(name: str, known: tuple[str, ...], commands: click.Context) -> str:
    group = commands.command
    assert isinstance(group, click.Group)
    command = group.get_command(commands, name)
    if command is not None:
        with command.make_context(name, [], parent=commands, resilient_parsing=True) as context:
            return command.get_help(context)
    page = page_of(name)
    if page is not None:
        raise click.UsageError(f"{name!r} is a rule; did you mean `shapefix explain {page.code}`?")
    hint = suggestion(name, {*known, *group.list_commands(commands)}, "; `shapefix help` lists the topics")
    raise click.UsageError(f"no help topic {name!r}{hint}")
