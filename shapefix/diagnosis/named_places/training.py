"""Places of metrics, optimizers, and the layers of a module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from shapefix.diagnosis.named_places.failures import ExplainedFailure, search_for
from shapefix.diagnosis.size_origins import last_name
from shapefix.diagnostics import Evidence

_LAYERS = re.compile(r"\b(?:nn\.)?(?:[A-Z]\w*)$")


@search_for("empty-parameters")
def _frozen_parameters(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the lines with `requires_grad`, and the optimizers, for parameters without any to train."""
    for parsed in failure.files("requires_grad"):
        for node in ast.walk(parsed.tree):
            is_set = isinstance(node, ast.Assign) and last_name(node.targets[0]) == "requires_grad"
            is_called = isinstance(node, ast.Call) and last_name(node.func) == "requires_grad_"
            if isinstance(node, (ast.Assign, ast.Call)) and (is_set or is_called):
                yield parsed.place(node, "this line decides what is trained")


@search_for("lightning-optimizers", "not-unpackable")
def _optimizers(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the results of `configure_optimizers`; for an unpacked value, if it is its result."""
    called = {last_name(node.func) for _, node in failure.line() if isinstance(node, ast.Call)}
    if failure.explanation.name == "not-unpackable" and called.isdisjoint({"optimizers", "lr_schedulers"}):
        return
    for parsed in failure.files("def configure_optimizers"):
        for function in ast.walk(parsed.tree):
            if isinstance(function, ast.FunctionDef) and function.name == "configure_optimizers":
                for each in ast.walk(function):
                    if isinstance(each, ast.Return):
                        yield parsed.place(each, "`configure_optimizers` returns it here")


@search_for("early-stopping-metric", "best-metric", "scheduler-metric")
def _metric(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the places of a metric's name, and those of the logged names."""
    full = failure.fields["name"]
    wanted = {full, full.removeprefix("eval_")}
    for parsed in failure.files():
        for node in ast.walk(parsed.tree):
            if isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
                if node.value.value in wanted:
                    yield parsed.place(node.value, f"`{full}` is wanted here")
    for parsed in failure.files():
        for key in logged_names(parsed.tree):
            if key.value not in wanted:
                yield parsed.place(key, f"`{key.value!s}` is logged here")


def logged_names(tree: ast.Module) -> Iterator[ast.Constant]:
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


@search_for("unused-parameters")
def _unused_layers(failure: ExplainedFailure) -> Iterator[Evidence]:
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


@search_for("ids-or-embeddings", "tensor-of-text")
def _data_of_trainer(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the dataset of the last trainer before a failing `train` or `evaluate`."""
    for parsed, node in failure.line():
        called = last_name(node.func) if isinstance(node, ast.Call) else ""
        wanted = {"train": "train_dataset", "evaluate": "eval_dataset", "predict": "test_dataset"}.get(called)
        before = [
            each
            for each in ast.walk(parsed.tree)
            if isinstance(each, ast.Call) and last_name(each.func).endswith("Trainer")
            if each.lineno < node.lineno
        ]
        for keyword in max(before, key=lambda call: call.lineno).keywords if before else ():
            if wanted is not None and keyword.arg == wanted:
                yield parsed.place(keyword.value, "the batches are made of this dataset")


@search_for("inference-tensor-saved", "inference-tensor-written")
def _inference_modes(failure: ExplainedFailure) -> Iterator[Evidence]:
    """Yield the uses of `torch.inference_mode()`, and the calls of the functions with it."""
    named = set()
    for parsed in failure.files("inference_mode"):
        for node in ast.walk(parsed.tree):
            stated = node.decorator_list if isinstance(node, ast.FunctionDef) else ()
            if isinstance(node, ast.With):
                stated = [item.context_expr for item in node.items]
            for each in stated:
                if "inference_mode" in ast.unparse(each):
                    yield parsed.place(each, "tensors made here cannot be used in training")
                    if isinstance(node, ast.FunctionDef):
                        named.add(node.name)
    for name in sorted(named):
        for parsed, call in failure.calls(name):
            yield parsed.place(call, f"`{name}` returns such a tensor")
