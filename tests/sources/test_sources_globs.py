from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapefix.sources.globs import Globs


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("build", "build"),
        ("build", "deep/build"),
        ("build/", "deep/build"),
        ("./build", "build"),
        ("*_pb2.py", "deep/a_pb2.py"),
        ("scripts/old", "scripts/old"),
        ("scripts/*.py", "scripts/deep/a.py"),
        ("**/gen/*.py", "gen/a.py"),
        ("**/gen/*.py", "x/y/gen/a.py"),
        ("a/**/z.py", "a/z.py"),
        ("a/**/z.py", "a/b/c/z.py"),
        ("a/**", "a/b/c"),
        ("v?.py", "v1.py"),
        ("v[0-9].py", "v1.py"),
        ("v[!a-z].py", "v1.py"),
        ("{train,eval}_*.py", "eval_x.py"),
        ("[", "["),
        ("{a", "{a"),
        ("/root/a/b.py", "a/b.py"),
    ],
)
def test_a_pattern_matches(pattern: str, path: str) -> None:
    assert Globs("/root", [pattern]).matches(f"/root/{path}")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("build", "builder"),
        ("build", "build/a.py"),
        ("scripts/old", "x/scripts/old"),
        ("v[0-9].py", "va.py"),
        ("v[!a-z].py", "va.py"),
        ("{train,eval}.py", "test.py"),
        ("a.py", "aXpy"),
        ("**/gen/x", "xgen/x"),
    ],
)
def test_a_pattern_does_not_match(pattern: str, path: str) -> None:
    assert not Globs("/root", [pattern]).matches(f"/root/{path}")


def test_a_path_outside_of_the_root_matches_by_name_only() -> None:
    assert Globs("/root", ["gen"]).matches("/other/gen")
    assert not Globs("/root", ["other/gen"]).matches("/other/gen")
    assert not Globs("/root", []).matches("/root/a.py")


@given(st.text(st.sampled_from("a*?[]{}!,^-\\/.("), max_size=12))
def test_any_pattern_can_be_tried(pattern: str) -> None:
    Globs("/root", [pattern]).matches("/root/a/b.py")
