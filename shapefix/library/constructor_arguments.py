"""Constructors of torch's classes with a wrong keyword, or without a required argument."""

from __future__ import annotations

from functools import cache

import libcst as cst

from shapefix.interpreter.calls import Arguments, call_outside
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.refused_calls import note_refused, report_wrong_count, report_wrong_keyword
from shapefix.interpreter.values import Unknown
from shapefix.library.removed_arguments import removed_arguments
from shapefix.library.signatures import lacks_nothing, parameters
from shapefix.library.torch_signatures import generated

_NAMESPACES = ("torch.nn.", "torch.optim.", "torch.utils.data.")
_OF_ANY_ARGUMENT = frozenset({"torch.nn.Identity", "torch.nn.Sequential"})
_OF_FACTORIES = frozenset({"device", "dtype"})
"""Keywords that torch's signatures have, and the generated ones leave out."""


@cache
def constructor(name: str) -> str | None:
    """Return the signature of the constructor of one of torch's classes; None for all other names."""
    if not name.startswith(_NAMESPACES) or name in _OF_ANY_ARGUMENT:
        return None
    return generated().get(name) if name.rpartition(".")[2][0].isupper() else None


@cache
def _accepted(name: str, known: str) -> frozenset[str]:
    """Return the keywords of a constructor of this signature, in any version of torch."""
    gone = removed_arguments("torch").get(name.rpartition(".")[2], {})
    return frozenset((*(parameter for parameter, _ in parameters(known)), *_OF_FACTORIES, *gone))


@call_outside
def note_wrong_arguments(ev: Evaluator, name: str, arguments: Arguments, node: cst.CSTNode) -> None:
    """Report a constructor without a required argument, or with a keyword unknown to torch."""
    known = constructor(name)
    if known is None or not isinstance(node, cst.Call):
        return
    kind = name.rpartition(".")[2]
    accepted = _accepted(name, known)
    # A call of torchvision creates layers with arguments of their own.
    unknown = arguments.keywords.keys() - accepted
    wrong = next((each for each in node.args if each.keyword and each.keyword.value in unknown), None)
    if wrong is not None:
        report_wrong_keyword(ev, ev.place(node), kind, wrong, tuple(sorted(accepted)))
    elif not lacks_nothing(known, arguments):
        given = len(arguments.positional)
        wanted = [parameter for parameter, default in parameters(known) if default is None]
        missing = [each for each in wanted[given:] if each not in arguments.keywords]
        report_wrong_count(
            ev, ev.place(node), kind, "__init__", (*wanted[:given], *missing), len(accepted), given
        )
    else:
        return
    note_refused(ev, node, Unknown())
