"""Labels as real scripts make them: those that lose something are reported, and nothing else."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

HEAD = """
import copy, torch
from datasets import load_dataset
from torch.utils.data import DataLoader, Dataset
from transformers import (
    AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer, DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq, Trainer, TrainingArguments, default_data_collator,
)

tokenizer = AutoTokenizer.from_pretrained("gpt2")
tokenizer.pad_token = tokenizer.eos_token
model = AutoModelForCausalLM.from_pretrained("gpt2")
raw = load_dataset("tatsu-lab/alpaca", split="train")
fixed = {"padding": "max_length", "truncation": True, "max_length": 64}


def collated(f, **how):
    rows = raw.map(f, remove_columns=raw.column_names, **how)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
    return Trainer(model=model, args=TrainingArguments("out"), train_dataset=rows, data_collator=collator)


def trained(f, **how):
    rows = raw.map(f, remove_columns=raw.column_names, **how)
    arguments = TrainingArguments("out")
    return Trainer(model=model, args=arguments, train_dataset=rows, data_collator=default_data_collator)
"""


def codes(script: str, check: Check) -> list[str]:
    """The findings about labels that are there by default, with their lines in the script."""
    head = textwrap.dedent(HEAD)
    diagnostics = check(head + textwrap.dedent(script))
    before = head.count("\n")
    found = [d for d in diagnostics if d.code.startswith("SF2") and d.code != "SF206"]
    return [f"{d.code} {d.span.row - before if d.span.row > before else 'head'}" for d in found]


LOST = {
    "a prompt masked through a helper and two branches": (
        """
        def prompt_of(e):
            return f"Q: {e['instruction']} I: {e['input']}" if e["input"] else f"Q: {e['instruction']}"

        def f(e):
            prompt = prompt_of(e)
            n = len(tokenizer(prompt, truncation=True, max_length=65)["input_ids"]) - 1
            text = prompt + e["output"]
            full = tokenizer(text, padding="max_length", truncation=True, max_length=65)["input_ids"][:-1]
            return {"input_ids": full, "labels": [-100] * n + full[n:], "attention_mask": [1] * len(full)}

        collated(f)
        """,
        ["SF205 head"],
    ),
    "one split or both": (
        """
        def f(e):
            ids = tokenizer(e["instruction"], **fixed)["input_ids"]
            return {"input_ids": ids, "labels": [-100] * 4 + ids[4:]}

        def main(share):
            if share > 0:
                parts = raw.train_test_split(test_size=share)
                train, val = parts["train"].map(f), parts["test"].map(f)
            else:
                train, val = raw.map(f), None
            collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
            Trainer(model=model, train_dataset=train, eval_dataset=val, data_collator=collator)
        """,
        ["SF205 12"],
    ),
    "positions below a bound": (
        """
        def f(e):
            out = tokenizer(e["instruction"], **fixed)
            out["labels"] = [token if i >= 3 else -100 for i, token in enumerate(out["input_ids"])]
            return out

        collated(f)
        """,
        ["SF205 head"],
    ),
    "padding in the loss of a loop": (
        """
        def collate(rows):
            batch = tokenizer([r["instruction"] for r in rows], padding=True, return_tensors="pt")
            batch["labels"] = batch["input_ids"].clone()
            return batch

        for batch in DataLoader(raw, batch_size=4, collate_fn=collate):
            batch = {k: v.to("cuda") for k, v in batch.items()}
            model(**batch).loss.backward()
        """,
        ["SF203 4"],
    ),
    "padding in the loss of a sequence-to-sequence model": (
        """
        t5 = AutoModelForSeq2SeqLM.from_pretrained("t5-small")
        words = AutoTokenizer.from_pretrained("t5-small")
        source = words(["one", "two and three"], padding=True, return_tensors="pt")
        target = words(["a", "b and c"], padding=True, return_tensors="pt")
        loss = t5(**source, labels=target["input_ids"]).loss
        """,
        ["SF203 6"],
    ),
    "shifted and masked, then shifted again": (
        """
        def step(batch):
            labels = batch[..., 1:].contiguous()
            labels = torch.where(labels == tokenizer.pad_token_id, -100, labels)
            return model(input_ids=batch[..., :-1], labels=labels).loss
        """,
        ["SF204 3"],
    ),
    "a mask through a second name": (
        """
        def step(ids: torch.Tensor, mask: torch.Tensor):
            labels = ids
            labels[mask == 0] = -100
            return model(input_ids=ids, labels=labels).loss
        """,
        ["SF202 4"],
    ),
    "rows masked by a helper, and used after it": (
        """
        def cut(ids):
            labels = ids[:, 1:]
            labels[0, 3:] = -100
            return labels, len(labels)

        def step(rows, batch):
            targets = torch.stack(rows)
            masked, count = cut(targets)
            return model(input_ids=batch["input_ids"], labels=targets)
        """,
        ["SF202 4"],
    ),
    "a mask through the rows of a copy": (
        """
        def f(batch):
            out = tokenizer(batch["instruction"], truncation=True)
            out["labels"] = list(out["input_ids"])
            for i in range(len(out["labels"])):
                out["labels"][i][:2] = [-100, -100]
            return out

        rows = raw.map(f, batched=True)
        """,
        ["SF201 4"],
    ),
}

KEPT = {
    "rows masked by a helper whose result takes the name of the rows": """
        def cut(ids):
            labels = ids[:, 1:]
            labels[0, 3:] = -100
            return labels, len(labels)

        def step(rows, batch):
            targets = torch.stack(rows)
            targets, count = cut(targets)
            return model(input_ids=batch["input_ids"], labels=targets)
    """,
    "a mask of the padding alone": """
        def f(e):
            out = tokenizer(e["instruction"], **fixed)
            out["labels"] = [-100 if token == tokenizer.pad_token_id else token for token in out["input_ids"]]
            return out

        collated(f)
    """,
    "a mask of the padding by the attention mask": """
        def f(e):
            out = tokenizer(e["instruction"], **fixed)
            pairs = zip(out["input_ids"], out["attention_mask"])
            out["labels"] = [token if kept else -100 for token, kept in pairs]
            return out

        collated(f)
    """,
    "labels that end in -100 where the ids end in padding": """
        def f(e):
            ids = tokenizer(e["instruction"], truncation=True, max_length=64)["input_ids"]
            missing = 64 - len(ids)
            return {"input_ids": ids + [tokenizer.pad_token_id] * missing, "labels": ids + [-100] * missing}

        collated(f)
    """,
    "positions above a bound, which may be the padding": """
        def f(e):
            out = tokenizer(e["instruction"], **fixed)
            end = sum(out["attention_mask"])
            out["labels"] = [token if i < end else -100 for i, token in enumerate(out["input_ids"])]
            return out

        collated(f)
    """,
    "a text tokenized twice": """
        def f(batch):
            out = tokenizer(batch["instruction"], **fixed)
            out["labels"] = tokenizer(batch["instruction"], **fixed)["input_ids"]
            return out

        collated(f, batched=True)
    """,
    "a collator that labels are handed to in no case": """
        def f(e):
            ids = tokenizer(e["instruction"], **fixed)["input_ids"]
            return {"input_ids": ids, "labels": [-100] * 4 + ids[4:]}

        def main(keep):
            rows = raw.map(f)
            if keep:
                collator = DataCollatorForSeq2Seq(tokenizer)
            else:
                collator = DataCollatorForLanguageModeling(tokenizer, mlm=False)
            Trainer(model=model, train_dataset=rows, data_collator=collator)
    """,
    "padded targets that are masked in the loop": """
        def step(batch):
            inputs = tokenizer(["one", "two and three"], padding=True, return_tensors="pt")
            labels = inputs["input_ids"].clone()
            labels[inputs["attention_mask"] == 0] = -100
            return model(**inputs, labels=labels).loss
    """,
    "padding that only some call asks for": """
        def f(e, pad):
            padding = "max_length" if pad else False
            out = tokenizer(e["instruction"], padding=padding, truncation=True, max_length=64)
            out["labels"] = out["input_ids"].copy()
            return out

        def main(pad):
            trained(lambda e: f(e, pad))
    """,
    "a loss of the trainer's own": """
        def f(batch):
            out = tokenizer(batch["instruction"], **fixed)
            out["labels"] = out["input_ids"].copy()
            return out

        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False, **others):
                labels = inputs.pop("labels")
                logits = model(**inputs).logits
                pairs = logits.flatten(0, 1), labels.flatten()
                return torch.nn.functional.cross_entropy(*pairs, ignore_index=50256)

        rows = raw.map(f, batched=True)
        Own(model=model, train_dataset=rows, data_collator=default_data_collator)
    """,
    "logits and labels of one loss": """
        def loss_of(batch):
            logits = model(input_ids=batch).logits[:, :-1]
            labels = batch[:, 1:].clone()
            return torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
    """,
    "a concatenation that begins with what is ignored": """
        def f(batch):
            ids = tokenizer(batch["instruction"], return_tensors="pt", padding=True)["input_ids"]
            ignored = torch.full_like(ids[:, :1], -100)
            return model(input_ids=ids, labels=torch.cat([ignored, ids[:, 1:]], dim=1)).loss
    """,
    "a flat slice of one text": """
        def f(e):
            out = tokenizer(e["instruction"], truncation=True)
            out["labels"] = out["input_ids"][:]
            out["labels"][:3] = [-100] * 3
            return out

        rows = raw.map(f)
    """,
    "an alias of targets that are no inputs": """
        def step(batch):
            labels = batch["target_ids"]
            labels[labels[:, :] == tokenizer.pad_token_id] = -100
            return model(input_ids=batch["source_ids"], labels=labels).loss
    """,
    "an alias of labels": """
        def collate(rows):
            batch = tokenizer.pad(rows, return_tensors="pt")
            labels = batch["labels"]
            labels[labels == tokenizer.pad_token_id] = -100
            return batch
    """,
    "inputs that are replaced after the write": """
        def step(ids: torch.Tensor, others: torch.Tensor):
            labels = ids
            labels[labels == 0] = -100
            ids = others
            return model(input_ids=ids, labels=labels).loss
    """,
    "rows that are replaced by index": """
        def f(batch):
            out = tokenizer(batch["instruction"], truncation=True)
            labels = tokenizer(batch["output"], truncation=True)
            for i in range(len(out["input_ids"])):
                ids = out["input_ids"][i]
                labels["input_ids"][i] = [-100] * len(ids) + labels["input_ids"][i]
                out["input_ids"][i] = ids + labels["input_ids"][i]
            out["labels"] = labels["input_ids"]
            return out

        rows = raw.map(f, batched=True)
    """,
}


@pytest.mark.parametrize("name", LOST)
def test_labels_that_lose_something(name: str, check: Check) -> None:
    script, expected = LOST[name]
    assert codes(script, check) == expected


@pytest.mark.parametrize("name", KEPT)
def test_labels_that_are_right(name: str, check: Check) -> None:
    assert codes(KEPT[name], check) == []


RAGGED_AND_SHARED = """
def f(e):
    out = tokenizer(e["instruction"], truncation=True)
    out["labels"] = out["input_ids"]
    out["labels"][0] = -100
    return out

collated(f)
"""


def test_shared_rows_are_reported_once_the_labels_are_padded(check: Check) -> None:
    def reported(text: str) -> list[str]:
        found = check(text, ("SF201", "SF301"))
        return [d.code for d in found]

    text = HEAD + RAGGED_AND_SHARED
    assert reported(text) == ["SF301"]
    padded = text.replace(
        "DataCollatorForLanguageModeling(tokenizer, mlm=False)", "DataCollatorForSeq2Seq(tokenizer)"
    )
    assert reported(padded) == ["SF201"]
