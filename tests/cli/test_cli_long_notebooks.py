"""Notebooks with a finding in each of many cells: the work grows with the cells, not with their square."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import shapefix

from shapefix.sources import text as texts


def times_read(folder: Path, cells: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How often the text of a notebook is made while it is checked."""
    sources = ["import torch", *("torch.zeros(2).view(3)" for _ in range(cells))]
    made: list[dict[str, object]] = [
        {"cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": None}
        for source in sources
    ]
    notebook = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "a.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    read: list[str] = []

    def source_of(path: str, data: bytes) -> object:
        read.append(path)
        return original(path, data)

    original = texts.source_of
    with monkeypatch.context() as patched:
        patched.setattr("shapefix.engine.source_overlay.source_of", source_of)
        ran = shapefix("check", "--no-cache", "--jobs", "1", "--output-format", "concise", "a.ipynb")
    assert ran.out.count("SF507") == cells, ran.out
    return len(read)


def test_a_notebook_is_not_read_again_for_each_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = times_read(tmp_path, 2, monkeypatch)
    assert times_read(tmp_path, 20, monkeypatch) == few > 0
