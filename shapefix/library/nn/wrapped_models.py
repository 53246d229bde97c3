"""Attributes of models in DataParallel and DistributedDataParallel: the wrappers have none of them."""

from __future__ import annotations

import libcst as cst

from shapefix.domains.wrapped_models import WrappedAttributeRead
from shapefix.interpreter import hooks
from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import dotted_name
from shapefix.interpreter.values import InstanceValue, LibraryObject
from shapefix.library.nn.module import DISTRIBUTED

WRAPPERS = ("DataParallel", "DistributedDataParallel")
OF_WRAPPERS = frozenset({
    "T_destination", "add_module", "apply", "bfloat16", "broadcast_buffers", "buffers",
    "call_super_init", "children", "compile", "cpu", "cuda", "device_ids", "double", "dump_patches",
    "eval", "extra_repr", "float", "forward", "gather", "get_buffer", "get_extra_state",
    "get_parameter", "get_submodule", "half", "ipu", "join", "join_device", "join_hook",
    "join_process_group", "load_state_dict", "module", "modules", "mtia", "named_buffers",
    "named_children", "named_modules", "named_parameters", "no_sync", "output_device", "parallel_apply",
    "parameters", "register_backward_hook", "register_buffer", "register_comm_hook",
    "register_forward_hook", "register_forward_pre_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter",
    "register_state_dict_post_hook", "register_state_dict_pre_hook", "replicate", "requires_grad_",
    "scatter", "set_extra_state", "set_submodule", "share_memory", "state_dict", "to", "to_empty",
    "to_kwargs", "train", "training", "type", "will_sync_module_buffers", "xpu", "zero_grad",
})  # fmt: skip
"""Public names of the wrappers themselves, as executed with torch 2.13."""


@hooks.missing_attribute
def note_wrapped(ev: Evaluator, owner: LibraryObject, name: str, node: cst.CSTNode) -> None:
    """Report the read of an attribute of a model from its wrapper."""
    module, made = owner.fields.get("module"), owner.place
    if owner.kind != DISTRIBUTED or not isinstance(module, InstanceValue) or made is None:
        return
    if name.startswith("_") or name in OF_WRAPPERS or ev.expects("AttributeError"):
        return
    if name not in module.fields and member(module.cls, name) is None:
        return
    wrapper = dotted_name(made.node.func).rpartition(".")[2] if isinstance(made.node, cst.Call) else ""
    if wrapper in WRAPPERS:
        model, undecided = module.cls.name, ev.frame.undecided
        ev.emit(WrappedAttributeRead(ev.place(node), ev.calls, name, wrapper, made, model, undecided))
