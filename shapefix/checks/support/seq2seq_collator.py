"""Repairs with `DataCollatorForSeq2Seq` as the new collator; it keeps and pads labels."""

from __future__ import annotations

import libcst as cst

from shapefix.checks.support import rewrites
from shapefix.diagnostics import Edit
from shapefix.interpreter.modules import Module

_KEPT = ("tokenizer", "padding", "max_length", "pad_to_multiple_of", "return_tensors")


def replacing(module: Module, call: cst.Call) -> list[Edit]:
    """Return the edits to call `DataCollatorForSeq2Seq` instead; empty for unsuitable arguments."""
    if not call.args or any(argument.star for argument in call.args):
        return []
    edits = [rewrites.renamed(module, call.func, "DataCollatorForSeq2Seq")]
    added = "label_pad_token_id=-100"
    has_pad_id = False
    for index, argument in enumerate(call.args):
        name = (
            argument.keyword.value
            if argument.keyword is not None
            else ("tokenizer", "mlm")[index : index + 1]
        )
        name = name if isinstance(name, str) else name[0] if name else ""
        if argument.keyword is None and index == 1 and "LanguageModeling" not in module.code(call.func):
            return []
        if name in _KEPT:
            continue
        if index == 0 or (argument.keyword is None and index > 1):
            return []
        if has_pad_id:
            edits.append(rewrites.dropped(module, call, argument))
        else:
            edits.append(rewrites.replaced(module, argument, added))
            has_pad_id = True
    if not has_pad_id:
        edits.append(rewrites.behind(module, call.args[0], added))
    return edits
