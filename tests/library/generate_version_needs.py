"""Write shapefix/sources/version_needs.json from the metadata on PyPI; run it by hand after new releases."""

from __future__ import annotations

import io
import json
import re
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import parse_wheel_filename
from packaging.version import Version

WRITTEN = Path(__file__).parents[2] / "shapefix" / "sources" / "version_needs.json"
LIBRARIES = {
    "lightning": "pytorch-lightning",
    "transformers": "transformers",
    "trl": "trl",
    "peft": "peft",
    "accelerate": "accelerate",
    "datasets": "datasets",
    "numpy": "numpy",
}
"""Projects on PyPI, by the names of libraries here."""
NEEDED = frozenset({"torch", "transformers", "accelerate", "datasets"})
PYTHON = "python"


def fetched(address: str) -> bytes:
    """Return what an address answers."""
    request = urllib.request.Request(address, headers={"Accept": "application/vnd.pypi.simple.v1+json, */*"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


class RemoteFile(io.RawIOBase):
    """A file at an address, of which only the parts that are read are fetched."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._at = 0
        with urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=60) as answer:
            self._size = int(answer.headers["Content-Length"])

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, count: int = -1) -> bytes:
        end = self._size if count < 0 else min(self._at + count, self._size)
        if end <= self._at:
            return b""
        part = {"Range": f"bytes={self._at}-{end - 1}"}
        with urllib.request.urlopen(
            urllib.request.Request(self._address, headers=part), timeout=60
        ) as answer:
            data = bytes(answer.read())
        self._at = end
        return data


def metadata(wheel: str) -> Message:
    """Return the metadata of a wheel: those of older ones are only in the wheel."""
    try:
        text = fetched(f"{wheel}.metadata")
    except urllib.error.HTTPError:
        with zipfile.ZipFile(RemoteFile(wheel)) as archive:
            (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
            text = archive.read(name)
    return Parser().parsestr(text.decode())


def minors(project: str) -> dict[str, str]:
    """The address of a wheel of the last release of each minor version, by that version."""
    last: dict[str, tuple[Version, str]] = {}
    for file in json.loads(fetched(f"https://pypi.org/simple/{project}/"))["files"]:
        if not file["filename"].endswith(".whl") or file["yanked"]:
            continue
        _, version, _, _ = parse_wheel_filename(file["filename"])
        minor = f"{version.major}.{version.minor}"
        if not version.is_prerelease and (minor not in last or version > last[minor][0]):
            last[minor] = (version, file["url"])
    return {minor: last[minor][1] for minor in sorted(last, key=Version)}


def oldest(specifier: SpecifierSet) -> str | None:
    """The lower bound of a requirement, as major and minor version."""
    bounds = [
        Version(each.version.rstrip(".*")) for each in specifier if each.operator in (">=", "==", "~=", ">")
    ]
    return f"{max(bounds).major}.{max(bounds).minor}" if bounds else None


def needs(wheel: str) -> Iterator[tuple[str, str]]:
    """The libraries needed by a release, without those of extras, each with its oldest version."""
    about = metadata(wheel)
    python = about["Requires-Python"]
    if python and (bound := oldest(SpecifierSet(python))):
        yield PYTHON, bound
    for text in about.get_all("Requires-Dist", ()):
        # pip read `>=1.9.*`, which is no standard.
        required = Requirement(re.sub(r"([<>]=?\s*[\d.]+)\.\*", r"\1", text))
        if required.name.lower() in NEEDED and "extra" not in str(required.marker):
            if bound := oldest(required.specifier):
                yield required.name.lower(), bound


def table(project: str) -> dict[str, dict[str, str]]:
    """For each needed library the versions with another bound than the one before, and that bound."""
    found: dict[str, dict[str, str]] = {}
    for minor, wheel in minors(project).items():
        try:
            pairs = dict(needs(wheel))
        except (InvalidRequirement, InvalidSpecifier):
            # Written before there was a form for them.
            continue
        for needed, bound in pairs.items():
            steps = found.setdefault(needed, {})
            if not steps or list(steps.values())[-1] != bound:
                steps[minor] = bound
    return found


if __name__ == "__main__":
    tables = {library: table(project) for library, project in LIBRARIES.items()}
    WRITTEN.write_text(json.dumps(tables, indent=2) + "\n", "utf-8")
