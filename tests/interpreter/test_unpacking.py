"""Unpacking: of tuples, of lists, and of shapes, which tells the rank."""

from __future__ import annotations

from pathlib import Path

from revealed import holds


def test_unpacking_a_shape_tells_rank_and_names(tmp_path: Path) -> None:
    holds(
        """
        def f(x, y, z):
            B, T, C = x.shape
            reveal(x)  # ?[B, T, C] strides unknown
            reveal(B * T)  # B*T
            rows, _ = y.size()
            reveal(y.transpose(0, 1))  # ?[y.size(1), rows] strides unknown
            (first, second), n = z.shape, 3
            reveal(z)  # ?[first, second] strides unknown
        """,
        tmp_path,
    )


def test_stars(tmp_path: Path) -> None:
    holds(
        """
        import torch

        first, *middle, last = 1, 2, 3, 4
        reveal((first, len(middle), last))  # (1, 2, 4)
        *rest, width = torch.zeros(2, 3, 4).shape
        reveal(width)  # 4
        reveal(torch.zeros(*rest, 5))  # f32[2, 3, 5]
        (a, b), c = (1, 2), 3
        reveal(a + b + c)  # 6
        a, b = b, a
        reveal((a, b))  # (2, 1)
        x = y = torch.zeros(2)
        reveal(y)  # f32[2]
        """,
        tmp_path,
    )


def test_pieces_and_rows(tmp_path: Path) -> None:
    holds(
        """
        import torch

        q, k = torch.zeros(2, 6).split(3, dim=1)
        reveal(k)  # f32[2, 3] strides (6, 1)
        values, indices = torch.zeros(2, 6).max(dim=1)
        reveal(indices)  # i64[2]
        one, two = torch.zeros(2, 5)
        reveal(two)  # f32[5]
        one.unsqueeze_(0)
        reveal((one, two))  # (f32[1, 5], f32[5])
        for name, x in {"a": torch.zeros(3)}.items():
            reveal(x)  # f32[3]
        """,
        tmp_path,
    )


def test_lists_grow_and_shrink(tmp_path: Path) -> None:
    holds(
        """
        import torch

        items = [1]
        items.append(2)
        items += [3, 4]
        items.extend((5, 6))
        items[0] = 9
        reveal(items.pop())  # 6
        reveal(len(items))  # 5
        reveal((items[0], items[-1]))  # (9, 5)
        reveal(torch.zeros(items[1:3]))  # f32[2, 3]
        same = items
        same.append(7)
        reveal(len(items))  # 6
        """,
        tmp_path,
    )


def test_numbers(tmp_path: Path) -> None:
    holds(
        """
        import math

        def f(x):
            B, T = x.shape
            reveal(2 * T // 2)  # T
            reveal(T % 1)  # 0
            reveal((T - 1) * B)  # B*(T - 1)
            reveal(max(T, 1))  # T
            reveal(T == T + 1)  # False
            reveal(math.prod(x.shape))  # B*T

        reveal((math.ceil(2.5), math.floor(-2.5), round(2.7), int(2.7)))  # (3, -3, 3, 2)
        reveal(sum([1, 2], 3))  # 6
        reveal(7 // 2 + 2**3 % 3)  # 5
        """,
        tmp_path,
    )
