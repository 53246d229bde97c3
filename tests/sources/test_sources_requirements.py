from __future__ import annotations

import codecs
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
from importlib import metadata
from pathlib import Path
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from shapefix.sources.requirements import Requirements, transformers_version, version_needs
from shapefix.sources.versions import is_version

ROOT = Path(__file__).parents[2]
POETRY_LOCK = """\
[[package]]
category = "main"
description = "A library before it."
name = "sentence-transformers"
optional = false
python-versions = "*"
version = "2.0.0"

[[package]]
category = "main"
description = "State of the art"
name = "transformers"
optional = false
python-versions = ">=3.6.0"
version = "4.18.0"

[package.dependencies]
filelock = "*"
"""
UV_LOCK = """\
version = 1

[[package]]
name = "sentence-transformers"
version = "3.0.1"

[[package]]
name = "transformers"
version = "4.57.6"
source = { registry = "https://pypi.org/simple" }
"""

PYPROJECT = """\
[project]
name = "p"
dependencies = ["torch", "transformers>=4.40,<5"]
"""


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("transformers==4.57.6", "4.57.6"),
        ("transformers[torch] == 4.40.0  # the last that works", "4.40.0"),
        ("Transformers===4.40.0", "4.40.0"),
        ("transformers==5.0.0rc1", "5.0.0rc1"),
        ("transformers==4.40.0 \\\n    --hash=sha256:0123", "4.40.0"),
        ("transformers==4.40.0; python_version < '3.13'", "4.40.0"),
        ("transformers==4.40; python_version < '3.9'\ntransformers==4.57; python_version > '3.8'", "4.57"),
        ("git+https://github.com/huggingface/transformers.git@v4.40.1", "4.40.1"),
        ("transformers @ git+https://github.com/huggingface/transformers@v4.40.1", "4.40.1"),
        ("transformers<5", "4.57"),
        ("transformers~=4.40", "4.57"),
        ("transformers~=4.40.1", "4.40"),
        ("transformers==4.*", "4.57"),
        ("transformers >= 4.30, < 4.45, != 4.31", "4.44"),
        ("transformers (<5)", "4.57"),
        ("transformers<4", "3.5"),
        ("transformers>=4.30", None),
        ("transformers>=4.30\ntransformers<5", "4.57"),
        ("transformers", None),
        ("transformers>=4.30,!=4.31", None),
        ("git+https://github.com/huggingface/transformers", None),
        ("transformers=4.40.1=pyhd8ed1ab_0", "4.40.1"),
        ("https://conda.anaconda.org/conda-forge/noarch/transformers-4.40.1-pyhd8ed1ab_0.conda", "4.40.1"),
        ("https://example.org/sentence-transformers-2.2.0-py_0.tar.bz2", None),
        ("sentence-transformers==2.2.0", None),
        ("transformers-interpret==0.10", None),
        ("# transformers==4.40.0", None),
        ("transformers==", None),
        ("transformers==latest", None),
    ],
)  # fmt: skip
def test_requirements_txt(tmp_path: Path, line: str, version: str | None) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch>=2\n{line}\naccelerate\n")
    assert transformers_version(tmp_path) == version


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
def test_encodings_with_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    mark = codecs.BOM_UTF16_LE if encoding == "utf-16-le" else b""
    (tmp_path / "requirements.txt").write_bytes(mark + "transformers==4.44.0\r\n".encode(encoding))
    assert transformers_version(tmp_path) == "4.44.0"
    (tmp_path / "requirements.txt").write_bytes(codecs.BOM_UTF16_LE + b"transformers==4.44.0!")
    assert transformers_version(tmp_path) is None


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements-train.txt", "transformers==4.44.0\n", "4.44.0"),
        ("requirements/base.txt", "transformers==4.44.0\n", "4.44.0"),
        ("uv.lock", UV_LOCK, "4.57.6"),
        ("poetry.lock", UV_LOCK.replace("\n", "\r\n"), "4.57.6"),
        ("poetry.lock", POETRY_LOCK, "4.18.0"),
        ("req.txt", "transformers==4.44.0", "4.44.0"),
        ("pip_freeze.txt", "transformers==4.44.0", "4.44.0"),
        ("dev-requirements.txt", "transformers==4.44.0", "4.44.0"),
        ("Pipfile.lock", '{"default": {"transformers": {"version": "==4.44.2"}}, "develop": {}}', "4.44.2"),
        ("pyproject.toml", PYPROJECT, "4.57"),
        ("pyproject.toml", '[project.optional-dependencies]\nhf = ["transformers==4.44.0"]', "4.44.0"),
        ("pyproject.toml", '[dependency-groups]\na = [{include-group = "b"}, "transformers<5"]', "4.57"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "^4.30"', "4.57"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "~4.30"', "4.30"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "4.30.2"', "4.30.2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\nTransformers = "4.30.2"', "4.30.2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntransformers = "*"', None),
        (
            "pyproject.toml",
            '[tool.poetry.dependencies]\ntransformers = {git = "https://a/b", rev = "1"}',
            None,
        ),
        ("pyproject.toml", '[tool.poetry.dependencies.transformers]\nversion = ">=4.30,<5.0"', "4.57"),
        ("pyproject.toml", '[tool.poetry.group.dev.dependencies]\ntransformers = ["^4", "^4.30"]', "4.57"),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    transformers<5\n", "4.57"),
        ("setup.cfg", "[options.extras_require]\nhf = \n    transformers==4.44.0\n", "4.44.0"),
        ("setup.py", "setup(install_requires=['torch', 'transformers==4.44.0'])", "4.44.0"),
        ("environment.yml", "dependencies:\n  - python=3.11\n  - transformers=4.44.0=py311_0\n", "4.44.0"),
        ("environment.yml", "dependencies:\n  - conda-forge::transformers=4.44\n", "4.44"),
        ("environment.yaml", "dependencies:\n  - pip:\n    - 'transformers==4.44.0'\n", "4.44.0"),
        ("environment.yml", "dependencies:\n  - transformers>=4.40,<5  # not yet\n", "4.57"),
    ],
)
def test_every_kind_of_file(tmp_path: Path, name: str, text: str, version: str | None) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode())
    assert transformers_version(str(tmp_path)) == version


LONG = "9" * 5_000


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", f"transformers=={LONG}\n"),
        ("requirements.txt", f"transformers>=4,<{LONG}\n"),
        ("requirements.txt", f"git+https://github.com/huggingface/transformers.git@v4.{LONG}\n"),
        ("uv.lock", UV_LOCK.replace("4.57.6", LONG)),
        ("Pipfile.lock", json.dumps({"default": {"transformers": {"version": f"=={LONG}"}}})),
        ("pyproject.toml", f"[project]\ndependencies = ['transformers=={LONG}']\n"),
        ("pyproject.toml", f"[tool.poetry.dependencies]\ntransformers = '^{LONG}'\n"),
        ("environment.yml", f"dependencies:\n  - transformers={LONG}\n"),
        ("setup.cfg", f"[options]\ninstall_requires =\n    transformers=={LONG}\n"),
        ("setup.py", f"setup(install_requires=['transformers=={LONG}'])"),
    ],
    ids=[*"abcdefghij"],
)
def test_a_version_of_5000_digits_says_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert transformers_version(tmp_path) is None
    assert not is_version(LONG)


EVERY_LIBRARY = "transformers torch lightning trl peft accelerate datasets\n"
OTHERS = ",".join(f"!=9.{n}.*" for n in range(30))
SPACES = " " * 60_000
NEWLINES = "\n" * 60_000


@pytest.mark.parametrize(
    ("name", "text", "version"),
    [
        ("requirements.txt", f"transformers{SPACES}x", None),
        ("requirements.txt", f"transformers{SPACES}=={SPACES}4.44.0{SPACES}x", "4.44.0"),
        ("requirements.txt", "transformers" + ">=4," * 100_000, None),
        ("requirements.txt", "".join(f"transformers<5,!=4.{n}\n" for n in range(20_000)), "4.57"),
        ("pyproject.toml", f"[project]\ndependencies = ['''transformers{NEWLINES}x''']", None),
        ("environment.yml", f"dependencies:\n  - transformers{SPACES}x", None),
        ("setup.cfg", f"[options]\ntransformers{SPACES}x", None),
        ("setup.cfg", f"[options]\ninstall_requires =\n    transformers{SPACES}x", None),
        ("setup.py", f"setup(install_requires=['transformers{SPACES}x'])", None),
        ("requirements.txt", f"{EVERY_LIBRARY}transformers==4.44.0\n" + "a\n" * 400_000, "4.44.0"),
        ("requirements.txt", "".join(f"transformers{OTHERS}{n}\n" for n in range(2_000)), None),
        ("pyproject.toml", f"# {EVERY_LIBRARY}a" + ".a" * 400_000 + " = 1", None),
        ("pyproject.toml", f"# {EVERY_LIBRARY}" + '"$" . ' * 150_000 + "a = 1", None),
        ("pyproject.toml", f"# {EVERY_LIBRARY}" + "'#'." * 200_000 + "a = 1", None),
        ("pyproject.toml", f"# {EVERY_LIBRARY}x = {{'''a" + "'''.'#" * 150_000, None),
        ("pyproject.toml", f'# {EVERY_LIBRARY}x = """' + '\n\\"""' * 150_000, None),
        ("environment.yml", f"{EVERY_LIBRARY}- transformers" + (" " * 99 + "a") * 9_000, None),
        ("setup.cfg", f"# {EVERY_LIBRARY}" + "".join(f"[a{n}]\n" for n in range(20_000)), None),
    ],
    ids=[*"abcdefghijklmnopqr"],
)
def test_hostile_requirements_take_no_time(tmp_path: Path, name: str, text: str, version: str | None) -> None:
    (tmp_path / name).write_text(text)
    start = time.process_time()
    assert transformers_version(tmp_path) == version
    assert time.process_time() - start < 3


HUGE = 15_900_000
PACKAGE = '[[package]]\nname = "torch"\n'


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", "# \N{PILE OF POO}\n" + PACKAGE * (HUGE // len(PACKAGE))),
        ("Pipfile.lock", '{"transformers": [' + "{}," * 1_300_000 + "{}]}"),
        pytest.param("uv.lock", "[[package]]\n\n\n\n" * (HUGE // 15), marks=pytest.mark.long),
        pytest.param("poetry.lock", "[[package]]" + "\n" * HUGE, marks=pytest.mark.long),
        pytest.param("pdm.lock", "x = " + "[" * HUGE, marks=pytest.mark.long),
        pytest.param("Pipfile.lock", '"transformers":' + "[" * 3_900_000, marks=pytest.mark.long),
    ],
    ids=["wide", "objects", "empty", "newlines", "deep", "deep JSON"],
)
def test_huge_locks_take_seconds_and_little_memory(tmp_path: Path, name: str, text: str) -> None:
    is_uv = name == "uv.lock"
    (tmp_path / name).write_text(f"{text}\n{UV_LOCK}" if is_uv else text, "utf-8")
    script = (
        "import resource, sys\nfrom shapefix.sources.requirements import transformers_version\n"
        "print(transformers_version(sys.argv[1]))\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime, used.ru_maxrss)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    version, seconds, kilobytes = subprocess.check_output(command, text=True, cwd=ROOT).split()
    assert version == ("4.57.6" if is_uv else "None")
    assert float(seconds) < 4
    # Until a process calls exec, it counts the memory of its parent.
    assert int(kilobytes) < max(200_000, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + 10_000)


def test_large_files_are_held_one_at_a_time(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"requirements-{number}.txt").write_text("transformers\n" * 70_000)
    (tmp_path / "requirements-z.txt").write_text("transformers==4.44.0\n")
    tracemalloc.start()
    try:
        assert transformers_version(str(tmp_path)) == "4.44.0"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"])
def test_larger_locks_are_one_warning(tmp_path: Path, name: str) -> None:
    most = 4_000_000 if name.startswith("P") else 16_000_000
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, most + 1)
    found = Requirements()
    assert found.transformers_version(str(tmp_path / "train.py"), str(tmp_path)) is None
    message = f"is too large to be read: more than {most // 1_000_000} MB; its requirements are not used"
    assert [each.message for each in found.unused()] == [message]


def test_a_lock_goes_before_a_pin_and_a_pin_before_bounds(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "requirements-old.txt").write_text("transformers==4.30.0")
    assert transformers_version(tmp_path) == "4.30.0"
    (tmp_path / "uv.lock").write_text(UV_LOCK)
    assert transformers_version(tmp_path) == "4.57.6"


@pytest.mark.parametrize(
    "data",
    [b"transformers = [", b"\xff\xfe transformers==4.4", b"[" * 100_000 + b"transformers", b"transformers\0"],
    ids=["not TOML", "not UTF-8", "deep", "NUL"],
)
def test_files_that_make_no_sense_say_nothing(tmp_path: Path, data: bytes) -> None:
    names = ("uv.lock", "Pipfile.lock", "pyproject.toml", "setup.cfg", "setup.py", "environment.yml")
    for name in (*names, "requirements.txt"):
        (tmp_path / name).write_bytes(data)
    assert transformers_version(tmp_path) is None
    (tmp_path / "requirements-x.txt").write_text("transformers==4.44.0")
    assert transformers_version(tmp_path) == "4.44.0"


@pytest.mark.parametrize(
    "text",
    ['{"default": []}', '{"default": {"transformers": 4}}', "[]", '"transformers"'],
)
def test_a_lock_of_another_shape_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "Pipfile.lock").write_text(text.replace("[]", '["transformers"]'))
    assert transformers_version(tmp_path) is None


def test_a_table_of_another_shape_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("project = 'transformers<5'\n[tool]\npoetry = [1, 2]\n")
    assert transformers_version(tmp_path) is None


def test_folders_and_missing_folders_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").mkdir()
    assert transformers_version(tmp_path) is None
    assert transformers_version(tmp_path / "missing") is None


def test_the_nearest_folder_that_decides(tmp_path: Path) -> None:
    near = tmp_path / "examples" / "old" / "scripts"
    near.mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("transformers<5")
    (near.parent / "requirements.txt").write_text("transformers==4.30.0")
    (near / "requirements.txt").write_text("transformers>=4.30")
    requirements = Requirements()
    root = str(tmp_path)
    assert requirements.transformers_version(str(near / "train.py"), root) == "4.30.0"
    assert requirements.transformers_version(str(tmp_path / "examples" / "train.py"), root) == "4.57"
    assert requirements.transformers_version(str(near / "train.py"), str(near)) is None


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        *(("4.57", True), ("5", True), ("5.0.0rc1", True), (" 4.57 ", True)),
        *(("", False), ("latest", False), ("4.x", False), ("<5", False)),
    ],
)
def test_versions(text: str, valid: bool) -> None:
    assert is_version(text) is valid


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        (
            "requirements.txt",
            "pytorch_lightning==1.5.10\ntorch==1.13.1+cu117",
            "lightning 1.5.10, torch 1.13.1",
        ),
        ("requirements.txt", "pytorch-lightning>=1.8\nlightning-utilities==0.3", "lightning 1.8"),
        ("requirements.txt", "lightning<2.2,>=2.0\ntrl~=0.9.4", "lightning 2.0, trl 0.9"),
        (
            "environment.yml",
            "dependencies:\n  - pytorch=1.12\n  - peft>=0.6",
            "lightning 2.1, peft 0.6, torch 1.12",
        ),
        ("uv.lock", UV_LOCK.replace("sentence-", "").replace("3.0.1", "4.0"), "transformers 4.0"),
        ("pyproject.toml", "[tool.poetry.dependencies]\naccelerate = '^0.30'", "accelerate 0.30"),
        ("pyproject.toml", "[tool.poetry.dependencies]\nlightning = {git = 'https://a/b'}", "lightning 0.0"),
        ("setup.py", "setup(install_requires=['torch>=2.6', 'torch-geometric==2.0'])", "torch 2.6"),
        (
            "requirements.txt",
            "torch==1.5.1\ntransformers==3.0.2",
            "lightning 1.3, torch 1.5.1, transformers 3.0.2",
        ),
        ("requirements.txt", "torch==1.12.1", "lightning 2.1, torch 1.12.1"),
        ("requirements.txt", "torch==2.0.1", "lightning 2.3, torch 2.0.1"),
        ("requirments.txt", "pytorch_lightning==0.9.0", "lightning 0.9.0"),
        ("requirement.txt", "trl==0.9.4", "trl 0.9.4"),
        ("requirements.txt", "torch==1.10.2\nlightning==1.4", "lightning 1.4, torch 1.10.2"),
    ],
)
def test_the_oldest_versions_of_other_libraries(tmp_path: Path, name: str, text: str, oldest: str) -> None:
    (tmp_path / name).write_text(text)
    found = Requirements().oldest_versions(str(tmp_path / "train.py"), str(tmp_path))
    stated = dict(each.split(" ") for each in oldest.split(", "))
    assert {library: found.get(library) for library in stated} == stated


INSTALLED = {"lightning": "pytorch-lightning", "transformers": "transformers", "accelerate": "accelerate"}


@pytest.mark.parametrize("library", INSTALLED)
def test_the_needs_of_what_is_installed_are_those_of_its_metadata(library: str) -> None:
    about = metadata.metadata(INSTALLED[library])
    needs = [Requirement(each) for each in about.get_all("Requires-Dist") or ()]
    oldest = {each.name: each.specifier for each in needs if "extra" not in str(each.marker)}
    oldest["python"] = SpecifierSet(about["Requires-Python"])
    for needed, steps in version_needs()[library].items():
        *_, bound = (b for since, b in steps.items() if Version(since) <= Version(about["Version"]))
        lowest = [each.version for each in oldest[needed] if each.operator.startswith(">")]
        assert [Version(each).release[:2] for each in lowest] == [Version(bound).release]


INSTALLING = ["!pip install -q \\\n", "  'trl==0.9.4'\n", "# !pip install peft==0.1\n"]
NOTEBOOK = {
    "cells": [{"cell_type": "code", "metadata": {}, "outputs": [], "source": INSTALLING}],
    "metadata": {},
    "nbformat": 4,
}
ELSEWHERE = {
    "HubMapEnv.yml": ("name: h\ndependencies:\n  - python=3.10\n  - pip:\n    - torch==2.0.1", "torch 2.0.1"),
    "config.yml": ("torch==2.0.1: yes", "torch -"),
    "build/requirements.txt": ("transformers==4.37.1", "transformers 4.37.1"),
    ".devcontainer/Dockerfile": (
        "FROM python:3.8-slim\nRUN pip install torch==1.9.0 && rm -r x",
        "torch 1.9.0",
    ),
    "docker/Dockerfile": ("FROM docker.io/python:3.8\n", "transformers 4.46"),
    "README.md": ("```\n$ pip install trl==0.9.4\n```", "trl 0.9.4"),
    "readme.md": ("Tested with:\n* Python 3.10\n* pytorch_lightning 1.5\n", "lightning 1.5"),
    "README_zh.md": ("- Python：3.7\n- PyTorch：1.4.0", "torch 1.4"),
    "README_link.md": ("- [Transformers](https://huggingface.co/docs/index) 4.15.0", "transformers 4.15"),
    "README_old.md": ("Needs PyTorch (0.4.1) and CUDA", "torch 0.4"),
    "README.rst": ("PyTorch Lightning 1.6 or later, torch 1.12.1", "lightning 1.6"),
    "README": ("faster than transformers/4.30 and sentence-transformers 2.2", "transformers -"),
    "environment.sh": ("set -e\npip install pytorch-lightning==1.6", "lightning 1.6"),
    "install.sh": ("conda install -y pytorch=1.9 cudatoolkit", "torch 1.9"),
    "runtime.txt": ("python-3.7.4\n", "transformers 4.30"),
    "pyproject.toml": ("[project]\nname = 'p'\nrequires-python = '>=3.7,<3.9'", "datasets 3.1"),
    "train.ipynb": (json.dumps(NOTEBOOK), "trl 0.9.4"),
    "./train.ipynb": (json.dumps(NOTEBOOK), "peft -"),
    "other.ipynb": (json.dumps(NOTEBOOK), "trl -"),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_requirements_in_other_places(tmp_path: Path, name: str) -> None:
    text, stated = ELSEWHERE[name]
    library, _, version = stated.partition(" ")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    found = Requirements().oldest_versions(str(tmp_path / "train.ipynb"), str(tmp_path))
    assert found.get(library, "-") == version


def test_a_folder_with_code_has_requirements_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "requirements.txt").write_text("datasets==2.14.0")
    (tmp_path / "old" / "train.py").touch()
    requirements, root = Requirements(), str(tmp_path)
    assert requirements.oldest_versions(str(tmp_path / "train.py"), root) == {}
    assert requirements.oldest_versions(str(tmp_path / "old" / "train.py"), root)["datasets"] == "2.14.0"


def test_each_library_has_its_own_nearest_folder(tmp_path: Path) -> None:
    near = tmp_path / "scripts"
    near.mkdir()
    (tmp_path / "requirements.txt").write_text("transformers==4.30.0\ntorch==1.9.0")
    (near / "requirements.txt").write_text("torch==2.7.0")
    requirements = Requirements()
    assert requirements.oldest_versions(str(near / "train.py"), str(tmp_path)) == {
        "transformers": "4.30.0",
        "torch": "2.7.0",
        "trl": "0.6",
    }


def test_the_versions_of_a_folder_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from shapefix.sources import requirements

    fitting = Mock(wraps=requirements.newest_fitting)
    monkeypatch.setattr(requirements, "newest_fitting", fitting)
    (tmp_path / "requirements.txt").write_text("torch==1.12.1")
    found, root = Requirements(), str(tmp_path)
    for number in range(20):
        assert found.oldest_versions(str(tmp_path / f"f{number}.py"), root)["lightning"] == "2.1"
        assert found.transformers_version(str(tmp_path / f"f{number}.py"), root) is None
    assert fitting.call_count == 1


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("# !pip install -q transformers==4.30.1", "4.30.1"),
        ("#%pip install 'transformers<4.31'", "4.30"),
        ("get_ipython().system('pip install transformers==4.30.1')", "4.30.1"),
        ("# pip install transformers==4.30.1", None),
        ("print('!pip install transformers==4.30.1')", None),
        ("# !pip install transformers", None),
    ],
)
def test_an_exported_notebook_keeps_its_commands(tmp_path: Path, line: str, version: str | None) -> None:
    (tmp_path / "train.py").write_text(f"import torch\n{line}\n")
    (tmp_path / "other.py").write_text("import torch\n")
    requirements = Requirements()
    assert requirements.transformers_version(str(tmp_path / "train.py"), str(tmp_path)) == version
    assert requirements.transformers_version(str(tmp_path / "other.py"), str(tmp_path)) is None


@pytest.mark.parametrize("name", ["pytorch-lightning", "pytorch_lightning", "PyTorch.Lightning"])
def test_names_of_packages_are_compared_as_pip_does(name: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(f'[tool.poetry.dependencies]\n"{name}" = "1.8.3"\n')
    found = Requirements().oldest_versions(str(tmp_path / "train.py"), str(tmp_path))
    assert found["lightning"] == "1.8.3"


@pytest.mark.parametrize("folder", ["transformers", "src/transformers", "transformers/src/transformers"])
def test_a_copy_of_a_library_states_its_version(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "__init__.py").write_text('"""transformers."""\n__version__ = "4.10.0.dev0"\n')
    assert transformers_version(tmp_path) == "4.10.0"
