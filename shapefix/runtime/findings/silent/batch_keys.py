"""Keys of a batch accepted by a model without an error, but unused."""

from __future__ import annotations

from collections.abc import Iterator

from shapefix.checks.support.near_keys import near
from shapefix.diagnostics import Evidence, Span
from shapefix.runtime.findings.silent.registry import RuntimeFinding, silent_fault
from shapefix.runtime.observations import Observations, span
from shapefix.runtime.protocol import ForwardSignatureLine, ModuleEnterLine, SignatureUse

_LOSS_ONLY = "labels"


@silent_fault
def _ignored(observed: Observations) -> Iterator[RuntimeFinding]:
    for model, at, signature in _calls(observed):
        for key in signature["extra"]:
            meant = near(key, signature["parameters"])
            # Without labels a model returns no loss, which is fine if the script computes the loss itself.
            if meant is None or meant in signature["passed"] or meant == _LOSS_ONLY:
                continue
            yield RuntimeFinding(
                "ignored-batch-key",
                f"`{model}` ignores `{key}` (accepted by `**kwargs`); it reads `{meant}`",
                at,
                (Evidence(at, f"called here with {_listed([*signature['passed'], *signature['extra']])}"),),
            )


@silent_fault
def _unread(observed: Observations) -> Iterator[RuntimeFinding]:
    for model, at, signature in _calls(observed):
        if signature["unread"]:
            names = _listed(signature["unread"])
            plural = "s" if len(signature["unread"]) > 1 else ""
            yield RuntimeFinding(
                "unread-argument",
                f"`{model}.forward` never reads its argument{plural} {names}",
                at,
                (Evidence(at, f"`{model}` called here"),),
            )


def _calls(observed: Observations) -> Iterator[tuple[str, Span, SignatureUse]]:
    """Calls with a known signature: the model's class, the place of the call, and the signature."""
    entered = {line["id"]: line for line in observed.of(ModuleEnterLine)}
    for line in observed.of(ForwardSignatureLine):
        model = outer = entered[line["id"]]
        while outer["parent"] is not None:
            outer = entered[outer["parent"]]
        at = span(outer["called_at"])
        if at is not None:
            yield model["type"], at, line["signature"]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
