"""A script with labels copied from the ids: a dataset that may be None, options, augmentation, a split."""

from __future__ import annotations

import pytest
from checking import Check

_SCRIPT = """
import argparse
import copy
import os
from dataclasses import dataclass
from typing import Any

import torch
from datasets import Dataset, load_from_disk
from peft import LoraConfig, TaskType, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments
from transformers import DataCollatorForLanguageModeling, DataCollatorForSeq2Seq


class Augmenter:
    def __init__(self, factor):
        self.factor = factor

    def augment(self, dataset):
        rows = []
        for example in dataset:
            for _ in range(self.factor):
                rows.append({{"input": example["input"].strip(), "target": example["target"]}})
        return Dataset.from_list(rows)


def load_data(path):
    if not os.path.exists(path):
        return None
    return load_from_disk(path)


def train():
    parser = argparse.ArgumentParser()
    parser.add_argument("--factor", type=int, default=3)
    parser.add_argument("--augment", action="store_true", default=True)
    parser.add_argument("--max_seq_length", type=int, default=512)
    args = parser.parse_args()

    tokenizer = AutoTokenizer.from_pretrained("Qwen/Qwen3-0.6B-Base")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    model = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-0.6B-Base")
    model = get_peft_model(model, LoraConfig(task_type=TaskType.CAUSAL_LM, r=16))

    dataset = load_data("data/train")
    if dataset is None:
        return
    if args.augment:
        dataset = Augmenter(args.factor).augment(dataset)
    split = dataset.train_test_split(test_size=0.1, seed=42)

    def preprocess(examples):
        pairs = zip(examples["input"], examples["target"])
        texts = [text + target + tokenizer.eos_token for text, target in pairs]
        tokenized = tokenizer(texts, max_length=args.max_seq_length, truncation=True, padding=False)
        tokenized["labels"] = {copied}
        return tokenized

    train_rows = split["train"].map(preprocess, batched=True, remove_columns=split["train"].column_names)

    @dataclass
    class Collator:
        tokenizer: Any

        def __call__(self, features):
            longest = max(len(each["input_ids"]) for each in features)
            batch = {{"input_ids": [], "attention_mask": [], "labels": []}}
            for each in features:
                missing = longest - len(each["input_ids"])
                batch["input_ids"].append(each["input_ids"] + [self.tokenizer.pad_token_id] * missing)
                batch["attention_mask"].append(each["attention_mask"] + [0] * missing)
                batch["labels"].append({labels})
            return {{key: torch.tensor(rows, dtype=torch.long) for key, rows in batch.items()}}

    trainer = Trainer(
        model=model,
        args=TrainingArguments(output_dir="out", per_device_train_batch_size=4),
        train_dataset=train_rows,
        data_collator={collator},
    )
    trainer.train()


if __name__ == "__main__":
    train()
"""
_COPIES = (
    'tokenized["input_ids"].copy()',
    '[ids[:] for ids in tokenized["input_ids"]]',
    '[list(ids) for ids in tokenized["input_ids"]]',
    'copy.deepcopy(tokenized["input_ids"])',
)
_PADDED = 'each["labels"] + [-100] * missing'


@pytest.mark.parametrize("copied", _COPIES)
def test_no_copy_of_the_ids_makes_up_for_a_collator_that_leaves_labels(check: Check, copied: str) -> None:
    collator = "DataCollatorForLanguageModeling(tokenizer=tokenizer, mlm=False)"
    (found,) = check(_SCRIPT.format(copied=copied, labels=_PADDED, collator=collator), {"SF301", "SF303"})
    assert found.code == "SF301"
    assert "`labels` rows have different lengths" in found.message


@pytest.mark.parametrize(
    ("labels", "collator", "codes"),
    [
        (_PADDED, "Collator(tokenizer=tokenizer)", []),
        (_PADDED, "DataCollatorForSeq2Seq(tokenizer=tokenizer)", []),
        ('each["labels"]', "Collator(tokenizer=tokenizer)", ["SF303"]),
    ],
)
def test_collators_of_copied_labels(check: Check, labels: str, collator: str, codes: list[str]) -> None:
    code = _SCRIPT.format(copied=_COPIES[2], labels=labels, collator=collator)
    assert [found.code for found in check(code, {"SF301", "SF303"})] == codes
