"""einops patterns, each beside the torch operations that it stands for."""

from __future__ import annotations

import pytest
from differential import IMPORTS, SIZES, compare, executed, interpret, layouts, revealed

from shapefix.domains.operations import InPlaceWrite

FOUR = {
    "x": "torch.randn(B, T, 4, V)",
    "sliced": "torch.randn(B, T + 1, 4, V)[:, 1:]",
    "swapped": "torch.randn(B, T, V, 4).transpose(2, 3)",
}

PATTERNS = [
    ("rearrange(x, 'b t h d -> b h t d')", "x.permute(0, 2, 1, 3)"),
    ("rearrange(x, 'b t h d -> b t (h d)')", "x.reshape(B, T, 4 * V)"),
    ("rearrange(x, 'b t h d -> b h (t d)')", "x.permute(0, 2, 1, 3).reshape(B, 4, T * V)"),
    ("rearrange(x, 'b t (k h) d -> k b h t d', k=2)", "x.reshape(B, T, 2, 2, V).permute(2, 0, 3, 1, 4)"),
    (
        "rearrange(x, 'b (t s) h d -> (b s) t h d', s=3)",
        "x.reshape(B, T // 3, 3, 4, V).permute(0, 2, 1, 3, 4).reshape(B * 3, T // 3, 4, V)",
    ),
    ("rearrange(x, '... h d -> ... (h d)')", "x.reshape(B, T, 4 * V)"),
    ("rearrange(x, 'b ... -> b (...)')", "x.reshape(B, -1)"),
    ("rearrange(x, 'b ... d -> b d ...')", "x.permute(0, 3, 1, 2)"),
    ("rearrange(x, 'b t h d -> b t h d')", "x"),
    ("rearrange(x, 'b t h d -> b 1 t h d ()')", "x[:, None, ..., None]"),
    ("rearrange(x[:, :1], 'b 1 h d -> b h d')", "x[:, 0]"),
    ("repeat(x, 'b t h d -> b t h d k', k=3)", "x.unsqueeze(-1).expand(B, T, 4, V, 3)"),
    ("repeat(x, 'b t h d -> b t (h 2) d')", "x.unsqueeze(3).expand(B, T, 4, 2, V).reshape(B, T, 8, V)"),
    ("repeat(x[0, 0], 'h d -> b t h d', b=B, t=T)", "x[0, 0].expand(B, T, 4, V)"),
    ("reduce(x, 'b t h d -> b h', 'mean')", "x.mean((1, 3))"),
    ("reduce(x, 'b (t s) h d -> b t h d', 'max', s=2)", "x.reshape(B, T // 2, 2, 4, V).amax(2)"),
    ("reduce(x, 'b t h d -> b d t h', 'sum')", "x.permute(0, 3, 1, 2)"),
    ("reduce(x, '... d -> ...', 'sum')", "x.sum(-1)"),
    ("Rearrange('b t h d -> b (t h) d')(x)", "x.reshape(B, T * 4, V)"),
    ("nn.Sequential(Rearrange('b t (g h) d -> b t g h d', g=2))(x)", "x.reshape(B, T, 2, 2, V)"),
    ("Reduce('b t h d -> b d', 'mean')(x)", "x.mean((1, 2))"),
    ("rearrange(pattern='b t (g h) d -> b t g h d', g=2, tensor=x)", "x.reshape(B, T, 2, 2, V)"),
    ("reduce(x, reduction='mean', pattern='b t h d -> b h')", "x.mean((1, 3))"),
    ("Rearrange(pattern='b t (g h) d -> b t g h d', g=2)(input=x)", "x.reshape(B, T, 2, 2, V)"),
]

EINOPS = "from einops import rearrange, reduce, repeat\nfrom einops.layers.torch import Rearrange, Reduce\n"


@pytest.mark.parametrize(("pattern", "meaning"), PATTERNS)
@pytest.mark.parametrize("tensor", FOUR)
def test_patterns_mean_these_operations(pattern: str, meaning: str, tensor: str) -> None:
    known = ", ".join(SIZES) + " = " + ", ".join(map(str, SIZES.values()))
    (real,) = executed(f"{known}\nx = {FOUR[tensor]}\nreveal({meaning})")
    (ours,) = revealed(f"{EINOPS}{known}\nx = {FOUR[tensor]}\nreveal({pattern})")
    compare(ours, real, require_sizes=True, require_strides=True)
    names = ", ".join(SIZES)
    (ours,) = revealed(f"{EINOPS}{names} = sizes()\nx = {FOUR[tensor]}\nreveal({pattern})")
    compare(ours, real)


def test_a_pure_permutation_shares_memory() -> None:
    source = f"""{IMPORTS}{EINOPS}
x = torch.randn(2, 3, 4)
x.zero_()
rearrange(x, "a b c -> c a b").zero_()
rearrange(x, "a b c -> c (a b)").zero_()
rearrange(x, "a b c -> (a c) b").zero_()
"""
    written = [event.tensor.storage for event in interpret(source) if isinstance(event, InPlaceWrite)]
    assert [storage is written[0] for storage in written] == [True, True, True, False]


def test_a_pattern_tells_the_rank() -> None:
    source = (
        EINOPS + "def f(x, heads):\n    y = rearrange(x, 'b t (h d) -> b h t d', h=heads)\n    reveal(x)\n"
    )
    assert layouts(source)[0].startswith("(x.size(0), x.size(1), x.size(2)) strides (")


def test_words_stand_for_letters() -> None:
    source = "from einops import einsum\nx, y = torch.randn(2, 6, 8), torch.randn(2, 5, 8)\n"
    source += "reveal(einsum(x, y, 'batch time width, batch other width -> batch time other'))"
    assert layouts(source)[0].startswith("(2, 6, 5) strides (")


def test_wrong_patterns_leave_the_result_unknown() -> None:
    wrong = ["a b -> a", "a b c -> a b (c", "a b c d -> a b c d", "a b c", "(a b) c d -> a"]
    source = EINOPS + "x = torch.randn(2, 3, 4)\n" + "".join(f"reveal(rearrange(x, {p!r}))\n" for p in wrong)
    assert layouts(source) == ["?"] * len(wrong)
