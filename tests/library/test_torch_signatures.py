"""The signatures of torch that shapefix ships, compared with the installed torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from generate_torch_signatures import signatures

from shapefix.interpreter.calls import Arguments
from shapefix.interpreter.containers import TupleValue
from shapefix.interpreter.values import Constant, Value
from shapefix.library.nn import layers
from shapefix.library.registry import FUNCTIONS, METHODS, TENSOR
from shapefix.library.signatures import BoundArguments, bound, fitted, parameters
from shapefix.library.torch_signatures import WRITTEN, generated, overloads, signature


def test_the_shipped_signatures_are_those_of_the_installed_torch() -> None:
    assert dict(generated()) == signatures(), "run tests/library/generate_torch_signatures.py"


def test_every_layer_and_function_of_torch_nn_has_a_signature() -> None:
    found = [name for name, handler in FUNCTIONS.items() if handler.__module__ == layers.__name__]
    found += [
        f"{kind}.forward"
        for kind, methods in METHODS.items()
        if "forward" in methods and methods["forward"].__module__ == layers.__name__
    ]
    assert len(found) > 250
    assert [name for name in found if name not in generated() and name not in WRITTEN] == []


@pytest.mark.parametrize("name", generated())
def test_a_signature_can_be_read(name: str) -> None:
    for overload in overloads(name):
        assert all(parameter.isidentifier() for parameter, _ in parameters(overload))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_written_signature_differs_from_the_generated_one(name: str) -> None:
    assert WRITTEN[name] != generated().get(name)
    if name in generated() and "*" not in WRITTEN[name]:
        assert len(parameters(WRITTEN[name])) >= len(parameters(generated()[name]))


def test_what_comes_after_a_star_is_read_by_name_only() -> None:
    values = bound(signature("torch.nn.GaussianNLLLoss"), Arguments([Constant(7)], {"eps": Constant(1)}))
    assert {name: value.value for name, value in values.items() if isinstance(value, Constant)} == {
        "full": False,
        "eps": 1,
        "reduction": "mean",
    }


def test_arguments_given_one_by_one_are_read_as_a_tuple() -> None:
    sizes: list[Value] = [Constant(2), Constant(3)]
    one_by_one = BoundArguments(bound("*size, dtype=None", Arguments(sizes)))
    assert one_by_one.numbers("size") == [2, 3]
    at_once = BoundArguments(bound("*size, dtype=None", Arguments([TupleValue(tuple(sizes))])))
    assert at_once.numbers("size") == [2, 3]
    by_name = BoundArguments(bound("*size, dtype=None", Arguments([], {"size": TupleValue(tuple(sizes))})))
    assert by_name.numbers("size") == [2, 3]
    assert BoundArguments(bound("*size", Arguments([Constant(2)], open=True))).shape("size") is None


def test_an_overload_is_chosen_by_the_number_and_names_of_the_arguments() -> None:
    def names(*positional: int, **keywords: int) -> set[str]:
        values = {name: Constant(value) for name, value in keywords.items()}
        given = fitted(overloads("torch.arange"), Arguments(list(map(Constant, positional)), dict(values)))
        return {"start", "end", "step"} & given.values.keys()

    assert names(5) == names(end=5) == {"end"}
    assert names(1, 5) == names(1, end=5) == names(1, 5, step=2) == {"start", "end", "step"}


def test_every_operation_that_reads_arguments_by_name_has_a_signature() -> None:
    handlers = {f"{TENSOR}.{name}": handler for name, handler in METHODS[TENSOR].items()}
    handlers |= {name: handler for name, handler in FUNCTIONS.items() if name.startswith("torch.")}
    # `x.mT` is a property, `x.adjoint()` shares its handler.
    reading = [
        name
        for name, handler in handlers.items()
        if "@" not in name and "arguments_of" in _names_reached(inspect.unwrap(handler))
    ]
    assert len(reading) > 80
    assert [name for name in reading if name not in generated() and name not in WRITTEN] == []


def _names_reached(handler: Callable[..., object]) -> set[str]:
    """The names in a handler and in the functions of its module that it calls."""
    found: set[str] = set()
    waiting = [handler]
    while waiting:
        function = waiting.pop()
        for name in function.__code__.co_names:
            if name not in found:
                found.add(name)
                called = function.__globals__.get(name)
                if inspect.isfunction(called) and called.__module__.startswith("shapefix.library.ops"):
                    waiting.append(called)
    return found
