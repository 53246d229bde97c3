"""Contents of verdicts on views: conditions, strides, and proofs for tensors of unknown strides."""

from __future__ import annotations

import pytest

from shapefix.tensors import dims, indexing, legality, verdicts, views
from shapefix.tensors.errors import ShapeError
from shapefix.tensors.layout import Layout, contiguous, is_contiguous, substitute, unknown_strides
from shapefix.tensors.overlap import any_strides, never_overlaps
from shapefix.tensors.polynomials import Size

B, T, V, H, D, C = (Size.symbol(name) for name in "BTVHDC")
ALL = slice(None)
LOGITS = contiguous([B, T, V])


def view(layout: Layout, *sizes: int | Size) -> verdicts.ViewVerdict:
    return legality.view(layout, *views.target_of(sizes))


def in_words(verdict: verdicts.ViewVerdict) -> str:
    assert isinstance(verdict, verdicts.Illegal)
    conditions = " and ".join(f"{size} > 1" for size in verdict.conditions)
    return f"{verdict.outer}, {verdict.inner}: has {verdict.has}, needs {verdict.needs}, if {conditions}"


def test_a_slice_fails_whenever_there_is_more_than_one_row_and_something_is_left() -> None:
    verdict = view(indexing.index(LOGITS, [ALL, slice(None, -1)]), -1, V)
    assert in_words(verdict) == "0, 1: has T*V, needs (T - 1)*V, if B > 1 and T - 1 > 1"
    assert isinstance(verdict, verdicts.Illegal)
    assert str(verdict.layout) == "(B*(T - 1), V) strides (V, 1)"


def test_merged_heads_fail_also_where_the_model_names_their_product_otherwise() -> None:
    heads = dims.transpose(contiguous([B, H, T, D]), 1, 2)
    expected = "2, 3: has T*D, needs D, if T > 1 and H > 1 and D > 1"
    assert in_words(view(heads, B, T, H * D)) == expected
    assert in_words(view(heads, B, T, C)) == expected


def test_a_selected_dimension_stays_in_the_condition() -> None:
    assert (
        in_words(view(indexing.index(LOGITS, [ALL, -1]), -1))
        == "0, 1: has T*V, needs V, if B > 1 and V > 1 and T > 1"
    )


def test_known_sizes_are_no_conditions() -> None:
    batch = contiguous([8, Size.symbol("T", 3), 768])
    assert in_words(view(indexing.index(batch, [ALL, slice(None, -1)]), -1, 768)).endswith("if ")


def test_slices_of_unknown_tensors_fail_too_and_whole_ones_may_pass() -> None:
    unknown = unknown_strides([B, T, V])
    assert in_words(view(indexing.index(unknown, [ALL, slice(None, -1)]), -1, V)).endswith(
        "if B > 1 and T - 1 > 1"
    )
    assert isinstance(view(unknown, -1, V), verdicts.Undecided)
    assert isinstance(view(dims.transpose(unknown, 1, 2), -1, T), verdicts.Undecided)
    assert isinstance(view(any_strides([B, T - 1, V]), -1, V), verdicts.Undecided)


def test_a_view_of_the_wrong_number_of_elements() -> None:
    assert view(LOGITS, B, T - 1, V) == verdicts.WrongNumel(B * T * V, B * (T - 1) * V)
    assert view(contiguous([6]), 4, -1) == verdicts.WrongNumel(Size.of(6), Size.of(4))
    unknown = view(LOGITS, B, T, H, D)
    assert isinstance(unknown, verdicts.Undecided)
    assert unknown.numel
    assert str(unknown.layout) == "(B, T, H, D) strides (T*H*D, H*D, D, 1)"


def test_minus_one_is_found_by_exact_division_or_stands_for_the_quotient() -> None:
    verdict = view(LOGITS, -1, V)
    assert isinstance(verdict, verdicts.Legal)
    assert str(verdict.layout) == "(B*T, V) strides (V, 1)"
    split = view(contiguous([B, T, C]), B, T, H, -1)
    assert isinstance(split, verdicts.Undecided)
    assert str(split.layout) == "(B, T, H, C // H) strides (T*C, C, C // H, 1)"


@pytest.mark.parametrize(
    ("sizes", "message"), [((-1, -1), "only one"), ((2, -3), "invalid shape dimension -3")]
)
def test_targets_that_torch_never_takes(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        views.target_of(sizes)


def test_contiguity() -> None:
    assert is_contiguous(LOGITS) is True
    assert is_contiguous(dims.transpose(LOGITS, 1, 2)) is None
    assert is_contiguous(dims.transpose(contiguous([2, 3, V + 1]), 1, 2)) is False
    assert is_contiguous(contiguous([0, 3])) is True
    (symbol,) = V.symbols
    assert is_contiguous(substitute(dims.transpose(LOGITS, 1, 2), {symbol: 1})) is True


def test_expanded_and_unfolded_tensors_may_overlap() -> None:
    assert never_overlaps(indexing.index(LOGITS, [ALL, slice(None, -1)]))
    assert never_overlaps(unknown_strides([B, T]))
    assert not never_overlaps(dims.expand(contiguous([B, 1]), [B, T]))
    assert not never_overlaps(indexing.unfold(contiguous([B, T]), 1, 3, 1))


def test_a_slice_by_a_symbol_is_no_longer_than_the_tensor() -> None:
    k = Size.symbol("k")
    assert str(indexing.index(LOGITS, [ALL, slice(None, k)])) == "(B, min(T, k), V) strides (T*V, V, 1)"
    assert (
        str(indexing.index(LOGITS, [ALL, slice(None, None, 2)]))
        == "(B, (T + 1) // 2, V) strides (T*V, 2*V, 1)"
    )
    assert str(indexing.index(LOGITS, [..., slice(-2, None)])) == "(B, T, min(2, V)) strides (T*V, V, 1)"


def test_squeeze_does_not_know_whether_a_symbol_is_one() -> None:
    assert dims.squeeze(LOGITS) is None
    assert dims.squeeze(LOGITS, 1) is None
    assert dims.squeeze(contiguous([B, 1]), 1) == contiguous([B])
    assert dims.squeeze(contiguous([1, 2, 1])) == contiguous([2])
