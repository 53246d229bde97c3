"""SF607: an optimizer without parameters, or with arguments of another kind."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.checks.context import CheckContext
from shapefix.checks.registry import Rule, rule
from shapefix.checks.support import rewrites
from shapefix.checks.support.evidence import call_trace
from shapefix.checks.support.registering import wrapped
from shapefix.checks.support.syntax import attributes_of_super
from shapefix.checks.support.used_generators import used_up
from shapefix.checks.support.wording import abbreviate
from shapefix.diagnostics import Applicability, Diagnostic, Edit, Evidence, ExpectedError, Fix, Role
from shapefix.domains.registration import UnregisteredSet
from shapefix.domains.training import OptimizerCreated, ParametersRejected, RejectedArgument
from shapefix.interpreter.containers import ListValue, TupleValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FunctionValue, InstanceValue, Parameter, Value

_EMPTY = ExpectedError("ValueError", "optimizer got an empty parameter list")
_ONLY_TENSORS = ExpectedError("TypeError", "optimizer can only optimize Tensors, but one of the params is")
_ERRORS = {
    RejectedArgument.EMPTY: _EMPTY,
    RejectedArgument.NO_PARAMETERS: _EMPTY,
    RejectedArgument.METHOD: ExpectedError("TypeError", "'method' object is not iterable"),
    RejectedArgument.MODULE: ExpectedError("TypeError"),
    RejectedArgument.TENSOR: ExpectedError(
        "TypeError", "params argument given to the optimizer should be an iterable of Tensors or dicts"
    ),
    RejectedArgument.GENERATOR: _ONLY_TENSORS,
    RejectedArgument.NOT_A_LEAF: ExpectedError("ValueError", "can't optimize a non-leaf Tensor"),
}
_BY_HAND = ("add_module", "register_module", "register_parameter", "setattr", "_parameters", "_modules")
"""Names of code that registers parameters by hand."""


_ALMOST_INIT = ("_init_", "__init_", "_init__", "__init", "init__", "__int__", "__inti__")
"""Misspelled names of a constructor, which Python never calls."""


@rule("SF607", on=(ParametersRejected, OptimizerCreated))
def rejected_parameters(
    event: ParametersRejected | OptimizerCreated, context: CheckContext, rule: Rule
) -> Iterator[Diagnostic]:
    given = _argument(event.place)
    if given is None:
        return
    if isinstance(event, OptimizerCreated):
        yield from _used_up(event, given, rule)
        return
    code = abbreviate(event.place.module.code(given.value))
    message = _message(event, code)
    tensors = [
        each
        for each in context.events
        if isinstance(each, UnregisteredSet)
        and each.owner is event.value
        and isinstance(each.value, TensorValue)
        and each.owner.fields.get(each.name) is each.value
    ]
    if message is not None:
        made = event.value.origin if isinstance(event.value, TensorValue) else None
        history = () if made is None else (Evidence(made.place.span, "computed here, with a graph"),)
        yield rule.diagnostic(
            event.place.span,
            message,
            error=_ERRORS[event.reason],
            evidence=[
                *call_trace(event),
                *history,
                *(Evidence(each.place.span, "a tensor, not an `nn.Parameter`") for each in tensors),
                Evidence(event.place.module.span(given.value), "the optimizer gets this", Role.FAILURE),
            ],
            fixes=_fixes(event, given, tensors),
        )


def _argument(place: Place) -> cst.Arg | None:
    return rewrites.argument(place.node, 0, "params") if isinstance(place.node, cst.Call) else None


def _message(event: ParametersRejected, code: str) -> str | None:
    value = event.value
    if event.reason is RejectedArgument.EMPTY:
        return f"the optimizer gets no parameters: `{code}` is empty"
    if event.reason is RejectedArgument.NO_PARAMETERS:
        return _without_parameters(value, code) if isinstance(value, InstanceValue) else None
    if event.reason is RejectedArgument.METHOD:
        return f"the optimizer gets the method `{code}`; call it: `{code}()`"
    if event.reason is RejectedArgument.MODULE:
        return f"the optimizer gets the module `{code}` instead of `{code}.parameters()`"
    if event.reason is RejectedArgument.TENSOR:
        return f"the optimizer gets the tensor `{code}` instead of a list of tensors"
    if event.reason is RejectedArgument.GENERATOR:
        return f"`{code}` is a list of generators, not of parameters"
    made = value.origin if isinstance(value, TensorValue) else None
    computed = code if made is None else abbreviate(made.place.code)
    return f"the optimizer gets the result of `{computed}`, which is not a leaf of the graph"


def _without_parameters(module: InstanceValue, code: str) -> str | None:
    """Return the message for a module without parameters; None if its class may register them by hand."""
    text = module.cls.module.text
    if any(name in text for name in _BY_HAND):
        return None
    held = [
        name for name, value in module.fields.items() if isinstance(value, (ListValue, TupleValue)) and value
    ]
    trained = [name for name, value in module.fields.items() if isinstance(value, TensorValue)]
    if not module.fields and _misspelled(module) is None:
        # The skeleton of an exercise.
        return None
    misspelled = _misspelled(module)
    if misspelled is not None:
        return f"the optimizer gets no parameters: `{misspelled.name.value}` is not `__init__`"
    where = f"; layers in the plain list `self.{held[0]}` do not count" if held else ""
    if trained and not held:
        where = f"; `self.{trained[0]}` is a tensor, not an `nn.Parameter`"
    return f"the optimizer gets no parameters: `{module.cls.name}` has none{where}"


def _misspelled(module: Value) -> cst.FunctionDef | None:
    """Return the method of a class almost named `__init__`."""
    for name in _ALMOST_INIT if isinstance(module, InstanceValue) else ():
        method = module.cls.fields.get(name) if isinstance(module, InstanceValue) else None
        if isinstance(method, FunctionValue) and isinstance(method.node, cst.FunctionDef):
            return method.node
    return None


def _fixes(event: ParametersRejected, given: cst.Arg, tensors: list[UnregisteredSet]) -> Iterator[Fix]:
    module = event.place.module
    end = module.span(given.value).end()
    code = module.code(given.value)
    is_plain = isinstance(given.value, (cst.Name, cst.Attribute))
    if event.reason is RejectedArgument.METHOD and is_plain:
        yield Fix(Applicability.SAFE, f"call the method: `{code}()`", (Edit(end, "()"),))
    elif event.reason is RejectedArgument.MODULE and is_plain:
        yield Fix(Applicability.SAFE, "pass the parameters of the module", (Edit(end, ".parameters()"),))
    elif event.reason is RejectedArgument.TENSOR and is_plain:
        yield Fix(Applicability.SAFE, "pass a list", (Edit(module.span(given.value), f"[{code}]"),))
    elif event.reason is RejectedArgument.GENERATOR and isinstance(given.value, cst.List):
        edits = [
            Edit(module.span(each.value).start(), "*")
            for each in given.value.elements
            if not isinstance(each, cst.StarredElement) and isinstance(each.value, cst.Call)
        ]
        yield Fix(Applicability.SAFE, "unpack the generators", tuple(edits))
    elif event.reason is RejectedArgument.NOT_A_LEAF:
        message = "create the tensor first, then make it a leaf: `nn.Parameter(values.to(device))`"
        yield Fix(Applicability.DISPLAY, message, ())
    elif event.reason is RejectedArgument.NO_PARAMETERS and (method := _misspelled(event.value)) is not None:
        owner = event.value.cls if isinstance(event.value, InstanceValue) else None
        if owner is not None:
            # `super()._init_()` has the same mistake.
            also = (each.attr for each in attributes_of_super(method, method.name.value))
            named = [method.name, *also]
            edits = [Edit(owner.module.span(each), "__init__") for each in named]
            yield Fix(Applicability.UNSAFE, "name the constructor `__init__`", tuple(edits))
    elif event.reason is RejectedArgument.NO_PARAMETERS and tensors:
        edits = [edit for each in tensors if (edit := wrapped(each, "Parameter")) is not None]
        if len(edits) == len(tensors):
            yield Fix(Applicability.UNSAFE, "make it a parameter of the module", tuple(edits))
    elif event.reason is RejectedArgument.NO_PARAMETERS:
        yield Fix(Applicability.DISPLAY, "register the layers: `nn.ModuleList`", ())


def _used_up(event: OptimizerCreated, given: cst.Arg, rule: Rule) -> Iterator[Diagnostic]:
    value = event.given
    if not isinstance(value, ListValue) or value.items is not None or type(value.element) is not Parameter:
        return
    found = used_up(event.place)
    if found is None:
        return
    made, last = found
    module = event.place.module
    code = module.code(given.value)
    edit = _as_list(made, module.code(made), event.place)
    yield rule.diagnostic(
        event.place.span,
        f"the optimizer gets no parameters: the generator `{code}` is used up (line {module.span(last).row})",
        error=_EMPTY,
        evidence=[
            *call_trace(event),
            Evidence(module.span(made), "a generator has its items once"),
            Evidence(module.span(last), "all of them are read here"),
            Evidence(event.place.span, "nothing is left", Role.FAILURE),
        ],
        fixes=[edit],
    )


def _as_list(made: cst.CSTNode, code: str, place: Place) -> Fix:
    message = f"keep the parameters: `{abbreviate(code.strip())}` as a list"
    assign = made.body[0] if isinstance(made, cst.SimpleStatementLine) else None
    if not isinstance(assign, cst.Assign):
        return Fix(Applicability.DISPLAY, message, ())
    span = place.module.span(assign.value)
    return Fix(Applicability.SAFE, message, (Edit(span.start(), "list("), Edit(span.end(), ")")))
