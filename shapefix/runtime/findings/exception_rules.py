"""Which rule an exception belongs to: its message, held against what was measured where it was raised."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shapefix.runtime.findings import missing_loss, ragged_rows
from shapefix.runtime.findings.exception_report import Explanation, given, named, said, steps
from shapefix.runtime.observations import Failure, Observations, span
from shapefix.runtime.report.formatting import sized

Explain = Callable[[Failure, Observations], Explanation | None]
_BY_MESSAGE: list[tuple[re.Pattern[str], Explain]] = []


def explanation(failure: Failure, observed: Observations) -> Explanation | None:
    """The rule that a failure belongs to, None where no rule is known for it or no line of the user's."""
    if not failure.stack:
        return None
    for pattern, explain in _BY_MESSAGE:
        if pattern.search(failure.message):
            found = explain(failure, observed)
            if found is not None:
                return found
    return None


def _on(pattern: str) -> Callable[[Explain], Explain]:
    def register(explain: Explain) -> Explain:
        _BY_MESSAGE.append((re.compile(pattern), explain))
        return explain

    return register


def _of_module(failure: Failure, code: str, message: str) -> Explanation:
    """A module that does not fit what it gets: found where it was constructed, if that is known."""
    born = span(failure.details["module"]["born"])
    return Explanation(code, message, born or failure.stack[0], steps(failure))


def _module_of(failure: Failure, *types: str) -> Mapping[str, Any] | None:
    module = failure.details.get("module")
    return module if module and module["type"].startswith(types) else None


def _first_size(module: Mapping[str, Any]) -> tuple[str, list[int]] | None:
    given = [*module["input"]["args"], *module["input"]["kwargs"].values()]
    tensor = next((each for each in given if each["is"] == "tensor"), None)
    return None if tensor is None else (sized(tensor), tensor["size"])


@_on(
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch, got input|"
    r"must have same reduction dim"  # where only sizes are computed
)
def _product(failure: Failure, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Linear", "LazyLinear")
    if module is None:
        return Explanation("SF503", said(failure), failure.stack[0], steps(failure))
    measured, wanted = _first_size(module), module["holds"].get("in_features")
    if measured is None or wanted is None or not measured[1]:
        return None
    text, size = measured
    return _of_module(
        failure,
        "SF501",
        f"{named(module)} takes in_features={wanted}, and gets {text}: last size {size[-1]}",
    )


@_on(r"channels, but got|expected input.* to have|Expected \dD .*input to conv|Calculated padded input size")
def _channels(failure: Failure, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Conv")
    size = _first_size(module) if module else None
    if module is None or size is None:
        return None
    wanted = module["holds"].get("in_channels")
    return _of_module(failure, "SF506", f"{named(module)} takes in_channels={wanted}, and gets {size[0]}")


@_on(r"running_mean should contain|Given normalized_shape|number of channels in input|expected \dD")
def _norm(failure: Failure, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")
    size = _first_size(module) if module else None
    if module is None or size is None:
        return None
    holds = module["holds"]
    wanted = holds.get("num_features") or holds.get("num_channels") or holds.get("normalized_shape")
    features = f" of {wanted} features" if wanted else ""
    return _of_module(failure, "SF511", f"{named(module)}{features} gets {size[0]}")


@_on(r"index out of range in self")
def _embedding(failure: Failure, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Embedding")
    if module is None:
        return None
    rows = module["holds"].get("num_embeddings")
    numbers = next((each for each in module["numbers"] if each), None)
    if rows is None or numbers is None:
        return None
    return _of_module(
        failure,
        "SF505",
        f"{named(module)} has rows 0 to {rows - 1}, and is asked for {numbers[0]} to {numbers[1]}",
    )


def _here(pattern: str, code: str) -> None:
    """An exception that is all about the operands of the user's own line."""

    @_on(pattern)
    def explain(failure: Failure, observed: Observations) -> Explanation | None:
        return Explanation(code, said(failure), failure.stack[0], steps(failure))


_here(r"view size is not compatible|Cannot view a tensor with shape", "SF101")
_here(r"shape '\[.*\]' is invalid for input of size", "SF507")
_here(r"Sizes of tensors must match except in dimension", "SF504")
_here(r"batch1 tensor|batch2 tensor|must be batches of|einsum\(\): ", "SF503")
_here(r"Expected all tensors to be on the same device|should be either on .* or on the same device", "SF602")
_here(r"does not have a padding token", "SF305")
_here(r"element 0 of tensors does not require grad", "SF803")


@_on(r"input batch_size|[Tt]arget size|target expected|Expected target size|out of bounds|1D target")
def _loss(failure: Failure, observed: Observations) -> Explanation | None:
    if failure.where != "loss" and _module_of(failure, "CrossEntropy", "BCE", "NLL", "CTC") is None:
        return None
    call = failure.details.get("given")
    text = f"{said(failure)}; given {given(call)}" if call else said(failure)
    numbers = next((each for each in (call or {}).get("numbers", ()) if each), None)
    if numbers and "out of bounds" in failure.message:
        text += f", targets from {numbers[0]} to {numbers[1]}"
    return Explanation("SF508", text, failure.stack[0], steps(failure))


@_on(r"must match the size of tensor b|Attempting to broadcast a dimension of length")
def _elementwise(failure: Failure, observed: Observations) -> Explanation | None:
    code = "SF508" if failure.where == "loss" else "SF510"
    return Explanation(code, said(failure), failure.stack[0], steps(failure))


@_on(
    r"expected scalar type|following scalar types|expected target dtype|[Ff]ound dtype|"
    r"must have the same dtype|result type .* can't be cast|not implemented for '"
)
def _dtype(failure: Failure, observed: Observations) -> Explanation | None:
    if failure.where not in ("loss", "module", "backward"):
        return None
    return Explanation("SF512", said(failure), failure.stack[0], steps(failure))


@_on(r"forward\(\) got an unexpected keyword argument")
def _key(failure: Failure, observed: Observations) -> Explanation | None:
    module, key = failure.details.get("module"), re.search(r"'(.+?)'", failure.message)
    if module is None or key is None or key[1] not in module["input"]["kwargs"]:
        return None
    message = f"`{module['type']}.forward` takes no `{key[1]}`, which the batch has: TypeError at each call"
    return Explanation("SF401", message, failure.stack[0], steps(failure))


@_on(r"forward\(\) missing \d+ required (positional|keyword-only) argument")
def _missing(failure: Failure, observed: Observations) -> Explanation | None:
    module = failure.details.get("module")
    if module is None or not module["input"]["kwargs"]:
        return None
    missing = re.sub(r"^.*argument", "argument", failure.message)
    message = f"`{module['type']}.forward` is called without {missing}"
    return Explanation("SF403", message, failure.stack[0], steps(failure))


_on(missing_loss.MESSAGE)(missing_loss.explain)
for _words in ragged_rows.MESSAGES:
    _on(_words)(ragged_rows.explain)
