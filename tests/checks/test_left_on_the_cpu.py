"""What SF603 offers for a tensor in a plain attribute, and when it offers nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from checking import Check

from shapefix.checks.devices.left_on_the_cpu import WEIGHTS
from shapefix.repair.fixpoint import repair

if TYPE_CHECKING:
    from torch import nn


@pytest.fixture(autouse=True)
def _train_on_a_gpu(tmp_path: Path) -> None:
    """Make the modules part of a project that uses a GPU."""
    (tmp_path / "train.py").write_text("def place(model):\n    return model.cuda()\n")


MODULE = """\
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        {before}super().__init__()
        self.fc = nn.Linear(4, 4)
        {stated}

    {other}def forward(self, x):
        return self.fc(x) * {used}
"""


def module(stated: str, used: str = "self.gate", before: str = "", other: str = "") -> str:
    """A module that keeps something in an attribute, and multiplies its input by it."""
    return MODULE.format(stated=stated, used=used, before=before, other=other)


PLAIN = module("self.gate = torch.ones(4)")


def made(text: str) -> nn.Module:
    """An object of the class Gate in text."""
    names: dict[str, type[nn.Module]] = {}
    exec(text, names)
    return names["Gate"]()


def test_a_buffer_moves_and_checkpoints_stay_what_they_were(check: Check) -> None:
    repaired = repair(PLAIN, lambda text: check(text, {"SF603"}), lambda fix, _: True).text
    before, after = made(PLAIN), made(repaired)
    after.load_state_dict(before.state_dict(), strict=True)
    assert after.state_dict().keys() == before.state_dict().keys()
    assert before.to("meta").gate.device.type == "cpu"
    assert after.to("meta").gate.device.type == "meta"


@pytest.mark.parametrize(
    "text",
    [
        module("self.gate = (torch.ones(4), torch.zeros(4))", "self.gate[0]"),
        module("self.gate = [torch.ones(4)]", "self.gate[0]"),
        module("self.gate = None\n        self.gate = torch.ones(4)"),
        module("self.other, self.gate = None, None\n        self.gate = torch.ones(4)"),
        module("self.gate = torch.ones(4)", other="gate = None\n\n    "),
        module("pass", before="self.gate = torch.ones(4); "),
    ],
    ids=["tuple", "list", "assigned twice", "in a tuple before", "in the class", "before the module is one"],
)
def test_what_no_buffer_can_be_made_of_has_no_fix(text: str, check: Check) -> None:
    (only,) = check(text, {"SF603"})
    assert not only.fixes


@pytest.mark.parametrize(
    "text",
    [
        module("self.gate = nn.Parameter(torch.ones(4))"),
        module("self.gate = nn.Buffer(torch.ones(4))"),
        module("self.gate = torch.ones(4)", "self.gate.to(x)"),
        module("self.gate = torch.tensor(2.0)"),
        module("self.gate = 2.0"),
        module("self.gate = torch.ones(4, device='cuda')"),
        module("self.device = None; self.gate = torch.ones(4).to(self.device)"),
        module(
            "self.gate = torch.ones(4)",
            other="def cuda(self):\n        self.gate = self.gate.cuda()\n        return self\n\n    ",
        ),
        module(
            "self.gate = torch.ones(4)",
            other="def _apply(self, fn):\n        self.gate = fn(self.gate)\n        return self\n\n    ",
        ),
        module("self.gate = torch.ones(4)", "1 if x.is_cuda else x * self.gate"),
        module(
            "self.gate = torch.ones(4)",
            "x * gate",
            "gate = self.gate\n        if x.is_cuda:\n            gate = gate.cuda()\n        ",
        ),
        "import torch\ntorch.set_default_device('cuda')\n" + PLAIN,
    ],
    ids=str,
)
def test_what_goes_along_is_silent(text: str, check: Check) -> None:
    assert not check(text, {"SF603"})


FORWARD = """\
import torch
from torch import nn


class Plain:
    shape = (2, 4)


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.seq = nn.Sequential(nn.Linear(4, 4))
        self.norm = nn.LayerNorm(4, elementwise_affine=False)
        self.lstm = nn.LSTM(4, 4, batch_first=True)
        self.att = nn.MultiheadAttention(4, 2)
        self.encoder = nn.TransformerEncoderLayer(4, 2)
        self.some = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x, other=None):
{body}
"""


def repaired(body: str, check: Check) -> tuple[str, str]:
    """A module whose forward has this body, and what the safe fixes make of it."""
    text = FORWARD.format(body="\n".join(f"        {line}" for line in body.splitlines()))
    return text, repair(
        text, lambda now: check(now, {"SF603"}), lambda fix, _: fix.applicability.value == "safe"
    ).text


RUNNING = {
    "sizes of an object that is not a tensor": (
        "h = self.fc(x)\nreturn h * torch.ones(other.shape[0], 4)",
        "torch.zeros(2, 4), Plain()",
        "device=h.device",
    ),
    "an array whose sizes are read": (
        "a = x.numpy()\nh = torch.zeros(a.shape)\nreturn self.fc(h)",
        "torch.zeros(2, 4)",
        "device=self.fc.weight.device",
    ),
    "a parameter that may be None": (
        "z = torch.zeros(2, 4)\nif other is not None:\n    z = z + self.fc(other)\nreturn z",
        "None",
        "",
    ),
    "a parameter that is a tensor in one branch": (
        "z = torch.zeros(x.shape[0], 4)\nif self.training:\n    return self.fc(x) + z\nreturn z",
        "torch.zeros(2, 4), torch.zeros(2, 4)",
        "",
    ),
    "left before it is combined": (
        "z = torch.zeros(x.shape[0], 4)\nif isinstance(x, Plain):\n    return z\nreturn self.fc(x) + z",
        "Plain()",
        "",
    ),
    "bound to something else first": (
        "z = torch.zeros(x.shape[0], 4)\nx = torch.ones(2, 4)\nreturn self.fc(torch.tensor(x.tolist())) + z",
        "Plain()",
        "",
    ),
    "a layer of a container": ("return self.seq(torch.zeros(2, 4))", "None", ""),
    "a list of layers": ("return self.some[0](torch.zeros(2, 4))", "None", ""),
    "a layer without weights": ("return self.norm(torch.zeros(2, 4)) + self.fc(x)", "torch.ones(2, 4)", ""),
    "a recurrent layer": (
        "return self.lstm(torch.zeros(2, 3, 4))[0]",
        "None",
        "self.lstm.weight_ih_l0.device",
    ),
    "a packed sequence": (
        "return self.lstm(x, (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4)))[1][0]",
        "nn.utils.rnn.pack_sequence([torch.ones(3, 4)])",
        "self.lstm.weight_ih_l0.device",
    ),
    "attention": (
        "q = torch.zeros(3, 1, 4)\nreturn self.att(q, q, q)[0]",
        "None",
        "self.att.out_proj.weight.device",
    ),
    "an encoder": (
        "return self.encoder(torch.zeros(3, 1, 4))",
        "None",
        "self.encoder.linear1.weight.device",
    ),
}


@pytest.mark.parametrize("name", RUNNING)
def test_what_ran_runs_after_the_safe_fix(name: str, check: Check) -> None:
    body, arguments, device = RUNNING[name]
    before, after = repaired(body, check)
    assert device in after if device else "device" not in after
    results = []
    for text in (before, after):
        torch.manual_seed(0)
        names: dict[str, object] = {}
        exec(text, names)
        results.append(eval(f"Gate().eval()({arguments})", names))
    assert torch.equal(*results)


@pytest.mark.parametrize("kind", WEIGHTS)
def test_layers_have_the_weights_whose_device_is_read(kind: str) -> None:
    from torch import nn

    given = {"MultiheadAttention": (4, 2), "Bilinear": (4, 4, 4), "PReLU": (4,)}.get(kind, (4, 4))
    if kind.startswith("Conv"):
        given = (4, 4, 1)
    options = {"MultiheadAttention": {"kdim": 3, "vdim": 5}, "LSTM": {"proj_size": 2}}.get(kind, {})
    owner = getattr(nn, kind)(*given, **options)
    for name in WEIGHTS[kind].split("."):
        owner = getattr(owner, name)
    assert isinstance(owner, nn.Parameter)


def test_states_that_one_layer_takes_are_repaired_together(check: Check) -> None:
    body = "first = torch.zeros(1, 2, 4)\nlast = torch.zeros(1, 2, 4)\nreturn self.lstm(x, (first, last))[0]"
    before, after = repaired(body, check)
    assert len(check(before, {"SF603"})) == 2
    assert after.count("device=self.lstm.weight_ih_l0.device") == 2


LOST_MOVE = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.tok, self.pos = nn.Embedding(10, 8), nn.Embedding(10, 8)

    def forward(self, src):
        b, n = src.shape
        positions = torch.arange(0, n).unsqueeze(0).repeat(b, 1)
        MOVE
        return self.tok(src) + self.pos(positions)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
Encoder(device).to(device)(torch.zeros(2, 5, dtype=torch.long, device=device))
"""


def test_a_tensor_whose_move_was_lost_is_one_finding(check: Check) -> None:
    for move, codes in (
        ("positions.to(self.device)", {"SF601", "SF603"}),
        ("positions.to(src.device)", {"SF601", "SF603"}),
        ("positions.cuda()", {"SF601", "SF603"}),
        ("pass", {"SF603"}),
        ("positions = positions.to(self.device)", set()),
    ):
        found = check(LOST_MOVE.replace("MOVE", move), {"SF601", "SF602", "SF603"})
        assert {each.code for each in found} == codes, move
        assert len({each.cause for each in found}) == min(1, len(codes)), move


SETTINGS = """\
import torch
from torch import nn


class Settings:
    def __init__(self):
        self.sizes = torch.tensor([[1.0, 2.0], [3.0, 4.0]])

    {method}


settings = Settings()


class Model(nn.Module):
    def forward(self, x):
        return x * self.weights(settings.sizes)

    def weights(self, sizes):
        return torch.cat((torch.zeros(2, 2), sizes)).sum()
"""


@pytest.mark.parametrize(
    ("method", "is_input"),
    [("def names(self):\n        return []", False), ("def __getitem__(self, i):\n        return i", True)],
)
def test_a_tensor_of_a_plain_object_is_no_input_of_a_module(
    method: str, is_input: bool, check: Check
) -> None:
    assert [each.code for each in check(SETTINGS.format(method=method), {"SF603"})] == ["SF603"] * is_input
