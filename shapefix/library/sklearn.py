"""scikit-learn, as far as its arrays become tensors: splits, scalers, labels, data sets."""

from __future__ import annotations

from shapefix.interpreter.calls import Arguments, Call
from shapefix.interpreter.containers import ListValue, TupleValue, elements
from shapefix.interpreter.iteration import each, iterate
from shapefix.interpreter.tensor_values import TensorValue, ValueRange
from shapefix.interpreter.values import Constant, LibraryObject, Unknown, Value, as_size
from shapefix.library.numpy_arrays import SERIES, as_array, new_array, series_of, with_range
from shapefix.library.ops.value_range import chosen, part_of, range_of
from shapefix.library.pandas.tables import FRAME, columns_of, known_items, of_rows, rows_of, with_labels_of
from shapefix.library.registry import declare, function, method
from shapefix.library.signatures import fitted
from shapefix.library.tensors import as_result
from shapefix.tensors.layout import Layout, contiguous, unknown_strides
from shapefix.tensors.ops import Op
from shapefix.tensors.polynomials import ZERO, Size

_SCALERS = tuple(
    f"sklearn.preprocessing.{name}"
    for name in ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")
)
_REDUCERS = ("sklearn.decomposition.PCA", "sklearn.decomposition.TruncatedSVD")
_COMPONENTS = "<components>"
"""Field of a reducer with the number of its components."""
_ENCODER = "sklearn.preprocessing.LabelEncoder"
_CLASSES = "<classes>"
"""Field of an encoder with the number of its classes, None if it is not known."""
_BUNCH = "sklearn.utils.Bunch"
_SETS = {
    "iris": (150, 4, 3),
    "wine": (178, 13, 3),
    "digits": (1797, 64, 10),
    "breast_cancer": (569, 30, 2),
    "diabetes": (442, 10, 0),
}
"""Rows, columns and classes of the data sets that scikit-learn contains; no classes for a regression."""
SIGNATURES = {
    "make_classification": "n_samples=100, n_features=20, *, n_classes=2",
    "make_blobs": "n_samples=100, n_features=2, *, centers=3",
    "make_moons": "n_samples=100",
    "make_circles": "n_samples=100",
    "make_regression": "n_samples=100, n_features=100, *, n_targets=1",
}
"""Parameters of the functions that are read here."""

for _scaler in _SCALERS:
    declare(_scaler, "builtins.object")
declare(_ENCODER, "builtins.object")
for _reducer in _REDUCERS:
    declare(_reducer, "builtins.object")
declare(_BUNCH, "builtins.object")


@function("sklearn.model_selection.train_test_split")
def split(call: Call) -> Value:
    """Two parts of each array, of arbitrary rows."""
    if call.arguments.open or "shuffle" in call.arguments.keywords:
        return Unknown()
    sizes = Size.symbol("train"), Size.symbol("test")
    parts = [_part(call, given, rows) for given in call.arguments.positional for rows in sizes]
    return ListValue(tuple(parts))


def _part(call: Call, given: Value, rows: Size) -> Value:
    """Arbitrary rows of an array, a tensor, a table or a list."""
    held = given if isinstance(given, TensorValue) else as_array(given)
    if held is not None:
        layout = None if held.layout is None or not held.layout.rank else held.layout
        after: Layout | None = None if layout is None else contiguous([rows, *layout.sizes[1:]])
        if isinstance(given, TensorValue):
            return chosen(held, as_result(call, after, Op.INDEX, dtype=held.dtype, device=held.device))
        made = with_range(new_array(call, after, held.dtype, held), part_of(range_of(held)))
        if not isinstance(given, LibraryObject) or given.kind != SERIES:
            return made
        return with_labels_of(call, series_of(made), call.place)
    if isinstance(given, LibraryObject) and given.kind == SERIES:
        return with_labels_of(call, LibraryObject(SERIES, {}, call.place), call.place)
    if isinstance(given, LibraryObject) and given.kind == FRAME:
        return of_rows(call, given, rows)
    if elements(given) is not None or isinstance(given, ListValue):
        return ListValue(None, each(call.ev, iterate(call.ev, given, call.place.node)))
    return Unknown()


@function(*_SCALERS)
def scaler(call: Call) -> Value:
    return LibraryObject(call.name, {}, call.place)


@function(_ENCODER)
def encoder(call: Call) -> Value:
    return LibraryObject(_ENCODER, {}, call.place, {_CLASSES: None})


def fitted_(call: Call) -> Value:
    """The object itself, as `fit` returns it."""
    return call.receiver or Unknown()


def scaled(call: Call) -> Value:
    """Array of the same sizes: float32 stays, everything else becomes float64."""
    given = call.value(0, "X")
    columns = columns_of(given)
    if columns is not None and isinstance(given, LibraryObject):
        held = [as_array(column) for column in columns.values()]
        known = all(each_ is not None and each_.dtype in ("float64", "int64") for each_ in held)
        layout = unknown_strides((rows_of(given), Size.of(len(columns))))
        return new_array(call, layout, "float64" if known else None)
    array = as_array(given)
    if array is None or array.dtype is None:
        return Unknown() if array is None else new_array(call, array.layout, None, array)
    dtype = "float32" if array.dtype == "float32" else None if array.dtype == "float16" else "float64"
    return new_array(call, array.layout, dtype, array)


for _scaler in _SCALERS:
    method(_scaler, "fit", "partial_fit")(fitted_)
    method(_scaler, "fit_transform", "transform", "inverse_transform")(scaled)


@function(*_REDUCERS)
def reducer(call: Call) -> Value:
    count = call.value(0, "n_components")
    return LibraryObject(call.name, {}, call.place, {_COMPONENTS: count or Unknown()})


def projected(call: Call) -> Value:
    """Array with as many columns as components are kept."""
    owner, whole = call.receiver, as_array(scaled(call))
    if whole is None or not isinstance(owner, LibraryObject):
        return Unknown()
    count = owner.fields.get(_COMPONENTS)
    size = as_size(count) if isinstance(count, Value) else None
    if whole.layout is None or whole.layout.rank != 2:
        return new_array(call, None, whole.dtype, whole)
    width = size if size is not None else Size.symbol("components", least=1)
    return new_array(call, unknown_strides((whole.layout.sizes[0], width)), whole.dtype, whole)


for _reducer in _REDUCERS:
    method(_reducer, "fit")(fitted_)
    method(_reducer, "fit_transform", "transform")(projected)


@method(_ENCODER, "fit")
def fit(call: Call) -> Value:
    if isinstance(call.receiver, LibraryObject):
        call.ev.journal.write(call.receiver.fields, _CLASSES, _number_of_classes(call.value(0, "y")))
    return call.receiver or Unknown()


@method(_ENCODER, "transform", "fit_transform")
def encoded(call: Call) -> Value:
    """Whole numbers from 0, one for each of the different labels."""
    given, owner = call.value(0, "y"), call.receiver
    if not isinstance(owner, LibraryObject):
        return Unknown()
    if call.name.endswith("fit_transform"):
        fit(call)
    held, items = as_array(given), elements(given)
    layout = held.layout if held is not None else None if items is None else contiguous([Size.of(len(items))])
    classes = owner.fields.get(_CLASSES)
    made = new_array(call, None if layout is None else contiguous(layout.sizes), "int64")
    known = ValueRange(ZERO, Size.of(classes - 1), drawn=True) if isinstance(classes, int) else None
    return with_range(made, known)


def _number_of_classes(labels: Value | None) -> int | None:
    """Number of different labels in a list of constants; None for other values."""
    items = known_items(labels) or elements(labels)
    values = {item.value for item in items or () if isinstance(item, Constant)}
    return len(values) if items and all(isinstance(item, Constant) for item in items) else None


def _pair(call: Call, sizes: list[Size], rows: Size, classes: int | None) -> tuple[Value, Value]:
    """Features and targets: class ids, or numbers for a regression (0 classes)."""
    features = new_array(call, contiguous([rows, *sizes]), "float64")
    targets = new_array(call, contiguous([rows]), "float64" if classes == 0 else "int64")
    ids = ValueRange(ZERO, Size.of(classes - 1), drawn=True) if classes else None
    return features, with_range(targets, ids)


@function(*(f"sklearn.datasets.load_{name}" for name in _SETS))
def loaded(call: Call) -> Value:
    rows, columns, classes = _SETS[call.name.rpartition("load_")[2]]
    if call.arguments.open or call.arguments.keywords.keys() - {"return_X_y"}:
        return Unknown()
    pair = _pair(call, [Size.of(columns)], Size.of(rows), classes)
    as_pair = call.constant(-1, "return_X_y", False)
    if as_pair is True:
        return TupleValue(pair)
    fields = dict(zip(("data", "target"), pair, strict=True))
    return LibraryObject(_BUNCH, {}, call.place, fields) if as_pair is False else Unknown()


@method(_BUNCH, "__getitem__")
def entry(call: Call) -> Value:
    key, owner = call.value(0), call.receiver
    found = (
        owner.fields.get(key.value)
        if isinstance(owner, LibraryObject) and isinstance(key, Constant)
        else None
    )
    return found if isinstance(found, Value) else Unknown()


@function(*(f"sklearn.datasets.{name}" for name in SIGNATURES))
def made(call: Call) -> Value:
    """Random samples of a function, with their targets."""
    name = call.name.rpartition(".")[2]
    known = {"n_samples", "n_features", "n_classes", "centers", "n_targets"}
    if call.arguments.open or call.arguments.keywords.keys() & {"return_X_y", "coef", "return_centers"}:
        return Unknown()
    keywords = {key: value for key, value in call.arguments.keywords.items() if key in known}
    given = fitted((SIGNATURES[name],), Arguments(call.arguments.positional[:2], keywords))
    rows, columns = given.size("n_samples"), Size.of(2)
    if "n_features" in given.values:
        asked = given.size("n_features")
        columns = asked if asked is not None else Size.symbol("features")
    classes: int | None = 2
    if name == "make_regression":
        classes = 0 if given.number("n_targets") == 1 else None
        if classes is None:
            return Unknown()
    elif name in ("make_classification", "make_blobs"):
        classes = given.number("n_classes" if name == "make_classification" else "centers")
    return TupleValue(_pair(call, [columns], rows if rows is not None else Size.symbol("samples"), classes))


@function("sklearn.utils.class_weight.compute_class_weight", "sklearn.utils.compute_class_weight")
def class_weights(call: Call) -> Value:
    """A weight per class, as float64."""
    held = as_array(call.arguments.keywords.get("classes"))
    sizes = [Size.symbol("classes")] if held is None or held.layout is None else list(held.layout.sizes)
    return new_array(call, contiguous(sizes), "float64")
