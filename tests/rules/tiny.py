"""Tiny real tokenizers, models and datasets that replace downloads."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

SENTENCES = (
    "The cat sat on the mat.",
    "A short one.",
    "Two sequences of different lengths cannot be stacked into one tensor without padding.",
    "Paris is the capital of France.",
    "Yes.",
    "The tokenizer splits the text into pieces, and every piece has a number.",
    "No, this film was far too long, and nothing in it was worth the time that it took.",
    "Training starts, the first batch is built, and the run dies.",
)
LONGEST = max(SENTENCES, key=len) + " It went on, and on, and on, until the last reader had left the room."
"""The longest text of the long dataset, in its last rows."""

WEIGHTS = 0.3
"""How far weights are from 0: with those of real configurations, tiny models hardly tell two inputs apart."""

_WITHOUT_PAD = ("gpt", "llama", "pythia", "mistral")
_TAKEN = ("padding_side", "truncation_side", "pad_token", "eos_token", "bos_token", "unk_token")
_MANY_ROWS = ("imdb", "ag_news")


@functools.cache
def _trained(kind: str) -> Any:
    import tokenizers
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    if kind == "bert":
        made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        made.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=200, special_tokens=special))
        made.post_processor = processors.TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
        return made
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>"] if kind == "gpt2" else ["<pad>", "</s>", "<unk>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator(SENTENCES, trainer)
    if kind == "t5":
        made.post_processor = processors.TemplateProcessing(
            single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
        )
    return made


def _kind(name: str) -> str:
    """The family of a checkpoint: gpt2 (no pad token), t5 or bert."""
    if any(part in name.lower() for part in _WITHOUT_PAD):
        return "gpt2"
    return "t5" if any(part in name.lower() for part in ("t5", "bart", "marian")) else "bert"


def tokenizer(name: str, **settings: Any) -> Any:
    """A fast tokenizer trained on a few lines, without a pad token for GPT-2 and similar models."""
    import transformers

    kind = _kind(name)
    families = {
        "gpt2": {
            "eos_token": "<|endoftext|>",
            "bos_token": "<|endoftext|>",
            "unk_token": "<|endoftext|>",
        },
        "t5": {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
        "bert": {
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
    }
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    special: dict[str, Any] = dict(families[kind])
    special.update((key, settings[key]) for key in _TAKEN if key in settings)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=_trained(kind),
        name_or_path=name,
        model_max_length=512,
        model_input_names=inputs if kind == "bert" else ["input_ids", "attention_mask"],
        **special,
    )


def configuration(name: str, **settings: Any) -> Any:
    """The configuration of a one-layer model of the same family that trains in milliseconds."""
    import transformers

    if _kind(name) == "gpt2":
        return transformers.GPT2Config(
            n_layer=1,
            n_embd=8,
            n_head=2,
            vocab_size=_trained("gpt2").get_vocab_size(),
            n_positions=512,
            bos_token_id=0,
            eos_token_id=0,
            initializer_range=WEIGHTS,
            **settings,
        )
    if _kind(name) == "t5":
        return transformers.T5Config(
            vocab_size=400,
            d_model=8,
            d_kv=4,
            d_ff=16,
            num_layers=1,
            num_heads=2,
            decoder_start_token_id=0,
            **settings,
        )
    return transformers.BertConfig(
        vocab_size=_trained("bert").get_vocab_size(),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=WEIGHTS,
        **settings,
    )


def _rows(count: int, name: str) -> dict[str, list[Any]]:
    text = [SENTENCES[i % len(SENTENCES)] for i in range(count)]
    if name in _MANY_ROWS:
        text[-3:] = [LONGEST] * 3
    words = [line.split() for line in text]
    numbers = range(count)
    if name == "wikitext":
        return {"text": text}
    if "alpaca" in name:
        inputs = [SENTENCES[(i + 3) % len(SENTENCES)] if i % 2 else "" for i in numbers]
        outputs = [SENTENCES[(i + 5) % len(SENTENCES)] for i in numbers]
        return {"instruction": text, "input": inputs, "output": outputs}
    if "sum" in name or "cnn" in name:
        return {"document": text, "summary": [" ".join(line[:3]) for line in words]}
    if "conll" in name:
        return {"tokens": words, "ner_tags": [[len(word) % 3 for word in line] for line in words]}
    if name == "glue":
        second = [SENTENCES[(i + 1) % len(SENTENCES)] for i in numbers]
        return {
            "sentence1": text,
            "sentence2": second,
            "label": [i % 2 for i in numbers],
            "idx": list(numbers),
        }
    return {"text": text, "label": [i % 2 for i in numbers]}


def load_dataset(name: str, *rest: Any, split: str | None = None, **settings: Any) -> Any:
    """A small Dataset with the columns of the requested one, or a DatasetDict without a split.

    imdb and ag_news have more rows than `map` takes at once, and their longest texts come last.
    """
    import datasets

    count = 1100 if name in _MANY_ROWS else len(SENTENCES)
    made = {part: datasets.Dataset.from_dict(_rows(count, name)) for part in ("train", "validation", "test")}
    return datasets.DatasetDict(made) if split is None else made[split.partition("[")[0]]


def _one_batch(train: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(train)
    def trained(trainer: Any, *arguments: Any, **settings: Any) -> Any:
        trainer.args.max_steps = 1
        trainer.args.save_strategy = "no"
        return train(trainer, *arguments, **settings)

    return trained


def _model(cls: type[Any], /, name: str, **settings: Any) -> Any:
    shape = {key: settings[key] for key in ("num_labels", "pad_token_id") if key in settings}
    return cls.from_config(configuration(name, **shape)).eval()


def _model_of_class(cls: type[Any], /, name: str, **settings: Any) -> Any:
    shape = {key: settings[key] for key in ("num_labels", "pad_token_id") if key in settings}
    return cls(configuration(name, **shape)).eval()


@contextlib.contextmanager
def tiny_things() -> Iterator[None]:
    """Download nothing, train for one batch, and write to a temporary folder."""
    import transformers
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.auto_factory import _BaseAutoModelClass

    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()
    before = Path.cwd()
    with contextlib.ExitStack() as stack:

        def instead(owner: Any, attribute: str, function: Any) -> None:
            stack.enter_context(mock.patch.object(owner, attribute, function))

        instead(transformers.PreTrainedTokenizerBase, "from_pretrained", staticmethod(tokenizer))
        instead(transformers.AutoTokenizer, "from_pretrained", staticmethod(tokenizer))
        for auto in {made for made in vars(modeling_auto).values() if isinstance(made, type)}:
            if issubclass(auto, _BaseAutoModelClass):
                instead(auto, "from_pretrained", classmethod(_model))
        instead(transformers.PreTrainedModel, "from_pretrained", classmethod(_model_of_class))
        instead(transformers.Trainer, "train", _one_batch(transformers.Trainer.train))
        os.chdir(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(os.chdir, before)
        yield


@contextlib.contextmanager
def tiny_datasets() -> Iterator[None]:
    """Make `datasets.load_dataset` return small tables."""
    import datasets

    datasets.disable_progress_bars()
    with mock.patch.object(datasets, "load_dataset", load_dataset):
        yield
