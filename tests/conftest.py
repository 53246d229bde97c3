"""Fixtures for all tests; and what tests have counted is shown at the end of a run, also where they pass."""

from __future__ import annotations

import compileall
import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checking import Check
from hypothesis import settings

# A run of the tests is a verdict on the change; other examples are drawn by --hypothesis-profile=default.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.load_profile("fixed")


def pytest_configure(config: pytest.Config) -> None:
    """Compile shapefix for the processes that tests start, also where Python writes no bytecode."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).parents[1] / "shapefix", quiet=2)


@pytest.fixture(scope="session")
def _folders_of_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """New folders, one after the other; tmp_path_factory reads all former ones to number the next."""
    parent = tmp_path_factory.mktemp("caches")
    return (parent / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def user_cache(_folders_of_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder of the user, also for child processes."""
    folder = next(_folders_of_caches)
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    """Make empty files below a temporary folder, and return the folder."""

    def make(*names: str) -> Path:
        for name in names:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return tmp_path

    return make


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check scripts in a temporary folder."""
    return Check(tmp_path)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """An empty folder, in a process that file permissions apply to (to root they do not)."""
    folder = Path(tempfile.mkdtemp())
    user = os.geteuid()
    if user == 0:
        os.chown(folder, 65534, 65534)
        os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(user)
        for at, folders, _ in os.walk(folder):
            for name in folders:
                (Path(at) / name).chmod(0o755)
        shutil.rmtree(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the examples of the rule pages that run with torch as slow, and deal the tests to the processes.

    Each process gets its share of the slow tests, and runs them first. Otherwise the last minutes belong to a
    few slow tests, and processes are idle. Tests of one file, or of one page, come one after the other: a
    process remembers what an example of the page has done.
    """
    for item in items:
        if item.path.stem == "test_pages_run" and "example" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: (item.get_closest_marker("slow") is None, _page(item)))
    processes: int = getattr(config, "workerinput", {}).get("workercount", 1)
    dealt: list[list[pytest.Item]] = [[] for _ in range(processes)]
    for is_fast in (False, True):
        chosen = (item for item in items if (item.get_closest_marker("slow") is None) is is_fast)
        for _, group in itertools.groupby(chosen, key=_page):
            # Each process begins with as many tests as the others.
            min(dealt, key=len).extend(group)
    items[:] = itertools.chain.from_iterable(dealt)


def _page(item: pytest.Item) -> tuple[str, str]:
    """The file of a test, and the rule page that it is about, if any."""
    given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    page = getattr(given.get("example"), "page", given.get("page"))
    return str(item.path), page.stem if isinstance(page, Path) else ""


def pytest_collection_finish() -> None:
    """Leave the imported libraries out of every later collection of garbage, and collect rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, value in getattr(report, "user_properties", ()):
                if name == "counted":
                    terminalreporter.write_line(str(value))
