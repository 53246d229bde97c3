"""SF614: a checkpoint read in another form than it was saved."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.syntax import enclosing, enclosing_line
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Import, Role
from shapefix.domains.checkpoints import CheckpointMisread, LoadedKeysUsed, NotAState
from shapefix.interpreter.modules import Place


@rule("SF614", on=(NotAState, CheckpointMisread, LoadedKeysUsed))
def checkpoint_contents(
    event: NotAState | CheckpointMisread | LoadedKeysUsed, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    if any(isinstance(n, (cst.Try, cst.TryStar)) for n in enclosing(event.place.module, event.place.node)):
        return
    if isinstance(event, NotAState):
        yield _not_a_state(event, rule)
    elif isinstance(event, LoadedKeysUsed):
        if not any(
            isinstance(other, LoadedKeysUsed) and other.loaded.node is event.loaded.node
            for other in context.events[: context.events.index(event)]
        ):
            yield _keys_as_model(event, rule)
    elif event.keys:
        yield _no_key(event, rule)
    else:
        yield _not_a_module(event, rule)


def _keys_as_model(event: LoadedKeysUsed, rule: Rule) -> Diagnostic:
    loaded = event.loaded
    if event.name:
        error = ExpectedError("AttributeError", f"object has no attribute '{event.name}'")
    else:
        error = ExpectedError("TypeError", "object is not callable")
    used = [] if event.name else [Evidence(event.place.span, "called as a model", Role.FAILURE)]
    return rule.diagnostic(
        loaded.span,
        "`load_state_dict` returns the names of missing keys, not the model, which it changes in place",
        error=error,
        evidence=[
            *call_trace(event),
            Evidence(loaded.span, "this result is used as a model", Role.CAUSE),
            *used,
        ],
        fixes=[rewrites.unsafe_or_advice("keep the model", _kept_model(loaded))],
    )


def _kept_model(loaded: Place) -> Edit | None:
    """Return the edit of `model = net.load_state_dict(state)` to two statements, or to one for one name."""
    line, node, module = enclosing_line(loaded), loaded.node, loaded.module
    statement = line.body[0] if line is not None and len(line.body) == 1 else None
    if not isinstance(statement, cst.Assign) or statement.value is not node or len(statement.targets) != 1:
        return None
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    target, owner = module.code(statement.targets[0].target), module.code(node.func.value)
    span = module.span(statement)
    if target == owner:
        return Edit(span, module.code(node))
    rest = module.code(node)[len(owner) :]
    return Edit(span, f"{target} = {owner}\n{' ' * (span.column - 1)}{target}{rest}")


def _given(place: Place) -> cst.BaseExpression | None:
    return place.node.args[0].value if isinstance(place.node, cst.Call) and place.node.args else None


def _not_a_state(event: NotAState, rule: Rule) -> Diagnostic:
    module, given = event.place.module, _given(event.place)
    name = abbreviate(module.code(given)) if given is not None else "the argument"
    is_strict = isinstance(event.place.node, cst.Call) and len(event.place.node.args) == 1
    if event.saved is None:
        message = f"`{name}` is a path: `load_state_dict` needs the contents of the file"
        error: ExpectedError | None = ExpectedError("TypeError", "Expected state_dict to be dict-like")
        edit = Edit(module.span(given), f"torch.load({module.code(given)})") if given is not None else None
        text = "load the file: `torch.load`"
        return rule.diagnostic(
            event.place.span,
            message,
            error=error,
            evidence=[*call_trace(event), Evidence(event.place.span, "a path is given", Role.FAILURE)],
            fixes=[
                Fix(Applicability.SAFE, text, (edit,), (Import("torch"),))
                if edit is not None
                else Fix(Applicability.DISPLAY, text, ())
            ],
        )
    where = rewrites.line_of(event.saved, module)
    error = ExpectedError("RuntimeError", "Missing key(s) in state_dict") if is_strict else None
    edit = (
        Edit(module.span(given), f"{module.code(given)}[{_quoted(event.key)}]") if given is not None else None
    )
    return rule.diagnostic(
        event.place.span,
        f"`{name}` is the whole checkpoint; the state of the model is below its key {event.key!r} ({where})",
        error=error,
        evidence=[
            *call_trace(event),
            Evidence(event.saved.span, f"saved here, below {event.key!r}", Role.CAUSE),
            Evidence(event.place.span, "the whole checkpoint is loaded", Role.FAILURE),
        ],
        fixes=[rewrites.unsafe_or_advice(f"load the part {event.key!r}", edit)],
    )


def _quoted(key: object) -> str:
    return f'"{key}"' if isinstance(key, str) and '"' not in key else repr(key)


def _no_key(event: CheckpointMisread, rule: Rule) -> Diagnostic:
    module, node = event.place.module, event.place.node
    where = rewrites.line_of(event.saved, module)
    keys = ", ".join(map(repr, event.keys))
    near = difflib.get_close_matches(event.name, event.keys, 1, 0.6)
    index = node.slice[0].slice if isinstance(node, cst.Subscript) and len(node.slice) == 1 else None
    edit = None
    if near and isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
        edit = Edit(module.span(index.value), _quoted(near[0]))
    text = f"read {near[0]!r}" if near else "read a key that is saved"
    return rule.diagnostic(
        event.place.span,
        f"the checkpoint has no key {event.name!r}: it is saved with {keys} ({where})",
        error=ExpectedError("KeyError", f"'{event.name}'"),
        evidence=[
            *call_trace(event),
            Evidence(event.saved.span, "saved here, with other keys", Role.CAUSE),
            Evidence(event.place.span, f"{event.name!r} is read", Role.FAILURE),
        ],
        fixes=[rewrites.unsafe_or_advice(text, edit)],
    )


def _not_a_module(event: CheckpointMisread, rule: Rule) -> Diagnostic:
    where = rewrites.line_of(event.saved, event.place.module)
    return rule.diagnostic(
        event.place.span,
        f"the file holds the state of a model ({where}), which has no `.{event.name}`; load it into a model",
        error=ExpectedError("AttributeError", f"object has no attribute '{event.name}'"),
        evidence=[
            *call_trace(event),
            Evidence(event.saved.span, "only the state is saved here", Role.CAUSE),
            Evidence(event.place.span, f"the result is used as a model: `.{event.name}`", Role.FAILURE),
        ],
        fixes=[
            Fix(
                Applicability.DISPLAY,
                "create the model, and load the state into it: `model.load_state_dict(torch.load(path))`",
                (),
            )
        ],
    )
