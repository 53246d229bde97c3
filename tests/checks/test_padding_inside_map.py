"""Rows padded in `map`, then selected: whether the lengths differ is asked of datasets itself."""

from __future__ import annotations

import pytest
from checking import Check
from datasets import Dataset, concatenate_datasets

SCRIPT = """
import sys
from datasets import concatenate_datasets, load_dataset
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")


def tok(examples):
    return tokenizer(examples["text"], padding=True)


n = int(sys.argv[1])
data = load_dataset("imdb", split="train")
rows = EXPRESSION
rows.set_format("torch", columns=["input_ids"])
for batch in DataLoader(rows, batch_size=7, shuffle=True):
    print(batch["input_ids"].shape)
"""
MAP = "map(tok, batched=True)"
SELECTIONS = (
    f"data.{MAP}",
    f"data.select(range(4)).{MAP}",
    f"data.select(range(2000)).{MAP}",
    f"data.select(range(n)).{MAP}",
    f"data.select(range(min(n, len(data)))).{MAP}",
    f"data.select([0, 1, 2]).{MAP}",
    f"data.take(10).{MAP}",
    f"data.take(2000).{MAP}",
    f"data.skip(10).{MAP}",
    f"data.select(range(9)).filter(lambda row: len(row['text']) > 0).{MAP}",
    f"concatenate_datasets([data.take(400), data.take(300)]).{MAP}",
    f"concatenate_datasets([data.take(800), data.take(700)]).{MAP}",
    f"data.{MAP}.select(range(4))",
    f"data.{MAP}.select(range(n))",
    f"data.{MAP}.take(4)",
    f"data.{MAP}.select(range(2000))",
    f"data.{MAP}.shuffle(seed=1).select(range(400))",
    f"data.train_test_split(0.1, seed=1)['train'].{MAP}",
    f"data.{MAP}.train_test_split(0.1, seed=1)['test'].select(range(100))",
    f"data.shuffle(seed=1).{MAP}.select(range(40))",
    "data.select(range(50)).map(tok, batched=True, batch_size=10)",
)


def differ(expression: str) -> bool:
    """Whether the rows of an expression have different lengths."""

    def tok(examples: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        longest = max(map(len, examples["text"]))
        return {"input_ids": [[1] * longest for _ in examples["text"]]}

    data = Dataset.from_dict({"text": ["x" * (1 + number // 5) for number in range(2400)]})
    names = {"data": data, "tok": tok, "n": 3, "concatenate_datasets": concatenate_datasets}
    return len(set(map(len, eval(expression, names)["input_ids"]))) > 1


@pytest.mark.parametrize("expression", SELECTIONS)
def test_rows_padded_in_map_differ_where_several_batches_are_mixed(expression: str, check: Check) -> None:
    found = check(SCRIPT.replace("EXPRESSION", expression), {"SF306"})
    assert bool(found) == differ(expression)


@pytest.mark.parametrize(
    ("name", "truncation", "is_reported"),
    [
        ("imdb", "True", False),
        ("imdb", "False", True),
        ("rotten_tomatoes", "True", True),
        ("yelp_review_full", "'longest_first'", False),
    ],
)
def test_long_texts_are_all_cut_to_one_length(
    name: str, truncation: str, is_reported: bool, check: Check
) -> None:
    """A map batch of a thousand reviews has one of more than 512 tokens, which are then the length of all."""
    padded = f"padding=True, truncation={truncation}"
    source = (
        SCRIPT.replace('"imdb"', f'"{name}"')
        .replace("padding=True", padded)
        .replace("EXPRESSION", f"data.{MAP}")
    )
    assert bool(check(source, {"SF306"})) == is_reported
