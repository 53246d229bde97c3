"""`shapefix guard --oom`: training steps that meet exhausted memory, run as guarded programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import Project, project_in_a_folder, shapefix  # noqa: F401

HEAD = '''\
"""Train."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    limit, seen, alive = 99, [], []

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x):
        Net.alive.append(sum(one() is not None for one in Net.computed))
        hidden = self.fc(x)
        Net.computed.append(weakref.ref(hidden))
        Net.seen.append(len(x))
        if len(x) > Net.limit:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return hidden * 2

    computed = []


torch.manual_seed(0)
data = TensorDataset(torch.randn(22, 4), torch.randint(3, (22,)))
model = Net()
'''.replace("import torch\n", "import weakref\n\nimport torch\n", 1)
LOADER = "loader = DataLoader(data, batch_size=8)\n"
OPTIMIZER = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
PLAIN = """
criterion = nn.CrossEntropyLoss()
total, correct = 0.0, 0
for x, y in loader:
    x, y = x.to("cpu"), y.to("cpu")
    optimizer.zero_grad()
    out = model(x)
    loss = criterion(out, y)
    loss.backward()
    optimizer.step()
    total += loss.item() * len(x)
    correct += (out.argmax(1) == y).sum().item()
result = (total, correct)
"""
SCALED = '''
criterion = nn.CrossEntropyLoss()
scaler = torch.amp.GradScaler("cpu", enabled=False)


class Loop:
    def fit(self):
        total = 0.0
        for i, (x, y) in enumerate(loader):
            # The forward.
            with torch.autocast("cpu", enabled=False):
                loss = criterion(
                    model(x),
                    y,
                )
            """A text
  of two rows."""
            optimizer.zero_grad(set_to_none=True)

            scaler.scale(loss).backward()  # once
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            total += loss.item() * len(x)
        return total


result = Loop().fit()
'''
OUTPUTS = """
from transformers.modeling_outputs import SequenceClassifierOutput


def run(x, labels):
    logits = model(x)
    loss = nn.functional.cross_entropy(logits, labels)
    return SequenceClassifierOutput(loss=loss, logits=logits)


total, correct = 0.0, 0
for x, y in loader:
    batch = {"x": x, "labels": y}
    batch = {key: value.to("cpu") for key, value in batch.items()}
    outputs = run(**batch)
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += outputs.loss.item() * len(batch["x"])
    correct += (outputs.logits.argmax(-1) == batch["labels"]).sum().item()
result = (total, correct)
"""
FUNCTION = """
def train_step(net, criterion, x, y):
\tnet.zero_grad()
\tloss = criterion(net(x), y)
\tloss.backward()
\toptimizer.step()
\treturn loss.item()


result = [train_step(model, nn.CrossEntropyLoss(), x, y) for x, y in loader]
"""
SUMS = """
batches = iter(loader)
step, losses = 0, []
while step < 2:
    x, y = next(batches)
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y, reduction="sum")
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    step += 1
result = losses
"""
STEPS: Mapping[str, str] = {
    "plain": PLAIN,
    "scaled": SCALED,
    "outputs": OUTPUTS,
    "function": FUNCTION,
    "sums": SUMS,
}


def script(steps: str) -> str:
    return HEAD + LOADER + OPTIMIZER + steps


def executed(text: str, limit: int) -> dict[str, Any]:
    """The names that a script sets, with a model that takes no more than limit rows."""
    names: dict[str, Any] = {"__name__": "train"}
    exec(
        compile(text.replace("limit, seen", f"limit, seen = {limit}, []; _l, _s", 1), "train.py", "exec"),
        names,
    )
    return names


def guarded(text: str) -> str:
    path = Path("train.py")
    path.write_text(text, "utf-8")
    ran = shapefix("guard", "train.py", "--oom", "--apply")
    assert ran.code == 0, ran.err
    return path.read_text("utf-8")


def weights(names: Mapping[str, Any]) -> torch.Tensor:
    return torch.cat([each.detach().flatten() for each in names["model"].parameters()])


@pytest.mark.parametrize("name", STEPS)
def test_a_step_out_of_memory_is_repeated_in_parts(project: Project, name: str) -> None:
    project()
    text = script(STEPS[name])
    made = guarded(text)
    plain, whole, parts = executed(text, 99), executed(made, 99), executed(made, 4)
    assert whole["result"] == plain["result"]
    assert torch.equal(weights(whole), weights(plain))
    assert whole["Net"].seen == plain["Net"].seen
    assert parts["result"] == pytest.approx(plain["result"], rel=1e-5)
    assert torch.allclose(weights(parts), weights(plain), atol=1e-6)
    # The first batch fails once; the next ones begin with parts that fit.
    assert parts["Net"].seen[:5] == [8, 4, 4, 4, 4]
    with pytest.raises(torch.OutOfMemoryError):
        executed(text, 4)


@pytest.mark.parametrize("name", STEPS)
def test_written_twice_and_removed(project: Project, name: str) -> None:
    project()
    text = script(STEPS[name])
    made = guarded(text)
    assert "for " in made
    assert guarded(made) == made
    ran = shapefix("guard", "train.py", "--oom", "--remove", "--apply")
    assert (ran.code, Path("train.py").read_text()) == (0, text)
    guarded(text)
    assert shapefix("guard", "train.py", "--remove", "--apply").code == 0
    assert Path("train.py").read_text() == text


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_text_without_a_last_newline(project: Project, newline: str) -> None:
    text = (HEAD + LOADER + OPTIMIZER + FUNCTION).partition("\treturn")[0].rstrip()
    path = project(train=text.replace("\n", newline).encode()) / "train.py"
    assert shapefix("guard", "train.py", "--oom", "--apply").code == 0
    assert not path.read_bytes().endswith(b"\n")
    assert path.read_bytes().count(b"\r\n") == (newline == "\r\n") * path.read_bytes().count(b"\n")
    assert shapefix("guard", "train.py", "--oom", "--remove", "--apply").code == 0
    assert path.read_bytes() == text.replace("\n", newline).encode()


def test_the_memory_of_the_failed_attempt_is_free(project: Project) -> None:
    project()
    parts = executed(guarded(script(PLAIN)), 4)
    assert parts["Net"].alive[:3] == [0, 0, 0]


def test_the_smallest_batch_raises(project: Project) -> None:
    project()
    with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
        executed(guarded(script(PLAIN)), 0)


def test_other_errors_are_raised(project: Project) -> None:
    project()
    text = script(PLAIN).replace("nn.Linear(4, 3)", "nn.Linear(5, 3)")
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        executed(guarded(text), 99)


def test_a_batch_of_other_values_raises_the_error(project: Project) -> None:
    project()
    two = script(PLAIN).replace("(22,)))\n", "(22,)))\nsteps = DataLoader(torch.ones(22, 1), batch_size=3)\n")
    two = two.replace("for x, y in loader:", "for (x, y), z in zip(loader, steps):")
    two = two.replace("out = model(x)", "out = model(x) + z.sum()")
    with pytest.raises(torch.OutOfMemoryError):
        executed(guarded(two), 4)


def test_a_handler_in_another_layout_is_removed(project: Project) -> None:
    project()
    text = script(PLAIN)
    made = guarded(text)
    before = "    retry = HalvedBatch((x, y), optimizer.zero_grad)  # shapefix"
    assert before in made
    wrapped = "    retry = HalvedBatch(\n        (x, y), optimizer.zero_grad\n    )  # shapefix"
    Path("train.py").write_text(made.replace(before, wrapped))
    assert guarded(made.replace(before, wrapped)) == made.replace(before, wrapped)
    shapefix("guard", "train.py", "--oom", "--remove", "--apply")
    assert Path("train.py").read_text() == text


LEFT_ALONE = [
    (
        "for i, (x, y) in enumerate(loader):\n    loss = model(x).mean()\n    loss.backward()\n"
        "    if i % 4 == 3:\n        optimizer.step()\n        optimizer.zero_grad()\n",
        "no `optimizer.step()` follows in the same block",
    ),
    (
        "total = 0\nfor x, y in loader:\n    optimizer.zero_grad()\n    loss = model(x).mean()\n"
        "    total += loss.item()\n    loss.backward()\n    optimizer.step()\n",
        "line 38: `total` adds up over batches",
    ),
    (
        "losses = []\nfor x, y in loader:\n    optimizer.zero_grad()\n    loss = model(x).mean()\n"
        "    losses.append(loss.item())\n    loss.backward()\n    optimizer.step()\n",
        "line 38: `losses.append()` collects values",
    ),
    (
        "for x, y in loader:\n    optimizer.zero_grad()\n    loss = model(x).mean()\n"
        "    if loss.isnan():\n        continue\n    loss.backward()\n    optimizer.step()\n",
        "line 38: `continue` above `backward()` leaves the step",
    ),
    (
        "for x, y in loader:\n    optimizer.zero_grad()\n    model(x).mean().backward()\n"
        "    model(x).std().backward()\n    optimizer.step()\n",
        "more than one `backward()`",
    ),
    (
        "model = nn.parallel.DistributedDataParallel(model)\nfor x, y in loader:\n    optimizer.zero_grad()\n"
        "    model(x).mean().backward()\n    optimizer.step()\n",
        "keep the others waiting",
    ),
    (
        "for x, y in loader:\n    optimizer.zero_grad()\n    x += 1\n    loss = model(x).mean()\n"
        "    loss.backward()\n    optimizer.step()\n",
        "line 36: `x` is changed in place",
    ),
    (
        "for x, y in loader:\n    loss = model(x).mean()\n    optimizer = slower(optimizer)\n"
        "    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n",
        "line 36: `optimizer`",
    ),
    ("out = model(torch.ones(2, 4))\n", ""),
]


@pytest.mark.parametrize(("steps", "reason"), LEFT_ALONE)
def test_steps_left_alone(project: Project, steps: str, reason: str) -> None:
    project(train=script(steps))
    ran = shapefix("guard", "train.py", "--oom")
    assert (ran.code, ran.out) == (0, "")
    assert reason in ran.err
    assert "no training step that a handler fits" in ran.err


ACCELERATED = """\
import sys

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Linear):
    seen = []

    def forward(self, x):
        Net.seen.append(len(x))
        if len(x) > int(sys.argv[1]):
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().forward(x)


def main(args):
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.randn(24, 4), torch.randint(3, (24,)))
    torch.manual_seed(0)
    loader = DataLoader(data, batch_size=args["bs"])
    model = Net(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
    return model.weight.sum().item()


torch.manual_seed(1)
print(main({"bs": 8}), Net.seen[:4])
"""


def test_accelerate_finds_the_batch_size(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    pytest.importorskip("accelerate")
    project()
    made = guarded(ACCELERATED)
    assert guarded(made) == made
    results: dict[tuple[int, bool], tuple[float, str]] = {}
    for limit in (99, 2):
        for text in (ACCELERATED, made) if limit == 99 else (made,):
            monkeypatch.setattr("sys.argv", ["train.py", str(limit)])
            exec(compile(text, "train.py", "exec"), {"__name__": "train"})
            total, _, seen = capsys.readouterr().out.strip().partition(" ")
            results[limit, text is made] = (float(total), seen)
    assert results[99, True] == results[99, False] == (results[99, False][0], "[8, 8, 8, 8]")
    weight, seen = results[2, True]
    assert (abs(weight - results[99, False][0]) < 1e-6, seen) == (True, "[8, 4, 2, 2]")
    shapefix("guard", "train.py", "--oom", "--remove", "--apply")
    assert Path("train.py").read_text() == ACCELERATED


TRAINERS = [
    'args = TrainingArguments("out", num_train_epochs=1)\n',
    'args = TrainingArguments(\n    output_dir="out",\n    num_train_epochs=1,\n)\n',
    'args = TrainingArguments(output_dir="out",\n                         num_train_epochs=1)\n',
    "args = TrainingArguments()\n",
]


@pytest.mark.parametrize("code", TRAINERS)
def test_the_trainer_searches_itself(project: Project, code: str) -> None:
    project()
    text = f"from transformers import Trainer, TrainingArguments\n\n{code}"
    made = guarded(text)
    assert made.count("auto_find_batch_size=True") == 1
    compile(made, "train.py", "exec")
    assert guarded(made) == made
    assert shapefix("guard", "train.py", "--oom", "--remove", "--apply").code == 0
    assert Path("train.py").read_text() == text


def test_one_function_and_json(project: Project) -> None:
    project(train=script(FUNCTION))
    ran = shapefix("guard", "train.py:train_step", "--oom", "--output-format", "json")
    assert json.loads(ran.out)["guards"] == [
        {"function": "train_step", "handler": "HalvedBatch", "row": "36"}
    ]
    assert shapefix("guard", "train.py:nothing", "--oom").code == 2
    assert shapefix("guard", "train.py", "--oom", "--style", "asserts").code == 2


def test_a_notebook(project: Project) -> None:
    cells = [HEAD + LOADER + OPTIMIZER, textwrap.dedent(PLAIN)]
    sources: list[dict[str, Any]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": cell}
        for cell in cells
    ]
    notebook = {"cells": sources, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = project() / "train.ipynb"
    path.write_text(json.dumps(notebook, indent=1) + "\n")
    before = path.read_text()
    assert shapefix("guard", "train.ipynb", "--oom", "--apply").code == 0
    text = "\n".join("".join(each["source"]) for each in json.loads(path.read_text())["cells"])
    assert executed(text, 4)["Net"].seen[:5] == [8, 4, 4, 4, 4]
    assert shapefix("guard", "train.ipynb", "--oom", "--remove", "--apply").code == 0
    assert path.read_text() == before
