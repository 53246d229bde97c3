"""Execute texts with real torch, and describe the values that they end with.

As a program, it reads a list of texts as JSON from a file and writes their outcomes to another one. With
`gpu` as the third argument it runs them on a fake GPU, whose tensors have sizes but no values.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import traceback
import types
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fork_server

TEXT = "<text>"
SUPPORT = Path(__file__).resolve().parents[1] / "rules"
DIGITS = 5


@dataclass(frozen=True)
class Outcome:
    """The exception that ended a text, the line that raised it, and the described values of its names."""

    error: str | None
    line: int
    values: dict[str, Any]


def outcomes(texts: Sequence[str], gpu: bool = False) -> list[Outcome]:
    """Execute each text in one process of their own."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "texts.json"), Path(folder, "outcomes.json")
        asked.write_text(json.dumps(list(texts)), encoding="utf-8")
        paths = [str(SUPPORT), str(SUPPORT.parent), str(SUPPORT.parents[1])]
        environment = os.environ | fork_server.STARTUP | {"PYTHONPATH": os.pathsep.join(paths)}
        command = [
            fork_server.interpreter(), __file__, str(asked), str(answered), *(["gpu"] if gpu else [])
        ]  # fmt: skip
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr[-3000:]
        return [Outcome(**each) for each in json.loads(answered.read_text("utf-8"))]


def _executed(text: str) -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    random.seed(0)
    names: dict[str, Any] = {"__name__": "__main__"}
    error, line = None, 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        if "transformers" in text:
            from tiny import tiny_things

            stack.enter_context(tiny_things())
        try:
            exec(compile(text, TEXT, "exec", dont_inherit=True), names)
        except Exception as raised:
            rows = [row for row in traceback.extract_tb(raised.__traceback__) if row.filename == TEXT]
            error, line = f"{type(raised).__name__}: {raised}", (rows[-1].lineno or 0) if rows else 0
        values = {
            name: described(value, 0)
            for name, value in names.items()
            if not name.startswith("_") and not isinstance(value, _CODE)
        }
    return {"error": error, "line": line, "values": values}


_CODE = (types.ModuleType, type, types.FunctionType)


def described(value: object, depth: int) -> Any:
    """Describe a value as JSON: elements of tensors, weights and gradients of modules, items of lists."""
    import torch

    if isinstance(value, torch.nn.Module):
        parts = {name: described(part, 1) for name, part in value.state_dict().items()}
        grads = {f"{name}.grad": described(part.grad, 1) for name, part in value.named_parameters()}
        own = {
            name: described(part, depth + 1)
            for name, part in (vars(value) | dict(value.named_buffers(recurse=False))).items()
            if not name.startswith("_") and isinstance(part, (torch.Tensor, int, float, list, dict))
        }
        return parts | grads | own
    if isinstance(value, torch.Tensor):
        if value.device.type != "cpu":
            return [str(value.dtype), list(value.shape), value.device.type]
        return [str(value.dtype), list(value.shape), _numbers(value.detach())]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if value == value else "nan"
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if depth > 4:
        return type(value).__name__
    if isinstance(value, dict):
        return {str(key): described(part, depth + 1) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(part, depth + 1) for part in value]
    kept = vars(value) if type(value).__module__ == "__main__" and hasattr(value, "__dict__") else {}
    return {name: described(part, depth + 1) for name, part in kept.items()} or type(value).__name__


def _numbers(tensor: Any) -> Any:
    """The elements, rounded, so that another order of a sum makes no difference."""
    return [described(each, 9) for each in _flat(tensor.tolist())]


def _flat(listed: Any) -> list[Any]:
    return [inner for each in listed for inner in _flat(each)] if isinstance(listed, list) else [listed]


if __name__ == "__main__":
    if sys.argv[3:] == ["gpu"]:
        from pretended_gpu import install

        install()
    asked, answered = map(Path, sys.argv[1:3])
    found = []
    for number, text in enumerate(json.loads(asked.read_text("utf-8"))):
        found.append(_executed(text))
        if number % 20 == 0:
            gc.collect()
    answered.write_text(json.dumps(found), encoding="utf-8")
