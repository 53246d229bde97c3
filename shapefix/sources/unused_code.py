"""Find unused classes, functions and methods in projects with a program."""

# Paths are plain strings here, as in the rest of sources.
# ruff: noqa: PTH113, PTH118, PTH120

from __future__ import annotations

import ast
import os
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import PurePath

from shapefix.light_dataclasses import dataclass
from shapefix.sources.importers import ImportStatement, distances, references_of
from shapefix.sources.project import Project, files_below

_MOST_FILES = 4000
_MOST_TEXT = 300_000
"""Bytes of a configuration or a text that is searched for names."""
_TEXTS = (
    *(".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".conf", ".gin"),
    *(".sh", ".bat", ".md", ".txt", ".rst", "Makefile"),
)
_WORD = re.compile(r"[^\W\d]\w*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_PATH = re.compile(r"\w+(?:[.:/-]\w+)*")
"""A string that may be looked up: `Net`, `models.net.Net`, `models.net:Net`; a sentence is not."""
_PACKAGE = "__init__.py"
_PROGRAMS = frozenset({"backward", "fit", "Trainer", "load_state_dict"})
"""Names in code that trains a model, or loads a trained one."""
_OPTIMIZERS = frozenset({"Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam"})
"""Names of a program whose loop is in another file; a demo of a model needs none of them."""
_SCRIPTS = _PROGRAMS | {"parse_args"}
"""Names in code that a person runs."""
_FROM_THE_WEB = frozenset({"load_url", "load_state_dict_from_url", "model_zoo"})
"""Names in library code that loads published weights."""
_COMMAND_LINES = frozenset({"fire", "typer", "click", "jsonargparse", "invoke", "absl"})
"""Libraries that make commands of functions and methods."""
_COMPUTES = re.compile(
    rf"\b(?:globals|locals|vars|eval|exec|getattr|__dict__|modules|{'|'.join(sorted(_COMMAND_LINES))})\b"
)
"""A text without any of these words looks up no definition by a computed name."""
_PLAIN_BASES = frozenset({"Module", "object", "ABC", "Generic", "Protocol"})
_PLAIN_DECORATORS = frozenset(
    {"staticmethod", "classmethod", "property", "no_grad", "inference_mode", "dataclass"}
)
_CALLED_BY_TORCH = frozenset({"forward", "extra_repr", "get_extra_state", "set_extra_state"})
_NOT_PACKAGED = frozenset(
    {"tests", "test", "examples", "example", "scripts", "notebooks", "experiments", "benchmarks"}
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class _Region:
    """Code of a file: a method of a class, a function, the rest of a class, or the top level.

    text has all of its lines; find collects the names in it.
    """

    owner: str
    member: str
    text: str
    find: Callable[[], frozenset[str]]

    @cached_property
    def names(self) -> frozenset[str]:
        """All names mentioned by the code."""
        return self.find()

    def mentions(self, names: frozenset[str]) -> bool:
        """Check whether the code mentions one of these names; its text is searched first."""
        if "names" not in self.__dict__ and not any(name in self.text for name in names):
            return False
        return not self.names.isdisjoint(names)


@dataclass(frozen=True)
class _Code:
    """A file, parsed when its tree is used."""

    text: str
    is_package: bool

    @cached_property
    def tree(self) -> ast.Module | None:
        """The tree of the file, None if it does not parse."""
        try:
            return ast.parse(self.text)
        except (SyntaxError, ValueError, RecursionError):
            return None

    @cached_property
    def regions(self) -> tuple[_Region, ...]:
        """The parts of the file with the names in them; unparsable code mentions all of its words."""
        if self.tree is None:
            return (_Region("", "", self.text, lambda: frozenset(_WORD.findall(self.text))),)
        return tuple(_regions(self.tree, _LINE_END.split(self.text), self.is_package))

    @cached_property
    def looks_up(self) -> bool:
        """Whether it looks up definitions by names computed at run time."""
        return (
            _COMPUTES.search(self.text) is not None and self.tree is not None and _computes_names(self.tree)
        )

    def mentions(self, names: frozenset[str]) -> bool:
        """Check whether a part of the code may mention one of these names."""
        return any(name in self.text for name in names)


class UnusedCode:
    """Use of the definitions of one project, by name.

    A mention of a name is a use, except as a local variable, a key, a word of a sentence, or an import, or in
    a branch for older versions of a library.

    data returns the content of a file, None if it cannot be read.
    """

    def __init__(self, root: str, data: Callable[[str], bytes | None]) -> None:
        self._project = Project(root)
        self._data = data
        self._codes: dict[str, _Code] = {}
        self._known: dict[tuple[str, ...], str] = {}
        self._mentions: dict[str, tuple[str, ...]] = {}
        self._near: dict[str, frozenset[str]] = {}
        self._in_programs: dict[str, bool] = {}
        self._scripts: dict[str, list[ast.stmt]] = {}
        self._programs: dict[tuple[str, frozenset[str]], bool] = {}

    def forget(self, path: str) -> None:
        """Drop the code of a changed file, and the conclusions from it."""
        self._codes.pop(path, None)
        for known in (
            self._known,
            self._mentions,
            self._near,
            self._in_programs,
            self._scripts,
            self._programs,
        ):
            known.clear()
        self.__dict__.pop("_references", None)

    def unused(self, path: str, row: int) -> str:
        """Return the unused definition around a row of a file, `Net` or `Net.forward_old`; "" without one."""
        if len(self._files) > _MOST_FILES or not path.endswith(".py"):
            return ""
        tree = self._code(path).tree
        around = [] if tree is None else list(_definitions(tree, row))
        if not around or self._is_public(path, around):
            return ""
        key = (path, *(each.name for each in (*around, *around)[:2]))
        if key not in self._known:
            self._known[key] = self._unused(path, around)
        return self._known[key]

    def function(self, path: str, row: int) -> str:
        """Return the qualified name of the function or method around a row, "" without one."""
        tree = self._code(path).tree
        around = [] if tree is None else list(_definitions(tree, row))
        if not around or isinstance(around[-1], ast.ClassDef):
            return ""
        return ".".join(each.name for each in around)

    def is_leftover(self, path: str, row: int, column: int) -> bool:
        """Whether a layer is called in an unused method of a class, and also in its `forward`."""
        tree = self._code(path).tree
        around = [] if tree is None else list(_definitions(tree, row))
        if len(around) < 2 or self._is_public(path, around) or not isinstance(around[0], ast.ClassDef):
            return False
        cls, method = around[0], around[1]
        forward = next((each for each in _methods(cls) if each.name == "forward"), None)
        if forward is None or forward is method:
            return False
        called = {
            ast.dump(node.func)
            for node in ast.walk(method)
            if isinstance(node, ast.Call) and (node.lineno, node.col_offset + 1) == (row, column)
        }
        is_called = called and any(
            isinstance(node, ast.Call) and ast.dump(node.func) in called for node in ast.walk(forward)
        )
        # Uses of the method are searched in the whole project.
        return bool(is_called) and self._is_unused_method(path, cls, method)

    def is_demo(self, path: str, row: int) -> bool:
        """Whether a row is in the `if __name__ == "__main__":` of a module imported by other files.

        The module itself does not train; the runs of the others show what the module is used for.
        """
        if len(self._files) > _MOST_FILES or not path.endswith(".py"):
            return False
        if path not in self._scripts:
            tree = self._code(path).tree
            self._scripts[path] = (
                [each for each in tree.body if _is_for_script(each)] if tree is not None else []
            )
        if not any(_holds(each, row) for each in self._scripts[path]):
            return False
        if path not in self._in_programs:
            others = distances(self._project, {path}, self._references).keys() - {path}
            self._in_programs[path] = bool(others) and not self._is_program(path, _PROGRAMS | _OPTIMIZERS)
        return self._in_programs[path]

    def _unused(self, path: str, around: list[Definition]) -> str:
        outer = around[0]
        if not any(self._is_program(each, _SCRIPTS) for each in self._users(path)):
            # The code that uses the file is elsewhere: in a notebook, or in another project.
            return ""
        if not self._is_used(path, outer):
            return outer.name
        is_method = isinstance(outer, ast.ClassDef) and len(around) > 1
        if isinstance(outer, ast.ClassDef) and is_method and self._is_unused_method(path, outer, around[1]):
            return f"{outer.name}.{around[1].name}"
        return ""

    @cached_property
    def _files(self) -> tuple[str, ...]:
        files = (each for each in files_below(self._project.root) if each.endswith((".py", ".ipynb")))
        return tuple(islice(files, _MOST_FILES + 1))

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        files = (each for each in files_below(self._project.root) if each.endswith(_TEXTS))
        return tuple(islice(files, _MOST_FILES))

    def _is_looked_up(self, path: str) -> bool:
        """Whether a user of a file finds definitions by names computed at run time."""
        return any(self._code(each).looks_up for each in self._users(path))

    def _code(self, path: str) -> _Code:
        if path not in self._codes:
            text = (self._data(path) or b"").decode("utf-8", "replace")
            self._codes[path] = _Code(text, path.endswith(_PACKAGE))
        return self._codes[path]

    def _is_used(self, path: str, definition: Definition) -> bool:
        """Whether used code mentions a class or function of the top level."""
        name = definition.name
        is_test = name.startswith(("test", "Test")) and _has_tests(path)
        if name == "main" or name.startswith("__") or is_test or _is_registered(definition):
            return True
        above = self._above(definition) if isinstance(definition, ast.ClassDef) else ()
        if any(each.name == "__init_subclass__" for each in above):
            return True
        if self._is_looked_up(path) or self._is_in_text(name):
            return True
        is_ambiguous = isinstance(definition, ast.ClassDef) and len(list(self._classes(name))) > 1
        return self._is_alive(name, frozenset(), self._strangers(path) if is_ambiguous else frozenset())

    def _strangers(self, path: str) -> frozenset[str]:
        """Files of Python without an import of a file, not even through others."""
        importers = distances(self._project, {path}, self._references).keys() | {path}
        return frozenset(each for each in self._files if each.endswith(".py") and each not in importers)

    def _is_alive(self, name: str, seen: frozenset[str], strangers: frozenset[str] = frozenset()) -> bool:
        """Whether used code mentions a name; strangers mean another definition by it."""
        seen |= {name}
        return any(
            not region.owner or (region.owner not in seen and self._is_alive(region.owner, seen))
            for region in self._mentioning(name, strangers)
        )

    def _is_unused_method(self, path: str, cls: ast.ClassDef, method: Definition) -> bool:
        """Whether no code names a method; False for classes with bases of libraries except `nn.Module`."""
        name = method.name
        if name in _CALLED_BY_TORCH or name.startswith(("__", "test")) or _is_registered(method):
            return False
        if not self._has_plain_bases(cls, frozenset()) or _is_registered(cls):
            return False
        if self._is_looked_up(path) or any(map(_reads_computed_attribute, ast.walk(cls))):
            return False
        named = any(region.member != name for region in self._mentioning(name))
        return not named and not self._is_in_text(name)

    def _has_plain_bases(self, cls: ast.ClassDef, seen: frozenset[str]) -> bool:
        if cls.keywords:
            return False
        for base in cls.bases:
            name = _last(base.value if isinstance(base, ast.Subscript) else base)
            stated = [] if name in seen else list(self._classes(name))
            if not stated and name not in _PLAIN_BASES and name not in seen:
                return False
            if not all(self._has_plain_bases(each, seen | {name}) for each in stated):
                return False
        return True

    def _above(self, cls: ast.ClassDef) -> Iterator[Definition]:
        """Yield the methods of the bases of a class in the project."""
        for base in cls.bases:
            for each in self._classes(_last(base)):
                yield from _methods(each)

    def _classes(self, name: str) -> Iterator[ast.ClassDef]:
        plain = name.encode()
        statement = re.compile(rb"\bclass[\s\\]+%s(?!\w)" % re.escape(plain))
        for path in self._files:
            data = self._data(path) or b""
            if plain in data and statement.search(data):
                tree = self._code(path).tree
                for node in tree.body if tree is not None else ():
                    if isinstance(node, ast.ClassDef) and node.name == name:
                        yield node

    def _mentioning(self, name: str, strangers: frozenset[str] = frozenset()) -> Iterator[_Region]:
        """Yield the code with a name in it; a file is parsed only when its turn comes."""
        if name not in self._mentions:
            self._mentions[name] = tuple(self._with_word(self._files, name))
        named = frozenset((name,))
        for path in self._mentions[name]:
            if path in strangers:
                continue
            for region in self._code(path).regions:
                if region.mentions(named):
                    yield region

    def _is_in_text(self, name: str) -> bool:
        """Whether a configuration, a shell script or a text of the project mentions a name."""
        return any(True for _ in self._with_word(self._texts, name, _MOST_TEXT))

    def _with_word(self, paths: Iterable[str], name: str, most: int = sys.maxsize) -> Iterator[str]:
        """Yield the files with a name as a whole word, up to a size in bytes."""
        plain, word = name.encode(), _whole_word(name)
        for path in paths:
            data = self._data(path) or b""
            # The plain search takes a hundredth of the time of the other one.
            if plain in data and len(data) <= most and word.search(data):
                yield path

    def _users(self, path: str) -> frozenset[str]:
        """Return the files in the folder of a file, and their direct and indirect importers."""
        folder = os.path.dirname(path)
        if folder not in self._near:
            near = {each for each in self._files if os.path.dirname(each) == folder}
            given = {each for each in near if each.endswith(".py")}
            self._near[folder] = frozenset(near | distances(self._project, given, self._references).keys())
        return self._near[folder]

    @cached_property
    def _references(self) -> dict[str, tuple[ImportStatement, ...]]:
        return references_of((each for each in self._files if each.endswith(".py")), self._data)

    def _is_program(self, path: str, named: frozenset[str] = _PROGRAMS) -> bool:
        """Whether used code of a file has one of these names: it trains or loads a model."""
        key = path, named
        if key not in self._programs:
            self._programs[key] = self._uses_one_of(path, named)
        return self._programs[key]

    def _uses_one_of(self, path: str, named: frozenset[str]) -> bool:
        code = self._code(path)
        return code.mentions(named) and any(
            region.mentions(named)
            and region.mentions(named - _loaded_from_web(region))
            and (not region.owner or region.owner == "main" or self._is_alive(region.owner, frozenset()))
            for region in code.regions
        )

    def _is_public(self, path: str, around: list[Definition]) -> bool:
        """Whether a definition is a public name of an installable package."""
        parts = PurePath(path).relative_to(self._project.root).parts
        if any(part in _NOT_PACKAGED or (part[0] == "_" and part != _PACKAGE) for part in parts):
            return False
        if any(each.name.startswith("_") and not each.name.startswith("__") for each in around):
            return False
        folder = os.path.dirname(path)
        while folder.startswith(self._project.root):
            if self._is_package(folder):
                return True
            folder = os.path.dirname(folder)
        return False

    def _is_package(self, folder: str) -> bool:
        if os.path.isfile(os.path.join(folder, "setup.py")):
            return True
        cfg = self._data(os.path.join(folder, "setup.cfg")) or b""
        pyproject = self._data(os.path.join(folder, "pyproject.toml")) or b""
        return b"[metadata]" in cfg or any(
            table in pyproject for table in (b"[project]", b"[build-system]", b"[tool.poetry]")
        )


def _loaded_from_web(region: _Region) -> frozenset[str]:
    """Names of a region without meaning for programs: a library loads published weights."""
    return frozenset({"load_state_dict"}) if region.mentions(_FROM_THE_WEB) else frozenset()


def _has_tests(path: str) -> bool:
    """Whether a test runner looks for tests in a file."""
    name = PurePath(path).name
    return name.startswith("test") or name.endswith("_test.py")


def _whole_word(name: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?<!\w)%s(?!\w)" % re.escape(name.encode()))


def _definitions(tree: ast.Module, row: int) -> Iterator[Definition]:
    """Yield the definitions around a row: of the top level, then of the class."""
    body: list[ast.stmt] = tree.body
    while True:
        # A file may have thousands of statements, and as many findings.
        at = bisect_left(body, row, key=lambda each: each.end_lineno or 0)
        found = body[at] if at < len(body) and body[at].lineno <= row else None
        if isinstance(found, (ast.If, ast.Try)):
            body = found.body
            continue
        if not isinstance(found, Definition):
            return
        yield found
        body = found.body if isinstance(found, ast.ClassDef) else []


def _is_for_script(statement: ast.stmt) -> bool:
    """`if __name__ == "__main__":`."""
    test = statement.test if isinstance(statement, ast.If) else None
    return isinstance(test, ast.Compare) and _last(test.left) == "__name__"


def _holds(statement: ast.stmt, row: int) -> bool:
    return statement.lineno <= row <= (statement.end_lineno or 0)


def _methods(cls: ast.ClassDef) -> Iterator[Definition]:
    return (each for each in cls.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)))


def _is_registered(definition: Definition) -> bool:
    """Whether a decorator may pass a definition on."""
    decorators = (each.func if isinstance(each, ast.Call) else each for each in definition.decorator_list)
    return any(_last(each) not in _PLAIN_DECORATORS for each in decorators)


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _regions(tree: ast.Module, lines: list[str], is_package: bool) -> Iterator[_Region]:
    for statement in tree.body:
        text = _text_of(statement, lines)
        if isinstance(statement, ast.ClassDef):
            methods = set(_methods(statement))
            for method in methods:
                inside = _text_of(method, lines)
                yield _Region(statement.name, method.name, inside, partial(_names_in, method))
            rest = [each for each in ast.iter_child_nodes(statement) if each not in methods]
            yield _Region(statement.name, "", text, partial(_names_of, rest))
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield _Region(statement.name, "", text, partial(_names_in, statement))
        elif (
            _renames(statement)
            if isinstance(statement, ast.ImportFrom)
            else is_package or not _exports(statement)
        ):
            # The code that uses an imported name, or one that a module exports, mentions it, too.
            yield _Region("", "", text, partial(_names_of, [statement]))


def _text_of(statement: ast.stmt, lines: list[str]) -> str:
    """Return the lines of a statement, with its decorators."""
    decorators = statement.decorator_list if isinstance(statement, Definition) else ()
    first = min(each.lineno for each in (statement, *decorators))
    return "\n".join(lines[first - 1 : statement.end_lineno])


def _names_of(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset(name for each in nodes for name in _names(each))


def _exports(statement: ast.stmt) -> bool:
    """`__all__ = ["accuracy"]`."""
    return isinstance(statement, ast.Assign) and any(_last(each) == "__all__" for each in statement.targets)


def _renames(statement: ast.ImportFrom) -> bool:
    return any(each.asname is not None or each.name == "*" for each in statement.names)


def _names_in(function: Definition) -> frozenset[str]:
    """Return the names mentioned by a function, without its own variables."""
    return frozenset(_names(function)) - frozenset(_variables(function))


def _variables(function: Definition) -> Iterator[str]:
    """Yield the variables of a function with no other meaning in it: not attributes, imports or globals."""
    unused = {id(each) for each in _unused_strings(function)}
    elsewhere: set[str] = set()
    bound: set[str] = set()
    pending: list[ast.AST] = [function]
    while pending:
        node = pending.pop()
        is_inner = isinstance(node, (*_SCOPES, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, ast.Attribute):
            elsewhere.add(node.attr)
        elif isinstance(node, ast.alias):
            elsewhere.update(node.name.split("."))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Constant) and id(node) not in unused:
            elsewhere.update(_words(node))
        if is_inner and node is not function:
            # What an inner scope binds is not a variable of this one; all that it mentions is kept.
            elsewhere.update(_names(node))
            continue
        pending += ast.iter_child_nodes(node)
    for decorator in () if isinstance(function, ast.ClassDef) else function.decorator_list:
        elsewhere.update(_names(decorator))
    yield from bound - elsewhere


def _names(root: ast.AST) -> Iterator[str]:
    """Yield the names mentioned by code: variables, attributes, imports, and paths in its strings."""
    unused = {id(each) for each in _unused_strings(root)}
    for node in _used_nodes(root):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")
        elif isinstance(node, ast.Constant) and id(node) not in unused:
            yield from _words(node)


def _used_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code, except for those in branches for older versions of a library."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        older = _branch_for_older_versions(node) if isinstance(node, (ast.If, ast.IfExp)) else ()
        pending += (each for each in ast.iter_child_nodes(node) if each not in older)


def _branch_for_older_versions(node: ast.If | ast.IfExp) -> Sequence[ast.AST]:
    """Return the branch of a test such as `version.parse(torch.__version__) >= version.parse("1.7")`."""
    match node.test:
        case ast.Compare(left=left, ops=[ast.Gt() | ast.GtE()]) if _reads_version(left):
            older: ast.AST | Sequence[ast.AST] = node.orelse
        case ast.Compare(left=left, ops=[ast.Lt() | ast.LtE()]) if _reads_version(left):
            older = node.body
        case _:
            older = ()
    return [older] if isinstance(older, ast.AST) else older


def _reads_version(node: ast.AST) -> bool:
    return any(_last(each) == "__version__" for each in ast.walk(node))


def _words(node: ast.Constant) -> list[str]:
    """Return the parts of a string with the name of a definition, or with a path to one."""
    return _WORD.findall(node.value) if isinstance(node.value, str) and _PATH.fullmatch(node.value) else []


def _unused_strings(root: ast.AST) -> Iterator[ast.AST | None]:
    """Yield the docstrings, the keys, and the printed strings: `logs["accuracy"]`."""
    for node in ast.walk(root):
        if isinstance(node, ast.Expr):
            yield node.value
        elif isinstance(node, ast.Subscript):
            yield node.slice
        elif isinstance(node, ast.Dict):
            yield from node.keys
        elif isinstance(node, ast.Call) and _last(node.func) == "print":
            yield from node.args


def _reads_computed_attribute(node: ast.AST) -> bool:
    """`getattr(self, name)`."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
    return False


def _computes_names(tree: ast.Module) -> bool:
    """Whether code finds definitions by computed names: `globals()[name]`, `getattr(models, args.arch)`."""
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            module = node.module if isinstance(node, ast.ImportFrom) else None
            tops = {(module or each.name).partition(".")[0] for each in node.names}
            if not tops.isdisjoint(_COMMAND_LINES):
                return True
            if not tops <= {"torch", "torchvision", "transformers", "numpy", "os", "sys", "math", "logging"}:
                imported.update((each.asname or each.name).partition(".")[0] for each in node.names)
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="globals" | "locals" | "vars"), args=[]):
                return True
            case ast.Call(func=ast.Name(id="eval" | "exec"), args=[first, *_]):
                if not isinstance(first, ast.Constant):
                    return True
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=module), name, *_]):
                if module in imported and not isinstance(name, ast.Constant):
                    return True
            case ast.Attribute(value=ast.Name(id=module), attr="__dict__") if module in imported:
                return True
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="sys"), attr="modules"), ctx=ast.Load()):
                return True
    return False
