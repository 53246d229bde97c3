"""A run over files: each is answered from the cache, here, or in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from shapefix.diagnostics import Failure
from shapefix.engine.cache import Cache, fingerprint
from shapefix.engine.cache_entries import CachedResult, content_hash
from shapefix.engine.gc_control import seldom_collected
from shapefix.engine.settings import Settings
from shapefix.engine.source_overlay import Texts
from shapefix.engine.tasks import Answer, Answerer, Question
from shapefix.sources.project import project_root
from shapefix.sources.relevance import mentions_library
from shapefix.sources.text import Unreadable

WORTH_PROCESSES = 300_000
"""Bytes to analyse from which on several processes are faster than one."""
CHUNK = 100_000
"""Bytes that a worker gets at once; half of it where a folder ends."""


@dataclass(frozen=True)
class _Miss:
    """A question that the cache could not answer, and how it knows the content."""

    question: Question
    content: str


class Run:
    """Answers for many files, with what they share: texts, caches, and where their projects start.

    folders are absolute: files below one of them belong together where nothing else tells their project.
    """

    def __init__(self, settings: Settings, texts: Texts, folders: Sequence[str] = ()) -> None:
        self.settings = settings
        self.texts = texts
        self._caches: dict[tuple[str, str, frozenset[str], str | None], Cache] = {}
        self._folders = folders
        self._roots: dict[str, str] = {}

    def ask(self, paths: Iterable[str], take: Callable[[Answer], None]) -> None:
        """Give the answer for each file, named by its absolute path, to take, in any order.

        Files are read as they are needed: what is kept here does not grow with their number. Raises
        ConfigurationError.
        """
        jobs = self.settings.options.jobs
        misses = self._misses(paths, take)
        first: list[_Miss] = []
        if jobs is None:
            # Starting processes takes longer than a few files do.
            size = 0
            for miss in misses:
                first.append(miss)
                size += len(miss.question.data)
                if size >= WORTH_PROCESSES:
                    jobs = processors()
                    break
        everything = _chained(first, misses)
        if (jobs or 1) > 1:
            self._in_workers(everything, jobs or 1, take)
        else:
            self._here(everything, take)

    def question(self, path: str, data: bytes) -> Question:
        """What to ask about a file that holds data."""
        folder = os.path.dirname(path)  # noqa: PTH120
        root = self._roots.get(folder)
        if root is None:
            root = self._roots[folder] = root_of(path, self._folders)
        version = self.settings.transformers_version(path, root)
        return Question(path, data, root, self.settings.rules(path), version)

    def forget(self, path: str) -> None:
        """The file at path was written: no cache may go on believing what it knew of it."""
        for cache in self._caches.values():
            cache.forget(path)

    def _misses(self, paths: Iterable[str], take: Callable[[Answer], None]) -> Iterator[_Miss]:
        """Yield what has to be analysed; take all other answers at once."""
        for path in paths:
            try:
                data = self.texts.data(path)
            except Unreadable as error:
                take(Answer(path, failures=(Failure(path, error.message, error.row, error.column),)))
                continue
            question = self.question(path, data)
            cache = self._cache(question)
            content = content_hash(data) if cache else ""
            known = cache.get(path, content) if cache and not self.settings.options.verbose else None
            if known is not None:
                take(_remembered(path, known, mentions_library(data)))
            else:
                yield _Miss(question, content)

    def _here(self, misses: Iterable[_Miss], take: Callable[[Answer], None]) -> None:
        answerer = Answerer(self.texts.source)
        with seldom_collected() as collection:
            for miss in misses:
                answer = answerer.answer(miss.question)
                self._remember(miss, answer)
                take(answer)
                collection.after_a_file()

    def _in_workers(self, misses: Iterable[_Miss], processes: int, take: Callable[[Answer], None]) -> None:
        from shapefix.engine.workers import answered

        asked: dict[str, _Miss] = {}

        def chunks() -> Iterator[tuple[Question, ...]]:
            for chunk in _chunks(misses):
                asked.update((miss.question.path, miss) for miss in chunk)
                yield tuple(miss.question for miss in chunk)

        for answer in answered(chunks(), processes, self.texts.source):
            self._remember(asked.pop(answer.path), answer)
            take(answer)

    def _remember(self, miss: _Miss, answer: Answer) -> None:
        cache = self._cache(miss.question)
        if cache is None or not answer.lasting:
            return
        dependencies = cache.dependencies(answer.found, answer.missing)
        cache.put(answer.path, miss.content, CachedResult(answer.diagnostics, answer.failures, dependencies))

    def _cache(self, question: Question) -> Cache | None:
        """The cache for the rules and the project of a question; none for a text that is not on disk."""
        folder = self.settings.cache_dir(question.path)
        if folder is None or self.texts.laid_over(question.path) is not None:
            return None
        version = question.transformers_version
        key = (folder, question.root, question.rules, version)
        if key not in self._caches:
            made_with = (question.root, f"transformers {version}", *sorted(question.rules))
            self._caches[key] = Cache(folder, fingerprint(*made_with))
        return self._caches[key]


def root_of(path: str, folders: Iterable[str]) -> str:
    """The root of the project of the file at path, for folders as a Run takes them."""
    above = [each for each in folders if os.path.commonpath((each, path)) == each]
    return project_root(path, min(above, key=len, default=None))


def processors() -> int:
    """How many processes can run at once on this machine, as far as we may use it."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _remembered(path: str, known: CachedResult, relevant: bool) -> Answer:
    found = frozenset(path for path, content in known.dependencies.items() if content is not None)
    return Answer(path, known.diagnostics, known.failures, found, relevant=relevant, cached=True)


def _chained(first: list[_Miss], others: Iterator[_Miss]) -> Iterator[_Miss]:
    """The first ones, let go of one by one, then the others."""
    first.reverse()
    while first:
        yield first.pop()
    yield from others


def _chunks(misses: Iterable[_Miss]) -> Iterator[list[_Miss]]:
    chunk: list[_Miss] = []
    size = 0
    folder = ""
    for miss in misses:
        here = os.path.dirname(miss.question.path)  # noqa: PTH120
        if chunk and (size >= CHUNK or (size >= CHUNK // 2 and here != folder)):
            yield chunk
            chunk, size = [], 0
        chunk.append(miss)
        size += len(miss.question.data)
        folder = here
    if chunk:
        yield chunk
