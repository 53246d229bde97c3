"""Samples whose lengths depend on the index: reported where the loader of torch fails, and only there."""

from __future__ import annotations

import pytest
from checking import Check
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

RULES = {"SF302", "SF303"}


def fails(code: str) -> bool:
    """Run a script; return whether its batches have rows of different lengths."""
    try:
        exec(compile(code, "script.py", "exec"), {"__name__": "__main__"})
    except (RuntimeError, ValueError) as error:
        return "equal size" in str(error) or "expected sequence of length" in str(error)
    return False


CHUNKS = """
import math
import torch
from torch.utils.data import DataLoader, Dataset


class Chunks(Dataset):
    def __init__(self, series, width):
        self.series, self.width = series, width

    def __len__(self):
        return math.ceil(len(self.series) / self.width)

    def __getitem__(self, index):
        return self.series[index * self.width : (index + 1) * self.width]


for batch in DataLoader(Chunks(torch.arange({length}), {width}), batch_size={size}, drop_last={drops}):
    batch.float()
"""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(1, 90), width=st.integers(1, 9), size=st.integers(1, 6), drops=st.booleans())
def test_a_shorter_last_chunk(length: int, width: int, size: int, drops: bool, check: Check) -> None:
    code = CHUNKS.format(length=length, width=width, size=size, drops=drops)
    assert bool(check(code, RULES)) == fails(code)


TEXTS = """
import torch
from torch.utils.data import DataLoader, Dataset

texts = {texts}
words = sorted({{word for text in texts for word in text.split()}})
{vocabulary}


class Texts(Dataset):
    def __len__(self):
        return len(texts)

    def __getitem__(self, index):
        return {row}


for batch in DataLoader(Texts(), batch_size={size}):
    len(batch)
"""
VOCABULARIES = [
    "numbers = {word: number for number, word in enumerate(words)}",
    "numbers = {word: number + 1 for number, word in enumerate(words)}",
    "numbers = dict(zip(words, range(len(words))))",
    "numbers = {}\nfor word in words:\n    numbers[word] = len(numbers)",
    "numbers = {word: len(word) for word in words}",
    "from collections import Counter\nnumbers = {'<pad>': 0}\n"
    "for word in Counter(words):\n    numbers[word] = len(numbers)",
]
ROWS = [
    "torch.tensor([numbers[word] for word in texts[index].split()])",
    "torch.LongTensor([numbers.get(word, 0) for word in texts[index].split()]), index",
    "{'ids': [numbers[word] for word in texts[index].split()]}",
    "torch.tensor([ord(letter) - 97 for letter in texts[index].replace(' ', '')])",
]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.lists(st.sampled_from("abcdefghijklm"), min_size=1, max_size=4), min_size=2, max_size=4
    ),
    vocabulary=st.sampled_from(VOCABULARIES),
    row=st.sampled_from(ROWS),
)
def test_texts_of_several_lengths(texts: list[list[str]], vocabulary: str, row: str, check: Check) -> None:
    joined = [" ".join(words) for words in texts]
    code = TEXTS.format(texts=joined, vocabulary=vocabulary, row=row, size=len(texts))
    assert bool(check(code, RULES)) == fails(code)


@pytest.mark.parametrize(
    "row",
    [
        "torch.ones(self.lengths[index])",
        "torch.ones(int(self.lengths[index]), 3)",
        "np.zeros((self.lengths[index], 2))",
        "torch.from_numpy(self.arrays[index])",
        "self.arrays[index].astype(np.float32), index",
    ],
)
def test_random_lengths_of_arrays(row: str, check: Check) -> None:
    code = f"""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, random_split


class Rows(Dataset):
    def __init__(self, count):
        self.lengths = np.random.randint(3, 30, count)
        self.arrays = [np.random.randn(np.random.randint(3, 30), 6) for _ in range(count)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        return {row}


for batch in DataLoader(Rows(40), batch_size=8):
    len(batch)
"""
    assert [found.code for found in check(code, RULES)] == ["SF302"]
    assert fails(code)
    split = code.replace("DataLoader(Rows(40)", "DataLoader(random_split(Rows(40), [30, 10])[0]")
    assert [found.code for found in check(split, RULES)] == ["SF302"]


def test_one_random_length_is_one_number(check: Check) -> None:
    code = """
import numpy as np
import torch

lengths = np.random.randint(3, 30, 10)
for i in range(10):
    x, y = torch.ones(lengths[i]), torch.zeros(lengths[i])
    print(x + y)
"""
    exec(code, {})
    assert not check(code)
