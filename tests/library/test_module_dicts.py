"""Dictionaries of modules that are filled in a class of their own: they run as torch runs them."""

from __future__ import annotations

import pytest
from differential import executed, revealed

from shapefix.interpreter.tensor_values import TensorValue

BLOCK = """
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x)

class Block(nn.ModuleDict):
    def __init__(self):
        super().__init__()
        for i in range(3):
            FILL

    def forward(self, x):
        features = [x]
        LOOP
        return torch.cat(features, 1)

reveal(Block()(torch.zeros(2, 5, 6)))
"""
FILLS = (
    'self.add_module("layer%d" % i, Layer(5))',
    'self.add_module(f"layer{i}", nn.Conv1d(5, 4, 1))',
    'self[f"layer{i}"] = Layer(5)',
    'setattr(self, f"layer{i}", Layer(5))',
    'self.update({f"layer{i}": Layer(5)})',
)
LOOPS = (
    "for name, layer in self.items():\n            features.append(layer(x))",
    "for layer in self.values():\n            features.append(layer(x))",
    "for name in self:\n            features.append(self[name](x))",
    "for layer in self.children():\n            features.append(layer(x))",
)


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("fill", FILLS)
def test_every_child_runs(fill: str, loop: str) -> None:
    source = BLOCK.replace("FILL", fill).replace("LOOP", loop)
    (ours,), (real,) = revealed(source), executed(source)
    if isinstance(ours, TensorValue) and ours.layout is not None:
        known = [size.value for size in ours.layout.sizes]
        assert all(one in (None, other) for one, other in zip(known, real.shape, strict=True))
    if fill == FILLS[0] and loop == LOOPS[0]:
        assert isinstance(ours, TensorValue)
        assert ours.layout is not None
        assert [size.value for size in ours.layout.sizes] == [2, 17, 6]


def test_a_child_of_an_unknown_name_makes_the_result_unknown() -> None:
    source = BLOCK.replace("FILL", "self.add_module(str(sizes()), Layer(5))").replace("LOOP", LOOPS[0])
    (ours,) = revealed(source.replace("class Layer", "def sizes():\n    return id(nn)\n\nclass Layer"))
    assert not isinstance(ours, TensorValue) or ours.layout is None or ours.layout.sizes[1].value is None
