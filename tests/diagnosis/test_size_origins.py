"""The numbers of a message are explained: the setting of a layer's size, and the load of its data."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from raised import traceback_of

from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnosis.failing_layer import FailingLayer
from shapefix.engine.settings import CheckOptions

OPTIONS = CheckOptions(isolated=True, use_cache=False)
TRAIN = """\
import json
import numpy as np
import torch
from torch import nn

class Config:
    def __init__(self, **values):
        self.__dict__.update(values)

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.projection = nn.Linear(config.vocab_size, 256)

    def forward(self, x):
        return self.projection(x)

config = Config(**json.load(open("config.json")))
inputs = np.load("inputs.npy")
labels = np.zeros(8)
loader = torch.utils.data.DataLoader(torch.from_numpy(inputs), batch_size=4)
net = Net(config)
for batch in loader:
    net(batch.float())
"""


def _diagnosed(folder: Path, code: str) -> tuple[FailingLayer | None, Diagnosis]:
    (folder / "train.py").write_text(code)
    (folder / "config.json").write_text(json.dumps({"vocab_size": 271, "layers": 2}, indent=2))
    np.save(folder / "inputs.npy", np.zeros((8, 40), np.float32))
    found = diagnose_log(traceback_of(folder / "train.py").splitlines(), str(folder), OPTIONS)
    assert found is not None
    return found.layer, found


def test_both_numbers_are_explained(tmp_path: Path) -> None:
    layer, _ = _diagnosed(tmp_path, TRAIN)
    assert layer is not None
    assert (layer.wanted, layer.arrived) == ("271", "40")
    assert layer.setting is not None
    assert layer.load is not None
    place = (Path(layer.setting.path).name, layer.setting.row, layer.setting.code)
    assert place == ("config.json", 2, '"vocab_size": 271')
    assert (Path(layer.load.path).name, layer.load.row) == ("train.py", 19)


@pytest.mark.parametrize(
    ("old", "new", "has_setting", "has_load"),
    [
        ('open("config.json")', "open('config.json'))); other = (Config(vocab_size=271", False, True),
        ("labels = np.zeros(8)", "inputs = inputs + np.load('inputs.npy')", True, False),
        (
            "torch.from_numpy(inputs)",
            "torch.zeros(8, int(__import__('os').environ.get('ROWS', '40')))",
            True,
            False,
        ),
    ],
)
def test_two_possible_places_are_no_answer(
    tmp_path: Path, old: str, new: str, has_setting: bool, has_load: bool
) -> None:
    assert old in TRAIN
    layer, _ = _diagnosed(tmp_path, TRAIN.replace(old, new))
    assert layer is not None
    assert (layer.setting is not None, layer.load is not None) == (has_setting, has_load)
