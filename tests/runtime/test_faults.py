"""Each fault under its rule, at its place, with what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import probed, row

from shapefix.diagnostics import Condition
from shapefix.runtime.findings.collect import collect_findings

LOADER = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
"""


def test_a_linear_is_found_where_it_was_constructed(tmp_path: Path) -> None:
    model = """
        import torch.nn as nn

        class Encoder(nn.Module):
            def __init__(self, features):
                super().__init__()
                self.projection = nn.Linear(features, 8)  # constructed

            def forward(self, x):
                return self.projection(x)  # called
    """
    script = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        from model import Encoder

        loader = DataLoader(TensorDataset(torch.randn(32, 5, 40)), batch_size=4)
        net = torch.nn.Sequential(Encoder(27), torch.nn.ReLU())
        for (x,) in loader:
            net(x).sum().backward()
    """
    ran = probed(tmp_path, script, model=model)
    (found,) = ran.found
    assert ran.places == [("SF501", "model.py", row(model, "constructed"))]
    assert (
        found.message
        == "`0.projection` (Linear) expects in_features=27 but gets f32[4, 5, 40] (last size 40)"
    )
    steps = [(step.span.row, step.message) for step in found.evidence]
    assert steps == [
        (
            row(model, "constructed"),
            "`0.projection` (Linear) constructed here: in_features=27, out_features=8",
        ),
        (row(model, "called"), "`0.projection` (Linear) called here with f32[4, 5, 40]"),
    ]


def test_a_swallowed_exception_names_the_except_that_swallowed_it(tmp_path: Path) -> None:
    script = """
        import torch
        import torch.nn.functional as F

        model = torch.nn.Linear(4, 3)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)

        def step(x, y):
            try:
                return F.cross_entropy(model(x), y)  # raised
            except KeyError:
                raise
            finally:
                model.zero_grad()

        for number in range(1000):
            try:
                step(torch.randn(8, 4), torch.randint(0, 3, (8, 1))).backward()
                optimizer.step()
            except (OSError, RuntimeError) as error:  # swallowed
                print("skipped", error)
    """
    ran = probed(tmp_path, script, timeout=40)
    assert [(code, line) for code, _, line in ran.places] in (
        [("SF508", row(script, "raised"))],
        [("crash", row(script, "raised"))],
    )
    swallowed = [step.span.row for step in ran.found[0].evidence if "swallowed" in step.message]
    assert swallowed == [row(script, "swallowed")]


def test_a_model_that_reraises_and_a_search_for_a_batch_size_are_told_apart(tmp_path: Path) -> None:
    script = """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                try:
                    return self.inner(x)
                except AttributeError:
                    return x * self.weight

            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(4))

        def train(size):
            try:
                raise_if(size)
            except RuntimeError as error:
                raise ValueError("too large") from error  # raised

        def raise_if(size):
            torch.nn.Linear(3, 3)(torch.ones(size, 4))  # linear

        print(Net()(torch.ones(4)))
        train(7)
    """
    ran = probed(tmp_path, script)
    assert ran.places == [("SF501", "train.py", row(script, "linear"))]


def test_rows_that_never_met_in_the_first_batches(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
rows = [(torch.ones(16 if n < 99 else 4), 1) for n in range(100)]
loader = DataLoader(rows, batch_size=4)
model = nn.Linear(16, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x, y in loader:
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("SF307", 8)
    assert "part 0 of a row has length 4 in the last of 100 rows, 16 in the others" in found.message
    assert found.condition == Condition("a batch combines rows 0 and 99, or other rows of different lengths")
    assert ran.run.observed.steps == 1


def test_a_sampler_of_the_users_own_may_keep_rows_apart(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
rows = [torch.ones(16 if n % 2 else 4) for n in range(100)]
loader = DataLoader(rows, batch_sampler=[list(range(n % 2, 100, 2))[:4] for n in range(10)])
for x in loader:
    nn.LazyLinear(2)(x)
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []


def test_ragged_rows_in_the_first_batch(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
rows = [{"ids": torch.arange(3 + n % 5), "y": n} for n in range(40)]
for batch in DataLoader(rows, batch_size=4):  # loader
    nn.Embedding(10, 2)(batch["ids"])
"""
    )
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("SF302", row(script, "loader"))
    assert "`ids` has lengths from 3 to 7 in 40 of 40 rows" in found.message


def test_a_view_shows_the_strides_that_it_met(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
def loss_of(logits, labels):
    logits = logits[:, :-1]
    return F.cross_entropy(logits.view(-1, 5), labels[:, 1:].reshape(-1))  # view

loss_of(nn.Linear(4, 5)(torch.ones(2, 6, 4)), torch.ones(2, 6, dtype=torch.int64))
"""
    )
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("SF101", row(script, "view"))
    assert found.evidence[-1].message == "`logits` is f32[2, 5, 5] strides (30, 5, 1)"


def test_keys_of_a_batch(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, labels):
        return F.cross_entropy(self.layer(x), labels)

net = Net()
for batch in DataLoader([{"x": torch.ones(4), "label": 1, "idx": n} for n in range(8)], batch_size=2):
    batch["labels"] = batch.pop("label")
    net(**batch).backward()  # called
"""
    )
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("SF401", row(script, "called"))
    assert "has no parameter `idx`" in found.message


def test_an_exception_of_the_scripts_own_is_a_crash_with_its_line(tmp_path: Path) -> None:
    script = LOADER + "\nout = nn.Linear(2, 2)(torch.ones(1, 2))\nout['loss'].backward()  # crash\n"
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.span.row) == ("crash", row(script, "crash"))
    assert found.evidence[-1].message == "`out` is f32[1, 2] strides (2, 1)"


def test_what_fails_for_want_of_results_is_no_finding(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
losses = []
for number, (x,) in enumerate(DataLoader(TensorDataset(torch.ones(100, 4)), batch_size=4)):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if number % 10 == 9:
        losses.append(loss.item())
print(sum(losses) / len(losses))
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert ran.run.observed.steps == 1


def test_gradient_checkpointing_has_an_exception_of_its_own(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
from torch.utils.checkpoint import checkpoint

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return checkpoint(lambda y: self.b(torch.relu(self.a(y))), x, use_reentrant=False)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for _ in range(100):
    net(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert ran.ending == "stopped after step 1; later code did not run"


def test_what_is_swallowed_outside_of_models_and_losses(tmp_path: Path) -> None:
    steps = """
        def flat(logits):
            try:
                return logits[:, :-1].view(-1, 5)  # view
            except Exception as error:  # swallowed
                print("skipped", error)
    """
    script = (
        LOADER
        + """
from steps import flat

model = nn.Linear(4, 5)
while True:
    logits = flat(model(torch.ones(2, 6, 4)))
    if logits is not None:
        break
"""
    )
    ran = probed(tmp_path, script, steps=steps)
    (found,) = ran.found
    assert (found.code, Path(found.span.path).name, found.span.row) == (
        "SF101",
        "steps.py",
        row(steps, "view"),
    )
    assert [step.span.row for step in found.evidence] == [row(steps, "view"), row(steps, "swallowed")]
    assert "20 exceptions were swallowed without a training step" in ran.ending


def test_a_handler_that_makes_up_for_it_is_right(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
out = nn.Linear(4, 5)(torch.ones(2, 6, 4))[:, :-1]
try:
    flat = out.view(-1, 5)
except RuntimeError:
    flat = out.reshape(-1, 5)
try:
    import no_such_kernels
except ImportError:
    print("without them")
try:
    print({"a": out}["b"])
except KeyError:
    pass
"""
    )
    ran = probed(tmp_path, script)
    assert ran.found == []
    assert ran.ending == "the script finished"


MANY = """
import torch
import torch.nn as nn
import torch.nn.functional as F

def attempt(fault):
    try:
        fault()
    except Exception:
        pass

class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

x, ids = torch.randn(4, 6), torch.arange(24).remainder(9).view(4, 6)
embedding, conv, norm = nn.Embedding(5, 3), nn.Conv2d(3, 8, 3), nn.LayerNorm(7)
attempt(lambda: embedding(ids + 5))
attempt(lambda: conv(torch.randn(2, 1, 8, 8)))
attempt(lambda: norm(x))
attempt(lambda: nn.BatchNorm1d(5)(x))  # batch norm
attempt(lambda: x @ x)  # product
attempt(lambda: torch.cat([x, torch.randn(2, 5)]))  # joined
attempt(lambda: x + torch.randn(4, 5))  # elementwise
attempt(lambda: x.view(5, -1))  # view
attempt(lambda: nn.CrossEntropyLoss()(x, ids[:3, 0]))  # batch sizes
attempt(lambda: F.cross_entropy(x, ids[:, 0] + 9))  # class
attempt(lambda: F.binary_cross_entropy_with_logits(x, torch.ones(4, 1)))  # sizes of targets
attempt(lambda: nn.Linear(6, 2)(x.double()))  # dtype
attempt(lambda: embedding(x))  # floats
attempt(lambda: F.cross_entropy(x, x[:, 0]))  # targets
attempt(lambda: nn.Conv2d(1, 2, 3)(torch.ones(2, 1, 8, 8).double()))  # dtype of a picture
attempt(lambda: F.cross_entropy(torch.ones(2, 4, 4, 3), torch.zeros(2, 4, 4).long()))  # classes last
attempt(lambda: F.binary_cross_entropy(x.sigmoid(), x * 0 + 2))  # binary
attempt(lambda: F.cross_entropy(x, ids[:, 0] * 0, weight=torch.ones(9)))  # weights of classes
attempt(lambda: nn.Linear(4, 2).load_state_dict(nn.Linear(4, 3).state_dict()))  # checkpoint
attempt(lambda: Sign()(x))  # legacy
attempt(lambda: F.one_hot(ids[:, 0] + 9, 3))  # one-hot
"""

EXPECTED: dict[str, list[int | str]] = {
    "SF505": [18],
    "SF506": [18],
    "SF511": [18, "batch norm"],
    "SF503": ["product"],
    "SF504": ["joined"],
    "SF510": ["elementwise"],
    "SF507": ["view"],
    "SF508": ["batch sizes", "sizes of targets", "classes last"],
    "SF512": ["dtype", "floats", "targets", "dtype of a picture"],
    "SF517": ["class", "one-hot"],
    "SF520": ["weights of classes"],
    "SF522": ["binary"],
    "SF610": ["checkpoint"],
    "SF907": ["legacy"],
}


def test_the_rule_of_each_message_of_torch(tmp_path: Path) -> None:
    ran = probed(tmp_path, MANY)
    found = collect_findings(ran.run.observed).diagnostics
    expected = [
        (code, place if isinstance(place, int) else row(MANY, place))
        for code, places in EXPECTED.items()
        for place in places
    ]
    assert sorted((each.code, each.span.row) for each in found) == sorted(expected)
    messages = {each.code: each.message for each in found}
    assert "has rows 0 to 4 but gets indices from 5 to" in messages["SF505"]
    assert messages["SF506"].endswith("expects in_channels=3 but gets f32[2, 1, 8, 8]")


LAST = {
    "nn.Linear(6, 2)(torch.ones(4, 6)).backward()": "SF908",
    'nn.Linear(4, 2).load_state_dict("net.pt")': "SF614",
    'torch.from_numpy(type("DataFrame", (), {})())': "SF523",
}


@pytest.mark.parametrize("line", LAST)
def test_the_rule_of_the_last_exception(tmp_path: Path, line: str) -> None:
    script = f"{LOADER}{line}  # last\n"
    (found,) = collect_findings(probed(tmp_path, script).run.observed).diagnostics
    assert (found.code, found.span.row) == (LAST[line], row(script, "last"))


def test_a_loss_and_gradients_that_are_not_finite_are_shown(tmp_path: Path) -> None:
    script = (
        LOADER
        + """
model = nn.ModuleDict({"used": nn.Linear(4, 2), "unused": nn.Linear(4, 2)})
frozen = nn.Parameter(torch.ones(3), requires_grad=False)
optimizer = torch.optim.SGD([*model.parameters(), frozen], 0.1)
for _ in range(3):
    loss = (model["used"](torch.ones(8, 4)) * 0).sqrt().mean() * float("nan")
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
    )
    ran = probed(tmp_path, script)
    assert "loss nan, f32[], backward at train.py:12" in ran.text
    assert "gradients for 2 of 4 parameters, 1 frozen (SGD)" in ran.text
    assert "gradient not finite: weight, bias" in ran.text
