"""Writes the arguments of transformers that newer versions lack.

    pip download --no-deps -d WHEELS transformers==4.40.0    # and some versions up to the newest one
    python tests/library/generate_removed_arguments.py WHEELS

writes `shapefix/library/transformers/data/removed.json`. Nothing of the wheels is imported. A version
between two wheels counts as the older one.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import transformers

from shapefix.library.transformers import forward_signatures

FILE = Path(forward_signatures.__file__).parent / "data" / "removed.json"
_FILES = re.compile(r"transformers/(data/)?(?!dummy_|_)\w+\.py")
"""The files with functions and constructors to compare: those of models take `**kwargs`."""
_EXPORTS = re.compile(r"^__all__ = [\[(](.*?)[\])]", re.MULTILINE | re.DOTALL)
SIMPLE = frozenset(
    {
        "add_start_docstrings",
        "auto_docstring",
        "dataclass",
        "deprecate_kwarg",
        "is_torch_available",
        "requires",
        "requires_backends",
        "wraps",
    }
)
"""Decorators that leave the parameters of a function or class as they are."""
Definition = ast.FunctionDef | ast.ClassDef


class Wheel:
    """The source files of one version, and its public definitions by name."""

    def __init__(self, path: Path) -> None:
        self.version = re.split("-", path.name)[1]
        self.exported: set[str] = set()
        self._found: dict[str, list[Definition]] = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".py"):
                    self._read(name, archive.read(name).decode("utf-8"))

    def arguments(self, name: str) -> frozenset[str] | None:
        """Keywords of a function or constructor; None if any is accepted, or if it is not known."""
        found = self._found.get(name, [])
        if len(found) != 1:
            return None
        definition = found[0]
        if isinstance(definition, ast.FunctionDef):
            return _keywords(definition)
        init = next((each for each in definition.body if _is_named(each, "__init__")), None)
        if isinstance(init, ast.FunctionDef):
            return _keywords(init)
        bases = [self.arguments(base.id) if isinstance(base, ast.Name) else None for base in definition.bases]
        if "dataclass" not in _decorators(definition):
            return bases[0] if len(bases) == 1 else None
        fields = frozenset(
            each.target.id
            for each in definition.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        )
        return None if any(base is None for base in bases) else fields.union(*(base or () for base in bases))

    @property
    def names(self) -> Iterator[str]:
        yield from (name for name in self._found if name in self.exported)

    def _read(self, name: str, text: str) -> None:
        for listed in _EXPORTS.findall(text):
            self.exported.update(re.findall(r"[\"'](\w+)[\"']", listed))
        if name == "transformers/__init__.py":
            self.exported |= _exported(ast.parse(text))
        if _FILES.fullmatch(name) is None:
            return
        for each in ast.parse(text).body:
            if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                self._found.setdefault(each.name, []).append(each)


def _exported(tree: ast.Module) -> set[str]:
    """Strings in assignments to `_import_structure` and its parts, and in calls that add to them."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.Expr)) and "_import_structure" in ast.dump(node)
    ]
    constants = (part for value in values for part in ast.walk(value) if isinstance(part, ast.Constant))
    return {part.value for part in constants if isinstance(part.value, str)}


def _is_named(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def _decorators(node: Definition) -> dict[str, ast.expr]:
    names = {}
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        names[called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")] = decorator
    return names


def _keywords(node: ast.FunctionDef) -> frozenset[str] | None:
    decorators = _decorators(node)
    if node.args.kwarg is not None or not SIMPLE.issuperset(decorators):
        return None
    given = (*node.args.args, *node.args.kwonlyargs)
    renamed = [
        decorator.args[0].value
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and "deprecate_kwarg" in ast.dump(decorator.func)
        if isinstance(decorator.args[0], ast.Constant)
    ]
    return frozenset((*(each.arg for each in given if each.arg != "self"), *map(str, renamed)))


def removed(wheels: list[Wheel]) -> dict[str, object]:
    """Arguments that some version has and the newest lacks, by the first version without them."""
    arguments: dict[str, dict[str, str]] = {}
    for name in sorted({name for wheel in wheels for name in wheel.names} & {*dir(transformers)}):
        each = [wheel.arguments(name) if name in wheel.exported else None for wheel in wheels]
        last = each[-1]
        known = frozenset().union(*(one for one in each if one is not None))
        for keyword in sorted(known - last) if last is not None else ():
            if keyword.startswith("_"):
                continue
            gone = _gone(wheels, [one is None or keyword in one for one in each])
            arguments.setdefault(name, {}).setdefault(gone, "")
            arguments[name][gone] = f"{arguments[name][gone]} {keyword}".strip()
    return {"version": wheels[-1].version, "arguments": arguments}


def _gone(wheels: list[Wheel], has: list[bool]) -> str:
    """First version of those at the end that all lack something."""
    after = max(index for index, each in enumerate(has) if each) + 1
    return ".".join(wheels[min(after, len(wheels) - 1)].version.split(".")[:2])


def main(folder: str) -> None:
    """Write the file from a folder of wheels."""
    wheels = [Wheel(path) for path in Path(folder).glob("transformers-*.whl")]
    wheels.sort(key=lambda wheel: tuple(map(int, wheel.version.split("."))))
    FILE.write_text(json.dumps(removed(wheels), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
