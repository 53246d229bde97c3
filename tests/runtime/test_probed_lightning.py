"""Scripts with Lightning under the probe: they make a step, end by themselves, and leave no files."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probed, probed, row

pytestmark = pytest.mark.slow

SPELLINGS = ["import lightning as L", "import lightning.pytorch as L", "import pytorch_lightning as L"]

MODULE = """
    import torch
    import torch.nn.functional as F
    import lightning as L
    from torch.utils.data import DataLoader, TensorDataset

    class Net(L.LightningModule):
        def __init__(self, width=8):
            super().__init__()
            self.body = torch.nn.Linear(8, 6)  # body
            self.head = torch.nn.Linear(width, 3)  # head

        def forward(self, x):
            return self.head(F.relu(self.body(x)))

        def training_step(self, batch, index):
            loss = F.cross_entropy(self(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("valid", F.cross_entropy(self(batch[0]), batch[1]))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-3)

    rows = TensorDataset(torch.randn(400, 8), torch.randint(0, 3, (400,)))
    train, valid = DataLoader(rows, 16, shuffle=True, num_workers=2), DataLoader(rows, 32)
    options = dict(accelerator="cpu", enable_progress_bar=False)
"""

FIT = (
    MODULE
    + """
    trainer = L.Trainer(max_epochs=50, **options)
    trainer.fit(Net(width=6), train, valid)
    print("fitted", *sorted(trainer.callback_metrics), flush=True)
"""
)


def right(ran: Probed) -> str:
    """The report of a run in which nothing was found, and that left the folder as it was."""
    assert ran.found == [], ran.run.process.output
    assert ran.run.complete, ran.ending
    assert [each.name for each in ran.folder.iterdir()] == ["train.py"]
    return ran.text


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_fit_makes_one_step_and_one_pass_of_validation(tmp_path: Path, spelling: str) -> None:
    ran = probed(tmp_path, FIT.replace("import lightning as L", spelling))
    text = right(ran)
    assert ran.ending.startswith("reached the last line, but ")
    assert ran.run.observed.steps == 1
    assert ran.run.process.output.splitlines()[-1] == "fitted loss valid"
    assert "[0]  f32[16, 8]" in text
    assert "Net with gradient, called at train.py:17" in text
    assert "Net without gradient, called at train.py:22" in text
    assert "gradients for 4 of 4 parameters (AdamW)" in text
    assert "to a temporary folder: lightning_logs" in text


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_layer_that_does_not_fit_is_named_where_it_was_made(tmp_path: Path, spelling: str) -> None:
    script = FIT.replace("Net(width=6)", "Net()").replace("import lightning as L", spelling)
    ran = probed(tmp_path, script)
    assert ran.places == [("SF501", "train.py", row(script, "head"))]
    assert ran.found[0].message == "`head` (Linear) expects in_features=8 but gets f32[32, 6] (last size 6)"


def test_callbacks_find_what_the_validation_has_logged(tmp_path: Path) -> None:
    callbacks = """
    from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

    best = ModelCheckpoint(monitor="valid", save_top_k=1)
    options |= dict(callbacks=[best, EarlyStopping("valid")], check_val_every_n_epoch=5)
    trainer = L.Trainer(max_epochs=50, min_epochs=10, **options)
    trainer.fit(Net(width=6), train, valid)
    print("best", Net.load_from_checkpoint(best.best_model_path, width=6).head.out_features, flush=True)
    """
    ran = probed(tmp_path, MODULE + callbacks)
    right(ran)
    assert ran.run.process.output.splitlines()[-1] == "best 3"


def test_a_fit_without_end_ends(tmp_path: Path) -> None:
    script = FIT.replace("max_epochs=50", "max_epochs=-1, limit_val_batches=0")
    ran = probed(tmp_path, script)
    right(ran)
    assert ran.run.observed.steps == 1
    assert ran.ending.startswith("reached the last line, but ")


def test_steps_by_hand_and_a_test_at_the_end(tmp_path: Path) -> None:
    script = (
        MODULE.replace("        def training_step", "        def usual_step")
        + """
    class ByHand(Net):
        automatic_optimization = False

        def training_step(self, batch, index):
            loss = self.usual_step(batch, index)
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(loss)
            optimizer.step()

        test_step = Net.validation_step

    trainer = L.Trainer(max_epochs=2, **options)
    net = ByHand(width=6)
    trainer.fit(net, train)
    print("tested", *trainer.test(net, valid)[0], flush=True)
"""
    )
    ran = probed(tmp_path, script)
    text = right(ran)
    assert "tested valid" in ran.run.process.output
    assert "gradients for 4 of 4 parameters (AdamW)" in text


@pytest.mark.parametrize("strategy", ["ddp", "ddp_spawn"])
def test_several_devices_are_the_first_of_them(tmp_path: Path, strategy: str) -> None:
    script = FIT.replace("max_epochs=50", f"max_epochs=2, devices=2, strategy={strategy!r}")
    script = script.replace("\n    trainer =", "\n    if __name__ == '__main__':\n     trainer =")
    script = script.replace("\n    trainer.fit", "\n     trainer.fit").replace("\n    print", "\n     print")
    ran = probed(tmp_path, script)
    text = right(ran)
    assert "1 training step, as the first of 2 processes" in text
    assert ran.run.process.output.count("fitted loss valid") == 1
