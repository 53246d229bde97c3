"""Truth table of `.view`: views of slices, permutations and copies that torch accepts."""

from __future__ import annotations

import pytest
from fact_tensors import (
    ALL,
    B,
    D,
    H,
    Layouts,
    Row,
    T,
    Tensors,
    V,
    applies,
    at,
)

from shapefix.tensors import dims, memory_format, views
from shapefix.tensors.layout import contiguous
from shapefix.tensors.verdicts import Illegal, Legal, Undecided

ROWS = [
    Row(
        "B==1: x[:1][:, :-1, :].view(-1,V)",
        lambda t: t.x[:1][:, :-1, :].view(-1, V),
        lambda s: s.view(at(s.x, slice(None, 1), slice(None, -1)), -1, s.V),
    ),
    Row(
        "x[:, :-1, :].contiguous().view(-1,V)",
        lambda t: t.x[:, :-1, :].contiguous().view(-1, V),
        lambda s: s.view(memory_format.as_contiguous(at(s.x, ALL, slice(None, -1))), -1, s.V),
    ),
    Row(
        "x[:n].view(-1,V)", lambda t: t.x[:1].view(-1, V), lambda s: s.view(at(s.x, slice(None, 1)), -1, s.V)
    ),
    Row(
        "x[1:, ...].view(-1,V)",
        lambda t: t.x[1:, ...].view(-1, V),
        lambda s: s.view(at(s.x, slice(1, None), ...), -1, s.V),
    ),
    Row(
        "x[::2].view(-1,V) (step, dim0, B=2->1)",
        lambda t: t.x[::2].view(-1, V),
        lambda s: s.view(at(s.x, slice(None, None, 2)), -1, s.V),
        True,
    ),
    Row(
        "x[:, 1:].view(B,-1)",
        lambda t: t.x[:, 1:].view(B, -1),
        lambda s: s.view(at(s.x, ALL, slice(1, None)), s.B, -1),
    ),
    Row(
        "x[:, 1:].view(x.size(0),T-1,H,D) split last",
        lambda t: t.x[:, 1:].view(B, T - 1, H, D),
        lambda s: s.view(at(s.x, ALL, slice(1, None)), s.B, s.T - 1, s.H, s.D),
        True,
    ),
    Row(
        "x[:, -1, :].view(-1,V)",
        lambda t: t.x[:, -1, :].view(-1, V),
        lambda s: s.view(at(s.x, ALL, -1, ALL), -1, s.V),
    ),
    Row(
        "x[:, 0].view(B,H,D)",
        lambda t: t.x[:, 0].view(B, H, D),
        lambda s: s.view(at(s.x, ALL, 0), s.B, s.H, s.D),
        True,
    ),
    Row(
        "y[:, -1].view(-1)  (1-D strided)",
        lambda t: t.y[:, -1].view(-1),
        lambda s: s.view(at(s.y, ALL, -1), -1),
    ),
    Row(
        "x[..., 0].view(-1) (select last dim)",
        lambda t: t.x[..., 0].view(-1),
        lambda s: s.view(at(s.x, ..., 0), -1),
    ),
    Row("x[:, :, 0].view(-1)", lambda t: t.x[:, :, 0].view(-1), lambda s: s.view(at(s.x, ALL, ALL, 0), -1)),
    Row(
        "x[..., :2].view(-1,2) (slice last, last kept)",
        lambda t: t.x[..., :2].view(-1, 2),
        lambda s: s.view(at(s.x, ..., slice(None, 2)), -1, 2),
        True,
    ),
    Row(
        "x[..., :4].view(B,T,2,2)",
        lambda t: t.x[..., :4].view(B, T, 2, 2),
        lambda s: s.view(at(s.x, ..., slice(None, 4)), s.B, s.T, 2, 2),
        True,
    ),
    Row(
        "x[:, None].view(-1,V)",
        lambda t: t.x[:, None].view(-1, V),
        lambda s: s.view(at(s.x, ALL, None), -1, s.V),
    ),
    Row("x[:, :].view(-1,V)", lambda t: t.x[:, :].view(-1, V), lambda s: s.view(at(s.x, ALL, ALL), -1, s.V)),
    Row(
        "x[:, 0:T].view(-1,V) (full range)",
        lambda t: t.x[:, 0:T].view(-1, V),
        lambda s: s.view(at(s.x, ALL, slice(0, s.T)), -1, s.V),
    ),
    Row(
        "x.transpose(0,1).view(T,B,H,D) split last only",
        lambda t: t.x.transpose(0, 1).view(T, B, H, D),
        lambda s: s.view(dims.transpose(s.x, 0, 1), s.T, s.B, s.H, s.D),
        True,
    ),
    Row(
        "x.transpose(0,1)[0].view(B,V)",
        lambda t: t.x.transpose(0, 1)[0].view(B, V),
        lambda s: s.view(at(dims.transpose(s.x, 0, 1), 0), s.B, s.V),
    ),
    Row(
        "h.transpose(1,2).contiguous().view",
        lambda t: t.h.transpose(1, 2).contiguous().view(B, T, H * D),
        lambda s: s.view(memory_format.as_contiguous(dims.transpose(s.h, 1, 2)), s.B, s.T, s.H * s.D),
    ),
    Row(
        "h.transpose(1,2) with H==1",
        lambda t: t.h[:, :, :1].contiguous().transpose(1, 2).view(B, T, D),
        lambda s: s.view(dims.transpose(contiguous([s.B, s.T, 1, s.D]), 1, 2), s.B, s.T, s.D),
    ),
    Row(
        "h.transpose(1,2) with T==1",
        lambda t: t.h[:, :1].contiguous().transpose(1, 2).view(B, 1, H * D),
        lambda s: s.view(dims.transpose(contiguous([s.B, 1, s.H, s.D]), 1, 2), s.B, 1, s.H * s.D),
    ),
    Row(
        "x.permute(0,2,1).view(B,V,2,3) split",
        lambda t: t.x.permute(0, 2, 1).view(B, V, 2, 3),
        lambda s: s.view(dims.permute(contiguous([s.B, 6, s.V]), (0, 2, 1)), s.B, s.V, 2, 3),
    ),
    Row(
        "x.permute(1,0,2).flatten(1)",
        lambda t: t.x.permute(1, 0, 2).flatten(1),
        lambda s: Legal(views.flatten(dims.permute(s.x, (1, 0, 2)), 1)),
    ),
    Row(
        "x.transpose(1,2).flatten() (flatten copies)",
        lambda t: t.x.transpose(1, 2).flatten().view(-1),
        lambda s: s.view(views.flatten(dims.transpose(s.x, 1, 2)), -1),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_torch_numbers_and_symbols_agree(row: Row) -> None:
    row.torch(Tensors())
    assert isinstance(row.ours(Layouts(symbolic=False)), Legal)
    layouts = Layouts(symbolic=True)
    verdict = row.ours(layouts)
    if isinstance(verdict, Illegal):
        assert not applies(verdict, layouts)
    else:
        assert isinstance(verdict, Undecided if row.symbols_may_not_know else Legal)
