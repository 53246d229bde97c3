"""The batch that fits, found in a few runs, and where a script says how large its batches are."""

from __future__ import annotations

import pytest

from shapefix.runtime.forecast import batch_settings
from shapefix.runtime.forecast.prediction import (
    CONTEXT,
    BatchSearch,
    MemoryForecast,
    MemorySaving,
    StepPeak,
    accumulation,
    search_batch,
    step_peak,
)
from shapefix.runtime.forecast.text_report import forecast_lines
from shapefix.runtime.observations import Observations
from shapefix.runtime.protocol import PeakMemory, StepMemoryLine

pytestmark = pytest.mark.slow

MIB = 1 << 20


def peak(batch: int, live: int, reserved: int | None = None) -> StepPeak:
    return StepPeak(live, reserved or live, {}, "backward", None, "", None, batch, None, 1)


class Script:
    """A script whose step takes a constant, and so much for each row; segments are of 20 MiB."""

    def __init__(self, constant: int, row: int, rows: int = 1 << 20) -> None:
        self.constant, self.row, self.rows, self.runs = constant, row, rows, 0

    def __call__(self, batch: int) -> StepPeak:
        self.runs += 1
        real = min(batch, self.rows)
        live = max(self.constant, self.constant // 2 + self.row * real)
        return peak(real, live, -(-live // (20 * MIB)) * 20 * MIB)


@pytest.mark.parametrize("first", [1, 8, 64, 500])
@pytest.mark.parametrize(("constant", "row"), [(900 * MIB, 3 * MIB), (100 * MIB, 11 * MIB), (10 * MIB, MIB)])
def test_the_largest_batch_that_fits(first: int, constant: int, row: int) -> None:
    script, budget = Script(constant, row), 3000 * MIB
    fit = search_batch(script, script(first), budget)
    largest = (budget - constant // 2) // row
    assert fit.largest is not None
    assert fit.tried[fit.largest].reserved <= budget
    assert largest * 0.96 - 1 <= fit.largest <= largest
    assert fit.too_large is not None
    assert fit.tried[fit.too_large].reserved > budget
    assert script.runs <= 9


def test_nothing_fits() -> None:
    script = Script(5000 * MIB, MIB)
    fit = search_batch(script, script(8), 1000 * MIB)
    assert (fit.largest, fit.too_large) == (None, 1)


def test_the_data_ends() -> None:
    script = Script(10 * MIB, MIB, rows=100)
    fit = search_batch(script, script(8), 1000 * MIB)
    assert (fit.largest, fit.too_large, fit.limit) == (100, None, 100)


def test_a_run_that_fails_ends_the_search() -> None:
    fit = search_batch(lambda batch: None, peak(8, MIB), 1000 * MIB)
    assert (fit.largest, list(fit.tried)) == (8, [8])


@pytest.mark.parametrize(
    ("batch", "largest", "kept"), [(64, 20, (16, 4)), (64, 64, (64, 1)), (12, 5, (4, 3)), (7, 6, (1, 7))]
)
def test_accumulation_keeps_the_batch(batch: int, largest: int, kept: tuple[int, int]) -> None:
    assert accumulation(batch, largest) == kept


@pytest.mark.parametrize(
    ("arguments", "name", "changed"),
    [
        (["--batch-size", "8"], "--batch-size", ["--batch-size", "3"]),
        (["--lr", "8", "--batch_size=8"], "--batch_size", ["--lr", "8", "--batch_size=3"]),
        (["trainer.batch_size=8"], "trainer.batch_size", ["trainer.batch_size=3"]),
        (
            ["--eval_batch_size", "8", "--per_device_train_batch_size", "8"],
            "--per_device_train_batch_size",
            ["--eval_batch_size", "8", "--per_device_train_batch_size", "3"],
        ),
        (["-b", "8", "--bs", "8"], "--bs", ["-b", "8", "--bs", "3"]),
    ],
)
def test_an_argument_says_the_batch(arguments: list[str], name: str, changed: list[str]) -> None:
    setting = batch_settings.batch_setting(arguments, "batch_size = 8", 8)
    assert setting.name == name
    assert setting.arguments(arguments, 3) == changed
    assert setting.options(3) == []


@pytest.mark.parametrize(
    ("source", "edits"),
    [
        ("BATCH_SIZE = 8\n", ["1:13:14:3"]),
        ("é = dict(a=8, batch_size=8)", ["1:26:27:3"]),
        ("config = {\n  'lr': 8,\n  'train_batch_size': 8,\n}", ["3:22:23:3"]),
        ("p.add_argument('--batch-size', type=int, default=8)", ["1:49:50:3"]),
        ("def train(model, bs=8):\n    pass", ["1:20:21:3"]),
        ("class C:\n    batch_size: int = 8", ["2:22:23:3"]),
        ("DataLoader(a, batch_size=8)\nDataLoader(b, batch_size=8)", ["1:25:26:3", "2:25:26:3"]),
    ],
)
def test_the_script_says_the_batch(source: str, edits: list[str]) -> None:
    options = batch_settings.batch_setting([], source, 8).options(3)
    assert options[::2] == ["--rewrite"] * len(edits)
    assert options[1::2] == edits


def test_the_agent_makes_the_edits() -> None:
    from shapefix.runtime.agent.fake_gpu.rewriting import apply_edits

    assert apply_edits("é = f(bs=8, bsz=8)\r\nx".encode(), ["1:10:11:16", "1:17:18:3"]).decode() == (
        "é = f(bs=16, bsz=3)\r\nx"
    )


@pytest.mark.parametrize("source", ["epochs = 8", "eval_batch_size = 8", "batch_size = 16", "batch_size = ("])
def test_nothing_says_the_batch_but_the_loaders(source: str) -> None:
    assert batch_settings.batch_setting(["--epochs", "8"], source, 8).options(3) == ["--batch", "8", "3"]


@pytest.mark.parametrize(
    "source", ["max_length = 129", "seq_len = 128", "block_size = 128", "f(max_seq_length=128)"]
)
def test_the_script_says_the_length(source: str) -> None:
    setting = batch_settings.length_setting([], source, 128)
    assert setting is not None
    assert setting.value in (128, 129)


def test_the_first_step_alone_is_counted_with_the_state_of_the_others() -> None:
    def phase(name: str, size: int) -> PeakMemory:
        return {
            "bytes": size, "by_kind": {"parameters": size}, "phase": name, "module": None,
            "operation": "aten.mm.default", "site": None,
        }  # fmt: skip

    line: StepMemoryLine = {
        "kind": "step_memory", "step": 1, "totals": {"optimizer state": 50}, "reserved": 200,
        "calls": 1, "input": {"args": [{"kind": "tensor", "size": [4, 7]}], "kwargs": {}},
        "peaks": {
            "setup": phase("setup", 900), "backward": phase("backward", 120), "step": phase("step", 140)
        },
    }  # fmt: skip
    first = step_peak(Observations((line,)))
    assert first is not None
    assert (first.live, first.reserved, first.phase, first.batch, first.length) == (
        170,
        230,
        "backward",
        4,
        7,
    )
    assert first.by_kind == {"parameters": 120, "optimizer state": 50}
    second = step_peak(Observations((line, line)))
    assert second is not None
    assert (second.live, second.phase) == (140, "step")
    assert step_peak(Observations(())) is None


def report(setting: batch_settings.BatchSetting, largest: int, *arguments: str) -> list[str]:
    """The rows of a forecast for a step of 8 rows and 2 GiB, on a GPU of 4.5 GiB, of which 4 are left."""
    peaks = {size: peak(size, size * 256 * MIB) for size in (8, largest)}
    fit = BatchSearch(peaks, largest, largest + 1)
    forecast = MemoryForecast(4608 * MIB, peaks[8], setting, fit, ())
    rows = forecast_lines(forecast, "train.py", arguments, lambda path: path)
    return ["".join(text for text, _ in row) for row in rows]


def test_the_edit_is_offered_as_text() -> None:
    arguments = ("--lr", "1", "--batch_size", "8")
    told = report(batch_settings.batch_setting(arguments, "", 8), 16, *arguments)
    assert told[-1] == "  edit           `--batch_size 8` -> `--batch_size 16`"
    told = report(batch_settings.batch_setting([], "\nBATCH_SIZE = 8", 8), 16)
    assert told[-1] == "  edit           train.py:2: BATCH_SIZE 8 -> 16"
    told = report(batch_settings.batch_setting([], "", 8), 16)
    assert told[-2] == "  largest batch  16: 4.0 GiB live, 4.0 GiB reserved (from 2 runs; 17 does not fit)"
    assert told[-1] == "  edit           batch_size of the training DataLoader: 8 -> 16"


def answer(budget: int, savings: dict[str, int], largest: int | None) -> list[str]:
    """The last rows of a forecast for a step of 8 rows and 2 GiB; savings are the MiB of changes."""
    peaks = {size: peak(size, size * 256 * MIB) for size in (8, largest or 8)}
    fit = BatchSearch(peaks, largest, 8)
    changes = tuple(MemorySaving(name, name, peak(8, size * MIB), "code") for name, size in savings.items())
    forecast = MemoryForecast(CONTEXT + budget * MIB, peaks[8], None, fit, changes)
    rows = ["".join(text for text, _ in row) for row in forecast_lines(forecast, "train.py", (), str)]
    start = next((number for number, row in enumerate(rows) if "to make it fit" in row), len(rows))
    return [" ".join(row.split()) for row in rows[start:]]


def test_the_changes_that_make_a_step_fit_are_named() -> None:
    assert answer(4096, {"bf16": 1000}, None) == []
    named = answer(1100, {"bf16": 1000, "checkpointing": 1500}, None)
    assert named == ["to make it fit bf16, at most 1000 MiB of 1.1 GiB: `code`"]
    none = answer(500, {"bf16": 1000}, None)
    assert none == ["to make it fit nothing that was tried: the least is 1000 MiB of 500 MiB"]
