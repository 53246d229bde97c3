"""Scripts as several ranks under torchrun: what differs between them, and who waits for whom."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import fork_server
import pytest
import torch
from probing import Probed, probed_file, row, runs

from shapefix.runtime.protocol import CollectiveLine
from shapefix.runtime.ranks import rank_lines

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]

TRAINING = """
    import os
    import sys
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    os.write(1, f"process {os.getpid()}\\n".encode())  # whole, whatever the other rank writes
    rows = TensorDataset(torch.randn(400, 8), torch.randint(0, 3, (400,)))
    loader = DataLoader(rows, batch_size=4 + rank, sampler=DistributedSampler(rows))
    model = DistributedDataParallel(torch.nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(3):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        total = torch.ones(1)
        #
        dist.all_reduce(total)  # reduced
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
    dist.barrier()
    os.write(1, f"total {rank} {total.item()}\\n".encode())  # whole, whatever the other rank writes
    dist.destroy_process_group()
"""


def ranked(folder: Path, script: str, timeout: float = 100.0, processes: int = 2) -> Probed:
    (folder / "train.py").write_text(dedent(script))
    return probed_file(folder, "train.py", timeout=timeout, processes=processes)


def compared(ran: Probed) -> str:
    rows = rank_lines(ran.run, lambda path: Path(path).name)
    return "".join("".join(text for text, _ in each) + "\n" for each in rows)


def right(ran: Probed) -> str:
    assert ran.found == [], ran.run.process.output
    assert ran.run.complete, (ran.ending, ran.run.process.output)
    return compared(ran)


@pytest.mark.long
@pytest.mark.slow
def test_ranks_that_meet_are_shown_with_what_differs(tmp_path: Path) -> None:
    ran = ranked(tmp_path, TRAINING)
    text = right(ran)
    assert "total 0 2.0" in ran.run.process.output
    assert "total 1 2.0" in ran.run.process.output
    assert [each.steps for each in ran.run.ranks] == [1, 1]
    assert "differs  [0]: f32[4, 8] on rank 0, f32[5, 8] on rank 1" in text
    names = [line["name"] for line in ran.run.ranks[1].of(CollectiveLine)]
    assert names[:3] == ["init_process_group", "DistributedDataParallel", "backward"]
    assert names[3:] == ["all_reduce"] * 3 + ["barrier"]
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.parametrize(
    ("fault", "said", "marks"),
    [
        pytest.param(
            "if rank: total = torch.ones(2)",
            "rank 0 calls `all_reduce` of f32[1] while rank 1 calls `all_reduce` of f32[2]: "
            "both wait forever",
            ["reduced", "reduced"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            "if rank: dist.barrier()  # alone",
            "rank 0 calls `all_reduce` of f32[1] while rank 1 calls `barrier`: both wait forever",
            ["reduced", "alone"],
            marks=pytest.mark.long,
        ),
        (
            "if rank: sys.exit()  # ends",
            "rank 0 waits at `all_reduce` of f32[1] for rank 1, which has ended",
            ["reduced", "ends"],
        ),
        pytest.param(
            "dist.broadcast(total, src=rank)  # sent",
            "rank 0 calls `broadcast` of f32[1] with root 0 while rank 1 calls `broadcast` of f32[1] "
            "with root 1: both wait forever",
            ["sent", "sent"],
            marks=pytest.mark.long,
        ),
    ],
    ids=["size", "name", "end", "root"],
)
def test_ranks_that_do_not_meet(tmp_path: Path, fault: str, said: str, marks: list[str]) -> None:
    script = TRAINING.replace("        #\n", f"        {fault}\n")
    ran = ranked(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.message) == ("collective", said)
    assert [step.span.row for step in found.evidence] == [row(script, mark) for mark in marks]
    assert ran.run.process.seconds < 90


def test_a_rank_that_raises_is_the_finding_and_not_those_that_wait(tmp_path: Path) -> None:
    fault = "if rank: model.module.weight.view(5, 5)  # raised"
    script = TRAINING.replace("        #\n", f"        {fault}\n")
    ran = ranked(tmp_path, script)
    assert ran.places == [("SF507", "train.py", row(script, "raised"))]
    assert ran.found[0].message.endswith(" (on rank 1 only)")
    assert "waits at `all_reduce` of f32[1] at train.py" in compared(ran)


@pytest.mark.long
def test_a_rank_that_is_elsewhere_at_the_time_limit(tmp_path: Path) -> None:
    script = TRAINING.replace("        #\n", "        while rank: pass  # elsewhere\n")
    ran = ranked(tmp_path, script, timeout=20.0)
    (found,) = ran.found
    assert found.message == (
        "rank 0 waits at `all_reduce` of f32[1] for rank 1, which did not get there before the time limit"
    )
    assert [step.span.row for step in found.evidence] == [row(script, "reduced"), row(script, "elsewhere")]
    assert ran.ending.startswith("stopped at the time limit of 20 s at train.py:")
    processes = [int(line.split()[1]) for line in ran.run.process.output.splitlines() if "process " in line]
    assert len(processes) == 2
    until = time.monotonic() + 10
    while any(map(runs, processes)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(runs, processes))


@pytest.mark.long
@pytest.mark.slow
def test_what_differs_in_the_model_is_told_as_torch_words_it(tmp_path: Path) -> None:
    script = TRAINING.replace("torch.nn.Linear(8, 3))", "torch.nn.Linear(8, 3, bias=rank == 0))  # made")
    ran = ranked(tmp_path, script)
    assert {line for _, _, line in ran.places} == {row(script, "made")}
    assert "params" in ran.found[0].message


@pytest.mark.slow
@pytest.mark.long
def test_what_spawns_its_processes_is_one_of_the_ranks(tmp_path: Path) -> None:
    script = """
    import os
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp

    def work(rank, size):
        os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "12355"
        dist.init_process_group("nccl", rank=rank, world_size=size)
        layer = torch.nn.Linear(4, 2)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        while True:
            optimizer.zero_grad()
            layer(torch.ones(2, 4)).sum().backward()
            for each in layer.parameters():
                dist.all_reduce(each.grad)
            optimizer.step()
            told = f"rank {rank} {dist.get_world_size()} {layer.weight.grad[0, 0].item()}\\n"
            os.write(1, told.encode())  # whole, whatever the other rank writes

    if __name__ == "__main__":
        mp.spawn(work, args=(2,), nprocs=2)
    """
    ran = ranked(tmp_path, script)
    right(ran)
    assert "rank 0 2 4.0" in ran.run.process.output
    assert "rank 1 2 4.0" in ran.run.process.output


@pytest.mark.long
@pytest.mark.slow
def test_transformers_trainer_and_accelerate_run_as_ranks(tmp_path: Path) -> None:
    script = """
    import os
    import torch
    from accelerate import Accelerator
    from datasets import Dataset
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    ids = torch.randint(0, 50, (64, 12)).tolist()
    rows = Dataset.from_dict({"input_ids": ids, "labels": ids})
    model = GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        "out", num_train_epochs=50, per_device_train_batch_size=4, eval_strategy="epoch",
        report_to="none", use_cpu=True, disable_tqdm=True,
    )
    trainer = Trainer(model, arguments, train_dataset=rows, eval_dataset=rows)
    trainer.train()
    accelerator = Accelerator(cpu=True)
    told = f"gathered {accelerator.gather(torch.ones(1)).sum().item()}\\n"
    os.write(1, told.encode())  # whole, whatever the other rank writes
    """
    ran = ranked(tmp_path, script)
    right(ran)
    assert ran.run.process.output.count("gathered 2.0") == 2
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]


FOR_GPUS = """
    import os
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    device = f"cuda:{dist.get_rank() % torch.cuda.device_count()}"
    model = DistributedDataParallel(torch.nn.Linear(8, 1).to(rank), device_ids=[rank], output_device=rank)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    rows = TensorDataset(torch.randn(40, 8))
    for (x,) in DataLoader(rows, 4, sampler=DistributedSampler(rows), pin_memory=True):
        loss = model(x.cuda(rank, non_blocking=True)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total = torch.zeros(1, device=device) + loss.detach()
        dist.all_reduce(total)
    dist.barrier(device_ids=[rank])
    dist.destroy_process_group()
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="the ranks need a machine without a GPU")
def test_a_script_for_gpus_runs_as_ranks_on_the_cpu(tmp_path: Path) -> None:
    ran = ranked(tmp_path, FOR_GPUS)
    assert ran.found == [], ran.run.process.output
    assert [each.steps for each in ran.run.ranks] == [1, 1]


SHARDED = """
    import sys
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)).to(f"cuda:{rank}")
    #
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for step in range(3):
        x, y = torch.randn(4, 8).cuda(), torch.randint(3, (4,)).cuda()
        #
        loss = nn.functional.cross_entropy(model(x), y)  # forward
        loss.backward()  # backward
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()
"""
WRAPPED = "    model = FullyShardedDataParallel(model, device_id=torch.cuda.current_device())\n"
FULLY = "    fully_shard(model[0])\n    fully_shard(model)\n"


@pytest.mark.parametrize("sharding", [pytest.param(WRAPPED, marks=pytest.mark.long), FULLY], ids=["1", "2"])
def test_sharded_models_train(tmp_path: Path, sharding: str) -> None:
    ran = ranked(tmp_path, SHARDED.replace("    #\n", sharding, 1))
    right(ran)
    assert [each.steps for each in ran.run.ranks] == [1, 1]
    names = {line["name"] for line in ran.run.ranks[1].of(CollectiveLine)}
    assert any("gather" in each for each in names)
    assert any("scatter" in each for each in names)


@pytest.mark.slow
@pytest.mark.long
def test_a_forward_of_a_sharded_model_on_one_rank_only(tmp_path: Path) -> None:
    script = SHARDED.replace("    #\n", FULLY, 1).replace("        #\n", "        if not rank: model(x)\n")
    ran = ranked(tmp_path, script)
    (found,) = ran.found
    assert found.name == "different-collectives"
    places = {row(script, "forward"), row(script, "backward")}
    assert {step.span.row for step in found.evidence} <= places


ASYNCHRONOUS = """
    import sys
    import torch
    import torch.distributed as dist
    from torch import nn

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        weights = list(model.parameters())
        #
        works = [dist.all_reduce(each.grad, async_op=True) for each in weights]  # started
        for work in works:
            work.wait()
        optimizer.step()
    dist.destroy_process_group()
"""


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("", "", marks=pytest.mark.long),
        (
            "weights = weights[:: -1 if rank else 1]",
            "rank 0 calls `all_reduce` of f32[3, 4] while rank 1 calls `all_reduce` of f32[3]: "
            "both wait forever",
        ),
        pytest.param(
            "if rank: sys.exit()",
            "rank 0 waits at `all_reduce` of f32[3, 4] for rank 1, which has ended",
            marks=pytest.mark.long,
        ),
    ],
    ids=["none", "order", "end"],
)
def test_asynchronous_collectives(tmp_path: Path, fault: str, said: str) -> None:
    script = ASYNCHRONOUS.replace("        #\n", f"        {fault}\n" if fault else "")
    ran = ranked(tmp_path, script)
    if not said:
        right(ran)
        return
    (found,) = ran.found
    assert found.message == said
    assert found.evidence[0].span.row == row(script, "started")


NODES = """
    import sys
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("nccl")
    rank = dist.get_rank()
    model = DistributedDataParallel(torch.nn.Linear(4, 3).cuda())
    optimizer = torch.optim.SGD(model.parameters(), float(sys.argv[2]))
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4).cuda()).sum().backward()
        total = torch.ones(2 if rank and sys.argv[1] == "unequal" else 1)
        dist.all_reduce(total)  # reduced
        optimizer.step()
    dist.destroy_process_group()
"""


def on_two_nodes(folder: Path, *arguments: str) -> list[tuple[int, str]]:
    """The exit codes and outputs of `probe` on two nodes, which are both this machine."""
    (folder / "train.py").write_text(dedent(NODES))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    launch = [
        "torchrun",
        "--nnodes",
        "2",
        "--nproc-per-node",
        "1",
        "--rdzv-backend",
        "c10d",
        "--rdzv-id",
        "job",
    ]
    launch += ["--rdzv-endpoint", endpoint, "--local-addr", "127.0.0.1"]
    command = [sys.executable, "-m", "shapefix", "probe", "--timeout", "100", "--", *launch]
    programs = [
        subprocess.Popen(
            [*command, "--node-rank", str(node), "train.py", *arguments],
            cwd=folder,
            env=os.environ
            | {"PYTHONPATH": str(ROOT), "VIRTUAL_ENV": fork_server.virtual_environment(), "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in (0, 1)
    ]
    outputs = [program.communicate(timeout=200)[0] for program in programs]
    return [(program.returncode, output) for program, output in zip(programs, outputs, strict=True)]


@pytest.mark.long
def test_two_nodes_report_all_ranks(tmp_path: Path) -> None:
    for code, output in on_two_nodes(tmp_path, "equal", "0.1"):
        assert code == 0, output
        assert "ranks: 2 (gloo backend)" in output
        assert output.count("1 training step, loss") == 2
    assert [each.name for each in tmp_path.iterdir()] == ["train.py"]


@pytest.mark.slow
@pytest.mark.long
def test_ranks_of_two_nodes_that_do_not_meet(tmp_path: Path) -> None:
    for code, output in on_two_nodes(tmp_path, "unequal", "0.1"):
        assert code == 1, output
        assert "rank 0 calls `all_reduce` of f32[1]" in output
        assert f"--> train.py:{row(NODES, 'reduced')}:5" in output
