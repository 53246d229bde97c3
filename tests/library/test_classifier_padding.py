"""Classifiers without a default pad token, asked of transformers."""

from __future__ import annotations

import inspect

import pytest

from shapefix.library.transformers.classifier_padding import WITHOUT_DEFAULT


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITHOUT_DEFAULT))
def test_a_class_asks_for_a_pad_token_and_has_none(name: str) -> None:
    import transformers

    model = getattr(transformers, name)
    assert "no padding token is defined" in inspect.getsource(model.forward)
    assert model.config_class().pad_token_id is None
