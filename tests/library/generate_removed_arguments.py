"""Writes the arguments of libraries that newer versions lack.

    pip download --no-deps -d WHEELS transformers==4.40.0    # and some versions up to the newest one
    python tests/library/generate_removed_arguments.py WHEELS

writes `shapefix/library/removed_arguments.json`: the part of each library with wheels in the folder.
Nothing of the wheels is imported. A version between two wheels counts as the older one.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import transformers

from shapefix.library import removed_arguments

FILE = Path(removed_arguments.__file__).with_suffix(".json")


@dataclass(frozen=True)
class Source:
    """A library in wheels: the start of their names, the files with its definitions, and its public modules.

    The files of transformers' models are left out: they take `**kwargs`. Without public modules, all
    classes, and all functions without an underscore, are public.
    """

    key: str
    wheels: str
    files: str
    public: tuple[str, ...]


SOURCES = (
    Source(
        "transformers",
        "transformers",
        r"transformers/(data/)?(?!dummy_|_)\w+\.py",
        ("transformers/__init__.py",),
    ),
    Source(
        "lightning",
        "pytorch_lightning",
        r"pytorch_lightning/(trainer|callbacks|core|loggers)/\w+\.py",
        (
            "pytorch_lightning/__init__.py",
            "pytorch_lightning/callbacks/__init__.py",
            "pytorch_lightning/loggers/__init__.py",
        ),
    ),
    Source("trl", "trl", r"trl/(trainer/)?(?!_)\w+\.py", ("trl/__init__.py",)),
    Source("peft", "peft", r"peft/.*\.py", ("peft/__init__.py",)),
    Source("accelerate", "accelerate", r"accelerate/(utils/)?\w+\.py", ("accelerate/__init__.py",)),
    Source("datasets", "datasets", r"datasets/\w+\.py", ("datasets/__init__.py",)),
    Source(
        "torch",
        "torch",
        r"torch/(serialization|functional|optim/\w+|nn/(functional|modules/\w+|utils/[a-z]\w*)|utils/data/\w+"
        r"|utils/checkpoint|onnx/utils|cuda/amp/\w+)\.py",
        (),
    ),
)
_EXPORTS = re.compile(r"^__all__ = [\[(](.*?)[\])]", re.MULTILINE | re.DOTALL)
SIMPLE = frozenset(
    {
        "_defaults_from_env_vars",
        "add_start_docstrings",
        "auto_docstring",
        "classmethod",
        "dataclass",
        "deprecate_kwarg",
        "is_torch_available",
        "requires",
        "requires_backends",
        "staticmethod",
        "wraps",
    }
)
"""Decorators that leave the parameters of a function or class as they are."""
OUTSIDE = {"TrainingArguments": transformers.TrainingArguments}
"""Dataclasses of other libraries with subclasses in these."""
Definition = ast.FunctionDef | ast.ClassDef


class Wheel:
    """The source files of one version, and its public definitions by name."""

    def __init__(self, path: Path, source: Source) -> None:
        self.version = re.split("-", path.name)[1]
        self.exported: set[str] = set()
        self._source = source
        self._found: dict[str, list[Definition]] = {}
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".py"):
                    self._read(name, archive.read(name).decode("utf-8"))

    def arguments(self, name: str) -> frozenset[str] | None:
        """Keywords of a function, method or constructor; None if any is accepted, or if it is not known."""
        owner, _, method = name.partition(".")
        found = self._found.get(owner, [])
        if len(found) != 1:
            return None
        definition = found[0]
        if isinstance(definition, ast.FunctionDef):
            return _keywords(definition)
        init = next((each for each in definition.body if _is_named(each, method or "__init__")), None)
        if isinstance(init, ast.FunctionDef):
            return _keywords(init)
        if method:
            return None
        bases = [self._of_base(base) for base in definition.bases]
        if "dataclass" not in _decorators(definition):
            return bases[0] if len(bases) == 1 else None
        fields = frozenset(
            each.target.id
            for each in definition.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        )
        return None if any(base is None for base in bases) else fields.union(*(base or () for base in bases))

    def inherits(self, name: str) -> str:
        """Name of the dataclass of another library with fields that a constructor accepts; empty without."""
        found = self._found.get(name, [])
        if name in OUTSIDE and not found:
            return name
        bases = found[0].bases if len(found) == 1 and isinstance(found[0], ast.ClassDef) else []
        return next((each for base in bases if (each := self.inherits(_name(base)))), "")

    @property
    def names(self) -> Iterator[str]:
        for name in self.exported & self._found.keys():
            yield name
            if self._source.key == "transformers":
                continue
            for definition in self._found[name]:
                for each in definition.body if isinstance(definition, ast.ClassDef) else ():
                    if isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
                        yield f"{name}.{each.name}"

    def _of_base(self, base: ast.expr) -> frozenset[str] | None:
        name = _name(base)
        if name in OUTSIDE and name not in self._found:
            return frozenset(each.name for each in dataclasses.fields(OUTSIDE[name]))
        return self.arguments(name)

    def _read(self, name: str, text: str) -> None:
        if self._source.key == "transformers":
            for listed in _EXPORTS.findall(text):
                self.exported.update(re.findall(r"[\"'](\w+)[\"']", listed))
        if name in self._source.public:
            self.exported |= _exported(ast.parse(text))
        if re.fullmatch(self._source.files, name) is None:
            return
        for each in ast.parse(text).body:
            if isinstance(each, (ast.FunctionDef, ast.ClassDef)):
                self._found.setdefault(each.name, []).append(each)
                if not self._source.public and (isinstance(each, ast.ClassDef) or each.name[0] != "_"):
                    self.exported.add(each.name)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _exported(tree: ast.Module) -> set[str]:
    """Imported names, and strings in assignments to `_import_structure` and its parts, or in calls for it."""
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.Expr)) and "_import_structure" in ast.dump(node)
    ]
    constants = (part for value in values for part in ast.walk(value) if isinstance(part, ast.Constant))
    imported = {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    return imported | {part.value for part in constants if isinstance(part.value, str)}


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
    return frozenset((*(each.arg for each in given if each.arg not in {"self", "cls"}), *map(str, renamed)))


def removed(wheels: list[Wheel]) -> dict[str, object]:
    """Arguments that some version has and the newest lacks, by the first version without them."""
    arguments: dict[str, dict[str, str]] = {}
    newest = wheels[-1]
    everywhere = set(newest.names) & {name for wheel in wheels[:-1] for name in wheel.names}
    for name in sorted(everywhere):
        each = [wheel.arguments(name) if name in set(wheel.names) else None for wheel in wheels]
        last = each[-1]
        known = frozenset().union(*(one for one in each if one is not None))
        for keyword in sorted(known - last) if last is not None else ():
            if keyword.startswith("_"):
                continue
            gone = _gone(wheels, [one is None or keyword in one for one in each])
            arguments.setdefault(name, {}).setdefault(gone, "")
            arguments[name][gone] = f"{arguments[name][gone]} {keyword}".strip()
    inherited = {
        name: base
        for name in sorted(everywhere)
        if (base := newest.inherits(name)) and base != name and newest.arguments(name) is not None
    }
    return {
        "version": newest.version,
        "arguments": arguments,
        **({"inherits": inherited} if inherited else {}),
    }


def _gone(wheels: list[Wheel], has: list[bool]) -> str:
    """First version of those at the end that all lack something."""
    after = max(index for index, each in enumerate(has) if each) + 1
    return ".".join(wheels[min(after, len(wheels) - 1)].version.split(".")[:2])


def main(folder: str) -> None:
    """Write the file from a folder of wheels."""
    found = json.loads(FILE.read_text("utf-8"))
    for source in SOURCES:
        wheels = [Wheel(path, source) for path in Path(folder).glob(f"{source.wheels}-*.whl")]
        wheels.sort(key=lambda wheel: tuple(map(int, re.findall(r"\d+", wheel.version))))
        if wheels:
            found[source.key] = removed(wheels)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
