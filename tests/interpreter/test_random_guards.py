"""Random training scripts, with and without guards: those that run do the same, and no other one runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import random_modules
import torch
from day_seeds import seeds_of_the_day

from shapefix.guards.lines import guard_rows, without
from shapefix.guards.run import guarded


def outcome(text: str) -> tuple[str, dict[str, torch.Tensor]]:
    """The exception of a script, and the tensors that its names have at the end."""
    names: dict[str, Any] = {"__name__": "__main__"}
    torch.manual_seed(0)
    try:
        exec(compile(text, "train.py", "exec"), names)
    except Exception as error:
        return type(error).__name__, {}
    finally:
        torch.set_grad_enabled(True)
    return "", {name: value for name, value in names.items() if isinstance(value, torch.Tensor)}


def compare(seeds: Iterable[int], folder: Path) -> Counter[str]:
    """Run scripts with and without guards, and count them by what the guards do."""
    counts: Counter[str] = Counter()
    path = folder / "train.py"
    for seed in seeds:
        text = random_modules.write(seed).text
        path.write_text(text, "utf-8")
        made = guarded(str(path), "", False).repair.new.text
        number = made.count("# shapefix: guard")
        assert without(made, guard_rows(made)) == text, seed
        counts["guards"] += number
        counts["guarded"] += number > 0
        if number:
            (error, values), (guarded_error, guarded_values) = outcome(text), outcome(made)
            assert bool(error) == bool(guarded_error), (seed, error, guarded_error)
            assert values.keys() == guarded_values.keys()
            for name, value in values.items():
                same = torch.equal(value.nan_to_num(), guarded_values[name].nan_to_num())
                assert same, (seed, name)
            counts["run"] += not error
            counts["named"] += error != guarded_error
    return counts


def test_guards_change_nothing_of_scripts_that_run(tmp_path: Path) -> None:
    counts = compare((92, 93), tmp_path)
    assert counts["run"] == 2, counts


@pytest.mark.long
def test_guards_of_many_scripts(tmp_path: Path) -> None:
    counts = compare(seeds_of_the_day(200), tmp_path)
    assert counts["run"] >= 10, counts
    assert counts["named"] >= 1, counts
