"""The texts of inlay hints."""

from __future__ import annotations

import pytest

from shapefix.displayed_values import DisplayedValue, HeldName
from shapefix.server.inlay_hints import inlay_hints
from shapefix.server.open_texts import PositionedText, moved_rows

TEXT = "x = 1\ny = 2  # two\n"


def held(name: str, row: int, *values: DisplayedValue) -> HeldName:
    return HeldName(name, name.partition("[")[0], values, row, row, "", 1, 2)


def tensor(*sizes: int | str, dtype: str = "f32", rest: str = "") -> DisplayedValue:
    return DisplayedValue(f"{dtype}[{', '.join(map(str, sizes))}]{rest}", dtype, sizes)


def labels(*values: HeldName, with_dtype: bool = True) -> list[object]:
    text = PositionedText(TEXT)
    found = inlay_hints(values, text, moved_rows(TEXT, TEXT), range(1, 3), with_dtype)
    return [each.label for each in found]


@pytest.mark.parametrize(
    ("value", "label"),
    [
        (tensor(2, "B", "T - 1"), "f32[2, B, T - 1]"),
        (tensor(), "f32[]"),
        (tensor(2, dtype="?"), "[2]"),
        (tensor(2, 3, rest=" strides (1, 2)"), "f32[2, 3] strides (1, 2)"),
        (tensor(2, rest=" on cuda"), "f32[2] on cuda"),
        (tensor("max(B, x.size(0))", 4), "f32[?, 4]"),
        (tensor("2*size(2)", 4, rest=" strides (4, 1)"), "f32[?, 4]"),
        (tensor("x.size(0)", 4), "f32[x.size(0), 4]"),
    ],
)
def test_a_tensor(value: DisplayedValue, label: str) -> None:
    assert labels(held("x", 1, value)) == [label]


def test_what_is_unknown_has_no_hint() -> None:
    nothing = [
        DisplayedValue("f32[...]", "float32"),
        DisplayedValue("unknown"),
        DisplayedValue("8", is_number=True),
    ]
    assert labels(*(held("x", 1, value) for value in nothing)) == []
    assert labels(held("x", 1, tensor("size(0)", "max(B, 3)"))) == []


def test_several_names_and_passes() -> None:
    parts = [held(f"x[{place}]", 1, tensor(place)) for place in range(4)]
    assert labels(*parts) == ["x[0] f32[0], x[1] f32[1], x[2] f32[2], …"]
    assert labels(*parts, with_dtype=False) == ["x[0] [0], x[1] [1], x[2] [2], …"]
    assert labels(held("return[1]", 1, tensor(3))) == ["[1] f32[3]"]
    assert labels(held("x", 1, tensor(1), tensor(2), tensor(1), tensor(3))) == ["f32[1] / f32[2] / …"]
    assert (
        labels(held("x", 1, tensor(*range(1000, 1040))))[0]
        == f"f32[{', '.join(map(str, range(1000, 1040)))}"[:80] + "…"
    )
    assert labels(held("x", 3, tensor(1))) == []
