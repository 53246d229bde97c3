"""The diff in color."""

from __future__ import annotations

import pytest

from shapefix.report.difference import colored


def stretches(*rows: str) -> dict[str, str]:
    """The style of each stretch of a diff with these rows below its header."""
    text = colored(["--- a.py\n", "+++ a.py\n", "@@ -1 +1 @@\n", *rows])
    found: dict[str, str] = {}
    for span in text.spans:
        found[text.plain[span.start : span.end]] = str(span.style)
    return found


def test_the_changed_word_stands_out_in_its_line() -> None:
    found = stretches(" import torch\n", "-y = x.view(-1)\n", "+y = x.reshape(-1)\n")
    assert found["view"] == "bold reverse red"
    assert found["reshape"] == "bold reverse green"
    assert found["-y = x."] == "red"
    assert found["--- a.py\n"] == "bold"
    assert found["@@ -1 +1 @@\n"] == "cyan"


def test_lines_that_have_little_in_common_are_only_red_and_green() -> None:
    found = stretches("-x = 1\n", "+for batch in loader:\n")
    assert (found["-x = 1\n"], found["+for batch in loader:\n"]) == ("red", "green")


def test_added_lines_alone_are_green_even_where_they_look_like_a_header() -> None:
    assert stretches("+++ x\n")["+++ x\n"] == "green"


@pytest.mark.parametrize("row", ["-x\n", "+x\n", " x\n"])
def test_every_character_of_the_diff_is_there(row: str) -> None:
    rows = [
        "--- a.py\n",
        "+++ a.py\n",
        "@@ -1 +1 @@\n",
        row,
        "-y = 1\n",
        "\\ No newline at end of file\n",
        "+y = 2\n",
    ]
    assert colored(rows).plain == "".join(rows)


def test_control_characters_are_shown_as_pictures() -> None:
    assert "+␛[2J\n" in colored(["--- a\n", "+++ a\n", "+\x1b[2J\n"]).plain


def test_carriage_returns_are_shown_only_where_lines_differ_in_them() -> None:
    header = ["--- a.py\n", "+++ a.py\n"]
    assert "␍" not in colored([*header, " a\r\n", "-x\r\n", "+y\r\n"]).plain
    assert "-x␍\n+x\n" in colored([*header, "-x\r\n", "+x\n"]).plain
