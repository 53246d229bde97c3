"""What nobody can know from the code has unknown sizes: these scripts run, and nothing is reported."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 2)

    def forward(self, x):
        return self.fc(x)

"""

RUNS = {
    "an array with the names of tensors": """
        import numpy as np

        def load():
            return np.load("none.npy") if torch.rand(1) > 2 else np.ones((6, 4))

        rows = np.vstack([load(), load()])
        n, d = rows.shape[0], rows.shape[1]
        best = np.linalg.inv(rows.T.dot(rows) + n * np.eye(d)).dot(rows.T)

        def predict(rows):
            return rows.dot(best)

        predict(rows)
    """,
    "a slice of an array": """
        import numpy as np

        def autocovariance(rows, lags):
            n, length = rows.shape
            left = rows[:, : length - lags] - rows.mean(1)[:, None]
            for k in range(lags):
                right = rows[:, k : k + length - lags]
                yield left.dot(right.T)

        list(autocovariance(np.ones((2, 9)), 3))
    """,
    "a number or several": """
        def denormalize(image: torch.Tensor, std: float | tuple[float, ...] = 0.5):
            if isinstance(std, float):
                return image * std
            return image * torch.tensor(std)[None, :, None, None]

        denormalize(torch.ones(2, 3, 4, 4), (0.1, 0.2, 0.3))
    """,
    "a dtype that subclasses choose": """
        class Product:
            dtype = None

            def left(self):
                return torch.ones((5, 1), dtype=self.dtype)

            def run(self):
                return self.left() @ torch.tensor([1, 2]).to(dtype=self.dtype).unsqueeze(0)

        class Wide(Product):
            dtype = torch.float64

        Wide().run()
    """,
    "layers that are made in a loop, by name": """
        class Dynamic(nn.Module):
            def __init__(self, widths):
                super().__init__()
                for place, width in enumerate(widths):
                    setattr(self, f"fc{place}", nn.Linear(width, 10))

            def forward(self, x):
                return getattr(self, f"fc{x.size(1) - 4}")(x)

        Dynamic([4, 5])(torch.randn(2, 5))
    """,
    "a layer that is made at the first call": """
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = None

            def forward(self, x):
                if self.fc is None or self.fc.in_features != x.size(-1):
                    self.fc = nn.Linear(x.size(-1), 2)
                return self.fc(x)

        late = Late()
        late(torch.randn(2, 8))
        late(torch.randn(2, 5))
    """,
    "a class that is made by type()": """
        Wide = type("Wide", (Net,), {"forward": lambda self, x: self.fc(x[:, :8])})
        Wide()(torch.randn(2, 20))
    """,
    "as many rows as a mask leaves": """
        x = torch.randn(4, 8)
        kept = x[x.sum(1) > -1000]
        F.cross_entropy(Net()(kept), torch.zeros(4, dtype=torch.int64))
        kept.view(4, 8)
    """,
    "as many rows as a tensor says": """
        rows = int(torch.tensor([3.0]).sum())
        Net()(torch.zeros(rows, 8)) + torch.zeros(3, 2)
    """,
    "sizes out of unique and nonzero": """
        ids = torch.tensor([1, 1, 2])
        table = torch.zeros(len(ids.unique()), 8)
        Net()(table) + torch.zeros(2, 2)
        ids.nonzero().view(3, 1)
    """,
    "a forward that takes anything": """
        class Stars(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = Net()

            def forward(self, *args, **kwargs):
                return self.net(args[0]) + self.net(kwargs["x"])

        Stars()(torch.randn(2, 8), torch.randn(1), x=torch.randn(2, 8))
        Stars()(*[torch.randn(2, 8)], **{"x": torch.randn(2, 8)})
    """,
    "a layer that was put in the place of another": """
        net = Net()
        net.fc = nn.Linear(4, 2)
        net(torch.randn(3, 4))
        setattr(net, "fc", nn.Linear(5, 2))
        net(torch.randn(3, 5))
    """,
    "a layer of an object that a function changed": """
        def widened(model, features):
            model.fc = nn.Linear(features, 2)
            return model

        widened(Net(), 16)(torch.randn(2, 16))
    """,
    "a forward that was put in the place of another": """
        net = Net()
        net.forward = lambda x: x.sum()
        net(torch.randn(3, 5))
        Net.forward = lambda self, x: x
        Net()(torch.randn(3, 5))
    """,
    "a forward of one layer that was put in the place of torch's": """
        layer = nn.Linear(8, 2)
        layer.forward = lambda x: x
        layer(torch.randn(3, 5))
    """,
    "a class of torch that was put in the place of another": """
        linear, nn.Linear = nn.Linear, lambda into, out: nn.Identity()
        nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 6))(torch.randn(1, 3))
        nn.Linear = linear
    """,
    "a module that is added under the name of another": """
        net = nn.Sequential()
        for width in (3, 8):
            net.add_module("fc", nn.Linear(width, 2))
        net(torch.randn(1, 8))
    """,
    "items of a list that come from elsewhere": """
        class Pyramid(nn.Module):
            def __init__(self):
                super().__init__()
                self.up = nn.ConvTranspose1d(4, 4, 4, 2, 1)

            def forward(self, levels):
                levels = [level.mean(-1) for level in levels]
                return self.up(levels[0]) + levels[1]

        Pyramid()([torch.randn(2, 4, 5, 3), torch.randn(2, 4, 10, 3)])
    """,
    "a hook that changes what comes in": """
        net = Net()
        net.fc.register_forward_pre_hook(lambda layer, inputs: (inputs[0][..., :8],))
        net(torch.randn(2, 20))
    """,
    "a decorator that changes what comes in": """
        def first_eight(function):
            return lambda self, x: function(self, x[:, :8])

        class Cut(Net):
            @first_eight
            def forward(self, x):
                return self.fc(x)

        Cut()(torch.randn(2, 20))
    """,
    "a size that is read from a file": """
        import json
        settings = json.loads('{"width": 8}')
        nn.Linear(settings["width"], 2)(torch.randn(2, 8)).view(2, 2)
    """,
    "a loop that changes the sizes": """
        x = torch.randn(2, 64)
        while x.size(1) > 8:
            x = x[:, ::2]
        Net()(x)
    """,
    "recursion": """
        def halved(x, to):
            return x if x.size(1) == to else halved(x[:, : x.size(1) // 2], to)

        Net()(halved(torch.randn(2, 64), 8))
    """,
}


@pytest.mark.parametrize("case", RUNS)
def test_what_runs_in_torch_is_not_reported(case: str, check: Check) -> None:
    script = textwrap.dedent(HEAD) + textwrap.dedent(RUNS[case])
    exec(compile(script, case, "exec"), {"__name__": "__main__"})
    assert [f"{d.code} {d.message}" for d in check(script) if d.code.startswith("SF5")] == []
