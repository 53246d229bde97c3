"""Programs made to explode the analysis: each is answered, in bounded time and memory."""

from __future__ import annotations

import contextlib
import gc
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from adversarial_programs import PROGRAMS, AdversarialProgram
from answers_in_a_child import ChildAnswer, answer_of, write_folder

from shapefix.cli.main import run

SECONDS = 5.5
"""The bound of a file is 5 s of CPU; a machine under load takes longer for the same."""
MEGABYTES = 300
CHECK = ("check", "--no-cache", "--jobs", "1", "--output-format", "concise", "main.py")


@pytest.fixture(scope="module", autouse=True)
def _imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Import everything once: the children are forks of this process."""
    script = tmp_path_factory.mktemp("first") / "main.py"
    script.write_text("import torch\nx = torch.zeros(2, 3)\nx.t().view(-1)\n", encoding="utf-8")
    with contextlib.redirect_stdout(io.StringIO()):
        assert run(["check", "--no-cache", str(script)]) == 1
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def answer(program: AdversarialProgram, size: int, folder: Path, *command: str) -> ChildAnswer:
    write_folder(folder, program.files(size))
    return answer_of(command or CHECK, folder)


def assert_bounded(program: AdversarialProgram, found: ChildAnswer) -> None:
    assert "internal error" not in found.output, found.output[-500:]
    assert "Traceback" not in found.output, found.output[-500:]
    if found.code == 2:
        is_nested = program.is_refused and "is nested too deeply" in found.output
        assert is_nested or "is too large to be analyzed" in found.output, found.output[-500:]
    else:
        assert found.code in (0, 1), found
    assert found.seconds <= SECONDS
    assert found.megabytes <= MEGABYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.long if number % 2 else ())
        for number, each in enumerate(PROGRAMS.values())
    ],
)
def test_small_programs(program: AdversarialProgram, tmp_path: Path) -> None:
    assert_bounded(program, answer(program, program.small, tmp_path))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_large_programs(program: AdversarialProgram, tmp_path: Path) -> None:
    assert_bounded(program, answer(program, program.large, tmp_path))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.name)
def test_shapes_of_large_programs(program: AdversarialProgram, tmp_path: Path) -> None:
    found = answer(program, program.large, tmp_path, "shapes", "main.py")
    assert "internal error" not in found.output, found.output[-500:]
    assert "Traceback" not in found.output, found.output[-500:]
    assert found.code in (0, 1, 2), found


def test_a_file_over_the_limit_is_reported_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Findings of code that ran before the limit was reached are still reported."""
    monkeypatch.setattr("shapefix.engine.analysis.RUN_SECONDS", 0.5)
    text = "import torch\ntorch.zeros(2).view(3)\n" + PROGRAMS["tree_of_calls"].files(12)["main.py"]
    write_folder(tmp_path, {"main.py": text})
    found = answer_of(CHECK, tmp_path)
    assert found.code == 1
    assert "SF507" in found.output
    assert "the limit of analysis (time) was reached; not everything was checked" in found.output


def test_steps_are_counted_and_end_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapefix.interpreter.evaluator.LAST_STEP", 2_000)
    write_folder(tmp_path, PROGRAMS["nested_loops_with_breaks"].files(30))
    found = answer_of(CHECK, tmp_path)
    assert found.code == 0
    assert "the limit of analysis (steps) was reached; not everything was checked" in found.output


def test_rehearsals_of_loops_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import torch\nfrom data import batches\n\nstate = {'x': torch.zeros(2)}\n"
        "for batch in batches:\n    for part in batch:\n        state['x'].view(3)\n"
        "        state['x'] = torch.zeros(3)\nstate['x'].view(4)\n"
    )
    write_folder(tmp_path, {"main.py": text})
    assert "limit of analysis" not in answer_of(CHECK, tmp_path).output
    monkeypatch.setattr("shapefix.interpreter.evaluator.REHEARSAL_STEPS", 0)
    bounded = answer_of(CHECK, tmp_path)
    assert "the limit of analysis was reached" in bounded.output
    assert "main.py:7:" in bounded.output, "the first pass is certain"
    assert "main.py:9:" not in bounded.output, "what later passes change is unknown"
