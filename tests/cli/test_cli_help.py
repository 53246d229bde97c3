"""`shapefix help`: the topics of the manual, on a terminal and in a pipe."""

from __future__ import annotations

import re

import pytest
from command_line import shapefix
from test_cli_rules import imported
from test_cli_terminal import on_a_terminal

from shapefix.cli.main import cli
from shapefix.cli.manual import topics

TOPICS = [topic.name for topic in topics()]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_the_topics_that_the_readme_promises_exist() -> None:
    promised = {"probe", "configuration", "memory", "limits", "editors", "ci", "shapes", "notebooks", "ranks"}
    assert promised <= set(TOPICS)


def test_without_a_topic_every_topic_has_one_line() -> None:
    ran = shapefix("help")
    assert (ran.code, ran.err) == (0, "")
    listed = dict(re.findall(r"^  (\S+)  +(\S.*)$", ran.out, re.MULTILINE))
    assert list(listed) == TOPICS
    assert all(len(line) <= 80 for line in ran.out.splitlines()), ran.out


@pytest.mark.parametrize("name", TOPICS)
def test_a_topic_is_markdown_in_a_pipe(name: str) -> None:
    ran = shapefix("help", name)
    assert (ran.code, ran.err) == (0, "")
    assert re.match(r"# \S.*\n\n\S", ran.out)
    assert ran.out.endswith("\n")
    assert not ran.out.endswith("\n\n")


@pytest.mark.parametrize("name", TOPICS)
def test_pages_refer_to_topics_and_commands_that_exist(name: str) -> None:
    text = shapefix("help", name).out
    for topic in re.findall(r"shapefix help ([a-z][a-z-]*)", text):
        assert topic in TOPICS
    for command in re.findall(r"(?:`|^    |\$ )shapefix ([a-z][a-z-]*)", text, re.MULTILINE):
        assert command in cli.commands


@pytest.mark.parametrize("name", sorted(set(cli.commands) - set(TOPICS)))
def test_the_name_of_a_command_shows_its_options(name: str) -> None:
    ran = shapefix("help", name)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == shapefix(name, "--help").out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("configuraton", "no help topic 'configuraton'; did you mean 'configuration'?"),
        ("chekc", "no help topic 'chekc'; did you mean 'check'?"),
        ("qqq", "no help topic 'qqq'; `shapefix help` lists the topics"),
        ("sf101", "'sf101' is a rule; did you mean `shapefix explain SF101`?"),
        ("in-features", "'in-features' is a rule; did you mean `shapefix explain SF501`?"),
    ],
)
def test_what_is_not_a_topic_gets_a_suggestion(name: str, message: str) -> None:
    ran = shapefix("help", name)
    assert (ran.code, ran.out, ran.err) == (2, "", f"error: {message}\n")


def test_a_terminal_gets_rendered_pages_in_a_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "sed s/^/paged:/")
    shown = ESCAPE.sub("", on_a_terminal("help", "limits"))
    lines = shown.replace("\r", "").splitlines()
    assert all(line.startswith("paged:") for line in lines)
    assert len(lines) > 20
    assert "# " not in shown
    assert "**" not in shown


def test_a_page_in_a_pipe_loads_no_renderer() -> None:
    assert not {"rich", "libcst", "torch", "shapefix.engine.analysis"} & imported("help", "limits")
    assert not {"rich", "shapefix.cli.manual"} & imported("--version")
