"""Check many files: from the cache, in this process, or in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from shapefix.diagnostics import Failure
from shapefix.engine.cache import Cache, fingerprint
from shapefix.engine.cache_entries import CachedResult, content_hash
from shapefix.engine.gc_control import gc_paused
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import SourceOverlay
from shapefix.engine.tasks import FileChecker, FileResult, FileTask
from shapefix.engine.user_cache import signing_key
from shapefix.light_dataclasses import dataclass
from shapefix.sources.project import project_root
from shapefix.sources.relevance import mentions_library
from shapefix.sources.suppressions import has_suppressions
from shapefix.sources.text import Unreadable

WORTH_PROCESSES = 300_000
"""Above this number of bytes to analyze, several processes are faster than one."""
CHUNK = 100_000
"""Bytes sent to a worker at once; half of it at the end of a folder."""


@dataclass(frozen=True)
class _Miss:
    """A task without a result in the cache, and the content hash of its file."""

    task: FileTask
    content: str


class BatchRunner:
    """Checks many files with shared texts, caches and project roots.

    folders are absolute: files below one of them are one project unless a repository or project file says
    otherwise.
    """

    def __init__(self, settings: Settings, overlay: SourceOverlay, folders: Sequence[str] = ()) -> None:
        self.settings = settings
        self.overlay = overlay
        self._caches: dict[object, Cache] = {}
        self._folders = folders
        self.checker: FileChecker | None = None
        """The checker of all files of this process; without one, each check has its own."""
        self._roots: dict[str, str] = {}

    def check(self, paths: Iterable[str], take: Callable[[FileResult], None]) -> None:
        """Check files by absolute path, and pass each result to take, in any order.

        Files are read one by one: memory does not grow with their number. Raises ConfigurationError.
        """
        jobs = self.settings.options.jobs
        misses = self._misses(paths, take)
        first: list[_Miss] = []
        if jobs is None:
            # Starting processes takes longer than checking a few files.
            size = 0
            for miss in misses:
                first.append(miss)
                size += len(miss.task.data)
                if size >= WORTH_PROCESSES:
                    jobs = processors()
                    break
        everything = _chained(first, misses)
        if (jobs or 1) > 1:
            self._in_workers(everything, jobs or 1, take)
        else:
            self._in_process(everything, take)

    def task(self, path: str, data: bytes) -> FileTask:
        """Return the task for a file with this content."""
        folder = os.path.dirname(path)  # noqa: PTH120
        root = self._roots.get(folder)
        if root is None:
            root = self._roots[folder] = project_root_of(path, self._folders)
        top = requirements_root(root, self._folders)
        version = self.settings.transformers_version(path, top)
        oldest = self.settings.oldest_versions(path, top)
        signatures = self.settings.configuration(path).signatures
        return FileTask(path, data, root, self.settings.rules(path), version, oldest, signatures)

    def forget(self, path: str) -> None:
        """Drop cached knowledge of a written file."""
        for cache in self._caches.values():
            cache.forget(path)

    def _misses(self, paths: Iterable[str], take: Callable[[FileResult], None]) -> Iterator[_Miss]:
        """Yield the tasks without a cached result; pass cached results to take at once."""
        for path in paths:
            try:
                data = self.overlay.data(path)
            except Unreadable as error:
                take(FileResult(path, failures=(Failure(path, error.message, error.row, error.column),)))
                continue
            task = self.task(path, data)
            cache = self._cache(task)
            content = content_hash(data) if cache else ""
            known = cache.get(path, content) if cache else None
            if known is not None:
                take(_remembered(path, known, data))
            else:
                yield _Miss(task, content)

    def _in_process(self, misses: Iterable[_Miss], take: Callable[[FileResult], None]) -> None:
        checker = self.checker or FileChecker(self.overlay.source)
        with gc_paused() as collector:
            for miss in misses:
                result = checker.check(miss.task)
                self._remember(miss, result)
                take(result)
                collector.collect_if_grown()

    def _in_workers(
        self, misses: Iterable[_Miss], processes: int, take: Callable[[FileResult], None]
    ) -> None:
        from shapefix.engine.workers import results_of

        sent: dict[str, _Miss] = {}

        def chunks() -> Iterator[tuple[FileTask, ...]]:
            for chunk in _chunks(misses):
                sent.update((miss.task.path, miss) for miss in chunk)
                yield tuple(miss.task for miss in chunk)

        for result in results_of(chunks(), processes, self.overlay.source):
            self._remember(sent.pop(result.path), result)
            take(result)

    def _remember(self, miss: _Miss, result: FileResult) -> None:
        cache = self._cache(miss.task)
        if cache is None or not result.cacheable:
            return
        dependencies = cache.dependencies(result.found, result.missing)
        cached = CachedResult(
            result.diagnostics, result.failures, dependencies, result.unchecked, result.called
        )
        cache.put(result.path, miss.content, cached)

    def _cache(self, task: FileTask) -> Cache | None:
        """Return the cache for the rules and project of a task; None while any text is in memory.

        The result of a file on disk may depend on such a text as well.
        """
        folder = self.settings.cache_dir(task.path)
        signed_with = None if folder is None else signing_key()
        if folder is None or signed_with is None or self.overlay:
            return None
        version, oldest = task.transformers_version, task.oldest_versions
        key = (folder, task.root, task.rules, version, oldest, task.signatures)
        if key not in self._caches:
            versions = f"transformers {version}", f"at least {oldest}"
            made_with = (task.root, *versions, str(task.signatures), *sorted(task.rules))
            self._caches[key] = Cache(folder, fingerprint(*made_with), signed_with)
        return self._caches[key]


def project_root_of(path: str, folders: Iterable[str]) -> str:
    """Return the root of the project of the file at path, for folders as in BatchRunner."""
    return project_root(path, _checked_folder(path, folders))


def requirements_root(root: str, folders: Iterable[str]) -> str:
    """Return the last folder above a project with requirements for it.

    A part of a checked repository may have a setup file of its own.
    """
    return _checked_folder(root, folders) or root


def _checked_folder(path: str, folders: Iterable[str]) -> str | None:
    """Return the outermost of some checked folders around a path, or the path itself if it is one."""
    above = [each for each in folders if os.path.commonpath((each, path)) == each]
    return min(above, key=len, default=None)


def processors() -> int:
    """Return the number of processors available to this process."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _remembered(path: str, known: CachedResult, data: bytes) -> FileResult:
    relevant = mentions_library(data)
    found = frozenset(path for path, content in known.dependencies.items() if content is not None)
    return FileResult(
        path,
        known.diagnostics,
        known.failures,
        found,
        unchecked=known.unchecked,
        relevant=relevant,
        cached=True,
        called=known.called,
        has_suppressions=relevant and has_suppressions(data),
    )


def _chained(first: list[_Miss], others: Iterator[_Miss]) -> Iterator[_Miss]:
    """Yield the first tasks, releasing each, then the others."""
    first.reverse()
    while first:
        yield first.pop()
    yield from others


def _chunks(misses: Iterable[_Miss]) -> Iterator[list[_Miss]]:
    chunk: list[_Miss] = []
    size = 0
    folder = ""
    for miss in misses:
        here = os.path.dirname(miss.task.path)  # noqa: PTH120
        if chunk and (size >= CHUNK or (size >= CHUNK // 2 and here != folder)):
            yield chunk
            chunk, size = [], 0
        chunk.append(miss)
        size += len(miss.task.data)
        folder = here
    if chunk:
        yield chunk
