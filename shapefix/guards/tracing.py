"""Uses of torch.fx and TorchScript in a project, and the files within their reach."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cached_property

from shapefix.guards.memory.names import last_name
from shapefix.light_dataclasses import dataclass
from shapefix.sources.importers import ImportStatement, distances, import_statements
from shapefix.sources.project import Project
from shapefix.sources.text import Unreadable, is_notebook, source_of

_PATTERN = (
    r"symbolic_trace|torch\.fx\b|import fx\b|(?:prepare|prepare_qat|convert)_fx\b|jit\.script|ScriptModule"
    r"|torch\.jit import|create_feature_extractor|get_graph_node_names|parallelize_module|nested_tensor"
    r"|torch\.nested"
)
_TEXT = re.compile(_PATTERN)
_BYTES = re.compile(_PATTERN.encode())
_COMPUTED = re.compile(
    rb"import_module|__import__|\binstantiate\(|\bexec\(|run_path|run_module|%run|\blocate\(|get_obj"
    rb"|(?<!load_state_dict\()torch\.load\("
)
"""Code that loads files, or objects of their classes, without an import statement."""
_SCRIPTS = frozenset({"script", "script_method"})


@dataclass(frozen=True)
class Tracing:
    """The use of tracers in a file: a mention of one, and the names in code with `@torch.jit.script`."""

    mention: str | None
    scripted: frozenset[str]


def tracing_in(path: str, data: bytes) -> Tracing | None:
    """Return the use of tracers in a file; comments and docstrings do not count."""
    found = _BYTES.search(data)
    if found is None:
        return None
    try:
        tree = ast.parse(source_of(path, data).text)
    except (Unreadable, SyntaxError, ValueError, RecursionError):
        return Tracing(found[0].decode(), frozenset())
    scripted: set[str] = set()
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            _take_scripted(node, scripted)
        elif isinstance(node, ast.Call) and last_name(node.func) == "isinstance":
            node.args = node.args[:1]
        elif isinstance(node, ast.ImportFrom) and node.module == "torch.jit":
            imported |= {alias.asname or alias.name for alias in node.names}
            node.names = [ast.alias("annotate")]
            node.module = "torch"
        if isinstance(getattr(node, "body", None), list):
            node.body = [each for each in node.body if not _is_text(each)]  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in imported & {*_SCRIPTS, "ScriptModule"}:
            return Tracing(node.id, frozenset(scripted))
    left = _TEXT.search(ast.unparse(tree))
    return Tracing(None if left is None else left[0], frozenset(scripted))


def _take_scripted(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scripted: set[str]) -> None:
    """Remove the mark of a scripted definition, and note the names in it: they are compiled, too."""
    decorators = [each for each in node.decorator_list if last_name(each) not in _SCRIPTS]
    if len(decorators) == len(node.decorator_list):
        return
    node.decorator_list = decorators
    scripted.add(node.name)
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            scripted.add(each.id)
        elif isinstance(each, ast.Attribute):
            scripted.add(each.attr)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


class ImportGraph:
    """The imports between the files of a project."""

    def __init__(self, root: str, texts: Mapping[str, bytes]) -> None:
        self._project = Project(root)
        self._texts = texts
        self._importers: dict[str, frozenset[str]] = {}

    @cached_property
    def _references(self) -> dict[str, tuple[ImportStatement, ...]]:
        found: dict[str, tuple[ImportStatement, ...]] = {}
        for path, data in self._texts.items():
            if is_notebook(path):
                try:
                    data = source_of(path, data).text.encode()
                except Unreadable:
                    continue
            found[path] = tuple(import_statements(data))
        return found

    def are_used_together(self, one: str, other: str) -> bool:
        """Check for a file with both of two others among its direct and indirect imports."""
        if one == other:
            return True
        users = self._users(other)
        if not users.isdisjoint(self._users(one)):
            return True
        # Nothing is known of what such a file loads.
        return any(_COMPUTED.search(self._texts.get(path, b"")) for path in users)

    def _users(self, path: str) -> frozenset[str]:
        if path not in self._importers:
            self._importers[path] = frozenset(distances(self._project, [path], self._references))
        return self._importers[path]
