from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapefix.sources.configuration import Configurations
from shapefix.sources.discovery import DiscoveredFiles, discover
from shapefix.sources.project import files_below

Tree = Callable[..., Path]


def found(*paths: str | Path, force_exclude: bool = False) -> DiscoveredFiles:
    return discover([str(path) for path in paths], Configurations(), force_exclude=force_exclude)


def names(folder: Path, *, under: Path | None = None) -> list[str]:
    """What is found in a folder where nothing fails, relative to it."""
    result = found(folder)
    assert result.failures == ()
    return [os.path.relpath(path, under or folder) for path in result.files]


def test_folders_give_their_python_files_and_notebooks_in_order(tree: Tree) -> None:
    root = tree("b.py", "a/z.py", "a/y.py", "c/d.py", "a.pyi", "notes.ipynb", "a.txt", "script", "d.PY")
    assert names(root) == ["b.py", "notes.ipynb", "a/y.py", "a/z.py", "c/d.py"]


def test_paths_stay_as_they_were_given(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree("src/a.py", "b.py"))
    assert found(".").files == ("b.py", "src/a.py")
    assert found("./src/").files == ("src/a.py",)
    assert found("src/../b.py").files == ("b.py",)
    os.chdir("src")
    assert found("..").files == ("../b.py", "../src/a.py")


def test_named_files_are_taken_whatever_they_are_called(tree: Tree) -> None:
    root = tree("run", "types.pyi", ".venv/a.py")
    paths = [str(root / name) for name in ("types.pyi", "run", ".venv/a.py")]
    assert found(*paths).files == tuple(paths)


def test_no_file_comes_twice(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree("src/a.py", "src/b.py")
    monkeypatch.chdir(root)
    (root / "linked").symlink_to("src")
    assert found("src/b.py", "src", "./src", str(root / "src" / "a.py"), "linked").files == (
        "src/b.py",
        "src/a.py",
    )


def test_a_path_that_does_not_exist_fails_alone(tree: Tree) -> None:
    root = tree("a.py")
    result = found(root / "typo", root, "", "nul\0.py")
    assert result.files == (f"{root}/a.py",)
    assert [(each.path, each.message) for each in result.failures] == [
        (f"{root}/typo", "no such file or folder"),
        ("", "no such file or folder"),
        ("nul\0.py", "embedded null byte"),
    ]


def test_a_folder_that_cannot_be_listed_fails_alone(unprivileged: Path) -> None:
    for name in ("open", "shut"):
        (unprivileged / name).mkdir()
        (unprivileged / name / "a.py").touch()
    (unprivileged / "shut").chmod(0o000)
    result = found(unprivileged)
    assert result.files == (f"{unprivileged}/open/a.py",)
    (failure,) = result.failures
    assert (failure.path, failure.message) == (f"{unprivileged}/shut", "cannot be listed: permission denied")


def test_links_to_files_are_followed_and_links_to_folders_are_not(tree: Tree) -> None:
    root = tree("real/a.py", "elsewhere/b.py")
    (root / "real" / "again.py").symlink_to("a.py")
    (root / "real" / "b.py").symlink_to("../elsewhere/b.py")
    (root / "real" / "folder").symlink_to("../elsewhere")
    assert names(root / "real") == ["a.py"]
    assert names(root) == ["elsewhere/b.py", "real/a.py"]


def test_links_out_of_the_folders_are_followed_only_where_they_are_named(tree: Tree) -> None:
    root = tree("real/a.py", "elsewhere/b.py", "elsewhere-not/c.py")
    link, other = root / "real" / "b.py", root / "real" / "c.py"
    link.symlink_to("../elsewhere/b.py")
    other.symlink_to("../elsewhere-not/c.py")
    assert found(root / "real").outside == (str(link), str(other))
    for order in ((link, root / "real"), (root / "real", link)):
        result = found(*order)
        assert set(result.files) == {str(link), str(root / "real" / "a.py")}
        assert result.outside == (str(other),)
    both = found(root / "real", root / "elsewhere")
    assert set(both.files) == {str(root / "real" / "a.py"), str(root / "elsewhere" / "b.py")}
    assert both.outside == (str(other),)


def test_links_that_lead_nowhere_fail_alone(tree: Tree) -> None:
    root = tree("a.py", "sub/b.py")
    (root / "sub" / "up").symlink_to("..")
    (root / "self.py").symlink_to("other.py")
    (root / "other.py").symlink_to("self.py")
    (root / "gone.py").symlink_to("nowhere.py")
    (root / ".#a.py").symlink_to("user@host.1")
    (root / "data").symlink_to("/nonexistent/data")
    result = found(root)
    assert result.files == (f"{root}/a.py", f"{root}/sub/b.py")
    said = {os.path.relpath(each.path, root): each.message for each in result.failures}
    assert sorted(said) == ["gone.py", "other.py", "self.py", "sub/up"]
    assert said["gone.py"] == "is a symbolic link to nowhere.py, which does not exist"
    assert said["self.py"] == said["other.py"] == "it is a symbolic link that leads back to itself"
    assert f"back to {root}, a folder around it" in said["sub/up"]


def test_pipes_and_folders_called_like_modules_are_passed_over(tree: Tree) -> None:
    root = tree("a.py/b.py")
    os.mkfifo(root / "pipe.py")
    assert names(root) == ["a.py/b.py"]


def test_attribute_files_of_macos_are_passed_over(tree: Tree) -> None:
    root = tree("train.py", "._train.py", "._notes.ipynb", "__MACOSX/._train.py")
    assert names(root) == ["train.py"]
    assert found(root / "._train.py").files == (str(root / "._train.py"),)


def test_folders_nested_deeper_than_python_recurses() -> None:
    root = tempfile.mkdtemp()
    try:
        at = os.open(root, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(os.open("a.py", os.O_CREAT, dir_fd=at))
        os.close(at)
        assert len(found(root).files) == 1
    finally:
        # Python's own removal recurses.
        subprocess.run(["rm", "-rf", root], check=True)


def test_what_tools_leave_behind_is_excluded(tree: Tree) -> None:
    left = [
        "build",
        "dist",
        "venv",
        ".venv",
        "node_modules",
        "__pycache__",
        ".tox",
        ".eggs",
        ".git",
        "site-packages",
    ]
    root = tree("a.py", "sub/builder.py", *(f"sub/{name}/x.py" for name in left))
    assert names(root) == ["a.py", "sub/builder.py"]
    assert names(root / "sub" / "build") == ["x.py"]


def test_configured_globs_exclude(tree: Tree) -> None:
    root = tree("a.py", "a_pb2.py", "old/a.py", "new/old/b.py", "new/c.py", "build/d.py", "new/deep/gen/e.py")
    (root / "shapefix.toml").write_text('extend-exclude = ["*_pb2.py", "new/old", "**/gen/", "/nowhere/*"]')
    assert names(root) == ["a.py", "new/c.py", "old/a.py"]
    (root / "shapefix.toml").write_text('exclude = ["old", "{a,c}.py"]')
    assert names(root) == ["a_pb2.py", "build/d.py", "new/deep/gen/e.py"]


def test_the_nearest_configuration_excludes(tree: Tree) -> None:
    root = tree("skip.py", "inner/skip.py", "inner/other.py")
    (root / "shapefix.toml").write_text('extend-exclude = ["skip.py"]')
    (root / "inner" / "pyproject.toml").write_text('[tool.shapefix]\nextend-exclude = ["other.py"]')
    assert names(root) == ["inner/skip.py"]


def test_named_files_are_excluded_only_by_force(tree: Tree) -> None:
    root = tree("a.py", "gen/deep/b.py")
    (root / "shapefix.toml").write_text('extend-exclude = ["gen"]')
    paths = [root / "a.py", root / "gen/deep/b.py", root / "gen"]
    assert len(found(*paths).files) == 2
    assert found(*paths, force_exclude=True).files == (f"{root}/a.py",)


def git_tree(tree: Tree, *files: str) -> Path:
    return tree(".git/HEAD", *files)


def test_git_decides_what_is_ignored(tree: Tree) -> None:
    root = git_tree(tree, "a.py", "out/b.py", "sub/out/c.py", "sub/keep.py", "sub/gen_1.py", "sub/gen_2.py")
    (root / ".gitignore").write_text("# comment\n/out/\r\ngen_*.py\n\n!gen_2.py\n")
    assert names(root) == ["a.py", "sub/gen_2.py", "sub/keep.py", "sub/out/c.py"]


def test_a_nested_gitignore_goes_before_the_one_above(tree: Tree) -> None:
    root = git_tree(tree, "x.py", "sub/x.py", "sub/y.py", "sub/deep/x.py")
    (root / ".gitignore").write_text("x.py\n")
    (root / "sub" / ".gitignore").write_text("!/x.py\ny.py\n")
    assert names(root) == ["sub/x.py"]


def test_gitignore_files_above_the_named_folder_count_up_to_the_repository(tree: Tree) -> None:
    root = tree("repo/.git/HEAD", "repo/src/pkg/a.py", "repo/src/pkg/b.py", "repo/src/pkg/c.py")
    (root / ".gitignore").write_text("a.py\n")
    (root / "repo" / ".gitignore").write_text("/src/pkg/b.py\n")
    (root / "repo" / "src" / ".gitignore").write_text("c.py\n")
    assert names(root / "repo" / "src" / "pkg") == ["a.py"]


def test_an_ignored_folder_that_is_named_is_looked_into(tree: Tree) -> None:
    root = git_tree(tree, "out/a.py", "out/deep/b.py", "out/deep/c.py")
    (root / ".gitignore").write_text("out/\n")
    (root / "out" / "deep" / ".gitignore").write_text("c.py\n")
    assert names(root) == []
    assert names(root / "out") == ["a.py", "deep/b.py"]


def test_a_repository_in_a_repository_has_rules_of_its_own(tree: Tree) -> None:
    root = git_tree(tree, "a.py", "module/.git", "module/a.py", "module/b.py")
    (root / ".gitignore").write_text("/module/b.py\na.py\n")
    assert names(root) == ["module/a.py", "module/b.py"]


def test_the_exclude_file_of_the_repository_counts(tree: Tree) -> None:
    root = git_tree(tree, "a.py", "b.py", ".git/info/exclude")
    (root / ".git" / "info" / "exclude").write_text("a.py\n")
    assert names(root) == ["b.py"]


def test_broken_lines_of_a_gitignore_are_passed_over_as_git_does(tree: Tree) -> None:
    root = git_tree(tree, "a.py", "b.py")
    (root / ".gitignore").write_bytes(b"\xef\xbb\xbfb.py\n!\n[z-a]\n\\\n\xff\xfe\n")
    assert names(root) == ["a.py"]


GITIGNORES = [
    "*\n!*/\n!*.py\nb.py",
    "foo/*\n!foo/keep.py",
    "foo/*\n!foo/deep/",
    "**/deep\n!top.py",
    "foo/**/x.py",
    "foo/**",
    "**",
    "/*.py\n!/top.py",
    "deep/",
    "foo/deep\n!foo/deep/x.py",
    "\\#a.py\n\\!b.py\n",
    "b.py   \nspace\\ \nx.py\\\\ \n",
    "?op.py\n[a-c].py\n[!x].py",
    "[[:alpha:]].py\n[]-]x.py",
    "keep.py/\n*.pyc",
    "foo\n!foo/",
    "!foo\nfoo/deep/*",
    "/\n//\n!\n\\\n[\n[z-a]\n[z-a].py",
]
FILES = ("top.py", "b.py", "#a.py", "!b.py", "foo/keep.py", "foo/x.py", "foo/deep/x.py", "bar/deep/y/x.py")


def listed_by_git(root: Path) -> list[str]:
    command = ["git", "-C", str(root), "ls-files", "-z", "--others", "--exclude-standard", "*.py"]
    return sorted(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\0")[:-1])


@pytest.mark.parametrize("patterns", GITIGNORES)
def test_the_same_files_as_git_itself(tree: Tree, patterns: str) -> None:
    root = tree(*FILES)
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text(patterns)
    assert sorted(names(root)) == listed_by_git(root)


PATTERN = st.lists(
    st.sampled_from(
        ["foo", "deep", "x", ".py", "o", "*", "**", "/", "/", "?", "[a-y]", "[!x]", "\\", " ", "["]
    ),
    max_size=6,
).map("".join)


@pytest.mark.slow
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["", "", "!"]), PATTERN).map("".join), min_size=1, max_size=5))
def test_the_same_files_as_git_itself_for_any_patterns(tree: Tree, lines: list[str]) -> None:
    root = tree(*FILES)
    if not (root / ".git").exists():
        subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".gitignore").write_text("\n".join(lines))
    assert sorted(names(root)) == listed_by_git(root)


@pytest.fixture
def with_copy(tree: Tree) -> Path:
    """A project with the repository of transformers in a folder of any name."""
    root = tree("train.py", "deps/hf/src/transformers/__init__.py", "deps/hf/examples/run.py")
    (root / "deps/hf/setup.py").write_text('setup(\n    name="transformers",\n    version="4.10.0",\n)\n')
    return root


def test_the_repository_of_a_library_below_a_folder_is_skipped(with_copy: Path) -> None:
    result = found(with_copy)
    assert result.files == (f"{with_copy}/train.py",)
    assert result.copies == ((f"{with_copy}/deps/hf", "transformers"),)


@pytest.mark.parametrize("inside", ["deps/hf", "deps/hf/examples"])
def test_a_copy_that_is_given_is_taken(inside: str, with_copy: Path) -> None:
    alone, both = found(with_copy / inside), found(with_copy, with_copy / inside)
    assert f"{with_copy}/deps/hf/examples/run.py" in alone.files
    assert both.files == (f"{with_copy}/train.py", *alone.files)
    assert alone.copies == ()
    assert bool(both.copies) is (inside != "deps/hf")


def test_an_exclude_of_the_project_replaces_the_skipping_of_copies(with_copy: Path) -> None:
    (with_copy / "shapefix.toml").write_text('exclude = ["data"]\n')
    assert f"{with_copy}/deps/hf/examples/run.py" in found(with_copy).files


@pytest.mark.parametrize(
    ("setup", "package"),
    [
        ('setup(name="my-transformers")', "transformers"),
        ('setup(name="transformers")', "my_transformers"),
        ('setup(description="for transformers")', "transformers"),
    ],
)
def test_a_project_with_a_name_or_a_package_of_its_own_is_not_a_copy(
    setup: str, package: str, tree: Tree
) -> None:
    root = tree(f"part/src/{package}/__init__.py")
    (root / "part/setup.py").write_text(setup)
    result = found(root)
    assert f"{root}/part/src/{package}/__init__.py" in result.files
    assert result.copies == ()


def test_files_of_a_project_are_those_outside_of_copies(with_copy: Path) -> None:
    assert list(files_below(str(with_copy))) == [f"{with_copy}/train.py"]
    assert f"{with_copy}/deps/hf/examples/run.py" in files_below(str(with_copy / "deps/hf"))
