"""A file is either old or new, whatever happens."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import struct
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from shapefix.repair import writes
from shapefix.repair.exchange import exchange, lock
from shapefix.repair.writes import ChangedOnDisk, LeftAlone, remove_abandoned, write


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


@pytest.mark.parametrize("step", ["fsync", "exchange", "chmod"])
def test_a_failure_at_any_step_leaves_the_old_file_and_nothing_else(
    script: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise OSError("No space left on device")

    owners: dict[str, object] = {"fsync": os, "exchange": writes, "chmod": Path}
    monkeypatch.setattr(owners[step], step, fail)
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


def test_what_a_killed_process_left_is_removed_by_the_next(script: Path) -> None:
    old, new = (hashlib.sha256(text).hexdigest()[:16] for text in (b"old\r\n", b"new"))
    half = script.with_name(f".train.py.{old}.{new}.00000000.shapefix-new")
    half.write_bytes(b"n")
    whole = script.with_name(f".other.py.{old}.{new}.00000000.shapefix-old")
    whole.write_bytes(b"new")
    # After the exchange, a draft may be the only copy of what an editor has saved.
    saved = script.with_name(f".train.py.{old}.{new}.00000001.shapefix-old")
    saved.write_bytes(b"saved by an editor")
    locked = script.with_name(f".train.py.{old}.{new}.00000002.shapefix-new")
    locked.write_bytes(b"n")
    others = script.with_name(".train.py.mine.shapefix-new")
    others.write_bytes(b"not a draft")
    with locked.open("rb") as held:
        lock(held.fileno())
        write(script, b"new", b"old\r\n")
    assert names(script.parent) == sorted(["train.py", saved.name, locked.name, others.name])
    remove_abandoned([script.parent])
    assert names(script.parent) == sorted(["train.py", saved.name, others.name])


needs_attributes = pytest.mark.skipif(sys.platform != "linux", reason="attributes are read on Linux only")

ACCESS_LIST = struct.pack("<I", 2) + b"".join(
    # The user, the user 1234, the group, the mask, and others.
    struct.pack("<HHI", tag, rights, number)
    for tag, rights, number in (
        (1, 6, 0xFFFFFFFF), (2, 6, 1234), (4, 4, 0xFFFFFFFF), (16, 6, 0xFFFFFFFF), (32, 4, 0xFFFFFFFF)
    )
)  # fmt: skip


def attributes(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"{name}: {error.strerror}")


@needs_attributes
def test_extended_attributes_and_access_control_lists_stay(script: Path) -> None:
    set_attribute(script, "user.label", b"mine")
    set_attribute(script, "system.posix_acl_access", ACCESS_LIST)
    before, mode = attributes(script), script.stat().st_mode
    assert set(before) >= {"user.label", "system.posix_acl_access"}
    write(script, b"new", b"old\r\n")
    assert script.read_bytes() == b"new"
    assert attributes(script) == before
    assert script.stat().st_mode == mode


@needs_attributes
def test_the_default_access_control_list_of_the_folder_is_not_added(script: Path) -> None:
    set_attribute(script.parent, "system.posix_acl_default", ACCESS_LIST)
    write(script, b"new", b"old\r\n")
    assert "system.posix_acl_access" not in attributes(script)
    assert script.read_bytes() == b"new"


@needs_attributes
def test_a_file_that_would_lose_an_attribute_is_left_alone(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object, name: str, value: bytes) -> None:
        raise PermissionError(1, "Operation not permitted")

    set_attribute(script, "user.label", b"mine")
    monkeypatch.setattr(os, "setxattr", refuse)
    with pytest.raises(LeftAlone, match=r"train\.py would lose its attribute user\.label"):
        write(script, b"new", b"old\r\n")
    assert script.read_bytes() == b"old\r\n"
    assert names(script.parent) == ["train.py"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_of_another_owner_is_left_alone(unprivileged: Path) -> None:
    unprivileged.chmod(0o777)
    path = unprivileged / "train.py"
    path.write_bytes(b"old")
    path.chmod(0o666)
    os.seteuid(0)
    os.chown(path, 1234, -1)
    os.seteuid(65534)
    with pytest.raises(LeftAlone, match="would lose its owner"):
        write(path, b"new", b"old")
    assert path.read_bytes() == b"old"
    assert names(unprivileged) == ["train.py"]


def test_a_file_with_a_second_hard_link_is_left_alone(script: Path) -> None:
    script.with_name("same.py").hardlink_to(script)
    with pytest.raises(LeftAlone, match="has 2 hard links"):
        write(script, b"new", b"old\r\n")
    assert names(script.parent) == ["same.py", "train.py"]
    assert script.read_bytes() == b"old\r\n"


def test_a_file_without_any_write_permission_is_an_error_for_root_too(script: Path) -> None:
    script.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        write(script, b"new", b"old\r\n")


def save_in_place(path: Path) -> None:
    path.write_bytes(b"saved")


def save_by_rename(path: Path) -> None:
    path.with_name("swap").write_bytes(b"saved")
    path.with_name("swap").replace(path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges files")
@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_save_at_the_last_moment_is_kept(script: Path, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """An editor saves by rename before each of the first exchanges."""
    count = 0

    def late(one: Path, other: Path) -> bool:
        nonlocal count
        count += 1
        if count <= times:
            other.with_name("swap").write_bytes(f"saved {count}".encode())
            other.with_name("swap").replace(other)
        return exchange(one, other)

    monkeypatch.setattr(writes, "exchange", late)
    with pytest.raises(ChangedOnDisk):
        write(script, b"new", b"old\r\n")
    assert script.read_bytes() == f"saved {times}".encode()
    assert names(script.parent) == ["train.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has leases")
def test_a_save_in_place_at_the_last_moment_is_kept(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An editor opens the file just before the exchange, and waits for the lease."""
    count, editors = 0, []

    def late(one: Path, other: Path) -> bool:
        nonlocal count
        count += 1
        if count == 1:
            save = f"open({str(other)!r}, 'wb').write(b'saved')"
            editors.append(subprocess.Popen([sys.executable, "-IS", "-c", save]))
            time.sleep(0.5)
        return exchange(one, other)

    monkeypatch.setattr(writes, "exchange", late)
    with pytest.raises(ChangedOnDisk):
        write(script, b"new", b"old\r\n")
    (editor,) = editors
    assert editor.wait(60) == 0
    assert script.read_bytes() == b"saved"
    assert names(script.parent) == ["train.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has leases")
def test_a_file_open_for_writing_is_left_alone(script: Path) -> None:
    with script.open("ab"), pytest.raises(ChangedOnDisk):
        write(script, b"new", b"old\r\n")
    assert script.read_bytes() == b"old\r\n"


EDITOR = """
import os, select, sys, time
path, by_rename = sys.argv[1], int(sys.argv[2])
number = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    number += 1
    text = f"save {number}".encode()
    if by_rename:
        with open(path + ".swap", "wb") as file:
            file.write(text)
        os.replace(path + ".swap", path)
    else:
        # In one call, so that no half-written text is repaired.
        descriptor = os.open(path, os.O_WRONLY)
        os.pwrite(descriptor, text.ljust(20), 0)
        os.close(descriptor)
    # A save is lost if an older text stays at its path, repaired or not. A busy disk may put it back late.
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with open(path, "rb") as file:
            found = file.read()
        if found.split()[-1] == text.split()[-1]:
            break
        time.sleep(0.01)
    else:
        print("lost", text, found, flush=True)
        sys.exit(1)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges files and has leases")
@pytest.mark.parametrize("by_rename", [True, False])
def test_an_editor_that_saves_all_the_time_loses_nothing(tmp_path: Path, by_rename: bool) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(b"save 0".ljust(20))
    written = changed = 0
    with subprocess.Popen(
        [sys.executable, "-IS", "-c", EDITOR, str(path), str(int(by_rename))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as editor:
        until = time.monotonic() + 5
        while time.monotonic() < until and editor.poll() is None:
            text = path.read_bytes()
            try:
                write(path, b"fixed " + text.removeprefix(b"fixed "), text)
                written += 1
            except ChangedOnDisk:
                changed += 1
        output, _ = editor.communicate()
        assert editor.returncode == 0, output
    assert written > 0 < changed
    assert written + changed > 100
    assert [name for name in names(tmp_path) if "shapefix" in name] == []


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
        assert len(names(tmp_path)) <= 2, "a killed process leaves one draft at most"
    write(path, b"new", path.read_bytes())
    assert names(tmp_path) == ["train.py"]
