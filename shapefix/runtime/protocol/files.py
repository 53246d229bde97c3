"""Writes, deletions and uploads of the script."""

from __future__ import annotations

from typing import Literal, TypedDict


class FileWrittenLine(TypedDict):
    """A file written by the script, redirected to the probe's folder.

    before is the size, time and inode of the real file, empty if not a regular file, None if it is missing.
    """

    kind: Literal["file_written"]
    path: str
    before: list[int] | None


class WriteRefusedLine(TypedDict):
    """A failed write, since the probe cannot redirect it."""

    kind: Literal["write_refused"]
    path: str


class WriteProtectionLine(TypedDict):
    """The system's protection of the working tree: by an overlay mount, by Landlock, or none.

    roots are the protected folders; reason is why no better method is used.
    """

    kind: Literal["write_protection"]
    method: Literal["overlay", "landlock", "none"]
    roots: list[str]
    reason: str | None


class UploadSkippedLine(TypedDict):
    """A skipped upload to the Hugging Face hub."""

    kind: Literal["upload_skipped"]
    function: str
    repository: str
