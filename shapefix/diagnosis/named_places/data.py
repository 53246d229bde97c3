"""Places of samples, settings and collators."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, ParsedFile, parsed_file, search_for
from shapefix.diagnosis.named_places.results import returned_texts, returned_tuples
from shapefix.diagnosis.project_frames import searched_settings
from shapefix.diagnosis.size_origins import last_name, named_values, option_name
from shapefix.diagnostics import Evidence, Role, Span
from shapefix.sources.text import Unreadable, read_settings

_NUMBER = re.compile(r"\d+")
_TEXT_NUMBER = re.compile(r"""\s*["']?(?P<name>\w+)["']?\s*:\s*(?P<value>\d+e[-+]?\d+)\s*(?:#|$)""")
"""A setting in YAML that looks like a number, and is text."""
_QUOTED_NUMBER = re.compile(r"""(?P<name>\w+)["']?\s*[:=]\s*(["'])(?P<value>-?[\d.]+(?:e[-+]?\d+)?)\2""")
"""A setting with a number in quotes, in JSON, YAML or TOML."""
_QUOTED_IN_LIST = re.compile(r"""\s*["']?(?P<name>\w+)["']?\s*[:=]\s*\[[^\]]*(["'])-?[\d.]+\2""")
_DECIMAL = re.compile(r"-?[\d.]+(?:e[-+]?\d+)?")


@search_for("text-as-number", "dropout-range", "optimizer-setting", "text-in-numbers", "operand-types")
def _text_settings(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the settings of a failing call with text in them: `1e-4` in YAML, an option without a type.

    For an operand that is a tuple, these are the returned tuples.
    """
    if failure.explanation.name == "operand-types" and "tuple" in failure.explanation.message:
        yield from returned_tuples(failure)
        return
    if "'str'" in failure.explanation.message:
        yield from returned_texts(failure)
    names = set(_given_names(failure))
    for path in searched_settings(failure.folder):
        for row, line in enumerate(_lines(path), 1):
            found = _TEXT_NUMBER.match(line) if path.endswith((".yaml", ".yml")) else None
            if found is not None and found["name"] in names:
                text = f"YAML reads `{found['value']}` as text; write `{_with_point(found['value'])}`"
                yield Evidence(Span(path, row, 1, row, len(line) + 1), text, Role.CAUSE, text)
            for quoted in _QUOTED_NUMBER.finditer(line):
                if quoted["name"] in names:
                    text = f"`{quoted['name']}` is text: it is in quotes"
                    yield Evidence(Span(path, row, 1, row, len(line) + 1), text, Role.CAUSE, text)
            listed = _QUOTED_IN_LIST.match(line)
            if listed is not None and listed["name"] in names:
                text = f"a value of `{listed['name']}` is text: it is in quotes"
                yield Evidence(Span(path, row, 1, row, len(line) + 1), text, Role.CAUSE, text)
    for parsed, call in failure.calls("add_argument"):
        option = call.args[-1] if call.args else None
        given = {keyword.arg for keyword in call.keywords}
        if isinstance(option, ast.Constant) and given.isdisjoint({"type", "action"}):
            if option_name(str(option.value)) in names:
                kind = _type_of_default(call)
                yield parsed.place(call, f"this option is text: `type={kind}` is missing")
    options = {id(each) for _, call in failure.calls("add_argument") for each in ast.walk(call)}
    for parsed in failure.files():
        for name, value in named_values(parsed.tree):
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            if name in names and is_text and id(value) not in options:
                if _DECIMAL.fullmatch(ast.literal_eval(value)):
                    yield parsed.place(value, f"`{name}` is text: it is in quotes")


def _given_names(failure: ExplainedFailure) -> Iterator[str]:
    """Yield the names in the calls of the stack's lines: of arguments, and of their attributes and keys."""
    for _, node in failure.lines():
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                yield last_name(keyword.value) or keyword.arg or ""
            yield from map(last_name, node.args)
        elif isinstance(node, ast.BinOp):
            yield from (last_name(node.left), last_name(node.right))


def _type_of_default(option: ast.Call) -> str:
    """Return the type for an option, by its default: `int` for `default=64`."""
    for keyword in option.keywords:
        if keyword.arg == "default" and isinstance(keyword.value, ast.Constant):
            if isinstance(keyword.value.value, int):
                return "int"
    return "float"


def _lines(path: str) -> list[str]:
    try:
        return read_settings(path).decode("utf-8", "replace").splitlines()
    except Unreadable:
        return []


def _with_point(number: str) -> str:
    digits, _, exponent = number.partition("e")
    return f"{digits}.0e{exponent}"


@search_for("worker-pickling")
def _local_functions(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the lambdas or functions inside a function."""
    outer, _, inner = failure.fields["name"].strip("'").rpartition(".<locals>.")
    outer = outer.rpartition(".")[2]
    for parsed in failure.files(outer):
        for function in ast.walk(parsed.tree):
            if not isinstance(function, ast.FunctionDef) or function.name != outer:
                continue
            for node in ast.walk(function):
                is_lambda = isinstance(node, ast.Lambda) and inner == "<lambda>"
                if is_lambda or (isinstance(node, ast.FunctionDef) and node.name == inner):
                    yield parsed.place(node, "this function exists only inside another one")  # type: ignore[arg-type]


@search_for("conv-channels", "stacked-sizes")
def _image_modes(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the loads of images without a conversion, for channels of 1, 3 or 4."""
    numbers = {int(each[:9]) for each in _NUMBER.findall(failure.explanation.message)}
    if not numbers & {1, 4} or 3 not in numbers:
        return
    for parsed in failure.files("Image"):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Assign) and "Image.open(" in (code := ast.unparse(node.value)):
                target = re.escape(ast.unparse(node.targets[0]))
                is_converted = re.search(rf"\b{target}\.convert\(", parsed.whole.text)
                if ".convert(" not in code and not is_converted:
                    yield parsed.place(node, '`.convert("RGB")` is missing here')


@search_for("ragged-rows")
def _missing_collators(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the trainers without a collator, for a failing `train` or `evaluate`."""
    methods = {last_name(node.func) for _, node in failure.line() if isinstance(node, ast.Call)}
    if methods.isdisjoint({"train", "evaluate", "predict"}):
        return
    for parsed in failure.files("Trainer("):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Call) and last_name(node.func).endswith("Trainer"):
                given = {keyword.arg for keyword in node.keywords}
                if given.isdisjoint({"data_collator", "processing_class", "tokenizer", None}):
                    yield parsed.place(node, "without `data_collator`, nothing is padded here")


@search_for("sample-size")
def _conditions(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the conditions around the lines of the stack, and the constants in them."""
    for frame in reversed(failure.frames):
        parsed = None if frame.is_missing else parsed_file(frame.span.path)
        row = frame.span.row + (parsed.whole.rows_before if parsed is not None else 0)
        for node in ast.walk(parsed.tree) if parsed is not None else ():
            if parsed is None or not isinstance(node, ast.If):
                continue
            if any(each.lineno <= row <= (each.end_lineno or 0) for each in node.body):
                yield parsed.place(node.test, "the line runs if this is true")
                names = {each.id for each in ast.walk(node.test) if isinstance(each, ast.Name)}
                for each in parsed.tree.body:
                    if isinstance(each, ast.Assign) and names & set(map(last_name, each.targets)):
                        if isinstance(each.value, ast.Constant):
                            yield parsed.place(each, "this number decides when")


@search_for("mapped-result", "unequal-columns")
def _mapped_function(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the columns in the message, or all results, of the function given to `map` in the line."""
    for _, node in failure.line():
        if not isinstance(node, ast.Call) or last_name(node.func) not in ("map", "filter"):
            continue
        given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "function")]
        names = {last_name(each) for each in given}
        for parsed in failure.files():
            for function in ast.walk(parsed.tree):
                if isinstance(function, ast.FunctionDef) and function.name in names:
                    named = list(_named_columns(failure, parsed, function))
                    yield from named
                    for each in () if named else ast.walk(function):
                        if isinstance(each, ast.Return):
                            yield parsed.place(each, f"`{function.name}` returns the columns here")


def _named_columns(
    failure: ExplainedFailure, parsed: ParsedFile, function: ast.FunctionDef
) -> Iterator[Evidence]:
    """Yield the values of the columns in the message: `batch["ids"] = …`, `{"ids": …}`."""
    named = set(failure.fields.values())
    for node in ast.walk(function):
        keys: list[tuple[ast.expr | None, ast.expr | ast.stmt]] = []
        if isinstance(node, ast.Assign):
            keys = [(target.slice, node) for target in node.targets if isinstance(target, ast.Subscript)]
        elif isinstance(node, ast.Dict):
            keys = list(zip(node.keys, node.values, strict=True))
        for key, place in keys:
            if isinstance(key, ast.Constant) and key.value in named:
                yield parsed.place(place, f"`{key.value}` is computed here")
