"""SF407: an argument removed from transformers."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import dropped
from shapefix.checks.support.version_guards import is_guarded
from shapefix.diagnostics import Applicability, Diagnostic, Edit, ExpectedError, Fix
from shapefix.domains.versions import RemovedArgument

_ARGUMENTS = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
}
RENAMED = {
    "TrainingArguments": _ARGUMENTS,
    "Seq2SeqTrainingArguments": _ARGUMENTS,
    "Trainer": {"tokenizer": "processing_class"},
    "Seq2SeqTrainer": {"tokenizer": "processing_class"},
}
"""New names of arguments with the same meaning."""
OBSOLETE = frozenset({"save_safetensors", "use_mps_device"})
"""Arguments whose value `True` is what newer versions always do."""


@rule("SF407", on=RemovedArgument)
def removed_argument(event: RemovedArgument, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    if is_guarded(event.place, "TypeError"):
        return
    renamed = RENAMED.get(event.function, {}).get(event.keyword)
    instead = f"; it is now `{renamed}`" if renamed else ""
    yield rule.diagnostic(
        event.place.module.span(event.given),
        f"`{event.function}` has no argument `{event.keyword}` since transformers {event.version}{instead}",
        error=ExpectedError("TypeError", f"got an unexpected keyword argument '{event.keyword}'"),
        evidence=call_trace(event),
        fixes=_fixes(event, renamed),
        habit=f"argument `{event.keyword}`",
    )


def _fixes(event: RemovedArgument, renamed: str | None) -> Iterator[Fix]:
    call, given, module = event.place.node, event.given, event.place.module
    if renamed is not None and given.keyword is not None and renamed not in event.others:
        edit = Edit(module.span(given.keyword), renamed)
        yield Fix(Applicability.SAFE, f"rename it to `{renamed}`", (edit,))
    elif (
        event.keyword in OBSOLETE
        and isinstance(given.value, cst.Name)
        and given.value.value == "True"
        and isinstance(call, cst.Call)
        and call.args[0] is not given
    ):
        yield Fix(Applicability.SAFE, "remove it: this is the default now", (dropped(module, call, given),))
