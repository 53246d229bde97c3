"""`probe --vram`: the change of a script that makes a step fit, proved by a forecast."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import fork_server
import pytest
from probing import run_shapefix

from shapefix.guards.memory.keywords import ComputedKeyword, with_keywords
from shapefix.guards.memory.savings import in_parts, with_adapters, with_autocast, with_checkpointing
from shapefix.guards.memory.trainers import is_trainer_arguments
from shapefix.runtime.forecast.changes import ChangeSearch, prove_change
from shapefix.runtime.forecast.forecast_runs import ForecastScript
from shapefix.runtime.forecast.prediction import (
    CONTEXT,
    BatchSearch,
    MemoryForecast,
    MemorySaving,
    step_peak,
)
from shapefix.runtime.protocol.adapter_tasks import task_of

SCRIPT = '''\
"""Train."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEVICE = "cuda"


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


class Net(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        self.blocks = nn.ModuleList([Block(width) for _ in range(depth)])
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(1))


torch.manual_seed(0)
data = TensorDataset(torch.randn(256, 32, 64), torch.randint(10, (256,)))
loader = DataLoader(data, batch_size=128)
model = Net().to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for x, y in loader:
    x, y = x.to(DEVICE), y.to(DEVICE)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
'''


def trained(text: str) -> list[float]:
    names: dict[str, Any] = {"__name__": "train"}
    text = text.replace('DEVICE = "cuda"', 'DEVICE = "cpu"').replace('autocast("cuda"', 'autocast("cpu"')
    exec(compile(text, "train.py", "exec"), names)
    losses: list[float] = names["losses"]
    return losses


def test_the_changed_texts_train_alike() -> None:
    plain = trained(SCRIPT)
    parts = in_parts(SCRIPT, 48)
    assert parts is not None
    assert "fitting = 48" in parts
    assert trained(parts) == pytest.approx(plain, rel=1e-5)
    recomputed = with_checkpointing(SCRIPT)
    assert recomputed is not None
    assert "            x = checkpoint(block, x, use_reentrant=False)\n" in recomputed
    assert "\nfrom torch.utils.checkpoint import checkpoint\n" in recomputed
    assert trained(recomputed) == pytest.approx(plain, rel=1e-6)
    half = with_autocast(recomputed)
    assert half is not None
    assert '    with torch.autocast("cuda", dtype=torch.bfloat16):\n        loss = nn.functional' in half
    assert trained(half) == pytest.approx(plain, rel=0.05)
    assert trained(half) != plain


def test_models_of_transformers_have_a_method() -> None:
    text = (
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n\n"
        'tokenizer = AutoTokenizer.from_pretrained("gpt2")\n'
        "model = AutoModelForCausalLM.from_config(config)\n"
    )
    made = with_checkpointing(text)
    assert made is not None
    setting = 'gradient_checkpointing_kwargs={"use_reentrant": False}'
    assert made == text + f"model.gradient_checkpointing_enable({setting})\n"


ADAPTED = """\
import torch
from transformers import GPT2Config, GPT2LMHeadModel

DEVICE = "cuda"
model = GPT2LMHeadModel(GPT2Config(vocab_size=99, n_positions=16, n_embd=256, n_layer=2, n_head=2)).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
ids = torch.arange(32).view(2, 16).to(DEVICE)
for _ in range(3):
    loss = model(ids, labels=ids).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_adapters_are_trained_instead_of_all_weights() -> None:
    made = with_adapters(ADAPTED, task_of)
    assert made is not None
    assert 'LoraConfig(target_modules="all-linear", task_type="CAUSAL_LM")' in made
    assert "from peft import LoraConfig, get_peft_model\n" in made
    assert with_adapters(made, task_of) is None
    assert with_adapters(SCRIPT, task_of) is None
    names: dict[str, Any] = {"__name__": "train"}
    exec(compile(made.replace('"cuda"', '"cpu"'), "train.py", "exec"), names)
    trained = [name for name, each in names["model"].named_parameters() if each.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)


@pytest.mark.parametrize(
    "model", ["GPT2LMHeadModel", "BertForSequenceClassification", "T5ForConditionalGeneration"]
)
def test_peft_knows_the_task_of_a_model(model: str) -> None:
    import peft

    assert task_of(model) in {each.value for each in peft.TaskType}


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = torch.ones(3)\n",
        "for block in blocks:\n    x = block(x)\n",
        "model.fit()\n",
    ],
)
def test_texts_without_a_place_for_a_change(text: str) -> None:
    assert (in_parts(text, 8), with_autocast(text), with_checkpointing(text)) == (None, None, None)


ARGUMENTS = [
    ('TrainingArguments("out")', 'TrainingArguments("out", bf16=True, steps=3)'),
    ('TrainingArguments("out", steps=2,)', 'TrainingArguments("out", steps=6,bf16=True)'),
    ("TrainingArguments()", "TrainingArguments(bf16=True, steps=3)"),
    (
        'a = TrainingArguments(\n    output_dir="é",\n    bf16=False,\n)\n',
        'a = TrainingArguments(\n    steps=3,\n    output_dir="é",\n    bf16=True,\n)\n',
    ),
]


@pytest.mark.parametrize(("text", "expected"), ARGUMENTS)
def test_keywords(text: str, expected: str) -> None:
    settings = {"bf16": lambda _: "True", "steps": lambda old: str((old or 1) * 3)}
    assert with_keywords(text, is_trainer_arguments, settings) == expected


def test_computed_keywords_are_left_alone() -> None:
    for text in ("TrainingArguments(bf16=on)", "TrainingArguments(**settings)"):
        with pytest.raises(ComputedKeyword):
            with_keywords(text, is_trainer_arguments, {"bf16": lambda _: "True"})
    assert with_keywords("f(a=1)", is_trainer_arguments, {"bf16": lambda _: "True"}) is None


def proved(folder: Path, text: str, what: str, share: float) -> tuple[ChangeSearch, MemoryForecast]:
    """The search for a change that a forecast names, on a GPU with a share of what the script takes."""
    path = folder / "train.py"
    path.write_text(text)
    script = ForecastScript(fork_server.interpreter(), str(path), (), 120, ("--evaluation", "none"))
    run = script.run(8 << 30)
    peak = step_peak(run.observed)
    assert peak is not None, run.process.output
    small = replace(peak, reserved=0)
    fit = BatchSearch({32: small, 128: peak}, 32, 33) if what == "batch" else None
    savings = () if what == "batch" else (MemorySaving(what, what, small),)
    forecast = MemoryForecast(int(peak.reserved * share) + CONTEXT, peak, None, fit, savings)
    return prove_change(script, forecast, run.observed), forecast


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "share", "code"),
    [
        ("batch", 0.6, "fitting = 32"),
        pytest.param("checkpointing", 0.8, "checkpoint(block, x", marks=pytest.mark.long),
        pytest.param("bf16", 0.9, 'torch.autocast("cuda"', marks=pytest.mark.long),
        ("checkpointing+bf16", 0.8, "checkpoint(block, x"),
    ],
)
def test_a_proved_change(tmp_path: Path, what: str, share: float, code: str) -> None:
    search, forecast = proved(tmp_path, SCRIPT, what, share)
    assert search.proved is not None
    (new,) = search.proved.proposed.texts.values()
    assert code in new
    assert search.proved.peak.reserved <= forecast.budget < forecast.peak.reserved
    assert (tmp_path / "train.py").read_text() == SCRIPT


@pytest.mark.slow
def test_proved_adapters(tmp_path: Path) -> None:
    search, forecast = proved(tmp_path, ADAPTED, "lora", 0.6)
    assert search.proved is not None
    (new,) = search.proved.proposed.texts.values()
    assert "model = get_peft_model(model, LoraConfig(" in new
    assert search.proved.peak.reserved <= forecast.budget < forecast.peak.reserved
    tried = ForecastScript(fork_server.interpreter(), str(tmp_path / "train.py"), (), 120).run(
        8 << 30, ["--lora"]
    )
    peak = step_peak(tried.observed)
    assert peak is not None, tried.process.output
    assert peak.trials == {"lora"}
    assert peak.live == pytest.approx(search.proved.peak.live, rel=0.02), "the trial is what the change does"


@pytest.mark.slow
def test_a_change_that_does_not_fit_is_not_proposed(tmp_path: Path) -> None:
    search, _ = proved(tmp_path, SCRIPT, "checkpointing", 0.05)
    assert search.proved is None
    assert [each.text for each, _ in search.rejected] == ["checkpointing"]


@pytest.mark.slow
@pytest.mark.long
def test_the_change_is_shown_and_written(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    command = ("probe", "train.py", "--vram", "536MiB", "--no-eval")
    shown = run_shapefix(*command, folder=tmp_path)
    assert shown.returncode == 1, shown.stderr
    assert "+    retry = HalvedBatch(" in shown.stdout
    assert "makes it fit: the step in parts of" in shown.stdout
    assert path.read_text() == SCRIPT
    written = run_shapefix(*command, "--apply", folder=tmp_path)
    assert (written.returncode, "Wrote the change to train.py" in written.stderr) == (0, True)
    assert "HalvedBatch" in path.read_text()
    again = run_shapefix(*command, "--apply", folder=tmp_path)
    assert (again.returncode, "nothing to change" in again.stderr) == (0, True)
