"""Conditions on the type of a value and on the mode of a module: what is known is what Python computes."""

from __future__ import annotations

import random
import textwrap

import pytest
from differential import executed, revealed

from shapefix.interpreter.values import Constant

VALUES = {
    "torch.zeros(2, 3)": False,
    "nn.Parameter(torch.zeros(2))": False,
    "[1, 2]": None,
    "(1, 2)": None,
    "3": True,
    "True": True,
    "2.5": True,
    "'text'": True,
    "None": True,
    "{'a': 1}": None,
    "nn.Linear(2, 3)": None,
    "nn.utils.rnn.pack_sequence([torch.zeros(2, 3)])": None,
}
"""Values, and whether their exact types are known; None if unknown, False if only not one of Python's."""
TYPES = (
    "list",
    "tuple",
    "dict",
    "int",
    "float",
    "str",
    "bool",
    "torch.Tensor",
    "nn.Module",
    "nn.Linear",
    "nn.utils.rnn.PackedSequence",
)


@pytest.mark.parametrize("value", VALUES)
def test_exact_types(value: str) -> None:
    lines = [f"x = {value}"]
    for kind in TYPES:
        lines += [
            f"reveal(type(x) == {kind})",
            f"reveal(type(x) is {kind})",
            f"reveal(type(x) != {kind})",
            f"reveal({kind} is type(x))",
            f"reveal(type(x) in (list, {kind}))",
        ]
    source = "\n".join(lines)
    ours, real = revealed(source), executed(source)
    assert len(ours) == len(real)
    for one, other in zip(ours, real, strict=True):
        assert not isinstance(one, Constant) or one.value is other
    known = [isinstance(one, Constant) for one in ours[: 5 * TYPES.index("torch.Tensor")]]
    if VALUES[value] is not None:
        assert all(known)


@pytest.mark.parametrize(
    "kind", ["np.ndarray", "np.integer", "(int, np.integer)", "(np.floating, float)", "torch.Tensor"]
)
@pytest.mark.parametrize(
    "value", ["torch.zeros(3)", "torch.zeros(3)[0]", "torch.zeros(3).long()", "np.zeros(3)", "3"]
)
def test_instances_of_numpy(value: str, kind: str) -> None:
    source = f"import numpy as np\nreveal(isinstance({value}, {kind}))"
    (ours,), (real,) = revealed(source), executed(source)
    assert not isinstance(ours, Constant) or ours.value is real
    if value.startswith("torch"):
        assert isinstance(ours, Constant)


def test_what_is_packed_stays_packed() -> None:
    source = """
        packed = nn.utils.rnn.pack_padded_sequence(torch.zeros(3, 7, 5), [7, 5, 2], batch_first=True)
        again = nn.utils.rnn.PackedSequence(packed.data, packed.batch_sizes)
        output, _ = nn.LSTM(5, 8, batch_first=True)(again)
        reveal(type(again) is nn.utils.rnn.PackedSequence)
        reveal(type(output) is nn.utils.rnn.PackedSequence)
        reveal(output.data.size(1))
    """
    ours, real = revealed(textwrap.dedent(source)), executed(textwrap.dedent(source))
    assert [one.value for one in ours if isinstance(one, Constant)] == real


def test_an_object_has_the_methods_of_its_class() -> None:
    source = """
        class Base(nn.Module):
            def step(self):
                pass

        class Net(Base):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 3)

        for name in ("step", "fc"):
            reveal(hasattr(Net(), name))
        reveal(hasattr(Net(), "other"))
        """
    *known, unknown = revealed(source)
    found = [each.value for each in known if isinstance(each, Constant)]
    assert found == executed(source)[:2] == [True, True]
    assert not isinstance(unknown, Constant)


def test_branches_for_lists_are_not_taken_with_tensors() -> None:
    source = """
        def first(h):
            if type(h) == list:
                h = h[0]
            return h
        reveal(first(torch.zeros(2, 3)))
        """
    (shown,) = revealed(source)
    assert getattr(getattr(shown, "layout", None), "rank", None) == 2


MODEL = """
import copy
class Inner(nn.Module):
    def forward(self, x):
        reveal(self.training)
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        reveal(self.training)
        return self.inner(x)
    def test(self, x):
        self.eval()
        with torch.no_grad():
            return self(x)
net = Net()
x = torch.zeros(2)
net.test(x)
net = Net()
"""
STEPS = (
    "net.train()",
    "net.eval()",
    "net.train(False)",
    "net.inner.eval()",
    "net.inner.train()",
    "net.test(x)",
    "net(x)",
    "for _ in range(2): net(x)",
    "for _ in range(2):\n    net(x)\n    net.eval()",
    "if sizes():\n    net.eval()",
    "net = net.to('cpu')",
    "net = copy.deepcopy(net)",
)


@pytest.mark.parametrize("seed", range(20))
def test_the_mode_in_forward(seed: int) -> None:
    chosen = random.Random(seed).choices(STEPS, k=6)
    source = MODEL + "\n".join(chosen) + "\nnet(x)\nreveal(net.training)\n"
    ours, real = revealed(source), executed(source)
    # A loop is run once for all its iterations.
    if not any("for" in step for step in chosen):
        assert len(ours) == len(real)
        for one, other in zip(ours, real, strict=True):
            assert not isinstance(one, Constant) or one.value is other
        if not any("sizes" in step for step in chosen):
            assert all(isinstance(one, Constant) for one in ours)
    assert not isinstance(ours[-1], Constant) or ours[-1].value is real[-1]


CHANGES = (
    "chosen.append(3)",
    "chosen += [3]",
    "chosen.extend([3, 4])",
    "chosen.insert(0, 3)",
    "chosen[0] = torch.zeros(2)",
    "chosen.pop()",
    "chosen.clear()",
    "del chosen[0]",
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("flag", ["sizes()", "not sizes()"])
def test_a_write_to_one_of_two_lists_is_one_to_either(change: str, flag: str) -> None:
    source = f"""
        one, two = [1], [2]
        flag = {flag}
        if flag:
            chosen = one
        else:
            chosen = two
        {change}
        reveal(len(one)), reveal(len(two)), reveal(one[0] if one else None), reveal(two[0] if two else None)
        """
    for ours, real in zip(revealed(source), executed(source), strict=True):
        assert not isinstance(ours, Constant) or ours.value == real
