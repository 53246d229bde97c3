"""Writes the sizes that the well-known configurations of the installed transformers have by default.

    python tests/library/generate_configurations.py [FOLDER]

writes `configurations-<major>.<minor>.json` into FOLDER, that of shapefix's own tables when not given: for
each class its numbers, and for each number that follows from arguments of other names those names.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "shapefix" / "library" / "transformers" / "data"
FAMILIES = (
    "Albert",
    "Bart",
    "BigBird",
    "Blenderbot",
    "Bloom",
    "Camembert",
    "Cohere",
    "ConvNext",
    "ConvNextV2",
    "DebertaV2",
    "Deberta",
    "Deit",
    "DistilBert",
    "Dinov2",
    "Electra",
    "Ernie",
    "Falcon",
    "GPT2",
    "GPTBigCode",
    "GPTNeo",
    "GPTNeoX",
    "GPTJ",
    "Gemma",
    "Gemma2",
    "Hubert",
    "LED",
    "Llama",
    "Longformer",
    "M2M100",
    "MBart",
    "MPNet",
    "MT5",
    "Mamba",
    "Marian",
    "Mistral",
    "Mixtral",
    "MobileBert",
    "OPT",
    "Pegasus",
    "Phi",
    "Phi3",
    "Qwen2",
    "Qwen2Moe",
    "Qwen3",
    "ResNet",
    "Roberta",
    "RoFormer",
    "Segformer",
    "Swin",
    "Swinv2",
    "T5",
    "ViT",
    "ViTMAE",
    "Wav2Vec2",
    "Whisper",
    "XGLM",
    "XLMRoberta",
    "XLNet",
    "BeiT",
    "Bert",
)
SIZES = (
    "vocab_size",
    "hidden_size",
    "n_embd",
    "d_model",
    "dim",
    "embedding_size",
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "num_key_value_heads",
    "head_dim",
    "num_hidden_layers",
    "n_layer",
    "n_layers",
    "num_layers",
    "intermediate_size",
    "ffn_dim",
    "d_ff",
    "d_kv",
    "n_inner",
    "encoder_layers",
    "decoder_layers",
    "encoder_ffn_dim",
    "decoder_ffn_dim",
    "encoder_attention_heads",
    "decoder_attention_heads",
    "max_position_embeddings",
    "n_positions",
    "type_vocab_size",
    "num_labels",
    "image_size",
    "patch_size",
    "num_channels",
    "num_experts",
    "num_mel_bins",
    "max_source_positions",
    "max_target_positions",
    "word_embed_proj_dim",
)


def configurations() -> dict[str, Any]:
    """The content of the file for the installed version."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import transformers

    classes: dict[str, Any] = {}
    for family in FAMILIES:
        name = next(
            (n for n in (f"{family}Config", f"{family.upper()}Config") if hasattr(transformers, n)), None
        )
        if name is not None:
            classes[name] = _described(getattr(transformers, name))
    return {"transformers": transformers.__version__, "classes": classes}


def _described(cls: Any) -> dict[str, Any]:
    numbers = _numbers(cls())
    follows: dict[str, list[str]] = {}
    for parameter in [*inspect.signature(cls.__init__).parameters, *SIZES]:
        for changed in _changed(cls, parameter, numbers):
            if changed != parameter and parameter not in follows.setdefault(changed, []):
                follows[changed].append(parameter)
    sizes = " ".join(f"{name}={number}" for name, number in sorted(numbers.items()))
    return {
        "sizes": sizes,
        "follows": {name: " ".join(sorted(p)) for name, p in sorted(follows.items()) if p},
    }


def _changed(cls: Any, parameter: str, numbers: dict[str, int]) -> list[str]:
    """The numbers that are others where an argument of this name is twice as large."""
    if parameter not in numbers:
        return []
    try:
        other = _numbers(cls(**{parameter: 2 * numbers[parameter]}))
    except Exception:
        # A class may refuse what does not fit together.
        return [name for name in numbers if name != parameter]
    return [name for name, number in numbers.items() if other.get(name) != number]


def _numbers(config: Any) -> dict[str, int]:
    found = {name: getattr(config, name, None) for name in SIZES}
    return {name: number for name, number in found.items() if type(number) is int}


def write(folder: Path) -> None:
    """Write the file of the installed version."""
    content = configurations()
    version = ".".join(content["transformers"].split(".")[:2])
    text = json.dumps(content, indent=1, sort_keys=True) + "\n"
    (folder / f"configurations-{version}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
