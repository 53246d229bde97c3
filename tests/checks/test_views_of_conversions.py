"""Views of slices after a conversion: a copy has no gaps, a conversion without effect keeps them."""

from __future__ import annotations

import pytest
import torch
from checking import Check

CODE = """
import torch

def run(y, device):
    y = y[:, 1:]{convert}
    return y.view(-1)
"""
CONVERSIONS = {
    ".to('cpu')": "`y[:, 1:]` is already on `'cpu'`",
    ".to(device)": "`device` is the CPU",
    ".to(device, non_blocking=True)": "`device` is the CPU",
    ".to(torch.int64)": "`y[:, 1:]` is already int64",
    ".long()": "`y[:, 1:]` is already int64",
    ".to(device, torch.int64)": "`y[:, 1:]` is already int64 and `device` is the CPU",
    ".to(torch.int64, copy=False)": "`y[:, 1:]` is already int64",
    "": "",
}


@pytest.mark.parametrize("convert", CONVERSIONS)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_the_condition_says_when_the_conversion_does_not_copy(
    convert: str, dtype: torch.dtype, check: Check
) -> None:
    (finding,) = check(CODE.format(convert=convert), ["SF101"])
    condition = CONVERSIONS[convert]
    sizes = "`y.size(0)` > 1 and `y.size(1)` > 2"
    assert finding.condition is not None
    assert finding.condition.text == (f"{sizes} and {condition}" if condition else sizes)
    names: dict[str, object] = {}
    exec(CODE.format(convert=convert), names)
    run = names["run"]
    assert callable(run)
    # The CPU stands for the device: what differs is whether torch copies.
    is_copied = dtype is not torch.int64 and "int64" in condition
    if is_copied:
        run(torch.zeros(3, 4, dtype=dtype), "cpu")
    else:
        with pytest.raises(RuntimeError, match="not compatible with input tensor's size and stride"):
            run(torch.zeros(3, 4, dtype=dtype), "cpu")


@pytest.mark.parametrize(
    "convert", [".to('meta')", ".cuda()", ".to('cuda:0')", ".clone()", ".double().long()"]
)
def test_a_copy_for_certain_is_no_finding(convert: str, check: Check) -> None:
    assert not check(CODE.format(convert=convert), ["SF101"])
    if "cuda" not in convert:
        assert not check(
            CODE.format(convert=convert).replace("(y, device)", "(y: torch.Tensor, device)"), ["SF101"]
        )
        names: dict[str, object] = {}
        exec(CODE.format(convert=convert), names)
        run = names["run"]
        assert callable(run)
        run(torch.zeros(3, 4), "cpu")


@pytest.mark.parametrize("convert", [".to(device)", ".to(torch.int64)", ".long()", ".cuda()"])
def test_slices_of_what_was_converted_have_gaps(convert: str, check: Check) -> None:
    (finding,) = check(CODE.format(convert="").replace("y[:, 1:]", f"y{convert}[:, 1:]"), ["SF101"])
    assert finding.condition is not None
    assert "already" not in finding.condition.text
    assert "CPU" not in finding.condition.text
