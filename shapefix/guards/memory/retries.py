"""Write a handler around a training step: it runs again in parts of the batch if the memory is exhausted."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.rows import RowEdits, indent_of, marked
from shapefix.guards.memory.steps import StepToRetry

HALVED_BATCH = "HalvedBatch"
"""The class of the retry in a handled file, and the kind of its handlers."""
_CLASS = '''\
class {name}:
    """Run a training step in parts of its batch after the GPU memory was exhausted.

    A loss that is a mean over the rows, times `share`, has the same gradient in parts as in one piece.
    """

    fitting = {fitting}  # number of rows that fit; None until the first error

    def __init__(self, batch, zero_grad, is_mean=True):
        self.batch, self.zero_grad, self.is_mean = batch, zero_grad, is_mean
        sizes = set(self._sizes(batch))
        self.rows = max(sizes.pop(), 1) if len(sizes) == 1 else 1
        self.size = min(self.rows, {name}.fitting or self.rows)
        self.share, self.is_first, self.failed, self.kept = 1.0, True, False, []

    def __iter__(self):
        part = 0
        while part < (parts := -(-self.rows // self.size)):
            start, stop = self.rows * part // parts, self.rows * (part + 1) // parts
            self.is_first = part == 0
            self.share = (stop - start) / self.rows if self.is_mean else 1.0
            yield self.batch if parts == 1 else self._part(self.batch, slice(start, stop))
            part += 1
            if self.failed:  # the exception and its frames are gone here, so their memory can be freed
                part, self.failed, self.kept = 0, False, []
                self.size = {name}.fitting = (self.size + 1) // 2
                self.zero_grad()
                gc.collect()
                torch.cuda.empty_cache()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.failed = isinstance(error, torch.cuda.OutOfMemoryError) and self.size > 1
        return self.failed

    def keep(self, *values):
        self.kept.append((self.share, values))

    def joined(self):
        shares = [share for share, _ in self.kept]
        values = [self._joined(each, shares) for each in zip(*(values for _, values in self.kept))]
        return values if len(values) > 1 else values[0]

    def _sizes(self, value):
        if isinstance(value, torch.Tensor):
            return [len(value)] if value.dim() else []
        inner = value.values() if hasattr(value, "values") else value
        return [size for each in inner for size in self._sizes(each)] if self._holds(value) else []

    def _part(self, value, rows):
        if isinstance(value, torch.Tensor):
            return value[rows] if value.dim() else value
        if hasattr(value, "items"):
            return {{key: self._part(each, rows) for key, each in value.items()}}
        return type(value)(self._part(each, rows) for each in value) if self._holds(value) else value

    def _joined(self, values, shares):
        first = values[0]
        if len(values) == 1:
            return first
        if isinstance(first, torch.Tensor) and first.dim():
            return torch.cat([each.detach() for each in values])
        if isinstance(first, torch.Tensor):
            values = [each.detach() for each in values]
        if isinstance(first, float) or (isinstance(first, torch.Tensor) and first.is_floating_point()):
            return sum(each * share for each, share in zip(values, shares))
        if hasattr(first, "items"):
            joined = {{key: self._joined([each[key] for each in values], shares) for key in first}}
            return type(first)(**joined)
        if self._holds(first):
            return type(first)(self._joined(each, shares) for each in zip(*values))
        return values[-1] if isinstance(first, (bool, str, type(None))) else sum(values)

    @staticmethod
    def _holds(value):
        return type(value) in (list, tuple) or hasattr(value, "items")
'''


def write_retries(
    edits: RowEdits,
    text: str,
    tree: ast.Module,
    steps: Sequence[StepToRetry],
    unit: str,
    fitting: int | None = None,
) -> None:
    """Write the handlers of some steps of a text, and their class; fitting is its first number of rows."""
    name = _free(text, HALVED_BATCH, "OomHalvedBatch")
    variable = _free(text, "retry", "oom_retry")
    for step in steps:
        _write(edits, text, step, name, variable, unit)
    rows = rows_of(text)
    top = min(step.top_row for step in steps)
    while top > 1 and rows[top - 2].startswith("#"):
        top -= 1
    head, *body = _CLASS.format(name=name, fitting=fitting).splitlines()
    indented = [unit * ((len(row) - len(row.lstrip())) // 4) + row.lstrip() for row in body]
    missing = [marked(f"import {each}") for each in ("gc", "torch") if not _is_imported(tree, each)]
    edits.insert_above(_import_row(tree), *missing)
    edits.insert_above(top, marked(head), *indented, "", "")


def _free(text: str, name: str, other: str) -> str:
    return other if re.search(rf"\b{name}\b", text) else name


def fitting_rows(text: str) -> int | None:
    """Return the number of rows to begin with in the class of a text."""
    found = re.search(rf"class \w*{HALVED_BATCH}:(?s:.{{0,400}}?)\n\s+fitting = (\d+)", text)
    return int(found[1]) if found else None


def _import_row(tree: ast.Module) -> int:
    """Return the row of the first import of a module, of `__future__` apart."""
    for node in tree.body:
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__"):
            return node.lineno
    return tree.body[0].lineno


def _is_imported(tree: ast.Module, library: str) -> bool:
    return any(
        isinstance(node, ast.Import)
        and any((each.asname or each.name.partition(".")[0]) == library for each in node.names)
        for node in tree.body
    )


def _write(edits: RowEdits, text: str, step: StepToRetry, name: str, variable: str, unit: str) -> None:
    rows = rows_of(text)
    first, last = step.statements[0].lineno, step.statements[-1].end_lineno or 0
    indent = indent_of(rows, first)
    unit = "\t" if "\t" in indent else unit
    taken = ", ".join(step.batch)
    batch = f"({taken})" if len(step.batch) > 1 else taken
    settings = "" if step.is_mean else ", is_mean=False"
    edits.insert_above(
        first,
        marked(f"{indent}{variable} = {name}({batch}, {step.zero_grad}{settings})"),
        marked(f"{indent}for {taken} in {variable}:"),
        marked(f"{indent}{unit}with {variable}:"),
    )
    for each in step.zeroing:
        span = range(each.lineno, (each.end_lineno or 0) + 1)
        edits.insert_above(each.lineno, marked(f"{indent}{unit * 2}if {variable}.is_first:"))
        edits.indent(span, unit)
    edits.indent(range(first, last + 1), unit * 2)
    if step.is_mean:
        row = step.backward.end_lineno or 0
        edits.replace(row, _scaled(rows[row - 1].rstrip("\r\n"), step.backward, variable))
    kept = ", ".join(step.kept)
    if kept:
        edits.insert_below(last, marked(f"{indent}{unit * 2}{variable}.keep({kept})"))
    if names := (*step.kept, *step.local):
        edits.insert_below(last, marked(f"{indent}{unit}{' = '.join(names)} = None"))
    if restored := [each for each in step.batch if each not in step.kept]:
        value = f"{variable}.batch"
        if len(restored) < len(step.batch):
            value = ", ".join(f"{value}[{step.batch.index(each)}]" for each in restored)
        edits.insert_below(last, marked(f"{indent}{', '.join(restored)} = {value}"))
    if kept:
        edits.insert_below(last, marked(f"{indent}{kept} = {variable}.joined()"))


def _scaled(row: str, backward: ast.Call, variable: str) -> str:
    """Return a row of a backward of the loss times its share of the rows."""
    func = backward.func
    assert isinstance(func, ast.Attribute)
    data = row.encode()
    loss = func.value
    inner = loss.args[0] if isinstance(loss, ast.Call) and _is_scale(loss) else None
    if inner is not None:
        end = inner.end_col_offset or 0
        return marked((data[:end] + f" * {variable}.share".encode() + data[end:]).decode())
    start, end = backward.col_offset, (func.end_col_offset or 0) - len(f".{func.attr}")
    code = data[start:end].decode()
    return marked(f"{data[:start].decode()}({code} * {variable}.share){data[end:].decode()}")


def _is_scale(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "scale" and len(call.args) == 1


def scaling_obstacle(backward: ast.Call) -> str:
    """Return why a loss cannot be multiplied in its row; empty if it can."""
    func = backward.func
    assert isinstance(func, ast.Attribute)
    if backward.lineno != backward.end_lineno:
        return "`backward()` spans several rows"
    if backward.args or func.attr != "backward":
        return f"`{ast.unparse(func)}` of a library scales the loss itself"
    if isinstance(func.value, ast.Call) and _is_scale(func.value):
        loss = func.value.args[0]
        if not isinstance(loss, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
            return "the argument of `scale()` is not a variable"
    return ""
