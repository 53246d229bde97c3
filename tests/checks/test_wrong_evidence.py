"""Code that runs is not reported: what it tests, what it cannot reach, what happens to have a size of 1."""

from __future__ import annotations

import pytest
from checking import Check

HEAD = """
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
"""
RUNS = {
    "a branch that tests a size": """
class Up(nn.Module):
    def __init__(self, channels, skipped):
        super().__init__()
        self.skipped = skipped
        self.conv = nn.Conv2d(channels + skipped, 4, 3)

    def forward(self, x, skip):
        x = F.conv2d(x, torch.ones(channels := self.conv.in_channels - self.skipped, 3, 1, 1))
        if self.skipped == 0:
            return self.conv(x)
        return self.conv(torch.cat([x, skip], 1))

def run():
    Up(5, 0)(torch.ones(1, 3, 8, 8), None)
    Up(5, 2)(torch.ones(1, 3, 8, 8), torch.ones(1, 2, 8, 8))
""",
    "a branch that tests the rank of an array": """
def flat(x):
    y = nn.Linear(16, 5)(x)
    if len(y.cpu().data.numpy().shape) == 1 or y.detach().numpy().ndim == 1:
        y = y.view(1, y.shape[0])
    return y

def run():
    flat(torch.ones(100, 16))
""",
    "a branch that tests the size of an array": """
def picture(x):
    return x.view(28, 28) if x[0].cpu().data.numpy().size == 784 else x[0].permute(1, 2, 0)

def run():
    picture(torch.ones(10, 3, 64, 64))
""",
    "a batch that is a dictionary": """
class Rows(Dataset):
    def __getitem__(self, item):
        return {"image": torch.zeros(3, 8, 8), "length": 3}

    def __len__(self):
        return 20

def moved(x):
    if isinstance(x, dict):
        return {key: value.to("cpu") for key, value in x.items()}
    if isinstance(x, list):
        return [value.to("cpu") for value in x]
    return x.to("cpu")

def run():
    for batch in DataLoader(Rows(), batch_size=10):
        moved(batch)
""",
    "a batch of one sample": """
def rows(x):
    y, _ = nn.LSTM(40, 8, batch_first=True)(nn.Linear(40, 40)(x))
    t, n = y.size(0), y.size(1)
    return y.transpose(1, 2).view(t * 8, -1)

def train(utterances):
    for utterance in utterances:
        rows(torch.from_numpy(utterance).unsqueeze_(0))

def run():
    train([np.ones((17, 40), dtype="float32")])
""",
    "a kernel as long as its input": """
def attend(x):
    x = F.max_pool1d(nn.Conv1d(5, 4, 3, padding=1)(x), 2, 2)
    return x + nn.Conv1d(4, 4, 75)(x)

def run():
    attend(torch.ones(2, 5, 150))
""",
    "slices that get a graph in a loop": """
class Sparse(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size
        self.layers = [nn.Linear(1, 2) for _ in range(size)]

    def forward(self, x):
        y = torch.zeros(x.shape[0], self.size)
        for i in range(self.size - 1):
            y[:, i : i + 2] += self.layers[i](x[:, i : i + 1])
        return torch.relu(y)

def run():
    nn.MSELoss()(Sparse(6)(torch.rand(4, 6)), torch.rand(4, 6)).backward()
""",
    "a moved dimension of size 1": """
def padded(images):
    n, h, w, c = images.shape
    images = images.view(n, c, h, w)
    return nn.Conv2d(1, 4, 3)(images.squeeze().unsqueeze(1))

def run():
    images = torch.rand(2, 5, 6, 1)
    assert images.view(2, 1, 5, 6).equal(images.permute(0, 3, 1, 2))
    padded(images)
""",
    "a slice of one channel": """
def alive(x):
    b, c, h, w = x.shape
    return x * x[:, 3:4] + x[:, 3:4].expand(b, c, h, w)

def run():
    alive(torch.rand(2, 16, 8, 8))
""",
    "a tensor of a tensor": """
def run():
    positions = torch.Tensor(torch.arange(5).expand(2, 5))
    assert positions.dtype == torch.int64
    nn.Embedding(9, 3)(positions)
""",
    "a loop over the frames of a batch": """
def run():
    model, criterion = nn.Linear(4, 4), nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for frames in DataLoader(torch.randn(10, 2, 4), batch_size=5):
        model.zero_grad()
        for i in range(frames.shape[0] - 1):
            loss = criterion(model(frames[i]), frames[i + 1])
            loss.backward()
            optimizer.step()
""",
    "lengths of a CTC loss": """
def run():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, criterion = nn.Linear(8, 5).to(device), nn.CTCLoss(blank=0)
    x, y = torch.randn(3, 20, 8).to(device), torch.randint(1, 5, (3, 6)).to(device)
    h = model(x).log_softmax(-1).permute(1, 0, 2)
    criterion(h, y, torch.tensor([20, 18, 15]), torch.tensor([6, 5, 4]))
    nn.functional.ctc_loss(h, y, torch.tensor([20, 18, 15]), torch.tensor([6, 5, 4]))
""",
    "a weight of a layer with a computed name": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(3, 4, 2), nn.Conv1d(4, 5, 2)

    def forward(self, x):
        return self.conv2(self.conv1(x))

def run():
    net = Net()
    for i, weight in enumerate([torch.rand(4, 8, 2), torch.rand(5, 4, 2)]):
        getattr(net, "conv{:d}".format(i + 1)).weight = nn.Parameter(weight)
    net(torch.rand(2, 8, 9))
""",
    "noise in another shape": """
def noisy(x, channels_last):
    n, h, w, c = x.shape
    noise = np.random.normal(0, 1, (n, c, h, w))
    if channels_last:
        noise = noise.reshape(n, h, w, c)
    return x + torch.from_numpy(noise).numpy() + torch.rand(n, c, h, w).reshape(n, h, w, c).numpy()

def run():
    noisy(np.ones((2, 4, 5, 3)), True)
""",
}


@pytest.mark.parametrize("code", RUNS.values(), ids=RUNS)
def test_code_that_runs_is_not_reported(code: str, check: Check) -> None:
    namespace: dict[str, object] = {}
    exec(HEAD + code, namespace)
    run = namespace["run"]
    assert callable(run)
    run()
    assert not check(HEAD + code)


FAILS = {
    "SF506": """
class Up(nn.Module):
    def __init__(self, channels, skipped):
        super().__init__()
        self.first = nn.Conv2d(3, channels, 3)
        self.conv = nn.Conv2d(channels + 2, 4, 3)
        self.skipped = skipped

    def forward(self, x):
        x = self.first(x)
        if self.skipped == 0:
            return self.conv(x)
        return x

def run():
    Up(5, 0)(torch.ones(1, 3, 8, 8))
""",
    "SF510": """
def attend(x):
    x = F.max_pool1d(nn.Conv1d(5, 4, 3, padding=1)(x), 2, 2)
    return x + nn.Conv1d(4, 4, 3)(x)

def run():
    attend(torch.ones(2, 5, 150))
""",
}


@pytest.mark.parametrize("rule", FAILS)
def test_code_that_fails_still_is(rule: str, check: Check) -> None:
    namespace: dict[str, object] = {}
    exec(HEAD + FAILS[rule], namespace)
    run = namespace["run"]
    assert callable(run)
    with pytest.raises(RuntimeError):
        run()
    assert [found.code for found in check(HEAD + FAILS[rule])] == [rule]


FOREIGN = """
class First(nn.Module):
    pass


class Second(nn.Module):
    def __init__(self, channels):
        super({name}, self).__init__()
        self.conv = nn.Conv2d(channels, 16, 5)
        self.norm = nn.BatchNorm2d(32)

    def forward(self, x):
        return self.norm(self.conv(x))
"""


def test_a_class_without_objects_is_not_reported(check: Check) -> None:
    namespace: dict[str, object] = {}
    exec(HEAD + FOREIGN.format(name="First"), namespace)
    made = namespace["Second"]
    assert callable(made)
    with pytest.raises(TypeError):
        made(3)
    assert not check(HEAD + FOREIGN.format(name="First"))
    assert [found.code for found in check(HEAD + FOREIGN.format(name="Second"))] == ["SF511"]
