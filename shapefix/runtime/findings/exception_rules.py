"""Find the rule for an exception, from its message and the measured values."""

from __future__ import annotations

import re
from collections.abc import Callable

from shapefix.runtime.findings import missing_loss, ragged_rows
from shapefix.runtime.findings.error_catalog import rule_of_failure
from shapefix.runtime.findings.exception_report import (
    Explanation,
    call_text,
    exception_text,
    measurements,
    module_label,
)
from shapefix.runtime.observations import Observations, RaisedException, span
from shapefix.runtime.protocol import ModuleDetails
from shapefix.runtime.report.formatting import dtype_and_size

Explain = Callable[[RaisedException, Observations], Explanation | None]
_BY_MESSAGE: list[tuple[re.Pattern[str], Explain]] = []


def explanation(failure: RaisedException, observed: Observations) -> Explanation | None:
    """The rule for an exception, with its message, if any."""
    if not failure.stack:
        return None
    for pattern, explain in _BY_MESSAGE:
        if pattern.search(failure.message):
            found = explain(failure, observed)
            if found is not None:
                return found
    code = rule_of_failure(failure)
    if code is None:
        return None
    return Explanation(code, exception_text(failure), failure.stack[0], measurements(failure))


def _on(pattern: str) -> Callable[[Explain], Explain]:
    def register(explain: Explain) -> Explain:
        _BY_MESSAGE.append((re.compile(pattern), explain))
        return explain

    return register


def _of_module(failure: RaisedException, code: str, message: str) -> Explanation:
    """A module with a mismatched input, reported at its place of construction if known."""
    constructed_at = span(failure.details["module"]["constructed_at"])
    return Explanation(code, message, constructed_at or failure.stack[0], measurements(failure))


def _module_of(failure: RaisedException, *types: str) -> ModuleDetails | None:
    module = failure.details.get("module")
    return module if module and module["type"].startswith(types) else None


def _first_size(module: ModuleDetails) -> tuple[str, list[int]] | None:
    given = [*module["input"]["args"], *module["input"]["kwargs"].values()]
    tensor = next((each for each in given if each["kind"] == "tensor"), None)
    return None if tensor is None else (dtype_and_size(tensor), tensor["size"])


@_on(
    r"mat1 and mat2 shapes cannot be multiplied|size mismatch, got input|"
    r"must have same reduction dim"  # on a simulated GPU
)
def _product(failure: RaisedException, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Linear", "LazyLinear")
    if module is None:
        return Explanation("SF503", exception_text(failure), failure.stack[0], measurements(failure))
    measured, wanted = _first_size(module), module["attributes"].get("in_features")
    if measured is None or wanted is None or not measured[1]:
        return None
    text, size = measured
    return _of_module(
        failure,
        "SF501",
        f"{module_label(module)} expects in_features={wanted} but gets {text} (last size {size[-1]})",
    )


@_on(r"channels, but got|expected input.* to have|Expected \dD .*input to conv|Calculated padded input size")
def _channels(failure: RaisedException, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Conv")
    size = _first_size(module) if module else None
    if module is None or size is None:
        return None
    wanted = module["attributes"].get("in_channels")
    return _of_module(
        failure, "SF506", f"{module_label(module)} expects in_channels={wanted} but gets {size[0]}"
    )


@_on(r"running_mean should contain|Given normalized_shape|number of channels in input|expected \dD")
def _norm(failure: RaisedException, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm")
    size = _first_size(module) if module else None
    if module is None or size is None:
        return None
    holds = module["attributes"]
    wanted = holds.get("num_features") or holds.get("num_channels") or holds.get("normalized_shape")
    expected = f"expects {wanted} features but gets" if wanted else "gets"
    return _of_module(failure, "SF511", f"{module_label(module)} {expected} {size[0]}")


@_on(r"index out of range in self")
def _embedding(failure: RaisedException, observed: Observations) -> Explanation | None:
    module = _module_of(failure, "Embedding")
    if module is None:
        return None
    rows = module["attributes"].get("num_embeddings")
    numbers = next((each for each in module["integer_ranges"] if each), None)
    if not isinstance(rows, int) or numbers is None:
        return None
    return _of_module(
        failure,
        "SF505",
        f"{module_label(module)} has rows 0 to {rows - 1} but gets indices from {numbers[0]} to {numbers[1]}",
    )


def _on_operands(pattern: str, code: str) -> None:
    """Register a rule about the operands of the user's own line."""

    @_on(pattern)
    def explain(failure: RaisedException, observed: Observations) -> Explanation | None:
        return Explanation(code, exception_text(failure), failure.stack[0], measurements(failure))


_on_operands(r"view size is not compatible|Cannot view a tensor with shape", "SF101")
_on_operands(r"shape '\[.*\]' is invalid for input of size", "SF507")
_on_operands(r"Sizes of tensors must match except in dimension", "SF504")
_on_operands(r"batch1 tensor|batch2 tensor|must be batches of|einsum\(\): ", "SF503")
_on_operands(
    r"Expected all tensors to be on the same device|should be either on .* or on the same device", "SF602"
)
_on_operands(r"does not have a padding token", "SF305")
_on_operands(r"element 0 of tensors does not require grad", "SF904")
_on_operands(r"optimizer got an empty parameter list|can't optimize a non-leaf Tensor", "SF607")
_on_operands(r"optimizer can only optimize Tensors", "SF607")
_on_operands(r"returned an incorrect number of gradients", "SF906")


@_on(r"Input type \(torch\.\S+\) and weight type \(torch\.\S+\) should be the same")
def _tensor_types(failure: RaisedException, observed: Observations) -> Explanation | None:
    given = re.findall(r"type \((torch\.\S+?)\)", failure.message)
    on_gpu = {each.startswith("torch.cuda.") for each in given}
    code = "SF602" if len(on_gpu) > 1 else "SF512"
    return Explanation(code, exception_text(failure), failure.stack[0], measurements(failure))


_on_operands(r"Legacy autograd function with non-static forward", "SF907")
_on_operands(r"all elements of target should be between 0 and 1", "SF522")
_on_operands(r"weight tensor should be defined either for all", "SF520")
_on_operands(r"Expected to have finished reduction in the prior iteration", "SF612")
_on_operands(r"Error\(s\) in loading state_dict for", "SF610")
_on_operands(r"Weights only load failed", "SF611")
_on_operands(r"The model did not return a loss from the inputs", "SF411")
_on_operands(r"Cannot handle batch sizes > 1 if no padding token is defined", "SF308")
_on_operands(r"No columns in the dataset match the model's forward method signature", "SF404")
_on_operands(r"unexpected keyword argument 'num_items_in_batch'", "SF409")
_on_operands(
    r"load_best_model_at_end requires|you didn't pass an `eval_dataset`|not found in the evaluation metrics",
    "SF408",
)
_on_operands(r"compute_metrics\w*\(\) (missing \d+ required positional|takes \d+ positional)", "SF408")
_on_operands(r"default_collate: batch must contain tensors", "SF410")
_on_operands(r"Can't call numpy\(\) on Tensor that requires grad", "SF905")
_on_operands(r"grad can be implicitly created only for scalar outputs", "SF908")
_on_operands(r"Expected state_dict to be dict-like", "SF614")
_on_operands(r"Class values must be (smaller than num_classes|non-negative)", "SF517")
_on_operands(
    r"determine the shape of object type '(DataFrame|Series)'|np.ndarray \(got (DataFrame|Series)\)", "SF523"
)


@_on(
    r"size mismatch \(got input|input batch_size|[Tt]arget size|target expected|Expected target size|"
    r"out of bounds|1D target"
)
def _loss(failure: RaisedException, observed: Observations) -> Explanation | None:
    if failure.origin != "loss" and _module_of(failure, "CrossEntropy", "BCE", "NLL", "CTC") is None:
        return None
    call = failure.details.get("given")
    text = f"{exception_text(failure)}; given {call_text(call)}" if call else exception_text(failure)
    numbers = next((each for each in failure.details.get("integer_ranges", ()) if each), None)
    is_id = "out of bounds" in failure.message
    if numbers and is_id:
        text += f", targets from {numbers[0]} to {numbers[1]}"
    return Explanation("SF517" if is_id else "SF508", text, failure.stack[0], measurements(failure))


@_on(r"must match the size of tensor b|Attempting to broadcast a dimension of length")
def _elementwise(failure: RaisedException, observed: Observations) -> Explanation | None:
    code = "SF508" if failure.origin == "loss" else "SF510"
    return Explanation(code, exception_text(failure), failure.stack[0], measurements(failure))


@_on(
    r"expected scalar type|following scalar types|expected target dtype|[Ff]ound dtype|"
    r"must have the same dtype|Input type \((?!torch\.)|result type .* can't be cast|not implemented for '"
)
def _dtype(failure: RaisedException, observed: Observations) -> Explanation | None:
    if failure.origin not in ("loss", "module", "backward"):
        return None
    return Explanation("SF512", exception_text(failure), failure.stack[0], measurements(failure))


@_on(r"forward\(\) got an unexpected keyword argument")
def _key(failure: RaisedException, observed: Observations) -> Explanation | None:
    module, key = failure.details.get("module"), re.search(r"'(.+?)'", failure.message)
    if module is None or key is None or key[1] not in module["input"]["kwargs"]:
        return None
    message = (
        f"`{module['type']}.forward` has no parameter `{key[1]}`, but the batch has this key: "
        "TypeError on each call"
    )
    return Explanation("SF401", message, failure.stack[0], measurements(failure))


@_on(r"forward\(\) missing \d+ required (positional|keyword-only) argument")
def _missing(failure: RaisedException, observed: Observations) -> Explanation | None:
    module = failure.details.get("module")
    if module is None or not module["input"]["kwargs"]:
        return None
    missing = re.sub(r"^.*argument", "argument", failure.message)
    message = f"`{module['type']}.forward` is called without {missing}"
    return Explanation("SF403", message, failure.stack[0], measurements(failure))


_on(missing_loss.MESSAGE)(missing_loss.explain)
for _message in ragged_rows.MESSAGES:
    _on(_message)(ragged_rows.explain)
