"""Places of missing files: the writing calls, and their conditions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile, search_for
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Evidence

_WRITES = frozenset(
    {"dump", "save", "save_file", "save_model", "savetxt", "savez", "savez_compressed", "to_csv", "to_json"}
    | {"to_parquet", "to_pickle", "write_bytes", "write_text"}
)
"""Last parts of the names of functions that write a file."""
_MODES = re.compile(r"[wax]")
_FIELD = r"[^/\\]*"


@search_for("missing-file")
def _written_files(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the calls for writing files with names like the missing one, and the conditions around them."""
    name = re.split(r"[/\\]", failure.fields["path"])[-1]
    reads = {(parsed.whole.source.path, node.lineno) for parsed, node in failure.line()}
    for parsed in failure.files():
        named = [node for node in ast.walk(parsed.tree) if isinstance(node, ast.stmt) and _names(node, name)]
        calls = [node for node in ast.walk(parsed.tree) if isinstance(node, ast.Call) and _writes(node)]
        for node in named:
            own = [each for each in calls if node.lineno <= each.lineno <= (node.end_lineno or 0)]
            if (parsed.whole.source.path, node.lineno) in reads:
                continue
            if own:
                yield parsed.place(node, "files with such a name are written here")
                yield from _conditions(parsed, node)
            elif isinstance(node, (ast.Assign, ast.Return)):
                yield parsed.place(node, "a name like the missing one is made here")


def _conditions(parsed: ParsedFile, inner: ast.stmt) -> Iterator[Evidence]:
    for node in ast.walk(parsed.tree):
        if isinstance(node, ast.If) and any(inner in ast.walk(each) for each in node.body):
            yield parsed.place(node.test, "only if this is true")


def _names(node: ast.stmt, name: str) -> bool:
    """Whether a statement has a text with the end of a path, `f"epoch_{epoch}.pt"`."""
    return any(
        pattern.fullmatch(name)
        for child in ast.iter_child_nodes(node)
        if not isinstance(child, ast.stmt)
        for each in ast.walk(child)
        if (pattern := _pattern(each)) is not None
    )


def _pattern(node: ast.AST) -> re.Pattern[str] | None:
    """Return the pattern of the last part of a path; None without an extension in it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        parts = [re.escape(re.split(r"[/\\]", node.value)[-1])]
        is_file = "." in node.value
    elif isinstance(node, ast.JoinedStr):
        parts, is_file = [], False
        for each in node.values:
            text = each.value if isinstance(each, ast.Constant) else None
            if not isinstance(text, str):
                parts.append(_FIELD)
                continue
            *folders, last = re.split(r"[/\\]", text)
            parts = [*([] if folders else parts), re.escape(last)]
            is_file = "." in last
    else:
        return None
    return re.compile("".join(parts)) if is_file else None


def _writes(call: ast.Call) -> bool:
    called = last_name(call.func)
    if called != "open":
        return called in _WRITES
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(
        isinstance(each, ast.Constant) and _MODES.search(str(each.value)) is not None for each in modes
    )
