"""Writes the classifiers of timm's image models, as the installed timm makes them.

    pip install timm torchvision
    python tests/library/generate_timm_heads.py resnet50 efficientnet_b0 …

writes `shapefix/library/timm.json`: for each of these models, or without names for all that it has already,
the size of the input of its linear classifier, its name within the model, and its number of scores. Former
names of these models have the same classifier, with an unknown number of scores. The models are made without
memory for their weights.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shapefix.library import timm as described

FILE = Path(described.__file__).with_suffix(".json")

Head = tuple[int, str, int | None]


def head_of(model: Any) -> Head | None:
    """Input, name and output of a model's classifier; None for other ones than a linear layer."""
    import torch

    name = model.default_cfg.get("classifier")
    if not isinstance(name, str) or name.count(".") > 1:
        return None
    layer = model.get_submodule(name)
    return (layer.in_features, name, layer.out_features) if isinstance(layer, torch.nn.Linear) else None


def heads(names: Iterable[str]) -> dict[str, Head]:
    """Classifiers of timm's models of these names."""
    import timm
    import torch

    found: dict[str, Head] = {}
    for name in names:
        with torch.device("meta"):
            try:
                head = head_of(timm.create_model(name, pretrained=False))
            except (NotImplementedError, RuntimeError):
                # Not every model can be made without memory.
                continue
        if head is not None:
            found[name] = head
    return found


def main() -> None:
    from timm.models._registry import _deprecated_models as former

    found = heads(sys.argv[1:] or [name for name, head in described.heads().items() if head.classes])
    for name, present in former.items():
        head = found.get(str(present).partition(".")[0])
        # A distilled model returns two scores in training.
        if head is not None and "distil" not in name:
            found.setdefault(name, (*head[:2], None))
    lines = [f"{json.dumps(name)}: {json.dumps(head)}" for name, head in sorted(found.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
