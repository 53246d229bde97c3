"""A file is either old or new, whatever happens."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from shapefix.repair.writes import ChangedOnDisk, write


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_bytes(b"old\r\n")
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_content_is_replaced_byte_for_byte(script: Path) -> None:
    write(script, b"\xef\xbb\xbfnew\r\n\xff", b"old\r\n")
    assert script.read_bytes() == b"\xef\xbb\xbfnew\r\n\xff"
    assert names(script.parent) == ["train.py"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664])
def test_the_mode_stays(script: Path, mode: int) -> None:
    script.chmod(mode)
    write(script, b"new", b"old\r\n")
    assert script.stat().st_mode & 0o7777 == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays(script: Path) -> None:
    os.chown(script, 1234, 4321)
    script.chmod(0o4755)
    write(script, b"new", b"old\r\n")
    status = script.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o7777) == (1234, 4321, 0o4755)


def test_a_symlink_stays_and_its_target_changes(script: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "link.py"
    link.symlink_to("../train.py")
    write(link, b"new", b"old\r\n")
    assert link.is_symlink()
    assert script.read_bytes() == b"new"
    assert names(link.parent) == ["link.py"]


def test_a_file_that_changed_since_it_was_read_is_left_alone(script: Path) -> None:
    with pytest.raises(ChangedOnDisk, match=r"train\.py changed on disk"):
        write(script, b"new", b"what was read")
    assert script.read_bytes() == b"old\r\n"
    assert names(script.parent) == ["train.py"]


@pytest.mark.parametrize("step", ["fsync", "replace", "chmod"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    script: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(*((os, "fsync", fail) if step == "fsync" else (Path, step, fail)))
    with pytest.raises(OSError, match="No space left"):
        write(script, b"new", b"old\r\n")
    monkeypatch.undo()
    assert script.read_bytes() == b"old\r\n"
    assert names(script.parent) == ["train.py"]


def test_an_interrupt_leaves_nothing_behind(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(handle: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(script, b"new", b"old\r\n")
    monkeypatch.undo()
    assert names(script.parent) == ["train.py"]


def test_folders_and_missing_files_are_errors(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="not a regular file"):
        write(tmp_path, b"new", b"")
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "gone.py", b"new", b"")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_an_error(script: Path) -> None:
    script.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        write(script, b"new", b"old\r\n")


def test_what_a_killed_process_left_is_removed_once_it_is_old(script: Path) -> None:
    left = [script.with_name(f".train.py.{age}.shapefix-new") for age in ("old", "young")]
    for path in left:
        path.write_bytes(b"half")
    os.utime(left[0], (time.time() - 3600,) * 2)
    write(script, b"new", b"old\r\n")
    assert names(script.parent) == [".train.py.young.shapefix-new", "train.py"]


WRITER = """
import itertools, pathlib, sys
from shapefix.repair.writes import write
path, texts = pathlib.Path(sys.argv[1]), [letter * 300_000 for letter in (b"a", b"b")]
print("ready", flush=True)
now = texts.index(path.read_bytes())
for count in itertools.count():
    write(path, texts[1 - now], texts[now])
    now = 1 - now
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing kills that hard here")
def test_a_process_killed_at_any_moment_leaves_the_file_old_or_new(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"a" * 300_000)
    chance = random.Random(0)
    kills = 25
    for _ in range(kills):
        command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0, 0.02))
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert path.read_bytes() in (b"a" * 300_000, b"b" * 300_000)
    left = [name for name in names(tmp_path) if name != "train.py"]
    assert len(left) <= kills, "a killed process leaves one temporary file at most"
    for name in left:
        os.utime(tmp_path / name, (0, 0))
    write(path, b"new", path.read_bytes())
    assert names(tmp_path) == ["train.py"]
