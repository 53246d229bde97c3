"""Truth table of `.view`: views of results of operations and layers that torch accepts."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from fact_tensors import (
    ALL,
    IDX,
    INDICES,
    B,
    Layouts,
    Row,
    T,
    Tensors,
    V,
    applies,
    at,
    topk_hits,
    topk_hits_layout,
)

from shapefix.tensors import (
    concat,
    convolutions,
    dims,
    indexing,
    memory_format,
    networks,
    products,
    reductions,
    tensor_iterator,
    views,
)
from shapefix.tensors.layout import contiguous
from shapefix.tensors.verdicts import Illegal, Legal, Undecided

ROWS = [
    Row(
        "x.transpose(1,2).clone(memory_format=contiguous).view(-1)",
        lambda t: t.x.transpose(1, 2).clone(memory_format=torch.contiguous_format).view(-1),
        lambda s: s.view(contiguous(dims.transpose(s.x, 1, 2).sizes), -1),
    ),
    Row(
        "x[:, :-1].clone().view(-1,V)",
        lambda t: t.x[:, :-1].clone().view(-1, V),
        lambda s: s.view(memory_format.preserve_format(at(s.x, ALL, slice(None, -1))), -1, s.V),
    ),
    Row(
        "x[:, :-1].double().view(-1,V)",
        lambda t: t.x[:, :-1].double().view(-1, V),
        lambda s: s.view(memory_format.to(at(s.x, ALL, slice(None, -1)), changes=True), -1, s.V),
    ),
    Row(
        "softmax(x.transpose(1,2),-1).view(-1)",
        lambda t: t.x.transpose(1, 2).softmax(-1).view(-1),
        lambda s: s.view(reductions.along_dim(dims.transpose(s.x, 1, 2), -1), -1),
    ),
    Row(
        "log_softmax(x[:, :-1],-1).view(-1,V)",
        lambda t: t.x[:, :-1].log_softmax(-1).view(-1, V),
        lambda s: s.view(reductions.along_dim(at(s.x, ALL, slice(None, -1)), -1), -1, s.V),
    ),
    Row(
        "(x[:, :-1]/2.0).view(-1,V)",
        lambda t: (t.x[:, :-1] / 2.0).view(-1, V),
        lambda s: s.view(tensor_iterator.elementwise(at(s.x, ALL, slice(None, -1))), -1, s.V),
    ),
    Row(
        "layernorm(x.transpose(0,1)).view(-1,V)",
        lambda t: torch.nn.LayerNorm(V)(t.x.transpose(0, 1)).view(-1, V),
        lambda s: s.view(networks.layer_norm(dims.transpose(s.x, 0, 1), [s.V]), -1, s.V),
    ),
    Row(
        "Linear(x.transpose(0,1)).view(-1,V)",
        lambda t: torch.nn.Linear(V, V)(t.x.transpose(0, 1)).view(-1, V),
        lambda s: s.view(products.linear(dims.transpose(s.x, 0, 1), s.V, s.V), -1, s.V),
    ),
    Row(
        "Linear(x[:, :-1]).view(-1,V)",
        lambda t: torch.nn.Linear(V, V)(t.x[:, :-1]).view(-1, V),
        lambda s: s.view(products.linear(at(s.x, ALL, slice(None, -1)), s.V), -1, s.V),
    ),
    Row(
        "Embedding(y[:, :-1]).view(-1,V)",
        lambda t: torch.nn.Embedding(9, V)(t.y[:, :-1]).view(-1, V),
        lambda s: s.view(networks.embedding(at(s.y, ALL, slice(None, -1)), s.V), -1, s.V),
    ),
    Row(
        "Embedding(y.t()).view(-1,V)",
        lambda t: torch.nn.Embedding(9, V)(t.y.t()).view(-1, V),
        lambda s: s.view(networks.embedding(dims.t(s.y), s.V), -1, s.V),
    ),
    Row(
        "matmul(a,b.transpose).view(-1)",
        lambda t: torch.matmul(t.x, t.x.transpose(1, 2)).view(-1),
        lambda s: s.view(products.matmul(s.x, dims.transpose(s.x, 1, 2)), -1),
    ),
    Row(
        "Conv2d out.view(B,-1)",
        lambda t: torch.nn.Conv2d(3, 4, 3)(t.image.contiguous()).view(B, -1),
        lambda s: s.view(convolutions.conv(contiguous(s.image.sizes), 4, (3, 3)), s.B, -1),
    ),
    Row(
        "AdaptiveAvgPool(1) channels_last .view(B,-1)",
        lambda t: F.adaptive_avg_pool2d(t.image, 1).view(B, -1),
        lambda s: s.view(convolutions.resize(s.image, (1, 1)), s.B, -1),
    ),
    Row(
        "Conv1d(x.transpose(1,2)).view(B,-1)",
        lambda t: torch.nn.Conv1d(V, 4, 3)(t.x.transpose(1, 2)).view(B, -1),
        lambda s: s.view(convolutions.conv(dims.transpose(s.x, 1, 2), 4, (3,)), s.B, -1),
        True,
    ),
    Row(
        "x[idx].view (tensor index dim0)",
        lambda t: t.x[torch.tensor([1, 0, 1])].view(-1, V),
        lambda s: s.view(at(s.x, INDICES), -1, s.V),
    ),
    Row(
        "x[:, idx].view(-1,V)",
        lambda t: t.x[:, IDX].view(-1, V),
        lambda s: s.view(at(s.x, ALL, INDICES), -1, s.V),
    ),
    Row(
        "x[:, [0,2,1]].view(-1,V)",
        lambda t: t.x[:, [0, 2, 1]].view(-1, V),
        lambda s: s.view(at(s.x, ALL, INDICES), -1, s.V),
    ),
    Row(
        "x[:, :, idx].view(-1,3)",
        lambda t: t.x[:, :, IDX].view(-1, 3),
        lambda s: s.view(at(s.x, ALL, ALL, INDICES), -1, 3),
    ),
    Row(
        "x[:, :, idx].view(-1)",
        lambda t: t.x[:, :, IDX].view(-1),
        lambda s: s.view(at(s.x, ALL, ALL, INDICES), -1),
    ),
    Row(
        "x[mask].view(-1,V)",
        lambda t: t.x[t.y == 0].view(-1, V),
        lambda s: s.view(at(s.x, indexing.BooleanIndex(s.y.sizes)), -1, s.V),
    ),
    Row(
        "x.index_select(1,idx).view(-1,V)",
        lambda t: t.x.index_select(1, IDX).view(-1, V),
        lambda s: s.view(concat.index_select(s.x, 1, contiguous([3])), -1, s.V),
    ),
    Row(
        "x.gather(..).view(-1)",
        lambda t: t.x.gather(2, t.y[..., None]).view(-1),
        lambda s: s.view(concat.gather(s.x, 2, dims.unsqueeze(s.y, -1)), -1),
    ),
    Row(
        "v[None].expand(B,T,V).view(-1,V) (both dims stride0)",
        lambda t: torch.randn(V)[None].expand(B, T, V).view(-1, V),
        lambda s: s.view(dims.expand(at(contiguous([s.V]), None), [s.B, s.T, s.V]), -1, s.V),
    ),
    Row(
        "s.expand(B).view(-1)",
        lambda t: torch.tensor(1.0).expand(B).view(-1),
        lambda s: s.view(dims.expand(contiguous([]), [s.B]), -1),
    ),
    Row(
        "x.expand_as noop .view",
        lambda t: t.x.expand_as(t.x).view(-1),
        lambda s: s.view(dims.expand_as(s.x, s.x), -1),
    ),
    Row(
        "x.repeat(1,2,1).view(-1,V)",
        lambda t: t.x.repeat(1, 2, 1).view(-1, V),
        lambda s: s.view(dims.repeat(s.x, (1, 2, 1)), -1, s.V),
    ),
    Row(
        "x.repeat_interleave(2,0).view(-1,V)",
        lambda t: t.x.repeat_interleave(2, 0).view(-1, V),
        lambda s: s.view(concat.repeat_interleave(s.x, 2, 0), -1, s.V),
    ),
    Row(
        "x.chunk(2,-1)[0].view(-1,V//2)",
        lambda t: t.x.chunk(2, -1)[0].view(-1, V // 2),
        lambda s: s.view(indexing.chunk(contiguous([s.B, s.T, 2 * s.D]), 2, -1)[0], -1, s.D),
    ),
    Row(
        "x.chunk(2,-1)[0].view(B,T,2,2) split last",
        lambda t: t.x.chunk(2, -1)[0].view(B, T, 2, 2),
        lambda s: s.view(indexing.chunk(contiguous([s.B, s.T, 8]), 2, -1)[0], s.B, s.T, 2, 2),
    ),
    Row(
        "x.unbind(0)[0].view(-1)",
        lambda t: t.x.unbind(0)[0].view(-1),
        lambda s: s.view(indexing.select(s.x, 0, 0), -1),
    ),
    Row(
        "x.squeeze/unsqueeze .view",
        lambda t: t.x.unsqueeze(1).squeeze(1).unsqueeze(-1).view(-1),
        lambda s: s.view(dims.unsqueeze(s.x, -1), -1),
    ),
    Row(
        "x.narrow(0,0,1).view(-1,V)",
        lambda t: t.x.narrow(0, 0, 1).view(-1, V),
        lambda s: s.view(indexing.narrow(s.x, 0, 0, 1), -1, s.V),
    ),
    Row(
        "torch.stack([..],1).view(-1)",
        lambda t: torch.stack([t.x, t.x], 1).view(-1),
        lambda s: s.view(concat.stack([s.x, s.x], 1), -1),
    ),
    Row(
        "torch.cat([x.t..]).view",
        lambda t: torch.cat([t.x.transpose(1, 2)] * 2).view(-1),
        lambda s: s.view(concat.cat([dims.transpose(s.x, 1, 2)] * 2), -1),
    ),
    Row(
        "torch.cat([x[:, :-1],x[:, -1:]],1).view",
        lambda t: torch.cat([t.x[:, :-1], t.x[:, -1:]], 1).view(-1, V),
        lambda s: s.view(
            concat.cat([at(s.x, ALL, slice(None, -1)), at(s.x, ALL, slice(-1, None))], 1), -1, s.V
        ),
    ),
    Row(
        "correct[:1].view(-1) of t() (k=1)",
        lambda t: topk_hits(t)[:1].view(-1),
        lambda s: s.view(at(topk_hits_layout(s), slice(None, 1)), -1),
    ),
    Row(
        "max over dim .view",
        lambda t: t.x.max(1)[0].view(-1),
        lambda s: s.view(reductions.reduce(s.x, 1), -1),
    ),
    Row(
        "x.sum(1).view(-1)",
        lambda t: t.x.transpose(1, 2).sum(1).view(-1),
        lambda s: s.view(reductions.reduce(dims.transpose(s.x, 1, 2), 1), -1),
    ),
    Row(
        "torch.tril(ones).view(1,1,T,T)",
        lambda t: torch.tril(torch.ones(T, T)).view(1, 1, T, T),
        lambda s: s.view(contiguous([s.T, s.T]), 1, 1, s.T, s.T),
    ),
    Row(
        "pad_sequence(batch_first=True).view(-1)",
        lambda t: torch.nn.utils.rnn.pad_sequence(list(t.x), batch_first=True).view(-1),
        lambda s: s.view(contiguous(s.x.sizes), -1),
    ),
    Row(
        "pad_sequence(batch_first=False).view(-1)",
        lambda t: torch.nn.utils.rnn.pad_sequence(list(t.x)).view(-1),
        lambda s: s.view(contiguous([s.T, s.B, s.V]), -1),
    ),
    Row(
        "x.view(B,T,V).view_as on transposed",
        lambda t: t.x.transpose(1, 2).view_as(t.x.transpose(1, 2)),
        lambda s: views.view_as(dims.transpose(s.x, 1, 2), dims.transpose(s.x, 1, 2)),
    ),
    Row(
        "x.transpose(1,2).view(torch.int32) dtype view",
        lambda t: t.x.transpose(1, 2).view(torch.int32),
        lambda s: s.view(dims.transpose(s.x, 1, 2), s.B, s.V, s.T),
    ),
    Row(
        "x.view(-1,V)[mask].view(-1)",
        lambda t: t.x.view(-1, V)[t.y.view(-1) == 0].view(-1),
        lambda s: s.view(at(contiguous([s.B * s.T, s.V]), indexing.BooleanIndex((s.B * s.T,))), -1),
    ),
    Row(
        "losses.view(targets.shape) where losses 1-D contiguous",
        lambda t: torch.zeros(B * T).view(t.y.shape),
        lambda s: s.view(contiguous([s.B * s.T]), *s.y.sizes),
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
