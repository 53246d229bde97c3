from __future__ import annotations

import json
import multiprocessing
import os
import random
import subprocess
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapefix.diagnostics import (
    Applicability,
    Arithmetic,
    Combination,
    Comparison,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    Failure,
    Fix,
    Import,
    Severity,
    Span,
    Variable,
)
from shapefix.engine.cache import Cache, fingerprint
from shapefix.engine.cache_entries import CachedResult, content_hash, from_bytes, to_bytes
from shapefix.sources.project import PathProbes, Project

Tree = Callable[..., Path]

KEY = b"k" * 32

# A file name that is not UTF-8 reaches Python as such characters.
TEXT = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\udc80\udcff")), max_size=8
)
NUMBER = st.integers(1, 10**6)
SPAN = st.builds(Span, TEXT, NUMBER, NUMBER, NUMBER, NUMBER)
MAYBE = st.none() | TEXT


def some(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=2).map(tuple)


FIX = st.builds(
    Fix,
    st.sampled_from(Applicability),
    TEXT,
    some(st.builds(Edit, SPAN, TEXT)),
    some(st.builds(Import, TEXT, MAYBE)),
)
VARIABLE = st.builds(Variable, TEXT, st.none() | st.integers(-4, 4))
EXPRESSION = st.recursive(
    VARIABLE | st.integers(-9, 9),
    lambda part: st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "//", "%"]), part, part),
    max_leaves=3,
)
RELATION = st.sampled_from([">", "!=", "is not a multiple of"])
PREDICATE = st.recursive(
    st.builds(Comparison, EXPRESSION, RELATION, EXPRESSION),
    lambda part: st.builds(Combination, st.sampled_from(["and", "or"]), some(part)),
    max_leaves=3,
)
CONDITION = st.builds(Condition, TEXT, st.none() | PREDICATE)
DIAGNOSTIC = st.builds(
    Diagnostic,
    TEXT,
    TEXT,
    st.sampled_from(Severity),
    TEXT,
    SPAN,
    some(st.builds(Evidence, SPAN, TEXT)),
    st.none() | CONDITION,
    some(FIX),
)
FAILURE = st.builds(Failure, TEXT, TEXT, st.none() | NUMBER, st.none() | NUMBER)
PATH = st.tuples(st.sampled_from(["", "/", "/a/", "/a/b/"]), TEXT).map("".join)
RESULT = st.builds(
    CachedResult,
    some(DIAGNOSTIC),
    some(FAILURE),
    st.dictionaries(PATH, MAYBE, max_size=4),
    called=st.frozensets(st.tuples(PATH, TEXT), max_size=3),
)

A_RESULT = CachedResult(
    (Diagnostic("SF101", "view", Severity.ERROR, "merges", Span("a.py", 1, 2, 3, 4)),),
    (Failure("a.py", "oh"),),
)


@given(RESULT, TEXT, TEXT)
def test_results_come_back_as_they_were(result: CachedResult, mark: str, content: str) -> None:
    entry = from_bytes(to_bytes(mark, content, result, name="n", key=KEY), name="n", key=KEY)
    assert entry is not None
    assert (entry.fingerprint, entry.content) == (mark, content)
    assert entry.result() == result
    for diagnostic in entry.result().diagnostics:
        assert type(diagnostic.severity) is Severity


@given(RESULT, st.data())
def test_a_damaged_entry_is_no_entry(result: CachedResult, data: st.DataObject) -> None:
    whole = to_bytes("f", "c", result, name="n", key=KEY)
    at = data.draw(st.integers(0, len(whole) - 1))
    assert from_bytes(whole[:at], name="n", key=KEY) is None
    flipped = bytes([whole[at] ^ data.draw(st.integers(1, 255))])
    assert from_bytes(whole[:at] + flipped + whole[at + 1 :], name="n", key=KEY) is None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(f"import torch  # {name}\n")
    return tmp_path


def keep(root: Path, result: CachedResult, mark: str = "f") -> None:
    Cache(f"{root}/.cache", mark, KEY).put(f"{root}/a.py", content_hash((root / "a.py").read_bytes()), result)


def kept(root: Path, mark: str = "f") -> CachedResult | None:
    """What a later run gets for a.py."""
    return Cache(f"{root}/.cache", mark, KEY).get(f"{root}/a.py", content_hash((root / "a.py").read_bytes()))


def test_a_result_is_kept_for_the_next_run(root: Path) -> None:
    assert kept(root) is None
    keep(root, A_RESULT)
    assert kept(root) == A_RESULT


def test_another_content_or_fingerprint_is_another_result(root: Path) -> None:
    keep(root, A_RESULT)
    assert kept(root, mark="g") is None
    (root / "a.py").write_text("import torch\n")
    assert kept(root) is None
    keep(root, CachedResult())
    assert kept(root) == CachedResult()


def test_a_dependency_that_changes_or_vanishes_counts(root: Path) -> None:
    dependencies = Cache(f"{root}/.cache", "f", KEY).dependencies([f"{root}/b.py"], [])
    keep(root, CachedResult(dependencies=dependencies))
    assert kept(root) is not None
    original = (root / "b.py").read_bytes()
    (root / "b.py").write_text("changed")
    assert kept(root) is None
    (root / "b.py").write_bytes(original)
    assert kept(root) is not None
    (root / "b.py").unlink()
    assert kept(root) is None
    (root / "b.py").mkdir()
    assert kept(root) is None


@pytest.mark.parametrize("new", ["c.py", "pkg", "pkg/c.py"])
def test_a_file_that_appears_where_none_was_counts(root: Path, new: str) -> None:
    (root / "pkg2").mkdir()
    missing = [f"{root}/{name}" for name in ("c.py", "pkg", "pkg/c.py")]
    keep(root, CachedResult(dependencies=dict.fromkeys(missing)))
    (root / "unrelated.py").touch()
    assert kept(root) is not None
    (root / new).parent.mkdir(exist_ok=True)
    (root / new).touch()
    assert kept(root) is None


def test_a_module_that_appears_before_the_one_that_was_found_counts(root: Path) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "run.py").touch()
    probes = PathProbes()
    assert Project(str(root)).locate("b", f"{root}/sub/run.py", probes) == f"{root}/b.py"
    cache = Cache(f"{root}/.cache", "f", KEY)
    keep(root, CachedResult(dependencies=cache.dependencies(probes.found, probes.missing)))
    assert kept(root) is not None
    (root / "sub" / "b.py").touch()
    assert kept(root) is None


def test_a_dependency_is_read_once_in_a_run_and_again_after_it_was_written(root: Path) -> None:
    cache = Cache(f"{root}/.cache", "f", KEY)
    path = f"{root}/b.py"
    before = cache.hash(path)
    (root / "b.py").write_text("changed")
    assert cache.hash(path) == before
    cache.forget(path)
    assert cache.hash(path) == content_hash(b"changed")
    assert cache.hash(f"{root}/nothing.py") is None


def test_results_with_paths_written_in_another_way_are_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    cache = Cache(".cache", "f", KEY)
    cache.put("a.py", "c", A_RESULT)
    assert cache.get("a.py", "c") == A_RESULT
    assert cache.get(f"{root}/a.py", "c") is None


def test_git_does_not_see_the_cache(root: Path) -> None:
    keep(root, A_RESULT)
    subprocess.run(["git", "init", "-q", root], check=True)
    status = subprocess.run(
        ["git", "-C", str(root), "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True
    )
    assert status.stdout.splitlines() == ["?? a.py", "?? b.py"]


def signed(payload: bytes, name: str, key: bytes = KEY) -> bytes:
    """Write an entry by hand."""
    return (
        blake2b(name.encode() + b"\n" + payload, digest_size=16, key=key).hexdigest().encode()
        + b"\n"
        + payload
    )


def entries(root: Path) -> list[Path]:
    return [path for path in (root / ".cache").iterdir() if path.name != ".gitignore"]


@pytest.mark.parametrize("content", [b"", b"\0\xff", b"{}", content_hash(b"[1]").encode() + b"\n[1]"])
def test_a_broken_cache_is_built_anew(root: Path, content: bytes) -> None:
    keep(root, A_RESULT)
    (entry,) = entries(root)
    entry.write_bytes(content)
    assert kept(root) is None
    keep(root, A_RESULT)
    assert kept(root) == A_RESULT
    entry.unlink()
    entry.mkdir()
    assert kept(root) is None
    keep(root, A_RESULT)


def test_an_entry_of_the_wrong_form_is_none(root: Path) -> None:
    keep(root, A_RESULT)
    (entry,) = entries(root)
    content = content_hash((root / "a.py").read_bytes())
    payload = json.dumps(["f", content, {}, {}, [["SF101"]], []]).encode()
    entry.write_bytes(signed(payload, entry.name))
    assert kept(root) is None


def test_a_cache_that_cannot_be_written_is_no_error(root: Path, unprivileged: Path) -> None:
    (unprivileged / "a.py").touch()
    (unprivileged / "shut").mkdir(mode=0o555)
    cache = Cache(f"{unprivileged}/shut/cache", "f", KEY)
    cache.put("a.py", "c", A_RESULT)
    assert cache.get("a.py", "c") is None
    (unprivileged / "file").touch()
    Cache(f"{unprivileged}/file", "f", KEY).put("a.py", "c", A_RESULT)
    assert list((unprivileged / "shut").iterdir()) == []


def _work(root: str, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(150):
        number = chosen.randrange(5)
        cache = Cache(f"{root}/.cache", "f", KEY)
        result = cache.get(f"{root}/{number}.py", "c")
        assert result is None or {each.path for each in result.failures} == {f"{number}"}
        cache.put(f"{root}/{number}.py", "c", CachedResult((), (Failure(f"{number}", "x" * 50_000),)))


@pytest.mark.slow
def test_processes_side_by_side_do_not_spoil_it(root: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(str(root), seed)) for seed in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(entries(root)) == 5
    for path in entries(root):
        assert from_bytes(path.read_bytes(), name=path.name, key=KEY) is not None


def test_the_fingerprint_follows_settings_and_the_sources_of_shapefix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fingerprint("a") == fingerprint("a")
    assert fingerprint("a") != fingerprint("b")
    assert fingerprint("a", "b") != fingerprint("ab")
    (tmp_path / "deep").mkdir()
    (tmp_path / "__init__.py").touch()
    (tmp_path / "deep" / "rule.py").write_text("one")
    monkeypatch.setattr("shapefix.__file__", str(tmp_path / "__init__.py"))
    before = fingerprint()
    (tmp_path / "deep" / "rule.py").write_text("three")
    changed = fingerprint()
    assert changed != before
    os.utime(tmp_path / "deep" / "rule.py", (1, 1))
    touched = fingerprint()
    assert touched != changed
    monkeypatch.setattr("shapefix.__version__", "0.0.0")
    assert fingerprint() != touched
