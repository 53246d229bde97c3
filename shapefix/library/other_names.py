"""Longer names of functions and classes, such as `torch.utils.data.dataloader.DataLoader`.

`other_names.json` is written by `tests/library/generate_other_names.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files


def public_name(name: str) -> str:
    """Return the registered name of an object; any other name as it is."""
    return _public_names().get(name, name)


@cache
def _public_names() -> Mapping[str, str]:
    text = (files("shapefix.library") / "other_names.json").read_text(encoding="utf-8")
    return {other: name for package in json.loads(text).values() for other, name in package["names"].items()}
