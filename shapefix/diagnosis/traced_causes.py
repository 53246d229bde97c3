"""Causes without a rule: from the values of the failing line, and from the stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from shapefix.diagnosis.called_definitions import OF_CALLS, CalledDefinition, called_definition
from shapefix.diagnosis.causes import Confidence, ErrorCause
from shapefix.diagnosis.definitions import argument_definitions, definitions, target_definitions
from shapefix.diagnosis.error_reports import ErrorReport
from shapefix.diagnosis.explanations import MessageExplanation
from shapefix.diagnosis.failing_layer import FailingLayer
from shapefix.diagnosis.failing_runs import FailingRun
from shapefix.diagnosis.named_places.failures import ExplainedFailure
from shapefix.diagnosis.named_places.search import named_places
from shapefix.diagnosis.number_origins import distinct_places, number_origins, to_evidence
from shapefix.diagnosis.project_frames import ProjectFrame, is_installed
from shapefix.diagnosis.size_origins import SizeOrigin
from shapefix.diagnosis.symbol_origins import symbol_origins
from shapefix.diagnosis.traced_fixes import traced_fix
from shapefix.diagnosis.value_origins import batch_places, tensor_origins, value_origins
from shapefix.diagnosis.whole_texts import whole_text
from shapefix.diagnostics import TRACED_ERROR, Diagnostic, Evidence, Fix, Role, Severity, Span
from shapefix.sources.text import Unreadable

_SIMILAR = 0.7
_NUMBER = re.compile(r"(?<![\w.])(?:[2-9]|\d{2,})(?![\w.]*\w)")
"""Numbers except 0 and 1, which are everywhere."""
_CALL_OF_MODULE = re.compile(r"torch[/\\]nn[/\\]modules[/\\]module\.py$")
"""The path of `Module.__call__`."""
_ABOUT_SIZES = frozenset(
    {"matrix-product", "batch-product", "broadcast-sizes", "conv-channels", "conv-rank", "einsum-sizes"}
    | {"expanded-size", "index-bounds", "joined-sizes", "kernel-size", "loss-batch-size", "loss-target-size"}
    | {"missing-dimension", "norm-channels", "norm-rank", "normalized-shape", "pooled-away", "stacked-sizes"}
    | {"recurrent-hidden", "recurrent-input", "spatial-targets", "targets-with-column", "too-many-indices"}
    | {"view-elements", "view-strides", "embedding-range", "target-out-of-bounds", "not-enough-values"}
    | {"too-many-values", "unequal-lists", "ragged-rows", "array-of-ragged-rows", "scalar-of-many"}
    | {"output-broadcast", "value-broadcast", "joined-ranks", "batches-of-matrices", "einsum-subscripts"}
    | {"matrix-rank", "spatial-target-size", "split-sizes", "attention-mask-shape", "key-value-lengths"}
    | {"recurrent-rank", "class-weights", "array-joins", "array-broadcast", "array-product", "array-index"}
    | {"image-size", "image-channels", "tensors-of-one-length", "target-size", "expand-rank", "mask-shape"}
    | {"embedding-dimension", "unflatten-sizes"}
)
"""The error pages whose numbers are sizes of tensors."""
_OF_INDICES = frozenset({"index-bounds", "embedding-range", "target-out-of-bounds", "array-index"})
"""The error pages with a value beside the sizes."""
_OF_NAMES = frozenset({"missing-key", "checkpoint-keys", "checkpoint-sizes"})
"""The error pages about names of two sides: those of the value, and those of its origin."""
_COLLECTIONS = ("list", "tuple")
_OF_NUMBERS = frozenset(
    {"top-k-range", "group-count", "attention-heads", "one-hot-range", "padding-id-range"}
    | {"generation-length", "head-mismatch"}
)
"""The error pages about a number that the code states somewhere."""
_OF_MACHINES = frozenset(
    {"collective-mismatch", "convolution-engine", "cuda-initialization", "cuda-memory-access"}
    | {"cudnn-failure", "device-assert", "disk-full", "gloo-timeout", "gpu-number", "hub-access"}
    | {"hub-unreachable", "import-name", "kernel-image", "loader-timeout", "map-worker-died"}
    | {"missing-module", "missing-package", "mps-memory", "mps-operator", "mps-placeholder"}
    | {"nccl-failure", "nccl-timeout", "no-bitsandbytes", "no-nccl", "numpy-binary", "numpy-unavailable"}
    | {"old-driver", "out-of-memory", "port-in-use", "process-group", "recursion", "relative-import"}
    | {"rendezvous-timeout", "rendezvous-variables", "shared-library", "start-method", "too-many-files"}
    | {"torchvision-version", "trainer-needs-accelerate", "worker-died", "worker-start", "circular-import"}
    | {"rank-lost", "reraise-without-exception", "host-memory"}
)
"""The error pages about the machine, its software or the processes, and not about values."""
_OF_PYTHON = frozenset(
    {"ImportError", "IndentationError", "MemoryError", "ModuleNotFoundError", "NotImplementedError"}
    | {"PermissionError", "RecursionError", "SyntaxError", "TabError", "TimeoutError"}
)
"""The exceptions that are never about a value of the line."""
_MOST_POSSIBLE = 6
_OF_LOOP = re.compile(r"for \w+, .* in zip\(|[\w.]+\.append\(")
_MOST_LOOPS = 2
_OF_BOTH_SIDES = frozenset({"embedding-range", "class-weights"})
"""The error pages about a value that does not fit another one."""
_OF_TARGETS = frozenset(
    {"targets-with-column", "target-dtype", "target-out-of-bounds", "spatial-targets", "spatial-target-size"}
)
"""The error pages about the targets of a loss."""
_MOST_TARGETS = 8
_FEWEST = 4
"""The number of places of a likely cause that other values of the line are added to."""


def traced_cause(
    report: ErrorReport,
    explanation: MessageExplanation | None,
    frames: Sequence[ProjectFrame],
    run: FailingRun | None,
    layer: FailingLayer | None,
    folder: str,
) -> ErrorCause | None:
    """Return the cause of an error by its own stack, with a repair if there is a certain one."""
    found = _traced_cause(report, explanation, frames, run, layer, folder)
    if found is not None and any(frame.is_changed for frame in frames):
        found = replace(found, confidence=Confidence.LIKELY)
    if explanation is None:
        return found
    if found is None:
        # A line with a repair is the cause itself.
        fix = line_fix(report, explanation, frames, folder, ())
        found = None if fix is None else _at_line(explanation, frames, ())
    else:
        fix = line_fix(report, explanation, frames, folder, found.finding.evidence)
    return (
        found
        if fix is None or found is None
        else replace(found, finding=replace(found.finding, fixes=(fix,)))
    )


def line_fix(
    report: ErrorReport,
    explanation: MessageExplanation,
    frames: Sequence[ProjectFrame],
    folder: str,
    evidence: Sequence[Evidence],
) -> Fix | None:
    """Return the repair of an error by its page, if the sources are those of the run."""
    if not _is_present(frames):
        return None
    raised_in = report.frames[-1].path if report.frames else ""
    return traced_fix(ExplainedFailure(explanation, frames, folder, raised_in), evidence)


def _is_present(frames: Sequence[ProjectFrame]) -> bool:
    """Whether the sources are those of the run."""
    is_here = bool(frames) and not frames[-1].is_missing and not frames[-1].is_lost
    return is_here and not any(frame.is_changed or frame.is_region for frame in frames)


def _at_line(
    explanation: MessageExplanation, frames: Sequence[ProjectFrame], evidence: Sequence[Evidence]
) -> ErrorCause:
    found = _diagnostic(explanation, explanation.what, frames, evidence)
    return ErrorCause(found, Confidence.LIKELY, is_at_failing_line=True)


def _traced_cause(
    report: ErrorReport,
    explanation: MessageExplanation | None,
    frames: Sequence[ProjectFrame],
    run: FailingRun | None,
    layer: FailingLayer | None,
    folder: str,
) -> ErrorCause | None:
    if not frames or frames[-1].is_missing or frames[-1].is_lost:
        return None
    if explanation is None:
        return _unexplained(report, frames, folder)
    called = called_definition(explanation, frames, folder)
    named = named_places(explanation, frames, folder)
    if called is not None:
        return _of_call(report, explanation, frames, called, named)
    if layer is not None:
        sizes = (*number_origins(run, layer.arrived), *batch_places(run)) if run is not None else ()
        return _of_layer(explanation, frames, layer, named, sizes)
    is_of_sizes = run is not None and explanation.name in _ABOUT_SIZES
    origins = _of_sizes(run, report.message) if run is not None and is_of_sizes else ()
    of_values = value_origins(run, explanation.name, report.message) if run is not None else ()
    of_values = distinct_places((*named, *of_values))
    assigned = definitions(explanation, frames, run, folder, is_raised_inside=_is_raised_inside(report))
    evidence = [_stated(each.path, each.row, _text_of(each)) for each in assigned]
    if of_values:
        both = (*of_values, *evidence) if explanation.name in _OF_NAMES else of_values
        if explanation.name == "missing-attribute" and explanation.fields["type"] in _COLLECTIONS:
            both = (*evidence, *of_values)
        if explanation.name in _OF_NUMBERS and _is_present(frames):
            stated = argument_definitions(frames, folder)
            both = (*both, *(_stated(each.path, each.row, _text_of(each)) for each in stated))
        return _of_values(explanation, frames, distinct_places(both), folder)
    if assigned:
        if run is not None and explanation.name == "missing-attribute":
            evidence += batch_places(run)
        found = _diagnostic(explanation, explanation.what, frames, evidence)
        return ErrorCause(found, Confidence.LIKELY, is_at_failing_line=True)
    is_rejected = run is not None and bool(run.rejected)
    if not is_rejected:
        if run is None or not run.has_unknown or not origins:
            is_of_other_run = run is not None and is_of_sizes and _is_of_other_run(run, explanation)
            return None if is_of_other_run else _of_arguments(explanation, frames, folder)
    message = explanation.what
    if explanation.name in _OF_TARGETS:
        origins = _with_targets(origins, frames, folder)
    elif not is_rejected:
        origins = _filled(origins, frames, folder)
    return ErrorCause(
        _diagnostic(explanation, message, frames, origins),
        Confidence.ONLY if is_rejected else Confidence.LIKELY,
        is_at_failing_line=True,
    )


def _is_of_other_run(run: FailingRun, explanation: MessageExplanation) -> bool:
    """Whether known sizes of the line fit each other, and are not those of the message."""
    if run.has_unknown or explanation.name in _OF_INDICES:
        return False
    layouts = [each.layout for each in run.values if each.layout is not None]
    if not layouts:
        return False
    known = {str(size) for layout in layouts for size in layout.sizes}
    known |= {str(len(layout.sizes)) for layout in layouts}
    return (
        not {each for each in re.findall(r"\d+", explanation.message) if len(each) > 1 or each > "1"} <= known
    )


def _text_of(origin: SizeOrigin) -> str:
    if origin.name.endswith("[]"):
        return f"a sample of `{origin.name[:-2]}` is returned here"
    is_function = origin.name.endswith("()")
    if is_function and origin.code.startswith(("return", "yield")):
        return f"`{origin.name}` returns it here"
    if is_function and not origin.code.startswith(("def ", "async def ")):
        return f"`{origin.name}` ends here, and returns nothing"
    if is_function:
        return f"`{origin.name}` may return nothing"
    if origin.code.startswith(("def ", "async def ")) and f" {origin.name}(" in origin.code:
        return f"`{origin.name}` is a method"
    if re.search(rf"\b{re.escape(origin.name)}\b.*[=:]|\bfor\b", origin.code) is None:
        return f"`{origin.name}` is passed here"
    is_none = origin.code.partition("=")[2].split("#")[0].strip() == "None"
    return f"`{origin.name}` is {'`None` from here' if is_none else 'set here'}"


def _of_sizes(run: FailingRun, message: str) -> tuple[Evidence, ...]:
    """Return the places of explained and known sizes; without these, of the tensors."""
    by_setting = to_evidence(symbol_origins(run, message))
    known = number_origins(run, message)
    if not known and run.has_unknown and not run.rejected:
        known = tensor_origins(run)
    return distinct_places((*by_setting, *known))


def _of_values(
    explanation: MessageExplanation,
    frames: Sequence[ProjectFrame],
    origins: Sequence[Evidence],
    folder: str,
) -> ErrorCause:
    """Return the failing line, with the origins of its values."""
    confidence = Confidence.ONLY if len(origins) == 1 else Confidence.LIKELY
    if explanation.name in _OF_TARGETS:
        origins = _with_targets(origins, frames, folder)
    elif explanation.name in _OF_BOTH_SIDES:
        origins = distinct_places((*origins[:_FEWEST], *value_places(frames, folder)))
    found = _diagnostic(explanation, explanation.what, frames, origins)
    return ErrorCause(found, confidence, is_at_failing_line=True)


def _of_arguments(
    explanation: MessageExplanation, frames: Sequence[ProjectFrame], folder: str
) -> ErrorCause | None:
    """Return the failing line, with the assignments of all its values; None for an error without values."""
    if not _is_present(frames) or explanation.name in _OF_MACHINES | OF_CALLS:
        return None
    found = argument_definitions(frames, folder)
    if not found:
        return None
    # The short report shows the first and the last one.
    in_order = (*found[:1], *found[2:], *found[1:2])
    evidence = [_stated(each.path, each.row, _text_of(each)) for each in in_order]
    return _at_line(explanation, frames, evidence)


def _with_targets(
    found: Sequence[Evidence], frames: Sequence[ProjectFrame], folder: str
) -> tuple[Evidence, ...]:
    """Put the assignments of the targets of a loss before a few other places."""
    targets = target_definitions(frames, folder) if _is_present(frames) else ()
    own = (_stated(each.path, each.row, _text_of(each)) for each in targets)
    return distinct_places((*own, *found[:_FEWEST]))[:_MOST_TARGETS]


def _filled(found: Sequence[Evidence], frames: Sequence[ProjectFrame], folder: str) -> tuple[Evidence, ...]:
    """Add the assignments of the line's values to a few places."""
    if len(found) >= _FEWEST:
        return tuple(found)
    return distinct_places((*found, *value_places(frames, folder)))[:_MOST_POSSIBLE]


def loop_places(frames: Sequence[ProjectFrame], folder: str) -> tuple[Evidence, ...]:
    """Return the loops over the values of a failing line, and the additions to their lists."""
    found = argument_definitions(frames, folder) if _is_present(frames) else ()
    looped = [each for each in found if _OF_LOOP.match(each.code)][:_MOST_LOOPS]
    return tuple(_stated(each.path, each.row, _text_of(each)) for each in looped)


def value_places(frames: Sequence[ProjectFrame], folder: str) -> tuple[Evidence, ...]:
    """Return the assignments of the values of a failing line."""
    found = argument_definitions(frames, folder)[:_MOST_POSSIBLE] if _is_present(frames) else ()
    return tuple(_stated(each.path, each.row, _text_of(each)) for each in found)


def _unexplained(report: ErrorReport, frames: Sequence[ProjectFrame], folder: str) -> ErrorCause | None:
    """Return the origins of the values of a failing line with an unknown message."""
    found = value_places(frames, folder)
    if not found or report.name in _OF_PYTHON or report.is_consequence:
        return None
    what = _of_raise(frames[-1].frame.text)
    unknown = MessageExplanation("unknown-message", report.message, {}, what, (), "")
    # The short report shows the first and the last one.
    found = (*found[:1], *found[2:], *found[1:2])
    return ErrorCause(
        _diagnostic(unknown, unknown.what, frames, found), Confidence.POSSIBLE, is_at_failing_line=True
    )


def _of_raise(line: str) -> str:
    """Return a sentence on a failing line with an unknown message."""
    if line.startswith("assert"):
        return "The assertion is false for its values."
    if line.startswith("raise"):
        return "The project raises this error itself."
    return "shapefix does not know this message."


def _is_raised_inside(report: ErrorReport) -> bool:
    """Whether a library raised the error with a value it got, and no access to an attribute on the line."""
    last = report.frames[-1] if report.frames else None
    return last is not None and is_installed(last.path) and not last.function.startswith("__getattr")


def _of_call(
    report: ErrorReport,
    explanation: MessageExplanation,
    frames: Sequence[ProjectFrame],
    called: CalledDefinition,
    named: Sequence[Evidence],
) -> ErrorCause:
    """Return a call with wrong arguments; if a library makes the call, the function itself."""
    evidence = Evidence(
        called.span, f"`{called.name}({called.signature})` is defined here", Role.CAUSE, "defined here"
    )
    message = explanation.what
    similar = get_close_matches(explanation.fields.get("name", ""), called.parameters, 1, _SIMILAR)
    if explanation.name == "unexpected-keyword" and similar:
        message = f"{message.removesuffix('.')}; it has `{similar[0]}`"
    if _is_own_call(report):
        found = _diagnostic(explanation, message, frames, (evidence, *named))
        return ErrorCause(found, Confidence.ONLY, is_at_failing_line=True)
    calls = (
        Evidence(frame.span, "called here", Role.CALL, " ".join(frame.frame.text.split()))
        for frame in frames
        if not frame.is_missing
    )
    failure = Evidence(called.span, "defined here", Role.FAILURE, "defined here")
    found = Diagnostic(
        TRACED_ERROR, explanation.name, Severity.ERROR, message, called.span, (*calls, *named, failure)
    )
    return ErrorCause(found, Confidence.ONLY)


def _is_own_call(report: ErrorReport) -> bool:
    """Whether the innermost line of the user's code makes the call, perhaps `model(x)` by way of torch."""
    for frame in reversed(report.frames):
        if not _CALL_OF_MODULE.search(frame.path):
            return not is_installed(frame.path)
    return False


def _of_layer(
    explanation: MessageExplanation,
    frames: Sequence[ProjectFrame],
    layer: FailingLayer,
    named: Sequence[Evidence],
    sizes: Sequence[Evidence],
) -> ErrorCause:
    """Return the layer on the failing line, with the places of both numbers.

    named are the places of names in the message, and sizes those of the tensor's size.
    """
    made = _row(layer.path, layer.row)
    evidence = [Evidence(made, f"created here, takes {layer.wanted}", Role.CAUSE, f"takes {layer.wanted}")]
    if layer.setting is not None:
        setting = layer.setting
        evidence.append(_stated(setting.path, setting.row, f"{layer.wanted} is set here"))
    evidence += [_stated(each.path, each.row, _text_of(each)) for each in layer.given]
    if layer.load is not None:
        load = layer.load
        evidence.append(_stated(load.path, load.row, f"the data with {layer.arrived} is loaded here"))
    message = f"`{layer.name}` takes {layer.wanted}, and {layer.arrived} arrived"
    found = _diagnostic(explanation, message, frames, distinct_places((*evidence, *named, *sizes)))
    return ErrorCause(found, Confidence.LIKELY if named else Confidence.ONLY, is_at_failing_line=True)


def _diagnostic(
    explanation: MessageExplanation,
    message: str,
    frames: Sequence[ProjectFrame],
    evidence: Sequence[Evidence],
) -> Diagnostic:
    span = _without_indentation(frames[-1].span)
    stated = frozenset(_NUMBER.findall(explanation.message))
    # The short report has the first of them in any case.
    evidence = sorted(evidence, key=lambda step: stated.isdisjoint(_NUMBER.findall(step.message)))
    calls = (
        Evidence(frame.span, "called here", Role.CALL, " ".join(frame.frame.text.split()))
        for frame in frames[:-1]
        if not frame.is_missing and frame.span != frames[-1].span
    )
    failure = Evidence(span, "this line failed", Role.FAILURE)
    return Diagnostic(
        TRACED_ERROR, explanation.name, Severity.ERROR, message, span, (*calls, *evidence, failure)
    )


def _without_indentation(span: Span) -> Span:
    try:
        whole = whole_text(span.path)
    except Unreadable:
        return span
    rows = whole.text.split("\n")[whole.rows_before + span.row - 1 : whole.rows_before + span.end_row]
    if not rows:
        return span
    start = len(rows[0]) - len(rows[0].lstrip())
    return replace(span, column=start + 1, end_column=len(rows[-1].rstrip()) + 1)


def _stated(path: str, row: int, text: str) -> Evidence:
    return Evidence(_without_indentation(_row(path, row)), text, Role.CAUSE, text)


def _row(path: str, row: int) -> Span:
    return Span(path, row, 1, row, 10_000)
