"""SF905: conversions of tensors with gradients to NumPy, compared with torch and NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from checking import Check

from shapefix.library.ops.numpy_conversions import OF_LISTS, OF_TENSORS

HEAD = """\
import numpy as np
import torch
from torch import nn

model = nn.Linear(3, 2)
x = torch.randn(4, 3)
"""
_MORE = {"numpy.percentile": ", 50", "numpy.expand_dims": ", 0"}


def attempt(function: str, given: Any) -> str:
    """The error of a function of NumPy, empty without one."""
    code = f"{function}(given{_MORE.get(function, '')})"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eval(code, {"numpy": np, "given": given})
        except Exception as error:
            return str(error)
    return ""


@pytest.mark.parametrize("function", sorted(OF_LISTS))
def test_functions_that_convert_the_tensors_of_a_list(function: str, check: Check) -> None:
    tensors = [torch.ones(2, requires_grad=True) * 2, torch.ones(2, requires_grad=True) * 3]
    assert "Can't call numpy() on Tensor that requires grad" in attempt(function, tensors)
    assert attempt(function, [each.detach() for each in tensors]) == ""
    called = f"{function.replace('numpy.', 'np.')}([model(x), model(x)]{_MORE.get(function, '')})"
    assert len(check(f"{HEAD}print({called})\n", {"SF905"})) == 1
    assert check(f"{HEAD}print({called.replace('model(x)', 'model(x).detach()')})\n", {"SF905"}) == []


@pytest.mark.parametrize("function", sorted(OF_LISTS))
def test_functions_that_convert_a_tensor(function: str, check: Check) -> None:
    tensor = torch.ones(2, requires_grad=True) * 2
    raises = "Can't call numpy() on Tensor that requires grad" in attempt(function, tensor)
    assert raises == (function in OF_TENSORS)
    called = f"{function.replace('numpy.', 'np.')}(model(x){_MORE.get(function, '')})"
    assert len(check(f"{HEAD}print({called})\n", {"SF905"})) == raises


SILENT = [
    "model.weight = nn.Parameter(torch.ones(2, 3), requires_grad=False)\nmodel.bias = None\nmodel(x).numpy()",
    "layer = nn.Linear(3, 2, bias=False)\n"
    "layer.weight = nn.Parameter(torch.ones(2, 3), requires_grad=False)\nlayer(x).numpy()",
    "model(x).detach().numpy()",
    "model(x).numpy(force=True)",
    "model(x).argmax(1).numpy()",
    "model(x).data.numpy()",
    "np.asarray(x)",
    "np.asarray([model(x).sum().item()])",
    "model(x).numpy() if not torch.is_grad_enabled() else model(x).detach().numpy()",
    "np.asarray(model(x).tolist())",
]


@pytest.mark.parametrize("code", SILENT)
def test_conversions_that_run(code: str, check: Check) -> None:
    exec(f"{HEAD}made = {code}", {})
    assert check(f"{HEAD}made = {code}\n", {"SF905"}) == []


def test_an_expected_error(check: Check) -> None:
    code = f"{HEAD}try:\n    made = model(x).numpy()\nexcept RuntimeError:\n    made = x.numpy()\n"
    exec(code, {})
    assert check(code, {"SF905"}) == []


def test_a_parameter_of_a_function_without_callers(check: Check) -> None:
    assert check(f"{HEAD}def predict(x):\n    return model(x).numpy()\n", {"SF905"}) == []


FIXED = [
    ("model(x).numpy()", "model(x).detach().numpy()"),
    ("model(x).cpu().numpy()", "model(x).detach().cpu().numpy()"),
    ("(model(x) - 1).numpy()", "(model(x) - 1).detach().numpy()"),
    ("np.asarray(model(x) - 1)", "np.asarray((model(x) - 1).detach())"),
    ("np.exp(model.weight)", "np.exp(model.weight.detach())"),
]


@pytest.mark.parametrize(("wrong", "right"), FIXED)
def test_the_fix_runs(wrong: str, right: str, check: Check) -> None:
    code = f"{HEAD}made = {wrong}\n"
    (finding,) = check(code, {"SF905"})
    assert finding.fix is not None
    (edit,) = finding.fix.edits
    line = code.split("\n")[edit.span.row - 1]
    fixed = line[: edit.span.column - 1] + edit.content + line[edit.span.end_column - 1 :]
    assert fixed == f"made = {right}"
    exec(HEAD + fixed, {})


def test_a_tensor_that_may_be_on_a_gpu_is_moved(check: Check) -> None:
    device = 'device = "cuda" if torch.cuda.is_available() else "cpu"\n'
    code = f"{HEAD}{device}model = model.to(device)\nx = x.to(device)\nmade = model(x).numpy()\n"
    (finding,) = check(code, {"SF905"})
    assert finding.fix is not None
    assert finding.fix.edits[0].content == ".detach().cpu()"
