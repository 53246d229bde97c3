"""SF304: a tensor of several texts without padding."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.bound_names import named
from shapefix.checks.support.conditions import combined
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing_function, holds
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Condition, Diagnostic, Edit, Evidence, ExpectedError, Fix
from shapefix.domains.raggedness import ragged
from shapefix.domains.tokens import Tokenized
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.modules import Module, Place, nodes, target_names
from shapefix.interpreter.values import Constant

_TEXTS = (
    (0, "text"),
    (0, "batch_text_or_text_pairs"),
    (0, "conversation"),
    (2, "text_target"),
)


@rule("SF304", on=Tokenized)
def tensors_without_padding(event: Tokenized, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call = event.place.node
    if event.rows is None or ragged(event.rows) is None or not isinstance(call, cst.Call):
        return
    if any(given.keyword is not None and given.keyword.value not in event.arguments for given in call.args):
        # `self.tokenizer(images, with_indices=True)`: an unknown argument; the object is not a tokenizer.
        return
    module = event.place.module
    given = next(filter(None, (rewrites.argument(call, *where) for where in _TEXTS)), None)
    texts = f"`{abbreviate(module.code(given.value))}`" if given is not None else "several texts"
    yield rule.diagnostic(
        event.place.span,
        f"`{abbreviate(module.code(call.func))}` returns tensors for {texts} without padding",
        evidence=[
            *call_trace(event),
            Evidence(event.place.span, "one id per token; shorter texts are not padded"),
        ],
        error=ExpectedError("ValueError", "Unable to create tensor"),
        condition=combined(
            "and", [*_several(event, context), Condition("two texts have different numbers of tokens")]
        ),
        fixes=_pad(event, call, module),
    )


def _several(event: Tokenized, context: CheckContext) -> list[Condition]:
    """Return the condition `batch_size > 1`, unless it is certain."""
    count = event.rows.length if isinstance(event.rows, ListValue) else None
    found = context.condition([count]) if count is not None else None
    return [found] if found is not None else []


def _pad(event: Tokenized, call: cst.Call, module: Module) -> list[Fix]:
    if any(argument.star for argument in call.args):
        return []
    text = "padding=True"
    if _is_none(event, "truncation") and not _is_none(event, "max_length"):
        # max_length alone truncates, but only without padding.
        text = "padding=True, truncation=True"
    padding = rewrites.argument(call, 99, "padding")
    tensors = rewrites.argument(call, 99, "return_tensors")
    if padding is not None:
        if module.code(padding.value) not in ("False", '"do_not_pad"', "'do_not_pad'"):
            return []
        edit = rewrites.replaced(module, padding, text)
    elif tensors is not None:
        edit = _before(module, call, tensors, text)
    else:
        return []
    if _become_labels(event.place):
        message = "pad the texts to the longest, and leave the padding out of the labels: -100"
        return [Fix(Applicability.UNSAFE, message, (edit,))]
    return [Fix(Applicability.SAFE, "pad the texts to the longest", (edit,))]


def _become_labels(place: Place) -> bool:
    """Whether the function makes labels of the ids: a loss would count their padding."""
    scope: cst.CSTNode = enclosing_function(place) or place.module.tree
    held: set[str] = set()
    statements = [each for each in nodes(scope) if isinstance(each, (cst.Assign, cst.AnnAssign, cst.Call))]
    for each in sorted(statements, key=lambda each: place.module.span(each).row):
        if isinstance(each, cst.Call):
            given = [
                one.value for one in each.args if one.keyword is not None and one.keyword.value == "labels"
            ]
            if any(_mentions(value, held) for value in given):
                return True
        elif each.value is not None and (_mentions(each.value, held) or holds(each.value, place.node)):
            targets = each.targets if isinstance(each, cst.Assign) else [each]
            if any(named(target.target) == "labels" for target in targets):
                return True
            held.update(name for target in targets for name in target_names(target.target))
    return False


def _mentions(node: cst.CSTNode, names: set[str]) -> bool:
    return any(isinstance(each, cst.Name) and each.value in names for each in nodes(node))


def _is_none(event: Tokenized, name: str) -> bool:
    value = event.arguments.get(name)
    return isinstance(value, Constant) and value.value is None


def _before(module: Module, call: cst.Call, argument: cst.Arg, text: str) -> Edit:
    """Return the edit to insert an argument before another one."""
    start = module.span(argument)
    margin = module.text.split("\n")[start.row - 1][: start.column - 1]
    own_line = not margin.strip() and start.row != module.span(call).row
    content = f"{text},\n{margin}" if own_line else f"{text}, "
    return Edit(start.start(), content)
