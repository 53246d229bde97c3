"""Have the Trainers of transformers and Lightning stop after the training step, and skip hub uploads."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from ..protocol import TrainerCreatedLine, UploadSkippedLine
from . import frames
from .session import Session


def patch_transformers(session: Session, module: ModuleType) -> None:
    """Give every Trainer of transformers.trainer a callback to end training after the wanted steps."""
    original = module.Trainer.__init__

    def on_step_end(self: Any, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        session.raise_if_stopped()
        if state.global_step >= session.wanted_steps:
            session.truncate_loop("training by Trainer ended early", None)
            strategy = getattr(args, "eval_strategy", "no")
            control.should_evaluate = getattr(strategy, "value", strategy) != "no"
            control.should_training_stop = True
        return control

    callback = type("ProbeCallback", (module.TrainerCallback,), {"on_step_end": on_step_end})

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        created_at = frames.site(sys._getframe(1))
        session.sink.write(
            TrainerCreatedLine(kind="trainer_created", type=type(self).__name__, created_at=created_at)
        )
        for each in (*args, *kwargs.values()):
            if getattr(each, "push_to_hub", False) is True:
                each.push_to_hub = False
        original(self, *args, **kwargs)
        self.add_callback(callback())

    module.Trainer.__init__ = __init__


LIGHTNING = ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer")


def patch_lightning(session: Session, module: ModuleType) -> None:
    """Have every Trainer of Lightning validate and end its fit after the wanted steps.

    A loader that ends early would skip the validation, whose results other callbacks need.
    """
    original = module.Trainer.__init__

    def on_train_batch_end(self: Any, trainer: Any, *args: Any) -> None:
        session.raise_if_stopped()
        if session.steps >= session.wanted_steps:
            session.truncate_loop("training by Lightning ended early", None)
            trainer.check_val_every_n_epoch = 1
            trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
            trainer.should_stop = True

    callback = type("ProbeCallback", (module.Callback,), {"on_train_batch_end": on_train_batch_end})

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.callbacks.append(callback())

    module.Trainer.__init__ = __init__


class _SkippedUpload:
    """The result of a skipped upload."""

    def __init__(self, name: str) -> None:
        self.repo_id = name
        self.repo_name = name

    def __str__(self) -> str:
        return f"https://huggingface.co/{self.repo_id}"


def patch_hub(session: Session, module: ModuleType) -> None:
    """Have huggingface_hub.hf_api download, but not upload."""
    for name in ("create_repo", "create_commit", "upload_file", "upload_folder", "upload_large_folder"):
        if hasattr(module.HfApi, name):
            setattr(module.HfApi, name, _skip_upload(session, name))
        # The module's own functions are bound methods of one HfApi, created before.
        if hasattr(module, name):
            setattr(module, name, functools.partial(_skip_upload(session, name), None))


def _skip_upload(session: Session, name: str) -> Any:
    def upload(api: Any, *args: Any, **kwargs: Any) -> _SkippedUpload:
        repository = str(kwargs.get("repo_id") or (args[0] if args else "unknown"))
        session.sink.write(UploadSkippedLine(kind="upload_skipped", function=name, repository=repository))
        return _SkippedUpload(repository)

    return upload
