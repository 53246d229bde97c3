"""A checked tree is only read: nothing in it is imported, run or written, in any process of shapefix."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from command_line import ROOT, VIEW, Project, project_in_a_folder  # noqa: F401

pytestmark = pytest.mark.slow

HOOK = """\
import json, os, sys

LOG = os.open(os.environ["AUDIT_LOG"], os.O_WRONLY | os.O_APPEND)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
CHANGES = {
    "os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink", "os.truncate", "os.chmod",
    "os.chown", "os.utime", "os.setxattr", "os.removexattr", "shutil.rmtree", "shutil.move",
}
STARTS = {
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "socket.connect", "pty.spawn",
}


def record(kind, *facts):
    os.write(LOG, (json.dumps([kind, *map(str, facts)]) + "\\n").encode())


def hook(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if not isinstance(path, int) and flags & WRITES:
            record("write", os.path.abspath(os.fsdecode(path)))
    elif event == "exec":
        name = arguments[0].co_filename
        # Python's own modules, and the classes that dataclasses and namedtuple write.
        record("exec", name if name.startswith("<") else os.path.abspath(name))
    elif event == "import":
        if arguments[1]:
            record("import", os.path.abspath(arguments[1]))
    elif event in CHANGES:
        for each in arguments:
            if isinstance(each, (str, bytes)):
                record("write", os.path.abspath(os.fsdecode(each)))
    elif event in STARTS:
        record("start", event, arguments[0] if arguments else "")


sys.addaudithook(hook)
"""
EVIL = "open({marker!r}, 'a').write(__file__ + chr(10))\n"
LIBRARIES = [
    *("click", "rich", "libcst", "packaging", "torch", "transformers", "numpy", "yaml", "shapefix_plugin"),
]
STANDARD = [
    *("json", "tomllib", "typing", "re", "ast", "multiprocessing", "hashlib", "pickle", "encodings"),
]
OTHERS = [
    *("conftest", "sitecustomize", "usercustomize", "setup", "noxfile", "evil_backend"),
    *("__init__", "__main__", "sub/click", "sub/conftest"),
]
CONSOLE_SCRIPT = "import sys\nfrom shapefix.cli.main import main\nsys.exit(main())\n"
CONFIGURED = """\
[tool.shapefix]
extend-select = ["SF102"]
output-format = "concise"

[tool.pytest.ini_options]
addopts = "-p evil"

[project]
name = "evil"
dynamic = ["version"]
dependencies = ["transformers==4.44.0"]

[build-system]
requires = ["evil"]
build-backend = "evil_backend"
backend-path = ["."]

[project.entry-points."shapefix.rules"]
evil = "shapefix_plugin:rules"
"""


@dataclass(frozen=True)
class Audited:
    """A run of shapefix in a hostile tree: its result, and what its processes did."""

    code: int
    out: str
    err: str
    events: tuple[tuple[str, ...], ...]

    def paths(self, kind: str) -> set[str]:
        return {event[1] for event in self.events if event[0] == kind}


def hostile_tree(project: Project, marker: Path, modules: list[str]) -> Path:
    folder = project(train="import click, torch, shapefix_plugin\n" + VIEW, model=VIEW)
    for name in modules:
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(VIEW.replace("logits", EVIL.format(marker=str(marker)) + "logits", 1))
    (folder / "evil.pth").write_text(f"import sys; {EVIL.format(marker=str(marker))}")
    (folder / "pyproject.toml").write_text(CONFIGURED)
    (folder / "setup.cfg").write_text("[options]\ninstall_requires = file: requirements.txt\n")
    (folder / "requirements.txt").write_text(
        "-r /etc/passwd\n--find-links http://localhost:9\ntransformers==4.44\n"
    )
    (folder / ".git" / "hooks").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text("[core]\n\tfsmonitor = touch evil\n\tpager = touch evil\n")
    return folder


def state(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def audited(folder: Path, elsewhere: Path, *arguments: str, is_module: bool = False) -> Audited:
    """Run shapefix with the tree as its working folder, under an audit hook in all its processes."""
    hooks = elsewhere / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "sitecustomize.py").write_text(HOOK)
    log = elsewhere / "log"
    log.write_bytes(b"")
    environment = os.environ | {"PYTHONPATH": f"{hooks}:{ROOT}", "AUDIT_LOG": str(log)}
    environment.pop("PYTHONSAFEPATH", None)
    script = elsewhere / "bin" / "shapefix"
    script.parent.mkdir(exist_ok=True)
    script.write_text(CONSOLE_SCRIPT)
    program = ["-m", "shapefix"] if is_module else [str(script)]
    done = subprocess.run(
        [sys.executable, "-B", *program, *arguments],
        cwd=folder,
        env=environment,
        input=VIEW.encode(),
        capture_output=True,
        check=False,
    )
    events = tuple(tuple(json.loads(line)) for line in log.read_text().splitlines())
    assert len(events) > 100, done.stderr
    return Audited(done.returncode, done.stdout.decode(), done.stderr.decode(), events)


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["check"], 1),
        (["check", "--no-cache", "--jobs", "2"], 1),
        pytest.param(["check", "--output-format", "json", "."], 1, marks=pytest.mark.long),
        pytest.param(["check", "train.py"], 1, marks=pytest.mark.long),
        (["check", "--show-settings"], 0),
        (["fix"], 1),
        (["fix", "--apply", "--unsafe-fixes"], 0),
        (["fix", "-"], 0),
        (["shapes", "train.py"], 2),
        pytest.param(["explain", "SF101"], 0, marks=pytest.mark.long),
        pytest.param(["rules"], 0, marks=pytest.mark.long),
    ],
)
def test_nothing_in_the_tree_is_imported_run_or_written(
    project: Project, tmp_path_factory: pytest.TempPathFactory, command: list[str], code: int
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    folder = hostile_tree(project, elsewhere / "marker", LIBRARIES + STANDARD + OTHERS)
    before = state(folder)
    ran = audited(folder, elsewhere, *command)
    assert ran.code == code, ran.err
    untouched(folder, elsewhere, ran)
    after = state(folder)
    assert after.keys() == before.keys()
    changed = {name for name in after if after[name] != before[name]}
    if "--apply" in command:
        assert "train.py" in changed
        assert all(name.endswith(".py") for name in changed)
    else:
        assert not changed
        assert not [path for path in ran.paths("write") if path.startswith(f"{folder}{os.sep}")]


def untouched(folder: Path, elsewhere: Path, ran: Audited) -> None:
    """Assert that no code of the tree was run, and no other program."""
    assert not (elsewhere / "marker").exists(), (elsewhere / "marker").read_text()
    run = ran.paths("import") | ran.paths("exec")
    assert not [path for path in run if path.startswith(f"{folder}{os.sep}")]
    assert not [event for event in ran.events if event[0] == "start"]


def test_python_m_takes_no_library_from_the_tree(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Python itself takes what it needs of the standard library from there, before any code of shapefix runs.
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    folder = hostile_tree(project, elsewhere / "marker", LIBRARIES + OTHERS)
    ran = audited(folder, elsewhere, "check", is_module=True)
    assert ran.code == 1, ran.err
    untouched(folder, elsewhere, ran)


def test_the_hook_sees_what_it_should(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    marker = elsewhere / "marker"
    folder = hostile_tree(project, marker, ["sub/click"])
    (folder / "click.py").write_text(EVIL.format(marker=str(marker)))
    (elsewhere / "hooks").mkdir()
    (elsewhere / "hooks" / "sitecustomize.py").write_text(HOOK)
    log = elsewhere / "log"
    log.touch()
    environment = os.environ | {"PYTHONPATH": f"{elsewhere}/hooks", "AUDIT_LOG": str(log)}
    code = "import click, os; os.mkdir('made'); exec(compile('1', 'train.py', 'exec'))"
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True)
    events = {tuple(json.loads(line)) for line in log.read_text().splitlines()}
    assert {
        ("exec", f"{folder}/click.py"),
        ("write", f"{folder}/made"),
        ("exec", f"{folder}/train.py"),
    } <= events
    assert marker.exists()
