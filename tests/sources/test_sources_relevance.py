from __future__ import annotations

import pytest

from shapefix.sources.relevance import mentions_library


@pytest.mark.parametrize(
    "data",
    [
        b"import torch\n",
        b"import pytorch_lightning as pl\n",
        b"from torchvision import models\n",
        b"from transformers import Trainer\n",
        b"import datasets\n",
        b"from lightning.pytorch import Trainer\n",
        b"import accelerate\n",
        b"from einops import rearrange\n",
        b"import timm\n",
        b"from trl import SFTTrainer\n",
        b"import numpy, peft\n",
    ],
)
def test_files_that_use_tensors_matter(data: bytes) -> None:
    assert mentions_library(data)


@pytest.mark.parametrize("data", [b"", b"import numpy as np\n", b"ctrl = 1\n", b"my_datasets = []\n"])
def test_other_files_do_not(data: bytes) -> None:
    assert not mentions_library(data)
