"""Programs that run: what a rule says about torch does not hold in them."""

from __future__ import annotations

import pytest
from checking import Check

IDS = "scores = torch.rand(3, 2)\nids = torch.tensor([0, 255, 1])\n"
LOADER = """
data = TensorDataset(torch.rand(33, 4))
norm = nn.BatchNorm1d(4)
for number, (rows,) in enumerate(DataLoader(data, batch_size=32)):
"""
PROGRAMS = {
    "ids masked": f"{IDS}ids[ids == 255] = -100\nF.cross_entropy(scores, ids)",
    "ids filled": f"{IDS}ids.masked_fill_(ids == 255, -100)\nF.cross_entropy(scores, ids)",
    "ids into out": f"{IDS}torch.clamp(ids, max=1, out=ids)\nF.cross_entropy(scores, ids)",
    "one batch of two": f"{LOADER}    if number == 1:\n        break\n    norm(rows)",
    "few batches of many": f"{LOADER}    norm(rows)\n    if number >= 0:\n        break",
    "a state detached in place": """
rnn = nn.GRU(4, 6, batch_first=True)
state = torch.zeros(1, 3, 6)
for (rows,) in DataLoader(TensorDataset(torch.rand(12, 4)), 3):
    state.detach_()
    out, state = rnn(rows.unsqueeze(1), state)
    out.mean().backward()
""",
    "sigmoid in place": """
out = torch.sigmoid_(nn.Linear(3, 1)(torch.rand(4, 3)))
nn.BCELoss()(out, torch.ones(4, 1)).backward()
out = nn.Linear(3, 1)(torch.rand(4, 3)).sigmoid_()
nn.BCELoss()(out, torch.ones(4, 1)).backward()
""",
    "one line": """
rows = torch.rand(2, 5)
try: out = nn.Linear(4, 2)(rows)
except RuntimeError: out = nn.Linear(5, 2)(rows)
""",
    "own context": """
class Quiet:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True

with Quiet():
    torch.zeros(3, 4).view(5)
""",
    "text of statements": """
width = 4
exec(" ".join(["width", "=", "10"]))
nn.Linear(width, 1)(torch.zeros(2, 10))
""",
    "an optimizer for each of a few models": """
models = [nn.Linear(4, 1) for _ in range(len("abc"))]
optimizers = [torch.optim.SGD(each.parameters(), 0.1) for each in models]
for _ in range(30):
    losses = []
    for i in range(len(models)):
        losses.append(models[i](torch.rand(8, 4)).mean())
        optimizers[i].zero_grad()
        losses[i].backward()
        optimizers[i].step()
""",
}
IMPORTS = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
IMPORTS += "from torch.utils.data import DataLoader, TensorDataset\n"


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_runs_has_no_finding(program: str, check: Check) -> None:
    pytest.importorskip("torch")
    source = IMPORTS + PROGRAMS[program]
    exec(compile(source, "program.py", "exec"), {"__name__": "program"})
    assert not check(source)


def test_several_gpus_share_a_batch(check: Check) -> None:
    source = """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids):
        return self.table(ids).view(3, 4)

nn.DataParallel(Part().cuda(), device_ids=DEVICES)(torch.tensor([1] * 6).cuda())
"""
    assert not check(IMPORTS + source.replace("DEVICES", "[0, 1]"))
    assert check(IMPORTS + source.replace("DEVICES", "[0]"))
