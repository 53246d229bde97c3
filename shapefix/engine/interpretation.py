"""Shared state of all interpreter runs: parsed modules of a project, the library, and limits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import libcst as cst

from shapefix.diagnostics import Failure
from shapefix.engine.syntax_errors import python_failure
from shapefix.interpreter.modules import Module, ModuleCache
from shapefix.interpreter.program import parsed
from shapefix.library.library import TorchLibrary
from shapefix.sources.project import PathProbes, Project
from shapefix.sources.text import RefusedFile, SourceText, Unreadable, read_bytes

READING = 2_000_000
"""How many bytes of other project files one run reads."""
DEEPEST_RECURSION = 12_000
LARGEST_DATA = 30_000
"""Bytes of the largest file read as data: a configuration, not a table of samples."""


class ProjectFiles:
    """The project as one run sees it: every loaded module stays loaded until the run is over."""

    def __init__(self, project: Project, cache: ModuleCache, reading: int = READING) -> None:
        self._project = project
        self._cache = cache
        self._modules: dict[str, Module | None] = {}
        self._left = reading
        self.probes = PathProbes()

    def locate(self, importing: Module, module: str, level: int) -> str | None:
        """Return the path of an imported module; None outside the project."""
        dotted = self._project.resolve(importing.path, level, module)
        found = None if not dotted else self._project.locate(dotted, importing.path, self.probes)
        # A file with the name of the library that it wraps does not import itself.
        return None if found == importing.path else found

    def module(self, path: str) -> Module | None:
        """Return the parsed module at a path; None if it cannot be read or parsed."""
        if path not in self._modules:
            self._modules[path] = self._load(path)
        return self._modules[path]

    def allow(self, size: int) -> None:
        """Read at most this many more bytes."""
        self._left = min(self._left, size)

    def text(self, script: Module, path: str) -> str | None:
        """Return the text of a small file opened by a relative path, from the root or the script's folder.

        None for a file that is missing, too large or outside the project, and if the two folders have
        different files of this name.
        """
        if Path(path).is_absolute():
            return None
        root = Path(self._project.root)
        texts: list[str | None] = []
        for folder in dict.fromkeys((root, Path(script.path).parent)):
            found = Path(os.path.normpath(folder / path))
            if not found.is_relative_to(root):
                continue
            try:
                texts.append(read_bytes(str(found), LARGEST_DATA).decode("utf-8"))
            except RefusedFile:
                texts.append(None)
            except (Unreadable, UnicodeDecodeError):
                self.probes.missing.add(str(found))
                continue
            self.probes.found.add(str(found))
        return texts[0] if texts and len(set(texts)) == 1 else None

    def add(self, module: Module) -> None:
        """Add a parsed module."""
        self._modules[module.path] = module

    def release(self) -> None:
        """Free the state of this run."""
        for module in self._modules.values():
            if module is not None:
                module.forget_positions()

    def _load(self, path: str) -> Module | None:
        try:
            # A module in the cache counts in full, or results would depend on the order of files.
            self._left -= Path(path).stat().st_size
            return self._cache.get(path) if self._left >= 0 else None
        except (OSError, Unreadable, cst.ParserSyntaxError, RecursionError):
            # The file is reported when it is checked itself; here its names are unknown.
            return None


class ProjectModules:
    """Parses the files of one project; consecutive files share parsed modules and the library.

    read returns the text of a path and may raise Unreadable. lines limits the size of the cache, in lines.
    signatures are declared sizes of functions, by qualified name.
    """

    def __init__(
        self,
        project: Project,
        read: Callable[[str], SourceText],
        transformers_version: str | None,
        lines: int | None = None,
        signatures: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.library = TorchLibrary(signatures)
        self.versions: Mapping[str, str] = (
            {} if transformers_version is None else {"transformers": transformers_version}
        )
        self._project = project

        def parse(path: str) -> Module:
            return self._parse(read(path))

        self._cache = ModuleCache(parse) if lines is None else ModuleCache(parse, lines=lines)

    def module(self, source: SourceText) -> Module:
        """Parse a text, or return its module from the cache. Raises libcst.ParserSyntaxError."""
        return self._cache.kept(source.path, source.text) or self._cache.add(self._parse(source))

    def files(self, reading: int = READING) -> ProjectFiles:
        """Return the project's files for one run, limited to this many bytes."""
        return ProjectFiles(self._project, self._cache, reading)

    def files_with(self, module: Module, reading: int = READING) -> ProjectFiles:
        """Return the project's files for one run, one of them parsed already."""
        files = self.files(reading)
        files.add(module)
        return files

    def forget(self, path: str) -> None:
        """Drop the parsed module of a changed file."""
        self._cache.drop(path)

    def _parse(self, source: SourceText) -> Module:
        return parsed(source.path, self._project.module_name(source.path), source.text)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Raise Python's recursion limit for deeply nested code."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, DEEPEST_RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


_TOKENIZER = "tokenizer error: no matching outer block"


def parse_failure(source: SourceText, error: cst.ParserSyntaxError | RecursionError) -> Failure:
    """Explain why a text could not be parsed or run, in Python's own words if Python rejects it, too."""
    failure = python_failure(source)
    if failure is not None:
        return failure
    if isinstance(error, RecursionError):
        return Failure(source.path, "is nested too deeply to be analyzed")
    text = error.message.removeprefix("Syntax Error:").strip()
    message = text.splitlines()[0] if text else "invalid syntax"
    if message.startswith(_TOKENIZER):
        # libcst refuses some mixtures that Python reads; it does not say where.
        return Failure(source.path, "cannot be parsed: tabs and spaces are mixed in its indentation")
    return Failure(source.path, f"cannot be parsed: {message}", error.raw_line, error.raw_column + 1)
