"""The fixture `shapefix_probe` of pytest, in every environment with shapefix."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import pytest

import shapefix

if TYPE_CHECKING:
    from shapefix.runtime.inprocess import ProbeReport


@pytest.fixture
def shapefix_probe() -> Callable[..., ProbeReport]:
    """Return a function to run one forward and backward of a model, as `shapefix.probe` does.

    It fails the test with the report if the model raises or if there are findings. ignore are codes or names
    of rules.
    """

    def run(
        model: Any,
        batch: Any,
        loss: Callable[[Any, Any], Any] | str | None = None,
        *,
        ignore: Collection[str] = (),
    ) -> ProbeReport:
        report = shapefix.probe(model, batch, loss)
        found = [each for each in report.findings if each.code not in ignore and each.name not in ignore]
        if found or report.error is not None:
            pytest.fail(str(report), pytrace=False)
        return report

    return run
