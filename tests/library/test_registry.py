"""The registry: one handler for each name, and handlers leave a call's arguments as they were."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from differential import IMPORTS, interpret

from shapefix.interpreter.calls import Call
from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import NONE, Value
from shapefix.library import registry
from shapefix.library.nn import layers, loss_checks


def returns_none(*given: object) -> Value:
    return NONE


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that knows tensors only, for the time of a test."""
    monkeypatch.setattr(registry, "FUNCTIONS", {})
    monkeypatch.setattr(registry, "METHODS", {registry.TENSOR: {}, "torch.nn.Module": {}})
    monkeypatch.setattr(layers, "METHODS", registry.METHODS)
    monkeypatch.setattr(registry, "BASES", {registry.TENSOR: ()})
    monkeypatch.setattr(registry, "_declared", {registry.TENSOR})
    monkeypatch.setattr(loss_checks, "CHECKS", {})


REGISTRATIONS: dict[str, Callable[[], object]] = {
    "function": lambda: registry.function("a.b")(returns_none),
    "declare": lambda: registry.declare("a.Class"),
    "method": lambda: registry.method("a.Class", "run")(returns_none),
    "tensor method": lambda: registry.tensor_method("sum")(returns_none),
    "operation": lambda: registry.operation("sum")(returns_none),
    "tensor function": lambda: registry.tensor_function("torch.sum")(returns_none),
    "layer": lambda: layers.layer("Linear")(returns_none),
    "functional": lambda: layers.functional("linear")(returns_none),
    "losses": lambda: loss_checks._losses(("MSELoss",), ("mse_loss",))(lambda operands, given: None),
}


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("register", REGISTRATIONS.values(), ids=REGISTRATIONS)
def test_a_name_is_registered_once(register: Callable[[], object]) -> None:
    register()
    with pytest.raises(registry.RegisteredTwiceError, match="is registered twice"):
        register()


@pytest.mark.usefixtures("empty")
def test_an_operation_is_also_a_method_and_a_function() -> None:
    registry.operation("sum")(returns_none)
    with pytest.raises(registry.RegisteredTwiceError, match=r"torch\.Tensor\.sum"):
        registry.tensor_method("sum")(returns_none)
    with pytest.raises(registry.RegisteredTwiceError, match=r"torch\.sum"):
        registry.function("torch.sum")(returns_none)


@pytest.mark.usefixtures("empty")
def test_a_wrapper_gets_the_method_that_it_wraps() -> None:
    first: Value = TensorValue()
    registry.method("a.Class", "run")(lambda call: first)
    seen = []

    @registry.wrap_method("a.Class", "run")
    def run(call: Call, wrapped: registry.Handler) -> Value:
        seen.append(wrapped(call))
        return NONE

    call: Call = None  # type: ignore[assignment]
    assert registry.METHODS["a.Class"]["run"](call) is NONE
    assert seen == [first]
    with pytest.raises(KeyError):
        registry.wrap_method("a.Class", "stop")


def test_no_tensor_method_changes_the_arguments_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    methods = registry.METHODS[registry.TENSOR]
    changed, called = [], set()

    def watched(name: str, handler: registry.Handler) -> registry.Handler:
        def call_watched(call: Call) -> Value:
            positional, keywords = list(call.arguments.positional), dict(call.arguments.keywords)
            made = handler(call)
            called.add(name)
            if (call.arguments.positional, call.arguments.keywords) != (positional, keywords):
                changed.append(name)
            return made

        return call_watched

    names = [name for name in methods if name[0] not in "@_"]
    for name in names:
        monkeypatch.setitem(methods, name, watched(name, methods[name]))
    calls = [f"torch.zeros(2, 3).{name}(2, -1)" for name in names]
    interpret("\n".join((IMPORTS, *calls)))
    assert changed == []
    assert called.issuperset({"norm", "sum", "view"})


def test_a_refused_norm_has_its_order_among_its_arguments() -> None:
    source = f"{IMPORTS}\ntorch.zeros(2, 3).norm(2, 5)"
    refused = [event for event in interpret(source) if isinstance(event, OpRejected)]
    assert [event.given for event in refused] == [("self", "0", "1")]
