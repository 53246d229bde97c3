"""Pad tokens of fast tokenizers made from objects of the tokenizers library, asked of the real ones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from checking import Check

_MADE = """
from tokenizers import Tokenizer, models
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

backend = Tokenizer(models.WordLevel({"a": 0, "b": 1, "[UNK]": 2, "[PAD]": 3}, unk_token="[UNK]"))
backend.pre_tokenizer = Whitespace()
"""
_PADS = {
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": False,
    "backend.add_special_tokens(['[PAD]'])\n"
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": False,
    "backend.enable_padding()\nbackend.no_padding()\n"
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": False,
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, pad_token='[PAD]')": True,
    "backend.enable_padding(pad_token='[PAD]')\n"
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": True,
    "def prepare(made):\n    made.enable_padding()\nprepare(backend)\n"
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": True,
    "backend = Tokenizer.from_str(backend.to_str())\nbackend.enable_padding()\n"
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)": True,
    "tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)\ntokenizer.pad_token = '[PAD]'": True,
}
"""Code that makes a tokenizer, and whether it can pad."""


@pytest.mark.parametrize("code", _PADS)
def test_a_tokenizer_whose_backend_never_pads_has_no_pad_token(code: str, check: Check) -> None:
    whole = f"{_MADE}{code}\nencoded = tokenizer(['a b', 'a'], padding=True)\n"
    namespace: dict[str, Any] = {}
    error = nullcontext() if _PADS[code] else pytest.raises(ValueError, match="does not have a padding token")
    with error:
        exec(whole, namespace)
    assert (namespace["tokenizer"].eos_token is None) == ("eos_token" not in code)
    assert bool(check(whole, {"SF305"})) != _PADS[code]


def test_a_tokenizer_from_a_file_may_pad(check: Check) -> None:
    made = (
        "backend = Tokenizer.from_file('a')\ntokenizer = PreTrainedTokenizerFast(tokenizer_object=backend)\n"
    )
    assert not check(f"{_MADE}{made}encoded = tokenizer(['a b', 'a'], padding=True)\n", {"SF305"})
