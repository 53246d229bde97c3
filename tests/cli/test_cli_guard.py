"""`shapefix guard`: asserts that running programs pass, and that name the size that is wrong."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Project, project_in_a_folder, shapefix  # noqa: F401

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
MODEL = (
    HEAD
    + """class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.projection = nn.Linear(width, 8)

    def forward(self, x):
        \"\"\"Project.\"\"\"
        # The first layer.
        return self.projection(x)
"""
)
GUARD = """\
        assert x.shape[-1] == self.projection.in_features, (
            f"x has {x.shape[-1]} features; self.projection expects {self.projection.in_features}"
        )  # shapefix: guard
"""


def guarded(text: str) -> str:
    """The text of model.py in this folder after `guard --apply`."""
    path = Path("model.py")
    path.write_text(text, "utf-8")
    ran = shapefix("guard", "model.py", "--apply")
    assert ran.code == 0, ran.err
    return path.read_text("utf-8")


def namespace(text: str) -> dict[str, Any]:
    """The names that a module defines."""
    names: dict[str, Any] = {"__name__": "model"}
    exec(compile(text, "model.py", "exec"), names)
    return names


def test_shown_written_kept_and_removed(project: Project) -> None:
    path = project(model=MODEL) / "model.py"
    shown = shapefix("guard", "model.py", "--color", "never")
    assert shown.code == 1
    assert "".join(f"+{row}\n" for row in GUARD.splitlines()) in shown.out
    assert path.read_text() == MODEL
    text = guarded(MODEL)
    assert text == MODEL.replace("        # The first", GUARD + "        # The first")
    again = shapefix("guard", "model.py", "--apply")
    assert (again.code, again.out) == (0, "")
    assert "up to date" in again.err
    assert path.read_text() == text
    assert shapefix("guard", "model.py:Net", "--remove").code == 1
    assert shapefix("guard", "model.py:Net", "--remove", "--apply").code == 0
    assert path.read_text() == MODEL


def test_a_guard_follows_the_code(project: Project) -> None:
    project()
    text = guarded(MODEL)
    renamed = text.replace("projection", "first").replace("width, 8", "width, 9")
    own = renamed.replace("self.first.in_features, (", "self.other.in_features, (")
    assert guarded(own) == renamed


def test_a_guard_formatted_by_a_formatter_is_kept(project: Project) -> None:
    project()
    text = guarded(MODEL)
    joined = text.replace("features, (\n            f", "features, (f").replace('}"\n        )', '}")')
    assert joined != text
    assert guarded(joined) == joined
    shapefix("guard", "model.py", "--remove", "--apply")
    assert Path("model.py").read_text() == MODEL


def test_the_guard_names_the_wrong_size(project: Project) -> None:
    project()
    net = namespace(guarded(MODEL))["Net"]()
    assert net(torch.zeros(2, 3, 4)).shape == (2, 3, 8)
    assert net(torch.zeros(4)).shape == (8,)
    with pytest.raises(AssertionError, match=r"x has 5 features; self\.projection expects 4"):
        net(torch.zeros(2, 5))


# The layers, the forward, inputs that torch takes, and some that it rejects.
FORWARDS = [
    ("nn.Conv2d(3, 4, 3)", "self.a(x)", [(2, 3, 8, 8), (3, 8, 8)], [(2, 4, 8, 8)]),
    ("nn.Conv1d(3, 4, 3)", "self.a(input=x)", [(2, 3, 8), (3, 8)], [(2, 4, 8)]),
    ("nn.ConvTranspose2d(3, 4, 3)", "self.a(x)", [(2, 3, 8, 8)], [(2, 4, 8, 8)]),
    ("nn.BatchNorm1d(3)", "self.a(x)", [(2, 3), (2, 3, 5)], [(2, 5, 3)]),
    ("nn.BatchNorm2d(3)", "self.a(x)", [(2, 3, 4, 4)], [(2, 4, 3, 4)]),
    ("nn.GroupNorm(1, 3)", "self.a(x)", [(2, 3, 4, 4), (2, 3)], [(2, 4, 3)]),
    ("nn.LayerNorm(3)", "self.a(x)", [(2, 3), (3,)], [(3, 2)]),
    ("nn.LayerNorm((2, 3))", "self.a(x)", [(5, 2, 3)], [(5, 3, 2)]),
    ("nn.Sequential(nn.Dropout(), nn.Linear(3, 4))", "self.a(x)", [(2, 3)], [(3, 2)]),
    ("nn.Linear(3, 4)", "self.a(F.relu(x.contiguous()))", [(2, 3)], [(3, 2)]),
]


@pytest.mark.parametrize(("layer", "code", "fitting", "wrong"), FORWARDS)
def test_what_torch_takes_and_rejects(
    project: Project, layer: str, code: str, fitting: list[tuple[int, ...]], wrong: list[tuple[int, ...]]
) -> None:
    project()
    text = MODEL.replace("nn.Linear(width, 8)", layer).replace("projection", "a")
    text = text.replace("self.a(x)", code)
    made = guarded(text)
    assert made.count("# shapefix: guard") == 1
    plain, checked = namespace(text)["Net"](), namespace(made)["Net"]()
    checked.load_state_dict(plain.state_dict())
    for sizes in fitting:
        x = torch.rand(sizes)
        torch.manual_seed(0)
        expected = plain(x)
        torch.manual_seed(0)
        assert torch.equal(checked(x), expected)
    for sizes in wrong:
        with pytest.raises(RuntimeError):
            plain(torch.rand(sizes))
        with pytest.raises(AssertionError, match="expects"):
            checked(torch.rand(sizes))


PAIRS = [
    ("torch.bmm(a, b)", [((2, 3, 4), (2, 4, 5))], [((2, 3, 4), (3, 4, 5)), ((2, 3, 4), (2, 3, 4))]),
    ("torch.mm(a, b)", [((3, 4), (4, 5))], [((3, 4), (3, 4))]),
    ("F.cross_entropy(a, b)", [((3, 4), (3, 4)), ((4,), (4,))], [((3, 4), (4, 4))]),
    ("F.cross_entropy(a, b.long()[..., 0])", [((3, 4), (3, 2)), ((4,), (2,))], []),
    ("torch.cat([a, b], dim=1)", [((3, 4, 2), (3, 1, 2)), ((3, 4), (0,))], [((3, 4, 2), (3, 4, 3))]),
    ("torch.cat((a, b), -1)", [((3, 4), (3, 1))], [((3, 4), (2, 4))]),
    ("torch.cat([a, b])", [((3, 4), (2, 4)), ((0,), (3, 4))], [((3, 4), (3, 2))]),
    ("torch.cat([a, b], dim=2)", [((3, 4, 2), (3, 4, 1))], []),
    ("nn.CrossEntropyLoss()(a, b)", [((3, 4), (3, 4))], [((3, 4), (4, 4))]),
    ("nn.BCEWithLogitsLoss()(a, b)", [((3, 4), (3, 4))], [((3, 1), (3,))]),
    ("F.binary_cross_entropy_with_logits(a, b)", [((3, 4), (3, 4)), ((), ())], [((3, 1), (3,))]),
]


@pytest.mark.parametrize(("code", "fitting", "wrong"), PAIRS)
def test_arguments_that_share_sizes(
    project: Project, code: str, fitting: list[Any], wrong: list[Any]
) -> None:
    project()
    text = HEAD + f"def f(a, b):\n    return {code}\n"
    made = guarded(text)
    assert ("# shapefix: guard" in made) == bool(wrong)
    plain, checked = namespace(text)["f"], namespace(made)["f"]
    for one, other in fitting:
        a, b = torch.rand(one), torch.zeros(other)
        assert torch.equal(plain(a, b), checked(a, b))
    for one, other in wrong:
        with pytest.raises((RuntimeError, ValueError)):
            plain(torch.rand(one), torch.rand(other))
        with pytest.raises(AssertionError, match=r"a has .*; b has"):
            checked(torch.rand(one), torch.rand(other))


def test_a_layer_of_concatenated_arguments(project: Project) -> None:
    project()
    text = MODEL.replace("(self, x)", "(self, x, y)").replace(
        "self.projection(x)", "self.projection(torch.cat([x, y], dim=-1))"
    )
    made = guarded(text)
    assert "assert x.shape[-1] + y.shape[-1] == self.projection.in_features" in made
    net = namespace(made)["Net"]()
    assert net(torch.rand(2, 3), torch.rand(2, 1)).shape == (2, 8)
    with pytest.raises(AssertionError, match=r"x and y have 3 \+ 2 features; self\.projection expects 4"):
        net(torch.rand(2, 3), torch.rand(2, 2))
    with pytest.raises(AssertionError, match=r"x has shape \(2, 3\); y has \(1, 1\)"):
        net(torch.rand(2, 3), torch.rand(1, 1))


def test_a_loss_of_the_module(project: Project) -> None:
    project()
    text = MODEL.replace("nn.Linear(width, 8)", "nn.CrossEntropyLoss()").replace("(self, x)", "(self, x, y)")
    text = text.replace("self.projection(x)", "self.projection(x, y)")
    made = guarded(text)
    assert "x.dim() == 1 or x.shape[0] == y.shape[0]" in made
    replaced = text.replace(
        "    def forward", "    def reset(self, loss):\n        self.projection = loss\n\n    def forward"
    )
    assert guarded(replaced) == replaced


def test_a_single_sample_and_its_class(project: Project) -> None:
    project()
    made = guarded(HEAD + "def f(a, b):\n    return F.cross_entropy(a, b)\n")
    assert "# shapefix: guard" in made
    assert namespace(made)["f"](torch.rand(4), torch.tensor(2)).shape == ()


# Changes of MODEL after which the layer, or its call, is not certain.
UNCERTAIN = [
    ("return self", "if x.dim() > 2:\n            return x\n        return self"),
    ("return self.projection(x)", "return self.projection(x) if x.dim() > 1 else x"),
    ("return self.projection(x)", "return x.dim() == 1 and self.projection(x)"),
    ("return self.projection(x)", "return [self.projection(y) for y in x]"),
    ("return self.projection(x)", "x.t_()\n        return self.projection(x)"),
    ("return self.projection(x)", "x.data = x.data.T\n        return self.projection(x)"),
    ("return self.projection(x)", "x = x.flatten(1)\n        return self.projection(x)"),
    ("return self.projection(x)", "assert x is not None, self.projection(x)\n        return x"),
    (
        "    def forward",
        "        if width > 4:\n            self.projection = nn.Identity()\n\n    def forward",
    ),
    ("    def forward", "    def reset(self):\n        self.projection = nn.Identity()\n\n    def forward"),
    (
        "    def forward",
        "    def __getattr__(self, name):\n        return super().__getattr__(name)\n\n    def forward",
    ),
    ("nn.Linear(width, 8)", "nn.utils.weight_norm(nn.Linear(width, 8))"),
    ("nn.Linear(width, 8)", "nn.LazyLinear(8)"),
    ("nn.Linear(width, 8)", "nn.BatchNorm1d(width, affine=False, track_running_stats=False)"),
    ("nn.Linear(width, 8)", "nn.LSTM(width, 8)"),
    ("    def forward", "    @torch.jit.export\n    def forward"),
]


@pytest.mark.parametrize(("old", "new"), UNCERTAIN)
def test_an_uncertain_size_is_not_asserted(project: Project, old: str, new: str) -> None:
    project()
    text = MODEL.replace(old, new)
    assert text != MODEL
    ast.parse(text)
    assert guarded(text) == text


# Other code of a project that replaces the layer, its weight, or the Python of the module.
ELSEWHERE = [
    "import model\n\nnet = model.Net()\nnet.projection = model.nn.Identity()\n",
    "import model\n\nnet = model.Net()\nsetattr(net, 'projection', model.nn.Identity())\n",
    "import model\n\nnet = model.Net()\nfor name in vars(net):\n    setattr(net, name, None)\n",
    "import model\n\nnet = model.Net()\nnet.projection.weight = net.projection.weight[:, :2]\n",
    "import model\n\nclass Other(model.Net):\n    def __init__(self):\n        self.projection = None\n",
    "import model, torch\n\ntorch.fx.symbolic_trace(model.Net())\n",
    "import model, torch\n\ntorch.jit.script(model.Net())\n",
]


@pytest.mark.parametrize("other", ELSEWHERE)
def test_other_code_of_the_project_counts(project: Project, other: str) -> None:
    project(train=other)
    assert guarded(MODEL) == MODEL


# Files of a project with tracers and handlers out of reach of the model, or without an effect on it.
ELSEWHERE_BUT_APART = [
    "import torch\n\ntorch.fx.symbolic_trace(torch.nn.Linear(2, 2))\n",
    "import torch\nimport model\n# torch.fx would do\n'''torch.jit.script'''\n",
    "import torch\nimport model\n\n@torch.jit.script\ndef f(x):\n    return x\n",
    "import torch\nimport model\n\nisinstance(model.Net(), torch.jit.ScriptModule)\n",
    "try:\n    f()\nexcept RuntimeError:\n    pass\n",
    "import model\ntry:\n    model.Net()(1)\nexcept Exception:\n    pass\n",
    "import model\ntry:\n    model.Net()(1)\nexcept RuntimeError as e:\n    print(e)\n    raise\n",
    "import model\ntry:\n    model.Net()(1)\nexcept RuntimeError as e:\n"
    "    if 'out of memory' not in str(e):\n        raise\n    print(e)\n",
    "import model, torch\ntry:\n    net.load_state_dict(torch.load(f))\nexcept RuntimeError:\n    pass\n",
]
ELSEWHERE_TOGETHER: list[dict[str, str]] = [
    {
        "tracer": "import torch\n\ndef trace(net):\n    return torch.fx.symbolic_trace(net)\n",
        "train": "import model\nfrom tracer import trace\n\ntrace(model.Net())\n",
    },
    {"tracer": "import torch, importlib\n\ntorch.jit.script(importlib.import_module(name).Net())\n"},
    {"tracer": "import torch\n\ntorch.jit.script(torch.load('net.pt'))\n"},
    {"tracer": "import model\nfrom torch.jit import script\n\nscript(model.Net())\n"},
    {"tracer": "import model, torch\n\nclass Outer(torch.jit.ScriptModule):\n    pass\n"},
    {"train": "import model\ntry:\n    y = model.Net()(x)\nexcept RuntimeError:\n    y = model.Net()(x.T)\n"},
    {"train": "import model\ntry:\n    y = net(x)\nexcept (ValueError, RuntimeError):\n    y = None\n"},
]


@pytest.mark.parametrize("other", ELSEWHERE_BUT_APART)
def test_other_code_out_of_reach_does_not_count(project: Project, other: str) -> None:
    project(other=other)
    assert GUARD in guarded(MODEL)


@pytest.mark.parametrize("others", ELSEWHERE_TOGETHER)
def test_other_code_within_reach_counts(project: Project, others: dict[str, str]) -> None:
    project(**others)
    assert guarded(MODEL) == MODEL
    assert "note: no asserts: tra" in shapefix("guard", "model.py").err


def test_functions_of_scripted_code(project: Project) -> None:
    project()
    text = HEAD + (
        "def f(a, b):\n    return torch.mm(a, b)\n\n\n@torch.jit.script\ndef g(a, b):\n    return f(a, b)\n"
    )
    assert guarded(text) == text
    assert guarded(text.replace("@torch.jit.script\n", "")).count("# shapefix: guard") == 1


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("head", ["", "\ufeff", "# -*- coding: latin-1 -*-\n# \xe9\n"])
def test_every_other_byte_stays(project: Project, newline: str, head: str) -> None:
    text = (head + MODEL + "\n\n# the end \t ").replace("\n", newline)
    data = text.encode("latin-1" if "latin" in head else "utf-8")
    path = project(model=data) / "model.py"
    assert shapefix("guard", "model.py", "--apply").code == 0
    changed = path.read_bytes()
    assert changed != data
    assert changed.replace(GUARD.replace("\n", newline).encode(), b"") == data
    assert shapefix("guard", "model.py", "--remove", "--apply").code == 0
    assert path.read_bytes() == data


def test_an_assert_of_the_user_stays(project: Project) -> None:
    text = MODEL.replace("        return", "        assert x.dim() > 1  # shapefix: guarded\n        return")
    path = project(model=text) / "model.py"
    shapefix("guard", "model.py", "--remove", "--apply")
    assert path.read_text() == text


def test_a_notebook(project: Project) -> None:
    folder = project()
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": MODEL.splitlines(True),
        }
    ]
    data = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    path = folder / "model.ipynb"
    path.write_bytes(data)
    assert shapefix("guard", "model.ipynb", "--apply").code == 0
    assert GUARD in "".join(json.loads(path.read_bytes())["cells"][0]["source"])
    assert shapefix("guard", "model.ipynb", "--remove", "--apply").code == 0
    assert path.read_bytes() == data


def test_json_and_errors(project: Project) -> None:
    project(model=MODEL, broken="def f(:\n")
    ran = shapefix("guard", "model.py", "--output-format", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["changed"], document["applied"]) == (1, True, False)
    assert document["guards"][0]["condition"] == "x.shape[-1] == self.projection.in_features"
    assert shapefix("guard", "model.py:Missing").code == 2
    assert shapefix("guard", "broken.py").code == 2
    assert shapefix("guard", "missing.py").code == 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_tracing_and_exporting(project: Project) -> None:
    project()
    plain, net = namespace(MODEL)["Net"](), namespace(guarded(MODEL))["Net"]()
    x = torch.rand(2, 4)
    net.load_state_dict(plain.state_dict())
    assert torch.equal(torch.jit.trace(net, x)(x), plain(x))
    assert torch.equal(torch.export.export(net, (x,)).module()(x), plain(x))
    assert torch.equal(torch.compile(net, backend="eager", fullgraph=True)(x), plain(x))
    torch.fx.symbolic_trace(plain)
    with pytest.raises(torch.fx.proxy.TraceError):
        torch.fx.symbolic_trace(net)
