"""What is said of forward of the models of transformers, against the library and runs of small models."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import pytest

from shapefix.checks.support.near_keys import near
from shapefix.library.transformers import forward_signatures
from shapefix.library.transformers.forward_signatures import ForwardSignature, of_auto, of_class

FOLDER = files("shapefix.library.transformers") / "data"


def test_a_class_by_version() -> None:
    old, new = (of_class("transformers.BertForSequenceClassification", version) for version in ("4.57", "5"))
    assert old is not None
    assert new is not None
    assert old.named[:3] == new.named[:3] == ("input_ids", "attention_mask", "token_type_ids")
    assert "labels" in old.named
    assert (old.swallows, new.swallows) == (False, True)
    assert not old.required


def test_the_newest_version_is_taken_where_none_is_known_and_where_there_is_no_table() -> None:
    name = "BertForSequenceClassification"
    assert of_class(name) == of_class(name, "5.24") == of_class(name, "5.0.0rc1") == of_class(name, "6.1")
    assert of_class(name) != of_class(name, "4.30.2") == of_class(name, "4.57.6")
    assert of_class(name, "3.5") is None
    assert of_auto("AutoModelForCausalLM", "3.5") is None


def test_required_parameters_and_keywords_that_are_used_without_being_named() -> None:
    speech = of_class("transformers.Wav2Vec2Model", "5")
    assert speech is not None
    assert speech.required == {"input_values"}
    llama = of_class("LlamaForCausalLM", "5")
    assert llama is not None
    assert "num_items_in_batch" not in llama.named
    assert llama.accepts("num_items_in_batch")
    assert llama.accepts("labels")
    assert not llama.accepts("label")


def test_what_takes_any_keyword_and_raises_all_the_same() -> None:
    bloom = of_class("BloomForCausalLM", "4.57")
    assert bloom is not None
    assert not bloom.swallows
    clap = of_class("ClapAudioModel", "5.24")
    assert clap is not None
    assert not clap.swallows


@pytest.mark.parametrize("name", ["transformers.Trainer", "BertConfig", "BertPreTrainedModel", "Nothing"])
def test_what_has_no_forward(name: str) -> None:
    assert of_class(name) is None
    assert of_auto(name) is None


def test_auto_classes() -> None:
    old = of_auto("transformers.AutoModelForSequenceClassification", "4.57")
    new = of_auto("AutoModelForSequenceClassification", "5")
    assert old is not None
    assert new is not None
    assert (old.swallows, old.raises) == (False, False)
    assert (new.swallows, new.raises) == (True, False)
    assert {"input_ids", "token_type_ids"} <= new.named
    assert "token_type_ids" not in new.certainly_named
    assert "input_ids" in new.certainly_named
    assert "idx" not in new.named | new.used
    assert {"BertForSequenceClassification", "GPT2ForSequenceClassification"} <= set(new.classes)


def test_auto_classes_with_a_configuration_make_one_class() -> None:
    made = of_auto("AutoModelForCausalLM", "4.57", "transformers.GPT2Config")
    assert made is not None
    assert made.classes == ("GPT2LMHeadModel",)
    alone = of_class("GPT2LMHeadModel", "4.57")
    assert alone is not None
    assert made.named == made.certainly_named == set(alone.named)
    assert made.swallows == alone.swallows is True
    assert of_auto("AutoModelForCausalLM", "4.57", "ViTConfig") is None


NAMES = (
    "input_ids",
    "attention_mask",
    "token_type_ids",
    "position_ids",
    "head_mask",
    "labels",
    "pixel_values",
)


@pytest.mark.parametrize(
    ("keyword", "meant"),
    [
        ("label", "labels"),
        ("Labels", "labels"),
        ("lables", "labels"),
        ("labls", "labels"),
        ("attention_masks", "attention_mask"),
        ("attentionmask", "attention_mask"),
        ("atention_mask", "attention_mask"),
        ("token_type_id", "token_type_ids"),
        ("input_id", "input_ids"),
        ("inputs_ids", "input_ids"),
        ("pixel_value", "pixel_values"),
        ("labels", None),
        ("idx", None),
        ("ids", None),
        ("text", None),
        ("index", None),
        ("labels_2", None),
        ("label2", None),
        ("input_idx", None),
        ("input_len", None),
        ("token_ids", None),
        ("head_task", None),
        ("lang_mask", None),
        ("position_cds", None),
        ("", None),
        ("_", None),
    ],
)
def test_names_that_are_meant(keyword: str, meant: str | None) -> None:
    assert near(keyword, NAMES) == meant


def test_of_two_names_that_may_be_meant_none_is() -> None:
    assert near("label", ["labels", "label_s"]) is None
    assert near("pixel_valuse", ["pixel_values", "pixel_value"]) is None


def test_the_tables_are_read_when_they_are_asked_for_and_stay_small() -> None:
    for path in FOLDER.iterdir():
        assert len(path.read_bytes()) < 150_000
    assert {path.name for path in FOLDER.iterdir()} == {
        *(
            f"{name}-{version}.json"
            for name in ("configurations", "forward", "models")
            for version in ("4.57", "5.24")
        ),
    }


@cache
def tables() -> tuple[dict[str, Any], dict[str, Any]]:
    """The tables for the installed transformers; skips where there are none."""
    transformers = pytest.importorskip("transformers")
    version = ".".join(transformers.__version__.split(".")[:2])
    try:
        forward, models = (
            json.loads((FOLDER / f"{name}-{version}.json").read_text("utf-8"))
            for name in ("forward", "models")
        )
    except FileNotFoundError:
        pytest.skip(f"there are no tables for transformers {version}")
    return forward, models


def by_class(lines: dict[str, str]) -> dict[str, str]:
    return {name: line for line, names in lines.items() for name in names.split()}


@pytest.mark.slow
def test_the_tables_say_what_the_library_says() -> None:
    forward, models = tables()
    import generate_forward_signatures

    real_forward, real_models = generate_forward_signatures.forward_signatures()
    real, known = by_class(real_forward["forward"]), by_class(forward["forward"])
    # Which classes there are depends on what else is installed.
    assert len(known.keys() & real.keys()) > 1000
    assert {name: known[name] for name in known.keys() & real.keys()} == {
        name: real[name] for name in known.keys() & real.keys()
    }
    assert models["kwargs"] == real_models["kwargs"]
    for name in (
        "AutoModelForCausalLM",
        "AutoModelForSequenceClassification",
        "AutoModelForTokenClassification",
    ):
        assert models["auto"][name] == real_models["auto"][name]


TINY: dict[str, dict[str, int]] = {
    "Albert": {"embedding_size": 8},
    "Bart": {
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
    },
    "Bert": {},
    "Bloom": {"n_layer": 1, "n_head": 2},
    "DistilBert": {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16},
    "Electra": {"embedding_size": 16},
    "GPT2": {"n_embd": 16, "n_layer": 1, "n_head": 2},
    "GPTNeoX": {},
    "Gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "Llama": {"num_key_value_heads": 2},
    "MPNet": {},
    "Mistral": {"num_key_value_heads": 2},
    "OPT": {"ffn_dim": 16, "word_embed_proj_dim": 16, "max_position_embeddings": 64},
    "Phi": {"num_key_value_heads": 2},
    "Qwen2": {"num_key_value_heads": 2},
    "Qwen2Moe": {
        "num_key_value_heads": 2,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "moe_intermediate_size": 8,
        "shared_expert_intermediate_size": 8,
    },
    "Roberta": {},
    "StableLm": {"num_key_value_heads": 2},
    "T5": {
        "d_model": 16,
        "num_layers": 1,
        "num_heads": 2,
        "d_ff": 16,
        "d_kv": 8,
        "decoder_start_token_id": 0,
    },
    "XLMRoberta": {},
}
SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
HEADS = (
    "Model",
    "ForCausalLM",
    "LMHeadModel",
    "ForMaskedLM",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForConditionalGeneration",
)


@pytest.mark.slow
@pytest.mark.parametrize("family", TINY)
def test_small_models_take_and_refuse_what_is_said(family: str) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    tables()
    configuration = getattr(transformers, f"{family}Config")(**SIZES | TINY[family])
    ran = 0
    for head in HEADS:
        cls = getattr(transformers, family + head, None)
        signature = of_class(family + head, transformers.__version__)
        assert (cls is None) == (signature is None)
        if cls is None or signature is None:
            continue
        model = cls(configuration).eval()
        ids = torch.tensor([[5, 6, 7, 2], [8, 9, 4, 2]])
        batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        if "decoder_input_ids" in signature.named:
            batch["decoder_input_ids"] = ids
        assert batch.keys() <= set(signature.named)
        model(**batch)
        if signature.swallows:
            model(**batch, idx=ids)
        else:
            with pytest.raises((TypeError, ValueError), match="unexpected"):
                model(**batch, idx=ids)
        ran += 1
    assert ran >= 2


def test_the_tables_wait_until_somebody_asks() -> None:
    forward_signatures._read.cache_clear()
    assert forward_signatures._read.cache_info().currsize == 0
    assert isinstance(of_class("BertModel"), ForwardSignature)
    assert forward_signatures._read.cache_info().currsize == 1
