"""Random functions of a tensor of unknown rank, which goes through a layer and is then used."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from running_programs import IMPORTS, Running

Sizes = tuple[int, ...]
RESULTS: dict[str, tuple[Sizes, ...]] = {
    "nn.LSTM(3, 4, batch_first=True)(x)[0]": ((5, 3), (2, 5, 3)),
    "nn.LSTM(3, 4)(x)[0]": ((5, 3), (5, 2, 3)),
    "nn.LSTM(3, 4, batch_first=True)(x)[1][0]": ((5, 3), (2, 5, 3)),
    "nn.LSTM(3, 4, num_layers=2, bidirectional=True)(x)[1][1]": ((5, 3), (5, 2, 3)),
    "nn.GRU(3, 4, bidirectional=True, batch_first=True)(x)[0]": ((5, 3), (2, 5, 3)),
    "nn.GRU(3, 4, batch_first=True)(x)[1]": ((5, 3), (2, 5, 3)),
    "nn.RNN(3, 4)(x)[0]": ((5, 3), (5, 2, 3)),
    "nn.LSTM(3, 4, proj_size=2)(x)[0]": ((5, 3), (5, 2, 3)),
    "nn.LSTMCell(3, 4)(x)[0]": ((3,), (2, 3)),
    "nn.GRUCell(3, 4)(x)": ((3,), (2, 3)),
    "nn.RNNCell(3, 4)(x)": ((3,), (2, 3)),
    "nn.MultiheadAttention(4, 2, batch_first=True)(x, x, x)[0]": ((5, 4), (2, 5, 4)),
    "nn.MultiheadAttention(4, 2)(x, x, x)[1]": ((5, 4), (5, 2, 4)),
    "nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)(x)": ((5, 4), (2, 5, 4)),
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 1)(x)": ((5, 4), (2, 5, 4)),
    "nn.TransformerDecoderLayer(4, 2, 8, batch_first=True)(x, x)": ((5, 4), (2, 5, 4)),
    "nn.Transformer(4, 2, 1, 1, 8, batch_first=True)(x, x)": ((5, 4), (2, 5, 4)),
    "nn.Linear(3, 4)(x)": ((3,), (2, 3), (2, 5, 3), (2, 5, 6, 3)),
    "nn.Conv1d(3, 4, 3)(x)": ((3, 9), (2, 3, 9)),
    "nn.Conv2d(3, 4, 3)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.Conv3d(3, 4, 3)(x)": ((3, 9, 9, 9), (2, 3, 9, 9, 9)),
    "nn.ConvTranspose2d(3, 4, 3)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.LazyConv2d(4, 3)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.MaxPool1d(2)(x)": ((3, 8), (2, 3, 8)),
    "nn.MaxPool2d(2)(x)": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.MaxPool2d(2, return_indices=True)(x)[1]": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.AvgPool1d(2)(x)": ((3, 8), (2, 3, 8)),
    "nn.AvgPool3d(2)(x)": ((3, 8, 8, 8), (2, 3, 8, 8, 8)),
    "nn.LPPool2d(2, 2)(x)": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.LPPool1d(2, 2)(x)": ((3, 8), (2, 3, 8)),
    "nn.FractionalMaxPool2d(2, output_size=3)(x)": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.AdaptiveAvgPool1d(2)(x)": ((3, 8), (2, 3, 8)),
    "nn.AdaptiveMaxPool2d(2)(x)": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.AdaptiveAvgPool2d((2, None))(x)": ((3, 8, 8), (2, 3, 8, 8)),
    "nn.AdaptiveAvgPool3d(1)(x)": ((3, 8, 8, 8), (2, 3, 8, 8, 8)),
    "nn.BatchNorm1d(3)(x)": ((2, 3), (2, 3, 9)),
    "nn.BatchNorm2d(3)(x)": ((2, 3, 9, 9),),
    "nn.InstanceNorm1d(3)(x)": ((3, 9), (2, 3, 9)),
    "nn.InstanceNorm2d(3)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.InstanceNorm3d(3)(x)": ((3, 9, 9, 9), (2, 3, 9, 9, 9)),
    "nn.GroupNorm(1, 3)(x)": ((2, 3), (2, 3, 9), (2, 3, 9, 9)),
    "nn.LayerNorm(3)(x)": ((3,), (2, 3), (2, 5, 3), (2, 5, 6, 3)),
    "nn.LayerNorm((5, 3))(x)": ((5, 3), (2, 5, 3)),
    "nn.RMSNorm(3)(x)": ((3,), (2, 3), (2, 5, 3)),
    "nn.LocalResponseNorm(2)(x)": ((2, 3, 9), (2, 3, 9, 9)),
    "nn.CrossMapLRN2d(2)(x)": ((2, 3, 9, 9),),
    "nn.Flatten()(x)": ((2, 3), (2, 3, 4), (2, 3, 4, 5)),
    "nn.Flatten(0)(x)": ((3,), (2, 3), (2, 3, 4)),
    "nn.Flatten(-2)(x)": ((2, 3), (2, 3, 4), (2, 3, 4, 5)),
    "nn.Unflatten(1, (1, 3))(x)": ((2, 3), (2, 3, 4)),
    "nn.Unflatten(-1, (2, 3))(x)": ((6,), (2, 6), (2, 3, 6)),
    "nn.Fold((4, 4), 2)(x)": ((12, 9), (2, 12, 9)),
    "nn.Unfold(2)(x)": ((2, 3, 9, 9), (3, 9, 9)),
    "nn.PixelShuffle(2)(x)": ((4, 3, 3), (2, 4, 3, 3), (1, 2, 4, 3, 3)),
    "nn.PixelUnshuffle(3)(x)": ((4, 9, 9), (2, 4, 9, 9)),
    "nn.ChannelShuffle(2)(x)": ((2, 4, 3), (2, 4, 3, 3)),
    "nn.ReflectionPad1d(1)(x)": ((3, 9), (2, 3, 9)),
    "nn.ReflectionPad2d(1)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.ReplicationPad3d(1)(x)": ((3, 9, 9, 9), (2, 3, 9, 9, 9)),
    "nn.ZeroPad2d(1)(x)": ((3, 9), (3, 9, 9), (2, 3, 9, 9)),
    "nn.ConstantPad1d(1, 0.0)(x)": ((9,), (3, 9), (3, 9, 9)),
    "nn.CircularPad2d(1)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.Upsample(scale_factor=2)(x)": ((2, 3, 5), (2, 3, 5, 5), (2, 3, 5, 5, 5)),
    "nn.UpsamplingNearest2d(scale_factor=2)(x)": ((2, 3, 5, 5),),
    "nn.Embedding(10, 4)(x)": ((), (3,), (2, 3), (2, 3, 2)),
    "nn.EmbeddingBag(10, 4)(x)": ((2, 3),),
    "nn.GLU()(x)": ((4,), (2, 4), (2, 3, 4)),
    "nn.GLU(1)(x)": ((2, 4), (2, 4, 3)),
    "nn.Softmax2d()(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.Softmax(1)(x)": ((2, 3), (2, 3, 4)),
    "nn.LogSoftmax(-1)(x)": ((3,), (2, 3), (2, 3, 4)),
    "nn.Dropout2d(0.1)(x)": ((3, 9, 9), (2, 3, 9, 9)),
    "nn.Dropout1d(0.1)(x)": ((3, 9), (2, 3, 9)),
    "nn.Dropout3d(0.1)(x)": ((3, 9, 9, 9), (2, 3, 9, 9, 9)),
    "nn.AlphaDropout(0.1)(x)": ((3,), (2, 3), (2, 3, 4)),
    "nn.PReLU(3)(x)": ((2, 3), (2, 3, 4)),
    "nn.Identity()(x)": ((), (3,), (2, 3), (2, 3, 4)),
    "F.interpolate(x, size=4)": ((2, 3, 5), (2, 3, 5, 5)),
    "F.normalize(x)": ((2, 3), (2, 3, 4)),
    "F.one_hot(x.long().clamp(0, 2), 3)": ((), (3,), (2, 3)),
    "F.pad(x, (1, 1))": ((3,), (2, 3), (2, 3, 4)),
    "F.pad(x, (1, 1), mode='reflect')": ((2, 3), (2, 3, 4)),
    "F.max_pool2d(x, 2)": ((3, 8, 8), (2, 3, 8, 8)),
    "F.adaptive_avg_pool2d(x, 1)": ((3, 8, 8), (2, 3, 8, 8)),
    "F.nll_loss(x, torch.zeros(x.shape[0]).long())": ((2, 3),),
    "torch.cdist(x, x)": ((2, 3), (2, 3, 4)),
    "F.pairwise_distance(x, x)": ((3,), (2, 3), (2, 3, 4)),
    "F.cosine_similarity(x, x, dim=-1)": ((3,), (2, 3), (2, 3, 4)),
    "F.scaled_dot_product_attention(x, x, x)": ((2, 3), (2, 3, 4), (2, 2, 3, 4)),
    "x @ torch.ones(3)": ((3,), (2, 3), (2, 5, 3)),
    "torch.ones(4, 3) @ x": ((3,), (3, 2), (2, 3, 5)),
    "x @ torch.ones(3, 4)": ((3,), (2, 3), (2, 5, 3)),
    "torch.ones(2, 4, 3) @ x": ((3,), (3, 2), (2, 3, 5)),
    "torch.stack([x, x])": ((), (3,), (2, 3)),
    "torch.cat([x, x], -1)": ((3,), (2, 3), (2, 3, 4)),
    "x.unsqueeze(1)": ((3,), (2, 3), (2, 3, 4)),
    "x.squeeze(1)": ((3, 1), (2, 3), (2, 1, 4)),
    "x.squeeze()": ((3, 1), (2, 3), (2, 1, 4), (1, 1, 3)),
    "x[0]": ((3,), (2, 3), (2, 3, 4)),
    "x[..., 0]": ((3,), (2, 3), (2, 3, 4)),
    "x[:, None]": ((3,), (2, 3), (2, 3, 4)),
    "x.sum(-1)": ((3,), (2, 3), (2, 3, 4)),
    "x.max(-1)[0]": ((3,), (2, 3), (2, 3, 4)),
    "x.max(0)[0]": ((3,), (2, 3), (2, 3, 4)),
    "x.mT": ((2, 3), (2, 3, 4)),
    "x.T": ((2, 3),),
    "x.t()": ((3,), (2, 3)),
    "torch.outer(x, x)": ((3,),),
    "torch.diag(x)": ((3,), (3, 3)),
    "torch.tril(x)": ((3, 3), (2, 3, 3)),
    "torch.nn.utils.rnn.pad_sequence([x, x], batch_first=True)": ((3,), (2, 3)),
    "torch.atleast_2d(x)": ((), (3,), (2, 3), (2, 3, 4)),
    "torch.movedim(x, 0, -1)": ((3,), (2, 3), (2, 3, 4)),
    "torch.topk(x, 2).indices": ((3,), (2, 3), (2, 3, 4)),
    "torch.sort(x)[1]": ((3,), (2, 3), (2, 3, 4)),
    "torch.gather(x, -1, torch.zeros_like(x).long())": ((3,), (2, 3), (2, 3, 4)),
    "torch.repeat_interleave(x, 2, dim=0)": ((3,), (2, 3), (2, 3, 4)),
    "x.repeat(2, 1, 1)": ((3,), (2, 3), (2, 3, 4)),
    "x.expand(2, -1, -1)": ((2, 3), (2, 2, 3)),
    "x.expand(2, *x.shape)": ((3,), (2, 3)),
    "x.view(x.size(0), -1)": ((3,), (2, 3), (2, 3, 4)),
    "x.reshape(-1, x.size(-1))": ((3,), (2, 3), (2, 3, 4)),
    "x.flatten(1)": ((2, 3), (2, 3, 4), (2, 3, 4, 5)),
    "torch.fft.rfft(x).abs()": ((4,), (2, 4), (2, 3, 4)),
    "torch.histc(x, 4)": ((4,), (2, 4)),
    "torch.nonzero(x)": ((4,), (2, 4), (2, 3, 4)),
    "torch.where(x > 0)[0]": ((4,), (2, 4), (2, 3, 4)),
    "x[x > 0]": ((4,), (2, 4), (2, 3, 4)),
    "torch.cumsum(x, 0)": ((4,), (2, 4), (2, 3, 4)),
    "torch.einsum('...i,ij->...j', x, torch.ones(3, 4))": ((3,), (2, 3), (2, 5, 3)),
    "torch.einsum('...ij->...ji', x)": ((2, 3), (2, 5, 3)),
    "torch.tensordot(x, torch.ones(3, 4), dims=1)": ((3,), (2, 3), (2, 5, 3)),
    "F.linear(x, torch.ones(4, 3))": ((3,), (2, 3), (2, 5, 3)),
    "torch.norm(x, dim=-1, keepdim=True)": ((3,), (2, 3), (2, 5, 3)),
    "F.grid_sample(x, torch.zeros(x.size(0), 4, 4, 2))": ((2, 3, 5, 5),),
    "F.unfold(x, 2)": ((2, 3, 5, 5), (3, 5, 5)),
    "F.conv2d(x, torch.ones(4, 3, 3, 3))": ((3, 9, 9), (2, 3, 9, 9)),
    "F.conv1d(x, torch.ones(4, 3, 3))": ((3, 9), (2, 3, 9)),
    "F.glu(x, -1)": ((4,), (2, 4), (2, 5, 4)),
    "torch.chunk(x, 2, -1)[0]": ((4,), (2, 4), (2, 5, 4)),
    "x.unbind(-1)[0]": ((4,), (2, 4), (2, 5, 4)),
    "x.unfold(-1, 2, 1)": ((4,), (2, 4), (2, 5, 4)),
    "torch.roll(x, 1, 0)": ((4,), (2, 4), (2, 5, 4)),
    "torch.linalg.inv(x + 9 * torch.eye(3))": ((3, 3), (2, 3, 3)),
    "torch.multinomial(x.abs() + 1, 2)": ((3,), (2, 3)),
    "torch.bincount(x.long().clamp(0))": ((3,),),
}
"""Results of layers and functions, and the sizes of inputs that torch takes."""


def _conv(sizes: Sizes, dim: int) -> str:
    return f"y = nn.Conv{len(sizes) - dim - 1}d({sizes[dim]}, 2, 1)(y.float())"


USES: dict[str, tuple[int, int, Callable[[Sizes], str]]] = {
    "unpacked": (1, 9, lambda sizes: ", ".join(f"n{dim}" for dim in range(len(sizes))) + ", = y.shape"),
    "permuted": (1, 9, lambda sizes: f"y = y.permute({', '.join(map(str, reversed(range(len(sizes)))))})"),
    "squeezed": (1, 9, lambda sizes: f"y = y.squeeze({len(sizes) - 1})"),
    "indexed": (1, 9, lambda sizes: f"y = y[{', '.join('0' for _ in sizes)}]"),
    "sliced": (1, 9, lambda sizes: f"y = y[{', '.join(':' for _ in sizes)}]"),
    "transposed": (2, 9, lambda sizes: f"y = y.transpose({len(sizes) - 1}, {len(sizes) - 2})"),
    "linear": (1, 9, lambda sizes: f"y = nn.Linear({sizes[-1]}, 2)(y.float())"),
    "flat": (2, 9, lambda sizes: f"y = nn.Linear({math.prod(sizes[1:])}, 2)(y.flatten(1).float())"),
    "convolved": (3, 5, lambda sizes: _conv(sizes, 1)),
    "convolved without a batch": (2, 4, lambda sizes: _conv(sizes, 0)),
    "normalized": (3, 5, lambda sizes: f"y = nn.InstanceNorm{len(sizes) - 2}d({sizes[1]})(y.float())"),
    "summed": (1, 9, lambda sizes: f"y = y.sum({len(sizes) - 1})"),
    "joined": (1, 9, lambda sizes: f"y = torch.cat([y, torch.ones({sizes}, dtype=y.dtype)], -1)"),
    "added": (0, 9, lambda sizes: f"y = y + torch.ones({sizes})"),
    "scaled": (1, 9, lambda sizes: f"y = y * torch.ones({sizes[-1]})"),
    "multiplied": (1, 9, lambda sizes: f"y = y @ torch.ones({sizes[-1]}, 2, dtype=y.dtype)"),
    "multiplied as a matrix": (2, 2, lambda sizes: f"y = y.mm(torch.ones({sizes[-1]}, 2, dtype=y.dtype))"),
    "multiplied in a batch": (3, 3, lambda sizes: "y = torch.bmm(y, y.transpose(1, 2))"),
    "viewed": (1, 9, lambda sizes: f"y = y.contiguous().view({sizes[0]}, -1)"),
    "iterated": (2, 9, lambda sizes: f"rows = [row.reshape({sizes[1:]}) for row in y]"),
    "unbound": (1, 5, lambda sizes: f"({', '.join(f'a{number}' for number in range(sizes[0]))},) = y"),
    "classified": (2, 9, lambda sizes: _classified(sizes)),
    "classified alone": (1, 1, lambda sizes: "y = F.cross_entropy(y.float(), torch.tensor(0))"),
    "compared": (0, 9, lambda sizes: f"y = F.mse_loss(y.float(), torch.ones({sizes}))"),
    "recurrent": (2, 3, lambda sizes: f"y = nn.LSTM({sizes[-1]}, 3, batch_first=True)(y.float())[0]"),
    "expanded": (1, 9, lambda sizes: f"y = y.expand(3, {', '.join('-1' for _ in sizes)})"),
    "stacked": (0, 9, lambda sizes: f"y = torch.stack([y, y], {len(sizes)})"),
    "pooled": (3, 5, lambda sizes: f"y = F.adaptive_avg_pool{len(sizes) - 2}d(y.float(), 1).flatten(1)"),
    "chosen": (1, 9, lambda sizes: f"y = y.float().softmax({len(sizes) - 1}).argmax({len(sizes) - 1})"),
    "gathered": (1, 9, lambda sizes: f"y = y.gather(-1, torch.zeros({sizes}, dtype=torch.long))"),
}
"""Code that takes results of one rank only, with the smallest and the largest one."""


def _classified(sizes: Sizes) -> str:
    return f"y = F.cross_entropy(y.float(), torch.zeros({(sizes[0], *sizes[2:])}, dtype=torch.long))"


BEFORE = ("pass", "pass", "pass", "b = x.size(0)", "b = x.shape[0]; last = x.shape[-1]", "rank = x.dim()")
FORMS = (
    "def run(x):\n    {before}\n    y = {result}\n    {use}\n    return y\n",
    "def run(x: torch.Tensor):\n    {before}\n    y = {result}\n    {use}\n    return y\n",
    "class Net(nn.Module):\n    def forward(self, x):\n        y = {result}; {use}\n        return y\n",
    "def run(x):\n    y = {result}\n    if y.dim() == {rank}:\n        {use}\n    return y\n",
    "def run(x):\n    {before}\n    y = {result}\n    {use}\n    return y\nrun({given})\n",
    "def run(x):\n    y = {result}\n    if y.ndim == {rank}:\n        {use}\n    return y\n{all}\n",
)


def draft(draw: random.Random) -> Running:
    """Write a function with code for results of one rank, which an input of some rank has."""
    result = draw.choice(list(RESULTS))
    given = [_given(result, sizes) for sizes in RESULTS[result]]
    chosen = draw.choice(given)
    sizes = _sizes_of(result, chosen)
    # After `unsqueeze(1)`, the 1 is taken for channels, not for a length without a batch.
    left_out = "convolved without a batch" if 1 in sizes else ""
    fitting = [use for use, (least, most, _) in USES.items() if least <= len(sizes) <= most]
    use = USES[draw.choice([use for use in fitting if use != left_out])][2](sizes)
    form = draw.choice(FORMS)
    before = draw.choice(BEFORE if RESULTS[result][0] else BEFORE[:1])
    calls = "\n".join(f"run({each})" for each in given)
    text = form.format(result=result, use=use, rank=len(sizes), before=before, given=chosen, all=calls)
    if not _takes(result, use, chosen):
        text = "raise SystemError\n"
    return Running(text)


def _given(result: str, sizes: Sizes) -> str:
    return f"torch.randint(0, 3, {sizes})" if "Embedding" in result else f"torch.rand({sizes})"


def _sizes_of(result: str, given: str) -> Sizes:
    names: dict[str, object] = {}
    exec(f"{IMPORTS}\nx = {given}\nsizes = tuple(({result}).shape)", names)
    sizes = names["sizes"]
    assert isinstance(sizes, tuple)
    return sizes


def _takes(result: str, use: str, given: str) -> bool:
    try:
        exec(f"{IMPORTS}\nx = {given}\ny = {result}\n{use}", {})
    except Exception:
        return False
    return True
