"""Random numbers of Python become tensors: sizes and dtypes as torch says."""

from __future__ import annotations

import pytest
from checking import Check
from differential import compare, executed, revealed

MADE = """
[random.random() for _ in range(10)]
[random.uniform(0, 1) for _ in range(4)]
[random.gauss(0.0, 1.0) for _ in range(4)]
[random.random() < 0.5 for _ in range(10)]
[[random.random(), 1.0] for _ in range(3)]
""".strip().splitlines()


@pytest.mark.parametrize("made", MADE)
def test_a_tensor_of_random_numbers_is_that_of_torch(made: str) -> None:
    source = f"import random\nreveal(torch.tensor({made}))"
    compare(revealed(source)[0], executed(source)[0], require_sizes=True)


def test_a_random_number_between_tensors_is_one() -> None:
    source = "import random\nreveal(random.uniform(torch.zeros(3), torch.ones(3)) + torch.zeros(2, 3))"
    compare(revealed(source)[0], executed(source)[0])


def test_rewards_of_a_replay_buffer_have_one_dimension(check: Check) -> None:
    code = """
import random
from collections import deque
import torch
from torch import nn

memory = deque(maxlen=100)
for _ in range(50):
    memory.append((torch.randn(4), random.randrange(2), random.random(), random.random() < 0.1))
net = nn.Linear(4, 2)
states, actions, rewards, done = zip(*random.sample(memory, 8))
states, rewards, done = torch.stack(states), torch.tensor(rewards), torch.tensor(done).float()
chosen = net(states).gather(1, torch.tensor(actions).unsqueeze(1))
target = rewards + 0.9 * net(states).max(1)[0].detach() * (1 - done)
loss = nn.functional.smooth_l1_loss(chosen, target)
"""
    assert [found.code for found in check(code, {"SF509"})] == ["SF509"]
    right = code.replace("smooth_l1_loss(chosen,", "smooth_l1_loss(chosen.squeeze(1),")
    exec(right, {})
    assert not check(right)
