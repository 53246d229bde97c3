"""Hidden sizes of public checkpoints, against the defaults that transformers documents."""

from __future__ import annotations

import importlib
import re

import pytest
from checking import Check

from shapefix.library.transformers.checkpoints import widths_of

DOCUMENTED = {
    "bert": ("BertConfig", "google-bert/bert-base-uncased"),
    "distilbert": ("DistilBertConfig", "distilbert-base-uncased"),
    "roberta": ("RobertaConfig", "FacebookAI/roberta-base"),
    "gpt2": ("GPT2Config", "openai-community/gpt2"),
    "t5": ("T5Config", "google-t5/t5-small"),
    "bart": ("BartConfig", "facebook/bart-large"),
    "vit": ("ViTConfig", "google/vit-base-patch16-224"),
    "wav2vec2": ("Wav2Vec2Config", "facebook/wav2vec2-base-960h"),
    "xlm_roberta": ("XLMRobertaConfig", "FacebookAI/xlm-roberta-base"),
}


@pytest.mark.parametrize("module", DOCUMENTED)
def test_a_width_is_that_of_the_documented_configuration(module: str) -> None:
    name, checkpoint = DOCUMENTED[module]
    configuration = getattr(importlib.import_module(f"transformers.models.{module}"), name)
    assert re.search(rf"\b{re.escape(checkpoint)}\b", configuration.__doc__), configuration.__doc__[:500]
    made = configuration()
    widths = widths_of(checkpoint)
    assert "hidden_size" in widths
    for attribute, width in widths.items():
        assert getattr(made, attribute) == width


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("bert-base-uncased", 768),
        ("bert-large-uncased-whole-word-masking", 1024),
        ("bert-base-uncased-emotion", None),
        ("someone/bert-base-uncased", None),
        ("./bert-base-uncased", None),
        ("prajjwal1/bert-tiny", None),
    ],
)
def test_other_checkpoints_have_no_known_width(name: str, width: int | None) -> None:
    assert widths_of(name).get("hidden_size") == width


CODE = """
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, BertModel

class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = {model}
        self.head = nn.Linear({width}, 4)

    def forward(self, ids, mask):
        return self.head(self.bert(ids, attention_mask=mask).last_hidden_state[:, 0])

ids = torch.zeros(2, 8, dtype=torch.long)
Classifier()(ids, torch.ones_like(ids))
"""


@pytest.mark.parametrize(
    ("model", "width", "found"),
    [
        ('BertModel.from_pretrained("bert-base-uncased")', "768", []),
        ('BertModel.from_pretrained("bert-base-uncased")', "self.bert.config.hidden_size", []),
        ('BertModel.from_pretrained("bert-base-uncased")', "512", ["SF501"]),
        ('AutoModel.from_pretrained("distilbert-base-uncased")', "self.bert.config.dim", []),
        ('AutoModel.from_pretrained("FacebookAI/roberta-large")', "768", ["SF501"]),
        ('AutoModel.from_pretrained("bert-base-uncased", hidden_size=512)', "512", []),
        ('AutoModel.from_config(AutoConfig.from_pretrained("bert-base-cased"))', "1024", ["SF501"]),
        ('AutoModel.from_pretrained("someone/bert-tiny")', "512", []),
    ],
)
def test_a_head_of_another_width_is_found(model: str, width: str, found: list[str], check: Check) -> None:
    assert [each.code for each in check(CODE.format(model=model, width=width), {"SF501"})] == found
