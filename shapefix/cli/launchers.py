"""Command lines of launchers such as torchrun, and the `shapefix probe` command for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

_LAUNCHER = re.compile(
    r"(python[\d.]*|torchrun|accelerate|deepspeed|lightning|poetry|uv|srun|mpirun)(\.exe)?\Z"
)
_PROCESSES = re.compile(r"--?(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus|n|np)(?:=(.*))?\Z")
_SEVERAL = ("torchrun", "torch.distributed.run", "torch.distributed.launch")


def suggest_command(words: Sequence[str]) -> str | None:
    """The `shapefix probe` command for the command line of a launcher; None for any other."""
    place = next((n for n, word in enumerate(words) if not word.startswith("-")), None)
    if place is None or not _launches(words[place]):
        return None
    if place and words[place - 1] == "--python":
        return None
    return _probe_command(words[place:])


def _probe_command(words: Sequence[str]) -> str:
    for place, word in enumerate(words[1:], 1):
        module = words[place - 1] in ("-m", "--module") and word not in _SEVERAL
        if module or word.endswith((".py", ".ipynb")):
            processes = _processes(words[:place])
            line = ["shapefix", "probe", *(["--nproc", processes] if processes else [])]
            line += ["-m", word] if module else [word]
            line += ["--", *words[place + 1 :]] if words[place + 1 :] else []
            return shlex.join(line)
    return "shapefix probe train.py -- --epochs 3"


def _processes(words: Sequence[str]) -> str | None:
    """The number of processes started by a launcher; 2 if it depends on the machine."""
    for place, word in enumerate(words):
        found = _PROCESSES.match(word)
        if found is not None:
            said = found[1] or (words[place + 1] if place + 1 < len(words) else "")
            return said if said.isdigit() else "2"
    return None


def _launches(word: str) -> bool:
    return _LAUNCHER.match(Path(word).name) is not None and not word.endswith(".py")
