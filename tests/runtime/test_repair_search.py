"""What is kept, and what is taken back: scripts whose repair takes more than one run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from repairing import searched

from shapefix.runtime.repair.search import SearchResult

pytestmark = pytest.mark.slow

TRAIN = """
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def repaired(folder: Path, script: str, most: int = 8, **files: str) -> SearchResult:
    """Write a script, and files beside it, and search for what repairs it."""
    for name, text in {"train": script, **files}.items():
        (folder / f"{name}.py").write_text(dedent(text), "utf-8")
    return searched(folder, "train.py", most)


def changed(outcome: SearchResult) -> list[tuple[str, str, str]]:
    """The rows in which the best copy differs from the files: file, old row, new row."""
    rows = []
    for old, new in outcome.best.trial.sources.changes():
        pairs = zip(old.text.splitlines(), new.text.splitlines(), strict=True)
        rows += [(Path(old.path).name, a.strip(), b.strip()) for a, b in pairs if a != b]
    return rows


def test_two_faults_one_after_the_other_in_two_files(tmp_path: Path) -> None:
    model = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(10, 6)
                self.second = nn.Linear(6, 2)

            def forward(self, x):
                return self.second(self.first(x).transpose(1, 2).view(-1, 6))
    """
    script = """
        import torch
        from model import Net

        x = torch.ones(4, 3, 12)
        model = Net()
    """
    outcome = repaired(tmp_path, dedent(script) + TRAIN, model=model)
    assert outcome.trains
    assert changed(outcome) == [
        ("model.py", "self.first = nn.Linear(10, 6)", "self.first = nn.Linear(12, 6)"),
        (
            "model.py",
            "return self.second(self.first(x).transpose(1, 2).view(-1, 6))",
            "return self.second(self.first(x).transpose(1, 2).reshape(-1, 6))",
        ),
    ]
    assert [kept.candidate.finding.code for kept in outcome.best.accepted] == ["SF501", "SF101"]


def test_a_size_that_only_the_run_knows(tmp_path: Path) -> None:
    script = """
        import json
        import torch
        from torch import nn

        x = torch.ones(json.loads("[4, 3, 9, 9]"))
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3),
            nn.BatchNorm2d(num_features=4 * 4),
            nn.Flatten(),
            nn.Linear(8 * 6 * 6, 5),
        )
    """
    outcome = repaired(tmp_path, dedent(script) + TRAIN)
    assert outcome.trains
    assert [new for _, _, new in changed(outcome)] == [
        "nn.Conv2d(3, 8, 3),",
        "nn.BatchNorm2d(num_features=8),",
        "nn.Linear(392, 5),",
    ]


def test_a_layer_that_gets_something_turned_is_left_alone(tmp_path: Path) -> None:
    script = """
        import json
        import torch
        from torch import nn

        x = torch.ones(json.loads("[4, 9, 9, 3]"))
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(392, 5))
    """
    outcome = repaired(tmp_path, dedent(script) + TRAIN)
    assert not outcome.trains
    assert changed(outcome) == []
    assert outcome.rejected == []


def test_a_repair_that_does_not_help_is_taken_back(tmp_path: Path) -> None:
    script = """
        import torch
        from torch import nn

        x = torch.ones(4, 6)
        target = torch.ones(4)
        model = nn.Linear(6, 1)
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        settings = {}
        print(settings["epochs"])
    """
    outcome = repaired(tmp_path, script)
    assert not outcome.trains
    assert [(each.candidate.finding.code, each.reason) for each in outcome.rejected] == [
        ("SF509", "the finding is still there")
    ]
    assert changed(outcome) == []


def test_a_file_of_another_project_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "project").mkdir()
    library = "from torch import nn\n\n\ndef made():\n    return nn.Linear(5, 2)\n"
    (tmp_path / "library" / "layers.py").write_text(library)
    script = f"""
        import sys
        import torch

        sys.path.append({str(tmp_path / "library")!r})
        from layers import made

        model, x = made(), torch.ones(4, 6)
    """
    outcome = repaired(tmp_path / "project", dedent(script) + TRAIN)
    assert not outcome.trains
    (taken,) = outcome.rejected
    assert taken.reason.endswith("layers.py, which is not in this project")


def test_two_findings_of_the_same_words_are_both_repaired(tmp_path: Path) -> None:
    script = """
        import torch
        from torch import nn

        def first(prediction, target):
            return nn.functional.mse_loss(prediction, target)

        def second(prediction, target):
            return nn.functional.mse_loss(prediction, target)

        x, target = torch.ones(4, 6), torch.ones(4)
        model = nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loss = first(model(x), target) + second(model(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    """
    outcome = repaired(tmp_path, script)
    assert outcome.trains
    assert [kept.candidate.finding.code for kept in outcome.best.accepted] == ["SF509", "SF509"]
    assert [kept.place.row for kept in outcome.best.accepted] == [6, 9]


def test_a_loop_that_swallows_its_failures_trains_afterwards(tmp_path: Path) -> None:
    script = """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(torch.ones(32, 3, 7)), batch_size=4)
        model = nn.Linear(5, 2)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        total = steps = 0
        for epoch in range(2):
            for (x,) in loader:
                try:
                    loss = model(x).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                    steps += 1
                except Exception as error:
                    print("skipped:", error)
                    continue
        print(total / steps)
    """
    outcome = repaired(tmp_path, script)
    assert not outcome.first.run.trained
    assert outcome.trains
    assert outcome.best.trial.run.trained
    assert ("train.py", "model = nn.Linear(5, 2)", "model = nn.Linear(7, 2)") in changed(outcome)


def test_no_more_than_the_runs_that_were_allowed(tmp_path: Path) -> None:
    script = """
        import torch
        from torch import nn

        x = torch.ones(4, 12)
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(9), nn.Linear(7, 2))
    """
    outcome = repaired(tmp_path, dedent(script) + TRAIN, most=2)
    assert outcome.limited
    assert not outcome.trains
    assert len(outcome.best.accepted) == 1
