"""What was not checked is said: unknown datasets, batches and models, and limits of the analysis."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from shapefix.cli.main import run
from shapefix.engine import analysis
from shapefix.engine.session import CheckSession
from shapefix.engine.settings import CheckOptions, Settings

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from somewhere import build_model, get_data, get_loaders


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)


"""
FIRST = HEAD.count("\n") + 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(code: str) -> list[tuple[int, str]]:
    """Return the lines, counted in code, and messages of what was not checked."""
    Path("train.py").write_text(HEAD + textwrap.dedent(code))
    session = CheckSession((".",), Settings(CheckOptions(use_cache=False))).run()
    assert not session.failures()
    return [((each.row or 0) - FIRST + 1, each.message) for each in session.unchecked()]


def test_an_unknown_dataset_of_a_loader_is_named_where_it_comes_from() -> None:
    assert notes("""\
        data = get_data("train")
        loader = DataLoader(data.shuffle(0), batch_size=4)
        net = Net()
        for batch in loader:
            net(batch).sum().backward()
    """) == [(1, "the dataset from `get_data` is unknown, so its batches were not checked")]


def test_a_dataset_whose_mapped_function_is_unknown() -> None:
    assert notes("""\
        from datasets import load_dataset
        from transformers import Trainer

        data = load_dataset("text", data_files="a.txt", split="train")
        data = data.map(get_data, remove_columns=["text"])
        trainer = Trainer(build_model(), train_dataset=data)
    """) == [(5, "the dataset from `data.map` is unknown, so its batches were not checked")]


def test_an_unknown_dataset_of_a_trainer() -> None:
    assert notes("""\
        from transformers import AutoModelForCausalLM, Trainer

        def main():
            model = AutoModelForCausalLM.from_pretrained("gpt2")
            Trainer(model=model, train_dataset=get_data()).train()

        main()
    """) == [(5, "the dataset from `get_data` is unknown, so its batches were not checked")]


def test_an_unknown_model_is_named_where_it_comes_from() -> None:
    assert notes("""\
        model = build_model(3).to("cuda")
        optimizer = torch.optim.Adam(model.parameters())
        for batch in DataLoader(TensorDataset(torch.zeros(8, 4)), batch_size=4):
            model(batch[0])
            model(batch[0] + 1)
    """) == [(1, "the model from `build_model` is unknown, so its calls were not checked")]


def test_an_unknown_batch_of_a_known_model() -> None:
    assert notes("""\
        train, val = get_loaders()
        net = Net()
        for x, y in train:
            net(x)
        for x, y in val:
            net(x)
    """)[:1] == [(4, "the batch passed to `net` is unknown, so that call was not checked")]


@pytest.mark.parametrize(
    "code",
    [
        # All known.
        """\
        net = Net()
        for (x,) in DataLoader(TensorDataset(torch.zeros(8, 4)), batch_size=4):
            net(x)
        """,
        # Nothing runs these functions here: their arguments are unknown by nature.
        """\
        def train(model, data):
            optimizer = torch.optim.Adam(model.parameters())
            for batch in DataLoader(data):
                model(batch)
        """,
        # Unknown values that are not models, or not in a loop.
        """\
        metric = build_model()
        for (x,) in DataLoader(TensorDataset(torch.zeros(8, 4)), batch_size=4):
            metric(x)
        """,
        """\
        model = build_model()
        optimizer = torch.optim.Adam(model.parameters())
        model(torch.zeros(4, 4))
        """,
        # Samples of unknown size are not unknown samples.
        """\
        class Images(Dataset):
            def __len__(self):
                return 3

            def __getitem__(self, index):
                return get_data(index), 1

        net = Net()
        for image, label in DataLoader(Images()):
            net(torch.zeros(3, 4))
        """,
    ],
)
def test_what_is_known_or_does_not_matter_is_not_mentioned(code: str) -> None:
    assert notes(code) == []


def test_a_limit_is_said_with_its_first_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "STEPS", 20)
    code = """\
        def step(x):
            return x + 1

        x = torch.zeros(2)
        y = x + x + x + x + x + x
        step(x)
        step(y)
    """
    assert notes(code) == [(6, "the limit of analysis was reached; 2 calls not followed")]


def test_notes_are_at_most_five_and_the_same_from_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    code = textwrap.dedent("""\
        DataLoader(get_data("train"))
        DataLoader(get_data("test"))
    """)
    for number in range(7):
        Path(f"train{number}.py").write_text(HEAD + code)
    line = "the dataset from `get_data` is unknown, so its batches were not checked"
    expected = [f"note: train{number}.py:{FIRST}:12: {line} (and 1 more)" for number in range(5)]
    for _ in ("analyzed", "from the cache"):
        assert run(["check"]) == 0
        out, err = capsys.readouterr()
        assert out == "All checks passed.\n"
        assert err.splitlines() == [
            *expected,
            "note: 4 more places could not be checked (--verbose shows all)",
        ]
    assert run(["check", "--verbose"]) == 0
    assert sum(each.startswith("note: ") for each in capsys.readouterr().err.splitlines()) == 14
    assert run(["check", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["check", "--output-format", "json"]) == 0
    out, err = capsys.readouterr()
    entries = json.loads(out)
    assert (len(entries), err) == (14, "")
    assert {(each["code"], each["name"], each["severity"], each["message"]) for each in entries} == {
        (None, "not-checked", "info", line)
    }


def test_fix_mentions_it_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(HEAD + 'DataLoader(get_data("train"))\n')
    assert run(["fix"]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "All checks passed.",
        f"note: train.py:{FIRST}:12: the dataset from `get_data` is unknown, so its batches were not checked",
    ]
