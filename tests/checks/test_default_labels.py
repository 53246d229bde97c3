"""SF517 with the number of labels that a model has by default."""

from __future__ import annotations

import pytest
from checking import Check

HEAD = """
from datasets import Dataset, load_dataset
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding
from transformers import Trainer, TrainingArguments

tokenizer = AutoTokenizer.from_pretrained("{name}")
model = AutoModelForSequenceClassification.from_pretrained("{name}"{settings})
rows = {rows}
rows = rows.map(lambda row: tokenizer(row["text"], truncation=True), batched=True)
collator = DataCollatorWithPadding(tokenizer)
Trainer(model=model, args=TrainingArguments("out"), train_dataset=rows, data_collator=collator).train()
"""
EMOTIONS = 'load_dataset("emotion", split="train")'
FOUND = {
    "columns": 'Dataset.from_dict({"text": ["a", "b", "c d"], "label": [0, 1, 2]})',
    "rows": 'Dataset.from_list([{"text": "a", "label": 0}, {"text": "b c", "label": 3}])',
    "hub": EMOTIONS,
    "other column filtered": f'{EMOTIONS}.filter(lambda row: len(row["text"]) > 3)',
    "first rows": f"{EMOTIONS}.shuffle(seed=0).select(range(2000))",
}
SILENT = {
    "two classes": 'Dataset.from_dict({"text": ["a", "b", "c d"], "label": [0, 1, 0]})',
    "hub": 'load_dataset("imdb", split="train")',
    "filtered": f'{EMOTIONS}.filter(lambda row: row["label"] < 2)',
    "filtered by a name": f'(lambda column: {EMOTIONS}.filter(lambda row: row[column] < 2))("label")',
    "chosen": f"{EMOTIONS}.select([i for i, n in enumerate({EMOTIONS}['label']) if n < 2])",
    "mapped": f'{EMOTIONS}.map(lambda row: {{"label": int(row["label"] == 3)}})',
}


def source(rows: str, name: str = "bert-base-uncased", settings: str = "") -> str:
    return HEAD.format(rows=rows, name=name, settings=settings)


@pytest.mark.parametrize("rows", FOUND)
def test_a_third_class_is_found(rows: str, check: Check) -> None:
    assert check(source(FOUND[rows]), {"SF517"})


@pytest.mark.parametrize("rows", SILENT)
def test_two_classes_are_right(rows: str, check: Check) -> None:
    assert not check(source(SILENT[rows]), {"SF517"})


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("someone/bert-emotion", ""),
        ("bert-base-uncased", ", num_labels=6"),
        ("bert-base-uncased", ", id2label={i: str(i) for i in range(6)}"),
        ("bert-base-uncased", ", **settings"),
    ],
)
def test_other_models_may_have_more_labels(name: str, settings: str, check: Check) -> None:
    assert not check(source(EMOTIONS, name, settings), {"SF517"})


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("bert", "BertConfig"),
        ("distilbert", "DistilBertConfig"),
        ("roberta", "RobertaConfig"),
        ("xlm_roberta", "XLMRobertaConfig"),
        ("albert", "AlbertConfig"),
        ("gpt2", "GPT2Config"),
    ],
)
def test_a_configuration_has_two_labels_by_default(module: str, name: str) -> None:
    configurations = pytest.importorskip(f"transformers.models.{module}")
    assert getattr(configurations, name)().num_labels == 2
