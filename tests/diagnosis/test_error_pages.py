"""Each message of an error page is produced by the installed libraries, and explained with its fields."""

from __future__ import annotations

import os
import re
import string
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from shapefix.diagnosis.explanations import explain_message, template_pattern
from shapefix.rulebook.error_pages import ErrorPage, error_pages

PAGES = error_pages()
_LARGE = ("transformers", "datasets", "lightning", "accelerate")


def _is_fast(page: ErrorPage) -> bool:
    example = page.path.read_text("utf-8").rpartition("## Example")[2]
    return not any(name in example for name in _LARGE)


FAST = [page for page in PAGES if _is_fast(page)]


def _is_available(need: str) -> bool:
    """Check for the hardware or package of an example; a broken GPU is never there."""
    if need and "gpu" not in need:
        return find_spec(need) is not None
    if not torch.cuda.is_available():
        return need == ""
    architecture = "sm_{}{}".format(*torch.cuda.get_device_capability())
    is_supported = architecture in torch.cuda.get_arch_list()
    return need in ("", "gpu") or (need == "unsupported-gpu" and not is_supported)


def _raised(page: ErrorPage, folder: Path) -> list[tuple[str, str]]:
    """Return the messages and types of the exceptions of the examples of a page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", page.path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    messages = []
    before = Path.cwd()
    os.chdir(folder)
    try:
        for block in blocks:
            # torch.compile switches the checks of distributions off, for the whole process.
            torch.distributions.Distribution.set_default_validate_args(True)
            try:
                exec(compile(block, page.name, "exec", dont_inherit=True), {"__name__": "example"})
            except Exception as error:
                messages.append((str(error), type(error).__name__))
            else:
                raise AssertionError(f"{page.name}: the example raises nothing:\n{block}")
    finally:
        os.chdir(before)
    return messages


def _check(page: ErrorPage, folder: Path) -> None:
    messages = _raised(page, folder)
    for template in page.errors:
        assert any(template_pattern(template).search(each) for each, _ in messages), (template, messages)
    for message, error_type in messages:
        found = explain_message(message, error_type)
        assert found is not None, message
        assert found.name == page.name, message
        for text in (found.what, found.look, *found.causes):
            assert not re.search(r"\{\w+\}", text), text


@pytest.mark.parametrize("page", FAST, ids=lambda page: page.name)
def test_examples_raise_the_messages(page: ErrorPage, tmp_path: Path) -> None:
    if not _is_available(page.needs):
        pytest.skip(f"needs: {page.needs}")
    _check(page, tmp_path)


@pytest.mark.slow
def test_examples_of_transformers_raise_the_messages(tmp_path: Path) -> None:
    for page in PAGES:
        if page not in FAST and _is_available(page.needs):
            folder = tmp_path / page.name
            folder.mkdir()
            _check(page, folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_wording_has_the_fields_of_the_sentence(page: ErrorPage) -> None:
    used = {name for _, name, _, _ in string.Formatter().parse(page.what + page.look) if name}
    for template in (*page.errors, *page.older):
        assert used <= template_pattern(template).groupindex.keys(), template
    assert 1 <= len(page.causes) <= 5
    assert len(page.what) <= 220


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (
            "invalid argument 0: Sizes of tensors must match except in dimension 0. Got 0 and 1 in dimension"
            " 1 at /opt/THCTensorMath.cu:71",
            "joined-sizes",
        ),
        ("size mismatch, m1: [32 x 512], m2: [256 x 10] at /tmp/TH.cpp:290", "matrix-product"),
        (
            "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!",
            "two-devices",
        ),
        ("expected scalar type Long but found Float", "target-dtype"),
        ("only one element tensors can be converted to Python scalars", "tensor-as-index"),
        (
            "Expected 4-dimensional input for 4-dimensional weight 16 3 3, but got 3-dimensional input of "
            "size [48, 80, 3] instead",
            "conv-rank",
        ),
        ("CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 15 GiB total capacity)", "out-of-memory"),
        ("Can't get local object 'main.<locals>.<lambda>'", "worker-pickling"),
        ("mat1 and mat2 shapes cannot be\nmultiplied (2x3 and 4x5)", "matrix-product"),
    ],
)
def test_older_and_wrapped_wordings(message: str, name: str) -> None:
    found = explain_message(message)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize(
    "message", ["", "no such table: users", "division by zero", "[Errno 2] No such file"]
)
def test_unknown_messages_have_no_explanation(message: str) -> None:
    assert explain_message(message) is None


def test_a_page_for_one_type_of_exceptions_needs_that_type_and_the_whole_message() -> None:
    found = explain_message("'labels'", "KeyError")
    assert found is not None
    assert found.what == "There is no key or column `labels`."
    assert explain_message("28", "KeyError") is not None
    for message, error_type in [("'labels'", ""), ("'labels'", "ValueError"), ("no 'labels'", "KeyError")]:
        assert explain_message(message, error_type) is None


def test_fields_are_filled_in() -> None:
    found = explain_message("mat1 and mat2 shapes cannot be multiplied (5120x4000 and 271x256)")
    assert found is not None
    assert found.fields == {"rows": "5120", "size": "4000", "in_features": "271", "out_features": "256"}
    assert found.what == "The tensor has a last size of 4000, but the layer or matrix takes 271."
    found = explain_message("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total")
    assert found is not None
    assert found.fields == {"amount": "2.50 GiB"}


def test_long_lists_of_names_are_cut_and_the_first_part_of_a_message_counts() -> None:
    names = ", ".join(f'"blocks.{number}.norm.weight"' for number in range(400))
    message = f'Missing key(s) in state_dict: {names}.\n\tUnexpected key(s) in state_dict: "net.weight".'
    found = explain_message(message)
    assert found is not None
    assert found.what == (
        "The names in the checkpoint differ from those of the model: "
        + ", ".join(f'"blocks.{number}.norm.weight"' for number in range(5))
        + " and more."
    )
