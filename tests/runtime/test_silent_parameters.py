"""Parameters that an optimizer misses, and the many scripts that leave some out on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import named, probed, row

from shapefix.repair import edits

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F

x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
"""

LATE = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU())
optimizer = torch.optim.AdamW(model.parameters())  # fault
head = nn.Linear(32, 3)  # born
for _ in range(9):
    F.cross_entropy(head(model(x)), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""

FORGOTTEN = """
projection, model = nn.Linear(8, 4), nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(model.parameters())  # fault
for _ in range(9):
    F.cross_entropy(model(projection(x)), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""

REPLACED = """
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1000))
optimizer = torch.optim.SGD(model.parameters(), 0.1)  # fault
model[2] = nn.Linear(32, 3)  # born
for _ in range(9):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""

RIGHT = {
    "two optimizers": """
generator = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8))
critic = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
of_generator = torch.optim.Adam(generator.parameters(), 2e-4)
of_critic = torch.optim.Adam(critic.parameters(), 2e-4)
judge = nn.BCEWithLogitsLoss()
for _ in range(3):
    of_critic.zero_grad()
    fake = generator(torch.randn(16, 8))
    judge(critic(x), torch.ones(16, 1)).backward()
    judge(critic(fake.detach()), torch.zeros(16, 1)).backward()
    of_critic.step()
    of_generator.zero_grad()
    judge(critic(fake), torch.ones(16, 1)).backward()
    of_generator.step()
""",
    "a frozen backbone": """
backbone, head = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16)), nn.Linear(16, 3)
for parameter in backbone.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(head.parameters(), 0.1)
for _ in range(3):
    F.cross_entropy(head(backbone(x)), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "a backbone that the optimizer is not given": """
backbone, head = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 16)), nn.Linear(16, 3)
optimizer = torch.optim.SGD(head.parameters(), 0.1)
for _ in range(3):
    F.cross_entropy(head(backbone(x)), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "adapters of low rank": """
class Adapted(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.down.T @ self.up.T

model = nn.Sequential(Adapted(nn.Linear(8, 32)), nn.ReLU(), Adapted(nn.Linear(32, 3)))
optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad])
for _ in range(3):
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "tied weights, unused heads and accumulation": """
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.head.weight = self.words.weight
        self.pooler = nn.Linear(16, 16)

    def forward(self, ids):
        hidden = self.words(ids)
        self.pooler(hidden[:, 0])
        return self.head(hidden)

model, ids = Tied(), torch.randint(0, 50, (4, 7))
optimizer = torch.optim.AdamW(model.parameters())
for number in range(8):
    loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()) / 4
    loss.backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
""",
    "experts that got nothing, and a teacher": """
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(8, 4), nn.ModuleList(nn.Linear(8, 3) for _ in range(4))

    def forward(self, x):
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros(len(x), 3)
        for number, expert in enumerate(self.experts):
            rows = (chosen == number) & (number != 3)
            if rows.any():
                out[rows] = weight[rows, None] * expert(x[rows])
        return out

teacher, model = nn.Linear(8, 3), Experts()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    with torch.no_grad():
        wanted = teacher(x).softmax(-1)
    F.kl_div(model(x).log_softmax(-1), wanted, reduction="batchmean").backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "a closure": """
model = nn.Linear(8, 3)
optimizer = torch.optim.LBFGS(model.parameters())

def closure():
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    return loss

for _ in range(3):
    optimizer.step(closure)
""",
}


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        (
            LATE,
            "missed-parameters",
            "no optimizer has `weight`, `bias` (constructed after the optimizer): they get",
        ),
        (
            FORGOTTEN,
            "missed-parameters",
            "no optimizer has `weight`, `bias`: they get gradients but never change",
        ),
        (
            REPLACED,
            "orphaned-parameters",
            "has 2 parameters that no module has anymore, but not `2.weight`",
        ),
    ],
)
def test_what_the_optimizer_misses(script: str, kind: str, said: str, tmp_path: Path) -> None:
    script = HEAD + script
    ran = probed(tmp_path, script)
    assert [(each.code, each.name, each.span.row) for each in ran.found] == [
        (*named(kind), row(script, "fault"))
    ]
    (found,) = ran.found
    assert said in found.message
    if "# born" in script:
        assert row(script, "born") in [step.span.row for step in found.evidence]


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_left_out_on_purpose(name: str, tmp_path: Path) -> None:
    ran = probed(tmp_path, HEAD + RIGHT[name])
    assert ran.found == [], ran.text
    assert ran.run.trained, ran.run.process.output


PARTS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(8, 999), nn.Linear(999, 9), nn.Linear(9, 2)

    def forward(self, x):
        return self.head(self.second(self.first(x)))

class Training:
    def __init__(self):
        self.net = Net()
        net, parts = self.net, [self.net.first, self.net.second]
        self.optimizer = torch.optim.SGD(GIVEN, lr=0.1)

    def run(self):
        for _ in range(3):
            self.optimizer.zero_grad()
            self.net(torch.randn(4, 8)).sum().backward()
            self.optimizer.step()

Training().run()
"""


@pytest.mark.parametrize(
    ("given", "repaired"),
    [
        ("[*net.first.parameters(), *net.second.parameters()]", "net.parameters()"),
        ("list(net.first.parameters()) + list(net.second.parameters())", "net.parameters()"),
        ("params=[*self.net.first.parameters(), *parts[1].parameters()]", ""),
        (
            "params=[*self.net.first.parameters(), *self.net.second.parameters()]",
            "params=self.net.parameters()",
        ),
        ("[p for each in parts for p in each.parameters()]", ""),
        ("[{'params': net.first.parameters()}, {'params': net.second.parameters(), 'lr': 1}]", ""),
        ("[*net.first.parameters(), *self.net.second.parameters()]", ""),
    ],
)
def test_the_optimizer_gets_the_parameters_of_the_whole_model(
    tmp_path: Path, given: str, repaired: str
) -> None:
    script = PARTS.replace("GIVEN", given)
    (found,) = probed(tmp_path, script).found
    assert found.code == "SF605"
    if not repaired:
        assert found.fixes == ()
        return
    text, _, _ = edits.apply(script, found.fixes)
    assert text == PARTS.replace("GIVEN", repaired)
    assert probed(tmp_path, text).found == []
