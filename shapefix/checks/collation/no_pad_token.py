"""SF305: padding with a tokenizer without a pad token."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.tokens import Checkpoint, PadTokenMissing
from shapefix.interpreter.modules import Module, Place, children, dotted_name
from shapefix.interpreter.values import Constant, LibraryObject

_PAD_TOKENS = frozenset({"pad_token", "pad_token_id"})


@rule("SF305", on=PadTokenMissing)
def no_pad_token(event: PadTokenMissing, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    made, module = event.tokenizer.place, event.place.module
    if made is None or _may_be_set_elsewhere(made, event.place):
        return
    subject = abbreviate(module.code(event.subject)) if event.subject is not None else "tokenizer"
    user = f"{subject}.pad" if event.asked == "tokenizer.pad" else event.asked
    name = _name(event.tokenizer, made)
    yield rule.diagnostic(
        event.place.span,
        f"`{subject}` (`{name}`, {rewrites.line_of(made, module)}) has no pad token for `{user}`",
        error=ExpectedError("ValueError", "Asking to pad but the tokenizer does not have a padding token"),
        evidence=[
            *call_trace(event),
            Evidence(made.span, f"created here: `{name}` has no pad token, and the code sets none"),
            Evidence(event.place.span, "pads at the first batch" if event.later else "pads here"),
        ],
        fixes=_set_pad_token(event.tokenizer, made) if made.module is module else (),
    )


def _name(tokenizer: LibraryObject, made: Place) -> str:
    """Return the checkpoint of a tokenizer, or else its class."""
    checkpoint = tokenizer.facts.known(Checkpoint)
    name = checkpoint.name if checkpoint is not None else None
    if isinstance(name, Constant) and isinstance(name.value, str):
        return name.value
    return made.module.code(made.node.func) if isinstance(made.node, cst.Call) else "it"


def _may_be_set_elsewhere(made: Place, used: Place) -> bool:
    """Whether another function sets pad tokens; it is not known when it runs."""
    producer, user = enclosing_function(made), enclosing_function(used)
    if producer is user:
        return False
    setters = {id(setter): setter for module in (made.module, used.module) for setter in _setters(module)}
    return any(setter is not producer and setter is not user for setter in setters.values())


def _setters(module: Module) -> list[cst.CSTNode]:
    """Return a file's functions with an assignment to a pad token."""
    return module.once(module.tree, _functions_that_set)


def _functions_that_set(tree: cst.Module) -> list[cst.CSTNode]:
    found: list[cst.CSTNode] = []
    waiting: list[tuple[cst.CSTNode, cst.CSTNode | None]] = [(tree, None)]
    while waiting:
        node, function = waiting.pop()
        if function is not None and _sets(node):
            found.append(function)
        inner = node if isinstance(node, cst.FunctionDef) else function
        waiting += [(child, inner) for child in children(node)]
    return found


def _sets(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.AssignTarget):
        return isinstance(node.target, cst.Attribute) and node.target.attr.value in _PAD_TOKENS
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return node.func.attr.value == "add_special_tokens"
    return False


def _set_pad_token(tokenizer: LibraryObject, made: Place) -> list[Fix]:
    """Set the pad token on the line after the tokenizer's creation, if a plain name is assigned there."""
    around = enclosing(made.module, made.node)
    statement = around[-2] if len(around) > 1 else None
    ends = tokenizer.fields.get("eos_token")
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return []
    target = dotted_name(statement.targets[0].target)
    line = around[-3]
    if not target or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return []
    if isinstance(ends, Constant) and ends.value is None:
        return []
    edit = rewrites.after_statement(made, f"{target}.pad_token = {target}.eos_token")
    if edit is None:
        return []
    safety = Applicability.UNSAFE if _serves_others(around, made) else Applicability.SAFE
    return [Fix(safety, "use the EOS token as the pad token", (edit,))]


def _serves_others(around: list[cst.CSTNode], made: Place) -> bool:
    """Whether the checkpoint is a parameter; other checkpoints may have a pad token of their own."""
    named = made.node.args[0].value if isinstance(made.node, cst.Call) and made.node.args else None
    names = dotted_name(named).split(".") if named is not None else []
    functions = [node for node in around if isinstance(node, cst.FunctionDef)]
    parameters = [
        param.name.value
        for function in functions
        for param in (
            *function.params.posonly_params,
            *function.params.params,
            *function.params.kwonly_params,
        )
    ]
    return any(name in parameters for name in names[:1])
