"""Configurations that stand in a SimpleNamespace."""

from __future__ import annotations

import pytest
from differential import agree, layouts

CONFIGURED = """
from types import SimpleNamespace
cfg = SimpleNamespace(width=4, depth=2)
"""


def test_the_names_of_a_namespace_are_sizes() -> None:
    agree(CONFIGURED + "reveal(nn.Linear(3, cfg.width)(torch.randn(2, 3)))")
    agree(CONFIGURED + "cfg.width = 5\nreveal(torch.zeros(cfg.width, cfg.depth))")
    agree(CONFIGURED + "cfg = SimpleNamespace(**{'width': 6})\nreveal(torch.zeros(cfg.width))")
    agree(CONFIGURED + "setattr(cfg, 'width', 7)\nreveal(torch.zeros(cfg.width))")


def test_namespaces_stand_in_namespaces_and_are_handed_on() -> None:
    agree(
        """
        from types import SimpleNamespace
        cfg = SimpleNamespace(model=SimpleNamespace(width=4))
        class Net(nn.Module):
            def __init__(self, cfg):
                super().__init__()
                self.layer = nn.Linear(3, cfg.width)
            def forward(self, x):
                return self.layer(x)
        reveal(Net(cfg.model)(torch.randn(2, 3)))
        """
    )


@pytest.mark.parametrize(
    "change",
    [
        "for name, value in load().items():\n    setattr(cfg, name, value)",
        "cfg.__dict__.update(load())",
        "vars(cfg).update(load())",
    ],
)
def test_what_may_have_been_changed_is_not_known(change: str) -> None:
    (shown,) = layouts(f"from elsewhere import load\n{CONFIGURED}\n{change}\nreveal(torch.zeros(cfg.width))")
    assert "4" not in shown
