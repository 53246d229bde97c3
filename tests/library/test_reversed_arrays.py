"""SF106 for random chains of views: what it reports raises in torch, and what torch refuses it reports."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
import torch
from checking import Check

VIEWS = (
    "a = a[:, ::-1]", "a = a[::-1]", "a = a[..., ::-1]", "a = np.flip(a, 1)", "a = np.fliplr(a)",
    "a = np.rot90(a)", "a = np.rot90(a, 4)", "a = a.T", "a = a.transpose(2, 0, 1)",
    "a = np.swapaxes(a, 0, 2)", "a = a[:, 1:]", "a = np.moveaxis(a, 0, 1)", "a = np.asarray(a)",
)  # fmt: skip
COPIES = (
    "a = a.copy()", "a = np.ascontiguousarray(a)", "a = a / 255", "a = a.astype('float32')", "a = -a",
    "a = np.array(a)", "a = np.stack([a])[0]", "a = a + a", "a = np.concatenate([a, a])",
)  # fmt: skip
REVERSING = VIEWS[:6]
CONVERSIONS = "torch.from_numpy(a)", "torch.tensor(a)", "torch.as_tensor(a)", "torch.DoubleTensor(a)"
HEAD = "import numpy as np\nimport torch\n"
START = "a = np.random.rand(4, 5, 3)\n"


def raises(code: str) -> bool:
    try:
        exec(code, {})
    except ValueError as error:
        return "negative" in str(error)
    return False


@pytest.mark.parametrize("seed", range(120))
def test_reversed_views_are_those_that_torch_refuses(seed: int, check: Check) -> None:
    drawn = random.Random(seed)
    steps = drawn.choices((*VIEWS, *COPIES), k=drawn.randint(1, 5))
    code = HEAD + START + "\n".join(steps) + f"\nx = {drawn.choice(CONVERSIONS[:3])}\n"
    found = bool(check(code, {"SF106"}))
    turned = [step for step in steps if step in REVERSING]
    if found:
        assert raises(code)
    elif len(turned) == 1:
        # Turned twice, a dimension may be in order again.
        assert not raises(code)


@pytest.mark.parametrize(("view", "copy"), list(itertools.product(REVERSING, COPIES)))
def test_a_copy_ends_it(view: str, copy: str, check: Check) -> None:
    code = f"{HEAD}{START}{view}\n{copy}\nx = torch.from_numpy(a)\n"
    assert not raises(code)
    assert not check(code, {"SF106"})


def test_what_is_reversed_on_one_path_raises_there(check: Check) -> None:
    code = f"""{HEAD}
def load(path, turned):
    a = np.load(path)
    if turned:
        a = a[:, ::-1]
    return torch.from_numpy(a.transpose(1, 0))
"""
    (found,) = check(code, {"SF106"})
    assert found.condition is not None
    assert found.condition.text == "line 7 has run"
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.zeros((3, 4))[:, ::-1].transpose(1, 0))


@pytest.mark.parametrize("code", ["x[::-1]", "x[:, ::-2]", "x[1:, -1::-1]"])
def test_a_slice_of_a_tensor_with_a_negative_step_raises(code: str, check: Check) -> None:
    text = f"{HEAD}x = torch.zeros(3, 4)\ny = {code}\n"
    with pytest.raises(ValueError, match="step must be greater than zero"):
        exec(text, {})
    assert len(check(text, {"SF106"})) == 1


@pytest.mark.parametrize("name", ["rows", "frame.iloc", "names"])
def test_what_may_be_a_list_is_not_an_array(name: str, check: Check) -> None:
    assert not check(
        f"{HEAD}def load({name.partition('.')[0]}):\n    return torch.tensor({name}[::-1])\n", {"SF106"}
    )


def test_an_array_that_the_code_asserts_is_no_tensor(check: Check) -> None:
    code = """
def plain(image, std, order):
    assert isinstance(image, (np.ndarray,))
    image *= std
    image = image / 255
    if order == "rgb":
        image = image[..., ::-1]
    return image
"""
    assert not check(HEAD + code, {"SF106"})
