"""Ranks of tensors along a loop, and results of layers in a list: those of torch."""

from __future__ import annotations

from differential import compare, executed, revealed
from hypothesis import given, settings
from hypothesis import strategies as st

STEPS = (
    "x = x.transpose(1, 2)",
    "x = torch.cat([x, y], 1)",
    "x = torch.cat([x, x], 2)",
    "x = x.flatten(1).unsqueeze(2)",
    "x = F.pad(x, (1, 0))",
    "x = x.mean(1)",
    "x = x[:, :, :1]",
    "x = y",
    "y = x[:, :1]",
    "y = x.unsqueeze(0)",
    "y = torch.stack([y, y])[0]",
    "y = x.permute(0, 2, 1)",
    "x, y = y, x",
    "z = x.sum(-1)",
    "y = torch.zeros(2, 1, *x.shape[2:])",
    "if x.size(1) > 6:\n        break",
    "if x.size(2) > 6:\n        continue",
)
LOOP = """
x = y = z = torch.zeros(2, 3, 4)
for _ in range({count}):
    {body}
reveal(x)
reveal(y)
reveal(z)
"""


def _agree(source: str, counts: tuple[str, ...], unknown: str) -> None:
    """Compare the facts for an unknown value with what torch does for each of these."""
    ours = revealed("from elsewhere import unknown\n" + source.replace("{count}", unknown))
    for count in counts:
        try:
            real = executed(source.replace("{count}", count))
        except (RuntimeError, IndexError):
            continue
        assert len(ours) == len(real)
        for one, other in zip(ours, real, strict=True):
            compare(one, other)


@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=4))
@settings(max_examples=40)
def test_tensors_after_a_loop_are_those_of_torch(steps: list[str]) -> None:
    source = LOOP.replace("{body}", "\n    ".join(steps))
    _agree(source, ("0", "1", "2", "3"), "unknown()")


LAYERS = (
    "nn.Conv2d(last, width, 3, padding=1)",
    "nn.Conv2d(last, width, 3)",
    "nn.Conv2d(last, width, 1, stride=2)",
    "nn.Sequential(nn.Conv2d(last, width, 1), nn.ReLU())",
    "nn.BatchNorm2d(last)",
    "nn.MaxPool2d(2)",
    "nn.Identity()",
)
NETWORK = """
layers, last = [{start}], 4
for width in {count}:
    layers.append({layer})
    {next}
x = torch.zeros(2, 4, 16, 16)
net = nn.Sequential(*layers)
reveal(net(x))
for layer in nn.ModuleList(layers):
    x = layer(x)
reveal(x)
reveal(torch.cat([x, x], 1))
"""


@given(
    st.sampled_from(["", "nn.Conv2d(4, 4, 3)", "nn.MaxPool2d(2)", "nn.Conv2d(4, 4, 1)"]),
    st.sampled_from(LAYERS),
    st.sampled_from(["last = width", "pass", "last *= 2", "layers.append(nn.ReLU()); last = width"]),
)
@settings(max_examples=20)
def test_results_of_layers_in_a_list_are_those_of_torch(start: str, layer: str, following: str) -> None:
    source = NETWORK.replace("{start}", start).replace("{layer}", layer).replace("{next}", following)
    _agree(source, ("[4]", "[5]", "[4, 4]", "[8, 6]", "[5, 4, 4]"), "unknown()")
