"""Truth table of `.view`: views that torch rejects, checked in torch, over constants and over symbols."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
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
    topk_hits,
    topk_hits_layout,
)
from torch import Tensor

from shapefix.tensors import (
    convolutions,
    dims,
    indexing,
    memory_format,
    networks,
    products,
    reductions,
    tensor_iterator,
)
from shapefix.tensors.layout import Layout, contiguous, permuted_dense
from shapefix.tensors.legality import view
from shapefix.tensors.polynomials import Size
from shapefix.tensors.verdicts import Illegal, Undecided


def mha_eval(t: Tensors) -> Tensor:
    module = torch.nn.MultiheadAttention(V, H, batch_first=True).eval()
    return module(t.x, t.x, t.x)[0]


def lstm(s: Layouts, width: int | Size, both: bool = False) -> Layout:
    return networks.recurrent(s.x, width, batch_first=True, bidirectional=both)[0]


ROWS = [
    Row(
        "x[:, :-1, :].view(-1,V)",
        lambda t: t.x[:, :-1, :].view(-1, V),
        lambda s: s.view(at(s.x, ALL, slice(None, -1), ALL), -1, s.V),
    ),
    Row(
        "x[..., :-1, :].view(-1,V)",
        lambda t: t.x[..., :-1, :].view(-1, V),
        lambda s: s.view(at(s.x, ..., slice(None, -1), ALL), -1, s.V),
    ),
    Row(
        "y[:, 1:].view(-1)", lambda t: t.y[:, 1:].view(-1), lambda s: s.view(at(s.y, ALL, slice(1, None)), -1)
    ),
    Row(
        "y[:, :-1].view(-1)",
        lambda t: t.y[:, :-1].view(-1),
        lambda s: s.view(at(s.y, ALL, slice(None, -1)), -1),
    ),
    Row(
        "x4[::2].view(-1,V) (step, dim0, B=4)",
        lambda t: t.x4[::2].view(-1, V),
        lambda s: s.view(at(s.x4, slice(None, None, 2)), -1, s.V),
    ),
    Row(
        "x[:, -1, :].view(-1)", lambda t: t.x[:, -1, :].view(-1), lambda s: s.view(at(s.x, ALL, -1, ALL), -1)
    ),
    Row(
        "x[..., :2].view(-1)",
        lambda t: t.x[..., :2].view(-1),
        lambda s: s.view(at(s.x, ..., slice(None, 2)), -1),
        True,
    ),
    Row(
        "x[:, :-1].view(B*(T-1),V)",
        lambda t: t.x[:, :-1].view(B * (T - 1), V),
        lambda s: s.view(at(s.x, ALL, slice(None, -1)), s.B * (s.T - 1), s.V),
    ),
    Row(
        "x.transpose(1,2).view(-1,T)",
        lambda t: t.x.transpose(1, 2).view(-1, T),
        lambda s: s.view(dims.transpose(s.x, 1, 2), -1, s.T),
    ),
    Row(
        "x.transpose(1,2).view(B,-1)",
        lambda t: t.x.transpose(1, 2).view(B, -1),
        lambda s: s.view(dims.transpose(s.x, 1, 2), s.B, -1),
    ),
    Row(
        "x.transpose(0,1).view(T*B,V)",
        lambda t: t.x.transpose(0, 1).view(T * B, V),
        lambda s: s.view(dims.transpose(s.x, 0, 1), s.T * s.B, s.V),
    ),
    Row(
        "h.transpose(1,2).view(B,T,H*D)",
        lambda t: t.h.transpose(1, 2).view(B, T, H * D),
        lambda s: s.view(dims.transpose(s.h, 1, 2), s.B, s.T, s.H * s.D),
    ),
    Row(
        "x.permute(0,2,1).view(B*V,T)",
        lambda t: t.x.permute(0, 2, 1).view(B * V, T),
        lambda s: s.view(dims.permute(s.x, (0, 2, 1)), s.B * s.V, s.T),
    ),
    Row(
        "x.transpose(1,2).clone().view(-1)",
        lambda t: t.x.transpose(1, 2).clone().view(-1),
        lambda s: s.view(memory_format.preserve_format(dims.transpose(s.x, 1, 2)), -1),
    ),
    Row(
        "x.transpose(1,2).double().view(-1)",
        lambda t: t.x.transpose(1, 2).double().view(-1),
        lambda s: s.view(memory_format.to(dims.transpose(s.x, 1, 2), changes=True), -1),
    ),
    Row(
        "x.transpose(1,2).detach().view(-1)",
        lambda t: t.x.transpose(1, 2).detach().view(-1),
        lambda s: s.view(dims.transpose(s.x, 1, 2), -1),
    ),
    Row(
        "x[:, :-1].float() (no dtype change)",
        lambda t: t.x[:, :-1].float().view(-1),
        lambda s: s.view(memory_format.to(at(s.x, ALL, slice(None, -1)), changes=False), -1),
    ),
    Row(
        'x[:, :-1].to("cpu") (no-op)',
        lambda t: t.x[:, :-1].to("cpu").view(-1),
        lambda s: s.view(memory_format.to(at(s.x, ALL, slice(None, -1)), changes=False), -1),
    ),
    Row(
        "(x.transpose(1,2)+1).view(-1)",
        lambda t: (t.x.transpose(1, 2) + 1).view(-1),
        lambda s: s.view(tensor_iterator.elementwise(dims.transpose(s.x, 1, 2)), -1),
    ),
    Row(
        "relu(x.transpose(1,2)).view(-1)",
        lambda t: torch.relu(t.x.transpose(1, 2)).view(-1),
        lambda s: s.view(tensor_iterator.elementwise(dims.transpose(s.x, 1, 2)), -1),
    ),
    Row(
        "dropout(x.transpose(1,2)).view(-1)",
        lambda t: F.dropout(t.x.transpose(1, 2)).view(-1),
        lambda s: s.view(tensor_iterator.elementwise(dims.transpose(s.x, 1, 2)), -1),
    ),
    Row(
        "LSTM batch_first out.view(-1,V)",
        lambda t: torch.nn.LSTM(V, V, batch_first=True)(t.x)[0].view(-1, V),
        lambda s: s.view(lstm(s, s.V), -1, s.V),
    ),
    Row(
        "GRU batch_first bidir out.view(-1,2V)",
        lambda t: torch.nn.GRU(V, V, batch_first=True, bidirectional=True)(t.x)[0].view(-1, 2 * V),
        lambda s: s.view(lstm(s, s.V, True), -1, 2 * s.V),
    ),
    Row(
        "pad_packed(batch_first) out.view",
        lambda t: torch.nn.utils.rnn.pad_packed_sequence(
            torch.nn.utils.rnn.pack_padded_sequence(t.x, torch.tensor([T, T - 1]), batch_first=True),
            batch_first=True,
        )[0].view(-1, V),
        lambda s: s.view(permuted_dense(s.x.sizes, (1, 0, 2)), -1, s.V),
    ),
    Row(
        "MultiheadAttention(batch_first) out.view(-1,V)",
        lambda t: torch.nn.MultiheadAttention(V, H, batch_first=True)(t.x, t.x, t.x)[0].view(-1, V),
        lambda s: s.view(networks.multihead_attention(s.x, s.x, batch_first=True)[0], -1, s.V),
    ),
    Row(
        "MHA(batch_first).eval out.view(-1,V)",
        lambda t: mha_eval(t).view(-1, V),
        lambda s: s.view(networks.multihead_attention(s.x, s.x, batch_first=True)[0], -1, s.V),
    ),
    Row(
        "Conv2d channels_last input out.view(B,-1)",
        lambda t: torch.nn.Conv2d(3, 4, 3)(t.image).view(B, -1),
        lambda s: s.view(convolutions.conv(s.image, 4, (3, 3)), s.B, -1),
    ),
    Row(
        "MaxPool2d on channels_last .view(B,-1)",
        lambda t: F.max_pool2d(t.image, 2).view(B, -1),
        lambda s: s.view(convolutions.pool(s.image, (2, 2)), s.B, -1),
    ),
    Row(
        "x.expand: m.unsqueeze(1).expand(B,T,V).view(-1,V)",
        lambda t: torch.randn(B, V).unsqueeze(1).expand(B, T, V).view(-1, V),
        lambda s: s.view(dims.expand(dims.unsqueeze(contiguous([s.B, s.V]), 1), [s.B, s.T, s.V]), -1, s.V),
    ),
    Row(
        "v.expand(B,V).view(-1)",
        lambda t: torch.randn(V).expand(B, V).view(-1),
        lambda s: s.view(dims.expand(contiguous([s.V]), [s.B, s.V]), -1),
    ),
    Row(
        "x.chunk(2,-1)[0].view(-1)",
        lambda t: t.x.chunk(2, -1)[0].view(-1),
        lambda s: s.view(indexing.chunk(s.x, 2, -1)[0], -1),
    ),
    Row(
        "x.split(3,1)[0].view(-1,V)",
        lambda t: t.x.split(3, 1)[0].view(-1, V),
        lambda s: s.view(at(s.x, ALL, slice(0, 3)), -1, s.V),
        True,
    ),
    Row(
        "x.unbind(1)[0].view(-1)",
        lambda t: t.x.unbind(1)[0].view(-1),
        lambda s: s.view(indexing.select(s.x, 1, 0), -1),
    ),
    Row(
        "x.narrow(1,0,3).view(-1,V)",
        lambda t: t.x.narrow(1, 0, 3).view(-1, V),
        lambda s: s.view(indexing.narrow(s.x, 1, 0, 3), -1, s.V),
        True,
    ),
    Row(
        "x.topk(3,-1)[1].t().view(-1)",
        lambda t: t.x[0].topk(3, -1)[1].t().view(-1),
        lambda s: s.view(dims.t(reductions.topk(at(s.x, 0), 3)), -1),
    ),
    Row(
        "correct[:k].view(-1) of t() (imagenet accuracy, k=5)",
        lambda t: topk_hits(t)[:5].view(-1),
        lambda s: s.view(at(topk_hits_layout(s), slice(None, 5)), -1),
    ),
    Row(
        "meshgrid(ij)[1].view(-1)",
        lambda t: torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")[1].view(-1),
        lambda s: s.view(dims.expand(contiguous([1, 4]), [3, 4]), -1),
    ),
    Row(
        "meshgrid(ij)[0].view(-1)",
        lambda t: torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")[0].view(-1),
        lambda s: s.view(dims.expand(contiguous([3, 1]), [3, 4]), -1),
    ),
    Row(
        "from_numpy(a.T).view(-1)",
        lambda t: torch.from_numpy(t.x[0].numpy().T).view(-1),
        lambda s: s.view(dims.T(at(s.x, 0)), -1),
    ),
    Row(
        "x.diagonal(0,1,2).view(-1)",
        lambda t: t.x.diagonal(0, 1, 2).view(-1),
        lambda s: s.view(indexing.diagonal(s.x, 0, 1, 2), -1),
        True,
    ),
    Row(
        "x.unfold(1,3,1).view(-1)",
        lambda t: t.x.unfold(1, 3, 1).view(-1),
        lambda s: s.view(indexing.unfold(s.x, 1, 3, 1), -1),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_what_torch_refuses_is_illegal(row: Row) -> None:
    with pytest.raises(RuntimeError, match=r"view size is not compatible") as refused:
        row.torch(Tensors())
    assert "reshape" in str(refused.value)
    assert isinstance(row.ours(Layouts(symbolic=False)), Illegal)
    layouts = Layouts(symbolic=True)
    verdict = row.ours(layouts)
    if isinstance(verdict, Undecided):
        assert row.symbols_may_not_know
    else:
        # An illegal view only fails under its conditions, which these tensors fulfill.
        assert isinstance(verdict, Illegal)
        assert applies(verdict, layouts)


def test_the_strides_of_attention_are_not_known_so_neither_is_the_verdict() -> None:
    query = torch.randn(B, T, H, D).transpose(1, 2).contiguous()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        F.scaled_dot_product_attention(query, query, query).transpose(1, 2).view(B, T, H * D)
    for symbolic in (True, False):
        s = Layouts(symbolic)
        heads = contiguous([s.B, s.H, s.T, s.D])
        attended = products.scaled_dot_product_attention(heads, heads, heads)
        verdict = s.view(dims.transpose(attended, 1, 2), s.B, s.T, s.H * s.D)
        assert isinstance(verdict, Undecided)
        assert not verdict.numel


def test_a_view_of_sizes_below_zero_is_undecided() -> None:
    assert isinstance(view(contiguous([1, -1]), [-1]), Undecided)
