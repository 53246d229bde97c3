"""What Lightning's loaders yield reaches the steps of the project's modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.engine.merge import unique
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

PROJECT = """
import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader

EVEN = [{"x": torch.zeros(4)} for i in range(4)]
NUMBERED = [{"x": torch.zeros(4), "idx": i} for i in range(4)]
RAGGED = [{"x": torch.zeros(2)}, {"x": torch.zeros(3)}]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x.sum() * self.weight


class Base(L.LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.save_hyperparameters()
        self.model = Net()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.hparams.lr)


class Named(Base):
    def training_step(self, batch, batch_idx):
        loss = self.model(batch["x"])
        self.log("loss", loss)
        return loss


class Unpacking(Base):
    def training_step(self, batch, batch_idx):
        loss = self.model(**batch)
        self.log_dict({"loss": loss})
        return loss


class Itself(Base):
    def forward(self, x):
        return self.model(x)

    def training_step(self, batch):
        return self(**batch)


class Validating(Named):
    def validation_step(self, batch, batch_idx):
        self.model(**batch)


class Popping(Unpacking):
    def on_after_batch_transfer(self, batch, dataloader_idx):
        batch.pop("idx")
        return batch


class Loading(Unpacking):
    def train_dataloader(self):
        return DataLoader(NUMBERED, batch_size=2)


class Late(Base):
    def setup(self, stage):
        self.head = Net()

    def training_step(self, batch, batch_idx):
        return self.head(**batch)


class Wide(Net):
    def forward(self, x, idx):
        return super().forward(x)


class Replacing(Unpacking):
    def on_fit_start(self):
        self.model = Wide()


class Both(Base):
    def training_step(self, batch, batch_idx):
        return self.model(**batch["first"])


class Tested(Named):
    def test_step(self, batch, batch_idx):
        self.model(**batch)

    def predict_step(self, batch):
        self.model(**batch)


class Data(L.LightningDataModule):
    def __init__(self, rows):
        super().__init__()
        self.rows = rows
        self.train = None

    def setup(self, stage=None):
        if stage == "fit":
            self.train = self.rows

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=2)


def loader(rows):
    return DataLoader(rows, batch_size=2)


def trainer(**settings):
    quiet = {name: False for name in ("logger", "enable_checkpointing", "enable_progress_bar")}
    return L.Trainer(max_steps=1, accelerator="cpu", enable_model_summary=False, **quiet, **settings)


"""

EXTRA = ("SF401", "TypeError: Net.forward() got an unexpected keyword argument 'idx'")
EXTRA_OF_MODULE = ("SF401", "TypeError: Itself.forward() got an unexpected keyword argument 'idx'")
RAGGED = ("SF302", "RuntimeError: stack expects each tensor to be equal size")

WRONG = [
    ("trainer().fit(Unpacking(), loader(NUMBERED))", EXTRA),
    ("trainer().fit(model=Unpacking(), train_dataloaders=loader(NUMBERED))", EXTRA),
    ("trainer().fit(Itself(), loader(NUMBERED))", EXTRA_OF_MODULE),
    ("trainer().fit(Loading())", EXTRA),
    ("trainer().fit(Unpacking(), datamodule=Data(NUMBERED))", EXTRA),
    ("trainer().fit(Unpacking(), Data(NUMBERED))", EXTRA),
    ("trainer().fit(Validating(), loader(EVEN), loader(NUMBERED))", EXTRA),
    ("trainer().fit(Validating(), loader(EVEN), val_dataloaders=[loader(NUMBERED)])", EXTRA),
    ("trainer().fit(Late(), loader(NUMBERED))", EXTRA),
    ("trainer().fit(Both(), {'first': loader(NUMBERED), 'second': loader(EVEN)})", EXTRA),
    ("trainer().test(Tested(), loader(NUMBERED))", EXTRA),
    ("trainer().predict(Tested(), dataloaders=loader(NUMBERED))", EXTRA),
    ("trainer().fit(Named(), datamodule=Data(RAGGED))", RAGGED),
]
RIGHT = [
    "trainer().fit(Unpacking(), loader(EVEN))",
    "trainer().fit(Named(), loader(NUMBERED))",
    "trainer().fit(Itself(), loader(EVEN))",
    "trainer().fit(Popping(), loader(NUMBERED))",
    "trainer().fit(Loading(), loader(EVEN))",
    "trainer().fit(Unpacking(), datamodule=Data(EVEN))",
    "trainer().fit(Named(), loader(EVEN), loader(NUMBERED))",
    "trainer().fit(Validating(), loader(NUMBERED), loader(EVEN))",
    "trainer(limit_val_batches=0).fit(Validating(), loader(EVEN), loader(NUMBERED))",
    "trainer(limit_train_batches=0).fit(Unpacking(), loader(NUMBERED))",
    "trainer().fit(Late(), loader(EVEN))",
    "trainer().fit(Replacing(), loader(NUMBERED))",
    "trainer().fit(Both(), {'first': loader(EVEN), 'second': loader(NUMBERED)})",
    "trainer().test(Tested(), loader(EVEN))",
]
UNKNOWN = [
    "import elsewhere\nclass Mixed(elsewhere.Hooks, Unpacking): ...\ntrainer().fit(Mixed(), Data(NUMBERED))",
    "import elsewhere\ntrainer().fit(elsewhere.model, loader(NUMBERED))",
    "import elsewhere\ntrainer().fit(Unpacking(), elsewhere.loader)",
    "import elsewhere\ntrainer().fit(Unpacking(), datamodule=elsewhere.data)",
    "import elsewhere\ntrainer().fit(Unpacking(), [elsewhere.loader, loader(NUMBERED)])",
]


def findings(source: str, check: Check) -> list[Diagnostic]:
    return unique(check(source))


def codes(source: str, check: Check) -> list[str]:
    return [diagnostic.code for diagnostic in findings(source, check)]


@pytest.mark.parametrize(("run", "expected"), WRONG)
def test_what_raises_out_of_the_trainer_is_found(run: str, expected: tuple[str, str], check: Check) -> None:
    assert codes(PROJECT + run, check) == [expected[0]]


@pytest.mark.parametrize("run", RIGHT + UNKNOWN)
def test_what_runs_or_is_not_known_is_silent(run: str, check: Check) -> None:
    assert codes(PROJECT + run, check) == []


@pytest.mark.parametrize("imported", ["import lightning.pytorch as L", "import pytorch_lightning as L"])
def test_every_package_is_the_same_lightning(imported: str, check: Check) -> None:
    source = PROJECT.replace("import lightning as L", imported)
    assert codes(source + WRONG[0][0], check) == ["SF401"]


def test_the_finding_stands_in_the_step_and_names_the_fit(check: Check) -> None:
    source = PROJECT + WRONG[0][0]
    (found,) = findings(source, check)
    lines = source.splitlines()
    assert lines[found.span.row - 1].strip() == "loss = self.model(**batch)"
    shown = {lines[evidence.span.row - 1].strip() for evidence in found.evidence}
    assert WRONG[0][0] in shown


def test_what_a_step_changes_is_not_known_afterwards(check: Check) -> None:
    source = """
class Switching(Base):
    def training_step(self, batch, batch_idx):
        self.model = swapped()
        return batch["x"].sum()

model = Switching()
trainer().fit(model, loader(NUMBERED))
model.model(x=torch.zeros(4), idx=1)
"""
    assert codes(PROJECT + source, check) == []
    assert codes(PROJECT + source.replace("trainer().fit", "print"), check) == ["SF401"]


def real(run: str) -> Any:
    """What Lightning raises for the program, None where it runs to its end."""
    pytest.importorskip("lightning")
    try:
        exec(compile(PROJECT + run, "train.py", "exec"), {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("run", "expected"), WRONG)
def test_lightning_raises_where_something_is_found(run: str, expected: tuple[str, str]) -> None:
    assert (real(run) or "").startswith(expected[1])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("run", RIGHT)
def test_lightning_runs_what_is_silent(run: str) -> None:
    assert real(run) is None


MANUAL = """
import torch
import lightning.pytorch as pl

class System(pl.LightningModule):
    def __init__(self, sharp):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)
        self.sharp = sharp

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def training_step(self, batch, index):
        loss = self.net(batch).sum()
        {call}
        return loss
"""
ALWAYS, SOMETIMES = "self.manual_backward(loss)", "if self.sharp:\n            self.manual_backward(loss)"


@pytest.mark.parametrize(
    ("requirement", "call", "fixes"),
    [
        ("", ALWAYS, [Applicability.UNSAFE]),
        ("", SOMETIMES, [Applicability.DISPLAY]),
        ("pytorch-lightning==1.1.0", SOMETIMES, []),
        ("lightning>=2.1", SOMETIMES, [Applicability.DISPLAY]),
    ],
)
def test_a_trainer_of_old_switched_manual_optimization_on(
    requirement: str, call: str, fixes: list[Applicability], tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text(requirement, "utf-8")
    (tmp_path / "system.py").write_text(MANUAL.format(call=call), "utf-8")
    options = CheckOptions(use_cache=False, select=("SF412",))
    found = CheckSession((str(tmp_path),), Settings(options)).run().findings()
    assert [each.fixes[0].applicability for each in found] == fixes
