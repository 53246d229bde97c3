"""Find training steps to repeat in parts of the batch, with the reasons against others."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapefix.guards.memory.names import first_reads, last_name, loads, stores
from shapefix.light_dataclasses import dataclass

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_MOVES = frozenset(
    {"to", "cuda", "float", "long", "half", "double", "int", "bool", "contiguous", "items", "values", "next"}
)
_MOVERS = re.compile(r"(?:^|_)(?:to|move|send)(?:_|$)|to_device", re.I)
_LOADERS = re.compile(r"^next$|batch", re.I)
_COLLECTS = frozenset({"append", "extend", "add", "update", "put"})
_NOT_DATA = frozenset({"zero_grad", "step", "parameters", "train", "eval", "state_dict", "scale", "backward"})
_SUMS = re.compile(r"reduction\s*=\s*[\"']sum[\"']|\.sum\(\)$")


@dataclass(frozen=True)
class StepToRetry:
    """Statements from the forward to the backward, to be run for parts of the batch.

    batch are the names of the batch that they read, kept are those set by them and read later, and local
    are all other names that they set. top_row is the row of the outermost statement around them.
    """

    statements: Sequence[ast.stmt]
    function: str
    row: int
    top_row: int
    batch: tuple[str, ...]
    kept: tuple[str, ...]
    local: tuple[str, ...]
    backward: ast.Call
    zero_grad: str
    zeroing: tuple[ast.stmt, ...]
    is_mean: bool


@dataclass(frozen=True)
class StepLeftAlone:
    """A backward without a handler, with the reason."""

    row: int
    reason: str
    function: str = ""


@dataclass(frozen=True)
class _Around:
    """The blocks around a block, from the function inward, each with the number of a statement."""

    scope: Scope
    function: str
    top_row: int
    blocks: tuple[tuple[Sequence[ast.stmt], int], ...]
    owner: ast.AST

    def before(self) -> Iterator[ast.stmt]:
        """Return the statements of the owner's body before the block's own."""
        body = getattr(self.owner, "body", [])
        starts = next((n for n, (block, _) in enumerate(self.blocks) if block is body), 0)
        for block, number in self.blocks[starts:]:
            yield from block[:number]

    def after(self) -> list[ast.stmt]:
        """Return the statements of the scope after the block's own, the nearest first."""
        return [each for block, number in reversed(self.blocks) for each in block[number + 1 :]]


def training_steps(tree: ast.Module) -> Iterator[StepToRetry | StepLeftAlone]:
    """Return the steps with a backward in a module."""
    source = ast.unparse(tree)
    for around, block, number in _blocks_with_backward(tree):
        try:
            yield _step(around, block, number, source)
        except _Unfit as unfit:
            yield StepLeftAlone(unfit.row or block[number].lineno, unfit.args[0], around.function)


class _Unfit(Exception):
    def __init__(self, reason: str, row: int = 0) -> None:
        super().__init__(reason)
        self.row = row


def _blocks_with_backward(tree: ast.Module) -> Iterator[tuple[_Around, Sequence[ast.stmt], int]]:
    """Return the blocks with a backward, itself or in a `with`, as a statement, and its number there."""
    for scope, function, top in _scopes(tree):
        yield from _in_block(scope, function, top, scope.body, (), scope)


def _scopes(tree: ast.Module) -> Iterator[tuple[Scope, str, int]]:
    yield tree, "", 0

    def below(node: ast.AST, prefix: str, top: int) -> Iterator[tuple[Scope, str, int]]:
        for each in ast.iter_child_nodes(node):
            row = top or _start(each)
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield each, f"{prefix}{each.name}", row
                yield from below(each, f"{prefix}{each.name}.", row)
            elif isinstance(each, ast.ClassDef):
                yield from below(each, f"{prefix}{each.name}.", row)
            else:
                yield from below(each, prefix, row)

    yield from below(tree, "", 0)


def _start(node: ast.AST) -> int:
    rows: list[int] = [each.lineno for each in getattr(node, "decorator_list", ())]
    rows.append(getattr(node, "lineno", 0))
    return min(rows)


def _in_block(
    scope: Scope,
    function: str,
    top: int,
    block: Sequence[ast.stmt],
    outer: tuple[tuple[Sequence[ast.stmt], int], ...],
    owner: ast.AST,
) -> Iterator[tuple[_Around, Sequence[ast.stmt], int]]:
    for number, each in enumerate(block):
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        around = (*outer, (block, number))
        row = top or _start(each)
        if _backward(each) is not None:
            yield _Around(scope, function, row, around, owner), block, number
            continue
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(each, name, None)
            if inner:
                is_loop = isinstance(each, (ast.For, ast.While)) and name == "body"
                yield from _in_block(scope, function, row, inner, around, each if is_loop else owner)


def _backward(statement: ast.stmt) -> ast.Call | None:
    """Return the backward of a statement, or of the block of a `with` without a step."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        names = ("backward", "manual_backward")
        return statement.value if isinstance(func, ast.Attribute) and func.attr in names else None
    if isinstance(statement, ast.With) and not any(_called(each, "step") for each in statement.body):
        return next((call for each in statement.body if (call := _backward(each)) is not None), None)
    return None


def _called(statement: ast.stmt, method: str) -> str:
    """Return the object of a method called by a statement; empty for other statements."""
    value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == method:
        return ast.unparse(value.func.value)
    return ""


def _step(around: _Around, block: Sequence[ast.stmt], number: int, source: str) -> StepToRetry:
    backward = _backward(block[number])
    assert backward is not None
    _require_single(block, number)
    owner = _zero_grad(block, number)
    batch = _batch_names(around)
    first = _first(block, number, batch)
    statements = block[first : number + 1]
    _require_plain(statements, batch)
    read, stored = first_reads(statements), stores(statements)
    names = tuple(name for name in batch if name in read and not _is_object(name, statements))
    if not names:
        raise _Unfit("found no batch that is read between the loop and `backward()`")
    for name in sorted(stored.keys() & read.keys() - set(batch)):
        raise _Unfit(f"`{name}` adds up over batches above `backward()`; move that below it", read[name])
    if stored.keys() & {owner}:
        raise _Unfit(f"`{owner}` is set above `backward()`; move that above the forward", stored[owner])
    later = first_reads(around.after())
    if isinstance(around.owner, (ast.For, ast.While)):
        later |= {name: row for name, row in first_reads(block[:first]).items() if name in stored}
    kept = tuple(name for name in stored if name in later)
    zeroing = tuple(each for each in statements if _called(each, "zero_grad"))
    return StepToRetry(
        statements,
        around.function,
        statements[0].lineno,
        around.top_row,
        names,
        kept,
        tuple(name for name in stored if name not in kept and name not in names),
        backward,
        f"{owner}.zero_grad",
        zeroing,
        not _is_sum(backward, statements, source),
    )


def _require_single(block: Sequence[ast.stmt], number: int) -> None:
    others = [
        node
        for each in block
        for node in ast.walk(each)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
    ]
    if len(others) > 1:
        raise _Unfit("the step has more than one `backward()`")
    if len({each.lineno for each in block}) < len(block):
        raise _Unfit("several statements share a row")


def _zero_grad(block: Sequence[ast.stmt], number: int) -> str:
    """Return the object of the only zero_grad of a block; there must be a step, too."""
    steps = {_called(each, "step") for each in block[number + 1 :]} - {""}
    if not steps:
        raise _Unfit("no `optimizer.step()` follows in the same block")
    owners = {_called(each, "zero_grad") for each in block} - {""}
    if len(owners) != 1:
        raise _Unfit("there is not one `optimizer.zero_grad()` in the same block")
    return owners.pop()


def _batch_names(around: _Around) -> list[str]:
    """Return the names of the batch: targets of the loop, or parameters, and their moved parts."""
    owner = around.owner
    found: list[str] = []
    if isinstance(owner, ast.For):
        found += _targets(owner.target)
    elif isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef)):
        args = owner.args
        found += [
            each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs) if each.arg != "self"
        ]
    for each in around.before():
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if _is_taken(each.value) or _is_moved(each.value, found):
                found += [name for target in targets for name in _targets(target) if name not in found]
    return found


def _targets(target: ast.expr) -> list[str]:
    return [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]


def _is_taken(value: ast.expr) -> bool:
    """Whether a value is the next batch of something."""
    return isinstance(value, ast.Call) and _LOADERS.search(last_name(value)) is not None


def _is_moved(value: ast.expr, batch: Sequence[str]) -> bool:
    """Whether a value is the batch or a part of it, perhaps on another device or in another dtype."""
    if isinstance(value, ast.Name):
        return value.id in batch
    if isinstance(value, (ast.Tuple, ast.List)):
        return bool(value.elts) and all(_is_moved(each, batch) for each in value.elts)
    if isinstance(value, (ast.Attribute, ast.Subscript)):
        if isinstance(value, ast.Subscript) and not isinstance(value.slice, ast.Constant):
            return False
        return _is_moved(value.value, batch)
    if isinstance(value, (ast.DictComp, ast.ListComp, ast.GeneratorExp)):
        inner = [*batch, *(name for each in value.generators for name in _targets(each.target))]
        made = value.value if isinstance(value, ast.DictComp) else value.elt
        return all(_is_moved(each.iter, batch) for each in value.generators) and _is_moved(made, inner)
    if isinstance(value, ast.IfExp):
        return _is_moved(value.body, batch) and _is_moved(value.orelse, batch)
    if isinstance(value, ast.Call):
        func = value.func
        if isinstance(func, ast.Attribute) and func.attr in _MOVES:
            return _is_moved(func.value, batch)
        return _MOVERS.search(last_name(func)) is not None and any(
            _is_moved(each, batch) for each in value.args
        )
    return False


def _first(block: Sequence[ast.stmt], number: int, batch: Sequence[str]) -> int:
    """Return the number of the first statement to compute with the batch."""
    for at, each in enumerate(block[:number]):
        if loads([each]) & set(batch) and not _only_moves(each, batch):
            return at
    return number


def _only_moves(statement: ast.stmt, batch: Sequence[str]) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign)) and (
        statement.value is not None and _is_moved(statement.value, batch)
    )


def _require_plain(statements: Sequence[ast.stmt], batch: Sequence[str]) -> None:
    """Check for statements to run once only: they leave the step, collect values, or change the batch."""
    for each in statements:
        for node in _own_nodes(each):
            row = getattr(node, "lineno", 0)
            if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom, ast.Await, ast.Continue, ast.Break)):
                word = type(node).__name__.lower()
                raise _Unfit(f"`{word}` above `backward()` leaves the step", row)
            if isinstance(node, (ast.Global, ast.Nonlocal, ast.Delete, ast.FunctionDef, ast.ClassDef)):
                raise _Unfit("a definition or `del` above `backward()` cannot be repeated", row)
            if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
                raise _Unfit(f"`{ast.unparse(node)}` is set above `backward()`; move that below it", row)
            changed = _changed_in_place(node)
            if changed in batch:
                raise _Unfit(f"`{changed}` is changed in place above `backward()`", row)
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Call)
                and isinstance(node.value.func, ast.Attribute)
                and node.value.func.attr in _COLLECTS
            ):
                call = ast.unparse(node.value.func)
                raise _Unfit(f"`{call}()` collects values above `backward()`; move it below", row)
        if _called(each, "step"):
            raise _Unfit("a `step()` is above `backward()`", each.lineno)


def _changed_in_place(node: ast.AST) -> str:
    """Return the variable of an operation in place: `x += y`, `x.add_(y)`; empty for other nodes."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    func = node.func if isinstance(node, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr.endswith("_") and isinstance(func.value, ast.Name):
        return func.value.id
    return ""


def _own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Return the nodes of a statement; breaks of its own loops are left out."""
    waiting: list[tuple[ast.AST, bool]] = [(statement, False)]
    while waiting:
        node, in_loop = waiting.pop()
        if not (in_loop and isinstance(node, (ast.Continue, ast.Break))):
            yield node
        inner = in_loop or isinstance(node, (ast.For, ast.While))
        waiting += ((each, inner) for each in ast.iter_child_nodes(node))


def _is_object(name: str, statements: Sequence[ast.stmt]) -> bool:
    """Whether a name is called, or has methods of modules and optimizers."""
    for each in statements:
        for node in ast.walk(each):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name) and node.func.id == name:
                return True
            if (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in _NOT_DATA
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == name
            ):
                return True
    return False


def _is_sum(backward: ast.Call, statements: Sequence[ast.stmt], source: str) -> bool:
    """Whether the loss is a sum over the rows: `.sum()`, or a function with `reduction="sum"`."""
    names = loads([ast.Expr(backward)])
    codes = [ast.unparse(backward.func).removesuffix(".backward")]
    for each in statements:
        if isinstance(each, ast.Assign) and any(set(_targets(target)) & names for target in each.targets):
            codes.append(ast.unparse(each.value))
            if isinstance(each.value, ast.Call) and isinstance(each.value.func, (ast.Name, ast.Attribute)):
                made = re.escape(ast.unparse(each.value.func))
                codes += re.findall(rf"^\s*{made} = (.*)$", source, re.MULTILINE)
    return any(_SUMS.search(code) for code in codes)
