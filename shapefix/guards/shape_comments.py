"""Comments with the sizes of assigned tensors: choose the rows worth one, write and recognize them."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from shapefix.guards.formatting import CodeStyle
from shapefix.guards.lines import rows_of, tokens_of
from shapefix.interpreter.modules import Module
from shapefix.interpreter.watching import statements_of
from shapefix.light_dataclasses import dataclass
from shapefix.sizes.general import GeneralSizes, KnownSizes

_OWN = re.compile(r"#: (?:\w+ )?\[[^\[\]]*\](?:, \w+ \[[^\[\]]*\])*$")
"""The mark of a comment of shapefix is its colon. Formatters and linters know it from Sphinx."""
_LONGEST = 40
_LONGEST_SIZE = 16
_WORD = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"\w\(")
_LETTERS = frozenset("BNCHWDLT")
_SHOWN_BY_CODE = frozenset(
    {"zeros", "ones", "rand", "randn", "empty", "full", "randint", "eye", "tensor", "arange"}
)
_WIDEST_STEP = 24
"""The most spaces that align the comments of neighboring rows."""


@dataclass(frozen=True)
class ShapeComment:
    """A comment at the end of a row."""

    row: int
    text: str


def own_comments(text: str) -> dict[int, int]:
    """Return the rows with a comment of shapefix, and the column after their code."""
    rows = rows_of(text)
    if "#: " not in text:
        return {}
    found: dict[int, int] = {}
    for token in tokens_of(rows):
        if token.type == tokenize.COMMENT and _OWN.match(token.string):
            row, column = token.start
            before = rows[row - 1][:column]
            code = before.rstrip(" ")
            # A comment in a row of its own is the user's.
            if code.strip() and len(before) - len(code) >= 2:
                found[row] = len(code)
    return found


def without_comments(text: str, own: Mapping[int, int]) -> str:
    """Return a text without some comments of shapefix and the spaces before them."""
    made: list[str] = []
    for number, row in enumerate(rows_of(text), 1):
        end = row[len(row.rstrip("\r\n")) :]
        made.append(row if number not in own else row[: own[number]] + end)
    return "".join(made)


def comments_for(text: str, module: Module, found: GeneralSizes) -> Iterator[ShapeComment]:
    """Yield the comments of a function; text has none of shapefix."""
    free = _free_rows(text)
    last: dict[str, tuple[str, ...]] = {}
    shown: tuple[str, ...] = ()
    function = found.target.node
    parameters = [each for each in found.parameters if _is_plain(each)]
    if parameters:
        header = module.span(function.name).row
        new = [each for each in parameters if not _is_unpacked(each, function, module)]
        listed = ", ".join(f"{each.name} [{', '.join(each.texts)}]" for each in new)
        if new and free.get(header) == header and len(listed) <= _LONGEST:
            yield ShapeComment(header, f"#: {listed}")
        last.update((each.name, each.texts) for each in parameters)
        if len(parameters) == 1:
            shown = parameters[0].texts
    known_names = _words_of(module, found)
    for statement, names in found.statements.items():
        row = module.span(statement).row
        texts = names[0].texts
        value = statement.value if isinstance(statement, (cst.Assign, cst.AnnAssign, cst.Return)) else None
        about = [module.code(value)] if isinstance(value, cst.Name) else [each.name for each in names]
        is_news = texts != shown and any(last.get(name) != texts for name in about)
        last.update((each.name, each.texts) for each in names)
        if any(each.texts != texts or not _is_plain(each) for each in names) or len(texts) < 2:
            continue
        written = f"[{', '.join(texts)}]"
        if (
            row in free
            and value is not None
            and is_news
            and len(written) <= _LONGEST
            and not _shows_sizes(value, texts, module)
            and known_names.issuperset(_WORD.findall(written))
            and _is_unambiguous(names[0])
        ):
            shown = texts
            yield ShapeComment(free[row], f"#: {written}")


def _words_of(module: Module, found: GeneralSizes) -> set[str]:
    """Return the names in the code of a function, and of its class."""
    owner = found.target.owner
    code = module.tree.code_for_node(found.target.node if owner is None else owner.node)
    return {*_WORD.findall(code), *_LETTERS}


def _is_unambiguous(known: KnownSizes) -> bool:
    """Check whether sizes of the same name are the same size."""
    return len(set(known.texts)) == len(set(known.sizes))


def _is_plain(known: KnownSizes) -> bool:
    """Check for readable sizes: numbers, letters and settings, in short arithmetic."""
    return bool(known.sizes) and all(
        text.count("(") <= 1 and not _CALL.search(text) and "." not in text and len(text) <= _LONGEST_SIZE
        for text in known.texts
    )


def _shows_sizes(value: cst.BaseExpression, texts: Sequence[str], module: Module) -> bool:
    """Check for code with the sizes in it, as `x.view(B, -1)`, and for a tensor of the module."""
    if isinstance(value, cst.Attribute):
        return True
    if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in ("view", "reshape", "expand"):
            written = [module.code(arg.value).replace(" ", "").replace("self.", "") for arg in value.args]
            return written == [text.replace(" ", "") for text in texts]
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
        if value.func.attr.value in _SHOWN_BY_CODE:
            return True
        value = value.func.value
    return False


def _is_unpacked(known: KnownSizes, function: cst.FunctionDef, module: Module) -> bool:
    """Check for `B, T, C = x.shape` in the function: it says the same."""
    for statement in statements_of(function):
        if not isinstance(statement, cst.Assign) or not isinstance(statement.targets[0].target, cst.Tuple):
            continue
        names = [module.code(each.value) for each in statement.targets[0].target.elements]
        value = module.code(statement.value).replace(" ", "")
        if value in (f"{known.name}.shape", f"{known.name}.size()") and tuple(names) == known.texts:
            return True
    return False


def _free_rows(text: str) -> dict[int, int]:
    """Return the first row of each statement alone in its rows, with its last row, if no comment is there.

    For a function, this is the last row of its header.
    """
    rows = rows_of(text)
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.stmt):
            continue
        end = node.end_lineno or node.lineno
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            row = rows[node.lineno - 1].rstrip("\r\n")
            if node.body[0].lineno > node.lineno and row.endswith(":"):
                found[node.lineno] = node.lineno
            continue
        starts[node.lineno] = starts.get(node.lineno, 0) + 1
        ends[end] = ends.get(end, 0) + 1
        if not hasattr(node, "body"):
            found[node.lineno] = end
    return {
        row: end
        for row, end in found.items()
        if starts.get(row, 0) <= 1 and ends.get(end, 0) <= 2 and _takes_comment(rows[end - 1])
    }


def _takes_comment(row: str) -> bool:
    code = row.rstrip("\r\n")
    return code == code.rstrip() and "#" not in code and not code.endswith(("\\", ";"))


def fitting(text: str, comments: Sequence[ShapeComment], style: CodeStyle) -> list[ShapeComment]:
    """Return the comments within the line length."""
    rows = rows_of(text)
    return [
        each
        for each in comments
        if style.width(rows[each.row - 1].rstrip("\r\n")) + 2 + len(each.text) <= style.line_length
    ]


def with_comments(text: str, comments: Sequence[ShapeComment], style: CodeStyle) -> str:
    """Return a text with comments, aligned with those of neighboring rows unless there is a formatter."""
    rows = rows_of(text)
    wanted = {comment.row: comment.text for comment in comments}
    columns = {row: style.width(rows[row - 1].rstrip("\r\n")) for row in wanted}
    if not style.is_formatted:
        for group in _groups(sorted(wanted)):
            column = max(columns[row] for row in group)
            fits = all(column + 2 + len(wanted[row]) <= style.line_length for row in group)
            if fits and column - min(columns[row] for row in group) <= _WIDEST_STEP:
                columns.update(dict.fromkeys(group, column))
    for row, comment in wanted.items():
        code = rows[row - 1].rstrip("\r\n")
        end = rows[row - 1][len(code) :]
        space = " " * (columns[row] - style.width(code) + 2)
        rows[row - 1] = f"{code}{space}{comment}{end}"
    return "".join(rows)


def _groups(rows: Sequence[int]) -> Iterator[list[int]]:
    """Group adjacent rows."""
    group: list[int] = []
    for row in rows:
        if group and row != group[-1] + 1:
            yield group
            group = []
        group.append(row)
    if group:
        yield group
