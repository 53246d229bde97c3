"""No control character of a probed script gets out: of its names, values, output and exceptions."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch
from probing import Probed, probed_file
from torch import nn

import shapefix
from shapefix.cli.probe_options import ProbeOptions
from shapefix.cli.probe_output import report
from shapefix.cli.terminal import prepare_streams

ODD = "".join(
    map(
        chr,
        (
            *range(1, 32),
            *range(0x7F, 0xA0),
            *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
            *range(0x202A, 0x202F),
            *range(0x2066, 0x206A),
        ),
    )
)
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")

SCRIPT = f"""\
import atexit, os, sys, warnings
import torch
from torch import nn
from torch.utils.data import DataLoader, default_collate

ODD = {ODD!a}  # \u202e\x1b[31m\x9b
print(ODD)
print(ODD, file=sys.stderr)
atexit.register(print, ODD)
warnings.warn(ODD)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module(ODD.replace(".", ""), nn.Linear(4, 4))
        self.register_parameter("p" + ODD.replace(".", ""), nn.Parameter(torch.zeros(2)))
        self.fc = nn.Linear(5, 4)  # \x9b31m\u2066

    def forward(self, **given):
        hidden = self._modules[ODD.replace(".", "")](given["x" + ODD])
        if len(hidden) == 2:
            return self.fc(hidden)
        return hidden


Net.__name__ = Net.__qualname__ = "Net" + ODD
class Rows(list): pass
Rows.__name__ = Rows.__qualname__ = "Rows" + ODD
def collate(rows): return default_collate(rows)
collate.__name__ = collate.__qualname__ = "collate" + ODD
class SGD(torch.optim.SGD): pass
SGD.__name__ = SGD.__qualname__ = "SGD" + ODD
class Failure(ValueError): pass
Failure.__name__ = Failure.__qualname__ = "Failure" + ODD

model = Net()
optimizer = SGD(model.parameters(), lr=0.1)
rows = Rows([{{"x" + ODD: torch.ones(4), "t" + ODD: ODD, ODD: [ODD, ODD]}}] * 4)
for batch in DataLoader(rows, batch_size=4, collate_fn=collate):
    model(**batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model" + ODD.replace("/", ""))
os.makedirs("folder" + ODD, exist_ok=True)
try:
    raise Failure(ODD)
except Failure:
    pass
for batch in DataLoader(rows, batch_size=4, collate_fn=collate):
    try:
        raise Failure(ODD)
    except Failure as error:
        print(error)
"""
ENDINGS = {
    "layer": "model(**{'x' + ODD: torch.ones(2, 4)})\n",
    "exception": "raise Failure(ODD + chr(10) + ODD) from KeyError(ODD)\n",
}


@pytest.fixture(scope="module", params=ENDINGS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Probed:
    folder = tmp_path_factory.mktemp(f"odd\x1b[31m\u202e{request.param}")
    name = f"train{ODD.replace('/', '')[:100]}.py"
    (folder / name).write_text(SCRIPT + ENDINGS[request.param], "utf-8")
    return probed_file(folder, name, ODD, f"--name={ODD}")


def assert_escaped(text: str, kept: str = "\n") -> None:
    found = {each for each in text if each in ODD and each not in kept}
    around = [text[max(text.index(each) - 60, 0) : text.index(each) + 20] for each in sorted(found)]
    assert not found, around[:3]


def test_no_report_of_a_probe_has_a_control_character(
    run: Probed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run.folder)
    for output_format in ("full", "concise", "json", "github"):
        for color in ("never", "always"):
            page = tmp_path / "page.html"
            options = ProbeOptions(
                run.run.script, ["--name", ODD], None, 1, 60.0, "auto", None, color, False, output_format,
                report=str(page),
            )  # fmt: skip
            out, err = io.TextIOWrapper(io.BytesIO(), "cp1252"), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                prepare_streams()
                report(run.run, run._told, options, 1)
                out.flush()
            text = out.buffer.getvalue().decode("cp1252")
            assert len(text) > 100
            assert_escaped(SEQUENCE.sub("", text) if color == "always" else text)
            assert_escaped(err.getvalue())
            if output_format == "json":
                document = json.loads(text)
                for part in ("script", "loaders", "batches", "modules", "writes", "ending"):
                    assert "\\x1b" in repr(document[part]), part
        html = page.read_text("utf-8")
        assert len(html) > 5_000
        assert_escaped(html, "\n\t")
        assert not re.search(r"&#(x0*(1b|202e)|0*27|0*8238);", html, re.IGNORECASE)


class Odd(nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.add_module(ODD.replace(".", ""), nn.Linear(4, 4))
        self.unused = nn.ParameterDict({ODD.replace(".", ""): nn.Parameter(torch.zeros(2))})

    def forward(self, **given: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self._modules[ODD.replace(".", "")](given[ODD])
        if len(hidden) == 3:
            raise ValueError(ODD)
        return hidden


Odd.__name__ = Odd.__qualname__ = f"Odd{ODD}"


@pytest.mark.parametrize("rows", [2, 3])
def test_no_report_of_a_single_step_has_a_control_character(rows: int) -> None:
    found = shapefix.probe(Odd(), {ODD: torch.ones(rows, 4)}, lambda output, batch: output.sum())
    for text in (str(found), repr(found), found._repr_html_()):
        assert "Odd" in text or text.startswith("<shapefix report")
        assert_escaped(text)
