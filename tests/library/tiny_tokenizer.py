"""A real tokenizer, trained on three sentences."""

from __future__ import annotations

import functools
from typing import Any

SENTENCES = ("The cat sat on the mat.", "Yes.", "A short one.")
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


@functools.cache
def bert() -> Any:
    """A tokenizer with a pad token and token types, trained on three sentences."""
    import tokenizers
    import transformers
    from tokenizers import models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()  # type: ignore[assignment, unused-ignore]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    made.train_from_iterator(SENTENCES, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        chat_template=TEMPLATE,
    )
