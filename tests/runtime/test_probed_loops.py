"""Scripts with nothing wrong: the probe sees a step and an evaluation, ends by itself, and finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from probing import Probed, probed, row

pytestmark = pytest.mark.slow

MODEL = """
import time
import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self, vocabulary=65, width=16, depth=4, wait=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary)
        self.unused = nn.Linear(2, 2)
        self.wait = wait

    def forward(self, ids, targets=None):
        time.sleep(self.wait)
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        if targets is None:
            return logits
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())
"""

BATCHES_BY_HAND = """
    import torch
    from model import Model

    data = torch.randint(0, 65, (1000,))

    def get_batch():
        starts = torch.randint(len(data) - 16, (4,))
        rows = torch.stack([data[i:i + 17] for i in starts])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    model = torch.compile(Model(wait=0.25))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    @torch.no_grad()
    def estimate_loss():
        model.eval()
        losses = torch.zeros(2000)
        for k in range(2000):
            losses[k] = model(*get_batch())[1].item()
        model.train()
        return losses.mean()

    iteration = 0
    while True:
        if iteration % 200 == 0:
            print("evaluated", estimate_loss().isfinite().item(), flush=True)
        logits, loss = model(*get_batch())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        iteration += 1
"""

BATCHES_OF_A_LOADER = """
    import torch
    import torch.nn.functional as F
    from torch.utils.data import DataLoader, TensorDataset
    from model import Model

    rows = TensorDataset(torch.randint(0, 65, (1000, 8)), torch.randint(0, 65, (1000, 8)))
    train = DataLoader(rows, batch_size=4, shuffle=True, num_workers=2, prefetch_factor=2)
    valid = DataLoader(rows, batch_size=16)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(100):
        model.train()
        total = 0.0
        for number, (ids, targets) in enumerate(train):
            loss = F.cross_entropy(model(ids).transpose(1, 2), targets) / 2
            loss.backward()
            if number % 2:
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item()
        print("trained", total / len(train))
    model.eval()
    right = 0
    with torch.no_grad():
        for ids, targets in valid:
            right += (model(ids).argmax(-1) == targets).sum().item()
    print("right", right / len(rows), flush=True)
"""

ACCELERATE = """
    import torch
    import torch.nn.functional as F
    from accelerate import Accelerator
    from torch.utils.data import DataLoader, TensorDataset
    from model import Model

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
    rows = TensorDataset(torch.randint(0, 65, (400, 8)), torch.randint(0, 65, (400, 8)))
    loader = DataLoader(rows, batch_size=4, shuffle=True)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(3):
        for ids, targets in loader:
            with accelerator.accumulate(model):
                loss = F.cross_entropy(model(ids).transpose(1, 2), targets)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
"""

TRAINER = """
    import torch
    from datasets import Dataset
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    ids = torch.randint(0, 50, (64, 12)).tolist()
    rows = Dataset.from_dict({"input_ids": ids, "labels": ids})
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        "out", num_train_epochs=50, gradient_accumulation_steps=4, per_device_train_batch_size=4,
        gradient_checkpointing=True, eval_strategy="epoch", save_strategy="epoch", report_to="none",
        push_to_hub=False, use_cpu=True, dataloader_num_workers=2, disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    trainer.save_model("final")
    again = GPT2LMHeadModel.from_pretrained("final")
    print("evaluated", sorted(trainer.evaluate())[0], len(again.transformer.h), flush=True)
"""


SPAWNED = """
    import os
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    from model import Model

    def work(rank, world_size, epochs):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
        rows = TensorDataset(torch.randint(0, 65, (400, 8)), torch.randint(0, 65, (400, 8)))
        sampler = DistributedSampler(rows)
        loader = DataLoader(rows, batch_size=4, sampler=sampler)
        model = DistributedDataParallel(Model(), find_unused_parameters=True)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for ids, targets in loader:
                loss = F.cross_entropy(model(ids).transpose(1, 2), targets)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            total = torch.ones(1)
            dist.all_reduce(total)
        dist.destroy_process_group()
        print("rank", rank, "of", world_size, total.item(), flush=True)

    if __name__ == "__main__":
        mp.spawn(work, args=(4, 3), nprocs=4, join=True)
"""


def right(ran: Probed) -> str:
    """The report of a run in which nothing was found."""
    assert ran.found == [], ran.run.process.output
    assert ran.run.complete, ran.ending
    return ran.text


def test_batches_by_hand_and_an_evaluation_of_2000_calls(tmp_path: Path) -> None:
    ran = probed(tmp_path, BATCHES_BY_HAND, model=MODEL)
    text = right(ran)
    assert ran.ending == "stopped after step 1; later code did not run"
    assert ran.run.process.output.strip() == "evaluated True"
    assert "Model without gradient, called at train.py:20" in text
    assert "Model with gradient, called at train.py:28" in text
    assert "blocks.0…3 4 × Block" in text
    assert "i64[4, 16], i64[4, 16] -> (f32[4, 16, 65], f32[])" in text
    assert "gradients for 27 of 29 parameters (AdamW)" in text
    assert "without gradient: unused.weight, unused.bias" in text


def test_batches_of_a_loader_with_workers_and_an_evaluation_after_the_epochs(tmp_path: Path) -> None:
    ran = probed(tmp_path, BATCHES_OF_A_LOADER, model=MODEL)
    text = right(ran)
    loop = "a loop over a loader ended early at train.py:15"
    assert ran.ending == f"reached the last line, but {loop}; later iterations did not run"
    assert ran.run.observed.steps == 1
    words = [line.split()[0] for line in ran.run.process.output.splitlines()]
    assert words[0] == "trained"
    assert words == ["trained"] * (len(words) - 1) + ["right"]
    assert "first batch of the loader at train.py:8, of 1000 rows, collated by default_collate" in text
    assert "[0]  i64[4, 8]" in text
    assert "Model without gradient, called at train.py:27" in text


CLOSURE = """
    import torch
    from model import Model

    model, ids, targets = Model(), torch.randint(0, 65, (4, 8)), torch.randint(0, 65, (4, 8))
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = model(ids, targets)[1]
        loss.backward()
        return loss

    for epoch in range(1000):
        optimizer.step(closure)
"""


def test_a_step_that_computes_its_gradients_itself(tmp_path: Path) -> None:
    ran = probed(tmp_path, CLOSURE, model=MODEL)
    assert "gradients for 27 of 29 parameters (LBFGS)" in right(ran)
    assert ran.run.observed.steps == 1


def test_accelerate_with_accumulation(tmp_path: Path) -> None:
    text = right(probed(tmp_path, ACCELERATE, model=MODEL))
    assert "[0]  i64[4, 8]" in text
    assert "Model with gradient, called at train.py:17" in text
    assert "(AdamW)" in text


def test_trainer_saves_loads_and_evaluates_and_the_folder_is_as_before(tmp_path: Path) -> None:
    ran = probed(tmp_path, TRAINER)
    text = right(ran)
    assert (
        ran.ending
        == "reached the last line, but training by Trainer ended early; later iterations did not run"
    )
    assert ran.run.process.output.splitlines()[-1].startswith("evaluated e")
    assert "GPT2LMHeadModel with gradient" in text
    assert "input_ids  i64[4, 12]" in text
    (written,) = [line for line in text.splitlines() if "to a temporary folder: " in line]
    assert {"out", "out/", "final"} <= set(written.rpartition(": ")[2].split(", "))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.py"]


def test_a_script_of_several_processes_runs_as_the_first_of_them(tmp_path: Path) -> None:
    ran = probed(tmp_path, SPAWNED, model=MODEL)
    text = right(ran)
    assert ran.run.process.output.splitlines()[-1] == "rank 0 of 4 1.0"
    assert "train.py: 1 training step, as the first of 4 processes (Python" in text
    assert "module Model" in text


SAVED = """
    import os
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.randn(640, 8), torch.randn(640, 1)), batch_size=8)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(3):
        for number, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            if number == 40:
                {in_the_loop}
        {after_the_loop}
    print("done", flush=True)
"""


def test_a_missing_folder_is_a_fault_of_the_script(tmp_path: Path) -> None:
    wrong = SAVED.format(in_the_loop="pass", after_the_loop='open("logs/losses.txt", "a").close()  # here')
    ran = probed(tmp_path, wrong)
    (found,) = ran.found
    assert found.message == (
        "[Errno 2] No such file or directory: 'logs/losses.txt'; the folder `logs` does not exist"
    )
    assert found.span.row == row(wrong, "here")
    assert ran._told.early_stop_artifact is None


@pytest.mark.parametrize(
    ("in_the_loop", "after_the_loop"),
    [
        ('os.makedirs("logs")', 'open("logs/losses.txt", "a").close()'),
        ('open("losses.txt", "w").close()', 'open("losses.txt").close()'),
    ],
)
def test_a_file_or_folder_of_a_later_batch_is_no_fault(
    tmp_path: Path, in_the_loop: str, after_the_loop: str
) -> None:
    ran = probed(tmp_path, SAVED.format(in_the_loop=in_the_loop, after_the_loop=after_the_loop))
    assert ran.found == []
    assert ran._told.early_stop_artifact is not None
