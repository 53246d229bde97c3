"""What SF105 and SF601 offer where gradients are looked for, and what they say of writes in place."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.engine.analysis import FileAnalyzer
from shapefix.repair.fixpoint import repair
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

HEAD = """\
import torch
from torch import nn, optim

torch.manual_seed(0)
data = torch.ones(3)
net = nn.Linear(3, 3)
"""


def found(folder: Path, text: str) -> list[Diagnostic]:
    path = str(folder / "script.py")
    rules = frozenset({"SF105", "SF601"})
    analysis = FileAnalyzer(Project(str(folder)), rules).analyze(path, SourceText(path, text))
    assert not analysis.failures
    return list(analysis.diagnostics)


def repaired(folder: Path, text: str) -> str:
    return repair(text, lambda now: found(folder, now), lambda fix, _: True).text


RUNNING = {
    "a gradient is read": (
        "x = torch.ones(3, requires_grad=True)\nx.double()\n(x * 2).sum().backward()\nresult = x.grad",
        "x.double()",
    ),
    "asked for later": (
        "x = torch.ones(3)\nx.requires_grad_()\nx.double()\n(x * 2).sum().backward()\nresult = x.grad",
        "x.double()",
    ),
    "an attribute asks for it": (
        "x = torch.ones(3)\nx.requires_grad = True\nx.unsqueeze(0)\nx.sum().backward()\nresult = x.grad",
        "x.unsqueeze(0)",
    ),
    "a parameter": (
        "x = nn.Parameter(torch.ones(3))\nx.double()\noptim.SGD([x], lr=0.1).step()\nresult = x",
        "x.double()",
    ),
    "an optimizer has it": (
        "x = torch.ones(3, requires_grad=True)\noptimizer = optim.SGD([x], lr=0.1)\nx.double()\n"
        "(x * 2).sum().backward()\noptimizer.step()\n"
        "result = x if optimizer.param_groups[0]['params'][0] is x else None",
        "x.double()",
    ),
    "an optimizer has it in a group": (
        "x = torch.ones(3)\noptimizer = optim.SGD([{'params': [x]}], lr=0.1)\nx.double()\n"
        "result = x if optimizer.param_groups[0]['params'][0] is x else None",
        "x.double()",
    ),
    "handed to a function": (
        "def gradient(x: torch.Tensor):\n    x.double()\n    (x * 2).sum().backward()\n    return x.grad\n"
        "result = gradient(torch.ones(3, requires_grad=True))",
        "x.double()",
    ),
    "autograd.grad": (
        "def gradient(x: torch.Tensor):\n    y = x.sum()\n    x.double()\n"
        "    return torch.autograd.grad(y, [x])[0]\n"
        "result = gradient(torch.ones(3, requires_grad=True))",
        "x.double()",
    ),
    "kept for a tensor that was computed": (
        "x = net(data)\nx.retain_grad()\nx.double()\nx.sum().backward()\nresult = x.grad",
        "x.double()",
    ),
    "detached before backward": (
        "x = net(data).sum()\nx.detach()\nx.backward()\nresult = net.weight.grad",
        "x.detach()",
    ),
    "whole numbers before backward": (
        "x = net(data).sum()\nx.long()\nx.backward()\nresult = net.weight.grad",
        "x.long()",
    ),
    "an attribute of a module": (
        "class Scale(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(3))\n    def forward(self, x):\n"
        "        self.scale.double()\n        self.scale.unsqueeze(0)\n        return x * self.scale\n"
        "result = Scale()(data)",
        "self.scale.double()",
    ),
}


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
@pytest.mark.parametrize("name", RUNNING)
def test_no_fix_where_a_gradient_would_get_lost(name: str, tmp_path: Path) -> None:
    code, line = RUNNING[name]
    text = f"{HEAD}{code}\n"
    assert found(tmp_path, text)
    assert repaired(tmp_path, text) == text
    names: dict[str, object] = {}
    exec(text, names)
    result = names["result"]
    assert isinstance(result, torch.Tensor)
    # What the fix would have been does not run, or does something else.
    variable = line.partition(".")[0] if not line.startswith("self.") else "self.scale"
    other: dict[str, object] = {}
    try:
        exec(text.replace(f"{line}\n", f"{variable} = {line}\n"), other)
    except (RuntimeError, TypeError, ValueError):
        return
    assert other["result"] is None


@pytest.mark.parametrize(
    "code",
    [
        "x = torch.ones(3)\n{}x.double()\nprint(x)",
        "x = net(data)\n{}x.double()\nx.sum().backward()",
        "def moved(x: torch.Tensor):\n    {}x.double()\n    return x\n",
        "x = net(data)\nloss = x.sum()\nloss.backward()\nx = net(data)\n{}x.detach()\nprint(x)",
    ],
)
def test_other_tensors_are_bound(code: str, tmp_path: Path) -> None:
    assert repaired(tmp_path, HEAD + code.format("")) == HEAD + code.format("x = ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "x.squeeze_(dim=-1).double()",
            "`x.squeeze_(dim=-1)` is in-place, but the result of `.double()` is unused",
        ),
        ("x.add_(1).unsqueeze(0)", "`x.add_(1)` is in-place, but the result of `.unsqueeze(0)` is unused"),
        ("x.abs().double()", "result of `x.abs().double()` is unused; `.double()` is not in-place"),
    ],
)
def test_a_write_in_place_does_change_the_tensor(line: str, message: str, tmp_path: Path) -> None:
    text = f"{HEAD}x = torch.ones(3, 1)\n{line}\nprint(x)\n"
    (finding,) = found(tmp_path, text)
    assert finding.message == message
    names: dict[str, object] = {}
    exec(text, names)
    value = names["x"]
    assert isinstance(value, torch.Tensor)
    is_changed = value.shape != (3, 1) or not torch.equal(value, torch.ones(3, 1))
    assert is_changed == ("is in-place" in message)


STARTS = {
    "whole": "x = torch.ones(3, 4)",
    "column": "x = torch.ones(3, 1)",
    "integers": "x = torch.arange(6).view(2, 3)",
    "half": "x = torch.ones(2, 3).half()",
    "transposed": "x = torch.ones(3, 4).t()",
    "sliced": "x = torch.ones(3, 4)[:, :2]",
}
LINES = (
    "x.float()",
    "x.half()",
    "x.long()",
    "x.to(torch.float32)",
    "x.to(torch.int64)",
    "x.to('cpu')",
    "x.cpu()",
    "x.to('cpu', torch.float16)",
    "x.type(torch.float32)",
    "x.type_as(torch.zeros(1))",
    "x.to(torch.zeros(1))",
    "x.contiguous()",
    "x.squeeze()",
    "x.squeeze(1)",
    "x.flatten()",
    "x.flatten(1)",
    "x.transpose(0, 1)",
    "x.transpose(1, 1)",
    "x.permute(0, 1)",
    "x.expand(-1, -1)",
    "x.expand(2, -1, -1)",
    "x.reshape(x.size(0), -1)",
    "x.t().contiguous()",
    "x.mul_(2).float()",
    "x.mul_(2).half()",
    "x.mul_(2).squeeze(1)",
    "x.zero_().to('cpu')",
)


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("start", STARTS)
def test_a_result_that_is_the_tensor_itself_is_no_loss(start: str, line: str, tmp_path: Path) -> None:
    names: dict[str, torch.Tensor] = {}
    exec(f"import torch\n{STARTS[start]}\nresult = {line}", names)
    x, result = names["x"], names["result"]
    is_same = (x.data_ptr(), x.shape, x.stride(), x.dtype) == (
        (result.data_ptr(), result.shape, result.stride(), result.dtype)
    )
    findings = found(tmp_path, f"import torch\n{STARTS[start]}\n{line}\nprint(x)\n")
    assert bool(findings) != is_same


@pytest.mark.parametrize("line", ["labels.scatter_(1, index, 1).float()", "labels.fill_(0).long()"])
def test_a_conversion_after_a_write_to_a_tensor_of_unknown_dtype(line: str, tmp_path: Path) -> None:
    text = f"import torch\ndef f(labels: torch.Tensor, index):\n    {line}\n    return labels\n"
    assert not found(tmp_path, text)
    moved = text.replace(line.rpartition(".")[2], "to('cuda')")
    assert len(found(tmp_path, moved)) == 1


@pytest.mark.parametrize(
    "line", ["torch.rand(6).reshape(2, 3)", "net(x).detach()", "for _ in range(3):\n    run(x)"]
)
def test_what_nothing_else_holds_or_a_benchmark_calls_is_silent(line: str, tmp_path: Path) -> None:
    text = f"{HEAD}run = torch.relu\nx = torch.rand(4, 3)\n{line}\nprint(x.sum())\n"
    exec(text, {})
    assert found(tmp_path, text) == []
    assert found(tmp_path, text.replace("run(x)", "torch.relu(x)")) != [] or "run" not in line


HALF_MOVED = """\
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = {model}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for audio, labels in [(torch.rand(8, 4), torch.zeros(8, dtype=torch.long))]:
    labels.to(device)
    loss = nn.functional.cross_entropy(model(audio), labels)
"""


@pytest.mark.parametrize(
    ("model", "is_moved"),
    [("nn.Linear(4, 2)", False), ("nn.Linear(4, 2).to(device)", True), ("load(device)", False)],
)
def test_a_tensor_is_not_moved_away_from_a_model_that_stays(
    tmp_path: Path, model: str, is_moved: bool
) -> None:
    for text, moves in (
        (HALF_MOVED.format(model=model), is_moved),
        (HALF_MOVED.format(model=model).replace("optimizer =", "model.to(device)\noptimizer ="), True),
    ):
        (finding,) = found(tmp_path, text)
        (fix,) = finding.fixes
        assert (fix.applicability is not Applicability.DISPLAY) == moves
        assert bool(fix.edits) == moves


@pytest.mark.parametrize(
    ("other", "is_offered"),
    [("audio.to(device)", False), ("net.to(device)", True), ("print(audio)", True)],
)
def test_one_of_several_moves_of_a_batch_is_not_repaired_alone(
    other: str, is_offered: bool, tmp_path: Path
) -> None:
    code = f"""
import sys
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
for batch in sys.modules["audio_files"].load():
    audio, labels = batch[0], torch.ones(3)
    {other}
    labels.to(device)
    nn.functional.mse_loss(net(audio), labels).backward()
"""
    fixes = [fix for each in found(tmp_path, HEAD + code) for fix in each.fixes]
    assert [fix.applicability is not Applicability.DISPLAY for fix in fixes] == [is_offered]
