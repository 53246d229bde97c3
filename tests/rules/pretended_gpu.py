"""Execute examples of rule pages with real torch and a fake GPU, for torch's own device checks.

As a program, it reads a list of (text, run) as JSON and writes, for each, the messages of the exceptions by
line of the text and by line of the run block, and the lines of the text that raised before that ran.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import NoReturn

from execution import Ran, execute


def install() -> None:
    """Install a fake GPU whose tensors have sizes and a device but no values."""
    from shapefix.runtime.agent.fake_gpu import cuda, kernels, placement
    from shapefix.runtime.agent.fake_gpu.gpu import FakeGpu, on_device
    from shapefix.runtime.agent.fake_gpu.storages import Storages

    def refuse(reason: str) -> NoReturn:
        raise RuntimeError(reason)

    storages = Storages(on_device, lambda: None)
    gpu = FakeGpu(storages, refuse)
    cuda.install(storages, 80 << 30)
    placement.install(gpu)
    kernels.install(on_device)
    gpu.install()


Texts = tuple[tuple[str, str], ...]


@functools.cache
def outcomes(texts: Texts) -> dict[tuple[str, str], Ran]:
    """The outcome of each example with its run block on the fake GPU."""
    ran = subprocess.run(
        [sys.executable, __file__], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return {
        text: Ran(
            {},
            {int(line): [RuntimeError(message) for message in messages] for line, messages in errors.items()},
            {int(line): RuntimeError(message) for line, message in run_errors.items()},
            before_run=frozenset(before_run),
        )
        for text, (errors, run_errors, before_run) in zip(texts, json.loads(ran.stdout), strict=True)
    }


def _messages(text: str, run: str) -> tuple[dict[int, list[str]], dict[int, str], list[int]]:
    ran = execute(text, run)
    errors = {line: [_message(error) for error in found] for line, found in ran.errors.items()}
    run_errors = {line: _message(error) for line, error in ran.run_errors.items()}
    return errors, run_errors, sorted(ran.before_run)


def _message(error: BaseException) -> str:
    return str(error) or type(error).__name__


if __name__ == "__main__":
    install()
    answers = [_messages(*each) for each in json.load(sys.stdin)]
    print(json.dumps(answers))
