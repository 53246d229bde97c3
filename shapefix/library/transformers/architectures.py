"""Classes of models by name, and by Auto class and public checkpoint."""

from __future__ import annotations

import re

from shapefix.interpreter.facts import Fact
from shapefix.interpreter.values import Value, facts_of
from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnClass(Fact):
    """Name of the class of a model or a configuration, None if unknown: a kind covers several classes."""

    name: str | None


def class_of(value: Value | None) -> str | None:
    """Name of the class of a model or a configuration; None if unknown."""
    own = facts_of(value).known(OwnClass)
    return None if own is None else own.name


_CHECKPOINTS = {
    r"(google-bert/)?bert-(base|large)-(un)?cased(-whole-word-masking)?|"
    r"(google-bert/)?bert-base-(chinese|multilingual-(un)?cased|german-cased)": "BertConfig",
    r"(distilbert/)?distilbert-base-((un)?cased|multilingual-cased)(-finetuned-sst-2-english)?": (
        "DistilBertConfig"
    ),
    r"(FacebookAI/)?roberta-(base|large)(-mnli)?|(distilbert/)?distilroberta-base": "RobertaConfig",
    r"(FacebookAI/)?xlm-roberta-(base|large)": "XLMRobertaConfig",
    r"(albert/)?albert-\w+-v[12]": "AlbertConfig",
    r"google/electra-(small|base|large)-(discriminator|generator)": "ElectraConfig",
    r"microsoft/deberta-v3-\w+": "DebertaV2Config",
    r"(openai-community/)?gpt2(-medium|-large|-xl)?|(distilbert/)?distilgpt2": "GPT2Config",
    r"EleutherAI/gpt-neo-[\w.]+": "GPTNeoConfig",
    r"EleutherAI/gpt-j-6[bB]": "GPTJConfig",
    r"EleutherAI/pythia-[\w.]+(-deduped)?": "GPTNeoXConfig",
    r"facebook/opt-[\w.]+": "OPTConfig",
    r"meta-llama/Llama-2-\d+b(-chat)?-hf": "LlamaConfig",
    r"(google-t5/)?t5-(small|base|large|3b|11b)|google/flan-t5-\w+": "T5Config",
    r"facebook/bart-(base|large)(-cnn|-mnli|-xsum)?": "BartConfig",
}
_PATTERN = re.compile("|".join(f"(?P<{name}>{pattern})" for pattern, name in _CHECKPOINTS.items()))


def configuration_of(checkpoint: str) -> str | None:
    """Class of a public checkpoint's configuration, `BertConfig`; None for any other name."""
    found = _PATTERN.fullmatch(checkpoint)
    if found is None:
        return None
    return next(name for name, text in found.groupdict().items() if text is not None)
