"""`shapefix guard --style comments`: sizes that a run confirms, in rows that are free."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch
from command_line import Project, project_in_a_folder, shapefix  # noqa: F401

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
IMAGES = """class Net(nn.Module):
    def __init__(self, width=6, n_classes=5):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 8, 2, stride=2)
        self.head = nn.Linear(8, n_classes)

    def forward(self, x):
        x = self.conv(x)
        x = F.relu(x)
        h = self.down(x)
        h = h.mean(
            dim=(2, 3)
        )
        return self.head(h)
"""
ATTENTION = """class Net(nn.Module):
    def __init__(self, dim=8, heads=2):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.heads = heads

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(B, T, self.heads, -1).transpose(1, 2)
        k = k.view(B, T, self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1)
        return scores.flatten(1)
"""
CALLED = """class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 7)

    def forward(self, x):
        x = x.flatten(1)
        for _ in range(2):
            y = self.first(x)
        return y.t()


Net(48)(torch.zeros(8, 3, 4, 4))
"""
SEQUENCES = """class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(4, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x, _ = self.first(x)
        return self.head(x)


Net()(torch.zeros(5, 2, 4))
"""
# A model, the arguments of the constructor and of forward, the names in the comments, and the comments.
MODELS: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, int], list[str]]] = [
    (
        IMAGES,
        (4, 9),
        (2, 3, 10, 12),
        {"B": 2, "H": 10, "W": 12, "width": 4, "n_classes": 9},
        ["x [B, 3, H, W]", "[B, width, H, W]", "[B, 8, H // 2, W // 2]", "[B, 8]", "[B, n_classes]"],
    ),
    (
        ATTENTION,
        (12, 3),
        (2, 5, 12),
        {"B": 2, "T": 5, "C": 12, "heads": 3, "dim": 12},
        ["[B, T, dim]", "[B, heads, T, dim // heads]", "[B, heads, T, T]", "[B, heads*T*T]"],
    ),
    (CALLED, (48,), (3, 3, 4, 4), {"B": 3}, ["x [B, 3, 4, 4]", "[B, 48]", "[B, 7]", "[7, B]"]),
    (SEQUENCES, (), (5, 2, 4), {}, ["x [5, 2, 4]", "[5, 2, 3]"]),
]


def commented(text: str) -> str:
    """The text of model.py in this folder after `guard --style comments --apply`."""
    path = Path("model.py")
    path.write_text(text, "utf-8")
    ran = shapefix("guard", "model.py", "--style", "comments", "--apply")
    assert ran.code == 0, ran.err
    return path.read_text("utf-8")


def confirmed(text: str, given: tuple[int, ...], sizes: tuple[int, ...], names: dict[str, int]) -> int:
    """Run a model, and compare its tensors with the comments; returns how many were compared."""
    rows = text.splitlines()
    targets = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Assign, ast.Return)) and "#: " in rows[(node.end_lineno or 0) - 1]:
            comment = re.search(r"#: (\[.*\])$", rows[(node.end_lineno or 0) - 1])
            assert comment is not None
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            written = (
                [] if target is None else [each.id for each in ast.walk(target) if isinstance(each, ast.Name)]
            )
            for row in range(node.lineno, (node.end_lineno or 0) + 1):
                targets[row] = (written, eval(comment[1], dict(names)), node.lineno, node.end_lineno or 0)
    compared = set()

    def trace(frame: FrameType, event: str, value: Any) -> Any:
        if frame.f_code.co_filename != "model.py" or frame.f_code.co_name != "forward":
            return None
        before = last.get("row")
        if event in ("line", "return") and before in targets:
            written, expected, first, end = targets[before]
            is_done = event == "return" or not first <= frame.f_lineno <= end
            held = (
                [frame.f_locals[name] for name in written]
                if written
                else [value]
                if event == "return"
                else []
            )
            for tensor in held if is_done else ():
                assert list(tensor.shape) == expected, (before, written)
                compared.add(before)
        last["row"] = frame.f_lineno
        return trace

    last: dict[str, int] = {}
    space: dict[str, Any] = {"__name__": "model"}
    exec(compile(text, "model.py", "exec"), space)
    net = space["Net"](*given)
    sys.settrace(trace)
    try:
        net(torch.rand(sizes))
    finally:
        sys.settrace(None)
    return len(compared)


@pytest.mark.parametrize(("model", "given", "sizes", "names", "expected"), MODELS)
def test_a_run_confirms_the_comments(
    project: Project,
    model: str,
    given: tuple[int, ...],
    sizes: tuple[int, ...],
    names: dict[str, int],
    expected: list[str],
) -> None:
    project()
    text = HEAD + model
    made = commented(text)
    assert re.findall(r"  +#: (.*)", made) == expected
    assert confirmed(made, given, sizes, names) >= len(expected) - 2
    assert commented(made) == made
    shapefix("guard", "model.py", "--remove", "--apply")
    assert Path("model.py").read_text("utf-8") == text


# Changes of IMAGES after which a row gets no comment, or another one.
ROWS = [
    ("self.conv(x)\n", "self.conv(x)  # my own\n", "[B, width, H, W]", False),
    ("self.conv(x)\n", "self.conv(x) \n", "[B, width, H, W]", False),
    ("self.conv(x)\n", "self.conv(x); y = x\n", "[B, width, H, W]", False),
    (
        "        x = self.conv(x)\n",
        "        if len(x) > 3:\n            x = self.conv(x)\n",
        "[B, 3, H, W]",
        False,
    ),
    ("width, 3, padding=1", "width, 3, padding=width", "[B, width, H, W]", False),
    ("n_classes=5", "classes=5, n_classes=5", "[B, n_classes]", True),
    ("return self.head(h)", "return self.head(h).sum()", "[B, n_classes]", False),
    ("(self, x)", "(self, x, *args)", "x [B, 3, H, W]", True),
]


@pytest.mark.parametrize(("old", "new", "comment", "is_written"), ROWS)
def test_rows_with_and_without_a_comment(
    project: Project, old: str, new: str, comment: str, is_written: bool
) -> None:
    project()
    assert old in IMAGES
    text = HEAD + IMAGES.replace(old, new)
    made = commented(text)
    assert (f"#: {comment}\n" in made) == is_written
    assert [row.partition("  #:")[0].rstrip() for row in made.split("\n")] == [
        row.rstrip() for row in text.split("\n")
    ]
    shapefix("guard", "model.py", "--style", "comments", "--remove", "--apply")
    assert Path("model.py").read_text("utf-8") == text


def test_comments_follow_the_code_and_a_formatter(project: Project) -> None:
    project()
    made = commented(HEAD + IMAGES)
    assert commented(
        made.replace("(width, 8, 2", "(width, 7, 2").replace("Linear(8", "Linear(7")
    ) == made.replace("(width, 8, 2", "(width, 7, 2").replace("Linear(8", "Linear(7").replace(
        "[B, 8", "[B, 7"
    )
    formatted = re.sub(r" +#: ", "  #: ", made)
    assert formatted != made
    assert commented(formatted) == formatted


def test_the_line_length_and_the_formatter_of_the_project(project: Project) -> None:
    folder = project()
    aligned = commented(HEAD + IMAGES)
    assert re.search(r"x\):  +#: x .*\n.*conv\(x\)  +#: ", aligned)
    (folder / "pyproject.toml").write_text("[tool.black]\nline-length = 60\n")
    made = commented(HEAD + IMAGES)
    assert all(len(row) <= 60 for row in made.splitlines() if "#:" in row)
    assert not re.search(r"   +#: ", made)
    assert "#: [B, width, H, W]" in made
    assert "#: [B, 8, H // 2, W // 2]" in made


def test_both_styles_and_one_removed(project: Project) -> None:
    project()
    both = HEAD + IMAGES
    made = commented(both)
    shapefix("guard", "model.py", "--apply")
    text = Path("model.py").read_text()
    assert "# shapefix: guard" in text
    assert commented(text) == text
    assert shapefix("guard", "model.py", "--style", "asserts", "--remove", "--apply").code == 0
    assert Path("model.py").read_text() == made
    shapefix("guard", "model.py", "--apply")
    assert shapefix("guard", "model.py:Net", "--remove", "--apply").code == 0
    assert Path("model.py").read_text() == both


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_every_other_byte_stays(project: Project, newline: str) -> None:
    data = ("\ufeff" + HEAD + IMAGES + "# the end \t ").replace("\n", newline).encode()
    path = project(model=data) / "model.py"
    assert shapefix("guard", "model.py", "--style", "comments", "--apply").code == 0
    assert path.read_bytes().count(b"#: ") == 5
    assert shapefix("guard", "model.py", "--remove", "--apply").code == 0
    assert path.read_bytes() == data


def test_a_notebook_and_json(project: Project) -> None:
    folder = project(model=HEAD + IMAGES)
    ran = shapefix("guard", "model.py", "--style", "comments", "--output-format", "json")
    document = json.loads(ran.out)
    assert ran.code == 1
    assert document["guards"][0] == {"function": "Net.forward", "row": "13", "comment": "#: x [B, 3, H, W]"}
    cell: dict[str, object] = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [{**cell, "source": (HEAD + IMAGES).splitlines(True)}], "metadata": {}}
    data = json.dumps({**notebook, "nbformat": 4, "nbformat_minor": 5}).encode()
    path = folder / "model.ipynb"
    path.write_bytes(data)
    assert shapefix("guard", "model.ipynb", "--style", "comments", "--apply").code == 0
    assert path.read_bytes().count(b"#: ") == 5
    assert shapefix("guard", "model.ipynb", "--remove", "--apply").code == 0
    assert path.read_bytes() == data
