"""Places of tokens without a row in the embedding."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Evidence

_ADDITIONS = ("add_tokens", "add_special_tokens")
_RESIZE = "resize_token_embeddings"


@search_for("embedding-range")
def _added_tokens(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the additions to a tokenizer in a project without a resized embedding."""
    if any(True for _ in failure.files(_RESIZE)):
        return
    for name in _ADDITIONS:
        for parsed in failure.files(f".{name}("):
            for node in ast.walk(parsed.tree):
                if isinstance(node, ast.Call) and last_name(node.func) == name:
                    yield parsed.place(node, f"tokens are added here; `{_RESIZE}` is never called")
