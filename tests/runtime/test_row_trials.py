"""What the output of a model depends on: other samples, no input, untrained parameters; and right models."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import named, probed, row

pytestmark = pytest.mark.slow

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

x, y = torch.randn(64, 10, 6), torch.randint(0, 4, (64,))
"""

MODEL = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
        self.head = nn.Linear({wide}, 4)

    def forward(self, x):
        {forward}

model = Net()
"""

BY_LOADER = """
optimizer = torch.optim.Adam(model.parameters())
for a, b in DataLoader(TensorDataset(x, y), batch_size=16):
    optimizer.zero_grad()
    F.cross_entropy(model(a), b).backward()
    optimizer.step()
"""

BY_HAND = """
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def model(layers: str, forward: str, wide: int = 12) -> str:
    def indented(text: str) -> str:
        return text.strip().replace("\n", "\n" + " " * 8)

    return MODEL.format(layers=indented(layers), forward=indented(forward), wide=wide)


OWN = "def _attend(q):\n    return (q @ q.transpose(-2, -1)).softmax(-1) @ q\n"

RIGHT = {
    "a recurrent layer": model(
        "self.rnn = nn.LSTM(6, 12, batch_first=True)", "return self.head(self.rnn(x)[0][:, -1])"
    ),
    "time first": model(
        "self.rnn = nn.GRU(6, 12)", "return self.head(self.rnn(x.transpose(0, 1))[0][-1])"
    ),
    "batch norm and dropout": model(
        "self.one, self.norm, self.drop = nn.Linear(60, 12), nn.BatchNorm1d(12), nn.Dropout(0.5)",
        "return self.head(self.drop(self.norm(self.one(x.flatten(1))).relu()))",
    ),
    "batch statistics on purpose": model(
        "self.one, self.norm = nn.Linear(60, 12), nn.BatchNorm1d(12, track_running_stats=False)",
        "return self.head(self.norm(self.one(x.flatten(1))))",
    ),
    "heads": OWN
    + model(
        "self.one = nn.Linear(6, 12)",
        """
b, t, _ = x.shape
h = self.one(x).view(b, t, 3, 4).transpose(1, 2)
return self.head(_attend(h).transpose(1, 2).reshape(b, t, 12).mean(1))
""",
    ),
    "an encoder": model(
        "self.one = nn.Linear(6, 12)\n"
        "self.rest = nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 16, batch_first=True), 2)",
        "return self.head(self.rest(self.one(x)).mean(1))",
    ),
    "noise": model(
        "self.one = nn.Linear(60, 12)",
        "return self.head(self.one(x.flatten(1)) + torch.randn(12))"),
    "a state of its own": model(
        "self.one = nn.Linear(60, 12)\nself.calls = 0\nself.seen = []",
        """
self.calls += 1
self.seen.append(x.mean().item())
assert self.calls <= 2, "the script sees its own calls only"
return self.head(self.one(x.flatten(1)))
""",
    ),
    "a last layer of zeros": model(
        "self.one = nn.Linear(60, 12)", "return self.head(self.one(x.flatten(1)).relu())"
    )
    + "nn.init.zeros_(model.head.weight)\n",
    "a frozen part": model(
        "self.one = nn.Linear(60, 12).requires_grad_(False)", "return self.head(self.one(x.flatten(1)))"
    ),
    "a part without gradient": model(
        "self.one = nn.Linear(60, 12)",
        "with torch.no_grad():\n    h = self.one(x.flatten(1))\nreturn self.head(h)",
    ),
    "an unused part": model(
        "self.one, self.two = nn.Linear(60, 12), nn.Linear(60, 12)",
        "self.two(x.flatten(1))\nreturn self.head(self.one(x.flatten(1)))",
    ),
    "an unused output": model(
        "self.one, self.two = nn.Linear(60, 12), nn.Linear(60, 12)",
        "return Pair(self.two(x.flatten(1)), self.head(self.one(x.flatten(1))))",
    ).replace("model = Net()", "Pair = lambda *parts: parts\nmodel = Net()\nmodel.register_forward_hook("
              "lambda module, given, out: out[1])"),
    "similarities": model(
        "self.one = nn.Linear(60, 12)",
        "h = F.normalize(self.head(self.one(x.flatten(1))))\nreturn h @ h.T",
    ).replace("model = Net()", "model, y = Net(), torch.arange(16).repeat(4)"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_right_models_are_silent(tmp_path: Path, name: str) -> None:
    ran = probed(tmp_path, HEAD + RIGHT[name] + BY_LOADER)
    assert ran.found == []
    assert ran.run.complete, ran.run.process.output


WRONG = {
    "a recurrent layer without batch_first": (
        "mixed-samples",
        model("self.rnn = nn.LSTM(6, 12)  # fault", "return self.head(self.rnn(x)[0][:, -1])"),
        "`rnn` (LSTM) takes dimension 0 of [16, 10, 6] for time (`batch_first=True` is missing)",
    ),
    "both directions": (
        "mixed-samples",
        model(
            "self.rnn = nn.GRU(6, 6, bidirectional=True)  # fault", "return self.head(self.rnn(x)[0][:, -1])"
        ),
        "`rnn` (GRU) takes dimension 0 of [16, 10, 6] for time (`batch_first=True` is missing)",
    ),
    "a view of heads": (
        "mixed-samples",
        OWN
        + model(
            "self.one, self.two = nn.Linear(6, 12), nn.Linear(4, 4)",
            """
b, t, _ = x.shape
h = self.two(_attend(self.one(x).view(3, b, t, 4)))
return self.head(h.transpose(0, 1).reshape(b, t, 12).mean(1))
""",
        ).replace("model = Net()", "model = Net()  # fault"),
        "they are mixed between `one` and `two` (a view or a reduction)",
    ),
    "a mean over the batch": (
        "mixed-samples",
        model(
            "self.one = nn.Linear(60, 12)",
            "h = self.one(x.flatten(1))\nreturn self.head(h - h.mean(0))",
        ).replace("model = Net()", "model = Net()  # fault"),
        "they are mixed between `one` and `head` (a view or a reduction)",
    ),
    "a softmax of one number": (
        "constant-output",
        model("self.one = nn.Linear(60, 1)", "return self.head(self.one(x.flatten(1)).softmax(1))", 1),
        "is the same for all 16 samples of the batch: it does not depend on the input",
    ),
    "a weight without its layer": (
        "cut-gradient",
        model(
            "self.one = nn.Linear(60, 12)",
            "return self.head((x.flatten(1) @ self.one.weight.detach().T).relu())  # fault",
        ),
        "`one` gets no gradient, although the output of `Net` depends on it: the result is detached",
    ),
    "a way through numpy": (
        "cut-gradient",
        model(
            "self.one = nn.Linear(60, 12)",
            "return self.head(torch.tensor(self.one(x.flatten(1)).detach().numpy()).relu())  # fault",
        ),
        "`one` gets no gradient, although the output of `Net` depends on it: the result is detached",
    ),
    "the data of a result, beside one of the input": (
        "cut-gradient",
        model(
            "self.one = nn.Linear(60, 12)",
            "x = x.detach().flatten(1)\nreturn self.head(self.one(x).data.relu())  # fault",
        ),
        "`one` gets no gradient, although the output of `Net` depends on it: the result is detached",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_models_are_named(tmp_path: Path, name: str) -> None:
    kind, text, message = WRONG[name]
    script = HEAD + text + BY_LOADER
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.name) == named(kind)
    assert message in found.message
    if "# fault" in script:
        assert found.span.row == row(script, "fault")


def test_the_samples_of_a_script_without_a_loader_are_those_of_its_loss(tmp_path: Path) -> None:
    right, wrong = RIGHT["heads"], WRONG["a view of heads"][1]
    assert probed(tmp_path, HEAD + right + BY_HAND).found == []
    assert [each.name for each in probed(tmp_path, HEAD + wrong + BY_HAND).found] == ["mixed-samples"]
    by_hand = "F.cross_entropy(model(x), y).backward()\n"
    assert [each.name for each in probed(tmp_path, HEAD + wrong + by_hand).found] == ["mixed-samples"]


RANDOM = """
import random

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.head = nn.Linear(60, 12), nn.Linear(12, 4)

    def forward(self, x):
        h = self.one(x.flatten(1))
        for power in range(2, random.randint(2, 4)):
            h = h + h ** power
        return self.head(h)

random.seed(SEED)
model = Net()
"""


@pytest.mark.parametrize("seed", range(6))
def test_a_model_of_random_depth_mixes_no_samples(tmp_path: Path, seed: int) -> None:
    assert probed(tmp_path, HEAD + RANDOM.replace("SEED", str(seed)) + BY_LOADER).found == []


GRAPH = """
class Net(nn.Module):
    def __init__(self, edges):
        super().__init__()
        self.edges = edges
        self.one, self.head = nn.Linear(60, 12), nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.edges @ self.one(x.flatten(1)).relu())

model = Net(torch.rand(64, 64).softmax(1))
"""


def test_the_nodes_of_a_graph_are_no_samples(tmp_path: Path) -> None:
    assert probed(tmp_path, HEAD + GRAPH + BY_HAND).found == []


TWO_MODELS = """
encoder = nn.Sequential(nn.Linear(6, 8), nn.Tanh())  # fault
head = nn.Linear(8, 1)
optimizer = torch.optim.Adam({trained})
for _ in range(3):
    hidden = encoder(torch.randn(4, 6))
    loss = head({given}).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BOTH = "[*encoder.parameters(), *head.parameters()]"


def test_a_model_before_a_detached_input_is_named(tmp_path: Path) -> None:
    text = HEAD + TWO_MODELS.format(trained=BOTH, given="hidden.data")
    (found,) = probed(tmp_path, text).found
    assert (found.code, found.name) == named("cut-gradient")
    assert "gets no gradient, although the output of `Sequential` depends on it" in found.message
    # A frozen encoder is meant where the optimizer does not train it.
    frozen = HEAD + TWO_MODELS.format(trained="head.parameters()", given="hidden.detach()")
    assert probed(tmp_path, frozen).found == []


SAMPLED = """
from torch.distributions import Categorical, Normal

one, two = nn.Linear(6, 4), nn.Linear(2, 6)
optimizer = torch.optim.Adam([*one.parameters(), *two.parameters()])
for row in x:
    mean, scale = one(row).chunk(2, dim=-1)
    given = Normal(mean, scale.exp())
    {sampled}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_sample_without_a_gradient_is_named(tmp_path: Path) -> None:
    text = HEAD + SAMPLED.format(sampled="loss = F.mse_loss(two(given.sample()), row)  # fault")
    (found,) = probed(tmp_path, text).found
    assert (found.name, found.span.row) == ("cut-gradient", row(text, "fault"))
    assert found.message.startswith("`Normal.sample()` has no gradient: ")


@pytest.mark.parametrize(
    "sampled",
    [
        "loss = F.mse_loss(two(given.rsample()), row)",
        "a = given.sample(); loss = (two(a).pow(2).mean(1) * given.log_prob(a).sum(1)).mean()",
        pytest.param(
            "a = given.sample(); loss = F.mse_loss(two(mean), row) + 0 * a.mean()", marks=pytest.mark.long
        ),
        pytest.param(
            "a = Categorical(logits=mean).sample(); loss = F.mse_loss(two(mean), row)", marks=pytest.mark.long
        ),
    ],
)
def test_samples_with_a_way_for_the_gradient_are_silent(tmp_path: Path, sampled: str) -> None:
    more = "; loss = loss + 0 * scale.sum()"
    assert probed(tmp_path, HEAD + SAMPLED.format(sampled=sampled + more)).found == []


UNREGISTERED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(60, 60), nn.Linear(60, 60)]  # fault
        self.head = nn.Linear(60, 4)

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers:
            x = layer(x).relu()
        return self.head(x)

model = Net()
"""


def test_layers_in_a_list(tmp_path: Path) -> None:
    script = HEAD + UNREGISTERED + BY_HAND
    (found,) = probed(tmp_path, script).found
    assert (found.code, found.span.row) == ("SF606", row(script, "fault"))
    assert found.message == (
        "4 parameters, such as those in the list `Net.layers`, are not registered in a model, and no "
        "optimizer has them: never trained"
    )


@pytest.mark.parametrize(
    ("change", "optimized"),
    [
        ("nn.ModuleList(model.layers)", "model.parameters()"),
        (
            "list(model.layers)",
            "[*model.parameters(), *model.layers[0].parameters(), *model.layers[1].parameters()]",
        ),
        ("[each.requires_grad_(False) for each in model.layers]", "model.parameters()"),
    ],
    ids=["registered", "given", "frozen"],
)
def test_layers_that_are_trained_or_frozen(tmp_path: Path, change: str, optimized: str) -> None:
    script = HEAD + UNREGISTERED + f"model.layers = {change}\n" + BY_HAND
    assert probed(tmp_path, script.replace("Adam(model.parameters())", f"Adam({optimized})")).found == []


def test_a_parameter_in_a_list_of_parameters(tmp_path: Path) -> None:
    text = model(
        "self.scale = [nn.Parameter(torch.ones(60))]", "return self.head(x.flatten(1) * self.scale[0])", 60
    )
    (found,) = probed(tmp_path, HEAD + text + BY_HAND).found
    assert found.code == "SF606"
    assert "1 parameter, such as those in the list `Net.scale`, is not registered" in found.message
