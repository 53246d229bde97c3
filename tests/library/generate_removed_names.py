"""Writes the modules of libraries, and the names in their packages, that newer versions lack.

    pip download --no-deps -d WHEELS transformers==4.40.0    # and some versions up to the newest one
    python tests/library/generate_removed_names.py WHEELS

writes `shapefix/library/removed_names.json`: the part of each library with wheels in the folder, and that of
the installed numpy, which lists its removed names itself. Of the wheels nothing is imported; the installed
libraries are asked whether they lack a name. A version between two wheels counts as the older one.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

from shapefix.library import removed_names

FILE = Path(removed_names.__file__).with_suffix(".json")


LIBRARIES = {
    "transformers": "transformers",
    "datasets": "datasets",
    "lightning": "pytorch_lightning",
    "trl": "trl",
    "peft": "peft",
    "accelerate": "accelerate",
    "torch": "torch",
}
"""The packages in the wheels of the libraries."""
_PRIVATE = re.compile(r"(^|/)(tests?|testing|commands|experimental|scripts|_(?!six|_init__)\w+)(/|\.py$)")
_FOLDERS_OF_SCRIPTS = frozenset({"datasets.datasets", "datasets.metrics"})
"""Folders in early wheels, without anything to import: folders of projects have these names, too."""
_NATIVE = "torch/_C/_VariableFunctions.pyi"
_OPEN = re.compile(r"\b(globals\(\)|sys\.modules|__getattr__|vars\(\))")


class Wheel:
    """The names of one version, with its modules; open are those that make names at run time."""

    def __init__(self, path: Path, package: str) -> None:
        self.version = path.name.split("-")[1]
        self.names: set[str] = set()
        self.open: set[str] = set()
        with zipfile.ZipFile(path) as archive:
            for file in archive.namelist():
                if file == _NATIVE:
                    self._read(archive.read(file).decode("utf-8"), "torch")
                elif file.endswith(".py") and file.startswith(f"{package}/"):
                    if _PRIVATE.search(file):
                        continue
                    module = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                    self.names.add(module)
                    if file.endswith("/__init__.py"):
                        self._read(archive.read(file).decode("utf-8"), module)
                    elif file.startswith("transformers/models/"):
                        self._export(archive.read(file).decode("utf-8"))

    def _read(self, text: str, module: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        if _OPEN.search(text):
            self.open.add(module)
        for name in _bound(tree.body, module):
            if name == "*":
                self.open.add(module)
            elif not name.startswith("_"):
                self.names.add(f"{module}.{name}")
        for listed in re.findall(r"^_import_structure.*?^\}", text, re.MULTILINE | re.DOTALL):
            self.names.update(f"{module}.{name}" for name in re.findall(r"[\"'](\w+)[\"']", listed))
        for listed in re.findall(
            r"_import_structure\[.*?\](?: = |\.extend\(|\.append\()(.*?)[\])]", text, re.DOTALL
        ):
            self.names.update(f"{module}.{name}" for name in re.findall(r"[\"'](\w+)[\"']", listed))

    def _export(self, text: str) -> None:
        """Add the public names of one of transformers' models, exported by the package itself."""
        for listed in re.findall(r"^__all__ = [\[(](.*?)[\])]", text, re.MULTILINE | re.DOTALL):
            self.names.update(f"transformers.{name}" for name in re.findall(r"[\"'](\w+)[\"']", listed))

    def has(self, name: str) -> bool:
        """Whether this version may have a name; those of the package itself are all listed."""
        owner = name.rpartition(".")[0]
        return name in self.names or ("." in owner and owner in self.open)


def _bound(body: list[ast.stmt], package: str) -> Iterator[str]:
    """Functions and classes of a package, and the names that it imports from its own modules.

    `*` stands for a star import.
    """
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            top = (node.module or "").partition(".")[0]
            is_own = node.level > 0 or top == package.partition(".")[0]
            for each in node.names:
                if each.name == "*" or is_own:
                    yield each.asname or each.name
        else:
            for field in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(node, field, []), package)
            for handler in getattr(node, "handlers", []):
                yield from _bound(handler.body, package)


def installed_has(name: str) -> bool | None:
    """Whether the installed library has a name; None if it is not installed."""
    top = name.partition(".")[0]
    try:
        importlib.import_module(top)
    except ImportError:
        return None
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError as error:
            if error.name is None or not ".".join(parts).startswith(error.name):
                # The module is there, and needs another library.
                return True
            continue
        except Exception:
            return True
        for part in parts[count:]:
            try:
                found = getattr(found, part)
            except AttributeError:
                return False
            except Exception:
                return True
        return True
    return False


def _is_there(name: str, newest: Wheel) -> bool:
    """Whether the newest version has a name: ask the installed one if there is one."""
    if name in newest.names:
        return True
    found = installed_has(name)
    return newest.has(name) if found is None else found


def removed(wheels: list[Wheel]) -> dict[str, object]:
    """Names that some version has and the newest lacks, by the first version without them.

    Of a removed module only the module itself is kept.
    """
    newest = wheels[-1]
    by_version: dict[str, list[str]] = {}
    everywhere = set().union(*(wheel.names for wheel in wheels[:-1]))
    gone = {name for name in everywhere if not _is_there(name, newest)}
    for name in sorted(gone):
        if name.rpartition(".")[0] in gone or name in _FOLDERS_OF_SCRIPTS:
            continue
        last = max(index for index, wheel in enumerate(wheels[:-1]) if wheel.has(name))
        version = ".".join(wheels[last + 1].version.split(".")[:2])
        by_version.setdefault(version, []).append(name)
    return {"version": newest.version, "names": {key: " ".join(names) for key, names in by_version.items()}}


def of_numpy() -> dict[str, object]:
    """The names that the installed numpy says to have removed."""
    import numpy
    from numpy._expired_attrs_2_0 import __expired_attributes__ as expired

    early = sorted(name for name in numpy.__former_attrs__ if not hasattr(numpy, name))
    # torchmetrics, which Lightning imports, sets it again.
    late = sorted(name for name in expired if not hasattr(numpy, name) and name != "Inf")
    return {
        "version": numpy.__version__,
        "names": {
            "1.24": " ".join(f"numpy.{name}" for name in early),
            "2.0": " ".join(f"numpy.{name}" for name in late),
        },
    }


def main(folder: str) -> None:
    """Write the file from a folder of wheels."""
    found = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    # First: other libraries give numpy some of its old names.
    found["numpy"] = of_numpy()
    for library, package in LIBRARIES.items():
        wheels = [Wheel(path, package) for path in Path(folder).glob(f"{package}-*.whl")]
        wheels.sort(key=lambda wheel: tuple(map(int, re.findall(r"\d+", wheel.version))))
        if wheels:
            found[library] = removed(wheels)
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
