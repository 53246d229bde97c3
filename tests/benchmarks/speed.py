"""How fast shapefix is on a tree of real code, against bare parsing: `python tests/benchmarks/speed.py TREE`.

CPU times (user and system) are of child processes, each the best of a few runs; memory is the peak of one.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FEWEST_FILES = 300

PARSE = """
import sys, libcst
for path in sys.stdin.read().split("\\0"):
    with open(path, "rb") as file:
        data = file.read()
    try:
        libcst.parse_module(data)
    except libcst.ParserSyntaxError:
        pass
"""


@dataclass(frozen=True)
class Cost:
    """Seconds of CPU, and the peak of memory in MiB."""

    seconds: float
    memory: float


def cost(command: Sequence[str], stdin: str = "", repeat: int = 1) -> Cost:
    """The smallest cost of a command among some runs. Raises RuntimeError when it fails."""
    costs = []
    for _ in range(repeat):
        with tempfile.TemporaryFile("w+") as given:
            given.write(stdin)
            given.seek(0)
            process = subprocess.Popen(
                command,
                stdin=given,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            assert process.stderr is not None
            errors = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1, 2) or b"Traceback" in errors:
            raise RuntimeError(f"{' '.join(command)} failed:\n{errors.decode()}")
        # Linux counts in KiB, macOS in bytes.
        unit = 2**20 if sys.platform == "darwin" else 2**10
        costs.append(Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit))
    return Cost(min(each.seconds for each in costs), min(each.memory for each in costs))


def shapefix(*arguments: str | Path) -> list[str]:
    """The command that runs this checkout's command line."""
    return [sys.executable, "-m", "shapefix", *map(str, arguments)]


def copied(tree: Path, folder: Path) -> list[Path]:
    """Copy the files of tree that import torch, and that are not too large for shapefix, to folder."""
    sys.path.insert(0, str(ROOT))
    from shapefix.engine.parse_limits import LARGEST

    files = []
    for path in sorted(tree.rglob("*.py")):
        data = path.read_bytes()
        if b"torch" in data and len(data) <= LARGEST:
            copy = folder / path.relative_to(tree)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            files.append(copy)
    return files


def main() -> None:
    """Print the table; exits with 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tree", type=Path, help=f"a folder with at least {FEWEST_FILES} files that import torch"
    )
    parser.add_argument("--repeat", type=int, default=1, help="how often each cold run is made")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = copied(given.tree, folder / "tree")
        if len(files) < FEWEST_FILES:
            parser.error(f"{given.tree} has {len(files)} files that import torch; {FEWEST_FILES} are needed")
        print(
            f"{len(files)} files that import torch, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB"
        )
        start = cost(shapefix("--version"), repeat=5)
        listed = "\0".join(map(str, files))
        parse = cost([sys.executable, "-c", PARSE], listed, given.repeat)
        check = shapefix("check", "--jobs", "1", "--quiet")
        cold = cost([*check, "--no-cache", str(folder / "tree")], repeat=given.repeat)
        cache = str(folder / "cache")
        filling = cost([*check, "--cache-dir", cache, str(folder / "tree")])
        warm = cost([*check, "--cache-dir", cache, str(folder / "tree")], repeat=3)
        quarter = [str(path) for path in files[: len(files) // 4]]
        for path in files[len(files) // 4 :]:
            path.unlink()
        fewer = cost([*check, "--no-cache", *quarter])
    over = cold.seconds / parse.seconds
    back = cold.seconds / warm.seconds
    show("start-up (--version)", start)
    show("libcst.parse_module", parse)
    show("check --no-cache", cold, f"{over:.2f} times parsing")
    show("check, filling the cache", filling)
    show("check, warm cache", warm, f"1/{back:.0f} of cold")
    show("check of a quarter", fewer, f"all take {cold.memory / fewer.memory:.2f} times its memory")
    missed = [
        what
        for what, met in (
            ("start-up in 0.25 s", start.seconds <= 0.25),
            ("twice the time of parsing", over <= 2.0),
            ("a warm run in 1/20 of a cold one", back >= 20),
        )
        if not met
    ]
    print(f"missed: {', '.join(missed)}" if missed else "all targets met")
    sys.exit(bool(missed))


def show(what: str, measured: Cost, ratio: str = "") -> None:
    """Print one row of the table."""
    print(f"{what:<26}{measured.seconds:>8.2f} s{measured.memory:>7.0f} MiB  {ratio}".rstrip())


if __name__ == "__main__":
    main()
