"""What a run has measured, against the number that a layer was made with: one script, a layer a row."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from probing import probed

HEAD = """
    import torch
    from torch import nn

    WIDTH = 5

    def tried(layer, *size, dtype=torch.float32):
        try:
            layer(torch.ones(*size, dtype=dtype))
        except (RuntimeError, ValueError, IndexError) as error:
            print(error)

"""
FITTED = {
    "tried(nn.Linear(5, 2), 4, 6)": "nn.Linear(6, 2)",
    "tried(nn.Linear(2 * 5 - 3, out_features=2), 4, 3, 6)": "nn.Linear(6, out_features=2)",
    "tried(nn.Linear(out_features=2, in_features=5), 4, 6)": "nn.Linear(out_features=2, in_features=6)",
    "tried(nn.Conv1d(3, 8, 3), 4, 5, 20)": "nn.Conv1d(5, 8, 3)",
    "tried(nn.Conv2d(3, 8, 3), 5, 20, 20)": "nn.Conv2d(5, 8, 3)",
    "tried(nn.BatchNorm1d(7), 4, 6)": "nn.BatchNorm1d(6)",
    "tried(nn.BatchNorm2d(num_features=7), 4, 6, 9, 9)": "nn.BatchNorm2d(num_features=6)",
    "tried(nn.GroupNorm(2, 8), 4, 6, 9)": "nn.GroupNorm(2, 6)",
    "tried(nn.LayerNorm(8), 4, 6)": "nn.LayerNorm(6)",
    "tried(nn.Embedding(1, 3), 4, 6, dtype=torch.int64)": "nn.Embedding(2, 3)",
}
LEFT = {
    "tried(nn.Linear(WIDTH, 2), 4, 6)": "the number stands elsewhere",
    "tried(nn.Linear(5, 2), 4, 5, 6)": "what it gets is turned",
    "tried(nn.Linear(8 * 8, 2), 4, 8, 8)": "a flatten is missing",
    "tried(nn.Conv2d(3, 8, 3), 4, 20, 20, 3)": "the channels come last",
    "tried(nn.BatchNorm1d(7), 4, 6, 7)": "the features come last",
}


def test_the_number_becomes_the_one_that_was_measured(tmp_path: Path) -> None:
    rows = [*FITTED, *LEFT]
    script = dedent(HEAD) + "\n".join(rows) + "\n"
    found = {each.span.row: each for each in probed(tmp_path, script).found}
    first = script.splitlines().index(rows[0]) + 1
    assert sorted(found) == list(range(first, first + len(rows)))
    made = {}
    for number, row in enumerate(rows, first):
        for fix in found[number].fixes:
            (edit,) = fix.edits
            made[row] = row[: edit.span.column - 1] + edit.content + row[edit.span.end_column - 1 :]
    assert made == {row: f"tried({call}{row[row.index('), ') + 1 :]}" for row, call in FITTED.items()}
