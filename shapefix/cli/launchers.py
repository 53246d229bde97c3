"""Command lines of launchers such as torchrun, and the `shapefix probe` command for each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from shapefix.light_dataclasses import dataclass

_LAUNCHER = re.compile(
    r"(python[\d.]*|torchrun|accelerate|deepspeed|lightning|poetry|uv|srun|mpirun)(\.exe)?\Z"
)
_PROCESSES = re.compile(r"--?(?:nproc[-_]per[-_]node|num[-_]processes|num[-_]gpus|n|np)(?:=(.*))?\Z")
_SEVERAL = ("torchrun", "torch.distributed.run", "torch.distributed.launch")


_FLAGS = frozenset(
    {"--standalone", "--no-python", "--run-path", "--use-env", "-m", "--module", "-h", "--help"}
)
_NODES = re.compile(r"--?nnodes(?:=(.*))?\Z")


@dataclass(frozen=True)
class NodeCommand:
    """A command line of torchrun for one of several nodes: its options, and the script with arguments."""

    options: tuple[str, ...]
    script: str
    is_module: bool
    arguments: tuple[str, ...]
    processes: int


def node_command(words: Sequence[str]) -> NodeCommand | None:
    """Read a command line of torchrun for several nodes; None for any other command line."""
    given = list(words)
    if given[:1] and Path(given[0]).name.startswith("python") and given[1:2] == ["-m"]:
        given = given[2:]
    if not given or Path(given[0]).name not in ("torchrun", "torch.distributed.run"):
        return None
    options: list[str] = []
    nodes, is_module, place = "1", False, 1
    while place < len(given) and given[place].startswith("-"):
        word = given[place]
        has_value = "=" not in word and word not in _FLAGS
        taken = given[place : place + 1 + has_value]
        place += len(taken)
        if word in ("-m", "--module"):
            is_module = True
            continue
        found = _NODES.match(word)
        nodes = nodes if found is None else found[1] or taken[-1]
        options += taken
    if nodes == "1" or place >= len(given):
        return None
    number = _processes(options) or "1"
    return NodeCommand(
        tuple(options), given[place], is_module, tuple(given[place + 1 :]), max(int(number), 2)
    )


def suggest_command(words: Sequence[str]) -> str | None:
    """The `shapefix probe` command for the command line of a launcher; None for any other."""
    place = next((n for n, word in enumerate(words) if not word.startswith("-")), None)
    if place is None or not _launches(words[place]):
        return None
    if "--" in words[:place] and node_command(words[place:]) is not None:
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
