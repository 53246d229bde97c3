"""Find the places of the names in a message: arguments, attributes, metrics, functions given to a library."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.project_frames import ProjectFrame, setting_files, source_files
from shapefix.diagnosis.size_origins import ValueSearch, last_name
from shapefix.diagnosis.whole_texts import WholeText, whole_text
from shapefix.diagnostics import Evidence, Role, Span
from shapefix.engine.parse_limits import LARGEST
from shapefix.sources.text import Unreadable, read_settings

_MOST = 5
_MOST_FILES = 200
_MOST_ATTRIBUTES = 6
_NUMBER = re.compile(r"\d+")
_TEXT_NUMBER = re.compile(r"""\s*["']?(?P<name>\w+)["']?\s*:\s*(?P<value>\d+e[-+]?\d+)\s*(?:#|$)""")
"""A setting in YAML that looks like a number, and is text."""
_CONVERSIONS = frozenset({"numpy", "array", "asarray"})
_LAYERS = re.compile(r"\b(?:nn\.)?(?:[A-Z]\w*)$")


@dataclass(frozen=True)
class _Parsed:
    """A parsed file of the project."""

    whole: WholeText
    tree: ast.Module

    def place(self, node: ast.expr | ast.stmt, text: str) -> Evidence:
        path, row = self.whole.place(node.lineno)
        last = row + (node.end_lineno or node.lineno) - node.lineno
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.With, ast.For)) or last > row + 2:
            return Evidence(Span(path, row, node.col_offset + 1, row, 10_000), text, Role.CAUSE, text)
        end = (node.end_col_offset or node.col_offset) + 1
        return Evidence(Span(path, row, node.col_offset + 1, last, end), text, Role.CAUSE, text)


@dataclass(frozen=True)
class _Failure:
    """An explained error with its frames, and the folder of the project."""

    explanation: MessageExplanation
    frames: Sequence[ProjectFrame]
    folder: str

    @property
    def fields(self) -> dict[str, str]:
        return dict(self.explanation.fields)

    def line(self) -> Iterator[tuple[_Parsed, ast.expr]]:
        """Yield the expressions of the failing statement."""
        parsed = _parsed(self.frames[-1].span.path)
        if parsed is not None:
            search = ValueSearch(self.frames)
            yield from ((parsed, node) for node in search.expressions(len(self.frames) - 1))

    def files(self, name: str = "") -> Iterator[_Parsed]:
        """Yield the files of the stack, then all others of the project, if they have a name."""
        own = (frame.span.path for frame in reversed(self.frames) if not frame.is_missing)
        for path in dict.fromkeys((*own, *islice(source_files(self.folder), _MOST_FILES))):
            parsed = _parsed(path, name)
            if parsed is not None:
                yield parsed


def named_places(
    explanation: MessageExplanation, frames: Sequence[ProjectFrame], folder: str
) -> tuple[Evidence, ...]:
    """Return the places of the names in a message; none if the error is about other things."""
    search = _SEARCHES.get(explanation.name)
    if search is None or not frames:
        return ()
    found: dict[tuple[str, int], Evidence] = {}
    for each in islice(search(_Failure(explanation, frames, folder)), 10 * _MOST):
        found.setdefault((each.span.path, each.span.row), each)
    return tuple(found.values())[:_MOST]


def _parsed(path: str, name: str = "") -> _Parsed | None:
    try:
        whole = whole_text(path)
        if name not in whole.text or len(whole.text) > LARGEST:
            return None
        return _Parsed(whole, ast.parse(whole.text))
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _unexpected_keyword(failure: _Failure) -> Iterator[Evidence]:
    """Yield the keyword in the failing call, or the key of a dictionary in `**settings`."""
    name = failure.fields["name"]
    calls = [(parsed, node) for parsed, node in failure.line() if isinstance(node, ast.Call)]
    owner = _owner(failure.fields["function"])
    named = [(parsed, call) for parsed, call in calls if last_name(call.func) == owner] or calls
    for parsed, call in named:
        for keyword in call.keywords:
            if keyword.arg == name:
                yield parsed.place(keyword.value, f"`{name}` is passed here")
    yield from _keys_of_splats(failure, named, name)


def _keys_of_splats(
    failure: _Failure, calls: list[tuple[_Parsed, ast.Call]], name: str
) -> Iterator[Evidence]:
    splats = [keyword for _, call in calls for keyword in call.keywords if keyword.arg is None]
    if not splats:
        return
    for parsed in failure.files(name):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Dict):
                for key in node.keys:
                    if isinstance(key, ast.Constant) and key.value == name:
                        yield parsed.place(key, f"`{name}` is a key here")


def _owner(function: str) -> str:
    """Return `Linear` for `Linear.__init__`, `step` for `Scheduler.step`."""
    first, _, last = function.rpartition(".")
    return first.rpartition(".")[2] if last in ("__init__", "__new__") else last


def _missing_arguments(failure: _Failure) -> Iterator[Evidence]:
    """Yield the call of the failing line without the arguments."""
    owner = _owner(failure.fields["function"])
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) == owner:
            yield parsed.place(node, f"`{failure.fields['name']}` is not passed here")


def _missing_attribute(failure: _Failure) -> Iterator[Evidence]:
    """Yield the class of the project with the missing attribute, and an attribute with a similar name."""
    name, owner = failure.fields["name"], failure.fields["type"]
    found = [
        (parsed, node)
        for parsed in failure.files(f"class {owner}")
        for node in ast.walk(parsed.tree)
        if isinstance(node, ast.ClassDef) and node.name == owner
    ]
    if len(found) != 1:
        return
    parsed, cls = found[0]
    attributes = _attributes(cls)
    if name in attributes:
        for node in attributes[name]:
            yield parsed.place(node, f"`{name}` is set here, too late or in another branch")
        return
    for similar in get_close_matches(name, list(attributes), 1, 0.75):
        yield parsed.place(attributes[similar][0], f"a similar name: `{similar}`")
    listed = ", ".join(f"`{each}`" for each in list(attributes)[:_MOST_ATTRIBUTES])
    more = " and others" if len(attributes) > _MOST_ATTRIBUTES else ""
    has = f"it has {listed}{more}" if attributes else "it sets none"
    yield parsed.place(cls, f"`{owner}` never sets `{name}`; {has}")


def _attributes(cls: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    """Return the attributes of a class with the statements of their assignments, and its methods."""
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(cls):
        targets: Sequence[ast.expr] = ()
        if isinstance(node, ast.Assign):
            targets = [
                each for target in node.targets for each in ast.walk(target) if isinstance(each, ast.expr)
            ]
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                found.setdefault(target.attr, []).append(node)  # type: ignore[arg-type]
    for method in cls.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("__"):
            found.setdefault(method.name, []).append(method)
    return found


def _numpy_of_gpu(failure: _Failure) -> Iterator[Evidence]:
    """Yield the conversions to NumPy in the failing line."""
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) in _CONVERSIONS:
            yield parsed.place(node, "`.cpu()` is missing here")


def _stored_parameters(failure: _Failure) -> Iterator[Evidence]:
    """Yield the `__init__` of the class of a failing line with `self.hparams`."""
    row = failure.frames[-1].span.row
    for parsed in islice(failure.files("save_hyperparameters"), _MOST_FILES):
        for cls in ast.walk(parsed.tree):
            if not isinstance(cls, ast.ClassDef):
                continue
            first = cls.lineno - parsed.whole.rows_before
            if not first <= row <= (cls.end_lineno or 0) - parsed.whole.rows_before:
                continue
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                    yield parsed.place(method, "`self.hparams` has the parameters of this method")


def _similar_attribute(failure: _Failure) -> Iterator[Evidence]:
    if failure.fields["type"] == "AttributeDict":
        yield from _stored_parameters(failure)
    else:
        yield from _missing_attribute(failure)


def _text_settings(failure: _Failure) -> Iterator[Evidence]:
    """Yield the settings of a failing call with text in them: `1e-4` in YAML, an option without a type."""
    names = {
        last_name(keyword.value) or keyword.arg or ""
        for _, node in failure.line()
        if isinstance(node, ast.Call)
        for keyword in node.keywords
    }
    names |= {
        last_name(each) for _, node in failure.line() if isinstance(node, ast.Call) for each in node.args
    }
    for path in islice(setting_files(failure.folder), _MOST_FILES):
        for row, line in enumerate(_lines(path), 1):
            found = _TEXT_NUMBER.match(line)
            if found is not None and found["name"] in names:
                text = f"YAML reads `{found['value']}` as text; write `{_with_point(found['value'])}`"
                yield Evidence(Span(path, row, 1, row, len(line) + 1), text, Role.CAUSE, text)
    for parsed in failure.files("add_argument"):
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.Call) and last_name(node.func) == "add_argument" and node.args:
                option = node.args[-1]
                given = {keyword.arg for keyword in node.keywords}
                if isinstance(option, ast.Constant) and given.isdisjoint({"type", "action"}):
                    if str(option.value).lstrip("-").replace("-", "_") in names:
                        yield parsed.place(node, "this option is text: `type=float` is missing")


def _lines(path: str) -> list[str]:
    if not path.endswith((".yaml", ".yml")):
        return []
    try:
        return read_settings(path).decode("utf-8", "replace").splitlines()
    except Unreadable:
        return []


def _with_point(number: str) -> str:
    digits, _, exponent = number.partition("e")
    return f"{digits}.0e{exponent}"


def _local_functions(failure: _Failure) -> Iterator[Evidence]:
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


def _image_modes(failure: _Failure) -> Iterator[Evidence]:
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


def _missing_collators(failure: _Failure) -> Iterator[Evidence]:
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


def _tuple_results(failure: _Failure) -> Iterator[Evidence]:
    """Yield the calls with the name of a tuple's type in the failing line."""
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and last_name(node.func) == failure.fields["name"]:
            yield parsed.place(node, "this returns values and indices")


def _assigned_arguments(failure: _Failure) -> Iterator[Evidence]:
    """Yield the arguments of the failing call, and their assignments."""
    search = ValueSearch(failure.frames)
    for parsed, node in failure.line():
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            yield parsed.place(node, "both are compared here")
            for each in node.args:
                search.follow(len(failure.frames) - 1, each)
            break
    for step in search.steps:
        text = f"`{step.name}` is set here"
        yield Evidence(Span(step.path, step.row, 1, step.row, 10_000), text, Role.CAUSE, text)


def _conditional_assignments(failure: _Failure) -> Iterator[Evidence]:
    """Yield the assignments of an unset variable in the function of the failing line."""
    name, row = failure.fields["name"], failure.frames[-1].span.row
    parsed = _parsed(failure.frames[-1].span.path)
    for function in ast.walk(parsed.tree) if parsed is not None else ():
        if parsed is None or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        shown = row + parsed.whole.rows_before
        if not function.lineno <= shown <= (function.end_lineno or 0):
            continue
        for node in ast.walk(function):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.For, ast.Delete, ast.With)):
                stored = {
                    each.id
                    for each in _own_expressions(node)
                    if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
                }
                if name in stored and node.lineno != shown:
                    yield parsed.place(node, f"`{name}` is set only if this line runs")


def _own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """Yield the expressions of a statement, without those of its body."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt):
            yield from ast.walk(child)


def _similar_names(failure: _Failure) -> Iterator[Evidence]:
    """Yield the assignments, functions and imports with a name similar to an unknown one."""
    name = failure.fields["name"]
    parsed = _parsed(failure.frames[-1].span.path)
    if parsed is None:
        return
    found: dict[str, ast.stmt] = {}
    for node in ast.walk(parsed.tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, node)
    if name in found:
        yield parsed.place(found[name], f"`{name}` is set here, later or in another function")
        return
    for similar in get_close_matches(name, list(found), 1, 0.8):
        yield parsed.place(found[similar], f"a similar name: `{similar}`")


def _optimizers(failure: _Failure) -> Iterator[Evidence]:
    """Yield the results of `configure_optimizers`."""
    for parsed in failure.files("def configure_optimizers"):
        for function in ast.walk(parsed.tree):
            if isinstance(function, ast.FunctionDef) and function.name == "configure_optimizers":
                for each in ast.walk(function):
                    if isinstance(each, ast.Return):
                        yield parsed.place(each, "`configure_optimizers` returns it here")


def _metric(failure: _Failure) -> Iterator[Evidence]:
    """Yield the places of a metric's name, and those of the logged names."""
    full = failure.fields["name"]
    wanted = {full, full.removeprefix("eval_")}
    for parsed in failure.files():
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
                if node.value.value in wanted:
                    yield parsed.place(node.value, f"`{full}` is wanted here")
    for parsed in failure.files():
        for key in _logged(parsed.tree):
            if key.value not in wanted:
                yield parsed.place(key, f"`{key.value!s}` is logged here")


def _logged(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the names in `self.log("loss", …)`, and those of the results of `compute_metrics`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in ("log", "log_dict") and node.args:
            first = node.args[0]
            keys = first.keys if isinstance(first, ast.Dict) else [first]
            yield from (key for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
        elif isinstance(node, ast.FunctionDef) and "metric" in node.name:
            for each in ast.walk(node):
                if isinstance(each, ast.Return) and isinstance(each.value, ast.Dict):
                    yield from (key for key in each.value.keys if isinstance(key, ast.Constant))


def _mapped_function(failure: _Failure) -> Iterator[Evidence]:
    """Yield the results of the function given to `map` in the failing line."""
    for _, node in failure.line():
        if not isinstance(node, ast.Call) or last_name(node.func) not in ("map", "filter"):
            continue
        given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "function")]
        names = {last_name(each) for each in given}
        for parsed in failure.files():
            for function in ast.walk(parsed.tree):
                if isinstance(function, ast.FunctionDef) and function.name in names:
                    for each in ast.walk(function):
                        if isinstance(each, ast.Return):
                            yield parsed.place(each, f"`{function.name}` returns the columns here")


def _unused_layers(failure: _Failure) -> Iterator[Evidence]:
    """Yield the layers of a module with no certain use in its `forward`."""
    named = {each.strip().partition(".")[0] for each in failure.fields.get("names", "").split(",")}
    for parsed in failure.files("def forward"):
        for cls in ast.walk(parsed.tree):
            if isinstance(cls, ast.ClassDef):
                for name, node in _left_out(cls):
                    if not any(named) or name in named or not failure.fields.get("names"):
                        yield parsed.place(node, f"`forward` may leave `{name}` out")
    for parsed in failure.files("DistributedDataParallel"):
        for call in ast.walk(parsed.tree):
            if isinstance(call, ast.Call) and last_name(call.func) in ("DDP", "DistributedDataParallel"):
                if not any(keyword.arg == "find_unused_parameters" for keyword in call.keywords):
                    yield parsed.place(call, "`find_unused_parameters=True` is not set here")


def _left_out(cls: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the layers of `__init__` without a use in `forward`, or with one under a condition only."""
    methods = {node.name: node for node in cls.body if isinstance(node, ast.FunctionDef)}
    forward, setup = methods.get("forward"), methods.get("__init__")
    if forward is None or setup is None:
        return
    used = {
        node.attr
        for name, method in methods.items()
        if name != "__init__"
        for statement in method.body
        if name != "forward" or not isinstance(statement, ast.If)
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    for statement in setup.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
            name = last_name(statement.targets[0])
            if _LAYERS.search(ast.unparse(statement.value.func)) and name not in used:
                yield name, statement


_SEARCHES: dict[str, Callable[[_Failure], Iterator[Evidence]]] = {
    "unexpected-keyword": _unexpected_keyword,
    "missing-arguments": _missing_arguments,
    "missing-attribute": _similar_attribute,
    "text-as-number": _text_settings,
    "worker-pickling": _local_functions,
    "conv-channels": _image_modes,
    "stacked-sizes": _image_modes,
    "ragged-rows": _missing_collators,
    "result-tuple-written": _tuple_results,
    "unset-variable": _conditional_assignments,
    "unknown-name": _similar_names,
    "sklearn-lengths": _assigned_arguments,
    "sklearn-score-types": _assigned_arguments,
    "early-stopping-metric": _metric,
    "best-metric": _metric,
    "scheduler-metric": _metric,
    "mapped-result": _mapped_function,
    "unequal-columns": _mapped_function,
    "lightning-optimizers": _optimizers,
    "numpy-of-gpu": _numpy_of_gpu,
    "unused-parameters": _unused_layers,
}
"""The search for each error page."""
