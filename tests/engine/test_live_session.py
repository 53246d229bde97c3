"""Sessions of an editor: after any changes, their findings are those of a new check of the same texts."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from day_seeds import seeds_of_the_day

from shapefix.diagnostics import Diagnostic
from shapefix.engine.live_session import LiveSession
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
MODEL = "import torch\n\n\ndef flatten(x):\n    return torch.relu(x.view(-1, x.size(-1)))\n"
SLICED = "import torch\nfrom model import flatten\n\nflatten(torch.zeros(4, 6, 8)[:, :-1])\n"
WHOLE = SLICED.replace("[:, :-1]", "")


def fresh(texts: dict[str, str]) -> tuple[Diagnostic, ...]:
    """The findings of a new check of files with these texts."""
    overlay = {path: text.encode() for path, text in texts.items()}
    options = CheckOptions(jobs=1, use_cache=False)
    return CheckSession(list(texts), Settings(options), overlay=overlay).run().findings()


def live(texts: dict[str, str]) -> LiveSession:
    session = LiveSession(CheckOptions())
    for path, text in texts.items():
        session.set_text(path, text.encode())
    return session


def test_a_change_is_seen_in_the_files_that_depend_on_it(tmp_path: Path) -> None:
    model, train = tmp_path / "model.py", tmp_path / "train.py"
    model.write_text(MODEL)
    train.write_text(WHOLE)
    session = live({str(model): MODEL})
    assert session.refresh()
    assert session.findings() == ()

    train.write_text(SLICED)
    session.changed(str(train))
    assert session.refresh()
    assert [(each.code, each.span.row) for each in session.findings()] == [("SF101", 5)]

    session.set_text(str(train), WHOLE.encode())
    assert session.refresh()
    assert session.findings() == ()

    session.close(str(train))
    assert session.refresh()
    assert [each.code for each in session.findings()] == ["SF101"]

    session.set_text(str(model), MODEL.replace(".view(", ".reshape(").encode())
    assert session.refresh()
    assert session.findings() == ()


def test_a_text_that_does_not_parse_hides_its_last_state_from_importers(tmp_path: Path) -> None:
    texts = {str(tmp_path / "model.py"): MODEL, str(tmp_path / "train.py"): SLICED}
    for path, text in texts.items():
        Path(path).write_text(text)
    session = live(texts)
    assert session.refresh()
    assert len(session.findings()) == 1
    broken = texts | {str(tmp_path / "model.py"): MODEL + "x = (\n"}
    session.set_text(str(tmp_path / "model.py"), broken[str(tmp_path / "model.py")].encode())
    assert session.refresh()
    assert session.findings() == fresh(broken) == ()
    assert [failure.path for failure in session.failures()] == [str(tmp_path / "model.py")]


def test_work_that_newer_texts_make_useless_is_resumed(tmp_path: Path) -> None:
    texts = {str(tmp_path / "model.py"): MODEL, str(tmp_path / "train.py"): SLICED}
    for path, text in texts.items():
        Path(path).write_text(text)
    session = live(texts)
    assert not session.refresh(lambda: True)
    assert session.refresh()
    assert session.findings() == fresh(texts) != ()


def test_libraries_excluded_and_ignored_files_are_silent(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("scratch/\n*_old.py\n")
    (tmp_path / "pyproject.toml").write_text('[tool.shapefix]\nextend-exclude = ["generated"]\n')
    names = ("scratch/a.py", "b_old.py", "generated/c.py", "env/site-packages/torch/d.py", "src/train.py")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    session = LiveSession(CheckOptions())
    assert [name for name in names if not session.is_silent(str(tmp_path / name))] == ["src/train.py"]


def test_a_file_becomes_an_importer(tmp_path: Path) -> None:
    texts = {str(tmp_path / "model.py"): MODEL, str(tmp_path / "train.py"): "print(1)\n"}
    for path, text in texts.items():
        Path(path).write_text(text)
    session = live({str(tmp_path / "model.py"): MODEL})
    assert session.refresh()
    assert session.findings() == ()
    (tmp_path / "train.py").write_text(SLICED)
    session.changed(str(tmp_path / "train.py"))
    assert session.refresh()
    assert [each.code for each in session.findings()] == ["SF101"]


def edited(text: str, draw: random.Random) -> str:
    """A text after a small change, as a keystroke or a paste makes it."""
    rows = text.splitlines(keepends=True)
    at = draw.randrange(len(rows))
    match draw.randrange(6):
        case 0:
            del rows[at]
        case 1:
            rows[at] = rows[at][: draw.randrange(len(rows[at]) + 1)]
        case 2:
            rows.insert(at, rows[draw.randrange(len(rows))])
        case 3:
            rows.insert(at, draw.choice(["# höhe 😀\n", "\n", "    x = x.view(-1, 8)\n", "if (\n"]))
        case 4:
            rows[at] = rows[at].replace("8", "16", 1)
        case _:
            rows[at], rows[-1] = rows[-1], rows[at]
    return "".join(rows) or "\n"


def follow(folder: Path, names: list[str], seed: int, steps: int) -> None:
    draw = random.Random(seed)
    first = {str(folder / name): (folder / name).read_text() for name in names}
    texts = dict(first)
    session = live(texts)
    for _ in range(steps):
        path = draw.choice(sorted(texts))
        # Most keystrokes complete what the one before has broken.
        texts[path] = edited(first[path] if draw.random() < 0.6 else texts[path], draw)
        session.set_text(path, texts[path].encode())
        if draw.random() < 0.3:
            session.refresh(lambda: True)
        assert session.refresh()
        assert session.findings() == fresh(texts), (seed, texts)


@pytest.mark.slow
@pytest.mark.parametrize("project", ["unet-skips", "sliced-logits-eval"])
def test_findings_after_random_edits_are_those_of_a_new_check(project: str, tmp_path: Path) -> None:
    for path in (FIXTURES / project / "before").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    names = sorted(path.name for path in tmp_path.glob("*.py"))
    follow(tmp_path, names, 1, 6)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("project", sorted({path.parts[-3] for path in FIXTURES.glob("*/before/*.py")}))
def test_long_random_edits(project: str, tmp_path: Path) -> None:
    for path in (FIXTURES / project / "before").glob("*.py"):
        (tmp_path / path.name).write_text(path.read_text())
    names = sorted(path.name for path in tmp_path.glob("*.py"))
    for seed in seeds_of_the_day(3):
        follow(tmp_path, names, seed, 25)
