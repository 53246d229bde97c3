"""Renamed and replaced arguments of libraries, with the code to write instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import libcst as cst

from shapefix.interpreter.modules import dotted_name

_TRAINING = {
    "evaluation_strategy": "eval_strategy",
    "no_cuda": "use_cpu",
    "per_gpu_train_batch_size": "per_device_train_batch_size",
    "per_gpu_eval_batch_size": "per_device_eval_batch_size",
}
_TOKENIZER = {"tokenizer": "processing_class"}
_REPLACED_IN_TRAINING = {
    "warmup_ratio": "`warmup_steps`: a number below 1 is a ratio",
    "logging_dir": "the environment variable `TENSORBOARD_LOGGING_DIR`",
}

RENAMED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("transformers", "TrainingArguments"): _TRAINING,
    ("transformers", "Seq2SeqTrainingArguments"): _TRAINING,
    ("transformers", "DPOConfig"): _TRAINING,
    ("transformers", "GRPOConfig"): _TRAINING,
    ("transformers", "KTOConfig"): _TRAINING,
    ("transformers", "RewardConfig"): _TRAINING,
    ("transformers", "SFTConfig"): _TRAINING,
    ("transformers", "Trainer"): _TOKENIZER,
    ("transformers", "Seq2SeqTrainer"): _TOKENIZER,
    ("trl", "DPOTrainer"): _TOKENIZER,
    ("trl", "KTOTrainer"): _TOKENIZER,
    ("trl", "RewardTrainer"): _TOKENIZER,
    ("trl", "SFTTrainer"): _TOKENIZER,
    ("trl", "SFTConfig"): {"max_seq_length": "max_length", "use_liger": "use_liger_kernel"},
    ("lightning", "Trainer"): {"replace_sampler_ddp": "use_distributed_sampler"},
    ("lightning", "Trainer.fit"): {"train_dataloader": "train_dataloaders"},
    ("lightning", "Trainer.test"): {"test_dataloaders": "dataloaders"},
    ("lightning", "Trainer.validate"): {"val_dataloaders": "dataloaders"},
    ("lightning", "ModelCheckpoint"): {"period": "every_n_epochs", "every_n_val_epochs": "every_n_epochs"},
}
"""New names of arguments with the same meaning, by library and function."""

_SCHEDULERS = (
    *(
        "ConstantLR",
        "CosineAnnealingLR",
        "CosineAnnealingWarmRestarts",
        "CyclicLR",
        "ExponentialLR",
        "LRScheduler",
    ),
    *("LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR"),
    *("ReduceLROnPlateau", "SequentialLR", "StepLR", "_LRScheduler"),
)
_PRINTS = {"verbose": "`scheduler.get_last_lr()`, to print the learning rate"}

REPLACED: Mapping[tuple[str, str], Mapping[str, str]] = {
    **{("torch", name): _PRINTS for name in _SCHEDULERS},
    ("transformers", "TrainingArguments"): _REPLACED_IN_TRAINING,
    ("transformers", "Seq2SeqTrainingArguments"): _REPLACED_IN_TRAINING,
    ("lightning", "Trainer"): {
        "gpus": "`accelerator` and `devices`",
        "tpu_cores": "`accelerator` and `devices`",
        "num_processes": "`devices`",
        "distributed_backend": "`strategy`",
        "checkpoint_callback": "`enable_checkpointing`, or `callbacks` for a ModelCheckpoint",
        "progress_bar_refresh_rate": "`enable_progress_bar` and the callback `TQDMProgressBar`",
        "weights_summary": "`enable_model_summary`",
        "terminate_on_nan": "`detect_anomaly`",
        "reload_dataloaders_every_epoch": "`reload_dataloaders_every_n_epochs`",
        "resume_from_checkpoint": "`ckpt_path` of `fit`",
        "auto_lr_find": "`Tuner(trainer).lr_find(model)`",
        "auto_scale_batch_size": "`Tuner(trainer).scale_batch_size(model)`",
        "stochastic_weight_avg": "the callback `StochasticWeightAveraging`",
        "weights_save_path": "`default_root_dir`",
    },
    ("trl", "SFTTrainer"): {
        "max_seq_length": "`max_length` of `SFTConfig`",
        **{
            name: f"`{name}` of `SFTConfig`"
            for name in ("dataset_kwargs", "dataset_num_proc", "dataset_text_field", "packing")
        },
    },
    ("trl", "DPOTrainer"): {
        name: f"`{name}` of `DPOConfig`" for name in ("beta", "label_smoothing", "loss_type", "max_length")
    },
}
"""Where the setting of a removed argument is made now, if it is not only another name."""

OBSOLETE: Mapping[str, frozenset[str]] = {
    "save_safetensors": frozenset({"True"}),
    "use_mps_device": frozenset({"True"}),
    "flush_logs_every_n_steps": frozenset({"None"}),
    "log_gpu_memory": frozenset({"None"}),
    "move_metrics_to_cpu": frozenset({"False"}),
    "weights_summary": frozenset({'"top"', "'top'"}),
    "terminate_on_nan": frozenset({"None", "False"}),
    "tpu_cores": frozenset({"None"}),
    "resume_from_checkpoint": frozenset({"None"}),
    "auto_lr_find": frozenset({"False"}),
    "auto_scale_batch_size": frozenset({"None", "False"}),
    "auto_select_gpus": frozenset({"False"}),
    "stochastic_weight_avg": frozenset({"False"}),
    "amp_backend": frozenset({'"native"', "'native'"}),
    "distributed_backend": frozenset({"None"}),
    "verbose": frozenset({"True", "False"}),
}
"""Values of removed arguments with the effect of newer versions without the argument."""


def replacement(key: tuple[str, str], keyword: str, value: cst.BaseExpression, code: str) -> str | None:
    """Return the arguments with the effect of a removed one of this value and code; None if not known."""
    convert = _CONVERTED.get((*key, keyword))
    return convert(value, code) if convert is not None else None


def _gpus(value: cst.BaseExpression, code: str) -> str | None:
    if isinstance(value, cst.Integer) or code == "-1":
        return f'accelerator="gpu", devices={code}' if code != "0" else 'accelerator="cpu"'
    if code == "None":
        return 'accelerator="cpu"'
    if isinstance(value, cst.List) and value.elements:
        return f'accelerator="gpu", devices={code}'
    if not isinstance(value, cst.IfExp) or not isinstance(value.test, cst.Call):
        return None
    is_available = dotted_name(value.test.func).endswith("cuda.is_available")
    other = value.orelse
    is_off = isinstance(other, cst.Integer) and other.value == "0"
    is_off = is_off or (isinstance(other, cst.Name) and other.value == "None")
    if is_available and is_off and isinstance(value.body, cst.Integer) and value.body.value == "1":
        return 'accelerator="auto", devices=1'
    return None


def _flag(name: str, values: Mapping[str, str]) -> Callable[[cst.BaseExpression, str], str | None]:
    """Return a conversion of some literals to values of another argument."""

    def convert(value: cst.BaseExpression, code: str) -> str | None:
        return f"{name}={values[code]}" if code in values else None

    return convert


def _ratio(value: cst.BaseExpression, code: str) -> str | None:
    """Return the warmup for a share of all steps; a whole number would be one of steps."""
    return f"warmup_steps={code}" if isinstance(value, cst.Float) and 0 <= float(code) < 1 else None


READ_OTHERWISE = frozenset({"warmup_ratio"})
"""Arguments with a replacement of another meaning in older versions: `warmup_steps=0.1` is 0.1 steps."""
_SAME = {"True": "True", "False": "False"}
_CONVERTED: Mapping[tuple[str, str, str], Callable[[cst.BaseExpression, str], str | None]] = {
    ("transformers", "TrainingArguments", "warmup_ratio"): _ratio,
    ("transformers", "Seq2SeqTrainingArguments", "warmup_ratio"): _ratio,
    ("lightning", "Trainer", "gpus"): _gpus,
    ("lightning", "Trainer", "progress_bar_refresh_rate"): _flag("enable_progress_bar", {"0": "False"}),
    ("lightning", "Trainer", "checkpoint_callback"): _flag("enable_checkpointing", _SAME),
    ("lightning", "Trainer", "weights_summary"): _flag("enable_model_summary", {"None": "False"}),
    ("lightning", "Trainer", "terminate_on_nan"): _flag("detect_anomaly", {"True": "True"}),
    ("lightning", "Trainer", "distributed_backend"): _flag(
        "strategy", {text: text for text in ('"ddp"', "'ddp'", '"ddp_spawn"', "'ddp_spawn'")}
    ),
    ("lightning", "Trainer", "reload_dataloaders_every_epoch"): _flag(
        "reload_dataloaders_every_n_epochs", {"True": "1", "False": "0"}
    ),
}
