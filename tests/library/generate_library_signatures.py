"""Writes the signatures of Python, datasets and transformers under which the library reads arguments.

    python tests/library/generate_library_signatures.py

writes `shapefix/library/library_signatures.json` from the installed packages.
"""

from __future__ import annotations

import importlib
import inspect
import json
import platform
from functools import reduce
from importlib.metadata import version
from pathlib import Path
from typing import Any

from generate_torch_signatures import written

from shapefix.library import library

FILE = Path(library.__file__).with_name("library_signatures.json")
PYTHON = "python"
NAMES = {
    PYTHON: (
        "argparse.ArgumentParser",
        "argparse.ArgumentParser.get_default",
        "argparse.ArgumentParser.parse_args",
        "builtins.enumerate",
        "builtins.pow",
        "builtins.round",
        "builtins.sum",
        "collections.namedtuple",
        "copy.copy",
        "copy.deepcopy",
        "dataclasses.asdict",
        "dataclasses.fields",
        "dataclasses.replace",
    ),
    "datasets": (
        "datasets.Dataset.add_column",
        "datasets.Dataset.cast_column",
        "datasets.Dataset.class_encode_column",
        "datasets.Dataset.filter",
        "datasets.Dataset.from_dict",
        "datasets.Dataset.from_generator",
        "datasets.Dataset.from_list",
        "datasets.Dataset.iter",
        "datasets.Dataset.map",
        "datasets.Dataset.remove_columns",
        "datasets.Dataset.rename_column",
        "datasets.Dataset.rename_columns",
        "datasets.Dataset.select_columns",
        "datasets.Dataset.set_format",
        "datasets.Dataset.set_transform",
        "datasets.Dataset.unique",
        "datasets.IterableDataset.filter",
        "datasets.IterableDataset.from_generator",
        "datasets.IterableDataset.map",
        "datasets.concatenate_datasets",
        "datasets.interleave_datasets",
        "datasets.load_dataset",
    ),
    "transformers": (
        "transformers.DataCollatorForLanguageModeling.__call__",
        "transformers.HfArgumentParser",
        "transformers.HfArgumentParser.parse_args_into_dataclasses",
        "transformers.PreTrainedModel",
        "transformers.PreTrainedModel.from_pretrained",
        "transformers.PreTrainedModel.resize_token_embeddings",
        "transformers.PreTrainedTokenizerBase.add_special_tokens",
        "transformers.PreTrainedTokenizerBase.add_tokens",
        "transformers.PreTrainedTokenizerBase.batch_decode",
        "transformers.PreTrainedTokenizerBase.convert_ids_to_tokens",
        "transformers.PreTrainedTokenizerBase.convert_tokens_to_ids",
        "transformers.PreTrainedTokenizerBase.decode",
        "transformers.PreTrainedTokenizerBase.from_pretrained",
        "transformers.PreTrainedTokenizerBase.tokenize",
        "transformers.PretrainedConfig.from_pretrained",
    ),
}
"""The functions, constructors and methods of each package."""


def installed(package: str) -> str:
    """The installed version of a package: 3.11."""
    full = platform.python_version() if package == PYTHON else version(package)
    return ".".join(full.split(".")[:2])


def signatures(package: str) -> dict[str, str]:
    """The parameters of each function, without self, by qualified name."""
    return {name: _parameters(name) for name in NAMES[package]}


def _parameters(name: str) -> str:
    module, *attributes = name.split(".")
    found: Any = reduce(getattr, attributes, importlib.import_module(module))
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    given = [p for p in inspect.signature(found).parameters.values() if p.kind not in starred]
    return written(given[1:] if given and given[0].name == "self" else given)


def main() -> None:
    """Write the file: version and signatures of each package."""
    content = {
        package: {"version": installed(package), "signatures": signatures(package)} for package in NAMES
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
