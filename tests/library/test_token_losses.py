"""Which language models shift their labels: small ones with random weights against what is said of them."""

from __future__ import annotations

import pytest

from shapefix.domains.batches import ALIGNED, SHIFTED
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.values import LibraryObject
from shapefix.library.transformers.architectures import OwnClass
from shapefix.library.transformers.models import kind_of
from shapefix.library.transformers.token_losses import token_loss

SIZES = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "n_embd": 16,
    "n_layer": 2,
    "n_layers": 2,
    "n_head": 2,
    "n_heads": 2,
    "emb_dim": 16,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "num_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "d_ff": 32,
    "d_kv": 8,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "decoder_start_token_id": 0,
}
SHIFTING = (
    "GPT2LMHeadModel",
    "LlamaForCausalLM",
    "MistralForCausalLM",
    "Qwen2ForCausalLM",
    "OPTForCausalLM",
    "BloomForCausalLM",
    "GPTNeoXForCausalLM",
    "FalconForCausalLM",
    "PhiForCausalLM",
    "GemmaForCausalLM",
    "BertLMHeadModel",
)
NOT_SHIFTING = (
    "BartForCausalLM",
    "MBartForCausalLM",
    "PegasusForCausalLM",
    "BlenderbotForCausalLM",
    "MarianForCausalLM",
    "XLNetLMHeadModel",
    "XLMWithLMHeadModel",
    "FlaubertWithLMHeadModel",
    "TrOCRForCausalLM",
    "WhisperForCausalLM",
)
ALIGNING = (
    "BertForMaskedLM",
    "RobertaForMaskedLM",
    "T5ForConditionalGeneration",
    "BartForConditionalGeneration",
)


def said(name: str) -> str:
    full = f"transformers.{name}"
    return token_loss(LibraryObject(kind_of(full) or "", facts=Facts.of(OwnClass(full))))


def losses(name: str) -> tuple[float, float, float]:
    """The loss of a small model, what it is for shifted labels, and for labels of the same position."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, name)
    endless = name.startswith("XLNet")
    sizes = {key: size for key, size in SIZES.items() if not (endless and key == "max_position_embeddings")}
    made = model(model.config_class(**sizes)).eval()
    ids, labels = torch.randint(5, 60, (2, 12)), torch.randint(5, 60, (2, 12))
    labels[0, :3] = -100
    with torch.no_grad():
        output = made(input_ids=ids, labels=labels)
    entropy = torch.nn.functional.cross_entropy
    shifted = entropy(output.logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    return float(output.loss), float(shifted), float(entropy(output.logits.flatten(0, 1), labels.flatten()))


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIFTING)
def test_heads_that_shift_their_labels(name: str) -> None:
    loss, shifted, aligned = losses(name)
    assert loss == pytest.approx(shifted, abs=1e-4) != pytest.approx(aligned, abs=1e-4)
    assert said(name) == SHIFTED


@pytest.mark.parametrize("name", NOT_SHIFTING)
def test_causal_heads_that_do_not(name: str) -> None:
    loss, _, aligned = losses(name)
    assert loss == pytest.approx(aligned, abs=1e-4)
    assert said(name) == ""


@pytest.mark.parametrize("name", ALIGNING)
def test_heads_that_compare_position_by_position(name: str) -> None:
    loss, _, aligned = losses(name)
    assert loss == pytest.approx(aligned, abs=1e-4)
    assert said(name) == ALIGNED


def test_an_auto_class_shifts_unless_its_checkpoint_does_not() -> None:
    auto = "transformers.AutoModelForCausalLM"

    def made_with(config: str) -> str:
        configuration = LibraryObject("transformers.PretrainedConfig", facts=Facts.of(OwnClass(config)))
        return token_loss(
            LibraryObject(auto, fields={"config": configuration}, facts=Facts.of(OwnClass(auto)))
        )

    assert made_with("GPT2Config") == SHIFTED
    assert made_with("BartConfig") == ""
    assert said("AutoModelForSequenceClassification") == ""
