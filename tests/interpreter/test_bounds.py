"""Programs that would take for ever, or nest without end: answered, in bounded time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from revealed import analysed, holds

from shapefix.engine.unchecked import LIMIT


def test_a_tree_of_calls(tmp_path: Path) -> None:
    levels = "\n".join(
        f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x) + f{n + 1}(x) + f{n + 1}(x)\n" for n in range(11)
    )
    text = f"import torch\n{levels}\ndef f11(x):\n    return x\n\nf0(torch.zeros(2))\n"
    start = time.process_time()
    analysis = analysed(text, tmp_path)
    assert not analysis.failures
    # A slow machine reaches the bound of time before that of steps.
    assert any(each.kind == LIMIT for each in analysis.unchecked)
    assert time.process_time() - start < 20


def test_a_large_function_takes_the_steps_that_others_leave(tmp_path: Path) -> None:
    """It needs more than its share of the steps, and less than what small functions leave."""
    levels = "\n".join(
        f"    def f{n}(self, x):\n        return self.f{n + 1}(self.f{n + 1}(self.f{n + 1}(x)))\n"
        for n in range(8)
    )
    text = (
        "import torch\n\nclass Net(torch.nn.Module):\n"
        f"    def forward(self, x):\n        return self.f0(x)\n\n{levels}\n"
        "    def f8(self, x):\n        return x\n\ndef small():\n    reveal(torch.zeros(2))  # f32[2]\n"
    )
    assert analysed(text, tmp_path).bounded == 0
    holds(text, tmp_path)


def test_what_is_behind_the_bound_is_unknown(tmp_path: Path) -> None:
    levels = "\n".join(f"def f{n}(x):\n    return f{n + 1}(x)\n" for n in range(20))
    text = (
        f"import torch\n{levels}\ndef f20(x):\n    return x\n\nreveal(f10(torch.zeros(2)))  # f32[2]\n"
        "reveal(f0(torch.zeros(2)))  # unknown\n"
    )
    holds(text, tmp_path)
    assert analysed(text, tmp_path).bounded == 1


@pytest.mark.parametrize("kind", ["statements", "comprehension"])
def test_loops_in_loops(tmp_path: Path, kind: str) -> None:
    if kind == "statements":
        loops = "\n".join(f"{'    ' * n}for i{n} in range(8):" for n in range(10))
        text = f"total = 0\n{loops}\n{'    ' * 10}total = total + 1\nreveal(total)  # unknown\n"
    else:
        loops = " ".join(f"for i{n} in range(8)" for n in range(10))
        text = f"items = [1 {loops}]\nreveal(items[0])  # 1\n"
    holds(text, tmp_path)
    assert analysed(text, tmp_path).bounded > 0


@pytest.mark.parametrize(
    ("first", "step"),
    [
        ("3", "x = x * x"),
        ("3", "x = x ** 2"),
        ("3", "x = x << 3"),
        ("n", "x = x * x"),
        ("len(n) + 1", "x = x * x"),
        ("'ab'", "x = x + x"),
        ("'ab'", "x *= 2"),
        ("[1, 2]", "x = x + x"),
        ("[1, 2]", "x += x"),
        ("[1, 2]", "x.extend(x)"),
        ("[1, 2]", "x = [*x, *x]"),
        ("(1, 2)", "x = x + x"),
        ("(1, 2)", "x += x"),
        ("(1, 2)", "x = 2 * x"),
    ],
)
def test_values_that_double(tmp_path: Path, first: str, step: str) -> None:
    holds(
        f"x = {first}\nfor i in range(8):\n    for j in range(8):\n        {step}\nreveal(x)  # unknown\n",
        tmp_path,
    )


def test_a_long_sum(tmp_path: Path) -> None:
    total = " + ".join(["1"] * 1_000)
    holds(f"import torch\nreveal(torch.zeros({total}))  # f32[1000]\n", tmp_path)


def test_a_long_sum_of_tensors(tmp_path: Path) -> None:
    total = " + ".join(["x"] * 1_000)
    holds(f"import torch\nx = torch.zeros(2).t()\nreveal({total})  # f32[2]\n", tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "(" * 150 + "1" + ")" * 150 + "\nreveal(x)  # 1\n",
        "x = " + "[" * 150 + "1" + "]" * 150 + "\nreveal(x)  # unknown\n",
        "x = " + "-" * 500 + "1\nreveal(x)  # 1\n",
        "x = " + "not " * 500 + "1\nreveal(x)  # True\n",
        "x = " + "lambda: " * 300 + "1\nreveal(x)  # unknown\n",
        "\n".join("    " * n + "if coin():" for n in range(90))
        + "\n"
        + "    " * 90
        + "x = 1\nreveal(x)  # 1\n",
        "x = a" + ".b" * 500 + "\nreveal(x)  # unknown\n",
        "x = a" + "[0]" * 500 + "\nreveal(x)  # unknown\n",
        "x = " + "1 if a else " * 300 + "2\nreveal(x)  # unknown\n",
    ],
    ids=lambda text: text[:12],
)
def test_deep_nesting(tmp_path: Path, text: str) -> None:
    holds(text, tmp_path)


@pytest.mark.slow
def test_a_long_sum_is_answered(tmp_path: Path) -> None:
    analysis = analysed("x = " + " + ".join(["1"] * 900), tmp_path)
    assert not analysis.failures
    assert not analysis.diagnostics


@pytest.mark.slow
def test_large_literals(tmp_path: Path) -> None:
    rows = "[" + "0.0, " * 2_000 + "],"
    holds(
        f"""
        import torch
        reveal(torch.tensor([{rows * 30}]))  # f32[30, 2000]
        reveal(torch.tensor([[0.0] * 3000] * 2000))  # f32[2000, 3000]
        reveal(torch.zeros(10**9, 10**9))  # f32[1000000000, 1000000000]
        reveal(len(range(10**12)))  # unknown
        """,
        tmp_path,
    )


def test_classes_that_inherit_from_themselves(tmp_path: Path) -> None:
    holds(
        """
        from a import A
        class A(A):
            pass
        reveal(A().x)  # 1
        reveal(A().y)  # unknown
        """,
        tmp_path,
        {
            "a.py": "from b import B\nclass A(B):\n    x = 1\n",
            "b.py": "from a import A\nclass B(A):\n    pass\n",
        },
    )


def test_candidates_of_a_list_after_many_branches(tmp_path: Path) -> None:
    """Each branch adds paths to the first two lists; a change reaches each list once."""
    branches = "".join(
        f"    if flag{n}():\n        a = b\n    if other{n}():\n        b = a\n" for n in range(30)
    )
    text = (
        f"def f():\n    first, second = [1], [2]\n    a, b = first, second\n{branches}"
        "    b.append(3)\n    reveal(first)  # unknown\n    reveal(second)  # unknown\n"
    )
    start = time.process_time()
    holds(text, tmp_path)
    assert time.process_time() - start < 5


def test_sizes_beyond_the_largest_index(tmp_path: Path) -> None:
    """`len` of a range raises OverflowError from 2**63 on."""
    holds(
        """
        import torch
        x = torch.zeros(2**63)
        reveal(x[1:])  # f32[9223372036854775807]
        reveal(len(range(2**63)))  # unknown
        reveal(len(x.chunk(10**9)))  # unknown
        """,
        tmp_path,
    )
