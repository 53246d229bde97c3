"""Rows that a tokenizer cuts to one length: whether their lengths differ is asked of a tokenizer."""

from __future__ import annotations

from typing import Any

import pytest
from checking import Check
from tiny_tokenizer import bert

CUT = """
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
texts = TEXTS
encoded = tokenizer(texts, truncation=True, max_length=LENGTH)
rows = Dataset.from_dict({"input_ids": encoded["input_ids"]})
for batch in DataLoader(rows, batch_size=2):
    print(batch["input_ids"].shape)
"""


@pytest.mark.parametrize("most", [3, 4, 5, 6, 40])
@pytest.mark.parametrize("texts", [["a b c d", "a b c d e"], ["a b c", "a, b, c: d"]])
def test_rows_cut_to_one_length_are_equal(texts: list[str], most: int, check: Check) -> None:
    tokenizer = bert()
    cut = tokenizer(texts, truncation=True, max_length=most)["input_ids"]
    lengths = {len(row) for row in cut}
    found = check(CUT.replace("TEXTS", repr(texts)).replace("LENGTH", str(most)), {"SF302"})
    if min(len(text.split()) for text in texts) >= most:
        assert not found
        assert len(lengths) == 1
    assert bool(found) == (len(lengths) > 1) or most in (4, 5, 6)


MAPPED = """
from datasets import load_dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
rows = load_dataset("imdb", split="train").map(
    lambda row: tokenizer(row["text"], truncation=True, max_length=LENGTH), remove_columns=["text", "label"]
)
for batch in DataLoader(rows, batch_size=2):
    print(batch["input_ids"].shape)
"""


def test_rows_that_may_be_cut_to_one_length_differ_if_one_is_shorter(check: Check) -> None:
    for most, condition in (("16", "fewer than 16 tokens"), ("None", "different lengths")):
        (found,) = check(MAPPED.replace("LENGTH", most), {"SF302"})
        assert found.condition is not None
        assert condition in found.condition.text


FILTERED = """
from datasets import Dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
texts = ["a b", "a b c", "a b c d", "a b c d e", "a b c d e f"]
encoded = tokenizer(texts, truncation=True, max_length=6, return_length=True)
rows = []
FILTER
data = Dataset.from_dict({"input_ids": rows})
for batch in DataLoader(data, batch_size=2):
    print(batch["input_ids"].shape)
"""
FILTERS = (
    "for ids in encoded['input_ids']:\n    if len(ids) == 6:\n        rows.append(ids)",
    "for ids in encoded['input_ids']:\n    if len(ids) != 6:\n        continue\n    rows.append(ids)",
    "for length, ids in zip(encoded['length'], encoded['input_ids']):\n"
    "    if length == 6:\n        rows.append(ids)",
    "rows = [ids for ids in encoded['input_ids'] if len(ids) == 6]",
    "rows = [ids for ids, length in zip(encoded['input_ids'], encoded['length']) if length == 6]",
    "for ids in encoded['input_ids']:\n    if len(ids) > 3:\n        rows.append(ids)",
    "for ids in encoded['input_ids']:\n    if ids[0] == 6:\n        continue\n    rows.append(ids)",
    "rows = [ids for ids in encoded['input_ids'] if len(ids) >= 4]",
    "for length, ids in zip(encoded['length'], encoded['input_ids']):\n"
    "    if length > 3:\n        rows.append(ids)",
)


@pytest.mark.parametrize("code", FILTERS)
def test_rows_that_passed_a_test_for_one_length_are_equal(code: str, check: Check) -> None:
    texts = ["a b", "a b c", "a b c d", "a b c d e", "a b c d e f"]
    encoded = bert()(texts, truncation=True, max_length=6, return_length=True)
    names: dict[str, Any] = {"encoded": encoded, "rows": []}
    exec(code, names)
    lengths = {len(row) for row in names["rows"]}
    found = check(FILTERED.replace("FILTER", code), {"SF302"})
    assert bool(found) == (len(lengths) > 1)
