"""What models of transformers give back: small models with random weights against what is said of them."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from checking import Check
from differential import agree, compare, executed, layouts, revealed
from transformers.utils import auto_docstring

from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import LibraryObject
from shapefix.library.library import TorchLibrary
from shapefix.library.transformers.models import kind_of

_ENCODER = "vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16"
SMALL = {
    "GPT2": "vocab_size=50, n_embd=16, n_layer=1, n_head=2",
    "Llama": _ENCODER,
    "Qwen2": f"{_ENCODER}, num_key_value_heads=2",
    "Bert": _ENCODER,
    "Roberta": _ENCODER,
    "DistilBert": "vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=16",
    "T5": "vocab_size=50, d_model=16, num_layers=1, num_heads=2, d_ff=16, d_kv=8, decoder_start_token_id=0",
}


def made(model: str, family: str, more: str = "") -> str:
    return f"""
        from transformers import {family}Config, {model}
        model = {model}({family}Config({SMALL[family]}, pad_token_id=0{more})).eval()
        ids = torch.randint(1, 50, (B, T))
        """


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("GPT2LMHeadModel", "GPT2"),
        ("LlamaForCausalLM", "Llama"),
        ("Qwen2ForCausalLM", "Qwen2"),
        ("BertForMaskedLM", "Bert"),
        ("RobertaForMaskedLM", "Roberta"),
        ("DistilBertForMaskedLM", "DistilBert"),
    ],
)
def test_language_models_give_contiguous_logits(model: str, family: str) -> None:
    agree(
        made(model, family)
        + """
        reveal(model(ids).logits)
        out = model(input_ids=ids, labels=ids)
        reveal(out.loss), reveal(out[0]), reveal(out[1]), reveal(out["logits"])
        logits = model(ids).logits
        reveal(logits[..., :-1, :]), reveal(logits[0, 0])
        """
    )


@pytest.mark.parametrize("family", ["Bert", "GPT2", "Llama", "DistilBert", "Roberta"])
def test_classifiers_give_a_row_for_each_sequence(family: str) -> None:
    agree(
        made(f"{family}ForSequenceClassification", family, ", num_labels=3")
        + "reveal(model(ids).logits), reveal(model(ids, labels=torch.zeros(B).long()).loss)"
    )


@pytest.mark.parametrize("family", ["Bert", "DistilBert"])
def test_token_classifiers_give_a_row_for_each_token(family: str) -> None:
    agree(made(f"{family}ForTokenClassification", family, ", num_labels=3") + "reveal(model(ids)[0])")


@pytest.mark.parametrize("family", ["Bert", "GPT2", "Llama", "DistilBert", "Roberta"])
def test_base_models_give_hidden_states(family: str) -> None:
    agree(
        made(f"{family}Model", family)
        + "reveal(model(input_ids=ids).last_hidden_state), reveal(model(ids)[0])"
    )


def test_what_is_pooled_has_no_length() -> None:
    agree(made("BertModel", "Bert") + "reveal(model(ids).pooler_output), reveal(model(ids)[1])")


def test_encoder_decoders_answer_for_their_targets() -> None:
    agree(
        made("T5ForConditionalGeneration", "T5")
        + """
        reveal(model(input_ids=ids, labels=ids[:, :3].contiguous()).logits)
        reveal(model(input_ids=ids, decoder_input_ids=ids[:, 1:]).logits)
        """
    )


def test_answers_have_the_sizes_of_the_question() -> None:
    agree(
        made("BertForQuestionAnswering", "Bert")
        + "reveal(model(ids).start_logits), reveal(model(ids).end_logits)",
        strides=False,
    )


def test_models_by_configuration_read_their_sizes_from_it() -> None:
    agree(
        made("BertModel", "Bert")
        + """
        from transformers import AutoModel, AutoConfig
        reveal(torch.ones(model.config.hidden_size))
        reveal(AutoModel.from_config(model.config)(ids).last_hidden_state)
        head = nn.Linear(model.config.hidden_size, 5)
        reveal(head(model(ids).last_hidden_state[:, 0]))
        """
    )


def test_a_projects_model_around_a_pretrained_one() -> None:
    agree(
        f"""
        from transformers import BertConfig, BertModel, BertPreTrainedModel

        class Tagger(BertPreTrainedModel):
            def __init__(self, config):
                super().__init__(config)
                self.bert = BertModel(config, add_pooling_layer=False)
                self.head = nn.Linear(config.hidden_size, 7)
                self.post_init()

            def forward(self, input_ids, attention_mask=None):
                hidden = self.bert(input_ids, attention_mask=attention_mask)[0]
                return self.head(hidden)

        model = Tagger(BertConfig({SMALL["Bert"]}))
        reveal(model(torch.randint(1, 50, (B, T))))
        """
    )


def test_pretrained_models_are_known_by_what_they_compute() -> None:
    source = """
        from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoModel
        from transformers import LlamaForCausalLM

        def f(batch, input_ids):
            lm = AutoModelForCausalLM.from_pretrained("gpt2")
            reveal(lm(**batch).logits)
            reveal(LlamaForCausalLM.from_pretrained("llama", torch_dtype="auto").to("cuda")(input_ids).logits)
            reveal(AutoModelForSequenceClassification.from_pretrained("bert", num_labels=3)(**batch).logits)
            reveal(torch.zeros(lm.config.vocab_size))
            reveal(lm(input_ids, logits_to_keep=1).logits)
            reveal(AutoModel.from_pretrained("bert")(input_ids).last_hidden_state)
        """
    assert layouts(source) == [
        "(B, T, V) strides (V*T, V, 1)",
        "(B, T, V) strides (V*T, V, 1)",
        "(B, 3) strides (3, 1)",
        "(V) strides (1)",
        "(B, kept, V) strides (V*kept, V, 1)",
        "(B, T, D) strides (T*D, D, 1)",
    ]


def test_logits_of_one_model_have_one_width() -> None:
    source = """
        from transformers import AutoModelForCausalLM
        model = AutoModelForCausalLM.from_pretrained("gpt2")
        def f(batch):
            logits = model(**batch).logits
            reveal(logits.view(-1, model.config.vocab_size))
        """
    assert layouts(source) == ["(B*T, V) strides (V, 1)"]


def test_more_tokens_are_more_logits() -> None:
    source = """
        from transformers import AutoModelForCausalLM
        model = AutoModelForCausalLM.from_pretrained("gpt2")
        model.resize_token_embeddings(50300)
        def f(batch):
            reveal(model(**batch).logits)
        """
    assert layouts(source) == ["(B, T, 50300) strides (50300*T, 50300, 1)"]


@pytest.mark.parametrize(
    "name",
    [
        "transformers.AutoProcessor",
        "transformers.BitsAndBytesConfig",
        "transformers.VisionEncoderDecoderModel",
        "transformers.LlavaForConditionalGeneration",
        "transformers.TFBertModel",
        "project.BertModel",
    ],
)
def test_names_that_tell_nothing_stay_unknown(name: str) -> None:
    assert kind_of(name) is None
    assert not TorchLibrary().is_class(name)


def test_a_models_outputs_are_an_object() -> None:
    source = """
        from transformers import AutoModelForCausalLM
        reveal(AutoModelForCausalLM.from_pretrained("gpt2")(torch.zeros(2, 3).long()))
        """
    (value,) = revealed(source)
    assert isinstance(value, LibraryObject)


def test_auto_docstring_returns_the_method_itself() -> None:
    def forward(self: object, input_ids: torch.Tensor) -> torch.Tensor:
        return input_ids

    assert auto_docstring(forward) is forward
    source = """
        from transformers.utils import auto_docstring

        class Head(nn.Module):
            @auto_docstring
            def forward(self, input_ids):
                return input_ids.transpose(1, 2)

        reveal(Head()(torch.randn(2, 3, 4)))
        """
    assert layouts(source) == layouts("reveal(torch.randn(2, 3, 4).transpose(1, 2))")


_SMALL_MORE = {
    **SMALL,
    "Albert": f"{_ENCODER}, embedding_size=16, num_hidden_groups=1",
    "Camembert": _ENCODER,
    "XLMRoberta": _ENCODER,
    "Electra": f"{_ENCODER}, embedding_size=16",
    "OPT": "vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, ffn_dim=16, "
    "word_embed_proj_dim=16",
}


@pytest.mark.parametrize("family", sorted(_SMALL_MORE.keys() - {"T5"}))
def test_the_second_output_of_a_base_model(family: str) -> None:
    source = f"""
        from transformers import {family}Config, AutoModel
        model = AutoModel.from_config({family}Config({_SMALL_MORE[family]}, pad_token_id=0)).eval()
        ids = torch.randint(1, 50, (2, 6))
        outputs = model(ids).to_tuple()
        """
    second = executed(f"{source}reveal((*outputs, None)[1])")[0]
    is_pooled = isinstance(second, torch.Tensor)
    shown = revealed(f"{source.replace('.to_tuple()', '')}reveal(outputs[1])")[0]
    assert isinstance(shown, TensorValue) == is_pooled
    if is_pooled:
        compare(shown, second, require_sizes=True)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("family", ["GPT2", "OPT", "Bert", "Llama", "DistilBert"])
def test_token_ids_of_another_rank_are_refused_where_the_model_refuses_them(
    family: str, rank: int, check: Check
) -> None:
    source = f"""
import torch
from transformers import {family}Config, AutoModel
model = AutoModel.from_config({family}Config({_SMALL_MORE[family]})).eval()

def run(x):
    h = model(x).last_hidden_state
    {", ".join("abc"[:rank])}, = x.shape
"""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    try:
        namespace["run"](torch.ones((2, 3, 4)[:rank], dtype=torch.long))
    except (ValueError, RuntimeError, IndexError):
        assert rank != 2
        assert check(source, ["SF507"])
    else:
        assert not check(source, ["SF507"])


@pytest.mark.parametrize(
    "model",
    [
        "ViTModel",
        "CLIPVisionModel",
        "ResNetModel",
        "Wav2Vec2Model",
        "HubertModel",
        "WhisperModel",
        "ViTForImageClassification",
        "Wav2Vec2ForSequenceClassification",
        "AutoModel",
        "AutoModelForImageClassification",
        "AutoModelForAudioClassification",
        "AutoBackbone",
        "DetrModel",
        "BlipModel",
        "CLIPModel",
        "BertModel",
        "AutoModelForCausalLM",
        "AutoModelForMaskedLM",
        "RobertaForTokenClassification",
    ],
)
def test_a_first_argument_is_token_ids_only_of_models_of_texts(model: str, check: Check) -> None:
    if model.startswith("Auto"):
        is_text = model in ("AutoModelForCausalLM", "AutoModelForMaskedLM")
    else:
        is_text = list(inspect.signature(getattr(transformers, model).forward).parameters)[1] == "input_ids"
    source = f"""
from transformers import {model}
model = {model}.from_pretrained(checkpoint)

def run(x):
    first = model(x)[0]
    a, b, c, d = x.shape
"""
    is_certain = is_text and model != "AutoModelForCausalLM"
    assert bool(check(source, ["SF507"])) == is_certain
    shown = layouts(f"from transformers import {model}\nreveal({model}.from_pretrained(name)(x)[0])")
    assert is_text or "ImageClass" in model or shown == ["?"]


def test_whole_numbers_in_the_first_place_are_token_ids() -> None:
    made_here = "from transformers import AutoModel\nmodel = AutoModel.from_pretrained(name)\n"
    assert layouts(f"{made_here}reveal(model(torch.zeros(2, 5, dtype=torch.long))[0])")[0].startswith(
        "(2, 5,"
    )
    assert layouts(f"{made_here}reveal(model(torch.zeros(2, 3, 8, 8))[0])") == ["?"]
    assert layouts(f"{made_here}reveal(model(torch.zeros(2, 5))[0])") == ["?"]


@pytest.mark.parametrize(
    ("asked", "given", "codes"),
    [
        (", torch_dtype=torch.bfloat16", "torch.bfloat16", []),
        (", dtype=torch.bfloat16", "torch.float32", ["SF512"]),
        ("", "torch.bfloat16", []),
    ],
)
def test_loaded_weights_have_the_asked_dtype(
    asked: str, given: str, codes: list[str], tmp_path: Path, check: Check
) -> None:
    code = f"""
    import torch
    from torch import nn
    from transformers import PretrainedConfig, PreTrainedModel

    class Net(PreTrainedModel):
        config_class = PretrainedConfig

        def __init__(self, config):
            super().__init__(config)
            self.conv = nn.Conv2d(3, 4, 3)
            self.post_init()

        def forward(self, x):
            return self.conv(x)

    Net(PretrainedConfig()).to(torch.bfloat16).save_pretrained(folder)
    net = Net.from_pretrained(folder{asked})
    net(torch.randn(1, 3, 8, 8, dtype={given}))
    """
    code = textwrap.dedent(code)
    try:
        exec(code, {"folder": tmp_path})
    except RuntimeError:
        assert codes
    else:
        assert not codes
    assert [each.code for each in check(code)] == codes


def test_the_states_of_a_time_series_are_not_those_of_a_text() -> None:
    (states,) = revealed(
        """
import torch
from transformers import PatchTSTConfig, PatchTSTModel
model = PatchTSTModel(PatchTSTConfig(num_input_channels=2, context_length=32))
reveal(model(past_values=torch.randn(4, 32, 2)).last_hidden_state)
"""
    )
    assert not isinstance(states, TensorValue) or states.layout is None
    model = transformers.PatchTSTModel(transformers.PatchTSTConfig(num_input_channels=2, context_length=32))
    assert model(past_values=torch.randn(4, 32, 2)).last_hidden_state.dim() == 4


def test_the_loss_of_answers_is_the_first_output() -> None:
    (loss,) = revealed(
        """
import torch
from transformers import BertConfig, BertForQuestionAnswering
model = BertForQuestionAnswering(BertConfig())
place = torch.tensor([1, 2])
reveal(model(torch.randint(0, 20, (2, 6)), start_positions=place, end_positions=place)[0])
"""
    )
    assert isinstance(loss, TensorValue)
    assert loss.layout is not None
    assert loss.layout.rank == 0
