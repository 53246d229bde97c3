"""The messages that people quote, without a traceback: their projects are answered with cause and patch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import Diagnosis, diagnose_log
from shapefix.diagnosis.repaired_causes import repaired_cause
from shapefix.engine.repairs import FileRepair
from shapefix.engine.settings import CheckOptions

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
OPTIONS = CheckOptions(isolated=True, use_cache=False)
VIEW = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
    "two contiguous subspaces). Use .reshape(...) instead."
)


@dataclass(frozen=True)
class Seed:
    """A quoted message, a project with its situation, the cause, and a part of its patch."""

    message: str
    project: str
    rule: str
    row: int
    patch: str

    def __str__(self) -> str:
        return self.project


SEEDS = [
    Seed(
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (255744x4000 and 271x256)",
        "embedding-projection",
        "SF501",
        23,
        "projection = nn.Linear(4000, 256)",
    ),
    Seed(
        "ValueError: expected sequence of length 434 at dim 1 (got 512)",
        "custom-collator",
        "SF303",
        21,
        "labels = pad_sequence(",
    ),
    Seed(
        f"Warning: Eval batch 0 failed: {VIEW}",
        "sliced-logits-eval",
        "SF101",
        44,
        "logits.reshape(-1, logits.size(-1))",
    ),
    Seed(
        "ValueError: expected sequence of length 512 at dim 1 (got 468)",
        "instruction-tuning",
        "SF301",
        59,
        "DataCollatorForSeq2Seq(tokenizer=tokenizer, label_pad_token_id=-100)",
    ),
    Seed(
        "Error during training step: EnhancedModel.forward() got an unexpected keyword argument 'idx'",
        "emotion-classifier",
        "SF401",
        51,
        'tokenized.remove_columns(["sentence", "idx"])',
    ),
]  # fmt: skip


def _diagnosed(message: str, folder: Path) -> Diagnosis:
    lines = ["Step 10: Loss=9.7453, PPL=10000.0", message, "Step 20: Loss=9.7453, PPL=10000.0"]
    found = diagnose_log(lines, str(folder), OPTIONS)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_a_quoted_message_is_answered_with_cause_and_patch(seed: Seed) -> None:
    found = _diagnosed(seed.message, FIXTURES / seed.project / "before")
    first = found.causes[0]
    assert (first.finding.code, first.finding.span.row) == (seed.rule, seed.row)
    # No line is known, so nothing is proved.
    assert first.confidence in (Confidence.ONLY, Confidence.LIKELY)
    repaired = repaired_cause(found)
    assert isinstance(repaired, FileRepair)
    ((_, old, new),) = repaired.changes
    assert seed.patch in new
    assert seed.patch not in old


@pytest.mark.parametrize("seed", SEEDS, ids=str)
def test_the_repaired_project_has_no_cause(seed: Seed) -> None:
    assert _diagnosed(seed.message, FIXTURES / seed.project / "after").causes == ()


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (16x77 and 99x256)",
        "TypeError: EnhancedModel.forward() got an unexpected keyword argument 'pixels'",
        "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 3.81 GiB",
    ],
)
def test_another_message_is_not_that_of_the_project(message: str) -> None:
    for project in ("embedding-projection", "emotion-classifier"):
        assert _diagnosed(message, FIXTURES / project / "before").causes == ()


LIST_OF_TENSORS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {"input_ids": torch.arange(12), "labels": torch.tensor(i % 2)}


def collate_fn(batch):
    return {"input_ids": torch.tensor([item["input_ids"] for item in batch], dtype=torch.long)}


def step(model, loader):
    try:
        for batch in loader:
            model(batch["input_ids"])
    except Exception as error:
        print(f"Error during training step: {error}")


step(nn.Embedding(100, 8), DataLoader(Texts(), batch_size=4, collate_fn=collate_fn))
"""


def test_a_printed_message_of_a_collator_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.py").write_text(LIST_OF_TENSORS)
    exec(compile(LIST_OF_TENSORS, "train.py", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed == (
        "Error during training step: only integer tensors of a single element can be converted to an index\n"
    )
    found = diagnose_log(printed.splitlines(), str(tmp_path), OPTIONS)
    assert found is not None
    assert (found.causes[0].finding.code, found.causes[0].finding.span.row) == ("SF406", 15)
