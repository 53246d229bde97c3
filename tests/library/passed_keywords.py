"""Which models of transformers take any keyword and then hand it to something that does not."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

DEEPEST = 5


def refuses(cls: Any) -> bool:
    """Tell whether a class whose forward has `**kwargs` raises all the same for an unknown keyword.

    The model is made without memory, of the configuration that is made of nothing; the answer is no where
    that is impossible.
    """
    import torch

    if "Got unexpected arguments" in _source(cls):
        return True
    try:
        with torch.device("meta"):
            model = cls(cls.config_class())
    except Exception:
        return False
    return _refuses(model, DEEPEST)


def _refuses(module: Any, depth: int) -> bool:
    """Whether forward hands its keywords to what does not take them, on whatever way through it."""
    forward = inspect.unwrap(type(module).forward)
    keywords = _keywords(forward)
    if keywords is None:
        return True
    return depth > 0 and any(
        _refuses(taker, depth - 1) if hasattr(taker, "forward") else _keywords(inspect.unwrap(taker)) is None
        for taker in _takers(module, keywords)
    )


def _takers(module: Any, keywords: str) -> Iterator[Any]:
    """What of the module's own is called with `**kwargs` in its forward."""
    for node in ast.walk(ast.parse(_source(type(module)))):
        if not isinstance(node, ast.Call) or not any(
            each.arg is None and isinstance(each.value, ast.Name) and each.value.id == keywords
            for each in node.keywords
        ):
            continue
        path = ast.unparse(node.func)
        if path == "getattr(self, self.base_model_prefix)":
            path = f"self.{module.base_model_prefix}"
        # A loss function of another's choice is no part of the model.
        if path.startswith("self.") and path != "self.loss_function":
            found = module
            for name in path.split(".")[1:]:
                found = getattr(found, name, None)
            if callable(found):
                yield found


def _source(cls: Any) -> str:
    return textwrap.dedent(inspect.getsource(inspect.unwrap(cls.forward)))


def _keywords(function: Any) -> str | None:
    """What a function calls its `**kwargs`."""
    for each in inspect.signature(function).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            return each.name
    return None
