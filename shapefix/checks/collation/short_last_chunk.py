"""SF307: a shorter last chunk of a token stream, stacked with the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from shapefix.checks.collation.ragged_default_collation import collation_error
from shapefix.checks.collation.tensor_of_ragged_rows import stacking_error
from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.conditions import comparison, in_backticks, of_code
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import (
    Applicability,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    ExpectedError,
    Fix,
    Role,
)
from shapefix.domains.batches import Collated, Stacked
from shapefix.domains.raggedness import ragged, row_sizes
from shapefix.interpreter.containers import DictValue, ListValue, TupleValue
from shapefix.interpreter.modules import Module, Place, children, nodes, target_names
from shapefix.interpreter.per_item_sizes import Cut
from shapefix.interpreter.values import LibraryObject, Reference, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.symbols import Atom, PerItemSize

_LABELS = frozenset({"labels", "label", "label_ids"})
_PAD_INPUTS_ONLY = frozenset({"DataCollatorForLanguageModeling", "DataCollatorWithPadding"})
_PAD_NOTHING = frozenset({"default_data_collator", "DefaultDataCollator", "default_collate"})


@rule("SF307", on=(Collated, Stacked))
def short_last_chunk(event: Collated | Stacked, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    found = _stacked(event) if isinstance(event, Stacked) else _collated(event)
    chunks = _chunks(found[0]) if found is not None else None
    if found is None or chunks is None or _may_fit(found[0]) or _is_looked_at(chunks, found[0].place.module):
        return
    cut, (who, where, what, error) = found
    module, stop, step = cut.place.module, chunks.stop, chunks.step
    computed = _computed(chunks, module)
    origin = f" ({rewrites.line_of(computed, module)})" if computed is not None else ""
    code = module.code(step)
    size = code if isinstance(step, cst.Integer) else f"`{code}`"
    yield rule.diagnostic(
        cut.place.span,
        f"`{abbreviate(module.code(stop))}`{origin} may not be a multiple of {size}; "
        f"`{who}` ({rewrites.line_of(where, module)}) {what}",
        evidence=[
            *call_trace(event),
            Evidence(module.span(chunks.loop), "the remainder becomes a shorter last chunk"),
            Evidence(cut.place.span, "chunk sliced here"),
            Evidence(event.place.span, "chunks combined here", Role.FAILURE),
        ],
        error=error,
        condition=Condition(
            f"{in_backticks(module.code(stop))} is not a multiple of {in_backticks(code)}",
            comparison(of_code(module.code(stop)), "is not a multiple of", of_code(code)),
        ),
        fixes=_round_down(chunks, computed, module),
    )


_FAILS = "fails on a shorter last chunk"

Stacker = tuple[str, Place, str, ExpectedError]
"""The function that combines the chunks, its place, the effect, and the exception."""


def _stacked(event: Stacked) -> tuple[Cut, Stacker] | None:
    """Return the chunks of a tensor."""
    node = event.place.node
    cut = _cut(ragged(event.rows) or ())
    if cut is None or not isinstance(node, cst.Call) or _holds_rows(event.rows):
        return None
    return cut, (event.place.module.code(node.func), event.place, _FAILS, stacking_error(event))


def _holds_rows(chunks: Value) -> bool:
    """Whether the chunks are groups of rows: each sample may add a whole group, the choices of a question."""
    chunk = chunks.element if isinstance(chunks, ListValue) else None
    return isinstance(chunk, ListValue) and isinstance(chunk.element, ListValue)


def _collated(event: Collated) -> tuple[Cut, Stacker] | None:
    """Return the chunks of an unpadded batch."""
    collator = event.collator
    where, name = event.place, event.consumer.rpartition(".")[2]
    if isinstance(collator, LibraryObject):
        where, name = collator.place or where, collator.kind.rpartition(".")[2]
    elif isinstance(collator, Reference):
        name = collator.name.rpartition(".")[2]
    elif collator is not None or event.single:
        return None
    elif event.tokenizer is not None:
        name = "DataCollatorWithPadding"
    pads_inputs = name in _PAD_INPUTS_ONLY
    if event.single or not (pads_inputs or collator is None or name in _PAD_NOTHING):
        return None
    for key, cell in _columns(event.sample):
        cut = _cut(row_sizes(cell))
        if cut is not None and (key in _LABELS or not pads_inputs):
            if not pads_inputs:
                return cut, (name, where, _FAILS, collation_error(event, cell))
            error = ExpectedError("ValueError", "Unable to create tensor")
            return cut, (name, where, f"does not pad {key} of a shorter last chunk", error)
    return None


def _columns(sample: Value) -> Iterable[tuple[object, Value]]:
    if isinstance(sample, DictValue):
        return sample.fields.items()
    return enumerate(sample.items) if isinstance(sample, TupleValue) else [(None, sample)]


def _cut(sizes: Iterable[Size]) -> Cut | None:
    """Return the slice making the last chunk shorter, if one of the sizes depends on it."""
    for size in sizes:
        for symbol in every_symbol(size):
            if isinstance(symbol, PerItemSize) and isinstance(symbol.source, Cut):
                return symbol.source
    return None


def _may_fit(cut: Cut) -> bool:
    """Whether earlier arithmetic may have rounded the total length to a multiple of the chunk length."""
    symbols = every_symbol(cut.chunk.stop - cut.chunk.start)
    return any(isinstance(symbol, Atom) and symbol.op in ("%", "//", "/") for symbol in symbols)


def _is_looked_at(chunks: _Chunks, module: Module) -> bool:
    """Whether the code checks the length of a chunk: `if len(chunk) == block_size`."""
    size = module.code(chunks.step)
    for node in nodes(module.tree):
        if isinstance(node, cst.Comparison):
            sides = [node.left, *(target.comparator for target in node.comparisons)]
            if any(map(_is_length, sides)) and any(module.code(side) == size for side in sides):
                return True
    return False


def _is_length(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value == "len"


@dataclass(frozen=True)
class _Chunks:
    """The loop `for i in range(0, stop, step)` around a slice, and the function around it."""

    loop: cst.Call
    stop: cst.BaseExpression
    step: cst.BaseExpression
    function: cst.CSTNode


def _chunks(cut: Cut) -> _Chunks | None:
    """Return the loop over chunk starts; None if the slicing code has another form."""
    around = enclosing(cut.place.module, cut.place.node)
    functions = [node for node in around if isinstance(node, (cst.Module, cst.FunctionDef))]
    for node in reversed(around):
        for loop in _loops(node):
            given = loop.args if isinstance(loop, cst.Call) and _is_range(loop) else ()
            if isinstance(loop, cst.Call) and len(given) == 3 and not any(one.star for one in given):
                return _Chunks(loop, given[1].value, given[2].value, functions[-1])
        if node is functions[-1]:
            break
    return None


def _loops(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """Yield the iterables of a for statement or comprehension, innermost first."""
    if isinstance(node, cst.For):
        yield node.iter
    elif isinstance(node, cst.BaseComp):
        loops: list[cst.BaseExpression] = []
        part: cst.CompFor | None = node.for_in
        while part is not None:
            loops.append(part.iter)
            part = part.inner_for_in
        yield from reversed(loops)


def _is_range(loop: cst.Call) -> bool:
    return isinstance(loop.func, cst.Name) and loop.func.value == "range"


def _computed(chunks: _Chunks, module: Module) -> Place | None:
    """Return the only statement of the function to compute the end of the chunks."""
    name = chunks.stop.value if isinstance(chunks.stop, cst.Name) else None
    found = [node for node in _statements(chunks.function) if name in _assigned(node)]
    return Place(module, found[0]) if len(found) == 1 and isinstance(found[0], cst.Assign) else None


def _statements(function: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield the nodes of a function, without those of nested functions."""
    for node in children(function):
        if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        yield node
        yield from _statements(node)


def _assigned(node: cst.CSTNode) -> list[str]:
    if isinstance(node, cst.Assign):
        return [name for target in node.targets for name in target_names(target.target)]
    if isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)):
        return list(target_names(node.target))
    return [node.name.value] if isinstance(node, cst.Param) else []


def _round_down(chunks: _Chunks, computed: Place | None, module: Module) -> list[Fix]:
    start = chunks.loop.args[0].value
    if not (isinstance(start, cst.Integer) and start.value == "0"):
        return []
    stop, step = _operand(module, chunks.stop), _operand(module, chunks.step)
    rounded = f"({stop} // {step}) * {step}"
    edit = None
    if computed is not None and not _is_step_later(chunks, computed):
        edit = rewrites.after_statement(computed, f"{stop} = {rounded}")
    if edit is None:
        edit = Edit(module.span(chunks.stop), rounded)
    message = f"round `{abbreviate(module.code(chunks.stop))}` down to a multiple of the chunk length"
    return [Fix(Applicability.SAFE, message, (edit,))]


def _is_step_later(chunks: _Chunks, computed: Place) -> bool:
    """Whether the code computes the chunk length only after the total length."""
    found = [node for node in _statements(chunks.function) if isinstance(node, cst.Assign)]
    behind = found[found.index(computed.node) + 1 :] if isinstance(computed.node, cst.Assign) else []
    names = {name for node in behind for name in _assigned(node)}
    return not isinstance(chunks.step, (cst.Name, cst.Integer, cst.Attribute)) or any(
        isinstance(chunks.step, cst.Name) and chunks.step.value == name for name in names
    )


def _operand(module: Module, node: cst.BaseExpression) -> str:
    """Return the code of an expression as an operand."""
    code = module.code(node)
    plain = isinstance(node, (cst.Name, cst.Attribute, cst.Integer, cst.Call, cst.Subscript))
    return code if plain or node.lpar else f"({code})"
