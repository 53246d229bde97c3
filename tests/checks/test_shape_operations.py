"""SF507 against torch: random shape operations, and loops that have the number of samples written down."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Condition, Diagnostic
from shapefix.repair.fixpoint import repair

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n\n"


def findings(text: str, check: Check) -> list[Diagnostic]:
    return [each for each in check(text) if each.code.startswith("SF5")]


def raised(text: str) -> Exception | None:
    """What torch raises when it runs a script."""
    import torch

    torch.manual_seed(0)
    try:
        exec(compile(text, "script.py", "exec", dont_inherit=True), {"__name__": "script"})
    except Exception as error:
        return error
    return None


def operation(rng: random.Random, sizes: list[int]) -> str:
    """A line that takes x apart, of these sizes; about every second one is impossible."""
    rank, dim = len(sizes), rng.randrange(-5, 5)
    numbers = [rng.choice([1, 2, 3, 4, 6, 12, -1]) for _ in range(rng.randint(1, 3))]
    if numbers.count(-1) > 1:
        numbers = [abs(number) for number in numbers]
    target = ", ".join(map(str, numbers))
    order = list(range(rng.choice((rank, rank, 3))))
    rng.shuffle(order)
    names = ", ".join("abcde"[: rng.choice((rank, rank, 2, 3))])
    place = rng.randrange(-7, 7)
    return rng.choice(
        (
            f"y = x.view({target})",
            f"y = x.reshape({target})",
            f"y = torch.reshape(x, ({target},))",
            f"y = x.permute({', '.join(map(str, order))})",
            f"y = x.transpose(0, {dim})",
            f"y = x.squeeze({dim})",
            f"y = x.unsqueeze({dim})",
            f"y = x.flatten({dim})",
            f"y = x.sum({dim})",
            f"y = x.size({dim})",
            f"y = x.shape[{dim}]",
            f"{names}, = x.shape",
            f"{names}, = x.size()",
            f"y = x[{place}]",
            f"y = x[:, {place}]",
            f"y = x[..., {place}]",
            f"y = x[0, 0, {place}]",
            f"y = x.select({dim}, {place})",
            f"y = x.unflatten({dim}, (2, {rng.choice((-1, 1, 2, 3))}))",
            f"y = x.softmax({dim})",
            f"y = x.unbind({dim})",
        )
    )


@pytest.mark.slow
def test_operations_on_known_sizes_are_reported_where_torch_raises(check: Check) -> None:
    rng = random.Random(507)
    seen: Counter[str] = Counter()
    for _ in range(500):
        sizes = [rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 4))]
        line = operation(rng, sizes)
        text = f"{HEAD}x = torch.rand({', '.join(map(str, sizes))})\n{line}\n"
        error = raised(text)
        found = findings(text, check)
        if error is None:
            assert not found, f"{text}\n{found[0].message}"
            seen["runs"] += 1
        else:
            assert all(each.span.row == 6 for each in found), text
            seen["found" if found else "missed"] += 1
            if not found:
                seen[line.partition("(")[0]] += 1
    print(dict(seen))
    assert seen["runs"] > 100
    assert seen["found"] > 100
    assert seen["missed"] <= 0.1 * seen["found"], seen


LOOPS = (
    "y = x.view({B}, -1)",
    "y = x.view({B}, 12)",
    "y = x.reshape(({B}, 3, 4))",
    "y = x.view(-1, 12)",
    "y = x.view(x.size(0), -1)",
    "y = x + torch.zeros({B}, 3, 4)",
    "y = x * torch.ones({B}, 1, 1)",
    "y = x + torch.zeros(1, 3, 4)",
    "y = torch.cat([x, torch.zeros({B}, 3, 2)], dim=2)",
    "y = torch.cat([x, torch.zeros({B}, 3, 4)], dim=0)",
    "y = torch.bmm(x, torch.zeros({B}, 4, 2))",
    "y, _ = lstm(x, (torch.zeros(1, {B}, 5), torch.zeros(1, {B}, 5)))",
    "y, _ = lstm(x, (torch.zeros(1, len(x), 5), torch.zeros(1, len(x), 5)))",
    "y, _ = gru(x, torch.zeros(1, {B}, 5))",
    "y = x.new_zeros(x.shape) + x",
    "y = x[:{B}]",
)


@pytest.mark.parametrize("named", [False, True], ids=["number", "constant"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_full_batch_is_taken_for_granted_where_torch_raises_for_the_last_one(
    loop: str, named: bool, check: Check
) -> None:
    rng = random.Random(loop)
    for samples in (8, 10, 11, 7):
        last = rng.choice(("", ", drop_last=True", ", shuffle=True"))
        line = loop.format(B="BATCH" if named else 4)
        text = (
            f"{HEAD}BATCH = 4\nlstm, gru = nn.LSTM(4, 5, batch_first=True), nn.GRU(4, 5, batch_first=True)\n"
            f"data = TensorDataset(torch.rand({samples}, 3, 4))\n"
            f"for (x,) in DataLoader(data, batch_size={'BATCH' if named else 4}{last}):\n    {line}\n"
        )
        error = raised(text)
        found = findings(text, check)
        assert bool(found) == (error is not None), f"{text}\n{error!r}\n{[each.message for each in found]}"
        for each in found:
            assert each.code == "SF507"
            assert each.condition is None
        fixed = repair(
            text,
            lambda text: findings(text, check),
            lambda fix, _: fix.applicability is not Applicability.DISPLAY,
        )
        assert not fixed.remaining, fixed.text
        assert raised(fixed.text) is None


CLIPS = f"""{HEAD}
class Clips(torch.utils.data.Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        return torch.rand(3, 4)


def train(files):
    for x in DataLoader(Clips(files), batch_size=4):
        y = x.view(4, 12)
"""


def test_of_a_dataset_of_unknown_length_the_condition_is_told(check: Check) -> None:
    (found,) = findings(CLIPS, check)
    assert found.condition == Condition("the number of samples is not a multiple of 4")
    assert not findings(CLIPS.replace("batch_size=4", "batch_size=4, drop_last=True"), check)


FIRST = (
    "x, _ = next(iter(loader))\ny = x.view(4, 12)",
    "it = iter(loader)\nx, _ = next(it)\ny = x.view(4, 12)",
    "for x, _ in loader:\n    y = x.view(4, 12)\n    break",
    "for x, _ in loader:\n    break\ny = x.view(4, 12)",
    "for i, (x, _) in enumerate(loader):\n    if i == 0:\n        y = x.view(4, 12)",
    "for i, (x, _) in enumerate(loader):\n    y = x.view(4, 12)\n    break",
    "for x, _ in islice(loader, 1):\n    y = x.view(4, 12)",
    "x, _ = list(loader)[0]\ny = x.view(4, 12)",
    "x, _ = tuple(iter(loader))[1]\ny = x.view(4, 12)",
    "batches = list(loader)\nx, _ = batches[0]\ny = x.view(4, 12)",
    "for x, _ in list(loader)[:2]:\n    y = x.view(4, 12)",
)
LAST = (
    "for x, _ in list(loader):\n    y = x.view(4, 12)",
    "for i, (x, _) in enumerate(list(loader)):\n    y = x.view(4, 12)",
    "it = iter(loader)\nfor _ in range(3):\n    x, _ = next(it)\n    y = x.view(4, 12)",
    "for x, _ in loader:\n    if x.sum() < 0:\n        continue\n    x.view(4, 12)",
    "for x, _ in loader:\n    y = x.view(4, 12)\n    if len(x) < 4:\n        break",
)


@pytest.mark.parametrize("loop", [*FIRST, *LAST])
def test_the_first_batch_is_full(loop: str, check: Check) -> None:
    text = (
        f"from itertools import islice\n{HEAD}data = TensorDataset(torch.rand(10, 3, 4), torch.zeros(10))\n"
        f"loader = DataLoader(data, batch_size=4)\n{loop}\n"
    )
    assert (raised(text) is None) == (loop in FIRST)
    assert (not findings(text, check)) == (loop in FIRST)


OLD = {
    "loss.data[0]": "loss.item()",
    "loss[0]": "loss.item()",
    "model(x).mean().data[0]": "model(x).mean().item()",
    "loss.cpu().data[0]": "loss.item()",
    "loss.detach().numpy()[0]": "loss.item()",
    "loss[0].data.cpu().numpy()[0]": "loss.item()",
    "float(loss[0].data.cpu())": "float(loss.data.cpu())",
    "loss[0].item()": "loss.item()",
    "loss.data[0].cpu()": "loss.data.cpu()",
}


@pytest.mark.parametrize("statement", ["loss.data[0] += 1", "loss[0] = 1", "del loss[0]"])
def test_a_number_that_is_written_by_index_is_repaired_by_hand(statement: str, check: Check) -> None:
    text = f"{HEAD}loss = torch.rand(3).mean()\n{statement}\n"
    assert [finding.fix for finding in findings(text, check)] in ([None], [])


@pytest.mark.parametrize(("old", "new"), OLD.items(), ids=OLD.keys())
def test_the_number_in_a_loss_is_asked_for_as_torch_has_it_now(old: str, new: str, check: Check) -> None:
    text = (
        f"{HEAD}x, total = torch.rand(6, 4), 0.0\nmodel = nn.Linear(4, 2)\n"
        f"loss = nn.functional.cross_entropy(model(x), torch.zeros(6, dtype=torch.long))\ntotal += {old}\n"
    )
    assert isinstance(raised(text), IndexError)
    fixed = repair(
        text, lambda text: findings(text, check), lambda fix, _: fix.applicability is Applicability.SAFE
    )
    assert fixed.text == text.replace(old, new)
    assert raised(fixed.text) is None
