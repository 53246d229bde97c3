"""`shapefix config ruff`: let ruff accept our codes in `# noqa` comments."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.output import write
from shapefix.cli.terminal import UnusableFile, echo_err
from shapefix.report.view import one_line
from shapefix.sources.text import Unreadable, read_settings, reason

_CODE = "SF"
_NAMES = (".ruff.toml", "ruff.toml", "pyproject.toml")


def ruff_configuration(apply: bool) -> int:
    """Show the setting of ruff for our codes, or write it to ruff's configuration. Raises UnusableFile."""
    path = _configuration_file(Path.cwd())
    if path is None:
        write([_lines("pyproject.toml")])
        if apply:
            echo_err("error: no configuration of ruff, and no pyproject.toml, in this folder or above it")
            return FAILED
        return CLEAN
    text = _read(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnusableFile(str(path), f"is not valid TOML: {error}") from None
    name = one_line(str(path))
    wanted = _with_external(content, path.name)
    if wanted == content:
        echo_err(f"{name} has the setting already.")
        return CLEAN
    if not apply:
        write([_lines(path.name)])
        echo_err(f"note: `shapefix config ruff --apply` writes this to {name}")
        return CLEAN
    # An edit is right if the whole document has this one change.
    found = next((each for each in _candidates(text, path.name) if _parsed(each) == wanted), None)
    if found is None:
        echo_err(f"error: {name} cannot be edited automatically; add the line above")
        write([_lines(path.name)])
        return FAILED
    try:
        path.write_bytes(found.encode("utf-8"))
    except OSError as error:
        raise UnusableFile(str(path), f"cannot be written: {reason(error)}") from None
    echo_err(f'Added external = ["{_CODE}"] to {name}.')
    return CLEAN


def _configuration_file(folder: Path) -> Path | None:
    """Return the file with the settings of ruff for a folder, or the pyproject.toml to write them to."""
    fallback: Path | None = None
    for each in (folder, *folder.parents):
        for name in _NAMES:
            path = each / name
            if not path.is_file():
                continue
            if name != "pyproject.toml" or b"[tool.ruff" in path.read_bytes():
                return path
            fallback = fallback or path
    return fallback


def _read(path: Path) -> str:
    try:
        return read_settings(str(path)).decode("utf-8")
    except Unreadable as error:
        raise UnusableFile(str(path), error.message) from None
    except UnicodeDecodeError:
        raise UnusableFile(str(path), "is not valid UTF-8, as TOML must be") from None


def _prefix(name: str) -> str:
    return "tool.ruff." if name == "pyproject.toml" else ""


def _lines(name: str) -> str:
    return f'[{_prefix(name)}lint]\nexternal = ["{_CODE}"]\n'


def _with_external(content: dict[str, Any], name: str) -> dict[str, Any] | None:
    """Return the content with our codes as external; None if another type of value is there."""
    wanted = deepcopy(content)
    table: Any = wanted
    for part in (*_prefix(name).split(".")[:-1], "lint"):
        # Versions of ruff before 0.2 have the key one table higher, and later ones still read it.
        if (
            part == "lint"
            and isinstance(table.get("external"), list)
            and "external" not in table.get("lint", {})
        ):
            break
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            return None
    external = table.setdefault("external", [])
    if not isinstance(external, list):
        return None
    if not any(isinstance(each, str) and each and _CODE.startswith(each) for each in external):
        external.insert(0, _CODE)
    return wanted


def _candidates(text: str, name: str) -> Iterator[str]:
    """Yield the text with the setting at each possible place."""
    newline = "\r\n" if "\r\n" in text else "\n"
    for found in re.finditer(r"\bexternal\s*=\s*\[(\s*\])?", text):
        code = f'"{_CODE}"' if found[1] else f'"{_CODE}", '
        at = found.end() if not found[1] else found.start(1)
        yield text[:at] + code + text[at:]
    table = re.escape(_prefix(name).rstrip("."))
    headers = [
        (rf"{table}\.lint" if table else "lint", "external"),
        *([(table, "lint.external")] if table else []),
    ]
    for header, key in headers:
        for found in re.finditer(rf"^[ \t]*\[{header}\][^\n]*\n?", text, re.MULTILINE):
            start = text[: found.end()].rstrip("\r\n")
            yield f'{start}{newline}{key} = ["{_CODE}"]{newline}{text[found.end() :]}'
    yield f"{text.rstrip()}{newline}{newline}{_lines(name).replace(chr(10), newline)}".lstrip()
    yield f'lint.external = ["{_CODE}"]{newline}{text}'


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
