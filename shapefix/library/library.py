"""Library for the interpreter: imports every module of the package to register the handlers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import shapefix.library
from shapefix.domains.gradients import NO_GRAD
from shapefix.interpreter.calls import Call
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import FLOAT, TEXT, LibraryObject, Value
from shapefix.library.data.datasets.objects import any_dataset, one_or_splits
from shapefix.library.data.datasets.splits import like
from shapefix.library.declared_functions import handler_of
from shapefix.library.nn.module import MODULE
from shapefix.library.optim import scalers
from shapefix.library.other_names import public_name
from shapefix.library.registry import BASES, FUNCTIONS, Handler, derives, lookup_method
from shapefix.library.transformers import models, tokenizers
from shapefix.library.transformers.tokenizers import TOKENIZER, unknown_tokenizer
from shapefix.rulebook import plugins

ON_DEMAND = frozenset(
    f"shapefix.library.torchvision.{name}" for name in ("architectures", "classifiers", "parts")
)
"""Modules imported once a script creates one of torchvision's models."""

for _module in pkgutil.walk_packages(shapefix.library.__path__, f"{shapefix.library.__name__}."):
    # Importing a module registers its handlers.
    if _module.name not in ON_DEMAND:
        importlib.import_module(_module.name)
plugins.load(plugins.LIBRARY)

_ONLY_TENSORS = frozenset(
    {
        "masked_fill",
        "masked_fill_",
        "scatter_",
        "is_cuda",
        "new_zeros",
        "new_ones",
        "new_tensor",
        "index_select",
        "topk",
        "bmm",
        "logsumexp",
        "masked_select",
    }
)
_MOSTLY_TENSORS = _ONLY_TENSORS | frozenset(
    {
        "backward",
        "size",
        "unsqueeze",
        "permute",
        "contiguous",
        "expand",
        "expand_as",
        "view",
        "view_as",
        "detach",
        "chunk",
        "unbind",
        "narrow",
        "softmax",
        "log_softmax",
        "unsqueeze_",
        "gather",
    }
)
_ONLY_DATASETS = frozenset(
    {
        "train_test_split",
        "with_format",
        "set_format",
        "remove_columns",
        "rename_column",
        "rename_columns",
        "select_columns",
        "cast_column",
        "class_encode_column",
        "column_names",
        "to_iterable_dataset",
    }
)
"""Methods and properties of datasets that no other common class has."""
_OF_MAP = frozenset(
    {"batched", "remove_columns", "load_from_cache_file", "input_columns", "writer_batch_size"}
)
"""Keywords of the `map` of datasets that the functions and methods of this name elsewhere lack."""
_DATASETS = frozenset(
    {
        "datasets.Dataset",
        "datasets.DatasetDict",
        "datasets.arrow_dataset.Dataset",
        "datasets.dataset_dict.DatasetDict",
    }
)
_TENSOR_TYPES = frozenset(
    {
        "torch.Tensor",
        "torch.FloatTensor",
        "torch.LongTensor",
        "torch.BoolTensor",
        "torch.types.Tensor",
        "jaxtyping.Tensor",
        "torch._tensor.Tensor",
    }
)
_TRANSPARENT = NO_GRAD.union(
    {
        "torch.enable_grad",
        "torch.jit.script",
        "torch.jit.export",
        "torch.jit.ignore",
        "torch.compile",
        "torch.compiler.disable",
        "torch.autocast",
        "torch.cuda.amp.autocast",
        "torch.amp.autocast",
        "torch.jit.script_method",
        "torch.cuda.amp.custom_fwd",
        "torch.cuda.amp.custom_bwd",
        "torch.set_grad_enabled",
        "torch.amp.custom_fwd",
        "torch.amp.custom_bwd",
        "functools.wraps",
        "functools.lru_cache",
        "functools.cache",
        "abc.abstractmethod",
        "typing.overload",
        "typing.final",
        "typing.no_type_check",
        "typing_extensions.override",
        "typing.override",
        "torch.jit.unused",
        "torch.fx.wrap",
        "jaxtyping.jaxtyped",
        "beartype.beartype",
        "typing_extensions.deprecated",
        "transformers.utils.add_start_docstrings",
        "transformers.utils.add_start_docstrings_to_model_forward",
        "transformers.utils.replace_return_docstrings",
        "transformers.utils.add_end_docstrings",
        "transformers.utils.auto_docstring",
        "accelerate.utils.find_executable_batch_size",
    }
)
_FAILURES = frozenset({"pytest.raises", "contextlib.suppress"})
_CONTEXTS = _FAILURES | NO_GRAD


def kind_of(name: str) -> str | None:
    """Class of the tables for a class of transformers; None for any other."""
    if not name.startswith("transformers."):
        return None
    return models.kind_of(name) or tokenizers.kind_of(name)


def unbound(handler: Handler) -> Handler:
    """Handler of a method called through its class: `nn.Module.half(net)`."""

    def call_unbound(call: Call) -> Value:
        if call.receiver is not None or not call.arguments.positional:
            return handler(call)
        receiver, *positional = call.arguments.positional
        arguments = replace(call.arguments, positional=positional)
        return handler(Call(call.ev, call.name, call.place, arguments, receiver))

    return call_unbound


class TorchLibrary:
    """Answers the interpreter's questions from the registered tables, and from declared signatures.

    signatures are by the qualified names of functions. That of `mylib.Block.forward` makes `mylib.Block` a
    module.
    """

    def __init__(self, signatures: Mapping[str, str] = MappingProxyType({})) -> None:
        self.signatures = signatures
        self._modules = frozenset(
            name.removesuffix(".forward") for name in signatures if name.endswith(".forward")
        )

    def public_name(self, name: str) -> str:
        return public_name(name)

    def function(self, name: str) -> Handler | None:
        found = FUNCTIONS.get(name)
        if found is not None:
            return found
        if name in self.signatures:
            return handler_of(name, self.signatures[name])
        kind, _, last = name.rpartition(".")
        if kind in self._modules:
            return self.method(kind, last)
        if name.startswith("transformers."):
            kind = kind_of(kind) or kind
            found = FUNCTIONS.get(kind_of(name) or f"{kind}.{last}")
            if found is not None:
                return found
        found = lookup_method(kind, last) if kind in BASES else None
        return unbound(found) if found is not None and kind == MODULE else found

    def method(self, kind: str, name: str) -> Handler | None:
        if kind in self._modules:
            qualified = f"{kind}.{'forward' if name == '__call__' else name}"
            if qualified in self.signatures:
                return handler_of(qualified, self.signatures[qualified])
            kind = MODULE
        return lookup_method(kind_of(kind) or kind, name)

    def is_class(self, name: str) -> bool:
        return name in BASES or name in _CONTEXTS or name in self._modules or kind_of(name) is not None

    def inherits(self, kind: str, base: str) -> bool:
        if kind in self._modules:
            return kind == base or derives(MODULE, base)
        return derives(kind_of(kind) or kind, base)

    def only_of_tensors(self, method: str) -> bool:
        return method in _ONLY_TENSORS

    def mostly_of_tensors(self, method: str) -> bool:
        return method in _MOSTLY_TENSORS

    def object_with(self, method: str, keywords: frozenset[str] = frozenset()) -> Value | None:
        if method in _ONLY_DATASETS or (method == "map" and not keywords.isdisjoint(_OF_MAP)):
            return any_dataset() if method == "train_test_split" else one_or_splits()
        return None

    def annotated(self, name: str) -> Value | None:
        if name in _TENSOR_TYPES:
            return TensorValue()
        if name == "torch.nn.Module":
            return LibraryObject(name)
        if kind_of(name) == TOKENIZER:
            return unknown_tokenizer()
        if name == "builtins.str":
            return TEXT
        if name in scalers.NAMES:
            return scalers.any_scaler()
        if name in _DATASETS:
            return any_dataset() if name.endswith(".Dataset") else like(any_dataset())
        return FLOAT if name == "builtins.float" else None

    def is_transparent(self, decorator: str) -> bool:
        return decorator in _TRANSPARENT

    def suppresses(self, value: Value) -> bool:
        return isinstance(value, LibraryObject) and value.kind in _FAILURES
