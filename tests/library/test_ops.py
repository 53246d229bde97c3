"""The operations that evidence names: each is produced by the library, and each alias is one of torch's."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from differential import IMPORTS, interpret

import shapefix
from shapefix.domains.operations import InPlaceWrite
from shapefix.library.ops.elementwise import UNARY
from shapefix.tensors.ops import ALIASES, BINARY_NAMES, OPERATORS, Op

_ROOT = Path(shapefix.__file__).parent
_ELEMENTWISE = {Op.named(name) for name in (*BINARY_NAMES, *UNARY, *OPERATORS)}


def _mentioned(node: ast.AST) -> Iterator[str]:
    """The members of Op under a node."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "Op":
            yield part.attr


def _produced() -> set[Op]:
    """The operations that the library passes on, or keeps in a variable, without comparing them."""
    found = set(_ELEMENTWISE)
    for path in (_ROOT / "library").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        compared = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, (ast.Compare, ast.Set))
            for part in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and id(node) not in compared:
                found |= {Op[name] for name in _mentioned(node) if name in Op.__members__}
    # nn.RNN, nn.LSTM and nn.GRU are found by the layer's name, softmaxes and extremes by the function's.
    return found | {Op.RNN, Op.LSTM, Op.GRU, Op.SOFTMAX, Op.MAX, Op.MIN}


def test_every_operation_is_produced_by_the_library() -> None:
    assert set(Op) - _produced() == set()


def test_rules_compare_operations_and_no_text() -> None:
    for path in (_ROOT / "checks").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Compare):
                sides = [node.left, *node.comparators]
                is_op = any(isinstance(side, ast.Attribute) and side.attr == "op" for side in sides)
                has_text = any(isinstance(side, ast.Constant) and side.value is not None for side in sides)
                assert not (is_op and has_text), f"{path.name}: {ast.unparse(node)}"


@pytest.mark.parametrize("op", sorted(_ELEMENTWISE, key=str), ids=str)
def test_an_elementwise_operation_has_torchs_name(op: Op) -> None:
    assert callable(getattr(torch, op.value))


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_computes_the_same(alias: str) -> None:
    op = getattr(torch, ALIASES[alias])
    function = (
        getattr(torch, alias, None)
        or getattr(torch.special, alias, None)
        or getattr(operator, alias, None)
        or getattr(operator, f"{alias}_")
    )
    bits = ALIASES[alias].startswith("bitwise")
    one = torch.tensor([5, 2, 7]) if bits else torch.tensor([0.5, -0.25, 0.75])
    two = torch.tensor([1, 2, 3]) if bits else torch.tensor([0.5, 0.75, -0.5])
    calls = [((one,), {}), ((one, two), {}), ((one,), {"min": -0.1, "max": 0.1})]
    for given, named in calls:
        try:
            wanted = op(*given, **named)
        except (RuntimeError, TypeError):
            continue
        assert torch.equal(function(*given, **named).nan_to_num(9), wanted.nan_to_num(9))
        return
    pytest.fail(f"no call of torch.{ALIASES[alias]} worked")


_CALLS = {
    "x.transpose(1, 2)": Op.TRANSPOSE,
    "x[:, 1:]": Op.SLICE,
    "x[0]": Op.INDEX,
    "x.view(-1)": Op.VIEW,
    "x.softmax(-1)": Op.SOFTMAX,
    "F.log_softmax(x, -1)": Op.LOG_SOFTMAX,
    "nn.Softmax(-1)(x)": Op.SOFTMAX,
    "nn.LogSoftmax(-1)(x)": Op.LOG_SOFTMAX,
    "nn.Softmin(-1)(x)": Op.SOFTMIN,
    "nn.BatchNorm1d(3)(x)": Op.BATCH_NORM,
    "nn.LayerNorm(4)(x)": Op.LAYER_NORM,
    "F.layer_norm(x, (4,))": Op.LAYER_NORM,
    "nn.GroupNorm(3, 3)(x)": Op.GROUP_NORM,
    "nn.InstanceNorm1d(3)(x)": Op.INSTANCE_NORM,
    "nn.RMSNorm(4)(x)": Op.RMS_NORM,
    "F.normalize(x)": Op.NORMALIZE,
    "x @ x.mT": Op.MATMUL,
    "nn.Linear(4, 5)(x)": Op.LINEAR,
    "x.clip(max=1)": Op.CLAMP,
    "x / 2": Op.DIV,
    "x.subtract(1)": Op.SUB,
    "x != 1": Op.NE,
    "x.clone()": Op.CLONE,
    "x.long()": Op.TO_DTYPE,
    "x.sum()": Op.REDUCTION,
    "torch.zeros_like(x)": Op.CREATION,
    "nn.LSTM(4, 5)(x)[0]": Op.LSTM,
    "nn.GRU(4, 5)(x)[0]": Op.GRU,
    "nn.RNN(4, 5)(x)[0]": Op.RNN,
}


@pytest.mark.parametrize("code", _CALLS)
def test_a_tensor_knows_what_made_it(code: str) -> None:
    events = interpret(f"{IMPORTS}\nx = torch.randn(2, 3, 4)\n({code}).zero_()")
    [tensor] = [event.tensor for event in events if isinstance(event, InPlaceWrite)]
    assert tensor.origin is not None
    assert tensor.origin.op is _CALLS[code]
