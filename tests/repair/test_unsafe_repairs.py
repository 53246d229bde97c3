"""Unsafe repairs: what they leave as it was, and where they are not applied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.repair.fixpoint import repair


def repaired(check: Check, text: str, code: str) -> str:
    """Apply the safe and unsafe fixes of one rule."""
    return repair(text, lambda now: check(now, {code}), lambda fix, _: True).text


def fixes(found: list[Diagnostic]) -> list[Applicability]:
    return [fix.applicability for finding in found for fix in finding.fixes[:1]]


EVALUATION = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.ones(2, 4) for _ in range(3)]
modes = []


def evaluate():
    total = 0.0
    with torch.no_grad():
        for batch in batches:
            modes.append(model.training)
            total += float(model(batch).sum())
    return total


"""
TRAINING = """\
for epoch in range(2):
    for batch in batches:
        modes.append(model.training)
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
    evaluate()
"""


def ran(text: str) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(text, names)
    return names


def test_the_training_switches_back_after_an_evaluation(check: Check) -> None:
    text = repaired(check, EVALUATION + TRAINING, "SF804")
    assert "        model.eval()\n        for batch" in text
    assert "for epoch in range(2):\n    model.train()\n    for batch" in text
    assert ran(text)["modes"] == [*[True] * 3, *[False] * 3] * 2


def test_no_mode_is_restored_where_the_epoch_sets_it(check: Check) -> None:
    training = TRAINING.replace("    for batch", "    model.train()\n    for batch", 1)
    text = repaired(check, EVALUATION + training, "SF804")
    assert text.count("model.train()") == 1
    assert ran(text)["modes"] == [*[True] * 3, *[False] * 3] * 2


def test_no_mode_is_restored_at_the_end_of_a_script(check: Check) -> None:
    text = repaired(check, EVALUATION + "evaluate()\n", "SF804")
    assert "model.eval()" in text
    assert "model.train()" not in text


@pytest.mark.parametrize(
    ("sizes", "kind"),
    [((2, 3), Applicability.UNSAFE), ((5, 2, 3), Applicability.UNSAFE), ((2,), Applicability.DISPLAY)],
)
def test_a_sum_with_more_elements_than_both_is_not_written(
    check: Check, sizes: tuple[int, ...], kind: Applicability
) -> None:
    found = check(f"import torch\n\nx = torch.zeros(2, 1)\nx += torch.ones({sizes})\n", {"SF510"})
    assert fixes(found) == [kind]


SHARED_LOOP = """\
def epoch(net, optimizer=None):
    for batch in batches:
        with torch.set_grad_enabled(optimizer is not None):
            loss = net(batch).sum()
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

for _ in range(2):
    epoch(model, optimizer)
    epoch(model)
"""
OTHER_NAME = """\
def predict(net, batch):
    with torch.no_grad():
        return net(batch)

def evaluate():
    for batch in batches:
        predict(model, batch)

evaluate()
"""


@pytest.mark.parametrize("code", [SHARED_LOOP, OTHER_NAME])
def test_the_mode_is_switched_by_hand_in_a_loop_for_both_and_under_another_name(
    check: Check, code: str
) -> None:
    text = EVALUATION.partition("def evaluate")[0] + code
    (finding,) = check(text, {"SF804"})
    assert [fix.applicability for fix in finding.fixes] == [Applicability.DISPLAY]
    assert repaired(check, text, "SF804") == text


SWALLOWING = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train(loader):
    for batch in loader:
        try:
            loss = model(batch).sum()
            loss.backward()
            optimizer.step()
        except RuntimeError:
            print("failed")
            continue
        except Exception as error:
            print(error)


"""
CALLED = {
    "alone": ("train([torch.ones(2, 5)])\n", True),
    "in a handler that goes on": (
        "for run in range(3):\n    try:\n        train([torch.ones(2, 5)])\n"
        "    except Exception as error:\n        print(error)\n",
        False,
    ),
    "in a handler for other errors": (
        "try:\n    train([torch.ones(2, 5)])\nexcept KeyboardInterrupt:\n    print('stopped')\n",
        True,
    ),
}


@pytest.mark.parametrize("name", CALLED)
def test_every_handler_raises_unless_a_caller_swallows_it(name: str, check: Check) -> None:
    calls, offered = CALLED[name]
    text = repaired(check, SWALLOWING + calls, "SF801")
    assert text.count("raise") == (2 if offered else 0)
    if offered:
        with pytest.raises(RuntimeError, match="cannot be multiplied"):
            ran(text)


def test_a_score_for_a_failure_is_raised_by_every_handler(check: Check) -> None:
    text = SWALLOWING.replace("loss.backward()\n            optimizer.step()", "total = float(loss)")
    text = text.replace('print("failed")\n            continue', "return 0.0")
    text = text.replace("            print(error)\n", '            return float("inf")\n')
    found = repaired(check, text.replace("loss = model", "loss = nn.functional.mse_loss(model").replace(
        "(batch).sum()", "(batch), batch)"), "SF802")  # fmt: skip
    assert found.count("raise") == 2


LAYER = """\
import torch
from torch import nn

layer = nn.Linear({size}, 2){comment}
images = torch.ones(3, 8, 4, 4)
out = layer(images.flatten(1))
"""
COMMENTS = {
    "": Applicability.UNSAFE,
    "  # the classifier": Applicability.UNSAFE,
    "  # 128 = 8 * 4 * 4": Applicability.UNSAFE,
    "  # 256 features of the encoder": Applicability.DISPLAY,
}


@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_that_states_the_number_keeps_it(comment: str, check: Check) -> None:
    found = check(LAYER.format(size=256, comment=comment), {"SF501"})
    assert fixes(found) == [COMMENTS[comment]]


ROWS = {
    "SF506": "layer = nn.Conv1d(16, 4, 1)\nout = layer(torch.ones(32, 16))\n",
    "SF501": "layer = nn.Linear(32, 4)\nout = layer(torch.ones(32, 16))\n",
}


@pytest.mark.parametrize("code", ROWS)
def test_a_batch_of_rows_is_not_transposed(code: str, check: Check) -> None:
    head = "import torch\nfrom torch import nn\n\n"
    assert fixes(check(head + ROWS[code], {code})) == [Applicability.DISPLAY]


FUNCTION = """\
import torch


def scores(queries, keys):
    return torch.matmul(queries, keys)


"""
DEMO = 'if __name__ == "__main__":\n    print(scores(torch.ones(2, 5, 8), torch.ones(2, 6, 8)))\n'


def test_a_demo_does_not_change_a_function(check: Check) -> None:
    assert fixes(check(FUNCTION + DEMO, {"SF503"})) == [Applicability.DISPLAY]
    called = "out = scores(torch.ones(2, 5, 8), torch.ones(2, 6, 8))\n"
    assert fixes(check(FUNCTION + called, {"SF503"})) == [Applicability.UNSAFE]
    inside = "    torch.matmul(torch.ones(2, 5, 8), torch.ones(2, 6, 8))\n"
    script = f'import torch\n\nif __name__ == "__main__":\n{inside}'
    assert fixes(check(script, {"SF503"})) == [Applicability.UNSAFE]


def test_a_function_that_tests_a_model_does_not_change_it(check: Check) -> None:
    """The function is in a file that the training imports; nothing calls it."""
    net = f"{NETWORK_HEAD}\n\ndef NAME():\n    print(Net()(torch.ones(1, 3, 8, 8)))\n"
    assert fixes(check(net.replace("NAME", "test"), {"SF506"})) == [Applicability.DISPLAY]
    assert fixes(check(net.replace("NAME", "test_forward"), {"SF506"})) == [Applicability.DISPLAY]
    assert fixes(check(net.replace("NAME", "train"), {"SF506"})) == [Applicability.UNSAFE]


NETWORK_HEAD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)

    def forward(self, x):
        return self.conv(x)
"""
NETWORK = """\
import torch
from torch import nn

first = nn.Conv2d(3, 32, 3)
norm = nn.BatchNorm2d(64)
second = nn.Conv2d({channels}, 8, 3)
out = second(norm(first(torch.ones(2, 3, 8, 8))))
"""


@pytest.mark.parametrize(("channels", "changed"), [(64, False), (32, True)])
def test_a_later_layer_of_the_old_size_keeps_it(channels: int, changed: bool, check: Check) -> None:
    text = NETWORK.format(channels=channels)

    def analyze(now: str) -> list[Diagnostic]:
        return [found for found in check(now) if found.code in ("SF506", "SF511")]

    forced = repair(text, lambda now: [_applicable(found) for found in analyze(now)], lambda fix, _: True)
    assert ("nn.BatchNorm2d(32)" in forced.text) == changed


def _applicable(found: Diagnostic) -> Diagnostic:
    """Turn display fixes with edits into unsafe ones."""
    made = [replace(fix, applicability=Applicability.UNSAFE) if fix.edits else fix for fix in found.fixes]
    return replace(found, fixes=tuple(made))


@pytest.mark.parametrize(
    ("line", "repaired_line"),
    [
        ("print(loss.data[0])", "print(loss.item())"),
        ("total += loss.data[0]", "total += loss.item()"),
        ("print(loss[0].item())", "print(loss.item())"),
        ("print(loss.data[0].cpu())", "print(loss.data.cpu())"),
        ("loss.data[0] += 1", "loss.data[0] += 1"),
        ("loss.data[0] = 3", "loss.data[0] = 3"),
    ],
)
def test_an_index_of_a_number_that_is_written_or_converted_is_left_out(
    check: Check, line: str, repaired_line: str
) -> None:
    text = "import torch\n\ntotal = 0\nloss = torch.ones(3).mean()\n{}\n"
    assert repaired(check, text.format(line), "SF507") == text.format(repaired_line)
    if repaired_line != line:
        exec(text.format(repaired_line), {})


@pytest.mark.parametrize(
    ("layers", "left"),
    [
        ("nn.Linear(4, 3), nn.Softmax(dim=1)", "nn.Linear(4, 3)"),
        (
            "\n    nn.Linear(4, 3),  # scores\n    nn.Softmax(dim=1),  # chances\n",
            "\n    nn.Linear(4, 3),  # scores\n",
        ),
        ("\n    nn.Linear(4, 3),\n    nn.Softmax(dim=1)  # chances\n", "\n    nn.Linear(4, 3),\n"),
        (
            "\n    nn.Linear(4, 3),  # scores\n    nn.Softmax(dim=1)",
            "\n    nn.Linear(4, 3),  # scores\n    ",
        ),
    ],
)
def test_a_removed_layer_takes_its_own_comment_along(check: Check, layers: str, left: str) -> None:
    text = (
        "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n\nnet = nn.Sequential({})\n"
        "F.cross_entropy(net(torch.rand(8, 4)), torch.zeros(8).long())\n"
    )
    assert repaired(check, text.format(layers), "SF513") == text.format(left)
