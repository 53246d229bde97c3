"""Functions: what they are given, what they return, and what decorators make of them."""

from __future__ import annotations

from pathlib import Path

from revealed import holds


def test_arguments_by_position_name_star_and_default(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def f(a, /, b, c=3, *rest, d=4, **others):
            return a, b, c, len(rest), d, others.get("e", 0)

        given, named = (1, 2), {"d": 7, "e": 8}
        reveal(f(1, 2))  # (1, 2, 3, 0, 4, 0)
        reveal(f(1, b=2, c=5))  # (1, 2, 5, 0, 4, 0)
        reveal(f(*given, 5, 6, **named))  # (1, 2, 5, 1, 7, 8)
        """,
        tmp_path,
    )


def test_unknown_star_arguments_may_fill_any_parameter(tmp_path: Path) -> None:
    holds(
        """
        from elsewhere import arguments

        def f(a, b=2):
            return a, b

        reveal(f(1, *arguments()))  # (1, unknown)
        reveal(f(1, **arguments()))  # (1, unknown)
        """,
        tmp_path,
    )


def test_defaults_are_evaluated_where_the_function_is_defined(tmp_path: Path) -> None:
    holds(
        """
        size = 2

        def f(n=size, seen=[]):
            seen.append(n)
            return n, len(seen)

        size = 3
        adders = [lambda x, i=i: x + i for i in range(3)]
        late = [lambda x: x + i for i in range(3)]
        reveal(f())  # (2, 1)
        reveal(f())  # (2, 2)
        reveal(adders[0](10))  # 10
        reveal(late[0](10))  # 12
        """,
        tmp_path,
    )


def test_returns_are_joined(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        def same():
            if coin():
                return torch.zeros(2, 3)
            return torch.ones(2, 3)

        def perhaps(x):
            if coin():
                return x

        def known(x):
            if x.dim() == 2:
                return 2
            return 0

        x = torch.zeros(2, 3)
        reveal(same())  # f32[2, 3]
        reveal(perhaps(x))  # f32[2, 3] or None
        reveal(known(x))  # 2
        """,
        tmp_path,
    )


def test_lambdas_partial_and_map(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from functools import partial

        def make(rows, columns, *, fill=0):
            return torch.full((rows, columns), fill)

        tall = partial(make, 5, fill=1.0)
        reveal(tall(2))  # f32[5, 2]
        reveal((lambda x: x.t())(torch.zeros(2, 3)))  # f32[3, 2] strides (1, 3)
        reveal(list(map(torch.zeros, (2, 3)))[1])  # f32[3]
        """,
        tmp_path,
    )


def test_decorators(tmp_path: Path) -> None:
    holds(
        """
        import functools, torch
        from elsewhere import unknown

        @torch.no_grad()
        @functools.lru_cache(maxsize=None)
        def plain(x):
            return x.t()

        @unknown
        def replaced(x):
            return x.t()

        x = torch.zeros(2, 3)
        reveal(plain(x))  # f32[3, 2] strides (1, 3)
        reveal(replaced(x))  # unknown
        """,
        tmp_path,
    )


def test_recursion_is_not_followed(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def halve(x):
            if x.size(0) == 1:
                return x
            return halve(x[::2])

        def count(items, n):
            items.append(n)
            if n:
                count(items, n - 1)

        items = []
        count(items, 3)
        reveal(halve(torch.zeros(1, 2)))  # f32[1, 2]
        reveal(halve(torch.zeros(8, 2)))  # unknown
        reveal(len(items))  # unknown
        """,
        tmp_path,
    )


def test_what_unknown_code_is_handed_it_may_change(tmp_path: Path) -> None:
    holds(
        """
        from elsewhere import work

        items = [1, 2]
        work(items)
        reveal(len(items))  # unknown
        """,
        tmp_path,
    )


def test_functions_that_nobody_calls_are_run_with_unknown_arguments(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import Tensor

        def f(x, n, mask: Tensor | None = None, width: int = 4):
            B, T = x.shape
            reveal(x)  # ?[B, T] strides unknown
            reveal(width)  # unknown
            y = torch.zeros(B, n)
            reveal(y)  # f32[B, n]
            if mask is not None:
                reveal(mask[:, :1, :])  # ?[mask.size(0), 1, mask.size(2)] strides unknown
        """,
        tmp_path,
    )


def test_an_unknown_that_is_counted_with_may_still_be_a_tensor(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def f(step, index, x):
            B, T, C = x.shape
            reveal(torch.zeros(step + 1, 2))  # f32[step + 1, 2]
            reveal(x[:, index + 1])  # ?[...]
            reveal(x * 2)  # ?[B, T, C] strides unknown
            reveal(isinstance(step + 1, int))  # unknown
        """,
        tmp_path,
    )


def test_annotations_with_sizes(tmp_path: Path) -> None:
    holds(
        """
        from jaxtyping import Float, Int
        from torch import Tensor

        def f(x: Float[Tensor, "B T 8"], y: "Int[Tensor, 'B T-1']"):
            reveal(x)  # ?[B, T, 8] strides unknown
            reveal(y)  # ?[B, T - 1] strides unknown
        """,
        tmp_path,
    )
