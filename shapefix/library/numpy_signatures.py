"""Parameters of functions and methods of numpy, by qualified name."""

from __future__ import annotations

from shapefix.interpreter.calls import Call
from shapefix.library.signatures import BoundArguments, fitted

DRAWN = {
    "random": "size=None",
    "random_sample": "size=None",
    "standard_normal": "size=None",
    "uniform": "low=0.0, high=1.0, size=None",
    "normal": "loc=0.0, scale=1.0, size=None",
    "randint": "low, high=None, size=None, dtype=None",
    "exponential": "scale=1.0, size=None",
    "beta": "a, b, size=None",
    "poisson": "lam=1.0, size=None",
    "binomial": "n, p, size=None",
    "gamma": "shape, scale=1.0, size=None",
    "lognormal": "mean=0.0, sigma=1.0, size=None",
}
SIGNATURES = {
    **{f"numpy.random.{name}": text for name, text in DRAWN.items()},
    **{f"numpy.random.RandomState.{name}": text for name, text in DRAWN.items()},
    "numpy.random.rand": "*args",
    "numpy.random.randn": "*args",
    "numpy.random.RandomState.rand": "*args",
    "numpy.random.RandomState.randn": "*args",
    "numpy.random.RandomState.choice": "a, size=None, replace=True, p=None",
    "numpy.random.RandomState.permutation": "x",
    "numpy.random.Generator.random": "size=None, dtype=None, out=None",
    "numpy.random.Generator.standard_normal": "size=None, dtype=None, out=None",
    "numpy.random.Generator.normal": "loc=0.0, scale=1.0, size=None",
    "numpy.random.Generator.uniform": "low=0.0, high=1.0, size=None",
    "numpy.random.Generator.integers": "low, high=None, size=None, dtype=None, endpoint=False",
    "numpy.ndarray.sum": "axis=None, dtype=None, out=None, keepdims=False",
    "numpy.ndarray.std": "axis=None, dtype=None, out=None, ddof=0, keepdims=False",
    "numpy.ndarray.var": "axis=None, dtype=None, out=None, ddof=0, keepdims=False",
    "numpy.ndarray.max": "axis=None, out=None, keepdims=False",
    "numpy.ndarray.min": "axis=None, out=None, keepdims=False",
    "numpy.ndarray.mean": "axis=None, dtype=None, out=None, keepdims=False",
    "numpy.sum": "a, axis=None, dtype=None, out=None, keepdims=False",
    "numpy.mean": "a, axis=None, dtype=None, out=None, keepdims=False",
    "numpy.std": "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False",
    "numpy.var": "a, axis=None, dtype=None, out=None, ddof=0, keepdims=False",
    **dict.fromkeys(
        ("numpy.max", "numpy.min", "numpy.amax", "numpy.amin"), "a, axis=None, out=None, keepdims=False"
    ),
    "numpy.median": "a, axis=None, out=None, overwrite_input=False, keepdims=False",
    "numpy.argsort": "a, axis=-1, kind=None, order=None",
    "numpy.sort": "a, axis=-1, kind=None, order=None",
    "numpy.ndarray.argsort": "axis=-1, kind=None, order=None",
    **{
        f"numpy.{owner}{name}": f"{first}axis=None, dtype=None, out=None"
        for name in ("cumsum", "cumprod")
        for owner, first in (("", "a, "), ("ndarray.", ""))
    },
    "numpy.diff": "a, n=1, axis=-1, prepend=None, append=None",
    "numpy.pad": "array, pad_width, mode='constant'",
    "numpy.append": "arr, values, axis=None",
    "numpy.delete": "arr, obj, axis=None",
    "numpy.rollaxis": "a, axis, start=0",
    "numpy.split": "ary, indices_or_sections, axis=0",
    "numpy.array_split": "ary, indices_or_sections, axis=0",
    "numpy.lib.stride_tricks.sliding_window_view": "x, window_shape, axis=None",
    "numpy.outer": "a, b, out=None",
    "numpy.linalg.norm": "x, ord=None, axis=None, keepdims=False",
    "numpy.dstack": "tup",
    "numpy.expand_dims": "a, axis",
    "numpy.squeeze": "a, axis=None",
    "numpy.moveaxis": "a, source, destination",
    "numpy.swapaxes": "a, axis1, axis2",
    "numpy.repeat": "a, repeats, axis=None",
    "numpy.tile": "A, reps",
    "numpy.ascontiguousarray": "a, dtype=None",
    "numpy.ndarray.squeeze": "axis=None",
    "numpy.ndarray.swapaxes": "axis1, axis2",
    "numpy.ndarray.repeat": "repeats, axis=None",
    "numpy.zeros": "shape, dtype=None, order='C'",
    "numpy.ones": "shape, dtype=None, order='C'",
    "numpy.empty": "shape, dtype=None, order='C'",
    "numpy.full": "shape, fill_value, dtype=None, order='C'",
    "numpy.arange": "stop, *, dtype=None | start, stop, step=1, dtype=None",
    "numpy.linspace": "start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0",
    "numpy.array": "object, dtype=None, *, copy=True, order='K', subok=False, ndmin=0",
    "numpy.asarray": "a, dtype=None, order=None, *, copy=None",
    "numpy.stack": "arrays, axis=0, out=None, *, dtype=None",
    "numpy.vstack": "tup, *, dtype=None",
    "numpy.hstack": "tup, *, dtype=None",
    "numpy.column_stack": "tup",
    "numpy.concatenate": "arrays, /, axis=0, out=None, *, dtype=None",
    "numpy.eye": "N, M=None, k=0, dtype=None",
    "numpy.identity": "n, dtype=None",
    "numpy.bincount": "x, /, weights=None, minlength=0",
    "numpy.random.choice": "a, size=None, replace=True, p=None",
    "numpy.random.permutation": "x",
    "numpy.random.Generator.choice": "a, size=None, replace=True, p=None, axis=0, shuffle=True",
    "numpy.random.Generator.permutation": "x, axis=0",
    "numpy.ndarray.astype": "dtype, order='K', casting='unsafe', subok=True, copy=True",
    "numpy.ndarray.copy": "order='C'",
    "numpy.ndarray.reshape": "*shape, order='C', copy=None",
}
"""Parameters of numpy's functions and methods that are read here."""


def arguments_of_numpy(call: Call) -> BoundArguments:
    """Arguments of a function of numpy by parameter name."""
    return fitted(tuple(SIGNATURES[call.name].split(" | ")), call.arguments)
