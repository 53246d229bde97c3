"""Whatever goes wrong is one clear line, and costs only what it must."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CLEAN, ROOT, VIEW, Project, program, project_in_a_folder, shapefix  # noqa: F401

BAD: dict[str, tuple[bytes, str]] = {
    "syntax": (b"import torch\ndef f(:\n", "syntax.py:2:7: cannot be parsed: invalid syntax"),
    "python2": (b"import torch\nprint 'x'\n", "python2.py:2:1: cannot be parsed: Missing parentheses"),
    "conflict": (
        b"import torch\n<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> 1f2e3d\n",
        "conflict.py:2:1: cannot be parsed: a merge conflict is not resolved",
    ),
    "async": (
        b"import torch\nx = torch.ones(2).cuda(device=None, async=True)\n",
        "async.py:2:37: cannot be parsed: `async` is a keyword since Python 3.7; the argument of torch is",
    ),
    "no_torch": (b"def f(:\n", "no_torch.py:1:7: cannot be parsed: invalid syntax"),
    "nul": (b"import torch\nx = '\0'\n", "nul.py:2:6: contains a NUL byte"),
    "latin1": (b"import torch\nx = '\xe9'\n", "latin1.py:2:6: is not valid UTF-8"),
    "codec": (b"# coding: klingon\nimport torch\n", "codec.py:1: names the encoding 'klingon'"),
    "parentheses": (
        b"import torch\nx = " + b"(" * 10_000 + b")" * 10_000,
        "parentheses.py:2: is nested too deeply to be parsed",
    ),
    "chain": (b"import torch\nx = " + b"-" * 50_000 + b"1", "chain.py:2: is nested too deeply"),
    "big": (b"import torch\n" + b"x = [1, 2, 3]\n" * 150_000, "big.py: is too large to be analyzed (2.1 MB"),
}
GOOD: dict[str, bytes] = {
    "coding_line": b"# coding: latin-1\nimport torch\nx = '\xe9'\n",
    "crlf": CLEAN.replace("\n", "\r\n").encode(),
    "bom": CLEAN.encode("utf-8-sig"),
    "tabs": b"import torch\nif torch:\n\tx = 1\n",
    "form_feed": b"import torch\n\x0c\nx = 1\n",
    "empty": b"",
    "no_newline": b"import torch",
}


def tree(folder: Path) -> dict[str, bytes | str]:
    """All that is in a folder, but for the cache."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if ".shapefix_cache" not in path.parts and (path.is_symlink() or path.is_file())
    }


@pytest.mark.parametrize("command", [["check"], ["fix"], ["fix", "--apply"]], ids=" ".join)
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_bad_files_cost_one_line_each_and_nothing_else(
    project: Project, command: list[str], jobs: str
) -> None:
    folder = project(**{name: data for name, (data, _) in BAD.items()}, **GOOD)
    (folder / "loop.py").symlink_to("loop.py")
    (folder / "around").symlink_to(folder)
    # Even the superuser may not read what is not mapped.
    (folder / "unreadable.py").symlink_to("/proc/self/mem")
    if command != ["fix", "--apply"]:
        project(finding=VIEW)
    before = tree(folder)
    color = [] if "--apply" in command else ["--color", "never"]
    ran = shapefix(*command, "--jobs", jobs, *color, ".", "unreadable.py")
    lines = [line for line in (ran.out + ran.err).splitlines() if line.startswith("error: ")]
    for _, expected in BAD.values():
        assert len([line for line in lines if line.startswith(f"error: {expected}")]) == 1, expected
    assert len([line for line in lines if "loop.py: it is a symbolic link" in line]) == 1
    assert len([line for line in lines if "around: is a symbolic link back to" in line]) == 1
    assert len([line for line in lines if "unreadable.py: cannot be read: input/output error" in line]) == 1
    assert len(lines) == len(BAD) + 3
    assert ran.code == 2
    assert tree(folder) == before
    if command != ["fix", "--apply"]:
        assert "finding.py" in ran.out


def test_a_path_that_does_not_exist(project: Project) -> None:
    project(train=VIEW)
    ran = shapefix("check", "--output-format", "concise", "missing.py", "train.py")
    assert ran.code == 2
    assert ran.out.splitlines()[0].startswith("train.py:5:8: SF101")
    assert ran.out.splitlines()[1] == "error: missing.py: no such file or folder"


def test_a_file_that_vanishes_while_we_run(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(gone=VIEW, train=VIEW)
    from shapefix.engine import source_overlay
    from shapefix.sources.text import read_bytes as read

    def late(path: str, most: int | None = None) -> bytes:
        (folder / "gone.py").unlink(missing_ok=True)
        return read(path, most)

    monkeypatch.setattr(source_overlay, "read_bytes", late)
    ran = shapefix("check", "--output-format", "concise")
    assert ran.code == 2
    assert "error: gone.py: cannot be read: no such file or folder" in ran.out.splitlines()
    assert ran.out.startswith("train.py:5:8: SF101")


def test_a_rule_that_raises(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project(train=VIEW, model="import torch\n")
    from shapefix.checks import registry
    from shapefix.domains.operations import Viewed

    def broken(event: object, run: object) -> list[object]:
        raise ZeroDivisionError("one over nothing")

    monkeypatch.setattr(registry, "CHECKS", [("SF101", Viewed, broken)])
    ran = shapefix("check", "--no-cache")
    (line,) = [line for line in ran.out.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: train.py: internal error in rule SF101 (test_cli_errors.py:")
    assert line.endswith("please report it: ZeroDivisionError: one over nothing")
    assert ran.code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "no such command 'chekc'; did you mean 'check'?"),
        (["train.py"], "no such command 'train.py'; did you mean `shapefix check train.py`?"),
        (["check", "--slect", "SF1"], "no such option"),
        (
            ["check", "--fix", "--exit-non-zero-on-fix", "--exit-zero"],
            "--exit-non-zero-on-fix and --exit-zero cannot be combined",
        ),
        (
            ["check", "--diff", "--statistics"],
            "--diff and --statistics cannot be combined; run the command twice",
        ),
        (["fix", "--diff"], "no such option '--diff'; `shapefix fix` shows the diff without any option"),
        (["fix", "--fix"], "use `shapefix fix --apply` to write the repairs"),
        (["check", "--version"], "use `shapefix --version`"),
        (["check", "--select", "F401"], "--select: 'F401' is not a shapefix rule"),
        (["check", "--select", "SF999"], "--select: unknown rule 'SF999'"),
        (["check", "--output-format", "xml"], "invalid value for '--output-format'"),
        (["check", "--jobs", "0"], "invalid value for '--jobs'"),
        (["check", "-", "train.py"], "cannot combine standard input (-) with other paths"),
        (["check", "--config", "missing.toml"], "missing.toml: cannot be read: no such file or folder"),
        (["check", "--config", "a.toml", "--isolated"], "--config FILE and --isolated cannot be combined"),
        (["check", "--ignore"], "option '--ignore' requires an argument (see `shapefix check --help`)"),
        (["explain", "SF1O1"], "unknown rule 'SF1O1'; did you mean 'SF101'?"),
        (["explain"], "missing argument 'RULE'"),
    ],
)
def test_usage_errors_are_one_line(project: Project, arguments: list[str], message: str) -> None:
    project(train=VIEW)
    ran = shapefix(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    (line,) = ran.err.splitlines()
    assert line.startswith("error: ")
    assert message in line


def test_a_version_that_is_too_long_to_read_leaves_the_findings(project: Project) -> None:
    folder = project(train=VIEW)
    (folder / "requirements.txt").write_text(f"transformers=={'9' * 5_000}\n")
    ran = shapefix("check")
    assert (ran.code, ran.err) == (1, "")
    assert "error[SF101]" in ran.out
    (folder / "pyproject.toml").write_text(f'[tool.shapefix]\ntransformers-version = "{"9" * 5_000}"\n')
    ran = shapefix("check")
    assert (ran.code, ran.out) == (2, "")
    assert "transformers-version must be a version" in ran.err
    assert len(ran.err) < 500


def test_a_broken_configuration_is_one_line(project: Project) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('selct = ["SF101"]\n')
    ran = shapefix("check")
    assert ran.code == 2
    expected = f"error: {folder / 'shapefix.toml'}: unknown key 'selct'; did you mean 'select'?\n"
    assert ran.err == expected


def test_an_internal_error_is_one_line_and_verbose_shows_where(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(train=VIEW)
    from shapefix.engine.merge import FindingsByFile

    def broken(self: FindingsByFile) -> None:
        raise ZeroDivisionError("one over nothing")

    monkeypatch.setattr(FindingsByFile, "kept", broken)
    ran = shapefix("check")
    assert ran.code == 2
    assert ran.err.startswith("error: internal error, please report it: ZeroDivisionError: one over nothing")
    assert len(ran.err.splitlines()) == 1
    assert "Traceback" in shapefix("check", "--verbose").err


def test_a_reader_that_goes_away_ends_us_quietly(project: Project) -> None:
    project(**{f"train{number}": VIEW for number in range(200)})
    command = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "check", "--output-format", "json", "."],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    command.stdout.read(10)
    command.stdout.close()
    assert command.stderr is not None
    assert command.stderr.read() == b""
    assert command.wait() == 141


def is_parsing(process: int) -> bool:
    """Whether a process, or one of its workers, has loaded the parser."""
    folder = Path(f"/proc/{process}")
    try:
        workers = (folder / f"task/{process}/children").read_text().split()
        is_loaded = b"libcst" in (folder / "maps").read_bytes()
    except OSError:
        return False
    return is_loaded or any(is_parsing(int(worker)) for worker in workers)


@pytest.mark.skipif(sys.platform != "linux", reason="sees in /proc when the parser is loaded")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_ends_at_once(project: Project, jobs: str) -> None:
    project(**{f"train{number}": VIEW * 200 for number in range(100)})
    command = subprocess.Popen(
        [sys.executable, "-m", "shapefix", "check", "--no-cache", "--jobs", jobs, "."],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not is_parsing(command.pid):
        assert command.poll() is None
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert (out, err.strip()) == ("", "")
    with pytest.raises(ProcessLookupError):
        os.killpg(command.pid, 0)


def test_output_that_the_terminal_cannot_encode_is_escaped(project: Project) -> None:
    project(größe=VIEW.replace("shift", "größe"))
    ran = program("check", "--output-format", "concise", environment={"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 1
    assert ran.stdout.startswith(b"gr\\xf6\\xdfe.py:5:8: SF101")


@pytest.mark.slow
def test_code_is_neither_imported_nor_run(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = project(
        conftest="open('imported', 'w')\n",
        setup="import torch\nopen('imported', 'w')\n",
        helper="import torch\nopen('imported', 'w')\n",
        train="import helper\nopen('imported', 'w')\n" + VIEW,
    )
    # A torch that tells when somebody imports it.
    libraries = tmp_path_factory.mktemp("libraries")
    (libraries / "torch.py").write_text("open('imported', 'w')\n")
    for command in (["check"], ["fix", "--apply"]):
        ran = program(*command, "--no-cache", ".", environment={"PYTHONPATH": f"{ROOT}:{libraries}:{folder}"})
        assert ran.returncode in (0, 1), ran.stderr
    assert not (folder / "imported").exists()
    assert ".reshape" in (folder / "train.py").read_text()
