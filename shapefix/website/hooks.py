"""Hooks of mkdocs: the pages made from the rule book, and links in all pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from site_pages import SitePage, adapted, made_pages, navigation

_CSS = ".md-grid { max-width: 75rem }\n.md-typeset pre > code { font-size: .58rem }\n"
"""The outputs of the README have 100 columns, which fit beside both menus at 1280 pixels."""
_made: list[SitePage] = []


def on_config(config: Any) -> Any:
    """Make the pages once, and the navigation."""
    _made[:] = made_pages()
    config["nav"] = navigation(_made)
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the made pages to those of the manual."""
    for page in _made:
        files.append(File.generated(config, page.uri, content=page.text))
    files.append(File.generated(config, "extra.css", content=_CSS))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Adapt the text of a page."""
    return adapted(markdown, page.file.src_uri)
