"""Layers whose names have a number in them, made and read in loops."""

from __future__ import annotations

import pytest
from differential import agree

NETWORK = """
class Net(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        for i in range(len(sizes) - 1):
            {made}

    def forward(self, x):
        for i in range(2):
            x = getattr(self, {name})(x)
            reveal(x)
        return x

Net([V, 3, 5])(torch.randn(B, V))
"""
NAMES = ['f"layer{i}"', '"layer{}".format(i)', '"layer{0}".format(i)', '"layer" + str(i)', '"layer%d" % i']


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["setattr(self, {}, {})", "self.add_module({}, {})"])
def test_a_layer_is_found_by_its_name(name: str, form: str) -> None:
    made = form.format(name, "nn.Linear(sizes[i], sizes[i + 1])")
    agree(NETWORK.replace("{made}", made).replace("{name}", name))


@pytest.mark.parametrize(
    "name", ['f"{i:0>3}"', 'f"{i!r}"', '"{:3}".format(i)', '"{{}}{}".format(i)', '"%s" % i']
)
def test_what_is_spelled_otherwise_is_not_guessed(name: str) -> None:
    made = f"setattr(self, {name}, nn.Linear(sizes[i], sizes[i + 1]))"
    source = NETWORK.replace("{made}", made).replace("{name}", name).replace("reveal(x)", "pass")
    agree(source + "\nreveal(torch.zeros(B))")
