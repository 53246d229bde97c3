"""SF408: contradictory settings of a `Trainer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import appended, argument, replaced
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.versions import DataRequired
from shapefix.interpreter.classes import member
from shapefix.interpreter.events import OperationCalled
from shapefix.interpreter.modules import Place, nodes
from shapefix.interpreter.values import Constant, FunctionValue, InstanceValue, LibraryObject, Value

_ARGUMENTS = frozenset({"transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments"})
_TRAINERS = frozenset(
    {
        "transformers.Trainer",
        "transformers.Seq2SeqTrainer",
        "transformers.Trainer.__init__",
        "transformers.Seq2SeqTrainer.__init__",
    }
)
_EVALUATION = ("eval_strategy", "evaluation_strategy")
_STRATEGIES = frozenset({"no", "steps", "epoch", "best"})
_OWN = frozenset(
    {
        "loss",
        "runtime",
        "samples_per_second",
        "steps_per_second",
        "model_preparation_time",
        "jit_compilation_time",
        "num_input_tokens_seen",
    }
)
"""Metrics that a trainer adds itself."""
_STEPS = 500
"""The default of `save_steps` and `logging_steps`."""
_EVALUATING = ("evaluate", "evaluation_loop", "prediction_loop", "get_eval_dataloader", "_evaluate")
_MISMATCH = ExpectedError("ValueError", "load_best_model_at_end requires the save and eval strategy to match")
_MULTIPLE = ExpectedError(
    "ValueError", "load_best_model_at_end requires the saving steps to be a round multiple"
)
_NO_DATA = ExpectedError("ValueError", "you didn't pass an `eval_dataset` to `Trainer`")
_NO_METRIC = ExpectedError("KeyError", "which is not found in the evaluation metrics")
_ARITY = ExpectedError("TypeError", "positional argument")


@rule("SF408", on=OperationCalled)
def trainer_settings(event: OperationCalled, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    node = event.place.node
    if not isinstance(node, cst.Call) or any(each.star for each in node.args):
        return
    if event.function in _ARGUMENTS:
        yield from _saved_otherwise(event, node, context, rule)
    elif event.function in _TRAINERS:
        given = event.keywords.get("args")
        settings = (
            given if given is not None else (event.positional[1] if len(event.positional) > 1 else None)
        )
        if isinstance(settings, LibraryObject) and settings.kind in _ARGUMENTS and settings.place is not None:
            yield from _without_data(event, settings, settings.place, rule)
            yield from _without_metric(event, settings, settings.place, rule)
        yield from _arguments_of_metrics(event, rule)


def _saved_otherwise(
    event: OperationCalled, node: cst.Call, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    """Report a best model without a checkpoint for each evaluation."""
    fields = event.keywords
    if len(event.positional) > 1 or _constant(fields.get("load_best_model_at_end")) is not True:
        return
    evaluated, saved = _strategy(fields, _EVALUATION, "no"), _strategy(fields, ("save_strategy",), "steps")
    if evaluated is None or saved is None or saved == "best" or "evaluate_during_training" in fields:
        return
    if evaluated != saved:
        reason = f"evaluates by {_words(evaluated)} and saves by {_words(saved)}"
        if "no" in (evaluated, saved):
            reason = "never evaluates" if evaluated == "no" else "never saves"
        error, fixes = _MISMATCH, list(_same_strategy(event.place, node, fields, evaluated, saved))
        if evaluated == "no" and _is_without_data(event, context):
            fixes = list(_last_model(event.place, node))
    elif evaluated == "steps":
        steps = _steps(fields)
        if steps is None or steps[0] % steps[1] == 0:
            return
        reason = f"saves after {steps[0]} steps, not a multiple of the {steps[1]} steps of an evaluation"
        error = _MULTIPLE
        fixes = [Fix(Applicability.DISPLAY, "make `save_steps` a multiple of `eval_steps`", ())]
    else:
        return
    yield rule.diagnostic(
        event.place.span,
        f"`load_best_model_at_end=True` needs a checkpoint for each evaluation, but the trainer {reason}",
        evidence=[*call_trace(event), Evidence(event.place.span, reason)],
        error=error,
        fixes=fixes,
    )


def _is_without_data(settings: OperationCalled, context: CheckContext) -> bool:
    """Whether a trainer gets the settings, and no data to evaluate on."""
    return any(
        isinstance(event, OperationCalled)
        and event.function in _TRAINERS
        and settings.result in (*event.positional[1:2], event.keywords.get("args"))
        and len(event.positional) < 5
        and "eval_dataset" not in event.keywords
        for event in context.events
    )


def _last_model(place: Place, node: cst.Call) -> Iterator[Fix]:
    """Yield the fix to keep the last model instead of the best one."""
    stated = argument(node, len(node.args), "load_best_model_at_end")
    if stated is not None:
        text = "load_best_model_at_end=False"
        yield Fix(Applicability.UNSAFE, f"write `{text}`", (replaced(place.module, stated, text),))


def _same_strategy(
    place: Place, node: cst.Call, fields: Mapping[str, Value], evaluated: str, saved: str
) -> Iterator[Fix]:
    """Yield the fix to save and evaluate at the same times."""
    if evaluated == "no" and saved == "no":
        return
    names = ("save_strategy",) if evaluated != "no" else tuple(each for each in _EVALUATION if each in fields)
    name = names[0] if names else "eval_strategy"
    value = evaluated if evaluated != "no" else saved
    stated = argument(node, len(node.args), name)
    text = f'{name}="{value}"'
    edit = appended(place.module, node, text) if stated is None else replaced(place.module, stated, text)
    yield Fix(Applicability.UNSAFE, f"write `{text}`", (edit,))


def _without_data(
    event: OperationCalled, settings: LibraryObject, made: Place, rule: Rule
) -> Iterator[Diagnostic]:
    """Report evaluations requested without data."""
    evaluated = _strategy(settings.fields, _EVALUATION, "no")
    data = event.keywords.get("eval_dataset", event.positional[4] if len(event.positional) > 4 else None)
    if evaluated not in ("steps", "epoch") or not (data is None or _is_none(data)) or _evaluates(event):
        return
    if settings.facts.known(DataRequired) is None:
        return
    yield rule.diagnostic(
        event.place.span,
        f"the trainer is to evaluate by {_words(evaluated)}, but gets no `eval_dataset`",
        evidence=[
            *call_trace(event),
            Evidence(
                _stated(made, *_EVALUATION).span, f"asks for evaluations by {_words(evaluated)}", Role.CAUSE
            ),
            Evidence(event.place.span, "no `eval_dataset` is given"),
        ],
        error=_NO_DATA,
        fixes=[Fix(Applicability.DISPLAY, 'pass an `eval_dataset`, or set the strategy to "no"', ())],
    )


def _without_metric(
    event: OperationCalled, settings: LibraryObject, made: Place, rule: Rule
) -> Iterator[Diagnostic]:
    """Report a metric for the best model, absent from the metrics of the project."""
    fields = settings.fields
    wanted = _constant(fields.get("metric_for_best_model"))
    if not isinstance(wanted, str) or not _chooses_best(fields):
        return
    keys: tuple[str, ...] | None = ()
    name = wanted.removeprefix("eval_")
    if name in _OWN or _evaluates(event) or len(event.positional) > 5:
        return
    function = event.keywords.get("compute_metrics")
    if function is None or _is_none(function):
        if any(name.endswith(f"_{own}") for own in _OWN) or "callbacks" in event.keywords:
            # A dictionary of datasets: the name of one of them is in front.
            return
        reason = "no `compute_metrics` is given"
        shown = event.place.span
    else:
        keys = _keys(function)
        if keys is None or any(name.endswith(each.removeprefix("eval_")) for each in (*keys, *_OWN)):
            return
        reason = f"`compute_metrics` returns {', '.join(f'`{each}`' for each in keys)}"
        shown = _result(function).span
    yield rule.diagnostic(
        event.place.span,
        f"the best model is chosen by `{wanted}`, but {reason}",
        evidence=[
            *call_trace(event),
            Evidence(
                _stated(made, "metric_for_best_model").span,
                f"asks for the model with the best `{wanted}`",
                Role.CAUSE,
            ),
            Evidence(shown, reason),
        ],
        error=_NO_METRIC,
        fixes=[_only_metric(_stated(made, "metric_for_best_model"), made, keys or ())],
    )


def _chooses_best(fields: Mapping[str, Value]) -> bool:
    """Whether each evaluation is compared with the best one."""
    saves = _constant(fields.get("save_strategy")) == "best"
    is_wanted = saves or _constant(fields.get("load_best_model_at_end")) is True
    return is_wanted and _strategy(fields, _EVALUATION, "no") in ("steps", "epoch")


def _arguments_of_metrics(event: OperationCalled, rule: Rule) -> Iterator[Diagnostic]:
    """Report a function for metrics with more arguments than its caller passes."""
    function = event.keywords.get("compute_metrics")
    if not isinstance(function, FunctionValue) or function.owner is not None or _evaluates(event):
        return
    params = function.node.params
    if isinstance(function.node, cst.FunctionDef) and function.node.decorators:
        return
    required = [each.name.value for each in (*params.posonly_params, *params.params) if each.default is None]
    count = len(params.posonly_params) + len(params.params)
    if len(required) <= 1 and (count or isinstance(params.star_arg, cst.Param)):
        return
    if "compute_result" in required:
        return
    names = ", ".join(f"`{each}`" for each in required)
    reason = f"it takes {names}" if required else "it takes no argument"
    yield rule.diagnostic(
        _place(function).span,
        f"the trainer calls `{function.name}` with one argument, an `EvalPrediction`; {reason}",
        evidence=[*call_trace(event), Evidence(event.place.span, "passed to the trainer here", Role.CAUSE)],
        error=_ARITY,
        fixes=[
            Fix(Applicability.DISPLAY, "take one argument, and unpack it: `logits, labels = prediction`", ())
        ],
    )


def _only_metric(stated: Place, made: Place, keys: tuple[str, ...]) -> Fix:
    """Return the fix to name the only metric of the project."""
    if len(keys) != 1 or stated is made or not isinstance(stated.node, cst.SimpleString):
        return Fix(Applicability.DISPLAY, "name a metric that `compute_metrics` returns", ())
    edit = Edit(stated.span, f'"{keys[0]}"')
    return Fix(Applicability.UNSAFE, f"choose it by `{keys[0]}`", (edit,))


def _stated(made: Place, *names: str) -> Place:
    """Return the value of a setting in the call for the settings; the call itself without one."""
    for each in made.node.args if isinstance(made.node, cst.Call) else ():
        if each.keyword is not None and each.keyword.value in names:
            return Place(made.module, each.value)
    return made


def _place(function: Value) -> Place:
    assert isinstance(function, FunctionValue)
    node = function.node
    return Place(function.module, node.name if isinstance(node, cst.FunctionDef) else node)


def _result(function: Value) -> Place:
    """Return the last `return` of a function; its name without one."""
    assert isinstance(function, FunctionValue)
    returned = [each for each in nodes(function.node) if isinstance(each, cst.Return)]
    return Place(function.module, returned[-1]) if returned else _place(function)


def _keys(function: Value) -> tuple[str, ...] | None:
    """Return the names in the dictionaries of all return statements, None if one is not literal."""
    if not isinstance(function, FunctionValue) or not isinstance(function.node, cst.FunctionDef):
        return None
    if function.node.decorators or function.owner is not None:
        return None
    returns = [each for each in nodes(function.node) if isinstance(each, cst.Return)]
    found: list[str] = []
    for each in returns:
        if not isinstance(each.value, cst.Dict):
            return None
        for item in each.value.elements:
            if not isinstance(item, cst.DictElement) or not isinstance(item.key, cst.SimpleString):
                return None
            found.append(str(item.key.evaluated_value))
    return tuple(dict.fromkeys(found)) or None


def _evaluates(event: OperationCalled) -> bool:
    """Whether a trainer of the project evaluates in its own way."""
    trainer = event.receiver if event.receiver is not None else event.result
    if event.function.endswith("__init__") and not isinstance(trainer, InstanceValue):
        return True
    if not isinstance(trainer, InstanceValue):
        return False
    return any(member(trainer.cls, name) is not None for name in _EVALUATING)


def _strategy(fields: Mapping[str, Value], names: tuple[str, ...], default: str) -> str | None:
    """Return a strategy as stated, None if it is not known."""
    for name in names:
        if name in fields:
            value = _constant(fields[name])
            return value if isinstance(value, str) and value in _STRATEGIES else None
    return default


def _steps(fields: Mapping[str, Value]) -> tuple[int, int] | None:
    """Return the steps between checkpoints, and between evaluations."""
    found = []
    for names in (("save_steps",), ("eval_steps", "logging_steps")):
        stated = [fields[name] for name in names if name in fields and not _is_none(fields[name])]
        value = _constant(stated[0]) if stated else _STEPS
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return None
        found.append(value)
    return found[0], found[1]


def _constant(value: Value | None) -> object:
    return value.value if isinstance(value, Constant) else None


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _words(strategy: str) -> str:
    return {"no": "never", "epoch": "epoch", "steps": "steps"}.get(strategy, strategy)
