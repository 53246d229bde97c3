"""The files of a proved copy are written all or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapefix.repair import writes
from shapefix.runtime.repair.patched_sources import OriginalSources, PatchedSources
from shapefix.runtime.repair.writing import FilesNotWritten, write_all
from shapefix.sources.text import SourceText


def changes(folder: Path, *names: str) -> list[tuple[SourceText, SourceText]]:
    """Files of a folder that hold their own names, and the same in capitals as their new texts."""
    for name in names:
        (folder / name).write_text(name)
    paths = [str((folder / name).resolve()) for name in names]
    sources = PatchedSources(OriginalSources(), {path: Path(path).name.upper() for path in paths})
    return list(sources.changes())


def held(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_all_files_get_their_new_texts(tmp_path: Path) -> None:
    write_all(changes(tmp_path, "a", "b"))
    assert held(tmp_path) == {"a": "A", "b": "B"}


def test_a_file_that_somebody_has_changed_meanwhile_is_left_alone_and_so_are_the_others(
    tmp_path: Path,
) -> None:
    made = changes(tmp_path, "a", "b", "c")
    (tmp_path / "b").write_text("mine")
    with pytest.raises(FilesNotWritten, match="changed on disk") as caught:
        write_all(made)
    assert Path(caught.value.path).name == "b"
    assert held(tmp_path) == {"a": "a", "b": "mine", "c": "c"}


def test_a_file_that_cannot_be_written_leaves_all_as_they_were(unprivileged: Path) -> None:
    (unprivileged / "locked").mkdir()
    made = [*changes(unprivileged, "a"), *changes(unprivileged / "locked", "b")]
    (unprivileged / "locked").chmod(0o555)
    with pytest.raises(FilesNotWritten, match="Permission denied"):
        write_all(made)
    assert (unprivileged / "a").read_text() == "a"
    assert held(unprivileged / "locked") == {"b": "b"}


@pytest.mark.parametrize("after", [False, True], ids=["before-the-write", "after-the-write"])
def test_an_interruption_in_the_middle_leaves_all_as_they_were(tmp_path: Path, after: bool) -> None:
    made = changes(tmp_path, "a", "b", "c")
    left = [1]

    def write(path: str, data: bytes, expected: bytes) -> None:
        if after:
            writes.write(path, data, expected)
        if left and Path(path).name == "b":
            left.clear()
            raise KeyboardInterrupt
        if not after:
            writes.write(path, data, expected)

    with pytest.raises(KeyboardInterrupt):
        write_all(made, write)
    assert held(tmp_path) == {"a": "a", "b": "b", "c": "c"}
