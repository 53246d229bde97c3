"""SF610: a state loaded into a module with other names, or other sizes."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.rewrites import line_of, method_called
from shapefix.checks.support.syntax import enclosing, enclosing_function
from shapefix.diagnostics import Applicability, Diagnostic, Evidence, ExpectedError, Fix
from shapefix.domains.checkpoints import StateLoaded
from shapefix.interpreter.modules import Place, nodes
from shapefix.tensors.bounds import same

_WRAPPERS = {"module": "a DataParallel wrapper", "_orig_mod": "`torch.compile`"}


@rule("SF610", on=StateLoaded)
def checkpoint_mismatch(event: StateLoaded, context: CheckContext, rule: Rule) -> Iterator[Diagnostic]:
    call = event.place.node
    if not isinstance(call, cst.Call) or not call.args or not _is_as_saved(event.place, call.args[0].value):
        return
    taken = Evidence(event.state.place.span, "the state is taken here")
    if event.state.wrapper != event.wrapper:
        is_strict = all(_is_true(given.value) for given in call.args[1:])
        have, want = _prefix(event.state.wrapper), _prefix(event.wrapper)
        end = "" if is_strict else "; with strict=False, nothing is loaded"
        yield rule.diagnostic(
            event.place.span,
            f"the state comes from a model {_origin(event)}: its keys have {have}, the model's keys have "
            f"{want}{end}",
            evidence=[*call_trace(event), taken, Evidence(event.place.span, f"loaded here, with {want}")],
            error=ExpectedError("RuntimeError", "Missing key(s) in state_dict") if is_strict else None,
            fixes=_unwrapped(event),
        )
        return
    for name, sizes in event.state.sizes.items():
        pairs = zip(sizes, event.sizes.get(name, ()), strict=False)
        differing = next((pair for pair in pairs if same(*pair) is False), None)
        if differing is not None:
            have, want = map(context.text, differing)
            yield rule.diagnostic(
                event.place.span,
                f"`{name}` has size {have} in the saved state, and {want} in the model; "
                "strict=False does not skip it",
                evidence=[*call_trace(event), taken, Evidence(event.place.span, f"loaded here: size {want}")],
                error=ExpectedError("RuntimeError", f"size mismatch for {name}"),
                fixes=[Fix(Applicability.DISPLAY, f"leave `{name}` out of the state before loading it", ())],
            )
            return


def _prefix(wrapper: str) -> str:
    return f"`{wrapper}.`" if wrapper else "no prefix"


def _origin(event: StateLoaded) -> str:
    """Return the wrapper of the state's model, and the place of taking the state."""
    wrapper = _WRAPPERS[event.state.wrapper or event.wrapper]
    where = line_of(event.state.place, event.place.module)
    return f"{'with' if event.state.wrapper else 'without'} {wrapper} ({where})"


def _is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _is_as_saved(place: Place, given: cst.BaseExpression) -> bool:
    """Return whether the code cannot have changed a state: the call itself, or a name used for it only."""
    if isinstance(given, cst.Call):
        return True
    subject = given.value if isinstance(given, cst.Subscript) else given
    if isinstance(subject, cst.Call):
        return True
    if not isinstance(subject, cst.Name):
        return False
    scope = enclosing_function(place) or place.module.tree
    return all(
        _is_reading(place, each)
        for each in nodes(scope)
        if isinstance(each, cst.Name) and each.value == subject.value
    )


def _is_reading(place: Place, name: cst.Name) -> bool:
    """Return whether a name is assigned, read by key, loaded or saved."""
    path = enclosing(place.module, name)
    parent = path[-2] if len(path) > 1 else name
    if isinstance(parent, cst.AssignTarget):
        return True
    if isinstance(parent, cst.Attribute) and parent.attr is name:
        # An attribute of the same name: `model.state_dict`.
        return True
    if isinstance(parent, cst.Arg) and parent.keyword is name:
        return True
    if isinstance(parent, cst.Arg):
        called = path[-3]
        function = called.func if isinstance(called, cst.Call) else None
        last = function.attr.value if isinstance(function, cst.Attribute) else ""
        return last in ("load_state_dict", "save")
    if isinstance(parent, cst.Subscript):
        return not any(isinstance(node, (cst.AssignTarget, cst.Del, cst.AugAssign)) for node in path)
    return False


def _unwrapped(event: StateLoaded) -> list[Fix]:
    """Return the fix to take the state of the module in the wrapper."""
    place = event.state.place if event.state.wrapper else event.place
    wrapper = event.state.wrapper or event.wrapper
    node = place.node
    if event.state.wrapper and event.wrapper:
        return []
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return []
    edit = method_called(place.module, node.func.value, wrapper)
    return [Fix(Applicability.UNSAFE, f"use the module in the wrapper: `.{wrapper}`", (edit,))]
