"""Find the creation of the layer on a failing line, by the numbers of the message."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.live_facts import LiveFacts
from shapefix.diagnosis.named_places.failures import project_files
from shapefix.diagnosis.project_frames import ProjectFrame, file_of
from shapefix.diagnosis.size_origins import SizeOrigin, last_name, setting_of
from shapefix.diagnosis.value_search import ValueSearch, load_of
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.engine.parse_limits import LARGEST
from shapefix.light_dataclasses import dataclass
from shapefix.sources.text import Unreadable


@dataclass(frozen=True)
class _Family:
    """The layers for a message.

    wanted is the field with the number of the layer, arrived the one with that of the data.
    """

    prefixes: tuple[str, ...]
    wanted: str
    arrived: str


_SIZE = re.compile(r"\d+")
_MOST_GIVEN = 3
_LINEAR = _Family(("Linear", "LazyLinear"), "in_features", "size")
_FAMILIES = {
    "matrix-product": _LINEAR,
    "conv-channels": _Family(("Conv",), "want", "got"),
    "norm-channels": _Family(("BatchNorm", "InstanceNorm", "SyncBatchNorm"), "want", "got"),
    "normalized-shape": _Family(("LayerNorm", "RMSNorm"), "normalized", "got"),
    "recurrent-input": _Family(("LSTM", "GRU", "RNN"), "want", "got"),
}


@dataclass(frozen=True)
class FailingLayer:
    """A layer of the project: the name in its call, and the row and code of its creation.

    setting is where its size is set, and load where its data is read, if only one place is possible.
    """

    name: str
    path: str
    row: int
    code: str
    wanted: str
    arrived: str
    setting: SizeOrigin | None = None
    load: SizeOrigin | None = None
    given: tuple[SizeOrigin, ...] = ()
    """The values that its size is computed from, without a setting."""


def failing_layer(
    explanation: MessageExplanation | None,
    frames: Sequence[ProjectFrame],
    folder: str,
    live: LiveFacts | None = None,
) -> FailingLayer | None:
    """Return the layer on the failing line, if only one fits the message and the live facts."""
    family = _FAMILIES.get(explanation.name) if explanation is not None else None
    if explanation is None or family is None or not frames or frames[-1].is_missing:
        return None
    span = frames[-1].span
    try:
        whole = whole_text(span.path)
        tree = ast.parse(whole.text if len(whole.text) <= LARGEST else "")
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    wanted, arrived = (_last_size(explanation.fields[name]) for name in (family.wanted, family.arrived))
    found = []
    for name, created in _created(tree, span.row + whole.rows_before, span.end_row + whole.rows_before):
        for call in _calls_of(created, family):
            if _is_of_size(call, wanted):
                size = _size_of(call)
                own = file_of(span.path)
                setting = setting_of(last_name(size), wanted, folder, own) if size is not None else None
                setting = setting or _given(tree, call, size, wanted, frames, folder)
                code = ast.get_source_segment(whole.text, call) or ""
                given = () if setting is not None else _computed(span.path, call, size, frames, folder)
                found.append(
                    FailingLayer(
                        name,
                        *whole.place(call.lineno),
                        " ".join(code.split()),
                        wanted,
                        arrived,
                        setting,
                        load_of(name, frames),
                        given,
                    )
                )
    if live is not None and live.layer is not None:
        raised = [layer for layer in found if layer.name.rpartition(".")[2] == live.layer.attribute]
        found = raised or found
    distinct = {(layer.path, layer.row, layer.code): layer for layer in found}
    return next(iter(distinct.values())) if len(distinct) == 1 else None


def _computed(
    path: str, layer: ast.Call, size: ast.expr | None, frames: Sequence[ProjectFrame], folder: str
) -> tuple[SizeOrigin, ...]:
    """Return the values in the size of a layer."""
    if size is None or isinstance(size, ast.Constant):
        return ()
    search = ValueSearch(frames, folder)
    search.follow(search.at(path, layer.lineno, layer.end_lineno or layer.lineno), size)
    return tuple(dict.fromkeys(search.steps))[:_MOST_GIVEN]


def _given(
    tree: ast.Module,
    layer: ast.Call,
    size: ast.expr | None,
    wanted: str,
    frames: Sequence[ProjectFrame],
    folder: str,
) -> SizeOrigin | None:
    """Return the place of a layer's number in the only construction of its class."""
    around = [
        (cls, method)
        for cls in ast.walk(tree)
        if isinstance(cls, ast.ClassDef)
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        if method.lineno <= layer.lineno <= (method.end_lineno or 0)
    ]
    if len(around) != 1 or not isinstance(size, ast.Name):
        return None
    cls, method = around[0]
    parameters = [each.arg for each in method.args.args[1:]]
    if size.id not in parameters:
        return None
    calls = [
        (parsed, node)
        for parsed in project_files(frames, folder, cls.name)
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.Call) and last_name(node.func) == cls.name
    ]
    if len(calls) != 1:
        return None
    parsed, call = calls[0]
    named = [keyword.value for keyword in call.keywords if keyword.arg == size.id]
    position = parameters.index(size.id)
    given = named[0] if named else call.args[position] if len(call.args) > position else None
    if isinstance(given, ast.Constant) and str(given.value) == wanted:
        path, row = parsed.whole.place(given.lineno)
        line = parsed.whole.text.split("\n")[given.lineno - 1].strip()
        return SizeOrigin(size.id, path, row, line)
    name = last_name(given) if given is not None else ""
    return setting_of(name, wanted, folder, parsed.whole.source.path) if name else None


def _last_size(field: str) -> str:
    """Return the number of a field, the last one of a shape: `[2, 64, 32]`."""
    numbers = _SIZE.findall(field)
    return numbers[-1] if numbers else field


def _created(tree: ast.Module, first: int, last: int) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names called in some rows, with the values assigned to them in the same class or file."""
    called = {
        ast.unparse(node.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and first <= node.lineno <= last
    }
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and node.lineno <= first <= (node.end_lineno or 0)
    ]
    for name in sorted(called):
        scope = owners[-1] if name.startswith("self.") and owners else tree
        for node in ast.walk(scope):
            if isinstance(node, ast.Assign) and any(ast.unparse(each) == name for each in node.targets):
                yield name, node.value


def _calls_of(created: ast.expr, family: _Family) -> Iterator[ast.Call]:
    """Yield the creations of layers of a family in a value: a layer, or a container of layers."""
    for node in ast.walk(created):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name.startswith(family.prefixes):
                yield node


_SIZES = ("in_features", "in_channels", "num_features", "input_size", "normalized_shape")
"""Parameters of layers for the size of the input; it is the first one."""


def _size_of(call: ast.Call) -> ast.expr | None:
    """Return the size of a layer's input in its creation."""
    given = [keyword.value for keyword in call.keywords if keyword.arg in _SIZES]
    return given[0] if given else call.args[0] if call.args else None


def _is_of_size(call: ast.Call, wanted: str) -> bool:
    """Whether the input of a layer may have this size; a number in the code decides."""
    given = _size_of(call)
    if isinstance(given, ast.Constant):
        return str(given.value) == wanted
    return given is not None
