"""`shapefix fix --apply` killed, run twice at once, or on a full disk: each file is old or new."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import REPAIRED_VIEW, ROOT, VIEW

from shapefix.cli.main import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")

FILES = {f"train{number}.py": VIEW + f"\nnumber = {number}\n" for number in range(4)}
REPAIRED = {name: text.replace(VIEW, REPAIRED_VIEW) for name, text in FILES.items()}


def fill(folder: Path) -> None:
    """Write the files to repair, with modes and in folders of their own."""
    folder.mkdir()
    for number, (name, text) in enumerate(FILES.items()):
        (folder / f"part{number}").mkdir()
        path = folder / f"part{number}" / name
        path.write_text(text)
        path.chmod(0o640 if number % 2 else 0o755)
    (folder / "notes.txt").write_text("mine")


def listed(folder: Path) -> dict[str, tuple[int, str]]:
    """The mode and digest of each file below a folder."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def started(folder: Path) -> int:
    """Start `fix --apply` in a fork, which has imported everything; returns its process."""
    process = os.fork()
    if process == 0:
        code = 125
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(null, stream)
            os.chdir(folder)
            code = run(["fix", "--apply", "--no-cache", "."])
        finally:
            os._exit(code)
    return process


def killed_at_random_moments(tmp_path: Path, kills: int) -> tuple[int, int]:
    """Kill runs at random moments until their end, each followed by a whole one.

    Returns the number of runs that left a draft, and of those that had repaired some files, but not all.
    """
    before, after = tmp_path / "before", tmp_path / "after"
    fill(before)
    fill(after)
    start = time.monotonic()
    assert os.waitstatus_to_exitcode(os.waitpid(started(after), 0)[1]) == 0
    longest = time.monotonic() - start
    old, new = listed(before), listed(after)
    assert old.keys() == new.keys()
    assert sum(old[name] != new[name] for name in old) == len(FILES)
    chance = random.Random(0)
    killed = drafts = partly = 0
    while killed < kills:
        folder = tmp_path / "run"
        shutil.copytree(before, folder)
        process = started(folder)
        time.sleep(chance.uniform(0, longest))
        os.kill(process, signal.SIGKILL)
        in_time = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL
        killed += in_time
        longest *= 1.02 if in_time else 0.95  # other processes make a run faster or slower
        found = listed(folder)
        left = found.keys() - old.keys()
        assert all(name.rpartition(".")[2] in ("shapefix-new", "shapefix-old") for name in left)
        assert len(left) <= 1
        for name in old:
            assert found[name] in (old[name], new[name]), name
        drafts += len(left)
        partly += 0 < sum(found[name] != old[name] for name in old) < len(FILES)
        assert os.waitstatus_to_exitcode(os.waitpid(started(folder), 0)[1]) == 0
        assert listed(folder) == new
        shutil.rmtree(folder)
    return drafts, partly


@pytest.mark.slow
def test_a_run_killed_at_some_moments_damages_nothing(tmp_path: Path) -> None:
    killed_at_random_moments(tmp_path, 10)


@pytest.mark.slow
@pytest.mark.long
def test_a_run_killed_at_five_hundred_moments_damages_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    drafts, partly = killed_at_random_moments(tmp_path, 500)
    record_property("counted", f"500 killed, {drafts} left a draft, {partly} had repaired some of the files")
    assert partly > 0
    assert drafts > 0


def command(folder: Path, *before: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*before, sys.executable, "-m", "shapefix", "fix", "--apply", "--no-cache", "."],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_two_runs_at_once_repair_each_file_once(tmp_path: Path) -> None:
    fill(tmp_path / "tree")
    runs = [command(tmp_path / "tree") for _ in range(2)]
    ended = [(*each.communicate(timeout=120), each.returncode) for each in runs]
    # A run that has found a file changed, or locked, has to be repeated.
    assert {code for _, _, code in ended} <= {0, 2}, ended
    for shown, errors, code in ended:
        reasons = ("cannot be repaired: ", "run shapefix again")
        assert (code == 2) == any(reason in shown + errors for reason in reasons), ended
    expected = tmp_path / "expected"
    fill(expected)
    for number, (name, text) in enumerate(REPAIRED.items()):
        (expected / f"part{number}" / name).write_text(text)
    assert listed(tmp_path / "tree") == listed(expected)


def test_a_limit_on_the_size_of_files_leaves_the_old_ones(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    fill(tmp_path / "tree")
    before = listed(tmp_path / "tree")
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))
        code = 125
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            code = os.waitstatus_to_exitcode(os.waitpid(started(tmp_path / "tree"), 0)[1])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 2
    assert listed(tmp_path / "tree") == before


FULL = """
mount -t tmpfs -o size=64k tmpfs "$1" || exit 77
cp -r "$2/." "$1" && cd "$1" || exit 78
cat /dev/zero > filling 2>/dev/null
before=$(find . -name '*.py' | sort | xargs cat | sha256sum)
"$3" -m shapefix fix --apply --no-cache . > "$4" 2>&1
code=$?
[ "$before" = "$(find . -name '*.py' | sort | xargs cat | sha256sum)" ] || exit 79
[ -z "$(find . -name '*shapefix*')" ] || exit 80
rm filling
"$3" -m shapefix fix --apply --no-cache . >> "$4" 2>&1 || exit 81
exit $code
"""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare")
def test_a_full_disk_leaves_the_old_files(tmp_path: Path) -> None:
    fill(tmp_path / "tree")
    (tmp_path / "small").mkdir()
    output = tmp_path / "output.txt"
    arguments = [str(tmp_path / "small"), str(tmp_path / "tree"), sys.executable, str(output)]
    ran = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", FULL, "sh", *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode in (1, 77) and not output.exists():
        pytest.skip(f"no file system can be mounted: {ran.stderr.strip()}")
    assert ran.returncode == 2, (ran.returncode, ran.stderr, output.read_text())
    assert output.read_text().lower().count("no space left on device") == len(FILES)
