"""Put a training function of accelerate into `find_executable_batch_size`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapefix.guards.lines import rows_of
from shapefix.guards.memory.names import first_reads, last_name, occurrences, stores
from shapefix.guards.memory.rows import RowEdits, indent_of, marked
from shapefix.guards.memory.steps import StepLeftAlone
from shapefix.light_dataclasses import dataclass

_BATCH = re.compile(r"(?:^|[._])(?:batch(?:_?size)?|bs)\b|batch", re.I)
_SEEDS = frozenset({"set_seed", "manual_seed", "seed_everything"})
_FUNCTION = "train_with_batch_size"


@dataclass(frozen=True)
class AcceleratedFunction:
    """A training function with accelerate.

    size is the batch size of its training loader, and repeated are the statements that create and train the
    model. outer are names set there and above. unaccumulated is the training loop if it lacks `accumulate`.
    """

    function: str
    row: int
    accelerator: str
    size: ast.expr
    repeated: Sequence[ast.stmt]
    outer: tuple[str, ...]
    returns: bool
    model: str
    unaccumulated: ast.For | None
    import_row: int


def accelerated_function(tree: ast.Module) -> AcceleratedFunction | StepLeftAlone | None:
    """Return the training function with accelerate in a module, or the reason against a handler."""
    for function in _functions(tree):
        backward = next((call for call in _calls(function, "backward") if len(call.args) == 1), None)
        created = _assigned_call(function.body, "Accelerator")
        if backward is None or created is None or ast.unparse(_owner(backward)) != created[1]:
            continue
        try:
            return _function(tree, function, *created)
        except _Unfit as unfit:
            return StepLeftAlone(backward.lineno, unfit.args[0], function.name)
    if re.search(r"\bAccelerator\(", ast.unparse(tree)):
        for call in _calls(tree, "backward"):
            if len(call.args) == 1:
                reason = "the accelerator, the loader and the loop are not in one function"
                return StepLeftAlone(call.lineno, reason)
    return None


class _Unfit(Exception):
    pass


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in tree.body if isinstance(node, ast.FunctionDef))


def _calls(tree: ast.AST, method: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
            yield node


def _owner(call: ast.Call) -> ast.expr:
    assert isinstance(call.func, ast.Attribute)
    return call.func.value


def _assigned_call(body: Sequence[ast.stmt], name: str) -> tuple[int, str] | None:
    """Return the number and the target of the first assignment of a call."""
    for number, each in enumerate(body):
        if (
            isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Call)
            and last_name(each.value) == name
            and isinstance(each.targets[0], ast.Name)
        ):
            return number, each.targets[0].id
    return None


def _function(
    tree: ast.Module, function: ast.FunctionDef, created: int, accelerator: str
) -> AcceleratedFunction:
    body = function.body
    prepared = _prepared(body, accelerator)
    if not prepared:
        raise _Unfit(f"found no `{accelerator}.prepare()` in the same function")
    start = _start(body, created, prepared)
    repeated = body[start:]
    loop = _loop(repeated, accelerator)
    loader = _loader_name(loop, prepared)
    size = _size(repeated, loader)
    above = stores(body[:start]).keys() | _parameters(function)
    missing = {each.id for each in occurrences(size)} & stores(repeated).keys()
    if missing:
        raise _Unfit(f"`{missing.pop()}` is set below the model; set it above")
    inside = stores(repeated)
    reads = first_reads(repeated)
    outer = tuple(name for name in inside if name in above and name in reads)
    for node in (each for statement in repeated for each in ast.walk(statement)):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in outer:
            raise _Unfit(f"`{node.target.id}` counts on from a value set above the model; set that below it")
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Nonlocal, ast.Global)):
            raise _Unfit("the function has `yield`, `global` or `nonlocal`")
    accumulates = any(True for _ in _calls(loop, "accumulate"))
    if not accumulates and _steps_sometimes(loop):
        raise _Unfit(f"the loop counts its own accumulation steps; use `{accelerator}.accumulate(model)`")
    return AcceleratedFunction(
        function.name,
        function.lineno,
        accelerator,
        size,
        repeated,
        outer,
        any(isinstance(node, ast.Return) and node.value for node in _own_returns(repeated)),
        _model(loop, prepared),
        None if accumulates else loop,
        _import_row(tree),
    )


def _prepared(body: Sequence[ast.stmt], accelerator: str) -> list[str]:
    """Return the names of the prepared objects."""
    found: list[str] = []
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                func = node.value.func
                if isinstance(func, ast.Attribute) and func.attr.startswith("prepare"):
                    if ast.unparse(func.value) == accelerator:
                        found += [each.id for target in node.targets for each in occurrences(target)]
    return found


def _parameters(function: ast.FunctionDef) -> set[str]:
    args = function.args
    return {each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)}


def _start(body: Sequence[ast.stmt], created: int, prepared: Sequence[str]) -> int:
    """Return the number of the first statement with a prepared object, or of a seed above it."""
    for number, each in enumerate(body[created + 1 :], created + 1):
        if stores([each]).keys() & set(prepared):
            seeds = (
                n
                for n in range(created + 1, number)
                if isinstance(body[n], ast.Expr) and last_name(body[n].value) in _SEEDS  # type: ignore[attr-defined]
            )
            return next(seeds, number)
    raise _Unfit("the model, the optimizer and the loader are created elsewhere")


def _loop(repeated: Sequence[ast.stmt], accelerator: str) -> ast.For:
    """Return the innermost loop around the backward."""
    found: ast.For | None = None
    for statement in repeated:
        for node in ast.walk(statement):
            if isinstance(node, ast.For) and any(
                ast.unparse(_owner(call)) == accelerator for call in _calls(node, "backward")
            ):
                found = node
    if found is None:
        raise _Unfit("the loop is not in the same function as the accelerator")
    return found


def _loader_name(loop: ast.For, prepared: Sequence[str]) -> str:
    for each in occurrences(loop.iter):
        if each.id in prepared:
            return each.id
    raise _Unfit(f"`{ast.unparse(loop.iter)}` is not a loader prepared by name")


def _size(repeated: Sequence[ast.stmt], loader: str) -> ast.expr:
    """Return the batch size of a loader."""
    for statement in repeated:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            if loader not in stores([statement]):
                continue
            call = statement.value
            given = [each.value for each in call.keywords if each.arg and _BATCH.search(each.arg)]
            given += [each for each in call.args if _BATCH.search(ast.unparse(each))]
            if len(given) == 1:
                if given[0].lineno != given[0].end_lineno:
                    raise _Unfit("the batch size spans several rows")
                return given[0]
            raise _Unfit(f"found no batch size where `{loader}` is created")
    raise _Unfit(f"`{loader}` is created elsewhere")


def _steps_sometimes(loop: ast.For) -> bool:
    """Whether an optimizer steps under a condition."""
    return any(
        call.func.attr == "step"
        for node in ast.walk(loop)
        if isinstance(node, ast.If)
        for statement in node.body
        for call in ast.walk(statement)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    )


def _own_returns(repeated: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(repeated)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, (ast.FunctionDef, ast.Lambda)):
            yield node
            waiting += ast.iter_child_nodes(node)


def _model(loop: ast.For, prepared: Sequence[str]) -> str:
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in prepared:
            return node.func.id
    return prepared[0]


def _import_row(tree: ast.Module) -> int:
    """Return the row of the first import of accelerate."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "accelerate":
            return node.lineno
        if isinstance(node, ast.Import) and any(each.name.startswith("accelerate") for each in node.names):
            return node.lineno
    raise _Unfit("found no import of accelerate at the top level")


def write_accelerated(edits: RowEdits, text: str, found: AcceleratedFunction, unit: str) -> None:
    """Write the decorated function around the creation and training of the model."""
    rows = rows_of(text)
    first, last = found.repeated[0].lineno, found.repeated[-1].end_lineno or 0
    indent, inner = indent_of(rows, first), indent_of(rows, first) + unit
    size, name = ast.unparse(found.size), found.accelerator
    edits.insert_above(found.import_row, marked("from accelerate.utils import find_executable_batch_size"))
    edits.insert_above(
        first,
        marked(f"{indent}whole_batch, accumulation = {size}, {name}.gradient_accumulation_steps"),
        marked(f"{indent}smaller = (n for n in range(whole_batch // 2, 0, -1) if whole_batch % n == 0)"),
        marked(
            f"{indent}@find_executable_batch_size("
            "starting_batch_size=whole_batch, reduce_batch_size_fn=lambda: next(smaller, 0))"
        ),
        marked(f"{indent}def {_FUNCTION}(batch_size):"),
        *([marked(f"{inner}nonlocal {', '.join(found.outer)}")] if found.outer else []),
        marked(f"{inner}{name}.free_memory()"),
        marked(f"{inner}{name}.gradient_accumulation_steps = accumulation * whole_batch // batch_size"),
    )
    edits.indent(range(first, last + 1), unit)
    if size != "batch_size":
        row, before = found.size.lineno, rows[found.size.lineno - 1].rstrip("\r\n")
        data = before.encode()
        code = data[: found.size.col_offset] + b"batch_size" + data[found.size.end_col_offset :]
        edits.replace(row, marked(code.decode(), before.strip()))
    if found.unaccumulated is not None:
        body = found.unaccumulated.body
        deeper = indent_of(rows, body[0].lineno)
        edits.insert_above(body[0].lineno, marked(f"{unit}{deeper}with {name}.accumulate({found.model}):"))
        edits.indent(range(body[0].lineno, (body[-1].end_lineno or 0) + 1), unit)
    call = f"{indent}{'return ' if found.returns else ''}{_FUNCTION}()"
    edits.insert_below(last, marked(call))
