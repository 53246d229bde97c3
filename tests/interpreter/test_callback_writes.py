"""Values written by hooks and other callbacks are unknown; all others are known."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch
from checking import Check
from revealed import holds

FILLED = {
    "a function": """
        seen = []
        def keep(module, inputs, output):
            seen.append(output)
        net[0].register_forward_hook(keep)
        net(torch.randn(2, 4))
        """,
    "a lambda": """
        seen = []
        net[0].register_forward_hook(lambda module, inputs, output: seen.append(output))
        net(torch.randn(2, 4))
        """,
    "a method": """
        class Taps:
            def __init__(self):
                self.seen = []
                net[0].register_forward_hook(self.keep)
            def keep(self, module, inputs, output):
                self.store(output)
            def store(self, output):
                self.seen.append(output)
            def run(self, x):
                self.seen = []
                net(x)
                return self.seen
        seen = Taps().run(torch.randn(2, 4))
        """,
    "an inner function": """
        def run(x):
            seen = []
            def keep(module, inputs, output):
                seen.extend([output])
            net[0].register_forward_hook(keep)
            net(x)
            return seen
        seen = run(torch.randn(2, 4))
        """,
    "a gradient hook": """
        seen = []
        x = net(torch.randn(2, 4))
        x.register_hook(lambda gradient: seen.append(gradient))
        x.sum().backward()
        """,
}
HEAD = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
"""
READ = """
last = torch.zeros(3)
for each in seen:
    last = each
print(last[0, 0])
"""


@pytest.mark.parametrize("filled", FILLED.values(), ids=FILLED)
def test_a_list_filled_by_a_callback_has_unknown_items(filled: str, check: Check) -> None:
    text = HEAD + textwrap.dedent(filled) + READ
    exec(compile(text, "main.py", "exec"), {})  # the list is not empty
    assert not check(text)


def test_a_list_that_only_called_functions_fill_is_known(tmp_path: Path) -> None:
    holds(
        """
        import torch
        def fill(store):
            store.append(torch.zeros(2))
        class Model:
            def __init__(self):
                self.kept = []
            def keep(self, x):
                self.kept.append(x)
        seen, model = [], Model()
        fill(seen)
        model.keep(torch.zeros(3))
        reveal(seen[0])  # f32[2]
        reveal(model.kept[0])  # f32[3]
        """,
        tmp_path,
    )


def test_an_attribute_set_by_a_callback_is_unknown(tmp_path: Path) -> None:
    holds(
        """
        import torch
        class Grads:
            def __init__(self, layer):
                self.count = 0
                layer.register_full_backward_hook(self.keep)
            def keep(self, module, before, after):
                self.count += 1
        grads = Grads(torch.nn.Linear(2, 2))
        reveal(grads.count)  # unknown
        """,
        tmp_path,
    )


def test_a_list_that_is_empty_without_callbacks_is_still_judged(check: Check) -> None:
    assert [each.code for each in check(HEAD + "seen = []\n" + READ)] == ["SF507"]
    with pytest.raises(IndexError):
        torch.zeros(3)[0, 0]
