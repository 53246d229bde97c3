"""Steps never taken or with old gradients, and graphs kept for nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TypeVar

from shapefix.diagnostics import Applicability, Edit, Evidence, Fix, Span
from shapefix.runtime.findings.constructor_fixes import ReadText
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import (
    CarriedGradientsLine,
    EmptyStepLine,
    KeptGraphLine,
    MissingStepLine,
    RecordedEvaluationLine,
    WrongModeLine,
)

Line = TypeVar("Line", CarriedGradientsLine, EmptyStepLine)
_WHOLE = ("finished", "stopped")
"""The ends of scripts without an exception before the step."""


def _with_places(lines: Iterable[Line]) -> Iterator[tuple[Line, Span, Span]]:
    """Yield the lines with known places of the step and of the backward before it."""
    for line in lines:
        at, backward = span(line["called_at"]), span(line["backward_at"])
        if at is not None and backward is not None:
            yield line, at, backward


@silent_fault
def _carried(observed: Observations) -> Iterator[RuntimeFinding]:
    for line, at, backward in _with_places(observed.of(CarriedGradientsLine)):
        yield RuntimeFinding(
            "carried-gradients",
            f"the second step of {line['optimizer']} uses the gradients of the first batch, too: "
            "nothing cleared them between the steps",
            at,
            (Evidence(backward, "backward adds to the gradients of the step before"),),
        )


@silent_fault
def _missing(observed: Observations) -> Iterator[RuntimeFinding]:
    if observed.end is None or observed.end["how"] not in _WHOLE:
        return
    for line in observed.of(MissingStepLine):
        at = span(line["called_at"])
        if at is None:
            continue
        made = [each for each in map(span, line["optimizers"]) if each is not None]
        yield RuntimeFinding(
            "missing-step",
            f"no optimizer step after {line['backward_calls']} backward calls: the weights never change",
            at,
            (
                Evidence(at, "backward called here"),
                *(Evidence(each, "optimizer created here; its `step()` was not called") for each in made),
            ),
            fixes=partial(_step_after, at, made),
        )


@silent_fault
def _empty(observed: Observations) -> Iterator[RuntimeFinding]:
    for line, at, backward in _with_places(observed.of(EmptyStepLine)):
        yield RuntimeFinding(
            "empty-step",
            f"`{line['optimizer']}.step()` is called before backward: no parameter has a gradient then, "
            "and the weights never change",
            at,
            (Evidence(backward, "backward called here; its gradients are cleared before the next step"),),
        )


def _no_grad(call: Span, read: ReadText) -> tuple[Fix, ...]:
    """The fix to disable gradients in the function of an evaluation, if it calls no backward."""
    text = read(call.path)
    try:
        tree = ast.parse(text or "")
    except (SyntaxError, ValueError):
        return ()
    imports = [node for node in tree.body if isinstance(node, ast.Import)]
    imported = {name.asname or name.name for node in imports for name in node.names}
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    around = [node for node in functions if node.lineno <= call.row <= (node.end_lineno or node.lineno)]
    if "torch" not in imported or not around:
        return ()
    function = max(around, key=lambda node: node.lineno)
    attributes = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    if attributes & {"backward", "step", "grad"}:
        return ()
    row = min([function.lineno, *(each.lineno for each in function.decorator_list)])
    place = Span(call.path, row, 1, row, 1)
    indent = " " * function.col_offset
    edit = Edit(place, f"{indent}@torch.no_grad()\n")
    message = f"disable gradients in `{function.name}`: `@torch.no_grad()`"
    return (Fix(Applicability.UNSAFE, message, (edit,)),)


def _step_after(backward: Span, optimizers: list[Span], read: ReadText) -> tuple[Fix, ...]:
    """The fix to step the one optimizer after backward, if its name is known there."""
    text = read(backward.path)
    if len(optimizers) != 1 or text is None or optimizers[0].path != backward.path:
        return ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ()
    name = next(
        (
            ast.unparse(node.targets[0])
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and node.value.lineno == optimizers[0].row
        ),
        None,
    )
    statement = next(
        (
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr)
            and (node.lineno, node.end_lineno) == (backward.row, backward.end_row)
        ),
        None,
    )
    if name is None or statement is None or not _is_known(tree, name, statement):
        return ()
    row = text.splitlines()[statement.lineno - 1]
    before = row[: len(row) - len(row.lstrip())]
    if before + row.lstrip() != row or len(before.encode()) != statement.col_offset:
        return ()
    end = Span(backward.path, backward.end_row, backward.end_column, backward.end_row, backward.end_column)
    edit = Edit(end, f"\n{before}{name}.step()")
    return (Fix(Applicability.UNSAFE, f"step the optimizer: `{name}.step()`", (edit,)),)


def _is_known(tree: ast.Module, name: str, statement: ast.Expr) -> bool:
    """Whether a name is a variable of the module, or of the functions around a statement."""
    bound = {ast.unparse(each) for node in tree.body for each in getattr(node, "targets", ())}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and statement in ast.walk(node):
            own = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
            bound |= own | {ast.unparse(t) for inner in ast.walk(node) for t in getattr(inner, "targets", ())}
            if name.startswith("self.") and "self" in own:
                return True
    return name in bound


@silent_fault
def _recorded(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(RecordedEvaluationLine):
        at = span(line["called_at"])
        if at is not None:
            yield RuntimeFinding(
                "recorded-evaluation",
                f"`{line['model']}` is evaluated without `torch.no_grad()`: no backward used its graph",
                at,
                (Evidence(at, "the output requires a gradient"),),
                fixes=partial(_no_grad, at),
            )


@silent_fault
def _modes(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(WrongModeLine):
        at = span(line["called_at"])
        if at is None:
            continue
        if line["missing"] == "eval":
            effect = {
                "dropout": "dropout stays active",
                "batch norm": "batch norm uses and updates the statistics of the batch",
            }[line["layer"]]
            message = f"`eval()` of `{line['model']}` is missing: {effect} during evaluation"
            mode = "training"
        else:
            effect = {
                "dropout": "dropout is off",
                "batch norm": "batch norm keeps old statistics",
            }[line["layer"]]
            message = f"`train()` of `{line['model']}` is missing after its evaluation: {effect} in training"
            mode = "evaluation"
        yield RuntimeFinding("wrong-mode", message, at, (Evidence(at, f"called in {mode} mode"),))


@silent_fault
def _kept(observed: Observations) -> Iterator[RuntimeFinding]:
    for line in observed.of(KeptGraphLine):
        at = span(line["stored_at"])
        if at is None:
            continue
        what = "the sum" if line["is_sum"] else "the collection"
        yield RuntimeFinding(
            "kept-graph",
            f"`{line['name']}` keeps the autograd graph of each batch in memory after backward",
            at,
            (Evidence(at, f"{what} has the graphs of the first two losses"),),
        )
