"""Parsed files, places in them, and the names bound at their top level."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from typing import TypeGuard, TypeVar

import libcst as cst

from shapefix.diagnostics import Span
from shapefix.interpreter.joined_lines import on_one_line
from shapefix.interpreter.large_literals import RowSummary
from shapefix.interpreter.positions import Range, positions_of

NO_LITERALS: Mapping[str, RowSummary] = {}
Node = TypeVar("Node", bound=cst.CSTNode)
Result = TypeVar("Result")
Statement = cst.BaseStatement | cst.BaseSmallStatement
_GLOBAL = re.compile(r"\bglobal\s+(\w+(?:\s*,\s*\w+)*)")


class Module:
    """One source file: its tree, and facts of the tree computed on demand."""

    def __init__(
        self,
        path: str,
        name: str,
        text: str,
        tree: cst.Module,
        literals: Mapping[str, RowSummary] = NO_LITERALS,
    ) -> None:
        """literals are the large literals of the text by their names in the tree."""
        self.literals = literals
        self.path = path
        self.name = name
        self.text = text
        self.tree = tree
        self._positions: dict[int, Range] | None = None
        self._bindings: dict[str, list[Statement]] | None = None
        self._rebound: frozenset[str] | None = None
        self._mentioned: dict[str, bool] = {}
        self._computed: dict[tuple[cst.CSTNode, object], object] = {}

    @property
    def package(self) -> str:
        """Base package of relative imports in this file."""
        if self.path.endswith("__init__.py"):
            return self.name
        return self.name.rpartition(".")[0]

    @property
    def bindings(self) -> dict[str, list[Statement]]:
        """Top-level statements binding each name or changing its value, in order.

        Star imports are under `*`.
        """
        if self._bindings is None:
            self._bindings = {}
            for statement in _small_statements(self.tree.body):
                for name, inner in _bound_names(statement):
                    # One name that a block binds on several paths takes all of the block.
                    binding = inner if name == "*" else statement
                    known = self._bindings.setdefault(name, [])
                    if binding not in known[-1:]:
                        known.append(binding)
        return self._bindings

    @property
    def rebound(self) -> frozenset[str]:
        """Top-level names possibly rebound by a function; names in strings count as well."""
        if self._rebound is None:
            lists = _GLOBAL.findall(self.text)
            self._rebound = frozenset(name.strip() for names in lists for name in names.split(","))
        return self._rebound

    def span(self, node: cst.CSTNode) -> Span:
        """Span of node; the first call computes all positions of the file."""
        if self._positions is None:
            self._positions = positions_of(self.tree)
        row, column, end_row, end_column = self._positions[id(node)]
        return Span(self.path, row, column + 1, end_row, end_column + 1)

    def mentions(self, word: str) -> bool:
        """Check whether the text contains a word; searched at the first call."""
        found = self._mentioned.get(word)
        if found is None:
            found = self._mentioned[word] = word in self.text
        return found

    def once(self, node: Node, compute: Callable[[Node], Result]) -> Result:
        """Result of compute for a node of this tree, computed at the first call."""
        key = (node, compute)
        if key not in self._computed:
            self._computed[key] = compute(node)
        return self._computed[key]  # type: ignore[return-value]

    def derived(self, compute: Callable[[Module], Result]) -> Result:
        """Result of compute for this file, computed at the first call."""
        key = (self.tree, compute)
        if key not in self._computed:
            self._computed[key] = compute(self)
        return self._computed[key]  # type: ignore[return-value]

    def path_to(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Path from the tree to a node of it, both included; empty for a node of another file."""
        above = self.once(self.tree, parents)
        path = [node]
        while path[-1] is not self.tree:
            if path[-1] not in above:
                return []
            path.append(above[path[-1]])
        path.reverse()
        return path

    def forget_positions(self) -> None:
        """Free the positions; they are computed again on demand."""
        self._positions = None

    def code(self, node: cst.CSTNode) -> str:
        """Source text of node, on one line."""
        return on_one_line(self.tree.code_for_node(node))


class Place:
    """A node in a file.

    Many are made, for each value and event: a dataclass that cannot change would take twice the time.
    """

    __slots__ = ("module", "node")

    def __init__(self, module: Module, node: cst.CSTNode) -> None:
        self.module = module
        self.node = node

    @property
    def span(self) -> Span:
        return self.module.span(self.node)

    @property
    def code(self) -> str:
        return self.module.code(self.node)


class ModuleCache:
    """Most recently used parsed files, bounded by their number of lines to limit memory.

    load parses a path, and raises what parsing raises.
    """

    def __init__(self, load: Callable[[str], Module], lines: int = 60_000) -> None:
        self._load = load
        self._lines = lines
        self._modules: OrderedDict[str, tuple[Module, int]] = OrderedDict()
        self._held = 0

    def get(self, path: str) -> Module:
        """Parsed file at path."""
        if path not in self._modules:
            return self.add(self._load(path))
        self._modules.move_to_end(path)
        return self._modules[path][0]

    def kept(self, path: str, text: str) -> Module | None:
        """File at path if it is cached, and was parsed from this text."""
        module, _ = self._modules.get(path, (None, 0))
        return module if module is not None and module.text == text else None

    def add(self, module: Module) -> Module:
        """Keep a parsed file, and drop the least recently used ones."""
        _, replaced = self._modules.pop(module.path, (module, 0))
        lines = module.text.count("\n") + 1
        self._modules[module.path] = (module, lines)
        self._held += lines - replaced
        while self._held > self._lines and len(self._modules) > 1:
            _, (_, dropped) = self._modules.popitem(last=False)
            self._held -= dropped
        return module

    def drop(self, path: str) -> None:
        """Forget the file at path; the next use parses it again."""
        _, lines = self._modules.pop(path, (None, 0))
        self._held -= lines


def _small_statements(body: object) -> Iterator[Statement]:
    """Statements of a block, including those on a shared line, one by one."""
    for statement in body:  # type: ignore[attr-defined]
        if isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body
        else:
            yield statement


def _bound_names(statement: Statement) -> Iterator[tuple[str, Statement]]:
    """Names bound or changed by a statement and its blocks, each with that statement."""
    for name in _own_names(statement):
        yield name, statement
    if not isinstance(statement, cst.If) or not _is_for_scripts(statement.test):
        for block in _blocks(statement):
            for inner in _small_statements(block.body):
                yield from _bound_names(inner)


def _own_names(statement: Statement) -> Iterator[str]:
    if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
        yield statement.name.value
    elif isinstance(statement, cst.Assign):
        for target in statement.targets:
            yield from _changed_names(target.target)
    elif isinstance(statement, (cst.AnnAssign, cst.AugAssign, cst.Del)):
        yield from _changed_names(statement.target)
    elif isinstance(statement, cst.Expr):
        # `items.append(1)`
        if isinstance(statement.value, cst.Call) and isinstance(statement.value.func, cst.Attribute):
            yield from _changed_names(statement.value.func)
    elif isinstance(statement, (cst.Import, cst.ImportFrom)):
        if isinstance(statement.names, cst.ImportStar):
            yield "*"
            return
        for alias in statement.names:
            if alias.asname is not None:
                yield from target_names(alias.asname.name)
            else:
                yield dotted_name(alias.name).partition(".")[0]
    elif isinstance(statement, cst.For):
        yield from target_names(statement.target)
    elif isinstance(statement, cst.With):
        for item in statement.items:
            if item.asname is not None:
                yield from target_names(item.asname.name)


def _is_for_scripts(test: cst.BaseExpression) -> bool:
    """Check for a condition true only for a file run as a script, not for an imported one."""
    return isinstance(test, cst.Comparison) and dotted_name(test.left) == "__name__"


def _blocks(statement: Statement) -> Iterator[cst.BaseSuite]:
    if isinstance(statement, (cst.If, cst.For, cst.While, cst.With, cst.Try, cst.TryStar)):
        yield statement.body
    if isinstance(statement, (cst.Try, cst.TryStar)):
        for handler in statement.handlers:
            yield handler.body
        if statement.finalbody is not None:
            yield statement.finalbody.body
    orelse = getattr(statement, "orelse", None)
    if isinstance(orelse, cst.If):
        yield from _blocks(orelse)
    elif isinstance(orelse, cst.Else):
        yield orelse.body


def _changed_names(target: cst.CSTNode) -> Iterator[str]:
    """Plain names bound or changed by an assignment to target."""
    if isinstance(target, (cst.Attribute, cst.Subscript)):
        while isinstance(target, (cst.Attribute, cst.Subscript)):
            target = target.value
        if isinstance(target, cst.Name):
            yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from _changed_names(element.value)
    else:
        yield from target_names(target)


def target_names(target: cst.CSTNode) -> Iterator[str]:
    """Plain names bound by an assignment to target."""
    if isinstance(target, cst.Name):
        yield target.value
    elif isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            yield from target_names(element.value)


def is_remainder(node: cst.CSTNode) -> TypeGuard[cst.BinaryOperation]:
    """Whether an expression counts in turns: `step % 10`."""
    return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo)


def counts_passes(test: cst.CSTNode) -> bool:
    """Whether a condition selects some passes of a loop: `step % 100 == 0`."""
    return any(map(is_remainder, nodes(test)))


def dotted_name(node: cst.CSTNode) -> str:
    """`a.b.c` of a chain of names; an empty string for anything else."""
    # The classes of nodes are abstract: isinstance takes ten times as long for any other class.
    if type(node) is cst.Name:
        return node.value
    if type(node) is cst.Attribute:
        left = dotted_name(node.value)
        return f"{left}.{node.attr.value}" if left else ""
    return ""


def called_name(node: cst.CSTNode) -> str:
    """Last name of a called function, `Linear` for `nn.Linear(4, 2)`; an empty string for other code."""
    function = node.func if isinstance(node, cst.Call) else None
    if isinstance(function, cst.Attribute):
        return function.attr.value
    return function.value if isinstance(function, cst.Name) else ""


_PUNCTUATION = frozenset(
    {
        "leading_lines",
        "lines_after_decorators",
        "trailing_whitespace",
        "lpar",
        "rpar",
        "lbracket",
        "rbracket",
        "lbrace",
        "rbrace",
        "comma",
        "semicolon",
        "equal",
        "dot",
        "header",
        "footer",
        "indent",
        "operator",
    }
)
_parts: dict[type, tuple[str, ...]] = {}


class _NodeKinds(dict[type, bool]):
    """Whether a type is one of nodes: a look-up takes a tenth of the time of isinstance."""

    def __missing__(self, kind: type) -> bool:
        found = self[kind] = issubclass(kind, cst.CSTNode)
        return found


_IS_NODE = _NodeKinds()


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """Child nodes with meaning: no whitespace, no punctuation."""
    kind = type(node)
    names = _parts.get(kind)
    if names is None:
        names = _parts[kind] = tuple(
            field.name
            for field in fields(kind)
            if field.name not in _PUNCTUATION
            and not field.name.startswith("whitespace")
            and field.type not in (str, "str")
        )
    found: list[cst.CSTNode] = []
    for name in names:
        value = getattr(node, name)
        kind = type(value)
        if kind is tuple or kind is list:
            found += [item for item in value if _IS_NODE[type(item)]]
        elif _IS_NODE[kind]:
            found.append(value)
    return found


def nodes(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all nodes below it, outermost first, in their order."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        pending += reversed(children(node))


def parents(root: cst.CSTNode) -> dict[cst.CSTNode, cst.CSTNode]:
    """Parents of all nodes below a root."""
    return {child: node for node in nodes(root) for child in children(node)}


def imported_packages(tree: cst.Module) -> frozenset[str]:
    """The packages imported anywhere in a file."""
    found = []
    for node in nodes(tree):
        if isinstance(node, cst.Import):
            found += [dotted_name(each.name) for each in node.names]
        elif isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
            found.append(dotted_name(node.module))
    return frozenset(name.partition(".")[0] for name in found)
