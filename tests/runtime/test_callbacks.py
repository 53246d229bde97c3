"""`ShapefixCallback` in real trainings of Lightning and of transformers' Trainer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

pytestmark = pytest.mark.slow

Training = Callable[[Any, int, Any, Path], "dict[str, Any]"]
"""Trains with a loss, a width of the input, a callback or None, and a folder; returns weights and steps."""


def good(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(out, y[:, None])


def broadcast(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return F.mse_loss(out, y)


def raising(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    raise ValueError("a loss of our own")


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))


def rows() -> list[dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    return [{"x": torch.rand(4), "y": torch.rand(())} for _ in range(8)]


def in_lightning(loss: Any, width: int, callback: Any, folder: Path) -> dict[str, Any]:
    import lightning as L

    class Net(L.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = model()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            value: torch.Tensor = loss(self.net(batch["x"][:, :width]), batch["y"])
            self.log("loss", value)
            return value

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    net = Net()
    torch.manual_seed(2)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        callbacks=[] if callback is None else [callback],
        accumulate_grad_batches=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
    )
    trainer.fit(net, torch.utils.data.DataLoader(rows(), batch_size=2))
    return dict(net.net.state_dict(), steps=trainer.global_step)


def in_transformers(loss: Any, width: int, callback: Any, folder: Path, **options: Any) -> dict[str, Any]:
    from transformers import Trainer, TrainingArguments

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = model()

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"loss": loss(self.net(x[:, :width]), y)}

    net = Net()
    arguments = TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=2,
        optim="sgd",
        learning_rate=0.1,
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        remove_unused_columns=False,
    )
    trainer = Trainer(net, arguments, train_dataset=rows(), callbacks=callback and [callback], **options)
    trainer.train()
    return dict(net.net.state_dict(), steps=trainer.state.global_step)


def callback_of(name: str, **options: Any) -> Any:
    if name == "lightning":
        from shapefix.lightning import ShapefixCallback

        return ShapefixCallback(**options)
    from shapefix.transformers import ShapefixCallback as OfTransformers

    return OfTransformers(**options)


TRAININGS: dict[str, Training] = {"lightning": in_lightning, "transformers": in_transformers}


@pytest.fixture(params=TRAININGS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def functions() -> list[Any]:
    return [nn.Module.__call__, torch.autograd.backward, F.mse_loss, F.cross_entropy]


def test_a_training_is_the_same_with_it(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "shapefix")
    before = functions()
    without = TRAININGS[name](good, 4, None, tmp_path)
    callback = callback_of(name, html=tmp_path / "report.html")
    watched = TRAININGS[name](good, 4, callback, tmp_path)
    assert functions() == before
    assert without.keys() == watched.keys()
    assert all(torch.equal(torch.as_tensor(without[key]), torch.as_tensor(watched[key])) for key in without)
    report = callback.report
    assert report.findings == ()
    assert report.error is None
    assert 0 < report.loss < 10
    text = str(report)
    assert "gradients for 4 of 4 parameters" in " ".join(text.split())
    assert "f32[2, 4]" in text
    assert text.count("Linear") == 2
    assert [each.levelname for each in caplog.records if each.name == "shapefix"] == ["INFO"]
    assert "f32[2, 4]" in (tmp_path / "report.html").read_text()


def test_findings_are_logged_and_can_stop_the_training(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = callback_of(name)
    full = TRAININGS[name](broadcast, 4, callback, tmp_path)
    assert [each.code for each in callback.report.findings] == ["SF509"]
    (record,) = [each for each in caplog.records if each.name == "shapefix"]
    assert record.levelname == "WARNING"
    assert "SF509" in record.getMessage()
    stopped = TRAININGS[name](broadcast, 4, callback_of(name, stop=True), tmp_path)
    assert stopped["steps"] < full["steps"]
    for ignored in ("SF509", "silent-broadcast"):
        callback = callback_of(name, stop=True, ignore=[ignored])
        assert TRAININGS[name](broadcast, 4, callback, tmp_path)["steps"] == full["steps"]
        assert callback.report.findings == ()


@pytest.mark.parametrize(("loss", "width"), [(good, 3), (raising, 4)])
def test_an_exception_is_reported_and_nothing_stays_replaced(
    name: str, tmp_path: Path, loss: Any, width: int
) -> None:
    before = functions()
    callback = callback_of(name)
    with pytest.raises((RuntimeError, ValueError)) as caught:
        TRAININGS[name](loss, width, callback, tmp_path)
    assert functions() == before
    assert callback.report.error is caught.value
    if loss is good:
        assert [each.code for each in callback.report.findings] == ["SF501"]


def test_a_loss_outside_of_the_model_may_raise(tmp_path: Path) -> None:
    from transformers import Trainer

    before = [*functions(), Trainer.training_step]
    callback = callback_of("transformers")

    def own_loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> torch.Tensor:
        raise ValueError("a loss of our own")

    with pytest.raises(ValueError, match="a loss of our own") as caught:
        in_transformers(good, 4, callback, tmp_path, compute_loss_func=own_loss)
    assert [*functions(), Trainer.training_step] == before
    assert callback.report.error is caught.value


def test_a_compiled_model_is_left_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from shapefix.runtime.first_batch import FirstBatchProbe

    caplog.set_level(logging.INFO, "shapefix")
    before = functions()
    probe = FirstBatchProbe(None, ())
    probe.start(torch.compile(model()))
    assert functions() == before
    assert "compiled" in caplog.text
    probe.end()
    assert probe.report is None


def test_weights_and_biases_gets_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    run = wandb.init(mode="offline", dir=tmp_path)
    logged: list[dict[str, Any]] = []
    monkeypatch.setattr(run, "log", lambda values, commit: logged.append(values))
    in_lightning(broadcast, 4, callback_of("lightning"), tmp_path)
    wandb.finish()
    (values,) = logged
    assert values["shapefix/findings"].data[0][0] == "SF509"
