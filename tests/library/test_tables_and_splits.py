"""Tables of pandas and arrays of scikit-learn: sizes and dtypes as these libraries compute them."""

from __future__ import annotations

import pytest
from checking import Check
from differential import compare, executed, revealed

TABLE = 'pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": [1, 2, 3], "c": ["x", "y", "z"], "d": [True, False, True]})'
OF_TABLES = """
df[["a", "b"]].values
df[["a"]].to_numpy()
df["a"].values
df.b.values
df["b"].to_numpy(dtype="float32")
df["d"].values
df.drop(columns=["c", "d"]).values
df.drop(["c", "d"], axis=1).to_numpy()
df.drop(columns=["c", "d"]).iloc[:, :-1].values
df[["b", "a"]].iloc[:, -1].values
df[["a", "b"]].astype("float32").values
df["b"].astype(float).values
(df["b"] - 1).values
(df["b"] / 2).values
(df["a"] > 1).values
(df["a"] > 1).astype(int).values
df[df["b"] > 1]["a"].values
df[["b"]].copy().values
df[["a", "b"]].reset_index(drop=True).values
df[["a", "b"]].sample(frac=1).values
df["b"].map({1: 0, 2: 1, 3: 2}).values
pd.get_dummies(df[["c"]]).values
pd.get_dummies(df["c"]).to_numpy()
pd.DataFrame(np.zeros((4, 2)), columns=list("xy")).drop(columns="y").values
df.sample(frac=0.5)["b"].values
np.array(df["a"])
[int(df["b"].iloc[0])]
df["b"].tolist()
pd.DataFrame(np.zeros((4, 2)), columns=["x", "y"])["x"].values
pd.DataFrame({"x": np.zeros(4, dtype=np.float32), "y": np.ones(4)}).values
""".strip().splitlines()
ARRAYS = """
train_test_split(np.zeros((10, 3)), np.arange(10), test_size=0.2)[1]
train_test_split(torch.zeros(10, 3), test_size=0.2)[0]
train_test_split(df[["a", "b"]], test_size=0.4)[0].values
train_test_split(df["b"], df["a"], test_size=0.4)[2].values
StandardScaler().fit_transform(np.zeros((10, 3)))
StandardScaler().fit_transform(np.zeros((10, 3), dtype=np.float32))
MinMaxScaler().fit_transform(np.ones((10, 3), dtype=np.int64))
StandardScaler().fit(np.zeros((10, 3))).transform(np.ones((4, 3)))
StandardScaler().fit_transform(df[["a", "b"]])
LabelEncoder().fit_transform(["cat", "dog", "cat"])
LabelEncoder().fit(["cat", "dog"]).transform(["cat", "cat"])
load_iris().data
load_iris()["target"]
load_wine(return_X_y=True)[0]
load_digits().target
load_breast_cancer().data
load_diabetes(return_X_y=True)[1]
make_classification(n_samples=20, n_features=6, random_state=0)[0]
make_classification(20, 6, n_informative=4, n_classes=3)[1]
make_moons(n_samples=20, noise=0.1)[0]
make_circles(20)[1]
make_blobs(n_samples=20, centers=3)[1]
make_regression(n_samples=20, n_features=2)[1]
compute_class_weight("balanced", classes=np.unique([0, 1]), y=[0, 1, 1])
""".strip().splitlines()
HEAD = f"import numpy as np\nimport pandas as pd\nimport torch\ndf = {TABLE}\n"
IMPORTS = """
from sklearn.datasets import *
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import LabelEncoder, MinMaxScaler, StandardScaler
from sklearn.utils.class_weight import compute_class_weight
"""


@pytest.mark.parametrize("made", OF_TABLES)
def test_a_column_has_the_dtype_that_pandas_gives_it(made: str) -> None:
    source = f"{HEAD}reveal(torch.as_tensor({made}))"
    found = revealed(source)[0]
    assert getattr(found, "dtype", None) is not None
    compare(found, executed(source)[0])


@pytest.mark.parametrize("made", ARRAYS)
def test_an_array_is_that_of_scikit_learn(made: str) -> None:
    pytest.importorskip("sklearn")
    names = [name for name in ("iris", "wine", "digits", "breast_cancer", "diabetes") if name in made]
    imports = IMPORTS.replace("import *", f"import load_{names[0]}" if names else "import " + MADE)
    source = f"{HEAD}{imports}reveal(torch.as_tensor({made}))"
    found = revealed(source)[0]
    assert getattr(found, "dtype", None) is not None
    compare(found, executed(source)[0])


MADE = "make_blobs, make_circles, make_classification, make_moons, make_regression"


@pytest.mark.parametrize(
    ("split", "found"),
    [("X, _, y, _ = train_test_split(data, labels)", True), ("X, y = data, labels - 1", False)],
)
def test_labels_keep_their_range_in_a_split(split: str, found: bool, check: Check) -> None:
    code = f"""
import numpy as np
import torch
from sklearn.model_selection import train_test_split

data, labels = np.random.rand(40, 4).astype("float32"), np.array([1, 2, 3, 2] * 10)
{split}
loss = torch.nn.CrossEntropyLoss()(torch.nn.Linear(4, 3)(torch.from_numpy(X)), torch.from_numpy(y))
"""
    assert bool(check(code, {"SF517"})) is found


@pytest.mark.parametrize(("classes", "found"), [(2, True), (3, False)])
def test_an_encoder_counts_its_labels(classes: int, found: bool, check: Check) -> None:
    code = f"""
import torch
from sklearn.preprocessing import LabelEncoder

y = torch.from_numpy(LabelEncoder().fit_transform(["a", "b", "c", "b"]))
loss = torch.nn.functional.cross_entropy(torch.nn.Linear(4, {classes})(torch.randn(4, 4)), y)
"""
    assert bool(check(code, {"SF517"})) is found


SAMPLED = """
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, table):
        self.table = table

    def __len__(self):
        return len(self.table)

    def __getitem__(self, i):
        return torch.tensor(self.table.loc[i, "x"])


train = pd.DataFrame({"x": [0.5, 1.5, 2.5, 3.5]}).sample(frac=0.5, random_state=0)
LINE
for x in DataLoader(Rows(train), batch_size=2):
    print(x)
"""


@pytest.mark.parametrize(
    ("line", "raises"),
    [
        ("", True),
        ("train.reset_index()", True),
        ("train.reset_index(inplace=True, drop=True)", False),
        ("train = train.reset_index(drop=True)", False),
        ("train.index = range(len(train))", False),
    ],
)
def test_new_labels_after_a_sample(line: str, raises: bool, check: Check) -> None:
    code = SAMPLED.replace("LINE", line)
    if raises:
        with pytest.raises(KeyError):
            exec(code, {})
    else:
        exec(code, {})
    assert [each.code for each in check(code, {"SF523"})] == ["SF523"] * raises
