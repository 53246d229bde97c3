"""What a run has measured, against the number that a layer was made with: one script, a layer a row."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from probing import probed

from shapefix.diagnostics import Diagnostic

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


THROUGH = """
import torch
from torch import nn


class Head(nn.Sequential):
    def __init__(self, width, classes=2):
        super().__init__(nn.Linear(width, classes))


class Model(nn.Module):
    def __init__(self, *, hidden):
        super().__init__()
        self.head = Head(classes=3, width=hidden)

    def forward(self, x):
        return self.head(x)


batch = {"pixels": torch.zeros(4, 6), "label": torch.zeros(4)}
try:
    Model(hidden=5)(batch["pixels"])
except RuntimeError as error:
    print(error)
try:
    print(batch["lable"])
except KeyError:
    raise
"""


def test_a_number_passed_through_constructors_and_a_misspelled_key(tmp_path: Path) -> None:
    found = {each.name: each for each in probed(tmp_path, THROUGH).found}
    rows = THROUGH.splitlines()

    def repaired(finding: Diagnostic) -> str:
        ((edit,),) = (fix.edits for fix in finding.fixes)
        row = rows[edit.span.row - 1]
        return row[: edit.span.column - 1] + edit.content + row[edit.span.end_column - 1 :]

    assert repaired(found["in-features"]) == '    Model(hidden=6)(batch["pixels"])'
    assert repaired(found["KeyError"]) == '    print(batch["label"])'
    assert found["KeyError"].message == "'lable'; `batch` has 'pixels', 'label'"


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
