"""The extension in a real kernel, as Jupyter runs it: one session, many cells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shapefix.diagnosis.causes import Confidence
from shapefix.diagnosis.diagnose import diagnose_notebook
from shapefix.engine.settings import CheckOptions

MISSING = "needs ipykernel and nbclient: pip install -e '.[dev]'"
nbclient: Any = pytest.importorskip("nbclient", reason=MISSING)
nbformat: Any = pytest.importorskip("nbformat", reason=MISSING)
pytest.importorskip("ipykernel", reason=MISSING)

MODEL = """\
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, 20)
        self.second = nn.Linear(width, 30)

    def forward(self, x):
        return self.first(x).sum() + self.second(x).sum()"""
CELLS = {
    "load": "%load_ext shapefix\nimport torch\nfrom torch import nn",
    "nothing": "%shapefix why",
    "model": MODEL,
    "fails": "net = Net(271)\nloss = net(torch.zeros(8, 4000))",
    "why": "%shapefix why",
    "check all": "%shapefix check",
    "check": "%%check\nlayer = nn.Linear(4, 2)\nlayer(torch.zeros(3, 5))\n",
    "check clean": "%%check\nlayer(torch.zeros(3, 4)).shape",
    "check only": "%%check --no-run\nran = True\ntorch.zeros(3, 4) @ torch.zeros(3, 4)",
    "did not run": "'ran' in globals()",
    "check timed": "%%check\n%%time\ny = layer(torch.zeros(3, 4))\n",
    "shapes": "%%shapes\nscores = layer(torch.zeros(3, 4)).softmax(-1)\nscores.shape",
    "shapes of a module": "%%shapes\nclass Head(nn.Module):\n    def forward(self, x):\n        return x + 1",
    "timed": "\n%%time\n\nx = torch.zeros(4, 6, 8).transpose(1, 2)\nx.view(4, 48)\n",
    "why timed": "%shapefix why",
    "line timed": "%time x.view(4, 48)",
    "why line timed": "%shapefix why",
    "measured": "%%timeit -n1 -r1\nz = 1\nx.view(4, 48)\n",
    "why measured": "%shapefix why",
    "captured": "%%capture\nz = 1\nx.view(4, 48)\n",
    "why captured": "%shapefix why",
    "exec": "exec(open('part.py').read())",
    "why exec": "%shapefix why",
    "run": "%run part.py",
    "why run": "%shapefix why",
    "labels": "labels = torch.tensor([1, 7])\nnn.functional.cross_entropy(layer(torch.zeros(2, 4)), labels)",
    "why labels": "%shapefix why",
    "unknown size": "import random\nnet = Net(random.choice([31]))\nnet(torch.zeros(3, random.choice([40])))",
    "why unknown size": "%shapefix why",
    "chained": "try:\n    layer(labels)\nexcept RuntimeError as e:\n    raise ValueError('failed') from e",
    "why chained": "%shapefix why --verbose",
    "no magic of ours": "%shapefix dance",
    "no option of ours": "%%check --fast\n1 + 1",
    "broken": "%%check\nx = (",
    "help": "%shapefix help",
    "broken by us": "import shapefix.ipython.magics as m\nm.live_error = None",
    "why broken": "%shapefix why\n'still here'",
    "unload": "%unload_ext shapefix\nget_ipython().input_transformer_manager.line_transforms[0].__module__",
    "fails last": "net(torch.zeros(8, 4000))",
}  # fmt: skip


@dataclass(frozen=True)
class CellOutput:
    """The outputs of a cell: shown by shapefix as text and HTML, printed, the result, and the error."""

    shown: str = ""
    html: str = ""
    printed: str = ""
    result: str = ""
    error: str = ""
    traceback: str = ""


def _output(cell: Any) -> CellOutput:
    shown = html = printed = result = error = traceback = ""
    for each in cell.outputs:
        if each.output_type == "display_data":
            shown += each.data["text/plain"]
            html += each.data["text/html"]
        elif each.output_type == "stream":
            printed += each.text
        elif each.output_type == "execute_result":
            result += each.data["text/plain"]
        elif each.output_type == "error":
            error += f"{each.ename}: {each.evalue}"
            traceback += re.sub(r"\x1b\[[\d;]*m", "", "\n".join(each.traceback))
    return CellOutput(shown, html, printed, result, error, traceback)


@pytest.mark.slow
def test_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "profile"))
    (tmp_path / "part.py").write_text("import torch\nq = torch.zeros(3, 4)\nq @ q\n")
    made = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=made)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(
        notebook, allow_errors=True, kernel_name="python3", resources=resources, timeout=60
    ).execute()
    outputs = dict(zip(CELLS, map(_output, notebook.cells), strict=True))
    number = {name: count for count, name in enumerate(CELLS, 1)}

    def rows(name: str) -> list[str]:
        """Return the lines of a report without their indentation and doubled spaces."""
        return [" ".join(row.split()) for row in outputs[name].shown.split("\n")]

    assert outputs["load"] == CellOutput()
    assert outputs["nothing"].printed == "shapefix: there was no exception in this session\n"

    # The diagnosis, with the values in the frames.
    why = rows("why")
    assert why[0] == "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4000 and 271x20)"
    assert f"In [{number['fails']}]:2 loss = net(torch.zeros(8, 4000))" in why
    assert f"In [{number['model']}]:8 return self.first(x).sum() + self.second(x).sum()" in why
    assert "self.first Linear(in_features=271, out_features=20, bias=True) on cpu" in why
    assert "x Tensor [8, 4000] float32 cpu" in why
    assert "net.first = Linear(in_features=271, out_features=20, bias=True) on cpu" in why
    assert "Cause: proved" in why
    assert f"--> In [{number['model']}]:8:16" in why
    assert not any("self.second`" in row for row in why)
    assert any(f"`width` is 271 from line 1 of cell {number['fails']}" in row for row in why)
    assert not any("--apply" in row or "shapefix probe" in row for row in why)
    html = outputs["why"].html
    assert html.startswith("<pre")
    assert re.sub(r"<[^>]+>", "", html).count("SF501") == outputs["why"].shown.count("SF501") > 0
    assert html.count("<span") == html.count("</span>") > 0

    # A failed cell is left out from its failing statement on.
    assert outputs["check all"].shown == (
        "shapefix: nothing found in the cells of this session, up to the error in In [4];"
        " `%shapefix why` explains the last one"
    )
    assert "SF501" in outputs["check"].shown
    assert f"--> In [{number['check']}]:3:1" in rows("check")
    assert outputs["check"].error.startswith("RuntimeError: mat1 and mat2")
    # The cell itself runs: its rows, its result and its error are those without the magic.
    assert f"Cell In[{number['check']}], line 3" in outputs["check"].traceback
    clean = outputs["check clean"]
    assert (clean.shown, clean.result) == (
        f"shapefix: nothing found in In [{number['check clean']}]",
        "torch.Size([3, 2])",
    )
    assert "SF503" in outputs["check only"].shown
    assert outputs["check only"].error == ""
    assert outputs["did not run"].result == "False"
    assert "nothing found" in outputs["check timed"].shown
    assert "Wall time" in outputs["check timed"].printed

    assert "2 | scores = layer(torch.zeros(3, 4)).softmax(-1) scores f32[3, 2]" in rows("shapes")
    assert outputs["shapes"].result == "torch.Size([3, 2])"
    assert rows("shapes of a module")[0].startswith("Head.forward (In [")

    # Code that magics compile is that of the cell.
    for name, row in (("timed", 5), ("line timed", 1), ("measured", 3), ("captured", 3)):
        own = rows(f"why {name}")
        line = CELLS[name].split("\n")[row - 1]
        assert f"In [{number[name]}]:{row} {line}" in own
        assert "x Tensor [4, 8, 6] float32 cpu strides (48, 1, 8)" in own
        assert "Cause: proved" in own, name
        assert any(each.startswith("error[SF101]") for each in own)
    assert "part.py:3 in <module>" in rows("why exec")
    assert "part.py:3 q @ q" in rows("why run")
    for name in ("why exec", "why run"):
        assert any(each.startswith("error[SF503]") for each in rows(name))

    # What no check knows, the values tell.
    assert "labels Tensor [2] int64 cpu, values 1 to 7" in rows("why labels")
    unknown = rows("why unknown size")
    assert "net.first = Linear(in_features=31, out_features=20, bias=True) on cpu" in unknown
    assert "error[traced-error] matrix-product: `self.first` takes 31, and 40 arrived" in unknown
    assert "4 | self.first = nn.Linear(width, 20)" in unknown
    chained = rows("why chained")
    assert chained[0].startswith("RuntimeError: mat1 and mat2 must have the same dtype")
    assert chained[1] == "(the cell ended with ValueError: failed)"
    assert "input: Tensor [2] int64 cpu, values 1 to 7" in chained

    # Errors of ours are one line, and the cell runs.
    assert outputs["no magic of ours"].printed.startswith("shapefix: unknown command 'dance'")
    assert outputs["no option of ours"].printed.startswith("shapefix: unknown option '--fast'")
    assert outputs["no option of ours"].result == "2"
    assert outputs["broken"].error.startswith("SyntaxError")
    assert "%%check --no-run" in outputs["help"].printed
    broken = outputs["why broken"]
    assert broken.printed.startswith("shapefix: internal error: TypeError")
    assert broken.printed.count("\n") == 1
    assert broken.result == "'still here'"
    assert "shapefix" not in outputs["unload"].result

    # `shapefix diagnose` says the same about the error in the file, without the module that raised.
    assert outputs["fails last"].error.endswith("(8x4000 and 31x20)")
    last = notebook.cells[number["fails"] - 1]
    for cell in notebook.cells:
        if cell is not last:
            cell.outputs = []
    path = tmp_path / "session.ipynb"
    nbformat.write(notebook, path)
    stored = diagnose_notebook(str(path), str(tmp_path), CheckOptions(isolated=True, use_cache=False))
    assert stored is not None
    assert [cause.confidence for cause in stored.causes] == [Confidence.LIKELY] * 2
    finding = stored.causes[0].finding
    assert f"{finding.severity}[{finding.code}] {finding.name}: {finding.message}" in why
