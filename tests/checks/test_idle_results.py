"""SF105 and SF601 where the loss of a result changes nothing, and next to it where it does."""

from __future__ import annotations

import textwrap

import pytest
import torch
from checking import Check

HEAD = """
import time
from time import perf_counter
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Linear(4, 4).to(device)


def interpolate(points, order):
    \"\"\"Move the points themselves.\"\"\"
    order = order + 1
    points = torch.as_tensor(points).to(device)
    return points * order


def compare(points, order):
    if order:
        points = points.to(device)
    return points * order
"""
IDLE = {
    "an expansion before a sum": """
        def f(x: torch.Tensor):
            bias = torch.ones(1, 4)
            bias.expand(8, 4)
            return x + bias
        f(torch.ones(8, 4))
        """,
    "an expansion before a product and an update": """
        def f(x: torch.Tensor):
            scale = torch.ones(4)
            scale.expand_as(x)
            y = scale * x
            y += scale
            return y
        f(torch.ones(8, 4))
        """,
    "a callee that moves its argument": """
        def f(n):
            points = torch.ones(n, 4)
            points.to(device)
            return interpolate(points, 2)
        f(3)
        """,
    "a callee that moves an argument by name": """
        def f(n):
            points = torch.ones(n, 4)
            points.cuda()
            return interpolate(order=2, points=points)
        f(3)
        """,
    "a variable without another use": """
        def f(n):
            unused = torch.ones(n, 4)
            unused.to(device)
            return n
        f(3)
        """,
    "a measured copy": """
        x = torch.ones(8, 4)
        start = time.time()
        x.to(device)
        torch.cuda.synchronize()
        print(time.time() - start)
        y = net(x)
        """,
    "a measured loop": """
        def f(x: torch.Tensor):
            start = perf_counter()
            for _ in range(100):
                x.contiguous()
                x.reshape(-1)
            print(perf_counter() - start)
            return x
        f(torch.ones(8, 4).t())
        """,
    "a profiled line": """
        def f(x: torch.Tensor):
            with torch.profiler.profile() as profiler:
                x.half()
            return x
        f(torch.ones(8, 4))
        """,
    "a cell of a notebook": """
        # %%
        x = torch.ones(8, 4)
        x.view(4, 8)
        # %%
        print(x)
        """,
    "a session that shows values": """
        x = torch.ones(8, 4)
        x.view(4, 8)
        x[0]
        """,
}
IDLE |= {
    "the last use of a variable in each pass": """
        for x in [torch.ones(2, 4)]:
            loss = net(x.to(device)).sum()
            loss.backward()
            loss.detach()
        """,
    "the last use of a variable of a function": """
        def f(x):
            y = torch.ones(3) * 2
            total = y.sum().item()
            y.cpu()
            return total
        f(2)
        """,
    "a move that the last line makes anyway": """
        def f(data, device):
            if isinstance(data, torch.Tensor):
                data.to(device)
            return data.to(device)
        f(torch.ones(3), device)
        """,
    "an item that only a comment reads": """
        for x, y in [(torch.ones(2, 4), torch.ones(2))]:
            y.to(device)
            # print(y)
            print(net(x.to(device)))
        """,
    "an index": """
        def f(x: torch.Tensor):
            order = torch.randperm(8)
            order.to(device)
            return x[order], x[order, 1:]
        f(torch.ones(8, 4))
        """,
    "an index in an attribute": """
        class Mix:
            def __init__(self, n):
                self.index = torch.randperm(n)
                self.index.to(n.device)

            def __call__(self, x):
                x[self.index] = 0.0
                return x[self.index, :2]
        """,
    "weights written in place": """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 1)
                self.linear.weight.data.zero_().to("cuda")

            def forward(self, x):
                return self.linear(x)
        """,
    "a tensor created on the device": """
        class Policy:
            def __init__(self, n):
                self.deviation = nn.Parameter(torch.zeros(n, device=gpu.device))
                self.deviation.to(gpu.device)

            def __call__(self, x):
                return x * self.deviation.exp()
        """,
    "a tensor on the device already": """
        def f(x: torch.Tensor):
            labels = torch.ones(4).to(device)
            labels.cuda()
            return net(x) - labels
        f(torch.ones(8, 4))
        """,
    "an attribute moved where it is used": """
        class Adapter:
            def __init__(self, n):
                self.tokens = torch.zeros(n, 4)
                self.tokens.to(n.device)

            def __call__(self):
                return net(self.tokens.to(device))
        """,
    "a dimension before a view": """
        def f(x: torch.Tensor):
            rows = torch.cat([x, x])
            rows.unsqueeze(0)
            print(x)
            rows = rows.view(-1, 2)
            return rows
        f(torch.ones(8, 4))
        """,
}
LOST = {
    "a tensor of the caller": """
        def move(x):
            x.to(device)
        x = torch.ones(2, 4)
        move(x)
        print(net(x))
        """,
    "a variable read in the next pass": """
        def f(n):
            x = torch.ones(2, 4)
            for _ in range(n):
                y = net(x.to(device)).sum() + x.sum()
                x.to(device)
            return y
        f(3)
        """,
    "an item read in the next line": """
        for x, y in [(torch.ones(2, 4), torch.ones(2))]:
            y.to(device)
            print(net(x.to(device)).sum() + y)
        """,
    "an item read after the loop": """
        for y in [torch.ones(2)]:
            y.to(device)
        print(net(torch.ones(2, 4).to(device)).sum() + y)
        """,
    "a tensor created on another device": """
        class Policy:
            def __init__(self, n):
                self.deviation = torch.zeros(n, device=gpu.device)
                self.deviation.to(n.device)

            def __call__(self, x):
                return x * self.deviation.exp()
        """,
    "a tensor taken from the device": """
        def f(x: torch.Tensor):
            labels = torch.ones(4).to(device)
            labels.cpu()
            return labels.numpy()
        f(torch.ones(8, 4))
        """,
    "an index that is more": """
        def f(x: torch.Tensor):
            order = torch.randperm(8)
            order.to(device)
            return x[order], net(order)
        f(torch.ones(8, 4))
        """,
    "an index of another dtype": """
        def f(x: torch.Tensor):
            order = torch.rand(8).round()
            order.to(torch.long)
            return x[order]
        f(torch.ones(8, 4))
        """,
    "an attribute that another method passes on": """
        class Mix:
            def __init__(self, n):
                self.index = torch.randperm(n)
                self.index.to(n.device)

            def __call__(self, x):
                return x[self.index]

            def loss(self, x):
                return net(x, self.index)
        """,
    "a dimension before a view of the size": """
        def f(x: torch.Tensor):
            rows = torch.cat([x, x])
            rows.unsqueeze(0)
            rows = rows.view(rows.size(0), -1)
            return rows
        f(torch.ones(8, 4))
        """,
    "a transposition before a view": """
        def f(x: torch.Tensor):
            rows = torch.cat([x, x])
            rows.t()
            rows = rows.view(-1, 2)
            return rows
        f(torch.ones(8, 4))
        """,
    "an expansion before a write": """
        def f(x: torch.Tensor):
            total = torch.ones(1, 4)
            total.expand(8, 4)
            total += x
            return total
        """,
    "an expansion before a reshape": """
        def f(x: torch.Tensor):
            bias = torch.ones(1, 4)
            bias.expand(8, 4)
            return bias.reshape(4, 8) + x
        """,
    "an expansion before a product with a number": """
        def f(x: torch.Tensor):
            bias = torch.ones(1, 4)
            bias.expand(8, 4)
            return bias * 2
        """,
    "a callee that moves its argument sometimes": """
        def f(n):
            points = torch.ones(n, 4)
            points.to(device)
            return compare(points, 2)
        """,
    "another use beside the callee": """
        def f(n):
            points = torch.ones(n, 4)
            points.to(device)
            return interpolate(points, 2) + net(points)
        """,
    "an argument of the caller": """
        def f(x: torch.Tensor):
            x.to(device)
            return 1
        """,
    "an item of a list": """
        rows = [torch.ones(3), torch.zeros(3)]
        for x in rows:
            x.to(device)
        print(torch.stack(rows))
        """,
    "a training loop with a clock around it": """
        def f(batches: list[torch.Tensor]):
            start = time.time()
            for x in batches:
                x.to(device)
                loss = net(x).mean()
                loss.backward()
            print(time.time() - start)
        f([torch.ones(8, 4)])
        """,
}


def codes(code: str, check: Check) -> list[str]:
    return [found.code for found in check(HEAD + textwrap.dedent(code), {"SF105", "SF601"})]


@pytest.mark.parametrize("code", IDLE.values(), ids=IDLE)
def test_a_result_without_a_consequence_is_not_reported(code: str, check: Check) -> None:
    assert codes(code, check) == []


@pytest.mark.parametrize("code", LOST.values(), ids=LOST)
def test_a_result_that_matters_is_reported(code: str, check: Check) -> None:
    assert len(codes(code, check)) == 1


TEST = """
def test_output(net_class):
    x = torch.ones(8, 4)
    if train_on_gpu:
        x.cuda()
    assert net_class(4)(x).shape == (8, 4)
"""


@pytest.mark.parametrize(
    ("name", "reported"),
    [("problem_unittests.py", 0), ("test_net.py", 0), ("net_test.py", 0), ("test.py", 1), ("latest.py", 1)],
)
def test_a_lost_move_in_a_test_is_not_reported(name: str, reported: int, check: Check) -> None:
    assert len(check(HEAD + TEST, {"SF601"}, name=name)) == reported


def test_arithmetic_expands_what_expand_would() -> None:
    x, bias = torch.randn(8, 4), torch.randn(1, 4)
    assert torch.equal(x + bias, x + bias.expand(8, 4))
    assert torch.equal(bias * x, bias.expand_as(x) * x)
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        bias += x


def test_a_tensor_is_moved_the_second_time_as_the_first() -> None:
    x = torch.randn(3, 2)
    assert torch.equal(torch.as_tensor(x).to("cpu"), torch.as_tensor(x.to("cpu")).to("cpu"))


def test_a_view_with_all_sizes_is_the_same_with_and_without_dimensions_of_size_one() -> None:
    x = torch.arange(24).reshape(4, 6)
    changed = (x.unsqueeze(0), x.view(6, 4), x.flatten(), x.unsqueeze(1).squeeze(), x.reshape(2, 12))
    assert all(torch.equal(each.view(-1, 3), x.view(-1, 3)) for each in changed)
    assert not torch.equal(x.t().reshape(-1, 3), x.view(-1, 3))
