"""Names of libraries: for people, and in requirements."""

from __future__ import annotations

from shapefix.interpreter.modules import Module, imported_packages

_TITLES = {"lightning": "Lightning"}


def title(library: str) -> str:
    """Return the name of a library in a sentence."""
    return _TITLES.get(library, library)


def older(library: str, version: str, module: Module) -> str:
    """Return the requirement of a version before this one, for a file; Lightning is two projects."""
    is_first = library == "lightning" and "pytorch_lightning" in module.once(module.tree, imported_packages)
    return f"{'pytorch-lightning' if is_first else library}<{version}"
