"""Each step of the tutorials does what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from generated_docs import released
from tutorials import BLOCK, FOLDER, checked, reading_in

pytestmark = pytest.mark.slow

PAGES = [path for path in sorted(FOLDER.glob("tutorial-*.md")) if path.stem != "tutorial-editor"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(page: Path, tmp_path: Path) -> None:
    with reading_in(tmp_path) as reader:
        checked(page, released(reader.follow(page.read_text("utf-8"))))


def test_tutorials_have_steps() -> None:
    assert len(PAGES) >= 4
    for page in PAGES:
        kinds = [block["kind"] for block in BLOCK.finditer(page.read_text("utf-8"))]
        assert kinds.count("console") >= 3, page.stem
