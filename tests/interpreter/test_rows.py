"""How long lists are, and which of them differ from item to item."""

from __future__ import annotations

import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from revealed import analysed, holds


def test_lengths_of_lists_that_are_put_together(tmp_path: Path) -> None:
    holds(
        """
        def f(n, k):
            ids = [7] * n
            mask = [1] * k
            reveal(len(ids + mask))  # n + k
            reveal(len([0] + ids))  # n + 1
            reveal(len(ids[1:]))  # n - 1
            reveal(len(ids[:-1]))  # n - 1
            reveal(len(ids[:k]))  # min(n, k)
            reveal(len(list(ids)))  # n
            reveal(len(ids.copy()))  # n
            reveal(len([x + 1 for x in ids]))  # n
            reveal(len([x for x in ids if x]))  # unknown
            reveal(len(ids[:k] + [0] * (n - len(ids[:k]))))  # n
            ids.append(3)
            reveal(len(ids))  # n + 1
            ids.extend(mask)
            reveal(len(ids))  # n + k + 1
        """,
        tmp_path,
    )


def test_a_tensor_of_rows_of_one_length(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def collate(n, k, features):
            rows = []
            for feature in features:
                rows.append([0] * n + [1] * k)
            reveal(torch.tensor(rows))  # i64[rows, n + k]
            reveal(torch.tensor([[1] * 3 for feature in features]))  # i64[rows, 3]
            reveal(torch.stack([torch.tensor([1] * n) for feature in features]))  # i64[stacked, n]
        """,
        tmp_path,
    )


def test_what_a_list_holds_after_a_loop_over_unknown_items(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def f(items):
            found = []
            seen = {"ids": []}
            for item in items:
                found.append(torch.zeros(3, 4))
                seen["ids"].append(torch.zeros(5))
            reveal(found[0])  # f32[3, 4]
            reveal(seen["ids"][0])  # f32[5]
            found.append(torch.zeros(2, 4))
            reveal(found[0])  # f32[...]
        """,
        tmp_path,
    )


def test_chunks_of_a_list(tmp_path: Path) -> None:
    holds(
        """
        def f(total, block_size):
            ids = [1] * total
            whole = (total // block_size) * block_size
            even = [ids[i : i + block_size] for i in range(0, whole, block_size)]
            reveal(len(even[0]))  # block_size
            ragged = [ids[i : i + block_size] for i in range(0, total, block_size)]
            reveal(len(ragged[0]))  # chunk
        """,
        tmp_path,
    )


def test_what_may_fill_rows_up_is_not_held_to_be_ragged(tmp_path: Path) -> None:
    analysis = analysed(
        """
        import torch
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("gpt2")

        def rows_of(texts, missing):
            rows = tokenizer(texts + ["more"])["input_ids"]
            longest = max(len(row) for row in rows)
            torch.tensor([row + [0] * missing(row) for row in rows])
            torch.tensor([row + [0] * max(0, longest - len(row)) for row in rows])
            torch.tensor([row + [0] * (longest - len(row)) for row in rows])
        """,
        tmp_path,
    )
    assert not analysis.diagnostics


_FILLED = {
    "for token in row:\n    ids.append(token)": True,
    "for token in row:\n    if token > 3:\n        ids.append(0)\n    else:\n        ids.append(1)": True,
    "for token in row:\n    ids.append(token)\nids.append(0)": True,
    "for token in row:\n    if token in (1, 4, 5):\n        ids.append(token)": False,
    "for token in row[:1]:\n    ids.append(token)": False,
    "for token in row:\n    ids.append(token)\nids.extend([0] * (5 - len(ids)))": False,
    "for token in row:\n    ids.append(token)\nwhile len(ids) < 5:\n    ids.append(0)": False,
    "for token in row:\n    ids.append(token)\nids = ids[:1]": False,
    "for token in row:\n    ids.append(token)\ndel ids[1:]": False,
    "for token in row:\n    ids.append(token)\nids += [0] * (5 - len(row))": False,
    "for token in row:\n    ids.append(token)\nif len(ids) < 5:\n    ids.extend([0] * (5 - len(ids)))": False,
    "for token in first:\n    ids.append(token)": False,
    "for token in row[:count]:\n    ids.append(token)\ncount += 0": False,
    "for number in range(count):\n    ids.append(number)": False,
}
"""Code that fills a list in a loop over rows, and whether the lists surely differ in length."""


@pytest.mark.parametrize("filling", _FILLED)
def test_a_list_that_each_pass_creates_is_as_long_as_its_inner_loop(filling: str, tmp_path: Path) -> None:
    body = textwrap.indent(filling, " " * 8)
    loop = (
        "    out, count, first = [], 1, rows[0]\n    for row in rows:\n        ids = []\n"
        f"{body}\n        out.append(ids)\n    return torch.tensor(out)\n"
    )
    namespace: dict[str, Any] = {}
    exec(f"import torch\ndef tensor_of(rows):\n{loop}", namespace)
    differs = _FILLED[filling]
    with pytest.raises(ValueError, match="expected sequence of length") if differs else nullcontext():
        namespace["tensor_of"]([[1, 2, 3], [4], [5, 6, 7, 8, 9]])
    code = (
        "from transformers import AutoTokenizer\ntokenizer = AutoTokenizer.from_pretrained('gpt2')\n"
        "def tensor_of(texts):\n    rows = tokenizer([str(text) for text in texts])['input_ids']\n"
        f"{loop.replace('return torch.tensor(out)', 'reveal(len(out[0]))')}"
    )
    (shown,) = analysed(code, tmp_path).reveals
    assert shown.message.startswith("length") == differs


def test_a_list_times_a_tensor_of_one_number_is_a_list(tmp_path: Path) -> None:
    holds(
        """
        import torch
        count = torch.tensor([[0, 1], [1, 2]]).max() + 1
        reveal(len([12] * count))  # unknown
        reveal((count * [12])[0])  # 12
        """,
        tmp_path,
    )
    assert [12] * torch.tensor(3) == [12, 12, 12]
