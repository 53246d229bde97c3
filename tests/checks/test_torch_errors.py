"""Messages about layers quote the exception: compared with torch and numpy."""

from __future__ import annotations

import re

import pytest
from checking import Check

from shapefix.diagnostics import Role

HEAD = "import torch\nfrom torch import nn\n\n"
LAYERS = [
    ("nn.Linear(3, 4)", "2, 5"),
    ("nn.Linear(3, 4, bias=False)", "2, 6, 5"),
    ("nn.LSTM(3, 4)", "2, 6, 5"),
    ("nn.GRU(3, 4)", "2, 6, 5"),
    ("nn.RNN(3, 4)", "6, 5"),
    ("nn.LSTMCell(3, 4)", "2, 5"),
    ("nn.GRUCell(3, 4)", "2, 5"),
    ("nn.RNNCell(3, 4)", "2, 5"),
    ("nn.Conv1d(4, 6, 3)", "2, 5, 9"),
    ("nn.Conv2d(4, 6, 3)", "2, 5, 9, 9"),
    ("nn.Conv2d(4, 6, 3)", "5, 9, 9"),
    ("nn.Conv3d(4, 6, 3)", "2, 5, 9, 9, 9"),
    ("nn.Conv2d(4, 6, 3)", "2, 5"),
    ("nn.ConvTranspose2d(4, 6, 3)", "2, 5, 9, 9"),
    ("nn.ConvTranspose2d(4, 6, 3)", "2, 5"),
    ("nn.Conv2d(4, 6, 3)", "2, 4, 2, 2"),
    ("nn.MaxPool2d(3)", "2, 4, 2, 2"),
    ("nn.AvgPool2d(3)", "2, 4, 2, 2"),
    ("nn.BatchNorm1d(4)", "2, 5"),
    ("nn.BatchNorm2d(4)", "2, 5, 3, 3"),
    ("nn.BatchNorm1d(4)", "2, 4, 5, 6"),
    ("nn.BatchNorm2d(4)", "2, 4"),
    ("nn.InstanceNorm2d(4)", "2, 4"),
    ("nn.LayerNorm(4)", "2, 5"),
    ("nn.LayerNorm((3, 4))", "2, 3, 5"),
    ("nn.RMSNorm(4)", "2, 5"),
]

OPERATIONS = [
    "torch.randn(2, 3) @ torch.randn(4, 5)",
    "torch.randn(2, 2, 3) @ torch.randn(4, 5)",
    "torch.randn(2, 2, 3) @ torch.randn(2, 4, 5)",
    "torch.randn(2, 3) @ torch.randn(2, 4, 5)",
    "torch.mm(torch.randn(2, 3), torch.randn(4, 5))",
    "torch.bmm(torch.randn(2, 2, 3), torch.randn(2, 4, 5))",
    "torch.nn.functional.linear(torch.randn(2, 6, 3), torch.randn(5, 4))",
    "torch.cat([torch.randn(2, 3), torch.randn(2, 4)])",
    "torch.cat([torch.randn(2, 3), torch.randn(3, 4)], -1)",
    "torch.cat([torch.randn(2, 3), torch.randn(2, 3, 4)])",
    "torch.hstack([torch.randn(2, 3), torch.randn(3, 4)])",
    "torch.stack([torch.randn(2, 3), torch.randn(2, 4)])",
    "torch.randn(2, 3) + torch.randn(2, 4)",
    "torch.randn(2, 4) - torch.randn(3)",
    "torch.randn(2, 3) * torch.randn(4, 1, 5)",
    "torch.randn(2, 3) == torch.randn(2, 4)",
    "torch.pow(torch.randn(2, 3), torch.randn(2, 4))",
    "torch.randn(2, 3).mul(torch.randn(4))",
    "torch.randn(2, 3).view(4)",
    "torch.randn(2, 3).view(-1, 4)",
    "torch.randn(2, 3).reshape(-1, 4)",
    "torch.randn(2, 3)[0, 0, 0]",
    "nn.Embedding(3, 4)(torch.tensor([3]))",
    "nn.CrossEntropyLoss()(torch.randn(3, 4), torch.zeros(2, dtype=torch.long))",
    "nn.CrossEntropyLoss()(torch.randn(3, 4), torch.zeros(3, 1, dtype=torch.long))",
    "torch.nn.functional.nll_loss(torch.randn(3, 4), torch.zeros(2, dtype=torch.long))",
    "nn.BCEWithLogitsLoss()(torch.randn(3, 1), torch.zeros(3))",
    "nn.BCELoss()(torch.rand(3, 1), torch.zeros(3))",
    "nn.MSELoss()(torch.randn(3, 2), torch.zeros(3, 3))",
    "torch.nn.functional.l1_loss(torch.randn(3, 2), torch.zeros(3, 3))",
    "nn.Linear(3, 4)(torch.ones(2, 3).double())",
    "nn.Linear(3, 4, bias=False)(torch.ones(2, 5, 3).long())",
    "nn.Conv2d(3, 4, 3)(torch.ones(2, 3, 8, 8).byte())",
    "nn.Conv1d(3, 4, 3)(torch.ones(2, 3, 8).double())",
    "nn.LSTM(3, 4)(torch.ones(2, 3, 3).double())",
    "nn.Embedding(3, 4)(torch.ones(2))",
    "nn.CrossEntropyLoss()(torch.randn(3, 4), torch.zeros(3))",
    "torch.nn.functional.cross_entropy(torch.randn(3, 4), torch.zeros(3, dtype=torch.int32))",
    "torch.ones(2, 3) @ torch.ones(3, 4).double()",
    "torch.mm(torch.ones(2, 3), torch.ones(3, 4).long())",
    "torch.ones(2, 3) @ torch.ones(3).double()",
    "nn.BCELoss()(torch.rand(3), torch.zeros(3, dtype=torch.long))",
    "nn.BCEWithLogitsLoss()(torch.rand(3), torch.zeros(3, dtype=torch.long))",
    "torch.mm(torch.ones(2, 3, 4), torch.ones(4, 4))",
    "torch.mm(torch.ones(2, 3), torch.ones(3, 4, 4))",
    "torch.bmm(torch.ones(3, 4), torch.ones(3, 4, 4))",
    "torch.bmm(torch.ones(2, 3, 4), torch.ones(4, 4))",
    "torch.dot(torch.ones(3, 4), torch.ones(3, 4))",
    "torch.dot(torch.ones(3), torch.ones(4))",
    "torch.einsum('bid,bjd->bij', torch.ones(2, 3, 4), torch.ones(2, 3, 5))",
    "torch.ones(2, 3)[:, 5]",
    "torch.ones(2, 3)[-4]",
    "torch.ones(2, 3).permute(0, 2, 1)",
    "torch.ones(2, 3, 4).permute(0, 1)",
    "torch.ones(2, 3).transpose(1, 2)",
    "torch.ones(2, 3).sum(3)",
    "torch.ones(2, 3).split([1, 4], 1)",
    "torch.ones(2, 3).expand(4, 3)",
    "torch.ones(2, 3).masked_fill(torch.ones(2, dtype=torch.bool), 0)",
    "torch.ones(2, 3, 4).gather(-1, torch.ones(2, 3, dtype=torch.long))",
    "x = torch.ones(2, 1)\nx += torch.ones(2, 5)",
    "x = torch.ones(2, 3)\nx += torch.ones(2, 5)",
    "torch.ones(2, 1).add_(torch.ones(2, 5))",
    "torch.ones(2, 3).mul_(torch.ones(2, 5))",
    "x = torch.ones(16, 5)\nx[:8] = torch.ones(8, 4)",
    "b, t, c = torch.ones(2, 3, 4, 5).shape",
    "b, t, c = torch.ones(2, 3).shape",
    "b, t, c = torch.ones(2, 3).size()",
    "q, k, v = torch.ones(2, 4).chunk(2, dim=1)",
    "for x in torch.ones(2).sum():\n    print(x)",
    "[x for x in torch.ones(2)[0]]",
    "torch.ones(2)[0][1]",
    "torch.nn.functional.max_pool2d(torch.ones(1, 3, 3, 3), 4)",
    "torch.nn.functional.avg_pool2d(torch.ones(1, 3, 3, 3), 4)",
    "torch.nn.functional.conv2d(torch.ones(1, 3, 3, 3), torch.ones(4, 3, 5, 5))",
    "nn.PixelShuffle(2)(torch.ones(1, 6, 8, 8))",
    "nn.GroupNorm(32, 100)",
    "nn.Conv2d(3, 12, 3, groups=2)",
    "nn.Conv2d(4, 5, 3, groups=2)",
    "nn.CrossEntropyLoss()(torch.randn(4, 12, 9), torch.zeros(4, 12, dtype=torch.long))",
    "nn.CrossEntropyLoss()(torch.randn(2, 21, 8, 8), torch.zeros(2, 1, 8, 8, dtype=torch.long))",
    "torch.nn.utils.rnn.pad_sequence([torch.ones(3, 4), torch.ones(2, 5)])",
    "nn.LSTM(3, 4)(torch.ones(2, 2, 3), (torch.zeros(1, 5, 4), torch.zeros(1, 5, 4)))",
    "nn.LSTM(3, 4)(torch.ones(2, 2, 3), (torch.zeros(1, 2, 4), torch.zeros(1, 5, 4)))",
    "nn.LSTM(3, 4)(torch.ones(2, 2, 3), (torch.zeros(2, 4), torch.zeros(2, 4)))",
    "nn.GRU(3, 4)(torch.ones(2, 2, 3), torch.zeros(1, 5, 4))",
    "nn.GRU(3, 4)(torch.ones(2, 2, 3), torch.zeros(1, 4))",
]


def raised(code: str) -> str:
    """Run code, and return the type and the words of its exception."""
    try:
        exec(code, {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError(f"nothing is raised by {code}")


def assert_quoted(message: str, real: str) -> None:
    """Assert that a message ends with the type and with words of the exception; ... stands for any."""
    kind, words = re.findall(r"; (\w+Error): (.*)$", message)[0]
    assert real.startswith(f"{kind}: ")
    pattern = ".*?".join(map(re.escape, words.split("...")))
    assert re.search(pattern, real, re.DOTALL | re.IGNORECASE), (message, real)


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_a_message_quotes_the_error_of_the_layer(check: Check, layer: str, shape: str) -> None:
    code = f"{HEAD}layer = {layer}\nlayer(torch.randn({shape}))\n"
    (found,) = [each for each in check(code) if each.code.startswith("SF5")]
    assert_quoted(found.text, raised(code))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_message_quotes_the_error_of_the_operation(check: Check, operation: str) -> None:
    code = f"{HEAD}{operation}\n"
    (found,) = [each for each in check(code) if each.code.startswith("SF5")]
    assert_quoted(found.text, raised(code))


@pytest.mark.parametrize("affected", ["affine=False", "track_running_stats=False"])
def test_settings_of_a_normalization_that_change_the_error(check: Check, affected: str) -> None:
    code = f"{HEAD}layer = nn.BatchNorm2d(4, {affected})\nlayer(torch.randn(2, 5, 3, 3))\n"
    (found,) = check(code, {"SF511"})
    has_statistics = "affine" in affected
    assert ("Error: " in found.text) is has_statistics
    if has_statistics:
        assert_quoted(found.text, raised(code))


@pytest.mark.parametrize(
    ("function", "rows"),
    [("np.array", "[[1, 2], [3]]"), ("np.stack", "[np.zeros(2), np.zeros(3)]")],
)
def test_the_words_of_numpy(function: str, rows: str) -> None:
    from shapefix.checks.collation.tensor_of_ragged_rows import numpy_error

    error = numpy_error(function)
    assert raised(f"import numpy as np\n{function}({rows})").startswith(str(error))


def test_the_words_of_an_embedding_for_a_masked_id(check: Check) -> None:
    code = """\
def collate(features):
    batch = tokenizer.pad(features, return_tensors="pt")
    input_ids = batch["input_ids"]
    labels = input_ids.view(-1)
    labels[labels == 0] = -100
    return {"input_ids": input_ids, "labels": labels}
"""
    (found,) = check(code, {"SF202"})
    (failure,) = [step for step in found.evidence if step.role is Role.FAILURE]
    real = raised("import torch\ntorch.nn.Embedding(3, 4)(torch.tensor([-100]))")
    assert failure.label.endswith(f"an embedding raises {real}")


@pytest.mark.parametrize(
    ("collate", "word"),
    [
        (
            "default_data_collator([{'tokens': ['a', 'b']}, {'tokens': ['c', 'd']}])",
            "too many dimensions 'str'",
        ),
        ("default_data_collator([{'ids': [1, 2]}, {'ids': [1]}])", "expected sequence of length"),
    ],
)
def test_the_words_of_the_default_collator(collate: str, word: str) -> None:
    real = raised(f"from transformers import default_data_collator\n{collate}")
    assert real.startswith(f"ValueError: {word}")


ARRAYS = (
    "np.zeros((3, 4))[0, 0, 0]",
    "np.ones((3, 4))[:, :, 0]",
    "np.zeros(3)[0, 1]",
    "np.zeros((3, 4)).reshape(5, 5)",
    "np.zeros((3, 4)).reshape(7)",
)


@pytest.mark.parametrize("operation", ARRAYS)
def test_a_message_quotes_the_error_of_numpy(check: Check, operation: str) -> None:
    code = f"{HEAD}import numpy as np\nprint({operation})\n"
    (found,) = check(code, {"SF507"})
    assert_quoted(found.text, raised(code))
