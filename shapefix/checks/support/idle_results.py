"""Discarded results without a consequence: of benchmarks, of dead variables, and of redundant operations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.support.syntax import enclosing, holds, is_after
from shapefix.checks.support.unused_results import written_in_place
from shapefix.domains.operations import Discarded
from shapefix.domains.passed_on import MOVES, PassedOn
from shapefix.interpreter.modules import Module, called_name, children, dotted_name, nodes, target_names
from shapefix.interpreter.tensor_values import DeviceKind
from shapefix.interpreter.values import FunctionValue, as_tensor
from shapefix.light_dataclasses import dataclass
from shapefix.sources.relevance import is_test_file

_TIMERS = frozenset(
    {
        "time",
        "time_ns",
        "perf_counter",
        "perf_counter_ns",
        "monotonic",
        "process_time",
        "default_timer",
        "record",
        "elapsed_time",
    }
)
"""Functions that read a clock; `record` is a method of `torch.cuda.Event`."""
_PROFILERS = frozenset({"profile", "record_function"})
_EXPANSIONS = frozenset({"expand", "expand_as", "broadcast_to"})


def is_idle(event: Discarded, context: CheckContext) -> bool:
    """Whether the program computes the same with the result as without it, or only measures its time."""
    around = enclosing(event.place.module, event.place.node)
    if is_measured(event.place.module, around):
        return True
    if event.name and _is_move_to_device(event.call) and _is_needless_move(event, around):
        return True
    if not event.name or "." in event.name:
        return False
    return (
        _is_dead(event, around)
        or _is_item_without_use(event, around)
        or _is_last_use(event, around)
        or _is_viewed_anyway(event, around)
        or _is_broadcast_anyway(event, around)
        or _is_moved_by_callees(event, context, around)
    )


def is_measured(module: Module, around: list[cst.CSTNode]) -> bool:
    """Whether clocks are read around the line, or around a loop of expressions with the line."""
    for position in range(len(around) - 1, 0, -1):
        block, statement = around[position - 1], around[position]
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            continue
        measured = module.once(block, _measured)
        if statement in measured:
            return True
        outer = around[position - 2] if position > 1 else None
        is_compound = isinstance(outer, (cst.For, cst.While, cst.With))
        if not is_compound or not module.once(block, _is_of_expressions):
            return False
        if isinstance(outer, cst.With) and any(called_name(item.item) in _PROFILERS for item in outer.items):
            return True
    return False


def _measured(block: cst.IndentedBlock | cst.Module) -> frozenset[cst.CSTNode]:
    """The statements between two reads of a clock, with nothing but expressions around them."""
    reads: dict[cst.CSTNode, bool] = {each: _reads_clock(each) for each in block.body}
    return _next_to_clock(block.body, reads) & _next_to_clock(reversed(block.body), reads)


def _next_to_clock(
    statements: Iterable[cst.CSTNode], reads: Mapping[cst.CSTNode, bool]
) -> frozenset[cst.CSTNode]:
    """The statements after a read of a clock, with only expressions in between."""
    found: set[cst.CSTNode] = set()
    is_after = False
    for statement in statements:
        if is_after:
            found.add(statement)
        is_after = reads[statement] or (is_after and _is_expression(statement))
    return frozenset(found)


def _reads_clock(statement: cst.CSTNode) -> bool:
    return any(isinstance(node, cst.Call) and called_name(node) in _TIMERS for node in nodes(statement))


def _is_of_expressions(block: cst.IndentedBlock | cst.Module) -> bool:
    return all(map(_is_expression, block.body))


def _is_expression(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(small, cst.Expr) for small in statement.body
    )


def _is_dead(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether the tensor was created for a variable of the function with no other use."""
    held = event.held
    if held is None or held.origin is None or not isinstance(_scope(around), cst.FunctionDef):
        return False
    created = held.origin.place.node
    has_others = False
    for path in _mentions(event.place.module, around, event.name or ""):
        if event.place.node in path:
            continue
        assign = path[-3] if len(path) > 2 and isinstance(path[-2], cst.AssignTarget) else None
        if not isinstance(assign, cst.Assign) or not holds(assign.value, created):
            return False
        has_others = True
    return has_others


def _is_item_without_use(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether the discarded move is the only reader of an item of a loop."""
    name = event.name or ""
    if event.function.rpartition(".")[2] not in MOVES:
        return False
    loops = [node for node in around if isinstance(node, cst.For) and name in target_names(node.target)]
    if not loops:
        return False
    loop = loops[-1]
    target, inside = loop.target, [loop.body, loop.orelse]
    held = {node.value for node in _variables(loop.iter)}
    if any(node.value in held and is_after(event.place, node) for node in _variables(_scope(around))):
        return False  # the items may be read where they are held
    for path in _mentions(event.place.module, around, name):
        of_loop = any(each in path for each in inside if each is not None)
        if of_loop and event.place.node not in path:
            return False
        if not of_loop and target not in path and is_after(event.place, path[-1]):
            return False
    return True


_LEAVES_THE_TENSOR = MOVES | {"detach"}
"""Conversions that people write in the end: to free memory, or to cut a graph."""


def _is_last_use(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether nothing reads a variable of the function after the discarded conversion of it.

    In a loop, each pass must bind the variable before. An argument belongs to the caller, too.
    """
    name, scope = event.name or "", _scope(around)
    loops = [node for node in around if isinstance(node, (cst.For, cst.While)) and holds(scope, node)]
    if event.function.rpartition(".")[2] not in _LEAVES_THE_TENSOR:
        return False
    if not loops and not isinstance(scope, cst.FunctionDef):
        return False  # another file, or a later cell, may read it
    bound = []
    for path in _mentions(event.place.module, around, name):
        if event.place.node in path:
            continue
        if is_after(event.place, path[-1]) or any(isinstance(node, cst.Parameters) for node in path):
            return False
        if any(isinstance(node, cst.AssignTarget) for node in path):
            bound.append(path)
    return bool(bound) and all(any(loop.body in path for path in bound) for loop in loops[-1:])


def _is_broadcast_anyway(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether an expanded variable is only used in arithmetic: it expands by itself."""
    if event.function.rpartition(".")[2] not in _EXPANSIONS:
        return False
    later = _later(event, around)
    return bool(later) and all(_broadcasts(path) for path in later)


def _broadcasts(path: list[cst.CSTNode]) -> bool:
    """Whether a mention is an operand of arithmetic with something other than a number."""
    operation, own = path[-2], path[-1]
    if isinstance(operation, cst.BinaryOperation):
        other = operation.right if operation.left is own else operation.left
        is_elementwise = not isinstance(operation.operator, cst.MatrixMultiply)
        return is_elementwise and not isinstance(other, (cst.Integer, cst.Float, cst.UnaryOperation))
    return isinstance(operation, cst.AugAssign) and operation.value is own


_DEVICES = frozenset({"device", "dev", "cuda"})


def _is_needless_move(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether a method is a move to a device, and the program is the same without it."""
    if event.function.rpartition(".")[2] not in MOVES:
        return False
    return (
        _is_on_device(event)
        or _is_of_test(event.place.module, around)
        or _is_moved_where_used(event, around)
        or _is_after_write(event)
    )


def _is_after_write(event: Discarded) -> bool:
    """Whether the move ends a chain of writes to weights: `self.head.weight.data.zero_().to("cuda")`."""
    names = (event.name or "").split(".")
    return names[0] == "self" and "data" in names and written_in_place(event.call) is not None


def _is_on_device(event: Discarded) -> bool:
    """Whether the tensor is on a chosen device before a move to a GPU, or was created on the named one."""
    held, result = event.held, as_tensor(event.result)
    if held is None or held.origin is None:
        return False
    goes_to_cpu = event.function == "torch.Tensor.cpu" or (
        result is not None and result.device is not None and result.device.kind is DeviceKind.CPU
    )
    if held.device is not None and held.device.may_be_gpu:
        return not goes_to_cpu
    named = event.place.module.code(event.call.args[0].value) if len(event.call.args) == 1 else ""
    made = held.origin.place
    return bool(named) and any(
        isinstance(node, cst.Arg)
        and node.keyword is not None
        and node.keyword.value == "device"
        and made.module.code(node.value) == named
        for node in nodes(made.node)
    )


def _is_of_test(module: Module, around: list[cst.CSTNode]) -> bool:
    """Whether a line is in a test; a loss of any weight would make it fail."""
    functions = (node.name.value for node in around if isinstance(node, cst.FunctionDef))
    return is_test_file(module.path) and any(name.startswith("test") for name in functions)


def _is_moved_where_used(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether each use of a variable is as an index, or moves it.

    A tensor on a GPU takes indices on the CPU. An attribute must be no more than that in its whole class.
    """
    of_class = (node for node in reversed(around) if isinstance(node, cst.ClassDef))
    scope = next(of_class, None) if "." in (event.name or "") else _scope(around)
    if scope is None:
        return False
    used = [
        path
        for path in _paths_of([scope], event.name or "")
        if event.place.node not in path and not isinstance(path[-2], cst.AssignTarget)
    ]
    used = [path for path in used if not _is_type_test(path) and not isinstance(path[-2], cst.Param)]
    return bool(used) and all(isinstance(path[-2], cst.Index) or _is_moved_there(path) for path in used)


def _is_type_test(path: list[cst.CSTNode]) -> bool:
    """Whether a mention is the argument of `isinstance`."""
    call = path[-3] if len(path) > 2 and isinstance(path[-2], cst.Arg) else None
    return isinstance(call, cst.Call) and called_name(call) == "isinstance"


def _is_moved_there(path: list[cst.CSTNode]) -> bool:
    """Whether a mention is the receiver of a move: `self.tokens.to(device)`."""
    method = path[-2]
    return isinstance(method, cst.Attribute) and method.value is path[-1] and method.attr.value in MOVES


def _is_move_to_device(call: cst.Call) -> bool:
    """Whether a move is one to a device, and to no other dtype: `x.cuda()`, `x.to(state.device)`."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "to":
        return True
    first = call.args[0].value if len(call.args) == 1 else None
    if isinstance(first, cst.SimpleString):
        return True
    name = dotted_name(first).rpartition(".")[2] if first is not None else ""
    return not _DEVICES.isdisjoint(name.lower().split("_"))


def _paths_of(path: list[cst.CSTNode], name: str) -> Iterator[list[cst.CSTNode]]:
    """Yield the paths to all mentions of a variable or an attribute: `self.index`."""
    if dotted_name(path[-1]) == name:
        yield path
        return
    for part in children(path[-1]):
        yield from _paths_of([*path, part], name)


_KEEP_ORDER = frozenset(
    {"unsqueeze", "squeeze", "view", "view_as", "reshape", "reshape_as", "flatten", "ravel"}
)
"""Operations that keep all elements in their order."""


def _is_viewed_anyway(event: Discarded, around: list[cst.CSTNode]) -> bool:
    """Whether the next use gives the variable all of its sizes: `x = x.view(-1, 100)`."""
    if event.function.rpartition(".")[2] not in _KEEP_ORDER:
        return False
    for position in range(len(around) - 1, 0, -1):
        block, statement = around[position - 1], around[position]
        if isinstance(block, (cst.IndentedBlock, cst.Module)):
            module, name = event.place.module, event.name or ""
            rows = module.once(block, _rows_of)
            mentions = rows.mentions.get(name, [])
            after = bisect_right(mentions, rows.numbers[statement], key=itemgetter(0))
            if after == len(mentions):
                return False
            number = mentions[after][0]
            end = bisect_right(mentions, number, key=itemgetter(0))
            paths = [module.path_to(node)[position:] for _, node in mentions[after:end]]
            return _gives_sizes(block.body[number], paths, name)
    return False


@dataclass(frozen=True)
class _Rows:
    """The statements of a block by number, and the numbers of those with a name, in their order."""

    numbers: dict[cst.CSTNode, int]
    mentions: dict[str, list[tuple[int, cst.Name]]]


def _rows_of(block: cst.IndentedBlock | cst.Module) -> _Rows:
    mentions: dict[str, list[tuple[int, cst.Name]]] = {}
    for number, statement in enumerate(block.body):
        for name in _variables(statement):
            mentions.setdefault(name.value, []).append((number, name))
    return _Rows({statement: number for number, statement in enumerate(block.body)}, mentions)


def _gives_sizes(statement: cst.CSTNode, mentions: list[list[cst.CSTNode]], name: str) -> bool:
    """Whether a statement assigns a view of the variable to it, and uses it for nothing else."""
    line = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(line, cst.Assign) or len(line.targets) != 1 or len(statement.body) != 1:  # type: ignore[attr-defined]
        return False
    if dotted_name(line.targets[0].target) != name or len(mentions) != 2:
        return False
    path = mentions[1]
    method, call = path[-2], path[-3] if len(path) > 2 else None
    return (
        isinstance(method, cst.Attribute)
        and method.attr.value in ("view", "reshape")
        and isinstance(call, cst.Call)
        and call.func is method
    )


def _is_moved_by_callees(event: Discarded, context: CheckContext, around: list[cst.CSTNode]) -> bool:
    """Whether the variable only goes to functions with a move to their device first."""
    if event.function.rpartition(".")[2] not in MOVES:
        return False
    callees = {
        call: function
        for each in context.events
        if isinstance(each, PassedOn) and each.place.node is event.place.node
        for call, function in each.callees.items()
    }
    later = _later(event, around)
    return bool(later) and all(_is_moved(path, callees) for path in later)


def _is_moved(path: list[cst.CSTNode], callees: dict[cst.Call, FunctionValue]) -> bool:
    if len(path) < 3 or not isinstance(path[-2], cst.Arg) or not isinstance(path[-3], cst.Call):
        return False
    argument, call = path[-2], path[-3]
    function = callees.get(call)
    if function is None or not isinstance(function.node, cst.FunctionDef):
        return False
    name = _parameter(function, call, argument)
    for statement in function.node.body.body if name else ():
        small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else statement
        if any(isinstance(node, cst.Name) and node.value == name for node in nodes(small)):
            return isinstance(small, cst.Assign) and _moves(small, name)
    return False


def _parameter(function: FunctionValue, call: cst.Call, argument: cst.Arg) -> str:
    """Return the parameter for an argument of a function; empty if that is unclear."""
    if argument.keyword is not None:
        return argument.keyword.value
    position = next(index for index, each in enumerate(call.args) if each is argument)
    params = [param.name.value for param in function.node.params.params]
    if function.owner is not None or any(each.star for each in call.args[: position + 1]):
        return ""
    return params[position] if position < len(params) else ""


def _moves(assign: cst.Assign, name: str) -> bool:
    """Whether an assignment moves a variable: `x = torch.as_tensor(x).to(device)`."""
    return (
        dotted_name(assign.targets[0].target) == name
        and isinstance(assign.value, cst.Call)
        and isinstance(assign.value.func, cst.Attribute)
        and assign.value.func.attr.value in MOVES
    )


def _scope(around: list[cst.CSTNode]) -> cst.CSTNode:
    return next(node for node in reversed(around) if isinstance(node, (cst.Module, cst.FunctionDef)))


def _mentions(module: Module, around: list[cst.CSTNode], name: str) -> Iterator[list[cst.CSTNode]]:
    """Yield the paths to all mentions of a variable in its function, or in the file."""
    scope = _scope(around)
    depth = len(module.path_to(scope)) - 1
    return (module.path_to(node)[depth:] for node in module.once(scope, _by_name).get(name, ()))


def _by_name(scope: cst.CSTNode) -> dict[str, list[cst.Name]]:
    found: dict[str, list[cst.Name]] = {}
    for name in _variables(scope):
        found.setdefault(name.value, []).append(name)
    return found


def _variables(root: cst.CSTNode) -> Iterator[cst.Name]:
    """Yield the names below a node, in their order; those of attributes and keywords are none of them."""
    pending: list[Iterator[cst.CSTNode]] = [iter((root,))]
    while pending:
        node = next(pending[-1], None)
        if node is None:
            pending.pop()
        elif isinstance(node, cst.Name):
            yield node
        elif isinstance(node, (cst.Arg, cst.Attribute)):
            pending.append(iter((node.value,)))
        else:
            pending.append(iter(children(node)))


def _later(event: Discarded, around: list[cst.CSTNode]) -> list[list[cst.CSTNode]]:
    """Return the paths to the mentions after the line; in a loop around it, all others in the loop."""
    loops = [node for node in around if isinstance(node, (cst.For, cst.While))]
    found = []
    for path in _mentions(event.place.module, around, event.name or ""):
        is_again = any(loop in path for loop in loops) and not isinstance(path[-2], cst.AssignTarget)
        if event.place.node not in path and (is_again or is_after(event.place, path[-1])):
            found.append(path)
    return found
