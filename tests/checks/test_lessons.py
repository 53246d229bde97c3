"""Errors that a lesson announces, and unwritten parts of a template: held back in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

LINE = """\
import torch

a, b = torch.rand(2, 3), torch.rand(4, 5)
{before}
c = a @ b{beside}
print(c)
"""
ANNOUNCING = (
    "# This raises an error, because the inner sizes differ:",
    "# RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    "# will fail!",
    "# the next line does not work",
    "# Error: sizes do not match",
    "# This results in an exception",
    "# torch would throw an error here",
)
SILENT = (
    "# compute the error",
    "# error term",
    "# raises the precision",
    "# the error is small",
    "# get the features and the labels",
    "# product of a and b",
)
TEMPLATE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 20, batch_first=True)
        self.fc = nn.Linear(10, 2)

    def forward(self, x):
        {part}
        return self.fc(x)


Net()(torch.rand(2, 5, 10)[..., :8])
"""
UNFINISHED = (
    "# YOUR CODE HERE\n",
    "# TODO: implement\n        pass",
    "### START CODE HERE ###\n        y = None\n        ### END CODE HERE ###",
    "# Fill in this part\n        ...",
    "# write your code here\n        #\n",
)
FINISHED = (
    "### START CODE HERE ###\n        y = x + 1\n        ### END CODE HERE ###",
    "# YOUR CODE HERE\n        y = x + 1",
    "# TODO: faster\n",
    "text = '# YOUR CODE HERE'\n",
)
CELLS = """\
import torch

a, b = torch.rand(4, 4), torch.rand(5, 4)

# In[{number}]:


{code}
"""


def reasons(folder: Path, text: str) -> list[str]:
    """The assumptions of the findings in a script; "" for one that is reported."""
    (folder / "train.py").write_text(text, "utf-8")
    session = CheckSession((str(folder),), Settings(CheckOptions(use_cache=False))).run()
    return [each.reservation for each in (*session.findings(), *session.hidden())]


@pytest.mark.parametrize("comment", ANNOUNCING)
@pytest.mark.parametrize("is_beside", [False, True])
def test_an_announced_error_is_held_back(tmp_path: Path, comment: str, is_beside: bool) -> None:
    text = LINE.format(before="" if is_beside else comment, beside=f"  {comment}" if is_beside else "")
    row = 5 if is_beside else 4
    assert reasons(tmp_path, text) == [f"the comment in line {row} announces an exception"]


@pytest.mark.parametrize("comment", SILENT)
def test_other_comments_announce_nothing(tmp_path: Path, comment: str) -> None:
    assert reasons(tmp_path, LINE.format(before=comment, beside="")) == [""]
    assert reasons(tmp_path, LINE.format(before="", beside=f"  {comment}")) == [""]


def test_a_named_file_is_reported(tmp_path: Path) -> None:
    reasons(tmp_path, LINE.format(before="# will fail", beside=""))
    session = CheckSession((str(tmp_path / "train.py"),), Settings(CheckOptions(use_cache=False))).run()
    assert [each.code for each in session.findings()] == ["SF503"]


@pytest.mark.parametrize("part", UNFINISHED)
def test_a_template_is_held_back(tmp_path: Path, part: str) -> None:
    assert reasons(tmp_path, TEMPLATE.format(part=part)) == ["the code has a part to fill in at line 12"]


@pytest.mark.parametrize("part", FINISHED)
def test_a_finished_template_is_reported(tmp_path: Path, part: str) -> None:
    assert reasons(tmp_path, TEMPLATE.format(part=part)) == [""]


@pytest.mark.parametrize(
    ("code", "is_shown"),
    [("a + b", True), ("torch.cat([a, b], 1)", True), ("c = a + b", False), ("print(a + b)", False)],
)
def test_a_cell_that_only_shows_a_result_is_held_back(tmp_path: Path, code: str, is_shown: bool) -> None:
    reason = "the cell only shows a result: its author has seen the exception"
    assert reasons(tmp_path, CELLS.format(number=12, code=code)) == [reason if is_shown else ""]
    assert reasons(tmp_path, CELLS.format(number=12, code=code).replace("# In", "# Part")) == [""]


@pytest.mark.parametrize(("code", "is_shown"), [("a + b", True), ("c = a + b", False)])
def test_a_cell_that_shows_two_devices_is_held_back(tmp_path: Path, code: str, is_shown: bool) -> None:
    text = CELLS.format(number=12, code=code).replace("torch.rand(5, 4)", "torch.rand(4, 4).cuda()")
    reason = "the cell only shows a result: its author has seen the exception"
    assert reasons(tmp_path, text) == [reason if is_shown else ""]
