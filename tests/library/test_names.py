"""Every name that the library claims to know exists, and every signature is torch's own."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import torch

import shapefix
from shapefix.checks.support.replaced_names import INSTEAD
from shapefix.library.data.rows import OF_TENSORS
from shapefix.library.library import ON_DEMAND
from shapefix.library.registry import BASES, FUNCTIONS, METHODS

PACKAGE = Path(shapefix.__file__).parent
SOURCES = ("library", "interpreter", "checks")
GONE = {"transformers.AdamW", "transformers.optimization.AdamW"}
"""Classes that transformers had before version 5. Training scripts still import them."""
OTHER_VERSIONS = GONE | {
    # torch has it as torch.OutOfMemoryError and torch.cuda.OutOfMemoryError; public code writes this name.
    "torch.cuda.memory.OutOfMemoryError",
    # Removed in numpy 2.
    "numpy.float_",
    # New in Python 3.12 and 3.13.
    "typing.override",
    "copy.replace",
}
NOT_NAMES = {
    # The first half of a class's name, compared with startswith.
    "torch.nn.Lazy",
    "torch.nn.BatchNorm",
    # Methods of a deque, which the interpreter knows as a list.
    "builtins.list.appendleft",
    "builtins.list.extendleft",
    "builtins.list.popleft",
    "builtins.list.rotate",
    # The interpreter's own names: `a and b`, `a or b`, a function for `shapefix shapes`.
    "operator.and",
    "operator.or",
    "builtins.reveal",
    # The end of a call as the code writes it: `tqdm.write(...)` after `from tqdm import tqdm`.
    "tqdm.write",
    # The class of torch.FloatTensor, as torch writes it; the name is not importable.
    "torch.tensortype",
    # A method of every named tuple, which the interpreter knows as a tuple.
    "builtins.tuple._replace",
    # Python has no such methods, which is what a rule reports.
    *(
        f"builtins.{kind}.{name}"
        for kind in ("dict", "int", "list", "str", "tuple")
        for name in ("cuda", "to")
    ),
    *(f"builtins.tuple.{name}" for name in OF_TENSORS),
    "builtins.int.backward",
}
OPTIONAL = {
    "PIL",
    "attr",
    "attrs",
    "beartype",
    "bitsandbytes",
    "cv2",
    "einops",
    "flax",
    "importlib_metadata",
    "looseversion",
    "pkg_resources",
    "huggingface_hub",
    "jaxtyping",
    "peft",
    "pydantic",
    "rich",
    "sklearn",
    "timm",
    "torchvision",
    "tqdm",
    "trl",
    "typing_extensions",
}
"""Packages that the tests do not need: their names are checked where they are installed."""
QUALIFIED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")


def test_every_module_of_the_library_is_registered() -> None:
    modules = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in (PACKAGE / "library").rglob("*.py")
    }
    assert {name.removesuffix(".__init__") for name in modules} - ON_DEMAND <= set(sys.modules)


def resolve(name: str) -> Any:
    """The object of a qualified name. Raises AttributeError where it does not exist."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for position, part in enumerate(parts[1:], start=1):
        if not hasattr(found, part):
            try:
                importlib.import_module(".".join(parts[: position + 1]))
            except ImportError:
                raise AttributeError(f"{'.'.join(parts[:position])} has no {part}") from None
        found = getattr(found, part)
    return found


def misspelt(names: list[str]) -> list[str]:
    missing = []
    for name in names:
        try:
            resolve(name)
        except AttributeError:
            missing.append(name)
    return missing


def test_every_torch_function_exists() -> None:
    assert misspelt([name for name in FUNCTIONS if name.startswith("torch.")]) == []


def test_every_method_of_a_torch_class_exists() -> None:
    names = [
        f"{kind}.{name.removeprefix('@')}"
        for kind, methods in METHODS.items()
        if kind.startswith("torch.") and kind not in NOT_NAMES
        for name in methods
    ]
    assert misspelt([name for name in names if not is_set_on_objects(name)]) == []


def is_set_on_objects(name: str) -> bool:
    """Whether torch has the attribute on objects only: parameters, buffers, and iteration by index."""
    kind, _, attribute = name.rpartition(".")
    if attribute == "__iter__" and hasattr(resolve(kind), "__getitem__"):
        return True
    parameters = ("weight", "bias", "running_mean", "running_var", "training")
    return kind.startswith("torch.nn.") and attribute in parameters


def test_every_torch_class_exists() -> None:
    assert misspelt([name for name in BASES if name.startswith("torch.") and name not in NOT_NAMES]) == []


def test_the_types_of_old_tensor_classes_are_called_as_torch_calls_them() -> None:
    kind = type(torch.FloatTensor)
    assert f"{kind.__module__}.{kind.__name__}" == "torch.tensortype"
    assert type(torch.FloatTensor(2, 3)) is torch.Tensor


def test_every_class_of_transformers_and_accelerate_exists() -> None:
    names = [name for name in (*FUNCTIONS, *BASES) if name.startswith(("transformers.", "accelerate."))]
    assert set(misspelt(names)) == GONE


def registered() -> set[str]:
    """Every qualified name in the registry, without methods: many are set on objects only."""
    return {name for name in (*FUNCTIONS, *BASES, *METHODS) if QUALIFIED.fullmatch(name)}


def written() -> set[str]:
    """Every string in the code of SOURCES that is a qualified name of a package in the registry."""
    packages = {name.partition(".")[0] for name in registered()}
    found = set()
    for path in (file for folder in SOURCES for file in (PACKAGE / folder).rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        parts = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        found |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in parts
            and QUALIFIED.fullmatch(node.value)
            and node.value.partition(".")[0] in packages
        }
    return found


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def test_every_package_of_the_library_is_installed_or_optional() -> None:
    assert {name.partition(".")[0] for name in registered() if not is_installed(name)} <= OPTIONAL


def test_every_qualified_name_exists_in_its_library() -> None:
    names = {name for name in registered() | written() if is_installed(name)} - NOT_NAMES
    assert "transformers.utils.auto_docstring" in names
    assert set(misspelt(sorted(names))) - OTHER_VERSIONS - INSTEAD.keys() == set()


def test_torch_is_the_version_that_the_facts_were_executed_on() -> None:

    assert torch.__version__.startswith("2.13")
