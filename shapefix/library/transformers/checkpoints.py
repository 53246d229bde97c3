"""Popular tokenizers, by their class or by the name of a checkpoint.

The classes were created with transformers 5.23 and 4.57 from a tiny vocabulary; differing facts are
unknown. Many checkpoints add a pad token to a class without a default one, so that it is only known to
be missing in a tokenizer that is created directly, and in the public checkpoints.
"""

from __future__ import annotations

import re

from shapefix.light_dataclasses import dataclass

_PLAIN = ("input_ids", "attention_mask")
_TYPED = ("input_ids", "token_type_ids", "attention_mask")


@dataclass(frozen=True)
class Family:
    """Defaults of a tokenizer: pad token, end-of-text token, and the keys of its result.

    inputs is empty if it depends on the version.
    """

    pads: bool
    ends: bool
    inputs: tuple[str, ...]


_WITHOUT_PAD = Family(pads=False, ends=True, inputs=_PLAIN)
_ROBERTA = Family(pads=True, ends=True, inputs=_PLAIN)
_BERT = Family(pads=True, ends=False, inputs=_TYPED)

FAMILIES = {
    "GPT2": _WITHOUT_PAD,
    "Llama": _WITHOUT_PAD,
    "CodeLlama": _WITHOUT_PAD,
    "CodeGen": _WITHOUT_PAD,
    "OpenAIGPT": Family(pads=False, ends=False, inputs=_PLAIN),
    "Bert": _BERT,
    "Electra": _BERT,
    "DistilBert": Family(pads=True, ends=False, inputs=_PLAIN),
    "Roberta": _ROBERTA,
    "XLMRoberta": _ROBERTA,
    "Camembert": _ROBERTA,
    "Longformer": _ROBERTA,
    "MPNet": _ROBERTA,
    "Bart": _ROBERTA,
    "MBart": _ROBERTA,
    "T5": _ROBERTA,
    "Albert": Family(pads=True, ends=True, inputs=()),
}

_CHECKPOINTS = {
    r"(openai-community/)?gpt2(-medium|-large|-xl)?": "GPT2",
    r"(distilbert/)?distilgpt2": "GPT2",
    r"EleutherAI/gpt-neo-[\w.]+|EleutherAI/gpt-j-6[bB]": "GPT2",
    r"meta-llama/Llama-2-\d+b(-chat)?-hf": "Llama",
    r"(google-bert/)?bert-(base|large)-[\w-]+": "Bert",
    r"(distilbert/)?distilbert-base-[\w-]+": "DistilBert",
    r"(FacebookAI/)?roberta-(base|large)|(distilbert/)?distilroberta-base": "Roberta",
    r"(FacebookAI/)?xlm-roberta-(base|large)": "XLMRoberta",
    r"(google-t5/)?t5-(small|base|large|3b|11b)|google/flan-t5-\w+": "T5",
    r"(albert/)?albert-\w+-v[12]": "Albert",
    r"google/electra-(small|base|large)-(discriminator|generator)": "Electra",
    r"facebook/bart-(base|large)(-cnn|-mnli|-xsum)?": "Bart",
}
_PATTERN = re.compile("|".join(f"(?P<{name}_{i}>{p})" for i, (p, name) in enumerate(_CHECKPOINTS.items())))


def of_class(name: str) -> Family | None:
    """Family of a class such as `GPT2TokenizerFast`; None for an unknown one."""
    return FAMILIES.get(name.removesuffix("Fast").removesuffix("Tokenizer"))


def of_checkpoint(name: str) -> Family | None:
    """Family of a public checkpoint such as `openai-community/gpt2`; None for any other name."""
    found = _PATTERN.fullmatch(name)
    if found is None:
        return None
    group = next(key for key, text in found.groupdict().items() if text is not None)
    return FAMILIES[group.rpartition("_")[0]]


_WIDTHS = {
    r"(google-bert/)?bert-base-((un)?cased|chinese|multilingual-(un)?cased)": 768,
    r"(google-bert/)?bert-large-(un)?cased(-whole-word-masking)?(-finetuned-squad)?": 1024,
    r"(distilbert/)?distilbert-base-((un)?cased|multilingual-cased)(-finetuned-sst-2-english)?": 768,
    r"(FacebookAI/)?(xlm-)?roberta-base|(distilbert/)?distilroberta-base": 768,
    r"(FacebookAI/)?(xlm-)?roberta-large": 1024,
    r"(albert/)?albert-base-v[12]": 768,
    r"(openai-community/)?gpt2|(distilbert/)?distilgpt2": 768,
    r"(google-t5/)?t5-small": 512,
    r"(google-t5/)?t5-base|facebook/bart-base": 768,
    r"(google-t5/)?t5-large|facebook/bart-large": 1024,
    r"google/vit-base-patch16-224(-in21k)?": 768,
    r"facebook/wav2vec2-base(-960h)?": 768,
}
"""Hidden sizes of public checkpoints, as their published configurations state them."""
WIDTH_NAMES = {"hidden_size": (), "dim": ("distilbert",), "n_embd": ("gpt2",), "d_model": ("t5-", "/bart-")}
"""Names of the hidden size in a configuration; all but the first only in checkpoints with such a name."""


def widths_of(name: str) -> dict[str, int]:
    """Hidden size of a public checkpoint under its names in the configuration; empty for any other one."""
    width = next((number for pattern, number in _WIDTHS.items() if re.fullmatch(pattern, name)), None)
    if width is None:
        return {}
    return {
        key: width for key, parts in WIDTH_NAMES.items() if not parts or any(part in name for part in parts)
    }


_UNLABELED = re.compile(
    r"(google-bert/)?bert-(base|large)-((un)?cased|chinese|multilingual-(un)?cased)"
    r"|(distilbert/)?distilbert-base-((un)?cased|multilingual-cased)"
    r"|(FacebookAI/)?(xlm-)?roberta-(base|large)|(distilbert/)?distilroberta-base"
    r"|(albert/)?albert-base-v[12]|(openai-community/)?gpt2|(distilbert/)?distilgpt2"
)
"""Public checkpoints without a head: their configurations state no labels, so that the default holds."""


def states_no_labels(name: str) -> bool:
    """Check for a public checkpoint of a model without a head for classes."""
    return _UNLABELED.fullmatch(name) is not None
