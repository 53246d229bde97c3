"""Makes the README of the package: its links lead to the repository, where its other files are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class PackageReadme(MetadataHookInterface):
    """Replace relative links by those to the tag of the version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README of the package."""
        tag = f"{metadata['urls']['Repository']}/blob/v{metadata['version']}/"
        text = (Path(self.root) / "README.md").read_text("utf-8")
        text = re.sub(r"\]\((?!https?://|#)", f"]({tag}", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
