"""Training steps of small models, on a device that is not there (`fake`), on the CPU, or on a GPU (`cuda`).

Run as a program, `python memory_configurations.py fake|cpu|cuda [name …]`, prints a line of JSON for each
configuration with the bytes at the peak of its second step.
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Configuration:
    """One model with one way to train it; sizes are of the batch, and of the sequences in it."""

    model: str
    batch: int
    optimizer: str = "adamw"
    amp: bool = False
    half: bool = False
    checkpoints: bool = False
    accumulate: int = 1

    @property
    def name(self) -> str:
        ways = [("amp", self.amp), ("bf16", self.half), ("checkpoints", self.checkpoints)]
        more = [way for way, on in ways if on] + ([f"x{self.accumulate}"] if self.accumulate > 1 else [])
        return "-".join([self.model, str(self.batch), self.optimizer, *more])


C = Configuration
CONFIGURATIONS = {
    each.name: each
    for each in (
        C("mlp", 256), C("mlp", 2048, "momentum"), C("mlp", 2048, "adafactor"),
        C("mlp", 2048, amp=True), C("cnn", 32, "sgd", amp=True, checkpoints=True),
        C("mlp", 1024, checkpoints=True), C("mlp", 1024, "loop"), C("t5", 4, half=True),
        C("cnn", 16), C("cnn", 32, amp=True), C("cnn", 8, accumulate=2),
        C("encoder", 16), C("encoder", 16, "sgd", checkpoints=True), C("encoder", 32, half=True),
        C("gpt2", 4), C("gpt2", 8, checkpoints=True), C("gpt2", 4, half=True),
        C("bert", 8), C("t5", 4), C("t5", 8, "sgd", accumulate=2),
    )
}  # fmt: skip


class Blocks(nn.Module):  # type: ignore[misc]
    """Blocks one after the other, each computed again in backward where that is wanted."""

    def __init__(self, blocks: list[nn.Module], head: nn.Module, checkpoints: bool) -> None:
        super().__init__()
        self.blocks, self.head, self.checkpoints = nn.ModuleList(blocks), head, checkpoints

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpoints else block(x)
        return self.head(x)


class Encoder(nn.Module):  # type: ignore[misc]
    """A block of a transformer, with attention as products."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.inward, self.outward = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        b, t, d = x.shape
        parts = self.inward(self.first(x)).split(d, 2)
        q, k, v = (each.view(b, t, self.heads, d // self.heads).transpose(1, 2) for each in parts)
        weights = functional.softmax(q @ k.transpose(-2, -1) * (d // self.heads) ** -0.5, dim=-1)
        x = x + self.outward((weights @ v).transpose(1, 2).reshape(b, t, d))
        return x + self.narrow(functional.gelu(self.wide(self.second(x))))


class Mean(nn.Module):  # type: ignore[misc]
    """The mean over a dimension."""

    def forward(self, x: Any) -> Any:
        return x.mean(1)


def built(what: Configuration) -> nn.Module:
    """The model of a configuration, on the CPU."""
    if what.model == "mlp":
        blocks = [nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)) for _ in range(4)]
        return Blocks([*blocks], nn.Linear(512, 10), what.checkpoints)
    if what.model == "cnn":
        sizes = [(3, 16), (16, 32), (32, 32)]
        convolutions: list[nn.Module] = [
            nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()) for i, o in sizes
        ]
        head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
        return Blocks(convolutions, head, what.checkpoints)
    if what.model == "encoder":
        head = nn.Sequential(Mean(), nn.Linear(128, 10))
        return Blocks([Encoder(128, 4) for _ in range(4)], head, what.checkpoints)
    model = _transformers(what.model)
    if what.checkpoints:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model


def _transformers(name: str) -> Any:
    import transformers

    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    if name == "gpt2":
        made = transformers.GPT2Config(
            n_layer=2, n_embd=128, n_head=4, vocab_size=2000, n_positions=128, **ids,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, attn_implementation="eager",
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(made)
    if name == "bert":
        made = transformers.BertConfig(
            num_hidden_layers=2, hidden_size=128, intermediate_size=512, num_attention_heads=4,
            vocab_size=2000, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
            attn_implementation="eager",
        )  # fmt: skip
        return transformers.BertForSequenceClassification(made)
    made = transformers.T5Config(
        num_layers=2, d_model=128, d_ff=512, num_heads=4, d_kv=32, vocab_size=2000, dropout_rate=0.0,
        decoder_start_token_id=0, attn_implementation="eager", **ids,
    )  # fmt: skip
    return transformers.T5ForConditionalGeneration(made)


def batch(what: Configuration, device: str) -> dict[str, Any]:
    """The inputs of one call, made on the CPU and moved, as a loader's are."""
    labels = torch.zeros(what.batch, dtype=torch.int64)
    dtype = torch.bfloat16 if what.half else torch.float32
    if what.model in ("gpt2", "bert", "t5"):
        ids = torch.ones(what.batch, 128, dtype=torch.int64)
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        given["labels"] = labels if what.model == "bert" else ids.clone()
    else:
        sizes = {"mlp": (512,), "cnn": (3, 32, 32), "encoder": (64, 128)}[what.model]
        given = {"x": torch.zeros(what.batch, *sizes, dtype=dtype), "labels": labels}
    return {name: each.to(device) for name, each in given.items()}


class Adafactor(torch.optim.Optimizer):  # type: ignore[misc]
    """Second moments kept by row and column, as Adafactor keeps them."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 1e-4})

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for each in group["params"]:
                if each.grad is None:
                    continue
                state, squares = self.state[each], each.grad.square()
                if each.dim() < 2:
                    moment = state.setdefault("moment", torch.zeros_like(each))
                    each.sub_(each.grad / moment.add_(squares).sqrt().add_(1e-8), alpha=group["lr"])
                    continue
                rows = state.setdefault("rows", torch.zeros_like(each[..., 0]))
                columns = state.setdefault("columns", torch.zeros_like(each.sum(-2)))
                rows.add_(squares.mean(-1))
                columns.add_(squares.mean(-2))
                scale = (rows.unsqueeze(-1) * columns.unsqueeze(-2)).sqrt_().add_(1e-8)
                each.sub_(each.grad / scale, alpha=group["lr"])


def optimizer(what: Configuration, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer, with as many parameters at once as CUDA's default takes."""
    of = model.parameters()
    made: dict[str, Callable[[], torch.optim.Optimizer]] = {
        "adamw": lambda: torch.optim.AdamW(of, 1e-4, foreach=True),
        "loop": lambda: torch.optim.AdamW(of, 1e-4, foreach=False),
        "sgd": lambda: torch.optim.SGD(of, 1e-4, foreach=True),
        "momentum": lambda: torch.optim.SGD(of, 1e-4, momentum=0.9, foreach=True),
        "adafactor": lambda: Adafactor(of),
    }
    return made[what.optimizer]()


def step(what: Configuration, model: nn.Module, of: torch.optim.Optimizer, device: str) -> None:
    """One training step."""
    for _ in range(what.accumulate):
        given = batch(what, device)
        cast = torch.autocast(device, dtype=torch.bfloat16) if what.amp else nullcontext()
        with cast:
            if "x" in given:
                loss = functional.cross_entropy(model(given["x"]), given["labels"])
            else:
                loss = model(**given).loss
        loss.backward()
        del given, loss
    of.step()
    of.zero_grad()


def trained(what: Configuration, device: str, second: Callable[[], AbstractContextManager[Any]]) -> None:
    """Two steps of a configuration; the second runs in what second makes."""
    gc.collect()
    gc.freeze()  # what is there, imported modules above all, is not looked at again
    model = built(what).to(device)
    model = model.bfloat16() if what.half else model
    made = optimizer(what, model.train())
    step(what, model, made, device)
    with second():
        step(what, model, made, device)


def forecasts(names: list[str]) -> Iterator[dict[str, Any]]:
    """What the agent counts on the GPU that is not there."""
    sys.path.insert(0, str(ROOT))
    from shapefix.runtime.agent.fake_gpu import device_setup
    from shapefix.runtime.agent.session import LineFile, Session
    from shapefix.runtime.forecast.prediction import step_peak
    from shapefix.runtime.observations import read

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "observations.jsonl"
        session = Session(LineFile(str(path)), 1000)
        device_setup.install(session, device_setup.DeviceOptions("fake"), lambda: None)
        for name in names:
            path.write_text("")
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            trained(CONFIGURATIONS[name], "cuda", nullcontext)
            peak = step_peak(read(path))
            assert peak is not None
            yield {"name": name, "live": peak.live, "reserved": peak.reserved, "parts": dict(peak.by_kind)}


def truths(names: list[str]) -> Iterator[dict[str, Any]]:
    """What torch's CPU allocator has given out, as the profiler records it, kernels' scratch included."""
    from torch.profiler import ProfilerActivity, profile, record_function

    for name in names:
        gc.collect()
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            trained(CONFIGURATIONS[name], "cpu", lambda: record_function("second"))
        waiting = list(seen.profiler.kineto_results.experimental_event_tree())
        events: list[Any] = []
        while waiting:
            event = waiting.pop()
            events.append(event)
            waiting += event.children
        (begin,) = [each.start_time_ns for each in events if each.name == "second"]
        total = [
            each.extra_fields.total_allocated
            for each in events
            if each.name == "[memory]" and each.start_time_ns >= begin
        ]
        yield {"name": name, "live": max(total)}


def measurements(names: list[str]) -> Iterator[dict[str, Any]]:
    """What a real GPU says."""
    for name in names:
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        trained(CONFIGURATIONS[name], "cuda", nullcontext)
        torch.cuda.synchronize()
        live, reserved = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        before = torch.cuda.memory_allocated()
        torch._C._cuda_clearCublasWorkspaces()
        workspace = before - torch.cuda.memory_allocated()
        yield {"name": name, "live": live, "reserved": reserved, "workspace": workspace}


if __name__ == "__main__":
    torch.manual_seed(0)
    how = {"fake": forecasts, "cpu": truths, "cuda": measurements}[sys.argv[1]]
    for line in how(sys.argv[2:] or list(CONFIGURATIONS)):
        print(json.dumps(line), flush=True)
