"""Replacements of removed names of libraries."""

from __future__ import annotations

from collections.abc import Mapping

RENAMED_IN_NUMPY: Mapping[str, str] = {
    **{name: name for name in ("complex", "float", "int", "object", "str")},
    "Infinity": "inf",
    "NINF": "-inf",
    "NaN": "nan",
    "PINF": "inf",
    "alltrue": "all",
    "asfarray": "asarray",
    "cfloat": "complex128",
    "complex_": "complex128",
    "float_": "float64",
    "infty": "inf",
    "mat": "asmatrix",
    "round_": "round",
    "singlecomplex": "complex64",
    "sometrue": "any",
    "string_": "bytes_",
    "unicode_": "str_",
}
"""New names of numpy's removed ones; those of Python itself are the first."""
OF_PYTHON = frozenset({"complex", "float", "int", "object", "str"})
"""Removed names of numpy that were names of Python."""
NOT_THE_SAME = frozenset({"NINF", "asfarray"})
"""Names without a new one of the same meaning."""

INSTEAD: Mapping[str, str] = {
    "datasets.load_metric": "`evaluate.load` of the library evaluate",
    "pytorch_lightning.callbacks.GPUStatsMonitor": "`DeviceStatsMonitor`",
    "pytorch_lightning.callbacks.LearningRateLogger": "`LearningRateMonitor`",
    "pytorch_lightning.metrics": "the library torchmetrics",
    "pytorch_lightning.utilities.distributed": "`pytorch_lightning.utilities.rank_zero`",
    "torch._six": "`str`, `math.inf` and `collections.abc`",
    "torch.set_deterministic": "`torch.use_deterministic_algorithms`",
    "transformers.AdamW": "`torch.optim.AdamW`, with `weight_decay=0.0` for the old default",
    "trl.DataCollatorForCompletionOnlyLM": "`completion_only_loss` or `assistant_only_loss` of `SFTConfig`",
}
"""Where the meaning of a removed name is now."""
