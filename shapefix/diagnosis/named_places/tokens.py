"""Places of tokens without a row in the embedding."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnostics import Evidence

_ADDITIONS = ("add_tokens", "add_special_tokens")
_RESIZE = "resize_token_embeddings"


@search_for("embedding-range")
def _added_tokens(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the additions to a tokenizer in a project without a resized embedding."""
    if any(True for _ in failure.files(_RESIZE)):
        return
    for name in _ADDITIONS:
        for parsed, call in failure.calls(name):
            yield parsed.place(call, f"tokens are added here; `{_RESIZE}` is never called")
