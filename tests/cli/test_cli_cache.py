"""A cache in a checked repository is never believed, and never leads out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import pytest
from command_line import VIEW, Project, Ran, project_in_a_folder, shapefix  # noqa: F401

from shapefix.engine import user_cache as module
from shapefix.engine.user_cache import default_folder, project_folder, signing_key

POSIX_ONLY = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")


def findings(*arguments: str) -> tuple[int, list[str]]:
    ran = shapefix("check", "--output-format", "json", *arguments)
    return ran.code, [each["message"] for each in json.loads(ran.out)]


def as_another_user(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Use another folder for the user's cache, and so another key."""
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name != ".gitignore"]


def test_a_planted_entry_of_another_user_changes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('cache-dir = "cached"\n')
    expected = findings()
    assert expected[0] == 1
    assert findings() == expected
    (entry,) = entries(folder / "cached")
    honest = entry.read_bytes()
    # The attacker runs the same shapefix at the same path, and signs an entry without findings.
    mine = os.environ["XDG_CACHE_HOME"]
    as_another_user(monkeypatch, tmp_path_factory.mktemp("attacker"))
    payload = json.loads(honest.partition(b"\n")[2])
    payload[4] = []
    key = signing_key()
    assert key is not None
    planted = json.dumps(payload, separators=(",", ":")).encode()
    signature = blake2b(entry.name.encode() + b"\n" + planted, digest_size=16, key=key).hexdigest()
    entry.write_bytes(signature.encode() + b"\n" + planted)
    assert findings() == (0, [])
    planted_entry = entry.read_bytes()
    # For the user, neither that one nor any other form of it counts.
    monkeypatch.setenv("XDG_CACHE_HOME", mine)
    unsigned = blake2b(planted, digest_size=16).hexdigest().encode()
    for data in (planted_entry, unsigned + b"\n" + planted, planted, b"\n" + planted, b""):
        entry.write_bytes(data)
        assert findings() == expected


def test_an_entry_of_one_file_does_not_count_for_another(project: Project) -> None:
    folder = project(a=VIEW.replace("view(-1, 8)", "view(24, 8)").replace(", :-1", ""), b=VIEW)
    (folder / "shapefix.toml").write_text('cache-dir = "cached"\n')
    assert findings("a.py") == (0, [])
    (clean,) = entries(folder / "cached")
    expected = findings("b.py")
    assert expected[0] == 1
    (other,) = {*entries(folder / "cached")} - {clean}
    (folder / "b.py").write_bytes((folder / "a.py").read_bytes())
    other.write_bytes(clean.read_bytes())
    (folder / "b.py").write_text(VIEW)
    assert findings("b.py") == expected


@POSIX_ONLY
def test_pipes_and_links_in_the_cache_are_misses(project: Project, tmp_path: Path) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('cache-dir = "cached"\n')
    expected = findings()
    (entry,) = entries(folder / "cached")
    kinds: list[Callable[[], None]] = [
        lambda: os.mkfifo(entry),
        lambda: entry.symlink_to("/dev/zero"),
        lambda: entry.mkdir(),
    ]
    for make in kinds:
        entry.unlink()
        make()
        assert findings() == expected
        if entry.is_dir():
            entry.rmdir()
            entry.touch()


@pytest.mark.parametrize("chosen", ["..", "../other", "~/other", "/tmp/other", ".", "link", "link/deep"])
def test_a_cache_dir_out_of_the_repository_is_refused(
    project: Project, chosen: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    other = home / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    monkeypatch.setenv("HOME", str(home))
    folder = project(repo__train=VIEW) / "repo"
    (folder / "link").symlink_to(other)
    (folder / "shapefix.toml").write_text(f'cache-dir = "{chosen}"\n')
    ran: Ran = shapefix("check", "--output-format", "concise", "repo")
    (line,) = ran.err.splitlines()
    assert line.startswith("warning: repo/shapefix.toml: cache-dir: ")
    assert "is not below the folder of this file; it is not used" in line
    assert ran.code == 1
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    assert sorted(path.name for path in folder.iterdir()) == ["link", "shapefix.toml", "train.py"]
    assert [path.name for path in folder.parent.iterdir()] == ["repo"]
    # The user may choose any folder.
    chosen_by_user = shapefix("check", "--config", "repo/shapefix.toml", "repo")
    assert "cache-dir" not in chosen_by_user.err


def test_a_folder_with_other_files_does_not_become_a_cache(project: Project) -> None:
    folder = project(src__train=VIEW)
    (folder / "shapefix.toml").write_text('cache-dir = "src"\n')
    assert findings()[0] == 1
    assert [path.name for path in (folder / "src").iterdir()] == ["train.py"]


def test_nothing_is_cached_where_the_user_has_no_folder(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(train=VIEW)
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    assert findings()[0] == 1
    monkeypatch.setattr(module, "default_folder", lambda: None)
    assert project_folder(str(folder)) is None
    assert signing_key() is None


@POSIX_ONLY
def test_a_key_that_others_can_write_is_not_used(user_cache: Path) -> None:
    key = signing_key()
    assert key is not None
    path = user_cache / "shapefix" / "key"
    assert path.stat().st_mode & 0o777 == 0o600
    for broken in (
        lambda: path.chmod(0o666),
        lambda: path.parent.chmod(0o777),
        lambda: path.write_bytes(b"x"),
    ):
        module._key_in.cache_clear()
        path.chmod(0o600)
        path.parent.chmod(0o700)
        assert signing_key() == key
        broken()
        module._key_in.cache_clear()
        assert signing_key() is None
    module._key_in.cache_clear()


def test_processes_at_the_same_time_agree_on_a_key(tmp_path: Path) -> None:
    code = "from shapefix.engine.user_cache import signing_key; print(signing_key().hex())"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            env=os.environ
            | {"XDG_CACHE_HOME": str(tmp_path / "new"), "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
        )
        for _ in range(6)
    ]
    keys = {process.communicate()[0] for process in started}
    assert len(keys) == 1
    assert os.listdir(tmp_path / "new" / "shapefix") == ["key"]  # noqa: PTH208


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, "/home/me/.cache/shapefix"),
        ("linux", {"XDG_CACHE_HOME": "/var/me"}, "/var/me/shapefix"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/shapefix"),
        ("darwin", {}, "/home/me/Library/Caches/shapefix"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/shapefix/Cache"),
        ("win32", {}, "/home/me/AppData/Local/shapefix/Cache"),
    ],
)
def test_the_folder_follows_the_conventions_of_the_system(
    platform: str, environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert default_folder(environ, platform) == expected


def test_results_of_old_projects_are_removed(project: Project, user_cache: Path) -> None:
    own = user_cache / "shapefix"
    for name, age in (("old-0123456789abcdef", 61), ("recent-0123456789abcdef", 59), ("other", 900)):
        (own / name).mkdir(parents=True)
        (own / name / "entry").touch()
        stamp = time.time() - age * 86_400
        os.utime(own / name, (stamp, stamp))
    own.chmod(0o700)
    folder = project(train=VIEW)
    findings()
    here = Path(project_folder(str(folder)) or "").name
    assert {path.name for path in own.iterdir()} == {"recent-0123456789abcdef", "other", "key", here}
