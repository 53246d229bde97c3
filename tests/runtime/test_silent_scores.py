"""Losses of scores that are normalized twice, not at all, or over the batch; and losses that are right."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from probing import named, probed, row

from shapefix.runtime.agent.watchers.loss_scores import score_facts
from shapefix.runtime.findings.silent.loss_targets import _BROADCAST

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F

x, y = torch.randn(16, 8), torch.randint(0, 3, (16,))
model = nn.Linear(8, 3)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(9):
    optimizer.zero_grad()
"""
TAIL = """
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""

WRONG = {
    "a softmax before the cross entropy": (
        "normalized-scores", "loss = F.cross_entropy(model(x).softmax(-1), y)",
        "`cross_entropy` gets probabilities of a softmax, but applies softmax itself",
    ),
    "probabilities by value": (
        "normalized-scores",
        "e = model(x).exp(); loss = nn.CrossEntropyLoss()(e / e.sum(1, keepdim=True), y)",
        "`cross_entropy` gets probabilities (each row sums to 1), but applies softmax itself",
    ),
    "a sigmoid before its own loss": (
        "normalized-scores",
        "loss = nn.BCEWithLogitsLoss()(model(x).sigmoid()[:, 0], (y > 1).float())",
        "`binary_cross_entropy_with_logits` gets probabilities of a sigmoid, but applies sigmoid itself",
    ),
    "raw scores": (
        "unnormalized-scores", "loss = F.nll_loss(model(x) + 1, y)",
        "`nll_loss` gets scores without a log_softmax, but expects log-probabilities: its loss can fall "
        "below 0",
    ),
    "probabilities": (
        "unnormalized-scores", "loss = nn.NLLLoss()(F.softmax(model(x), dim=1), y)",
        "`nll_loss` gets the result of a softmax, but expects log-probabilities: its loss can fall below 0",
    ),
    "a divergence of probabilities": (
        "unnormalized-scores",
        "loss = F.kl_div(model(x).softmax(1), torch.rand(16, 3).softmax(1), reduction='batchmean')",
        "`kl_div` gets probabilities of a softmax, but expects log-probabilities",
    ),
    "a divergence of raw scores": (
        "unnormalized-scores",
        "loss = F.kl_div(model(x) + 1, torch.rand(16, 3).softmax(1), reduction='batchmean')",
        "`kl_div` gets scores without a log_softmax, but expects log-probabilities: it can fall below 0",
    ),
    "over the batch": (
        "softmax-over-batch", "loss = F.nll_loss(F.log_softmax(model(x), dim=0), y)",
        "the log_softmax before `nll_loss` normalizes over dimension 0, the batch; the classes are "
        "dimension 1",
    ),
    "a normal distribution": (
        "silent-broadcast", "loss = F.gaussian_nll_loss(model(x)[:, :1], y.float(), torch.ones(16))",
        "`gaussian_nll_loss` compares f32[16, 1] with f32[16]: both are broadcast to (16, 16)",
    ),
}  # fmt: skip

RIGHT = {
    "scores": "F.cross_entropy(model(x), y)",
    "log-probabilities twice": "F.cross_entropy(model(x).log_softmax(1), y)",
    "log-probabilities": "F.nll_loss(F.log_softmax(model(x), dim=-1), y)",
    "a logarithm": "F.nll_loss((model(x).softmax(1) + 1e-8).log(), y)",
    "a temperature": "F.nll_loss(model(x).log_softmax(1) / 3, y)",
    "one sample": "F.nll_loss(F.log_softmax(model(x[0]), dim=0), y[0])",
    "a sequence": "F.nll_loss(model(x).view(4, 4, 3).log_softmax(2).transpose(1, 2), y.view(4, 4))",
    "rectified scores": "F.cross_entropy(model(x).relu(), y)",
    "probabilities for their own loss": "F.binary_cross_entropy(model(x).sigmoid()[:, 0], (y > 1).float())",
    "a divergence": "F.kl_div(model(x).log_softmax(1), torch.rand(16, 3).softmax(1), reduction='batchmean')",
    "a divergence after a logarithm by hand": "F.kl_div("
    "model(x) - model(x).logsumexp(1, keepdim=True), torch.rand(16, 3).softmax(1), reduction='batchmean')",
    "a normal distribution": "F.gaussian_nll_loss(model(x)[:, 0], y.float(), torch.ones(16))",
    "attention": "F.cross_entropy((x @ x.T).softmax(-1) @ model(x), y)",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_wrong_scores_are_named(tmp_path: Path, name: str) -> None:
    kind, statement, message = WRONG[name]
    script = HEAD + f"    {statement}  # fault" + TAIL
    ran = probed(tmp_path, script)
    (found,) = ran.found
    assert (found.code, found.name) == named(kind)
    assert (found.span.row, found.message) == (row(script, "fault"), message)


@pytest.mark.slow
def test_right_scores_are_silent(tmp_path: Path) -> None:
    losses = "".join(f"    loss = loss + {each}\n" for each in RIGHT.values())
    ran = probed(tmp_path, f"{HEAD}    loss = 0\n{losses}{TAIL}")
    assert ran.found == []
    assert ran.run.complete, ran.run.process.output


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_the_dimension_of_a_softmax_is_that_of_torch(dim: int) -> None:
    scores = F.log_softmax(torch.randn(5, 3, requires_grad=True), dim)
    facts = score_facts("nll_loss", (scores, torch.zeros(5).long()), {}, with_values=True)
    assert facts is not None
    assert (facts["activation"], facts["dim"], facts["class_dim"]) == ("log_softmax", dim % 2, 1)
    assert torch.allclose(scores.exp().sum(facts["dim"]), torch.tensor(1.0))


@pytest.mark.parametrize("name", _BROADCAST)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_torch_broadcasts_the_operands_of_these_losses(name: str) -> None:
    more = (torch.ones(6),) if name == "gaussian_nll_loss" else ()
    kept = {"reduction": "none"}
    loss = getattr(F, name)(torch.rand(6, 1), torch.rand(6), *more, **kept)
    assert loss.shape in ((6, 6), (6,))


PADDED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

rows = [torch.randint(1, 9, (length,)) for length in (5, 7, 3)]
batch = pad_sequence(rows, batch_first=True)
model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 9))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(5):
    scores, targets = model(batch[:, :-1]), batch[:, 1:]
    optimizer.zero_grad()
    {loss}  # fault
    loss.backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "loss",
    [
        "loss = nn.CrossEntropyLoss()(scores.reshape(-1, 9), targets.reshape(-1))",
        "loss = nn.functional.cross_entropy(scores.transpose(1, 2), targets, reduction='sum')",
    ],
)
def test_padding_among_the_targets_is_named(tmp_path: Path, loss: str) -> None:
    script = PADDED.format(loss=loss)
    (found,) = probed(tmp_path, script).found
    assert (found.code, found.span.row) == (named("padding-in-loss")[0], row(script, "fault"))
    assert found.message.startswith("6 of 18 targets of `cross_entropy` are padding")


@pytest.mark.slow
def test_padding_that_counts_for_nothing_is_silent(tmp_path: Path) -> None:
    right = (
        "given = scores.reshape(-1, 9), targets.reshape(-1)",
        "loss = nn.CrossEntropyLoss(ignore_index=0)(*given)",
        "loss = loss + nn.CrossEntropyLoss(weight=torch.tensor([0.0] + [1.0] * 8))(*given)",
        "loss = loss + (nn.CrossEntropyLoss(reduction='none')(*given) * (given[1] > 0)).mean()",
        "loss = loss + nn.functional.cross_entropy(scores[targets > 0], targets[targets > 0])",
    )
    ran = probed(tmp_path, PADDED.format(loss="; ".join(right)))
    assert ran.found == []
    assert ran.run.complete, ran.run.process.output
