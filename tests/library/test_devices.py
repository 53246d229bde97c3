"""Which operands of two devices torch refuses, asked of torch itself with a GPU that is not there."""

from __future__ import annotations

import functools
import json
import mmap
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from checking import Check

PRETENDED = Path(__file__).resolve().parents[1] / "rules" / "pretended_gpu.py"
HEAD = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

c, g = torch.ones(3), torch.ones(3).cuda()
one, many = torch.tensor(2.0), torch.ones(1)
ci, gi = torch.tensor([0, 1]), torch.tensor([0, 1]).cuda()
matrix, gm = torch.ones(3, 3), torch.ones(3, 3).cuda()
"""
OPERATIONS = (
    *(f"{left} {sign} {right}" for sign in ("+", "-", "*", "/", "**", "<", "==", "@")
      for left, right in (("c", "g"), ("g", "c"), ("g", "g"), ("c", "c"))),
    "one * g", "g * one", "g.sum() + one", "c + g.sum()", "many * g", "g.mean() * many", "g + 1.0",
    "torch.add(g, c)", "torch.maximum(g, one)", "torch.maximum(g, c)", "g.mul(c)", "g.pow(c)",
    *(f"torch.{name}(g, {other})" for other in ("c", "g", "one")
      for name in ("copysign", "heaviside", "hypot", "isclose", "logaddexp", "xlogy")),
    "torch.where(g > 0, g, c)", "torch.where(c > 0, g, g)", "torch.where(g > 0, g, one)",
    "g.masked_fill(c > 0, 0.0)", "g.masked_fill(g > 0, 0.0)", "g.masked_fill(g > 0, one)",
    "torch.cat([c, g])", "torch.cat([g, g])", "torch.stack([c, g])", "torch.stack([c, c])",
    "g[ci]", "g[c > 0]", "g[gi]", "g[torch.tensor(1)]", "c[ci]",
    "g.gather(0, ci)", "g.gather(0, gi)", "g.index_select(0, ci)", "g.index_select(0, gi)",
    "g.scatter(0, ci, 1.0)", "g.scatter_add(0, gi, c[:2])",
    "torch.matmul(matrix, gm)", "gm.mm(matrix)", "gm @ g", "torch.einsum('i,j->ij', c, g)",
    "torch.einsum('i,j->ij', g, g)", "torch.cdist(matrix, gm)",
    "F.linear(c, gm)", "F.linear(g, gm)", "F.embedding(ci, gm)", "F.embedding(gi, gm)",
    "F.cross_entropy(gm[:2], ci)", "F.cross_entropy(gm[:2], gi)",
    "F.cross_entropy(gm[:2], gi, weight=c)", "F.cross_entropy(gm[:2], gi, weight=g)",
    "F.mse_loss(g, c)", "F.mse_loss(g, g)", "F.binary_cross_entropy_with_logits(g, c)",
    "nn.CrossEntropyLoss(weight=c)(gm[:2], gi)", "nn.CrossEntropyLoss(weight=c).cuda()(gm[:2], gi)",
    "nn.CrossEntropyLoss()(gm[:2], gi)", "nn.MSELoss()(g, c)",
    "nn.Linear(3, 2).cuda()(c)", "nn.Linear(3, 2)(g)", "nn.Linear(3, 2).cuda()(g)", "nn.Linear(3, 2)(c)",
    "nn.Linear(3, 2).cuda().cpu()(c)", "nn.Linear(3, 2).to('cuda')(g)", "nn.Linear(3, 2, device='cuda')(c)",
    "nn.Embedding(4, 3).cuda()(ci)", "nn.Embedding(4, 3)(gi)", "nn.LayerNorm(3).cuda()(c)",
    "nn.LayerNorm(3, elementwise_affine=False).cuda()(c)", "nn.BatchNorm1d(3).cuda()(matrix)",
    "nn.ReLU().cuda()(c)", "nn.Dropout().cuda()(c)", "nn.Flatten()(gm)",
    "nn.Sequential(nn.ReLU(), nn.Linear(3, 2)).cuda()(c)", "nn.Sequential(nn.Linear(3, 2)).cuda()(g)",
    "nn.LSTM(3, 4).cuda()(matrix)", "nn.LSTM(3, 4).cuda()(gm)",
    "g.copy_(c)", "g.expand_as(matrix)", "c.to(g) + g", "c.to(g.device) + g", "g.cpu() + c",
    "torch.zeros_like(g) + g", "torch.zeros_like(g) + c", "g.new_zeros(3) + g", "g.new_tensor([1.0]) + c",
    "torch.zeros(3, device=g.device) + g", "torch.zeros(3, device=c.device) + g",
    "g.float().view(3, 1) + matrix", "g.softmax(0)[None] * matrix", "g.unsqueeze(0).expand(3, 3) + gm",
    "torch.arange(3) + g", "torch.arange(3, device='cuda') + g", "torch.tensor([1.0, 2.0, 3.0]) + g",
    "c.view(1, 1, 1, 3).to('cuda', memory_format=torch.channels_last) + g",
    "torch.tensor(c) + g", "torch.rand(3).cuda() + g", "torch.randn(3, device=torch.device('cuda')) + g",
)  # fmt: skip


LOOP_OF_MODULES = """\
import torch
from torch import nn


class Cache:
    def __init__(self):
        self.kv = None

    def copy(self, other):
        {copied}

    def insert(self, k):
        if self.kv is None:
            self.kv = torch.empty((2, 8), device=k.device)
        self.kv[:] = k
        return self.kv


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, cache):
        return self.linear(cache.insert(x))


class Net(nn.Module):
    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(blocks)])

    def forward(self, x, cache):
        for block in self.blocks:
            x = x + block(x, cache)
        return x


def empty(device):
    return torch.empty((2, 8), device=device)


net, first, second = Net(12){place}, Cache(), Cache()
with torch.no_grad():
    net(torch.randn(2, 8){place}, first)
    second.copy(first)
    net(torch.randn(2, 8){place}, second)
"""
COPIES = (
    "device = other.kv.device; self.kv = torch.empty((2, 8), device=device)",
    "self.kv = empty(other.kv.device)",
    "self.kv = empty(device=getattr(other.kv, 'device'))",
    "self.device = other.kv.device; self.kv = empty(self.device)",
    "self.kv = torch.empty((2, 8)).to(other.kv.device)",
)


def errors_of(programs: tuple[str, ...]) -> list[list[str]]:
    """The messages of the exceptions of each program on the fake GPU."""
    texts = [[program, ""] for program in programs]
    ran = subprocess.run(
        [sys.executable, str(PRETENDED)], input=json.dumps(texts), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return [
        [message for found in errors.values() for message in found] for errors, _, _ in json.loads(ran.stdout)
    ]


@functools.cache
def refusals() -> list[list[str]]:
    """The exceptions of torch that refuse each operation for its devices."""
    messages = errors_of(tuple(HEAD + operation for operation in OPERATIONS))
    told = ("same device", "Could not run 'aten::empty_strided' with arguments from the 'CUDA' backend")
    assert all(any(part in message for part in told) for found in messages for message in found), messages
    return messages


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(OPERATIONS)), ids=OPERATIONS)
def test_what_torch_refuses_is_found_and_nothing_else(number: int, check: Check) -> None:
    text = f"{HEAD}y = {OPERATIONS[number]}\n"
    found = check(text, {"SF602"})
    assert bool(found) == bool(refusals()[number])
    # The pretended GPU runs recurrent layers and some products without their own check of the devices.
    if found and "LSTM" not in OPERATIONS[number] and "aten::" not in refusals()[number][0]:
        assert found[0].error is not None
        assert found[0].error.message in refusals()[number][0]


ON_GPU = [
    "nn.Conv2d(3, 4, 3).cuda()(torch.ones(2, 3, 8, 8))",
    "nn.Conv1d(3, 4, 3)(torch.ones(2, 3, 8).cuda())",
    "nn.ConvTranspose2d(3, 4, 3, bias=False).cuda()(torch.ones(2, 3, 8, 8))",
    "nn.LSTM(3, 4).cuda()(torch.ones(2, 2, 3))",
    "nn.GRU(3, 4).cuda()(torch.ones(2, 2, 3).cuda(), torch.zeros(1, 2, 4))",
]
"""Layers that check the devices of their input themselves: a pretended GPU does not."""


@pytest.mark.parametrize("layer", ON_GPU)
def test_the_words_of_layers_with_a_check_of_their_own(layer: str, check: Check) -> None:
    """Look for the words in torch's library; on a GPU, also in the exception."""
    (found,) = check(f"{HEAD}{layer}\n", {"SF602"})
    assert found.error is not None
    library = next((Path(torch.__file__).parent / "lib").glob("*torch_cpu.*"))
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as words:
        # The library has the message in parts: names and types are put between them.
        for part in re.split(r"\.\.\.|\bparameter\b|\bhidden\b", found.error.message):
            assert words.find(part.encode()) > 0
    if torch.cuda.is_available():
        pattern = ".*".join(map(re.escape, found.error.message.split("...")))
        with pytest.raises(RuntimeError, match=pattern):
            exec(f"{HEAD}{layer}\n", {})


MODEL = """\
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.linear = nn.Linear(3, 2).to({where})

    def rows(self):
        return torch.ones(2, 3).to({where})

model = Model("cuda" if flag else "cpu")
def run():
    torch.ones(2, 3) + model.rows()
"""


@pytest.mark.parametrize(
    ("where", "text", "condition"),
    [
        ("self.device", "`self.device` (line 11)", "`self.device` is a GPU"),
        ("'cuda'", "`'cuda'`", None),
        ("'cuda' if torch.cuda.is_available() else 'cpu'", "the GPU", "a GPU is available"),
    ],
)
def test_the_device_of_another_function_is_named_with_its_place(
    where: str, text: str, condition: str | None, check: Check
) -> None:
    (found,) = check(MODEL.replace("{where}", where), {"SF602"})
    assert found.message.endswith(f"`model.rows()` is on {text}")
    assert (found.condition and found.condition.text) == condition


@pytest.mark.slow
def test_a_device_read_from_a_lost_tensor_is_not_another_one(check: Check) -> None:
    programs = tuple(
        LOOP_OF_MODULES.format(copied=copied, place=place) for copied in COPIES for place in ("", ".cuda()")
    )
    assert errors_of(programs) == [[] for _ in programs]
    for program in programs:
        assert not check(program, {"SF602", "SF603"}), program


def test_a_device_of_a_setting_is_one_that_the_user_chooses(check: Check) -> None:
    text = """
    import torch

    class Trainer:
        def __init__(self, args, model, other):
            self.args, self.model, self.other = args, model, other

        def step(self, x):
            return {moved} + torch.ones(2, 3)
    """
    for moved, found in (
        ("torch.ones(2, 3).to(self.args.device)", True),
        ("torch.ones(2, 3).to(self.device)", True),
        ("torch.ones(2, 3).to(self.other.device)", False),
        ("torch.ones(2, 3).to(self.other.rows.device)", False),
        ("torch.ones(2, 3).to(self.model(x).device)", False),
    ):
        assert bool(check(textwrap.dedent(text).replace("{moved}", moved), {"SF602"})) == found, moved


@pytest.mark.parametrize("namespace", ["torch", "torch.cuda"])
@pytest.mark.parametrize("kind", ["FloatTensor", "LongTensor", "HalfTensor"])
def test_a_legacy_type_names_a_device(namespace: str, kind: str, check: Check) -> None:
    legacy = f"{namespace}.{kind}"
    is_cuda = functools.reduce(getattr, legacy.split(".")[1:], torch).is_cuda
    for source in ("torch.ones(3)", "torch.ones(3, dtype=torch.long)", "torch.ones(3).cuda()"):
        for other in ("torch.ones(3)", "torch.ones(3).cuda()"):
            found = check(f"import torch\n\nmoved = {source}.type({legacy})\nmoved + {other}\n", {"SF602"})
            assert bool(found) == (is_cuda != other.endswith("cuda()")), (source, other)


SWITCHED = """
import torch
from torch import nn

USE_GPU = False


def moved(tensor):
    if USE_GPU:
        device = torch.device("cuda:0")
        tensor = tensor.to(device)
    return tensor


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 8)

    def forward(self, x):
        return self.gru(x, {state})[0]


net = Net()
if USE_GPU:
    net.cuda()
y = net(moved(torch.rand(3, 2, 8)))
print(torch.cuda.is_available())
"""


def test_a_constant_switches_all_moves_to_a_gpu(check: Check) -> None:
    right = SWITCHED.format(state="moved(torch.zeros(1, 2, 8))")
    exec(right, {})
    assert not check(right, {"SF602", "SF603"})
    assert [found.code for found in check(SWITCHED.format(state="torch.zeros(1, 2, 8)"))] == ["SF603"]
