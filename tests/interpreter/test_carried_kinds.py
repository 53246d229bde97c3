"""What stays the same along a loop: the ranks of tensors, and the kinds of layers in a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from revealed import holds


def test_ranks_and_layers_are_kept(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn
        from elsewhere import unknown

        x = torch.zeros(2, 3, 32, 32)
        y = torch.zeros(2, 3)
        for _ in range(unknown()):
            x = nn.Conv2d(unknown(), 8, 3)(x)
            pooled = x.mean(1)
            y = y.unsqueeze(0)
        reveal(x)  # ?[2, size(1), size(2), size(3)] strides unknown
        reveal(pooled)  # ?[2, size(1), size(2)] strides unknown
        reveal(y)  # ?[...]

        layers, last = [nn.Conv2d(3, 8, 3, stride=2, padding=1)], 8
        for width in unknown():
            layers.append(nn.Conv2d(last, width, 3, padding=1))
            last = width
        net = nn.Sequential(*layers)
        reveal(net(torch.zeros(2, 3, 32, 32)))  # f32[2, size(1), size(2), size(3)]
        either = nn.Conv2d(3, 8, 1) if unknown() else nn.Sequential()
        reveal(either(torch.zeros(2, 3, 32, 32)))  # f32[2, size(1), 32, 32]
        """,
        tmp_path,
    )


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("torch.cat([torch.zeros(2, 3, 4), x], dim=1)", "?[2, size(1) + 3, 4]"),
        ("torch.stack([torch.zeros(2, 3), x], dim=1)", "?[2, 2, 3]"),
        ("torch.cat([nn.Linear(3, 8)(x), nn.Linear(3, 8)(x)], -1)[..., 0].ndim", "unknown"),
        ("torch.cat([torch.tensor([]), x])", "?[...] contiguous"),
    ],
)
def test_joined_tensors_have_one_rank(code: str, shown: str, tmp_path: Path) -> None:
    holds(
        f"import torch\nfrom torch import nn\n\ndef run(x):\n    reveal({code})  # {shown}\n",
        tmp_path,
    )
