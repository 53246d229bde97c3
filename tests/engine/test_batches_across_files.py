"""A batch built in one file meets a forward of another one; what is not known of a file is unknown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
from checking import analyzed

from shapefix.checks.rules import RULES

KEYS = frozenset(code for code in RULES if code.startswith("SF4"))
MODEL = """
    from torch import nn

    class EnhancedModel(nn.Module):
        def forward(self, input_ids, attention_mask, labels=None):
            return input_ids
    """
DATA = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Reviews(Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            ids = torch.zeros(5, dtype=torch.long)
            return {"idx": index, "input_ids": ids, "attention_mask": torch.ones(5), "labels": 1}

    def loader():
        return DataLoader(Reviews(), batch_size=4)
    """
TRAINER = """
    from data import loader
    from model import EnhancedModel

    def main():
        model = EnhancedModel()
        for batch in loader():
            try:
                loss = model(**batch)
            except Exception as error:
                print(f"Error during training step: {error}")

    main()
    """


def found(folder: Path, files: Mapping[str, str], asked: str = "trainer.py") -> list[tuple[str, str, int]]:
    """The code, file and line of what is found when one file of a project is asked about."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    analysis = analyzed(folder / asked, textwrap.dedent(files[asked]), KEYS)
    assert not analysis.failures
    return sorted({(d.code, Path(d.span.path).name, d.span.row) for d in analysis.diagnostics})


def test_a_key_that_forward_does_not_accept_is_found_from_the_trainer_alone(tmp_path: Path) -> None:
    files = {"model.py": MODEL, "data.py": DATA, "trainer.py": TRAINER}
    assert found(tmp_path, files) == [("SF401", "trainer.py", 9)]


def test_the_message_names_the_forward_and_its_file(tmp_path: Path) -> None:
    for name, text in {"model.py": MODEL, "data.py": DATA, "trainer.py": TRAINER}.items():
        (tmp_path / name).write_text(textwrap.dedent(text), encoding="utf-8")
    (finding,) = analyzed(tmp_path / "trainer.py", textwrap.dedent(TRAINER), KEYS).diagnostics
    assert "passes `idx` to `EnhancedModel.forward` (model.py:5); TypeError" in finding.text


def test_files_that_import_each_other(tmp_path: Path) -> None:
    files = {
        "model.py": "from trainer import main\n" + textwrap.dedent(MODEL),
        "data.py": "import model\n" + textwrap.dedent(DATA),
        "trainer.py": TRAINER,
    }
    assert found(tmp_path, files) == [("SF401", "trainer.py", 9)]


def test_a_star_import(tmp_path: Path) -> None:
    trainer = TRAINER.replace("from model import EnhancedModel", "from model import *")
    assert found(tmp_path, {"model.py": MODEL, "data.py": DATA, "trainer.py": trainer}) == [
        ("SF401", "trainer.py", 9)
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"data.py": DATA, "trainer.py": TRAINER},
        {"model.py": MODEL, "trainer.py": TRAINER},
        {"model.py": "class EnhancedModel(:\n", "data.py": DATA, "trainer.py": TRAINER},
        {
            "model.py": textwrap.dedent(MODEL) + "\nfrom elsewhere import EnhancedModel\n",
            "data.py": DATA,
            "trainer.py": TRAINER,
        },
        {
            "model.py": textwrap.dedent(MODEL) + "\nEnhancedModel = registry.get('EnhancedModel')\n",
            "data.py": DATA,
            "trainer.py": TRAINER,
        },
        {
            "model.py": MODEL,
            "data.py": DATA.replace("batch_size=4", "batch_size=4, collate_fn=elsewhere.Collator()").replace(
                "import torch\n", "import elsewhere\n    import torch\n"
            ),
            "trainer.py": TRAINER,
        },
    ],
    ids=["no model", "no data", "a model that does not parse", "imported", "two of a name", "a collator"],
)
def test_what_is_not_known_is_not_reported(tmp_path: Path, files: Mapping[str, str]) -> None:
    assert found(tmp_path, files) == []


def test_two_classes_of_one_name(tmp_path: Path) -> None:
    other = MODEL.replace("labels=None", "labels=None, idx=None")
    files = {"old/model.py": MODEL, "model.py": other, "data.py": DATA, "trainer.py": TRAINER}
    assert found(tmp_path, files) == []
