"""Smallest and largest numbers of arrays, tensors and columns: those that numpy, pandas and torch compute."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from checking import Check

HEAD = "import numpy as np\nimport pandas as pd\nimport torch\nfrom torch import nn\n\n"
RANGES = """
1 4 np.random.randint(1, 5, size=500)
0 4 np.random.randint(5, size=(20, 30))
0 4 np.random.default_rng(0).integers(5, size=500)
1 4 np.random.default_rng(0).integers(4, size=500) + 1
0 255 (np.random.rand(500) > 0.5).astype(np.uint8) * 255
0 255 255 * (np.random.rand(500) > 0.5)
0 255 np.where(np.random.rand(500) > 0.5, 255, 0)
0 1 np.where(np.random.rand(500) > 0.5, 255, 0) // 255
0 1 (np.random.rand(500) > 0.5).astype(np.int64)
1 3 np.array([1, 2, 3, 1])
0 2 np.array([1, 2, 3, 1]) - 1
1 6 np.arange(1, 7)
7 7 np.full((3, 4), 7)
0 0 np.zeros(5, dtype=np.int64)
1 1 np.ones(5, dtype=np.int64)
0 5 np.random.choice(6, size=500)
2 8 np.random.randint(1, 5, size=500).reshape(20, 25) * 2
1 4 np.random.randint(1, 5, size=500)[np.random.permutation(500)]
1 4 torch.randint(0, 4, (500,)) + 1
0 3 torch.randint(1, 5, (500,)) - 1
0 255 (torch.rand(500) > 0.5) * 255
0 255 (torch.rand(500) > 0.5).long().mul(255)
0 255 torch.where(torch.rand(500) > 0.5, 255, 0)
1 4 torch.randint(1, 5, (500,))[torch.randperm(500)]
1 4 torch.randint(1, 5, (500,))[:400]
1 3 pd.DataFrame({"label": [1, 2, 3]})["label"].values
1 3 pd.DataFrame({"label": [1, 2, 3]}).label.to_numpy()
0 2 (pd.DataFrame({"label": [1, 2, 3]})["label"] - 1).values
1 3 pd.DataFrame({"text": ["a", "b", "c"], "label": [1, 2, 3]})[["label"]].values
1 3 pd.DataFrame({"text": ["a", "b", "c"], "label": [1, 2, 3]}).drop(columns="text").to_numpy()
1 3 pd.DataFrame({"x": [0.5, 1.5, 2.5], "label": [1, 2, 3]}).iloc[:, -1].values
0 2 pd.DataFrame({"label": ["a", "b", "c"]})["label"].map({"a": 0, "b": 1, "c": 2}).values
1 3 pd.DataFrame({"label": [1, 2, 3]}).reset_index(drop=True).copy()["label"].astype(int).values
1 3 [1 + i % 3 for i in range(60)]
0 4 [i % 5 for i in range(1000)]
0 9 [i // 10 for i in range(100)]
0 98 [2 * i for i in range(50)]
4 8 [8 - i for i in range(0, 5)]
1 3 pd.DataFrame({"label": [1 + i % 3 for i in range(100)]})["label"].values
3 3 [len({x % 3 for x in [0, 1, 2, 3, 4]})]
2 2 [len(set([1, 1, 4]))]
0 2 [{word: i for i, word in enumerate(set("a b a c".split()))}[word] for word in "a b c".split()]
1 2 [{"no": 1, "yes": 2}[word] for word in ["no", "yes", "no"]]
0 1 [1 if x > 2 else 0 for x in torch.rand(500) * 4]
""".strip().splitlines()
"""The smallest and the largest number, and the code that computes them."""
WITHOUT = """
(np.random.rand(500) > 0.5).astype(np.uint8) * 300
np.random.randint(0, 300, size=500)[np.random.rand(500) > 2]
np.random.randint(0, 300, size=500) % 7
(torch.randint(0, 256, (5000,)) == 255).float().long()
torch.randint(0, 9, (500,))[torch.randint(0, 9, (500,)) < -4]
torch.arange(500)[:10]
[i % 7 for i in range(3)]
[i % 2 * 3 for i in range(300)]
[x % 5 for x in [0, 5, 10]]
torch.where(torch.randint(0, 256, (500,)) > 3, 0, torch.randint(0, 4, (500,)))
pd.DataFrame({"y": [1, 2, 30]})[pd.DataFrame({"y": [1, 2, 30]})["y"] < 5]["y"].values
""".strip().splitlines()
"""Code without a known range, or with a smaller one than the numbers it starts from."""
CHANGED = """
labels = np.random.randint(0, 256, size=50); labels[labels > 3] = 0
labels = np.random.randint(0, 256, size=50); labels.reshape(5, 10)[:] = 0
labels = np.random.randint(0, 256, size=50); labels %= 4
frame = pd.DataFrame({"y": [1, 2, 9]}); frame["y"] = [1, 2, 3]; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame["y"] = [i % 4 for i in range(3)]; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame["y"] = frame["y"] % 4; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame.y = frame.y % 4; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame.loc[frame["y"] == 9, "y"] = 3; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame.iloc[2, 0] = 3; labels = frame["y"].values
frame = pd.DataFrame({"y": [1, 2, 9]}); frame.replace(9, 3, inplace=True); labels = frame["y"].values
""".strip().splitlines()
"""Code that writes other numbers before it reads them."""


def _looked_up(made: str, rows: int) -> str:
    return f"{HEAD}ids = torch.as_tensor({made}).long()\nrows = nn.Embedding({rows}, 2)(ids)\n"


def _numbers(made: str) -> torch.Tensor:
    return torch.as_tensor(eval(made, {"np": np, "pd": pd, "torch": torch}))


@pytest.mark.parametrize("line", RANGES)
def test_a_range_is_that_of_the_numbers(line: str, check: Check) -> None:
    least, most, made = line.split(" ", 2)
    numbers = _numbers(made)
    assert (int(numbers.min()), int(numbers.max())) == (int(least), int(most))
    assert not check(_looked_up(made, int(most) + 1), {"SF505"})
    if int(most):
        assert check(_looked_up(made, int(most)), {"SF505"}), "the largest number is not known"


@pytest.mark.parametrize("made", WITHOUT)
def test_numbers_left_out_are_not_reported(made: str, check: Check) -> None:
    numbers = _numbers(made) if "300" not in made else torch.tensor([6])
    largest = int(numbers.max()) if numbers.numel() else 0
    assert not check(_looked_up(made, largest + 1), {"SF505"})


@pytest.mark.parametrize("lines", CHANGED)
def test_numbers_written_before_are_forgotten(lines: str, check: Check) -> None:
    written = lines.replace("; ", "\n")
    code = f"{HEAD}{written}\nrows = nn.Embedding(4, 2)(torch.from_numpy(labels.copy()).long())\n"
    exec(code, {})
    assert not check(code, {"SF505"})


@pytest.mark.parametrize(
    ("end", "found"), [("", True), ("mask[mask == 255] = 1", False), ("mask //= 255", False)]
)
def test_a_number_written_into_an_array_is_in_it(end: str, found: bool, check: Check) -> None:
    code = f"""{HEAD}
mask = np.zeros((8, 8), dtype=np.uint8)
mask[2:4, 3:] = 255
{end}
loss = nn.CrossEntropyLoss()(torch.randn(1, 2, 8, 8), torch.from_numpy(mask).long()[None])
"""
    assert bool(check(code, {"SF517"})) is found
    if not found:
        exec(code, {})
