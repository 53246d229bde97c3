"""Execute an example of a rule page with real torch and record exceptions by line."""

from __future__ import annotations

import ast
import contextlib
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from unittest import mock

import torch
from tiny import tiny_datasets, tiny_things

EXAMPLE, RUN = "<example>", "<run>"


Layout = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and strides of a tensor."""


@dataclass
class Ran:
    """The outcome of an example: exceptions by line, and the final names.

    errors maps a line of the example to the exceptions raised there, 0 to those that no line of it raised;
    run_errors maps a line of the run block to the exception that reached it. refused maps a line of the
    example to the sizes and strides of the tensors that torch refused to view there. before_run are the
    lines of the example that raised without the run block.
    """

    names: dict[str, object]
    errors: dict[int, list[BaseException]] = field(default_factory=dict)
    run_errors: dict[int, BaseException] = field(default_factory=dict)
    refused: dict[int, list[Layout]] = field(default_factory=dict)
    before_run: frozenset[int] = frozenset()

    def tensors(self) -> dict[str, torch.Tensor]:
        return {name: value for name, value in self.names.items() if isinstance(value, torch.Tensor)}


def _statements(source: str, filename: str) -> Iterator[tuple[int, CodeType]]:
    """Each top-level statement with its line, so that the next ones run after a failure."""
    module = ast.parse(source, filename)
    future = [
        node for node in module.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"
    ]
    for node in module.body:
        if node not in future:
            whole = ast.Module([*future, node], type_ignores=[])
            yield node.lineno, compile(whole, filename, "exec", dont_inherit=True)


def _line_in_example(error: BaseException) -> int:
    lines = [row.lineno or 0 for row in traceback.extract_tb(error.__traceback__) if row.filename == EXAMPLE]
    return lines[-1] if lines else 0


@contextlib.contextmanager
def refusals_noted(refused: dict[int, list[Layout]]) -> Iterator[None]:
    """Record every view that torch rejects, by line of the example."""

    def noting(method: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def view(tensor: torch.Tensor, *target: object) -> torch.Tensor:
            try:
                return method(tensor, *target)
            except RuntimeError:
                asked_from = sys._getframe(1)
                if asked_from.f_code.co_filename == EXAMPLE:
                    layout = (tuple(tensor.shape), tuple(tensor.stride()))
                    refused.setdefault(asked_from.f_lineno, []).append(layout)
                raise

        return view

    with contextlib.ExitStack() as stack:
        for name in ("view", "view_as"):
            noted = noting(getattr(torch.Tensor, name))
            stack.enter_context(mock.patch.object(torch.Tensor, name, noted))
        yield


def _leave_group() -> None:
    """Leave the process group of an example, so that the next one may join its own."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def execute(text: str, run: str = "", reveal: Callable[[torch.Tensor], object] = id) -> Ran:
    """Execute text, then run in the same namespace, with fixed seeds; a failed statement ends only itself."""
    torch.manual_seed(0)
    ran = Ran({"__name__": "example", "reveal": reveal})
    with contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        stack.enter_context(refusals_noted(ran.refused))
        # Examples save checkpoints by relative names.
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        if "torch.distributed" in text:
            stack.callback(_leave_group)
        if "transformers" in text:
            stack.enter_context(tiny_things())
        if "datasets" in text:
            stack.enter_context(tiny_datasets())
        for source, filename in ((text, EXAMPLE), (run, RUN)):
            ran.before_run = frozenset(ran.errors)
            for line, code in _statements(source, filename):
                try:
                    exec(code, ran.names)
                except Exception as error:
                    ran.errors.setdefault(_line_in_example(error), []).append(error)
                    if filename == RUN:
                        ran.run_errors[line] = error
    return ran
