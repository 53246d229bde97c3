"""SF617: the names that DataParallel and DistributedDataParallel have, asked of torch."""

from __future__ import annotations

import torch
from checking import Check
from torch import nn

from shapefix.library.nn.wrapped_models import OF_WRAPPERS

SCRIPT = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

model = {wrapped}
print(model.fc)
"""


def test_the_names_of_the_wrappers_are_known() -> None:
    found = {*dir(nn.DataParallel(nn.Linear(2, 2))), *dir(nn.parallel.DistributedDataParallel)}
    # transformers adds a method to all modules.
    assert {name for name in found if not name.startswith("_") and not _is_added(name)} <= OF_WRAPPERS
    assert "fc" not in OF_WRAPPERS


def _is_added(name: str) -> bool:
    home = getattr(getattr(nn.Module, name, None), "__module__", None)
    return isinstance(home, str) and not home.startswith("torch")


def test_a_wrapper_on_some_machines_only_is_not_reported(check: Check) -> None:
    wrapped = "nn.DataParallel(Net())"
    assert [each.code for each in check(SCRIPT.format(wrapped=wrapped), {"SF617"})] == ["SF617"]
    some = SCRIPT.format(wrapped="Net()").replace(
        "print", "if torch.cuda.device_count() > 1:\n    model = nn.DataParallel(model)\nprint"
    )
    assert not check(some, {"SF617"})


def test_a_class_with_a_getattr_of_its_own_is_not_reported(check: Check) -> None:
    own = SCRIPT.format(wrapped="Wrapper(Net())").replace(
        "model = ",
        "class Wrapper(nn.DataParallel):\n    def __getattr__(self, name):\n"
        "        return getattr(self.module, name)\n\nmodel = ",
    )
    assert not check(own, {"SF617"})
    assert not hasattr(nn.DataParallel(nn.Linear(2, 2)), "weight")
    assert isinstance(nn.DataParallel(nn.Linear(2, 2)).module.weight, torch.Tensor)


def test_a_module_in_any_of_several_wrappers_is_that_module(check: Check) -> None:
    wrapped = (
        SCRIPT.format(wrapped="Net()")
        .replace("import torch\n", "import sys\nimport torch\n", 1)
        .replace(
            "print(model.fc)",
            "if len(sys.argv) > 1:\n    if len(sys.argv) > 2:\n        model = nn.DataParallel(model, [0])\n"
            "    else:\n        model = nn.DataParallel(model)\n"
            "net = model.module if hasattr(model, 'module') else model\nnet.fc(torch.zeros(3, {}))\n",
        )
    )
    assert not check(wrapped.format(4), {"SF501"})
    assert [each.code for each in check(wrapped.format(5), {"SF501"})] == ["SF501"]
    # Without `module` of its own, the model is in a wrapper here.
    read = wrapped.replace(" if hasattr(model, 'module') else model", "")
    assert [each.code for each in check(read.format(5), {"SF501"})] == ["SF501"]
    assert not hasattr(nn.Linear(2, 2), "module")
