"""Tables of pandas become tensors: sizes and dtypes as pandas and torch say."""

from __future__ import annotations

import pytest
from checking import Check
from differential import compare, executed, revealed

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.bounds import same

TABLE = """
import numpy as np
import pandas as pd
df = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0, 1, 0], "c": ["x", "y", "x"]})
"""
KNOWN = """
df.loc[:, "a"].values
df.loc[:, ["a", "b"]].values
df.sort_values("a")["a"].values
df.sort_values(by="b")[["a", "b"]].values
df.fillna(0)["a"].values
df.drop("c", axis=1).sort_values("a").values
pd.get_dummies(df[["c"]]).values
pd.get_dummies(df[["b", "c"]], dtype=int).values
pd.get_dummies(df, columns=["c"], dtype=float).values
pd.get_dummies(df, columns=["b", "c"], dtype="float32")[["b_0", "c_x"]].values
df["c"].factorize()[0]
pd.factorize(df["b"])[0]
df.pop("a").values
""".strip().splitlines()
IN_PART = """
df.loc[df["b"] == 0, "a"].values
df.loc[df["b"] == 0, ["a", "b"]].values
df.loc[df["b"] == 0]["b"].values
df.dropna()["a"].values
df.drop_duplicates("b")["b"].values
""".strip().splitlines()


def _tensor(source: str) -> TensorValue:
    (value,) = revealed(source)
    assert isinstance(value, TensorValue)
    return value


@pytest.mark.parametrize("made", [*KNOWN, *IN_PART])
def test_what_is_known_of_a_table_is_what_pandas_makes(made: str) -> None:
    source = f"{TABLE}reveal(torch.tensor({made}))"
    ours, real = _tensor(source), executed(source)[0]
    if made in KNOWN:
        compare(ours, real)
    assert ours.dtype == str(real.dtype).removeprefix("torch.")
    assert ours.layout is not None
    assert ours.layout.rank == real.dim()
    if made in KNOWN:
        assert all(same(size, number) for size, number in zip(ours.layout.sizes, real.shape, strict=True))


def test_a_column_taken_out_is_gone() -> None:
    shown = 'reveal(torch.tensor(df[["a"]].values))\nreveal(torch.tensor(target.values))'
    source = f'{TABLE}target = df.pop("b")\n{shown}'
    for ours, real in zip(revealed(source), executed(source), strict=True):
        compare(ours, real)
    source = f'{TABLE}df.pop("c")\nreveal(torch.tensor(df.values))'
    assert _tensor(source).known_size(1) == 2 == executed(source)[0].shape[1]


@pytest.mark.parametrize(
    ("made", "fails"),
    [
        ('pd.get_dummies(df, columns=["c"])', True),
        ("pd.get_dummies(df)", True),
        ("pd.get_dummies(df, dtype=float)", False),
        ('pd.get_dummies(df[["c"]])', False),
        ('pd.get_dummies(df).astype("float32")', False),
    ],
)
def test_booleans_beside_numbers_are_objects(made: str, fails: bool, check: Check) -> None:
    code = f"import torch{TABLE}table = {made}\nx = torch.tensor(table.values)\n"
    assert [found.code for found in check(code, {"SF523"})] == (["SF523"] if fails else [])
    if fails:
        with pytest.raises(TypeError, match=r"numpy\.object_"):
            exec(code, {})
    else:
        exec(code, {})


def test_a_write_by_label_changes_the_table() -> None:
    source = f'{TABLE}df.loc[df["b"] == 0, "b"] = 0.5\nreveal(torch.tensor(df["b"].astype(float).values))'
    assert _tensor(source).dtype in (None, "float64")
