"""Versions of libraries permitted to the code, by requirements and imports."""

from __future__ import annotations

from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import imported_packages
from shapefix.sources.versions import release

TRANSFORMERS = "transformers"
_LIBRARIES = {
    **{name: name for name in ("accelerate", "datasets", "lightning", "numpy", "peft", "torch", "trl")},
    "pytorch_lightning": "lightning",
    "transformers": TRANSFORMERS,
}
"""Libraries with requirements that are read, by the first part of qualified names."""
_NEEDS_OLDER = {
    ("lightning", "pl_bolts"): "2.0",
    ("transformers", "allennlp"): "4.21",
    ("torch", "allennlp"): "1.13",
    ("torch", "torchtext"): "2.4",
}
"""The first version of a library with which the last release of another one cannot be installed."""


_NEEDS_NEWER = {
    ("numpy", "1.24"): ("torch", "2.0"),
    ("numpy", "2.0"): ("torch", "2.5"),
}
"""The first version of a library for newer versions of Python than those of another, older library.

torch 1.13 runs on Python 3.7, which refuses numpy 1.22; torch 2.4 on Python 3.8, which refuses numpy 1.25.
"""


def library_of(name: str) -> str | None:
    """Return the library of a qualified name; None for one without requirements."""
    return _LIBRARIES.get(name.partition(".")[0])


def is_at_least(ev: Evaluator, version: str, package: str = TRANSFORMERS) -> bool:
    """Check whether every version permitted by the project is this one or a later one.

    Without requirements, the newest version is used.
    """
    oldest = ev.oldest_versions.get(package) or ev.versions.get(package)
    if oldest is not None and release(oldest)[:2] < release(version)[:2]:
        return False
    beside = _NEEDS_NEWER.get((package, version))
    if beside is not None and not is_at_least(ev, beside[1], beside[0]):
        return False
    return not any(
        release(version)[:2] >= release(first)[:2] and imports(ev, other)
        for (library, other), first in _NEEDS_OLDER.items()
        if library == package
    )


def imports(ev: Evaluator, package: str) -> bool:
    """Whether a file on the way to a call, or a file of the project read before, imports a package."""
    modules = {frame.module.path: frame.module for frame in ev.frames}
    read = (ev.files.module(path) for path in ev.module_scopes if path not in modules)
    modules |= {each.path: each for each in read if each is not None}
    return any(package in each.once(each.tree, imported_packages) for each in modules.values())
