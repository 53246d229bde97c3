"""Steps of the official recipes of transformers: silent as they stand, reported with one line changed."""

from __future__ import annotations

import pytest
from checking import Check

from shapefix.diagnostics import Applicability

CLASSIFICATION = """
import argparse

from datasets import load_dataset
from torch.utils.data.dataloader import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding
from transformers import default_data_collator

parser = argparse.ArgumentParser()
parser.add_argument("--model", type=str)
parser.add_argument("--slow", action="store_true")
args = parser.parse_args()
if args.slow:
    tokenizer = AutoTokenizer.from_pretrained(args.model, use_fast=False)
else:
    tokenizer = AutoTokenizer.from_pretrained(args.model)
model = AutoModelForSequenceClassification.from_pretrained(args.model)
data = load_dataset("glue", "mrpc")
first, second = {"mrpc": ("sentence1", "sentence2"), "sst2": ("sentence", None)}[args.model]


def encode(examples):
    texts = (examples[first],) if second is None else (examples[first], examples[second])
    rows = tokenizer(*texts, padding=False, truncation=True)
    rows["labels"] = examples["label"]
    return rows


data = data.map(encode, batched=True, remove_columns=data["train"].column_names)
loader = DataLoader(data["train"], batch_size=8, collate_fn=DataCollatorWithPadding(tokenizer))
for batch in loader:
    model(**batch).loss.backward()
"""


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        ("", "", []),
        ("DataCollatorWithPadding(tokenizer))", "default_data_collator)", ["SF302"]),
        ('rows["labels"] = examples["label"]', 'rows["labels"] = rows["input_ids"]', ["SF301"]),
    ],
)
def test_texts_are_classified(old: str, new: str, codes: list[str], check: Check) -> None:
    assert [each.code for each in check(CLASSIFICATION.replace(old, new), {"SF301", "SF302"})] == codes


MULTIPLE_CHOICE = """
from datasets import load_dataset
from transformers import AutoModelForMultipleChoice, AutoTokenizer, Trainer, TrainingArguments
from transformers import default_data_collator

data = load_dataset("swag", "regular")
tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
model = AutoModelForMultipleChoice.from_pretrained("bert-base-cased")
names = [f"ending{i}" for i in range(4)]


def encode(examples):
    firsts = [[context] * 4 for context in examples["sent1"]]
    seconds = [[f"{head} {examples[end][i]}" for end in names] for i, head in enumerate(examples["sent2"])]
    firsts, seconds = sum(firsts, []), sum(seconds, [])
    rows = tokenizer(firsts, seconds, truncation=True, max_length=128, padding="max_length")
    return {key: [each[i : i + 4] for i in range(0, len(each), 4)] for key, each in rows.items()}


data = data.map(encode, batched=True)
settings = TrainingArguments("out")
Trainer(model=model, args=settings, train_dataset=data["train"], data_collator=default_data_collator).train()
"""


@pytest.mark.parametrize(("size", "codes"), [("4", []), ("3", ["SF307"])])
def test_choices_are_grouped_without_a_remainder(size: str, codes: list[str], check: Check) -> None:
    code = MULTIPLE_CHOICE.replace("i + 4", f"i + {size}").replace("len(each), 4", f"len(each), {size}")
    assert [each.code for each in check(code)] == codes


FLAGS = """
import sys
from dataclasses import dataclass, field

from datasets import load_dataset
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForSeq2Seq, HfArgumentParser
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments, default_data_collator


@dataclass
class Data:
    name: str = field(default="cnn", metadata={"help": "the dataset"})
    pad: bool = field(default=DEFAULT, metadata={"help": "pad all rows to one length"})


parser = HfArgumentParser((Data, Seq2SeqTrainingArguments))
if len(sys.argv) == 2 and sys.argv[1].endswith(".json"):
    data_args, settings = parser.parse_json_file(json_file=sys.argv[1])
else:
    data_args, settings = parser.parse_args_into_dataclasses()
tokenizer = AutoTokenizer.from_pretrained("t5-small")
model = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
padding = "max_length" if data_args.pad else False


def encode(examples):
    rows = tokenizer(examples["article"], padding=padding, truncation=True, max_length=64)
    labels = tokenizer(text_target=examples["summary"], padding=padding, truncation=True, max_length=16)
    rows["labels"] = labels["input_ids"]
    return rows


data = load_dataset(data_args.name)
data = data.map(encode, batched=True, remove_columns=data["train"].column_names)
if data_args.pad:
    collator = default_data_collator
else:
    collator = DataCollatorForSeq2Seq(tokenizer, model=model)
Seq2SeqTrainer(model=model, args=settings, train_dataset=data["train"], data_collator=collator).train()
"""
DYNAMIC = "DataCollatorForSeq2Seq(tokenizer, model=model)"


@pytest.mark.parametrize(
    ("default", "collator", "codes"),
    [
        ("False", DYNAMIC, []),
        ("True", DYNAMIC, []),
        ("False", "default_data_collator", ["SF302"]),
        ("True", "default_data_collator", []),
    ],
)
def test_a_flag_decides_by_its_default(default: str, collator: str, codes: list[str], check: Check) -> None:
    code = FLAGS.replace("DEFAULT", default).replace(f"collator = {DYNAMIC}", f"collator = {collator}")
    found = check(code, {"SF301", "SF302", "SF304", "SF306"})
    assert [each.code for each in found] == codes
    for each in found:
        assert each.condition is not None
        assert "`--pad` is left out" in str(each.condition)
        assert all(fix.applicability is not Applicability.SAFE for fix in each.fixes)


@pytest.mark.parametrize(("kind", "codes"), [('"wide" if args.wide else None', []), ("None", ["SF503"])])
def test_a_branch_against_an_assumed_default_is_silent(kind: str, codes: list[str], check: Check) -> None:
    code = f"""
import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--wide", action="store_true")
args = parser.parse_args()
kind = {kind}
if args.wide:
    torch.zeros(2, 3) @ torch.zeros(4, 5)
"""
    assert [each.code for each in check(code, {"SF503"})] == codes
