from __future__ import annotations

import pytest

from shapefix.sources.relevance import mentions_library, mentions_training, training_functions


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


@pytest.mark.parametrize(
    "data",
    [
        b"if __name__ == '__main__':\n",
        b"loader = DataLoader(data)\n",
        b"Seq2SeqTrainer(model)",
        b"loss.backward()\n",
    ],
)
def test_scripts_that_run_a_model_on_batches(data: bytes) -> None:
    assert mentions_training(data)
    assert not mentions_training(b"import torch\nclass Net(torch.nn.Module): ...\n")


def test_functions_that_train_are_found_with_those_around_them() -> None:
    text = """
import torch

def helper(x):
    return x

class Runner:
    def __init__(self, model):
        self.model = model

    def train(self, data):
        def step(batch):
            self.model(batch).sum().backward()

        for batch in data:
            step(batch)

    def log(self):
        pass

async def load():
    # everything
    return torch.utils.data.DataLoader([1])

def show(x):
    print(x)

class Lit:
    def training_step(self, batch, index):
        return self(batch)
"""
    assert training_functions(text) == {"train", "step", "load", "training_step"}
    assert training_functions("loss.backward()\ndef f(): pass\n") == frozenset()


@pytest.mark.parametrize(
    "body",
    [
        *("for batch in loader: pass", "DataLoader(rows)", "MyTrainer(model)", "load_dataset(name)"),
        *("loss.backward()", "model.fit(x)", "optimizer.zero_grad()", "for x in self.train_loader: pass"),
    ],
)
def test_each_sign_of_training_is_found_alone(body: str) -> None:
    assert training_functions(f"def run():\n    {body}\n") == {"run"}
    assert training_functions("def test_step():\n    pass\n") == {"test_step"}
