"""Changes of a text to save memory: autocast, checkpointing, adapters, and steps in parts of the batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.handlers import with_handlers
from shapefix.guards.memory.retries import HALVED_BATCH
from shapefix.guards.memory.rows import RowEdits, indent_of
from shapefix.guards.memory.steps import StepToRetry, training_steps

_PRETRAINED = re.compile(
    r"(?:^|\.)\w*(?:Model|For[A-Z]\w*|LMHead\w*)(?:\.from_(?:pretrained|config|scratch))?$"
)
_MOVES = frozenset({"to", "cuda", "train", "float", "half", "bfloat16"})
"""Methods of a module that return it."""
_LAYERS = re.compile(r"(?:layer|block|stage|encoder|decoder|h\b)", re.I)


def in_parts(text: str, rows: int) -> str | None:
    """Return a text with its training steps in parts of at most some rows; None without such a step."""
    made = with_handlers(text, "", rows)
    is_split = any(each.kind == HALVED_BATCH for each in made.handlers)
    return made.text if is_split and len(made.handlers) == 1 else None


def with_autocast(text: str) -> str | None:
    """Return a text with the forward and the loss of its training steps under autocast to bf16."""
    tree = ast.parse(text)
    steps = [each for each in training_steps(tree) if isinstance(each, StepToRetry)]
    edits, is_changed = RowEdits(), False
    rows = rows_of(text)
    for step in steps:
        inner = _forward(step)
        if not inner:
            continue
        first, last = inner[0].lineno, inner[-1].end_lineno or 0
        indent = indent_of(rows, first)
        edits.insert_above(first, f'{indent}with torch.autocast("cuda", dtype=torch.bfloat16):')
        edits.indent(range(first, last + 1), "\t" if "\t" in indent else "    ")
        is_changed = True
    return _importing(edits.applied(text), "torch", "import torch") if is_changed else None


def _forward(step: StepToRetry) -> Sequence[ast.stmt]:
    """Return the statements of a step above its backward, without gradients to zero below them."""
    inner = list(step.statements[:-1])
    while inner and inner[-1] in step.zeroing:
        inner.pop()
    return inner


def with_checkpointing(text: str) -> str | None:
    """Return a text with gradient checkpointing of its models of transformers, or of its lists of blocks."""
    tree = ast.parse(text)
    rows = rows_of(text)
    edits = RowEdits()
    calls = list(_pretrained(tree))
    for name, statement in calls:
        indent = indent_of(rows, statement.lineno)
        setting = 'gradient_checkpointing_kwargs={"use_reentrant": False}'
        edits.insert_below(
            statement.end_lineno or 0, f"{indent}{name}.gradient_checkpointing_enable({setting})"
        )
    if calls:
        return edits.applied(text)
    blocks = [each for each in _block_calls(tree) if each.lineno == each.func.end_lineno]
    for call in blocks:
        row = edits.replaced.get(call.lineno, rows[call.lineno - 1]).rstrip("\r\n")
        data, func = row.encode(), call.func
        if call.lineno != call.end_lineno or not call.args:
            continue
        start, end = func.end_col_offset or 0, call.end_col_offset or 0
        code = data[call.col_offset : start].decode()
        inside = data[start + 1 : end - 1].decode().rstrip().removesuffix(",")
        new = f"checkpoint({code}, {inside}, use_reentrant=False)"
        edits.replace(call.lineno, (data[: call.col_offset] + new.encode() + data[end:]).decode())
    if not edits.replaced:
        return None
    return _importing(edits.applied(text), "checkpoint", "from torch.utils.checkpoint import checkpoint")


def with_adapters(text: str, task_of: Callable[[str], str | None]) -> str | None:
    """Return a text with low-rank adapters for its models of transformers; None if it uses peft already.

    task_of returns the task of peft for the name of a model's class.
    """
    tree = ast.parse(text)
    calls = list(_pretrained(tree))
    if not calls or re.search(r"\bpeft\b", text):
        return None
    rows = rows_of(text)
    edits = RowEdits()
    for name, statement in calls:
        indent = indent_of(rows, statement.lineno)
        settings = 'target_modules="all-linear"'
        task = _task(statement, task_of)
        if task is not None:
            settings += f', task_type="{task}"'
        edits.insert_below(
            statement.end_lineno or 0, f"{indent}{name} = get_peft_model({name}, LoraConfig({settings}))"
        )
    return _importing(edits.applied(text), "LoraConfig", "from peft import LoraConfig, get_peft_model")


def _task(statement: ast.Assign, task_of: Callable[[str], str | None]) -> str | None:
    """Return the task of peft for the model created by an assignment."""
    made = _created(statement.value)
    parts = ast.unparse(made.func).split(".") if made is not None else []
    return next((task for part in parts if (task := task_of(part)) is not None), None)


def _pretrained(tree: ast.Module) -> Iterator[tuple[str, ast.Assign]]:
    """Return the assignments of models of transformers, with their names."""
    if not any(
        isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "transformers"
        for node in ast.walk(tree)
    ):
        return
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and (made := _created(node.value)) is not None
            and _PRETRAINED.search(ast.unparse(made.func))
        ):
            yield node.targets[0].id, node


def _created(value: ast.expr) -> ast.Call | None:
    """Return the construction in `Model(config).to(device)`."""
    call = value if isinstance(value, ast.Call) else None
    while call is not None and isinstance(call.func, ast.Attribute) and call.func.attr in _MOVES:
        call = call.func.value if isinstance(call.func.value, ast.Call) else None
    return call


def _block_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Return the calls of the blocks of a list in loops over it: `for block in self.blocks: x = block(x)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.For) or not _LAYERS.search(ast.unparse(node.iter)):
            continue
        names = {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}
        if "self." not in ast.unparse(node.iter):
            continue
        for statement in node.body:
            value = statement.value if isinstance(statement, ast.Assign) else None
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in names:
                yield value


def _importing(text: str, name: str, statement: str) -> str:
    """Return a text with an import of a name at the top."""
    tree = ast.parse(text)
    bound = {
        (alias.asname or alias.name)
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    if name in bound:
        return text
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    edits = RowEdits()
    torch = [node for node in imports if ast.unparse(node).split()[1].partition(".")[0] == "torch"]
    if torch:
        edits.insert_below(torch[-1].end_lineno or 0, statement)
    else:
        edits.insert_above(imports[0].lineno if imports else 1, statement)
    return edits.applied(text)
