"""Random numbers of numpy: of its functions, and of its generators."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value
from shapefix.library.numpy_arrays import array_of, as_array, stated_dtype, with_range
from shapefix.library.numpy_signatures import DRAWN, arguments_of_numpy
from shapefix.library.ops.value_range import drawn
from shapefix.library.python.random_numbers import number_below
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import BoundArguments
from shapefix.library.tensors import is_number

GENERATOR = "numpy.random.Generator"
RANDOM_STATE = "numpy.random.RandomState"

_OTHERS = ("n", "p", "shape", "mean", "sigma")
"""More parameters of distributions: an array as one of them decides about the sizes, too."""

declare(GENERATOR, "builtins.object")
declare(RANDOM_STATE, "builtins.object")


@method(RANDOM_STATE, "rand", "randn")
@function("numpy.random.rand", "numpy.random.randn")
def of_sizes(call: Call) -> Value:
    given = arguments_of_numpy(call)
    # Without sizes it is a float.
    return Unknown() if given.is_none("args") else array_of(call, given.shape("args"), "float64")


@method(RANDOM_STATE, *DRAWN)
@function(*(f"numpy.random.{name}" for name in DRAWN))
def distributed(call: Call) -> Value:
    """Random numbers of a distribution; a single one without a size."""
    given = arguments_of_numpy(call)
    if given.is_none("size"):
        return number_below(call, given) if call.name.endswith("randint") else Unknown()
    if call.name.endswith("randint"):
        return _whole_numbers(call, given, stated_dtype(given, "int64"))
    if not _are_numbers(given, "loc", "scale", "low", "high", "lam", "a", "b", *_OTHERS):
        return Unknown()
    is_count = call.name.endswith(("poisson", "binomial"))
    return array_of(call, given.shape("size"), "int64" if is_count else "float64")


def _whole_numbers(call: Call, given: BoundArguments, dtype: str | None) -> Value:
    """Array of random whole numbers below a bound."""
    if not _are_numbers(given, "low", "high"):
        return Unknown()
    made = array_of(call, given.shape("size"), dtype)
    array = as_array(made)
    if array is None or ("endpoint" in given.values and given.flag("endpoint") is not False):
        return made
    low, high = given.values.get("low"), given.values.get("high")
    if given.is_none("high"):
        low, high = None, low
    return with_range(made, drawn(TensorValue(), low, high).extremes if high is not None else None)


@function("numpy.random.default_rng")
def generator(call: Call) -> Value:
    return LibraryObject(GENERATOR, {}, call.place)


@function("numpy.random.RandomState")
def state(call: Call) -> Value:
    return LibraryObject(RANDOM_STATE, {}, call.place)


@method(GENERATOR, "random", "standard_normal", "normal", "uniform", "integers")
def drawn_by_generator(call: Call) -> Value:
    """Random numbers of a distribution; a single one without a size."""
    given = arguments_of_numpy(call)
    if call.name.endswith("integers") and given.is_none("size") and given.flag("endpoint") is False:
        return number_below(call, given)
    is_plain = given.is_none("size") is False and "out" not in call.arguments.keywords
    if not is_plain or not _are_numbers(given, "loc", "scale", "low", "high"):
        return Unknown()
    if call.name.endswith("integers"):
        return _whole_numbers(call, given, stated_dtype(given, "int64"))
    dtype = stated_dtype(given, "float64") if "dtype" in given.values else "float64"
    return array_of(call, given.shape("size"), dtype)


def _are_numbers(given: BoundArguments, *names: str) -> bool:
    """Check that these arguments are numbers: the sizes of arrays would decide, too."""
    values = [given.value(name) for name in names if name in given.values]
    return all(each is None or is_number(each) or isinstance(each, Constant) for each in values)
