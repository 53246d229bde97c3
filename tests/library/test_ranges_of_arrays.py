"""Smallest and largest numbers of arrays, tensors and columns: those that numpy, pandas and torch compute."""

from __future__ import annotations

import io
import random

import numpy as np
import pandas as pd
import pytest
import torch
from checking import Check

HEAD = """\
import io
import random
import numpy as np
import pandas as pd
import torch
from torch import nn

"""
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
1 5 np.arange(1, 6).repeat(8)
1 5 np.repeat(np.arange(1, 6), 8)
1 5 np.tile(np.arange(1, 6), 4)
0 7 np.concatenate([np.arange(2), np.full(3, 7)])
2 7 np.stack([np.full(3, 2), np.full(3, 7)])
1 5 torch.cat([torch.full((10,), 1), torch.full((10,), 5)])
0 6 torch.cat([torch.randint(0, 7, (500,)), torch.full((3,), 2)])
1 5 torch.stack([torch.arange(1, 4), torch.arange(3, 6)])
1 5 torch.arange(1, 6)[torch.randint(0, 5, (500,))]
1 5 [random.choice([1, 2, 3, 4, 5]) for _ in range(500)]
1 5 [row[1] for row in [(0.5, i % 5 + 1) for i in range(400)]]
0 3 [row[1] for row in [(0.5, (i + 3) % 4) for i in range(30)]]
0 3 [row[1] for row in [(0.5, i // 50) for i in range(200)]]
1 13 [int(random.randint(0, 99) % 13) + 1 for _ in range(5000)]
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
1 3 np.array([1.0, 2.0, 3.0])
0 2 (np.array([1.0, 2.0, 3.0]) - 1).astype(np.int64)
1 3 np.array([[5.1, 1], [4.9, 2], [6.3, 3]])[:, 1]
0 2 np.array([[5.1, 1], [4.9, 2], [6.3, 3]])[:, -1] - 1
1 2 pd.DataFrame({"x": [0.5, 1.5], "y": [1, 2]}).astype(float)["y"].values
1 3 pd.read_csv(io.StringIO("x,label\\n0.5,1\\n1.5,2\\n2.5,3\\n"))["label"].values
1 3 pd.read_csv(io.StringIO("x;label\\n0.5;1\\n1.5;2\\n2.5;3\\n"), sep=";").label.to_numpy()
3 3 [pd.DataFrame({"name": ["cat", "dog", "cat", "owl"]})["name"].nunique()]
2 2 [len(pd.DataFrame({"y": [4, 7, 4]})["y"].unique())]
0 2 [{n: i for i, n in enumerate(pd.DataFrame({"n": ["b", "a", "c"]})["n"].unique())}[n] for n in list("abc")]
1 3 pd.DataFrame({"y": [1, 2, 3]})["y"].tolist()
3 3 [int(torch.tensor([1, 3, 2]).max())]
4 4 [torch.tensor([1, 3, 2]).max().item() + 1]
5 5 [int(np.array([1, 5, 2]).max())]
3 3 [len(" ".join(["a b", "c"]).split())]
1 13 [int(line.split()[1]) for line in [f"a {i % 13 + 1}" for i in range(78)]]
1 13 [int(x.strip().split(" ")[1]) for x in [f"{'ab' * (i % 4 + 1)} {i % 13 + 1}" for i in range(78)]]
0 2 [["b", "a", "c"].index(d["k"]) for d in [{"k": ["a", "b", "c"][i % 3]} for i in range(40)]]
0 9 [{"cat": 0, "dog": 5, "owl": 9}[d[1]] for d in [(i, ["cat", "dog", "owl"][i % 3]) for i in range(40)]]
0 7 [{"cat": 0, "dog": 5}.get(d[1], 7) for d in [(i, ["cat", "dog", "owl"][i % 3]) for i in range(40)]]
0 3 [b for a, b in [(f"text {i}", i % 4) for i in range(40)]]
1 3 [row["y"] + 1 for row in [{"x": i * 0.5, "y": -(i % 2) + i % 4 if i > 3 else 0} for i in range(40)]]
0 5 [{"b": 0, "a": 5}[name.upper().lower()] for name in [chr(97 + i % 2) for i in range(20)]]
3 83 np.random.choice([3, 17, 42, 83], size=500)
3 83 np.random.default_rng(0).choice([3, 17, 42, 83], size=500)
1 5 pd.read_csv(io.StringIO("x,y\\n" + "\\n".join(f"{i},{i % 5 + 1}" for i in range(60))))["y"].values
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
[row[1] for row in [(0.5, x % 5) for x in [0, 5, 10]]]
[row[1] for row in [(0.5, i % 7) for i in range(3)]]
[row[1] for row in [(0.5, 2 * i % 8) for i in range(300)]]
[row[1] for row in [(0.5, i % 8) for i in range(300)] if row[1] < 3]
torch.cat([torch.arange(3), torch.arange(9)[:3]])
torch.arange(1, 6)[torch.randint(0, 3, (500,))]
torch.arange(1, 6)[torch.randint(0, 5, (1,)) * 0]
[random.choice([1, 2, 30][:2]) for _ in range(50)]
np.concatenate([np.arange(3), np.arange(9)[:3]])
torch.where(torch.randint(0, 256, (500,)) > 3, 0, torch.randint(0, 4, (500,)))
[b for a, b in [(i, i % 2 * 3) for i in range(40)] if b < 2]
[{"a": 0, "b": 9}.get(name[0], 1) for name in [f"a{i}" for i in range(20)]]
[len(f"{i:05d}") for i in range(20)]
pd.DataFrame({"y": [1, 2, 30]})[pd.DataFrame({"y": [1, 2, 30]})["y"] < 5]["y"].values
""".strip().splitlines()
"""Code without a known range, or with a smaller one than the numbers it starts from."""
WRITTEN = """
masks = np.zeros((4, 6, 6), dtype=np.uint8); masks[1, 2:4] = 7
masks = np.zeros((4, 6, 6), dtype=np.uint8); masks[:, 1] = 7
masks = np.zeros((4, 6, 6), dtype=np.uint8); masks[2][1:3] = 7
""".strip().splitlines()
"""Code that writes a larger number into zeros."""
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


LOOPS = ("for part in masks:\n    part[1:3] = 7\n",)


@pytest.mark.parametrize("writes", [*(line.partition("; ")[2] + "\n" for line in WRITTEN), *LOOPS])
def test_written_numbers_are_known(writes: str, check: Check) -> None:
    code = f"{HEAD}masks = np.zeros((4, 6, 6), dtype=np.uint8)\n{writes}"
    held: dict[str, object] = {}
    exec(code, held)
    assert isinstance(held["masks"], np.ndarray)
    assert held["masks"].max() == 7
    for rows, is_outside in ((7, True), (8, False)):
        looked_up = f"{code}nn.Embedding({rows}, 2)(torch.from_numpy(masks).long())\n"
        assert bool(check(looked_up, {"SF505"})) is is_outside


def test_a_write_of_one_branch_is_not_known(check: Check) -> None:
    code = f"{HEAD}masks = np.zeros((4, 6), dtype=np.uint8)\nif input():\n    masks[1] = 7\n"
    assert not check(f"{code}nn.Embedding(3, 2)(torch.from_numpy(masks).long())\n", {"SF505"})


def _looked_up(made: str, rows: int) -> str:
    return f"{HEAD}ids = torch.as_tensor({made}).long()\nrows = nn.Embedding({rows}, 2)(ids)\n"


def _numbers(made: str) -> torch.Tensor:
    return torch.as_tensor(eval(made, {"np": np, "pd": pd, "torch": torch, "io": io, "random": random}))


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


COUNTED = """
ids = torch.randint(1, 6, (50,)); rows = int(ids.max())
ids = torch.randint(0, 6, (50,)); rows = ids.max().item() + 1
ids = torch.tensor([1, 2, 3, 3]); rows = len(ids.unique())
ids = torch.tensor([1, 2, 3, 3]); rows = len(torch.unique(ids)) + 1
ids = torch.tensor([0, 1, 2, 1]); rows = len(ids.unique())
ids = torch.from_numpy(np.random.randint(1, 6, size=50)); rows = len(ids.unique())
ids = np.random.randint(1, 6, size=50); rows = len(np.unique(ids)); ids = torch.from_numpy(ids)
ids = np.random.randint(3, 6, size=50); rows = int(ids.max()) + 1; ids = torch.from_numpy(ids)
ids = np.random.randint(3, 6, size=50); rows = int(ids.max()); ids = torch.from_numpy(ids)
ids = np.random.choice([3, 7, 9], 60); rows = len(np.unique(ids)); ids = torch.from_numpy(ids)
ids = np.random.choice([3, 7], 60); ids[:2] = [3, 9]; rows = len(np.unique(ids)); ids = torch.from_numpy(ids)
ids = np.random.choice([0, 1, 2], 60); rows = len(np.unique(ids)); ids = torch.from_numpy(ids)
frame = pd.DataFrame({"u": [1, 2, 3]}); rows = frame["u"].nunique(); ids = torch.tensor(frame["u"].values)
frame = pd.DataFrame({"u": [1, 2, 3]}); rows = frame["u"].max() + 1; ids = torch.tensor(frame["u"].values)
frame = pd.DataFrame({"u": [1, 2, 3]}); rows = len(set(frame["u"])); ids = torch.tensor(frame["u"].tolist())
frame = pd.DataFrame({"u": [0, 2, 1]}); rows = frame["u"].nunique(); ids = torch.tensor(frame["u"].values)
t = pd.DataFrame({"u": np.random.randint(1, 4, 50)}); rows = t.u.nunique(); ids = torch.tensor(t.u.values)
t = pd.DataFrame({"u": np.random.randint(0, 4, 50)}); rows = int(t.u.max()); ids = torch.tensor(t.u.values)
""".strip().splitlines()
"""Ids, and a number of rows taken from them: the number of different ones, or the largest."""


@pytest.mark.parametrize("lines", COUNTED)
def test_rows_counted_from_the_ids(lines: str, check: Check) -> None:
    code = HEAD + lines.replace("; ", "\n") + "\nnn.Embedding(rows, 2)(ids)\n"
    try:
        exec(code, {})
        raises = False
    except IndexError:
        raises = True
    assert bool(check(code, {"SF505"})) == raises


ITEMS = """
[np.array([0, 1]), np.array([2, 3])]
[torch.tensor([0, 1]), torch.tensor([2, 3])]
[np.array([[0, 1], [2, 3]]) for _ in range(3)]
""".strip().splitlines()


@pytest.mark.parametrize("made", ITEMS)
def test_any_item_of_a_list(made: str, check: Check) -> None:
    code = f"""{HEAD}held = {made}
def embedded(i, rows):
    return nn.Embedding(rows, 2)(torch.as_tensor(held[i]).long())
"""
    for rows in (3, 4):
        found = check(f"{code}\nimport sys\nembedded(int(sys.argv[1]), {rows})\n", {"SF505"})
        assert bool(found) == (rows == 3)
    space: dict[str, object] = {}
    exec(code, space)
    assert max(int(torch.as_tensor(each).max()) for each in space["held"]) == 3  # type: ignore[attr-defined]


def test_two_paths_have_no_common_range(check: Check) -> None:
    code = f"{HEAD}import sys\nids = torch.tensor([1, 2, 3])\nif sys.argv[1:]:\n    ids = torch.arange(3)\n"
    assert not check(f"{code}nn.Embedding(3, 2)(ids)\n", {"SF505"})


IMAGES = """
np.array(Image.fromarray(mask))
np.asarray([Image.fromarray(mask) for _ in range(4)][0])
np.array(Image.fromarray(mask), dtype=np.int64)
np.array(Image.fromarray(mask)) // 255
np.array(Image.fromarray(mask).convert("1"))
np.array(Image.fromarray(mask).resize((4, 4)))
""".strip().splitlines()


@pytest.mark.parametrize("made", IMAGES)
def test_bytes_of_an_image_made_of_an_array(made: str, check: Check) -> None:
    pytest.importorskip("PIL")
    code = f"""{HEAD}from PIL import Image

mask = np.zeros((8, 8), dtype=np.uint8)
mask[2:5, 3:] = 255
nn.Embedding(255, 2)(torch.as_tensor({made}).long())
"""
    try:
        exec(code, {})
        raises = False
    except IndexError:
        raises = True
    assert raises or not check(code, {"SF505"})
    if "convert" not in made and "resize" not in made:
        assert bool(check(code, {"SF505"})) == raises


FILTERED = """
for label in labels:\\n    if label < 3:\\n        kept.append(label)
for label in labels:\\n    if label > 2:\\n        continue\\n    kept.append(label)
for label in labels:\\n    kept.append(label % 3)
for label in labels:\\n    kept.append(label if label < 3 else 0)
for i in labels:\\n    try:\\n        kept.append([0, 1, 2][i])\\n    except IndexError:\\n        pass
kept = [label for label in labels if label < 3]
kept = [label if label < 3 else 1 for label in labels]
kept = [each for label in labels for each in (label,) if each < 3]
kept = list(filter(lambda label: label < 3, labels))
kept = [next(iter(labels))]
add = lambda label: kept.append(label) if label < 3 else None\\nfor label in labels:\\n    add(label)
def add(label):\\n    if label < 3:\\n        kept.append(label)\\nfor label in labels:\\n    add(label)
def add(i):\\n    if i > 2:\\n        return\\n    kept.append(i)\\nfor label in labels:\\n    add(label)
kept = [label for _, label in sorted(zip(labels, labels))[:5]]
kept = labels[:3]
for label in labels:\\n    each = (label + 12) % 6\\n    if each < 3:\\n        kept.append(each)
kept = [row[1] for row in [(0, label % 6) for label in labels] if row[1] < 3]
rows = [(0, i % 6) for i in range(60)]\\nfor _, each in rows:\\n    if each < 3:\\n        kept.append(each)
rows = [(0, i % 6) for i in range(60)]\\nkept = [each for _, each in rows if each < 3]
rows = [(0, i % 6) for i in range(60)]\\nkept = [min(each, 2) for _, each in rows]
rows = [(0, i % 6) for i in range(60)]\\nkept = [each for _, each in rows[:3]]
import random\\nkept = [each for each in [random.choice([0, 1, 5]) for _ in range(30)] if each < 3]
kept = [min(label, 2) for label in labels]
kept = [label for label in set(labels) - {3, 4, 5}]
kept = [{"0": 0, "1": 1, "2": 2, "3": 0, "4": 1, "5": 2}[str(label)] for label in labels]
kept = [int(name) for name in map(str, labels) if name in ("1", "2")]
""".strip().splitlines()
"""Code that leaves out the larger labels of a list from 0 to 5."""


@pytest.mark.parametrize("lines", FILTERED)
def test_numbers_left_out_in_a_loop_are_not_reported(lines: str, check: Check) -> None:
    written = lines.replace("\\n", "\n")
    code = f"labels = [i % 6 for i in range(60)]\nkept = []\n{written}\n"
    code = f"{HEAD}{code}nn.Embedding(3, 2)(torch.tensor(kept))\n"
    exec(code, {})
    assert not check(code, {"SF505"})


def test_a_list_that_contains_itself_many_times_is_bounded(check: Check) -> None:
    code = (
        "held = []\n"
        + "held.append(held)\n" * 60
        + "for i, each in enumerate(held):\n    pairs = list(zip(each, held))\n"
    )
    exec(code, {})
    assert not check(HEAD + code)
