"""Findings that say "never" need everything in view; each program has a twin that is still reported."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from checking import Check

HEAD = """
import unittest
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
"""


@dataclass(frozen=True)
class Pair:
    """A program without a finding of a rule, and the replacement that makes the rule report it."""

    rule: str
    code: str
    before: str
    after: str


TRAINING = """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(8, 4), torch.randn(8, 4)), batch_size=4)
for x, y in loader:
    loss = model.loss(x, y)
    loss.backward()
    optimizer.step()
"""
STOPPED = """
class Stopped:
    def __enter__(self):
        torch.set_grad_enabled(False)

    def __exit__(self, *error):
        torch.set_grad_enabled(True)
"""
EVALUATION = """
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2)
net.eval()
right = 0
for (x,) in loader:
    with CONTEXT:
        y = net(x)
    right += y.argmax(1).sum().item()
print(right)
"""
PAIRS = {
    "a base class out of sight clears the gradients": Pair(
        "SF803",
        """\
from layers import Base

class Net(Base):
    def other(self):
        return 3
"""
        + TRAINING,
        """\
class Net(Base):
    def other(self):
        return 3
""",
        """\
class Net(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)

    def loss(self, x, y):
        return F.mse_loss(self(x), y)
""",
    ),
    "a decorated method may clear them": Pair(
        "SF803",
        """\
from tools import traced

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    @traced
    def loss(self, x, y):
        self.zero_grad()
        return F.mse_loss(self.fc(x), y)
"""
        + TRAINING,
        """\
    @traced
    def loss(self, x, y):
        self.zero_grad()
""",
        """\
    def loss(self, x, y):
""",
    ),
    "a weight is replaced before its module moves": Pair(
        "SF602",
        """\
class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return x.mm(self.words.weight.t()), self.fc(x)

model = Words()
model.words.weight.data = torch.from_numpy(np.zeros((5, 4), dtype=np.float32))
model.to("cuda")
model(torch.ones(2, 4).to("cuda"))
""",
        """\
model.to("cuda")
""",
        "",
    ),
    "the fixture of a test case sets the device": Pair(
        "SF602",
        """\
def evaluate(model, x, device):
    return model(x.to(device))

class TestModel(unittest.TestCase):
    def setUp(self):
        self.device = torch.device("cpu")

    def test_model(self):
        evaluate(nn.Linear(4, 2), torch.ones(3, 4), self.device)
""",
        'torch.device("cpu")',
        'torch.device("cuda")',
    ),
    "the fixture of a test case chooses the loader": Pair(
        "SF507",
        """\
class TestBatches(unittest.TestCase):
    def setUp(self):
        self.loader = DataLoader(TensorDataset(torch.ones(8, 4), torch.ones(8, 2)), batch_size=4)

    def test_batches(self):
        for batch in self.loader:
            if isinstance(batch, dict):
                torch.ones(4, 4).view(3, 3)
""",
        "isinstance(batch, dict)",
        "isinstance(batch, list)",
    ),
    "a parameter with an underscore is there to be ignored": Pair(
        "SF402",
        """\
class Dummy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, input_ids, _attention_mask=None, **_kwargs):
        return self.fc(input_ids.float())

Dummy()(input_ids=torch.ones(2, 4), attention_mask=torch.ones(2, 4))
""",
        "_attention_mask",
        "attention_masks",
    ),
    "the first pass skips the branch": Pair(
        "SF503",
        """\
def decode(first, weight, steps):
    last = torch.zeros(3, 1)
    for i in range(steps):
        if i != 0:
            x = last.mm(torch.ones(35, 4))
        else:
            x = torch.ones(3, 4)
        last = x.mm(torch.ones(4, 35))
""",
        "i != 0",
        "i == 0",
    ),
    "the first pass goes on with the next": Pair(
        "SF503",
        """\
def decode(rows):
    last = torch.zeros(3, 1)
    for i, row in enumerate(rows):
        if i % 10 == 0:
            last = torch.ones(3, 35)
            continue
        x = last.mm(torch.ones(35, 4))
        last = x.mm(torch.ones(4, 35))
""",
        "i % 10 == 0",
        "i % 10 == 1",
    ),
    "a backward that the first pass skips": Pair(
        "SF904",
        """\
w = torch.zeros(3, requires_grad=True)
y = torch.ones(5)
x = torch.ones(5, 3)
loss = F.mse_loss(y, x[:, 0])
optimizer = torch.optim.Adam([w])
for step in range(3000):
    if step:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss = F.mse_loss(torch.mv(x, w), y)
""",
        "if step:",
        "if step >= 0:",
    ),
    "a loop moves each module of a list that a branch extends": Pair(
        "SF602",
        """
from settings import extend

class Reader:
    def __init__(self):
        self.words = nn.Embedding(9, 8) if extend else None
        self.encoder, self.out = nn.LSTM(8, 8), nn.Linear(8, 1)

    def to(self, device):
        modules = [self.encoder, self.out]
        if self.words is not None:
            modules.append(self.words)
        for module in modules:
            module.to(device)
        return self

Reader().to("cuda").out(torch.ones(2, 8).to("cuda"))
""",
        "            module.to(device)",
        "            print(module)",
    ),
    "a layer of a list is switched": Pair(
        "SF804",
        """
net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
for part in [net, nn.Linear(4, 4), *map(nn.Identity, range(3))]:
    part.eval()
with torch.no_grad():
    for (x,) in DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2):
        print(net(x))
""",
        "part.eval()",
        "print(part)",
    ),
    "a setting makes the tensor a leaf": Pair(
        "SF607",
        """
from pictures import image

target = image.clone()
target.requires_grad = True
torch.optim.SGD([target], lr=0.1)
""",
        "image.clone()",
        "torch.zeros(3, requires_grad=True).clone()",
    ),
    "layers assigned to a Sequential run after those before": Pair(
        "SF508",
        """
net = nn.Sequential()
net.features = nn.Linear(20, 20)
net.output = nn.Linear(20, 5)
nn.CrossEntropyLoss()(net(torch.rand(4, 20)), torch.zeros(4).long())
""",
        "torch.zeros(4)",
        "torch.zeros(5)",
    ),
    "a conversion copies an expanded tensor": Pair(
        "SF104",
        """
def filled(x):
    inputs = torch.zeros(2, 3).unsqueeze(1).expand(2, 5, 3).type(torch.cuda.FloatTensor)
    inputs[:, 0] = x
    return inputs
""",
        ".type(torch.cuda.FloatTensor)",
        ".type(torch.FloatTensor)",
    ),
    "integers cannot require a gradient": Pair(
        "SF512",
        """
w = torch.tensor([1, 1], requires_grad=True)
print(torch.matmul(torch.rand(4, 2), w))
""",
        ", requires_grad=True",
        "",
    ),
    "a line that shows a value": Pair(
        "SF105",
        """
net = nn.Conv2d(1, 1, (1, 2))
x = net(torch.ones(1, 1, 4, 4))
x.reshape(3, 4)
""",
        "x.reshape(3, 4)\n",
        "x.reshape(3, 4)\nprint(x)\n",
    ),
    "a constructor that raises": Pair(
        "SF506",
        """
class Body(nn.Module):
    def __init__(self):
        self.first = nn.Conv2d(3, 32, 3)
        self.second = nn.Conv2d(64, 10, 1)

    def forward(self, x):
        return self.second(self.first(x))

Body()(torch.rand(2, 3, 8, 8))
""",
        "        self.first =",
        "        super().__init__()\n        self.first =",
    ),
    "a context that is left out": Pair(
        "SF702",
        EVALUATION.replace("CONTEXT", "torch._____"),
        "torch._____",
        "torch.device('cpu')",
    ),
    "a context of the project that stops the recording": Pair(
        "SF702",
        STOPPED + EVALUATION.replace("CONTEXT", "Stopped()"),
        "        torch.set_grad_enabled(False)",
        "        print(3)",
    ),
    "a handler has another way": Pair(
        "SF507",
        """
def flat(x):
    try:
        y = torch.ones(3, 4).view(5)
    except Exception:
        y = torch.ones(3, 4).view(-1)
    return y
""",
        "        y = torch.ones(3, 4).view(-1)",
        "        raise",
    ),
    "the other tensor of a maximum is unknown": Pair(
        "SF406",
        """
from elsewhere import other

def widest(x):
    return nn.Linear(4, 4)(torch.max(torch.ones(2, 4), other))
""",
        "torch.ones(2, 4), other",
        "torch.ones(2, 4), dim=1",
    ),
    "a tensor of an unknown value keeps its dtype": Pair(
        "SF512",
        """
from elsewhere import values

nn.Embedding(9, 4)(torch.Tensor(values))
""",
        "torch.Tensor(values)",
        "torch.FloatTensor(values)",
    ),
    "a method added to a Sequential": Pair(
        "SF506",
        """
net = nn.Sequential()
net.add(nn.Conv2d(3, 16, 1))
net.add_module("last", nn.Conv2d(16, 4, 1))
net(torch.ones(1, 3, 8, 8))
""",
        "net.add(nn.Conv2d(3, 16, 1))\n",
        "",
    ),
    "a result that is moved at the end of a chain": Pair(
        "SF603",
        """
class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, lengths):
        mask = torch.arange(x.shape[1]).view(1, -1) >= lengths.view(x.shape[0], 1)
        mask = mask.unsqueeze(1).to(x.device)
        return self.layer(x).sum(), mask


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x, lengths):
        return self.decoder(x, lengths)


class Samples(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.rand(5, 4), torch.tensor(3)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
net = Net().to(device)
for x, n in DataLoader(Samples(), batch_size=2):
    net(x[:, : n.max()].to(device), n)
""",
        "mask.unsqueeze(1).to(x.device)",
        "mask.unsqueeze(1).float()",
    ),
    "the device of the other tensor": Pair(
        "SF602",
        """
def sums(device=None):
    x = torch.ones(3, device="cuda")
    return torch.ones_like(x, device=device) + x


sums()
""",
        "device=device) + x",
        "device='cpu') + x",
    ),
    "a step of some passes": Pair(
        "SF803",
        """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
every = 8
for epoch in range(3):
    count = 1
    for x, y in DataLoader(TensorDataset(torch.randn(99, 4), torch.zeros(99).long()), batch_size=4):
        loss = F.cross_entropy(model(x), y) / every
        loss.backward()
        if count % every == 0:
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()
        count += 1
""",
        "            optimizer.step()\n",
        "",
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_only_the_twin_is_reported(pair: Pair, check: Check) -> None:
    assert pair.before in pair.code
    assert not check(HEAD + pair.code, {pair.rule})
    twin = pair.code.replace(pair.before, pair.after)
    assert {found.code for found in check(HEAD + twin, {pair.rule})} == {pair.rule}
