"""The arguments of Lightning's hooks, as Lightning gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checking import Check

from shapefix.domains.lightning_steps import ARGUMENTS

MODULE = """
import lightning.pytorch as pl


class Model(pl.LightningModule):
    def {name}({parameters}):
        print("called")
"""


@pytest.mark.slow
def test_hooks_get_these_arguments(tmp_path: Path) -> None:
    import lightning.pytorch as pl
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    given: dict[str, set[int]] = {}

    class Model(pl.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(4, 1)

        def training_step(self, batch: list[torch.Tensor], batch_idx: int) -> torch.Tensor:
            return self.net(batch[0]).mean()

        validation_step = test_step = predict_step = training_step

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    def recorder(name: str) -> Any:
        def hook(self: Any, *arguments: object) -> None:
            given.setdefault(name, set()).add(len(arguments))

        return hook

    for name in ARGUMENTS:
        setattr(Model, name, recorder(name))
    loader = DataLoader(TensorDataset(torch.randn(8, 4)), batch_size=4)
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", logger=False, default_root_dir=tmp_path, **quiet)
    model = Model()
    trainer.fit(model, loader, loader)
    trainer.test(model, loader, verbose=False)
    trainer.predict(model, loader)
    assert given == {name: {len(arguments)} for name, arguments in ARGUMENTS.items()}


@pytest.mark.parametrize(
    ("name", "parameters", "is_reported"),
    [
        ("on_train_epoch_end", "self", False),
        ("on_train_epoch_end", "self, outputs", True),
        ("on_train_epoch_end", "self, outputs=None", False),
        ("on_train_epoch_end", "self, *outputs", False),
        ("on_train_epoch_end", "self, *, unused", True),
        ("on_train_epoch_end", "*everything", False),
        ("on_train_epoch_end", "", True),
        ("on_train_batch_end", "self", True),
        ("on_train_batch_end", "self, outputs=None", True),
        ("on_train_batch_end", "self, *rest", False),
        ("on_train_batch_end", "self, outputs, batch, batch_idx, dataloader_idx", True),
        ("on_train_batch_end", "self, outputs, batch, batch_idx, dataloader_idx=0", False),
        ("on_validation_batch_end", "self, outputs, batch, batch_idx, dataloader_idx", False),
    ],
)
def test_a_hook_with_other_parameters_is_reported(
    name: str, parameters: str, is_reported: bool, check: Check
) -> None:
    found = [each for each in check(MODULE.format(name=name, parameters=parameters)) if each.code == "SF412"]
    assert len(found) == is_reported
    called: dict[str, Any] = {}
    exec(f"def {name}({parameters}):\n    pass", called)
    if is_reported:
        with pytest.raises(TypeError) as raised:
            called[name](*[None] * (len(ARGUMENTS[name]) + 1))
        assert found[0].error is not None
        assert found[0].error.message in str(raised.value)
