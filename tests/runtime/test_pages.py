"""The page of a run: what is in it, that it stands alone, and what a real browser makes of it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import seen
from probing import Probed, probed, run_shapefix

from shapefix.report.view import View
from shapefix.runtime.findings.collect import collect_findings
from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import MemoryTimelineLine
from shapefix.runtime.report.page.html import page
from shapefix.runtime.report.page.timeline import memory_plot
from shapefix.runtime.report.page.write import report_problem

TRAINS = """\
import torch
from torch import nn
from torch.utils.data import DataLoader

class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.wide, self.back = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        return x + self.back(torch.relu(self.wide(x)))

rows = [{"image": torch.randn(1, 16, 16), "label": torch.tensor(n % 3)} for n in range(64)]
model = nn.Sequential(nn.Flatten(), nn.Linear(256, 64), *(Block(64) for _ in range(6)), nn.Linear(64, 3))
optimizer = torch.optim.AdamW(model.parameters())
for batch in DataLoader(rows, batch_size=32):
    loss = nn.functional.cross_entropy(model(batch["image"]), batch["label"])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.save(model.state_dict(), "model.pt")
"""

WILD = """\
import atexit
import torch

class Wild(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module("<script>alert(1)</script>", torch.nn.Linear(4, 4))
        self.fc = torch.nn.Linear(5, 4)  # </li><script>alert(2)</script>

    def forward(self, **given):
        x, = given.values()
        return self.fc(self._modules["<script>alert(1)</script>"](x))

Wild.__name__ = "<img src=x onerror=alert(3)>"
atexit.register(print, "</pre><script>alert(5)</script> {{ 7 * 191 }} \\x1b[31m")
Wild()(**{'"><script>alert(4)</script>': torch.ones(2, 4)})
"""


@dataclass
class Element:
    """A tag of a page, with what is inside."""

    tag: str
    attributes: dict[str, str | None]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def all(self, tag: str) -> list[Element]:
        inner = [found for each in self.children for found in each.all(tag)]
        return [self, *inner] if self.tag == tag else inner

    def whole(self) -> str:
        return self.text + "".join(each.whole() for each in self.children)


class Reader(HTMLParser):
    """Reads a page, and accepts no tag that is not closed where it should be."""

    VOID = ("meta", "path", "line", "rect", "circle", "polyline", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.root = Element("root", {})
        self.open = [self.root]
        self.feed(text)
        self.close()
        assert self.open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].text += data


def page_of(ran: Probed) -> str:
    known = collect_findings(ran.run.observed)
    view = View(str(ran.folder), sources=lambda path: Path(path).read_text("utf-8"))
    return page(ran.run, ["--epochs", "3"], known, view)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(probed(tmp_path_factory.mktemp("trained"), TRAINS))


@pytest.fixture(scope="module")
def wild(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(probed(tmp_path_factory.mktemp("wild"), WILD))


def test_a_page_shows_the_whole_run(trained: str) -> None:
    root = Reader(trained).root
    assert root.all("title")[0].text == "shapefix probe: train.py"
    assert [each.text for each in root.all("h2")] == [
        "Sizes", "Modules", "Memory over the first step", "Time of a step", "Batches", "Gradients",
        "Written to a temporary folder", "Protection of the working tree",
    ]  # fmt: skip
    facts = dict(
        zip((each.text for each in root.all("dt")), (each.text for each in root.all("dd")), strict=True)
    )
    assert facts["training steps"] == "1"
    assert facts["gradients"] == "28 of 28"
    assert "✓ nothing found" in root.whole()
    (batch,) = [each for each in root.all("table") if "collated by default_collate" in each.whole()]
    assert [each.text for each in batch.all("td")] == ["f32[32, 1, 16, 16]", "i64[32]"]
    tree = [each.whole() for each in root.all("summary") if "Block" in each.whole()]
    assert len(tree) == 1
    assert "6 × Block" in tree[0]
    assert "f32[32, 64] → f32[32, 64]" in tree[0]
    assert facts["parameters"] == "215.2 k"


def test_the_picture_of_the_sizes_goes_from_the_batch_to_the_gradients(trained: str) -> None:
    flow = next(each for each in Reader(trained).root.all("svg") if "batch" in each.whole())
    texts = [each.text for each in flow.all("text")]
    assert [text for text in texts if "[" in text and " " not in text.split("[")[0]] == [
        "f32[32, 1, 16, 16]", "f32[32, 256]", "f32[32, 64]", "f32[32, 64]", "f32[32, 3], i64[32]", "f32[]",
    ]  # fmt: skip
    assert [text for text in texts if text.startswith(("batch", "2 …", "cross", "gradient"))] == [
        "batch", "2 … 7", "cross_entropy", "gradients for 28 of 28 parameters",
    ]  # fmt: skip
    assert len(flow.all("rect")) == 7


def test_the_picture_of_the_memory_has_every_phase(trained: str) -> None:
    narrow, wide = [each for each in Reader(trained).root.all("svg") if each.all("polygon")]
    assert (narrow.attributes["class"], wide.attributes["class"]) == ("narrow", "wide")
    shown = [each.all("title")[0].text.partition(":")[0] for each in wide.all("polygon")]
    assert shown == ["forward", "between", "backward", "between", "optimizer"]
    assert any(each.text.startswith("peak ") for each in wide.all("text"))


def test_the_peak_is_where_the_most_was_sampled() -> None:
    samples = [(10.0 + number / 10, 100 * number) for number in range(11)]
    line = MemoryTimelineLine(kind="memory_timeline", source="cuda", phase="forward", samples=samples)
    back: MemoryTimelineLine = {**line, "phase": "backward", "samples": [(11.1, 2000), (12.0, 500)]}
    known = memory_plot(Observations((line, back)), 340, 200)
    assert known is not None
    assert (known.peak, known.seconds, known.source) == (
        "2.0 KiB",
        "2.0 s",
        "memory allocated by PyTorch on the GPU",
    )
    assert known.peak_y == known.top
    assert [(each.name, each.seconds, each.peak) for each in known.phases] == [
        ("forward", "1.1 s", "1000 B"),
        ("backward", "900.0 ms", "2.0 KiB"),
    ]
    assert known.ticks[0].text == "0 B"
    assert memory_plot(Observations(()), 340, 200) is None


def test_nothing_that_a_script_says_becomes_part_of_the_page(wild: str) -> None:
    root = Reader(wild).root
    assert root.all("script") == root.all("img") == []
    text = root.whole()
    for number in (1, 2, 4, 5):
        assert f"<script>alert({number})</script>" in text
    assert "<img src=x onerror=alert(3)>" in text
    assert "{{ 7 * 191 }}" in text
    assert "\x1b" not in wild


def test_a_failure_is_marked_in_words_and_not_in_colour_only(wild: str) -> None:
    root = Reader(wild).root
    assert "✗ 1 error" in root.whole()
    (finding,) = root.all("article")
    (head,) = finding.all("h3")
    assert (head.text.strip(), [each.text for each in head.children]) == ("in-features", ["error", "SF501"])
    (place,) = [each for each in finding.all("mark") if each.attributes["class"] == "place"]
    assert place.text == "torch.nn.Linear(5, 4)"
    flow = root.all("svg")[0]
    assert any(each.text.endswith(", raised") for each in flow.all("text"))


@pytest.mark.parametrize("name", ["trained", "wild"])
def test_a_page_stands_alone(name: str, request: pytest.FixtureRequest) -> None:
    text = request.getfixturevalue(name)
    root = Reader(text).root
    assert root.all("link") == root.all("script") == root.all("iframe") == []
    assert "url(" not in text
    assert "@import" not in text
    everything = [root]
    ids: list[str] = []
    while everything:
        each = everything.pop()
        everything += each.children
        assert not {"src", "href", "srcset", "style", "onload", "onclick"} & each.attributes.keys()
        ids += [each.attributes["id"] or ""] if "id" in each.attributes else []
    assert len(ids) == len(set(ids))
    assert root.all("html")[0].attributes["lang"] == "en"
    for svg in root.all("svg"):
        assert svg.attributes["role"] == "img"
        assert svg.attributes["aria-labelledby"] in ids
        assert svg.all("title")[0].text


def shapefix(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run_shapefix("probe", *arguments, folder=folder)


def test_the_command_writes_the_page_and_changes_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))\n")
    (tmp_path / "report.html").write_text("old")
    ran = shapefix("train.py", "--report", "report.html", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "Report written to report.html.\n")
    assert ran.stdout.endswith("Nothing found.\n")
    assert (tmp_path / "report.html").read_text("utf-8").startswith("<!DOCTYPE html>\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "train.py"]


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (".", "is a directory"),
        ("nowhere/report.html", "directory nowhere does not exist"),
    ],
)
def test_where_no_page_can_be_written_nothing_is_run(tmp_path: Path, report: str, said: str) -> None:
    (tmp_path / "train.py").write_text("print('it ran')\n")
    ran = shapefix("train.py", "--report", report, folder=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", f"error: --report {report}: {said}\n")


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["trained", "wild"])
def test_a_browser_shows_it_on_a_phone_and_on_a_desk(
    name: str, dark: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    phone, desk = seen(tmp_path, request.getfixturevalue(name), dark)
    for shown, width in ((phone, 360), (desk, 1280)):
        assert (shown["width"], shown["needs"]) == (width, width)
        assert shown["dark"] == dark
        assert shown["asked"] == []
        assert shown["texts"] > 30
        assert shown["faint"] == []
        assert len(shown["pictures"]) == (2 if name == "trained" else 1)
        assert all(wide > 200 and high > 100 for wide, high in shown["pictures"])


@pytest.mark.browser
def test_the_browser_finds_what_is_wrong_with_a_page(tmp_path: Path) -> None:
    wrong = (
        "<!DOCTYPE html><html><body style='background: #fff'><p style='color: #bbb'>faint</p>"
        "<div style='width: 3000px'>wide</div></body></html>"
    )
    phone, _ = seen(tmp_path, wrong, dark=False)
    assert phone["needs"] == 3000 + 8
    assert [text for text, _ in phone["faint"]] == ["faint"]


def test_without_jinja_it_is_said_before_anything_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert report_problem(str(tmp_path / "report.html")) == "requires Jinja2: pip install 'shapefix[report]'"
    monkeypatch.undo()
    assert report_problem(str(tmp_path / "report.html")) is None
