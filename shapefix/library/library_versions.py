"""Versions of libraries read by the code: `torch.__version__`, and their comparisons."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.values import Constant, LibraryObject, Reference, Unknown, Value
from shapefix.library.registry import declare, function
from shapefix.library.required_versions import TRANSFORMERS, is_at_least
from shapefix.sources.versions import is_version, release

VERSION = "packaging.version.Version"
_READ = "__version__"
_NEXT = {"torch": "3.0", "numpy": "3.0", TRANSFORMERS: "6.0", "datasets": "6.0"}
"""Versions that no release has reached: code for these is not decided."""
_MIRRORED: dict[type, type] = {
    cst.LessThan: cst.GreaterThan,
    cst.GreaterThan: cst.LessThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThanEqual,
}

declare(VERSION)


@function(
    VERSION,
    "packaging.version.parse",
    "pkg_resources.parse_version",
    "distutils.version.LooseVersion",
    "distutils.version.StrictVersion",
    "looseversion.LooseVersion",
    "torch.torch_version.TorchVersion",
)
def parsed(call: Call) -> Value:
    """Version in a text, or of a library: that of the argument."""
    given = call.value(0, "version")
    return Unknown() if given is None else LibraryObject(VERSION, {"version": given}, call.place)


@function("importlib.metadata.version", "importlib_metadata.version")
def installed(call: Call) -> Value:
    """Installed version of a distribution: that of its package."""
    name = call.constant(0, "distribution_name")
    return Reference(f"{name}.{_READ}") if isinstance(name, str) and name in _NEXT else Unknown("version")


@hooks.decide_comparison
def decided(ev: Evaluator, kind: type, left: Value, right: Value) -> bool | None:
    """Compare the version of a library with a stated one, if all permitted versions give the same answer.

    Requirements say which are permitted; without any, the newest one is used.
    """
    package, stated = _package(left), _stated(right)
    if package is None:
        package, stated, kind = _package(right), _stated(left), _MIRRORED.get(kind, kind)
    if package is None or stated is None or not release(stated) < release(_NEXT[package]):
        return None
    if kind not in _MIRRORED:
        return None
    if kind in (cst.GreaterThan, cst.LessThanEqual) or any(release(stated)[2:]):
        # `> "1.7"` holds for 1.7.1, but not for 1.7 itself; which patch is permitted is not known.
        stated = _following(stated)
    return kind in (cst.GreaterThan, cst.GreaterThanEqual) if is_at_least(ev, stated, package) else None


def _following(version: str) -> str:
    """Return the minor version after a version."""
    major, minor = (*release(version), 0)[:2]
    return f"{major}.{minor + 1}"


def _unparsed(value: Value) -> Value:
    """Return the text or the attribute in a parsed version."""
    if isinstance(value, LibraryObject) and value.kind == VERSION:
        return value.arguments["version"]
    return value


def _package(value: Value) -> str | None:
    """Return the package with its version in a value."""
    value = _unparsed(value)
    if not isinstance(value, Reference):
        return None
    package, _, name = value.name.rpartition(".")
    return package if name == _READ and package in _NEXT else None


def _stated(value: Value) -> str | None:
    """Return the version stated by a text."""
    value = _unparsed(value)
    text = value.value if isinstance(value, Constant) else None
    return text if isinstance(text, str) and is_version(text) else None
