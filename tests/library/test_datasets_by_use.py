"""Datasets of unknown origin, or perhaps None: known by their use, a test or an annotation."""

from __future__ import annotations

import pytest
from checking import Check
from datasets import Dataset, DatasetDict

from shapefix.library.library import TorchLibrary

IMPORTS = """
import json, os, sys
from typing import Optional
from datasets import Dataset, DatasetDict, load_dataset, load_from_disk
from elsewhere import get_dataset, flag
from torch.utils.data import DataLoader
from transformers import AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")


def tok(examples):
    return tokenizer(examples["text"], PADDING)


def load(path):
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return Dataset.from_list(json.load(file))


def batches(rows):
    rows.set_format("torch")
    for batch in DataLoader(rows, batch_size=7):
        print(batch["input_ids"].shape)


"""
MAP = 'map(tok, batched=True, remove_columns=["text"])'
PROGRAMS = {
    "unknown": f'batches(get_dataset().{MAP}["train"])',
    "names of its columns": """
ds = get_dataset()
names = ds["train"].column_names
batches(ds["train"].map(tok, batched=True, remove_columns=names))
""",
    "split": f'batches(get_dataset().train_test_split(0.1)["train"].{MAP})',
    "from disk": f'batches(load_from_disk("folder")["train"].{MAP})',
    "tested": f"""
ds = load(sys.argv[1])
if ds is None:
    raise SystemExit(1)
batches(ds.{MAP})
""",
    "replaced": f"""
ds = load(sys.argv[1])
if not ds:
    ds = load_from_disk("folder")
batches(ds.{MAP})
""",
    "asserted": f"""
ds = None
if flag:
    ds = load_dataset("json", data_files="x.json", split="train")
assert ds is not None
batches(ds.{MAP})
""",
    "or": f'batches((load("a.json") or load("b.json")).{MAP})',
    "conditional": f"""
ds = load(sys.argv[1])
ds = ds.{MAP} if ds is not None else None
if ds is not None and flag:
    batches(ds)
""",
    "annotated": f"""
def run(ds: Dataset):
    batches(ds.{MAP})
""",
    "several, annotated": f"""
def run(ds: "DatasetDict"):
    batches(ds.{MAP}["train"])
""",
    "optional": f"""
def run(ds: Optional[Dataset] = None):
    if ds is not None:
        batches(ds.{MAP})
""",
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_rows_of_a_dataset_known_by_its_use(check: Check, program: str) -> None:
    ragged = IMPORTS.replace("PADDING", "truncation=True") + program
    padded = IMPORTS.replace("PADDING", 'truncation=True, padding="max_length", max_length=8') + program
    assert [finding.code for finding in check(ragged)] == ["SF302"]
    assert check(padded) == []


@pytest.mark.parametrize(
    "program",
    [
        'ds = load("a")\nif ds is None:\n    ds.map(tok, batched=True)\n    batches(ds)',
        "batches(pool.map(tok, rows).map(tok, chunksize=2))",
    ],
)
def test_nothing_else_is_a_dataset(check: Check, program: str) -> None:
    assert check(IMPORTS.replace("PADDING", "truncation=True") + program) == []


def test_methods_of_datasets_alone() -> None:
    """The methods that make a value a dataset exist in `datasets`, and not in the other tables people map."""
    import pandas
    import torch

    found = [name for name in (*vars(Dataset), *vars(DatasetDict)) if TorchLibrary().object_with(name)]
    assert len(set(found)) >= 10
    others = (pandas.DataFrame, pandas.Series, torch.Tensor, torch.nn.Module, dict, list, str)
    assert not [name for name in set(found) for other in others if hasattr(other, name)]
