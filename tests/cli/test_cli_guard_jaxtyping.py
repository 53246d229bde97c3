"""`shapefix guard --style jaxtyping`: annotations that hold when the program runs."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Project, project_in_a_folder, shapefix  # noqa: F401

from shapefix.guards.dependencies import depends_on

MODEL = """import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.a = nn.Linear(width, 8)
        self.conv = nn.Sequential(nn.Conv2d(3, 4, 3))

    def forward(self, x):
        return self.a(x)

    def encode(
        self,
        x: torch.Tensor,  # an image
        y: "torch.Tensor",
        z,
        mask=None,
    ):
        return self.conv(x), self.a(y), self.a(torch.tanh(z))


def product(x, y):
    return torch.mm(x, y)
"""
FORWARD = (
    '    def forward(self, x: Float[torch.Tensor, "*batch {self.a.in_features}"]):  # shapefix: guard x\n'
)
ENCODE = """        x: Float[torch.Tensor, "*batch {self.conv[0].in_channels} height width"],  # an image
        y: "torch.Tensor",
        z: Shaped[torch.Tensor, "... {self.a.in_features}"],
        mask=None,
    ):  # shapefix: guard x: torch.Tensor, z
"""
PRODUCT = (
    'def product(x: Shaped[torch.Tensor, "rows inner"], y: Shaped[torch.Tensor, "inner columns"]):'
    "  # shapefix: guard x, y\n"
)


def annotated(text: str, name: str = "") -> str:
    """The text of model.py in this folder after `guard --style jaxtyping --apply`."""
    path = Path("model.py")
    path.write_bytes(text.encode("utf-8"))
    ran = shapefix("guard", f"model.py{name}", "--style", "jaxtyping", "--apply")
    assert ran.code == 0, ran.err
    return path.read_bytes().decode("utf-8")


def test_written_kept_and_removed(project: Project) -> None:
    folder = project()
    (folder / "requirements.txt").write_text("torch\njaxtyping>=0.2\n")
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    text = annotated(MODEL)
    assert FORWARD in text
    assert "from jaxtyping import Float  # shapefix: guard\nfrom torch import nn\n" in text
    assert annotated(text) == text
    more = annotated(text, ":Net.encode")
    assert FORWARD + "        return self.a(x)\n" in more
    assert ENCODE in more
    most = annotated(more, ":product")
    assert PRODUCT in most
    ast.parse(most)
    assert shapefix("guard", "model.py:Net.encode", "--remove", "--apply").code == 0
    assert ENCODE not in Path("model.py").read_text()
    assert FORWARD in Path("model.py").read_text()
    assert shapefix("guard", "model.py", "--remove", "--apply").code == 0
    assert Path("model.py").read_text() == MODEL


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_every_other_byte_stays(project: Project, newline: str) -> None:
    folder = project()
    (folder / "requirements.txt").write_text("jaxtyping")
    odd = MODEL.replace("def forward(self, x)", "def forward(self,  é, x )").replace("-> None", "")
    text = (odd + "# the end \t ").replace("\n", newline)
    made = annotated(text)
    assert "é, x: Float[" in made
    assert shapefix("guard", "model.py", "--remove", "--apply").code == 0
    assert Path("model.py").read_bytes() == text.encode()


# Headers and imports without an annotation.
WITHOUT = [
    ("(self, x):\n        return self.a(x)", "(self, x=None):\n        return self.a(x)"),
    ("(self, x):\n        return self.a(x)", "(self, x): return self.a(x)"),
    ("(self, x):\n        return self.a(x)", "(self, x):  # mine\n        return self.a(x)"),
    ("(self, x):\n        return self.a(x)", "(self, x: list[int]):\n        return self.a(x)"),
    (
        "(self, x):\n        return self.a(x)",
        "(self, x" + "x" * 60 + "):\n        return self.a(x" + "x" * 60 + ")",
    ),
]


@pytest.mark.parametrize(("old", "new"), WITHOUT)
def test_headers_without_an_annotation(project: Project, old: str, new: str) -> None:
    folder = project()
    (folder / "requirements.txt").write_text("jaxtyping")
    assert old in MODEL
    assert annotated(MODEL.replace(old, new)) == MODEL.replace(old, new)


def test_imports_of_the_user_are_used(project: Project) -> None:
    project()
    ways = {
        "import jaxtyping as jt\n": "jt.Float[torch.Tensor,",
        "from jaxtyping import Float as Fl\n": "Fl[torch.Tensor,",
        "from jaxtyping import Float\nfrom torch import Tensor\n": "Float[Tensor,",
    }
    for imported, written in ways.items():
        made = annotated(imported + MODEL)
        assert f"x: {written}" in made
        assert made.startswith(imported + "import torch\n")
        assert made.count("jaxtyping") == 1


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("requirements-dev.txt", "jaxtyping==0.3", True),
        ("pyproject.toml", 'dependencies = ["torch", "jaxtyping"]', True),
        ("setup.cfg", "install_requires =\n    jaxtyping\n", True),
        ("environment.yml", "  - pip:\n    - jaxtyping\n", True),
        ("other.py", "from jaxtyping import Float\n", True),
        ("requirements.txt", "# jaxtyping\ntorch\n", False),
        ("requirements.txt", "not-jaxtyping-at-all\n", False),
        ("notes.txt", "jaxtyping\n", False),
        ("other.py", "# jaxtyping\n", False),
    ],
)
def test_never_a_dependency_that_the_project_lacks(
    project: Project, name: str, content: str, expected: bool
) -> None:
    path = project(model=MODEL) / "model.py"
    (path.parent / name).write_text(content)
    assert depends_on(str(path), str(path.parent), "jaxtyping") == expected
    ran = shapefix("guard", "model.py", "--style", "jaxtyping", "--output-format", "json")
    assert ran.code == (1 if expected else 2)
    if expected:
        assert json.loads(ran.out)["guards"][0]["axes"] == "*batch {self.a.in_features}"
    else:
        assert ran.err.count("\n") == 1
        assert "does not depend on jaxtyping" in ran.err


def test_jaxtyping_and_beartype_accept_what_runs(project: Project) -> None:
    jaxtyping: Any = pytest.importorskip("jaxtyping")
    pytest.importorskip("beartype")
    folder = project()
    (folder / "requirements.txt").write_text("jaxtyping")
    (folder / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    annotated(annotated(annotated(MODEL), ":Net.encode"), ":product")
    space: dict[str, Any] = {}
    with jaxtyping.install_import_hook("model", "beartype.beartype"):
        exec("import sys\nsys.path.insert(0, '.')\nimport model", space)
    net, product = space["model"].Net(), space["model"].product
    plain: dict[str, Any] = {"__name__": "plain"}
    exec(MODEL, plain)
    other = plain["Net"]()
    other.load_state_dict(net.state_dict())
    for sizes in ((2, 4), (4,), (3, 2, 4)):
        x = torch.rand(sizes)
        assert torch.equal(net(x), other(x))
    image, ids = torch.rand(2, 3, 8, 8), torch.ones(2, 4, dtype=torch.long)
    net.encode(image, image[0, 0, :2, :4], ids)
    net.encode(image[0], image[0, 0, :2, :4], ids)
    assert product(ids, ids.t()).shape == (2, 2)
    wrong: list[tuple[Any, ...]] = [
        (net, torch.rand(2, 5)),
        (net.encode, image[:, :2], ids.float(), ids),
        (net.encode, image, ids.float(), ids[:, :3]),
        (product, ids, ids),
    ]
    for function, *given in wrong:
        with pytest.raises(jaxtyping.TypeCheckError):
            function(*given)
