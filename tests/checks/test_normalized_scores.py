"""SF513: the repair changes no other use of the probabilities."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Applicability
from shapefix.report.folding import folded

HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

net = nn.Linear(8, 3)
x, labels = torch.randn(4, 8), torch.tensor([0, 1, 2, 0])

def steps():
"""


@pytest.mark.parametrize(
    ("code", "repair"),
    [
        ("y = F.softmax(net(x), dim=1)\nF.cross_entropy(y, labels)", "net(x)"),
        ("y = net(x)\ny = F.softmax(y, dim=1)\nF.cross_entropy(y, labels)", ""),
        # Only the loss gets the scores.
        ("y = net(x)\nz = F.softmax(y, dim=1)\nF.cross_entropy(z, labels)", "y"),
        ("y = net(x)\nz = F.softmax(y, dim=1)\nF.cross_entropy(z, labels)\nprint(z)", "y"),
        ("y = net(x)\nz = y.softmax(1)\nnn.CrossEntropyLoss()(z.float(), labels)\nz.argmax(1)", "y"),
        # The order of scores is that of their probabilities.
        ("y = net(x).softmax(1)\nF.cross_entropy(y, labels)\ny.argmax(1)", "net(x)"),
        ("y = net(x).softmax(1)\nF.cross_entropy(y, labels)\n_, best = torch.max(y.data, 1)", "net(x)"),
        ("y = net(x).softmax(1)\nF.cross_entropy(y, labels)\ny.topk(2).indices, y.max(1)[1]", "net(x)"),
        # Their values are not.
        ("y = net(x).softmax(1)\nF.cross_entropy(y, labels)\nsure, best = y.max(1)", None),
        ("y = net(x).softmax(1)\nF.cross_entropy(y, labels)\n_, best = torch.max(x.sum() * y, 1)", None),
        ("y = net(x)\nz = y.softmax(1)\ny = z + 1\nF.cross_entropy(z, labels)", None),
        ("y = net(x)\nz = y.softmax(1)\nfor y in z:\n    y.sum()\nF.cross_entropy(z, labels)", None),
        ("y = net(x).softmax(1).cpu()\nF.cross_entropy(y, labels)\nprint(y.numpy())", None),
        ("y = net(x)\nif y.sum() > 0:\n    y = y.softmax(1)\nF.cross_entropy(y, labels)", None),
    ],
)
def test_other_uses_of_probabilities_keep_them(check: Check, code: str, repair: str | None) -> None:
    (finding,) = check(HEAD + textwrap.indent(code, "    ") + "\n\nsteps()\n", {"SF513"})
    (fix,) = finding.fixes
    if repair is None:
        assert fix.applicability is Applicability.DISPLAY
    else:
        assert fix.applicability is Applicability.UNSAFE
        assert "".join(edit.content for edit in fix.edits) == repair


@pytest.mark.parametrize(("dim", "codes"), [(0, ["SF515", "SF513"]), (1, ["SF513"])])
def test_a_softmax_over_the_batch_is_one_entry(check: Check, dim: int, codes: list[str]) -> None:
    code = f"    F.cross_entropy(F.softmax(net(x), dim={dim}), labels)\n\nsteps()\n"
    (entry,) = folded(check(HEAD + code, {"SF513", "SF515"}))
    assert [each.code for each in (entry.first, *entry.others)] == codes


def test_a_name_of_an_unknown_module_is_no_tensor(check: Check) -> None:
    code = (
        "from torch import nn\nfrom fastai.vision import *\nloss = nn.CrossEntropyLoss()\n\n\n"
        "def train(scores, labels):\n    return loss(F.softmax(scores, dim=1), labels)\n"
    )
    assert check(code) == []
    (found,) = check(code.replace("fastai.vision import *", "torch.nn import functional as F"), {"SF513"})
    assert [edit.content for edit in found.fixes[0].edits] == ["scores"]


POLICY = """
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def METHOD(self, x):
        return F.softmax(self.fc(x), dim=1)


probabilities = Net().METHOD(torch.randn(8, 4))
print(-(probabilities * torch.log(probabilities)).sum(1).mean())
print(F.kl_div(probabilities, torch.full((8, 2), 0.5)))
"""


@pytest.mark.parametrize(("method", "edits"), [("forward", ["log_softmax"]), ("policy", [])])
def test_the_probabilities_of_a_policy_are_kept(method: str, edits: list[str], check: Check) -> None:
    (finding,) = check(POLICY.replace("METHOD", method), {"SF514"})
    assert [edit.content for fix in finding.fixes for edit in fix.edits] == edits


def test_exchanged_arguments_of_a_divergence_are_exchanged_again(check: Check) -> None:
    head = "import torch\nimport torch.nn.functional as F\nscores = torch.rand(3, 4, requires_grad=True)\n"
    known, other = "F.softmax(scores, dim=1)", "F.log_softmax(torch.rand(3, 4), dim=1)"
    (found,) = check(f"{head}F.kl_div({known}, {other}).backward()\n", {"SF514"})
    assert [edit.content for edit in found.fixes[0].edits] == [other, known]
    assert not check(f"{head}F.kl_div({other}, {known}).backward()\n", {"SF514"})
