"""Long code in messages keeps its beginning and its brackets."""

from __future__ import annotations

import pytest

from shapefix.checks.support.wording import abbreviate


@pytest.mark.parametrize(
    ("code", "short"),
    [
        ("nn.Linear(4, 2)", "nn.Linear(4, 2)"),
        (
            "nn.Conv2d(1, 16, kernel_size=3, stride=1, padding=1, bias=False)",
            "nn.Conv2d(1, 16, kernel_size=3, stride=1, padding=1, …)",
        ),
        (
            "torch.norm(v.transpose(0, 1).contiguous().view(self.out_channels, -1), 2, 1).squeeze(1)",
            "torch.norm(…).squeeze(1)",
        ),
        (
            "criterion(model(images.to(device), lengths.to(device), masks), labels)",
            "criterion(model(images.to(device), …), labels)",
        ),
        (
            "tokenizer(batch['a text, with (brackets'], padding=True, return_tensors='pt')",
            "tokenizer(batch['a text, with (brackets'], padding=True, …)",
        ),
        (
            "first_of_the_long_names, second_of_the_long_names = x.shape_of_images",
            "first_of_the_long_names, seco…long_names = x.shape_of_images",
        ),
    ],
)
def test_arguments_are_omitted_from_the_last(code: str, short: str) -> None:
    assert abbreviate(code) == short
    assert len(short) <= 60
