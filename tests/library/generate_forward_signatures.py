"""Writes what forward of every class of the installed transformers accepts, and what its Auto classes make.

    python tests/library/generate_forward_signatures.py [FOLDER]

writes `forward-<major>.<minor>.json` and `models-<major>.<minor>.json` into FOLDER, that of shapefix's own
tables when not given. It takes some minutes.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import passed_keywords

FOLDER = Path(__file__).resolve().parents[2] / "shapefix" / "library" / "transformers" / "data"


def forward_signatures() -> tuple[dict[str, Any], dict[str, Any]]:
    """The content of both files for the installed version, but for what refuses keywords that it takes."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import transformers

    auto = _auto_classes()
    forwards: dict[str, list[str]] = defaultdict(list)
    used: dict[str, list[str]] = defaultdict(list)
    for name, cls in _classes(auto).items():
        forwards[_signature(cls)].append(name)
        extra = _used(cls, auto["AutoModel"])
        if extra:
            used[" ".join(sorted(extra))].append(name)
    forward = {
        "transformers": transformers.__version__,
        "forward": {signature: " ".join(names) for signature, names in sorted(forwards.items())},
    }
    models = {
        "transformers": transformers.__version__,
        "kwargs": " ".join(sorted(_typed_keywords())),
        "used": {extra: " ".join(names) for extra, names in sorted(used.items())},
        "auto": {name: _compact(pairs) for name, pairs in sorted(auto.items())},
    }
    return forward, models


def refusing() -> str:
    """The classes that take any keyword and raise for one that is unknown."""
    return " ".join(
        name
        for name, cls in _classes(_auto_classes()).items()
        if _takes_keywords(cls) and passed_keywords.refuses(cls)
    )


def _classes(auto: dict[str, list[tuple[str, type]]]) -> dict[str, type]:
    """Every model class that has a forward, by name."""
    made = {cls.__name__: cls for pairs in auto.values() for _, cls in pairs}
    return {name: cls for name, cls in sorted({**made, **dict(_exported())}.items()) if _parameters(cls)}


def _exported() -> Iterator[tuple[str, type]]:
    import transformers

    for name in dir(transformers):
        if not name.startswith(("_", "TF", "Flax")):
            found = getattr(transformers, name)
            if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
                yield name, found


def _parameters(cls: type) -> list[inspect.Parameter]:
    """Those of forward without self, through all decorators; none for a class that has no forward."""
    forward = cls.forward  # type: ignore[attr-defined]
    if forward.__name__ == "_forward_unimplemented":
        return []
    return list(inspect.signature(forward).parameters.values())[1:]


def _named(cls: type) -> list[str]:
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [each.name for each in _parameters(cls) if each.kind not in kinds]


def _signature(cls: type) -> str:
    """`input_ids! attention_mask **`: an exclamation mark after what has no default."""
    words = []
    for each in _parameters(cls):
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            words.append("**")
        elif each.kind is not inspect.Parameter.VAR_POSITIONAL:
            words.append(each.name + ("!" if each.default is inspect.Parameter.empty else ""))
    return " ".join(words)


def _used(cls: type, bases: Iterable[tuple[str, type]]) -> set[str]:
    """The keywords that are put to use although forward does not name them.

    Decorators take some of them out before, and models pass their keywords on to what they are built around.
    """
    named = {*_named(cls), *(_typed_keywords() if _takes_keywords(cls) else ())}
    found: set[str] = set()
    forward: Any = cls.forward  # type: ignore[attr-defined]
    while hasattr(forward, "__wrapped__"):
        if "return_dict" in forward.__code__.co_consts:
            found.add("return_dict")
        forward = forward.__wrapped__
    if _takes_keywords(cls):
        configurations = set(_configurations(cls))
        for configuration, base in bases:
            if configuration in configurations:
                found.update(_named(base))
    return found - named


def _takes_keywords(cls: type) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in _parameters(cls))


def _configurations(cls: Any) -> Iterator[str]:
    """The names of the configurations that a model is made with: its own, and those within."""
    if cls.config_class is None:
        return
    yield cls.config_class.__name__
    try:
        made = cls.config_class()
    except Exception:
        # Made of two models that the user chooses: nothing is known before.
        return
    for name in getattr(made, "sub_configs", {}):
        yield type(getattr(made, name, None)).__name__


def _typed_keywords() -> set[str]:
    """What the library's own annotation of `**kwargs` names, and what its decorators look for in them."""
    from transformers.utils.generic import TransformersKwargs

    decorators = {"return_dict", "use_cache", "output_attentions", "output_hidden_states"}
    return {*TransformersKwargs.__annotations__, *decorators}


def _auto_classes() -> dict[str, list[tuple[str, type]]]:
    """For every Auto class the names of configurations, each with a class that is made from it."""
    module = importlib.import_module("transformers.models.auto.modeling_auto")
    configuration = importlib.import_module("transformers.models.auto.configuration_auto")
    found: dict[str, list[tuple[str, type]]] = {}
    for name, auto in vars(module).items():
        if not name.startswith("AutoModel") or not hasattr(auto, "_model_mapping"):
            continue
        pairs = found[name] = []
        for model_type, names in auto._model_mapping._model_mapping.items():
            for each in [names] if isinstance(names, str) else names:
                cls = _class(configuration.model_type_to_module_name(model_type), each)
                if cls is not None:
                    pairs.append((configuration.CONFIG_MAPPING_NAMES[model_type], cls))
    return found


def _class(module: str, name: str) -> type | None:
    """A model class; None for one that a table of the library promises, and the library does not have."""
    import transformers

    found = getattr(transformers, name, None)
    if found is None:
        try:
            found = getattr(importlib.import_module(f"transformers.models.{module}.modeling_{module}"), name)
        except (ImportError, AttributeError):
            return None
    # Where something is not installed that a model needs, another class stands in its place.
    return found if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel) else None


def _compact(pairs: Iterable[tuple[str, type]]) -> dict[str, str]:
    """Stems by what comes after them: {"ForMaskedLM": "Bert"} for BertForMaskedLM, made from BertConfig.

    Under "" stand the others, each configuration with its class.
    """
    stems: dict[str, set[str]] = defaultdict(set)
    for configuration, cls in pairs:
        stem = configuration.removesuffix("Config")
        if cls.__name__.startswith(stem) and cls.__name__ != stem:
            stems[cls.__name__.removeprefix(stem)].add(stem)
        else:
            stems[""].add(f"{configuration}:{cls.__name__}")
    return {suffix: " ".join(sorted(found)) for suffix, found in sorted(stems.items())}


def main() -> None:
    """Write the files."""
    forward, models = forward_signatures()
    models["refuses"] = refusing()
    version = ".".join(forward["transformers"].split(".")[:2])
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for name, content in (("forward", forward), ("models", models)):
        path = folder / f"{name}-{version}.json"
        path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
