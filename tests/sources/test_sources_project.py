from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shapefix.sources.project import PathProbes, Project, project_root

Tree = Callable[..., Path]


def located(root: Path, module: str, importing: str) -> str | None:
    """What module means to a file below root, relative to root."""
    path = Project(str(root)).locate(module, f"{root}/{importing}")
    return path and str(Path(path).relative_to(root))


def test_a_script_finds_its_neighbours_as_python_would(tree: Tree) -> None:
    root = tree(
        "train.py", "model.py", "pkg/__init__.py", "pkg/data.py", "scripts/run.py", "scripts/model.py"
    )
    assert located(root, "model", "train.py") == "model.py"
    assert located(root, "pkg", "train.py") == "pkg/__init__.py"
    assert located(root, "pkg.data", "train.py") == "pkg/data.py"
    assert located(root, "model", "scripts/run.py") == "scripts/model.py"
    assert located(root, "pkg.data", "scripts/run.py") == "pkg/data.py"


def test_a_module_in_a_package_looks_from_above_the_package(tree: Tree) -> None:
    root = tree(
        "pkg/__init__.py",
        "pkg/sub/__init__.py",
        "pkg/sub/a.py",
        "pkg/sub/model.py",
        "model.py",
        "pkg/sub/own.py",
    )
    assert located(root, "model", "pkg/sub/a.py") == "model.py"
    assert located(root, "pkg.sub.model", "pkg/sub/a.py") == "pkg/sub/model.py"
    assert located(root, "own", "pkg/sub/a.py") == "pkg/sub/own.py"


def test_a_module_beside_a_script_goes_before_the_empty_package_around_both(tree: Tree) -> None:
    files = ("models/__init__.py", "models/gan/__init__.py", "models/gan/train.py", "models/gan/models.py")
    root = tree(*files)
    assert located(root, "models", "models/gan/train.py") == "models/gan/models.py"
    assert located(root, "models.gan.models", "models/gan/train.py") == "models/gan/models.py"
    (root / "models/__init__.py").write_text("from models.gan.models import Net\n")
    assert located(root, "models", "models/gan/train.py") == "models/__init__.py"


def test_src_folders_are_looked_into(tree: Tree) -> None:
    root = tree(
        "tests/test_a.py", "src/pkg/__init__.py", "src/pkg/a.py", "libs/x/src/y/__init__.py", "libs/x/run.py"
    )
    assert located(root, "pkg.a", "tests/test_a.py") == "src/pkg/a.py"
    assert located(root, "pkg.a", "src/pkg/a.py") == "src/pkg/a.py"
    assert located(root, "y", "libs/x/run.py") == "libs/x/src/y/__init__.py"
    assert located(root, "y", "tests/test_a.py") is None


def test_folders_between_the_script_and_the_root_are_looked_into(tree: Tree) -> None:
    root = tree("a/b/run.py", "a/tools/io2.py", "tools/io2.py")
    assert located(root, "tools.io2", "a/b/run.py") == "a/tools/io2.py"


def test_a_package_goes_before_a_module_and_a_module_before_a_plain_folder(tree: Tree) -> None:
    root = tree("run.py", "a/__init__.py", "a.py", "b/c.py", "b.py", "d/e/f.py")
    assert located(root, "a", "run.py") == "a/__init__.py"
    assert located(root, "b", "run.py") == "b.py"
    assert located(root, "b.c", "run.py") is None
    assert located(root, "d.e.f", "run.py") == "d/e/f.py"
    assert located(root, "d.e", "run.py") is None
    assert located(root, "a.b", "run.py") is None


def test_the_standard_library_is_never_looked_for(tree: Tree) -> None:
    root = tree("run.py", "logging.py", "types/__init__.py")
    project = Project(str(root))
    probes = PathProbes()
    assert project.locate("logging", f"{root}/run.py", probes) is None
    assert project.locate("types", f"{root}/run.py", probes) is None
    assert probes == PathProbes()


def test_a_folder_of_data_is_not_the_library_of_its_name(tree: Tree) -> None:
    root = tree("run.py", "datasets/load.py", "pkg/__init__.py", "pkg/datasets.py", "pkg/a.py")
    assert located(root, "datasets", "run.py") is None
    assert located(root, "datasets.load", "run.py") is None
    assert located(root, "datasets", "pkg/a.py") is None
    (root / "datasets" / "__init__.py").touch()
    assert located(root, "datasets.load", "run.py") == "datasets/load.py"


def test_broken_links_and_folders_are_no_modules(tree: Tree) -> None:
    root = tree("run.py", "a.py/x")
    (root / "b.py").symlink_to("nowhere.py")
    assert located(root, "a", "run.py") is None
    assert located(root, "b", "run.py") is None
    assert located(root, "run.b", "run.py") is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("train.py", "train"),
        ("src/pkg/__init__.py", "pkg"),
        ("src/pkg/sub/mod.py", "pkg.sub.mod"),
        ("src/plain/mod.py", "plain.mod"),
        ("scripts/deep/run.py", "scripts.deep.run"),
        ("my-scripts/run.py", "run"),
        ("libs/one/top/mod.py", "top.mod"),
    ],
)
def test_modules_have_names(tree: Tree, path: str, name: str) -> None:
    root = tree("src/pkg/__init__.py", "src/pkg/sub/__init__.py", "libs/one/top/__init__.py", path)
    project = Project(str(root))
    assert project.module_name(f"{root}/{path}") == name
    assert project.locate(name, f"{root}/{path}") == f"{root}/{path}"


@pytest.mark.parametrize(
    ("importing", "level", "module", "name"),
    [
        ("pkg/sub/a.py", 0, "torch.nn", "torch.nn"),
        ("pkg/sub/a.py", 1, "b", "pkg.sub.b"),
        ("pkg/sub/a.py", 1, None, "pkg.sub"),
        ("pkg/sub/a.py", 2, "c.d", "pkg.c.d"),
        ("pkg/sub/a.py", 3, None, None),
        ("pkg/sub/a.py", 4, "e", None),
        ("pkg/sub/__init__.py", 1, "b", "pkg.sub.b"),
        ("pkg/sub/__init__.py", 2, "c", "pkg.c"),
        ("plain/a.py", 1, "b", "plain.b"),
        ("run.py", 1, "b", "b"),
        ("run.py", 0, None, None),
    ],
)
def test_relative_imports_resolve(
    tree: Tree, importing: str, level: int, module: str | None, name: str | None
) -> None:
    root = tree("pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/a.py", "plain/a.py", "run.py")
    assert Project(str(root)).resolve(f"{root}/{importing}", level, module) == name


def test_probes_tell_what_an_answer_rests_on(tree: Tree) -> None:
    root = tree("run.py", "src/pkg/__init__.py", "src/pkg/data.py", "scripts/go.py")
    project = Project(str(root))
    probes = PathProbes()
    project.locate("pkg.data", f"{root}/scripts/go.py", probes)
    missing = ["scripts/pkg", "scripts/pkg.py", "pkg", "pkg.py", "src/pkg/data"]
    assert probes.missing == {f"{root}/{name}" for name in missing}
    assert probes.found == {f"{root}/src/pkg/__init__.py", f"{root}/src/pkg/data.py"}
    again = PathProbes()
    project.locate("pkg.data", f"{root}/scripts/other.py", again)
    assert again == probes


def test_a_library_costs_two_probes_for_each_folder(tree: Tree) -> None:
    root = tree("run.py")
    probes = PathProbes()
    assert Project(str(root)).locate("torch.nn.functional", f"{root}/run.py", probes) is None
    assert probes == PathProbes(set(), {f"{root}/torch", f"{root}/torch.py"})


def test_every_new_file_that_changes_an_answer_was_probed(tree: Tree) -> None:
    files = [
        "a/run.py",
        "a/m.py",
        "a/m/__init__.py",
        "a/m/n.py",
        "m/__init__.py",
        "m.py",
        "m/n.py",
        "src/m.py",
    ]
    for module in ("m", "m.n"):
        for new in files[1:]:
            for present in files[1:]:
                root = tree("a/run.py") / f"{module}-{new}-{present}".replace("/", "_")
                for name in ("a/run.py", "src/x.py", present):
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).touch()
                probes = PathProbes()
                importing = str(root / "a/run.py")
                before = Project(str(root)).locate(module, importing, probes)
                (root / new).parent.mkdir(parents=True, exist_ok=True)
                (root / new).touch()
                if Project(str(root)).locate(module, importing) != before:
                    assert any(Path(path).exists() for path in probes.missing)


def test_the_root_of_a_project(tree: Tree) -> None:
    root = tree(
        "repo/.git/HEAD",
        "repo/sub/pyproject.toml",
        "repo/sub/a.py",
        "loose/deep/setup.py",
        "loose/deep/x/y.py",
    )
    assert project_root(f"{root}/repo/sub/a.py") == f"{root}/repo"
    assert project_root(f"{root}/repo") == f"{root}/repo"
    assert project_root(f"{root}/loose/deep/x/y.py") == f"{root}/loose/deep"
    assert project_root(f"{root}/loose") == f"{root}/loose"


@pytest.mark.parametrize("name", ["requirements.txt", "environment.yml", "Pipfile"])
def test_the_current_folder_is_the_root_if_it_lists_packages(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a downloaded archive: without `.git`."""
    (tmp_path / "main").mkdir()
    monkeypatch.chdir(tmp_path)
    assert project_root("main") == str(tmp_path / "main")
    (tmp_path / name).touch()
    assert project_root("main") == str(tmp_path)
    assert project_root("main/train.py", "main") == str(tmp_path)
    assert project_root(str(tmp_path.parent)) == str(tmp_path.parent)
