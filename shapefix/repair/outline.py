"""Find the imports of a module, and the names bound by its functions and its top level."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING

from shapefix.light_dataclasses import dataclass
from shapefix.sources.parsing import parse_as_python

if TYPE_CHECKING:
    import libcst as cst

BINDING = "a binding"
"""What a name is bound by when it is not by an import."""


@dataclass(frozen=True)
class ImportedName:
    """One name of an import; rows and columns from 1, the end exclusive."""

    name: str
    asname: str | None
    row: int
    column: int
    end_row: int
    end_column: int


@dataclass(frozen=True)
class ImportLine:
    """`import aliases` (module is None) or `from module import aliases`; a star import has no aliases.

    row and end_row are those of the whole statement line. direct is true at the top level
    itself, and false in the body of a top-level `try`.
    """

    row: int
    end_row: int
    module: str | None
    aliases: tuple[ImportedName, ...]
    direct: bool

    @property
    def package(self) -> str:
        """The top-level package of the import; '' for a relative import."""
        return (self.module if self.module is not None else self.aliases[0].name).partition(".")[0]


@dataclass
class ImportOutline:
    """The imports and bindings of a module.

    floor is the last row of the docstring and the `__future__` imports, 0 without any; first is the row of
    the first statement after it, None in an empty module. bound maps each name to what binds it: ("a", None)
    by `import a.b`, ("m", "x") by `from m import x`, or BINDING. Names bound in a class body are left out:
    functions do not see them.
    """

    floor: int = 0
    first: int | None = None
    imports: list[ImportLine] = field(default_factory=list)
    bound: dict[str, set[object]] = field(default_factory=lambda: defaultdict(set))


@lru_cache(maxsize=2)
def outline(text: str) -> ImportOutline:
    """Read the outline of a text. Raises libcst.ParserSyntaxError."""
    import libcst as cst
    from libcst.metadata import MetadataWrapper, PositionProvider

    # Parsed from the text alone, the byte order mark is not in the tree, and the columns of row 1 would be
    # short.
    mark = len(text) - len(text.removeprefix("\ufeff"))
    wrapper = MetadataWrapper(parse_as_python(text[mark:], cst.parse_module), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    found = ImportOutline()

    def alias(node: cst.ImportAlias) -> ImportedName:
        place = positions[node]
        asname = node.evaluated_alias
        return ImportedName(
            node.evaluated_name,
            asname,
            place.start.line,
            place.start.column + 1 + (mark if place.start.line == 1 else 0),
            place.end.line,
            place.end.column + 1 + (mark if place.end.line == 1 else 0),
        )

    def read(line: cst.CSTNode, direct: bool) -> None:
        if not isinstance(line, cst.SimpleStatementLine):
            return
        place = positions[line]
        for statement in line.body:
            if isinstance(statement, cst.Import | cst.ImportFrom):
                module = module_of(statement) if isinstance(statement, cst.ImportFrom) else None
                names = () if isinstance(statement.names, cst.ImportStar) else statement.names
                aliases = tuple(alias(name) for name in names)
                found.imports.append(ImportLine(place.start.line, place.end.line, module, aliases, direct))

    for index, line in enumerate(wrapper.module.body):
        if _is_opening(line, index):
            found.floor = positions[line].end.line
            read(line, direct=False)
            continue
        if found.first is None:
            found.first = positions[line].start.line
        read(line, direct=True)
        if isinstance(line, cst.Try):
            for inner in line.body.body:
                read(inner, direct=False)
    _bind(wrapper.module, found.bound)
    return found


def module_of(statement: cst.ImportFrom) -> str:
    """Return the module of a from-import as written: 'torch.nn', '.data', '..'."""
    dotted: list[str] = []
    node: object = statement.module
    while hasattr(node, "attr"):
        dotted.insert(0, node.attr.value)
        node = node.value  # type: ignore[attr-defined]
    if node is not None:
        dotted.insert(0, node.value)  # type: ignore[attr-defined]
    return "." * len(statement.relative) + ".".join(dotted)


def _is_opening(line: cst.CSTNode, index: int) -> bool:
    import libcst as cst

    if not isinstance(line, cst.SimpleStatementLine):
        return False
    first = line.body[0]
    if isinstance(first, cst.Expr):
        return index == 0 and isinstance(first.value, cst.SimpleString | cst.ConcatenatedString)
    return isinstance(first, cst.ImportFrom) and module_of(first) == "__future__"


def _bind(module: cst.Module, bound: dict[str, set[object]]) -> None:
    import libcst as cst

    def target(node: cst.CSTNode | None) -> None:
        if isinstance(node, cst.Name):
            bound[node.value].add(BINDING)
        elif isinstance(node, cst.Tuple | cst.List):
            for element in node.elements:
                target(element.value)
        elif isinstance(node, cst.StarredElement):
            target(node.value)

    class Bindings(cst.CSTVisitor):
        def __init__(self) -> None:
            self.scopes: list[cst.CSTNode] = []

        def on_visit(self, node: cst.CSTNode) -> bool:
            in_class = bool(self.scopes) and isinstance(self.scopes[-1], cst.ClassDef)
            if isinstance(node, cst.FunctionDef | cst.ClassDef) and not in_class:
                target(node.name)
            if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
                self.scopes.append(node)
            elif isinstance(node, cst.Param | cst.MatchStar | cst.TypeVar):
                target(node.name)
            elif in_class:
                return True
            elif isinstance(node, cst.MatchMapping):
                target(node.rest)
            elif isinstance(node, cst.MatchAs):
                target(node.name)
            elif isinstance(node, cst.Import):
                for name in node.names:
                    self.imported(name, None)
                return False
            elif isinstance(node, cst.ImportFrom):
                if not isinstance(node.names, cst.ImportStar):
                    for name in node.names:
                        self.imported(name, module_of(node))
                return False
            elif isinstance(
                node, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.CompFor | cst.NamedExpr
            ):
                target(node.target)
            elif isinstance(node, cst.AsName):
                target(node.name)
            return True

        def on_leave(self, node: cst.CSTNode) -> None:
            if self.scopes and self.scopes[-1] is node:
                self.scopes.pop()

        def imported(self, alias: cst.ImportAlias, module: str | None) -> None:
            name, asname = alias.evaluated_name, alias.evaluated_alias
            if module is not None:
                bound[asname or name].add((module, name))
            elif asname is not None and asname != name:
                bound[asname].add((name, asname))
            else:
                root = name.partition(".")[0]
                bound[root].add((root, None))

    module.visit(Bindings())
