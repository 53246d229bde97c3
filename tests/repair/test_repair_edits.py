"""Edits of several fixes, applied to one text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapefix.diagnostics import Applicability, Edit, Fix, Span
from shapefix.repair.edits import InvalidEdit, RowOffsets, apply, newline_of, plan


def edit(row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
    return Edit(Span("a.py", row, column, end_row, end_column), content)


def fix(*edits: Edit) -> Fix:
    return Fix(Applicability.SAFE, "", edits)


RESHAPE = fix(edit(1, 7, 1, 11, "reshape"))


def test_a_word_is_replaced_and_the_rest_stays() -> None:
    assert apply("y = x.view(-1)  # 合併\n", [RESHAPE]) == ("y = x.reshape(-1)  # 合併\n", [RESHAPE], [])


def test_columns_count_code_points_not_bytes_and_not_cells() -> None:
    after = fix(edit(1, 8, 1, 12, "reshape"))
    assert apply("s='😀日'.view", [after])[0] == "s='😀日'.reshape"


def test_an_empty_span_inserts() -> None:
    assert apply("a\nb\n", [fix(edit(2, 1, 2, 1, "x = "))])[0] == "a\nx = b\n"


def test_whole_rows_can_be_removed_even_the_last_one_without_a_newline() -> None:
    assert apply("a\nb", [fix(edit(2, 1, 3, 1, ""))])[0] == "a\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_inserted_rows_end_as_the_rows_of_the_file_do(newline: str) -> None:
    text = newline.join(["import torch", "x", ""])
    result, _, _ = apply(text, [fix(edit(2, 1, 2, 1, "import copy\n"))])
    assert result == newline.join(["import torch", "import copy", "x", ""])


def test_in_a_mixed_file_the_most_frequent_newline_wins() -> None:
    assert newline_of("a\r\nb\r\nc\n") == "\r\n"
    assert newline_of("no newline at all") == "\n"


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_only_newlines_end_a_row(character: str) -> None:
    text = f"a{character}b\nx.view\n"
    assert apply(text, [fix(edit(2, 3, 2, 7, "reshape"))])[0] == f"a{character}b\nx.reshape\n"


def test_fixes_that_overlap_wait_for_the_next_round() -> None:
    other = fix(edit(1, 1, 1, 16, "gone"))
    assert apply("y = x.view(-1)!", [RESHAPE, other]) == ("y = x.reshape(-1)!", [RESHAPE], [other])


def test_fixes_that_touch_wait_for_the_next_round() -> None:
    other = fix(edit(1, 11, 1, 11, "_as"))
    assert apply("y = x.view(-1)", [RESHAPE, other]) == ("y = x.reshape(-1)", [RESHAPE], [other])


def test_a_fix_is_applied_with_all_of_its_edits_or_not_at_all() -> None:
    both = fix(edit(2, 1, 2, 1, "z = "), edit(1, 8, 1, 9, "?"))
    assert apply("y = x.view(-1)\nw", [RESHAPE, both]) == ("y = x.reshape(-1)\nw", [RESHAPE], [both])


def test_an_edit_that_two_fixes_share_is_made_once() -> None:
    importing = edit(1, 1, 1, 1, "import copy\n")
    first, second = fix(importing, edit(2, 1, 2, 2, "A")), fix(importing, edit(3, 1, 3, 2, "B"))
    assert apply("x\na\nb", [first, second]) == ("import copy\nx\nA\nB", [first, second], [])


def test_insertions_of_one_fix_at_one_place_keep_their_order() -> None:
    assert apply("x", [fix(edit(1, 1, 1, 1, "a"), edit(1, 1, 1, 2, "X"), edit(1, 1, 1, 1, "b"))])[0] == "abX"


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        ((edit(9, 1, 9, 1, ""),), "9:1"),
        ((edit(1, 4, 1, 9, ""),), "1:9"),
        ((edit(1, 0, 1, 1, ""),), "1:0"),
        ((edit(1, 3, 1, 2, ""),), "before it begins"),
        ((edit(1, 1, 1, 3, ""), edit(1, 2, 1, 4, "")), "overlap each other"),
    ],
)
def test_a_fix_that_does_not_fit_the_text_says_why(edits: tuple[Edit, ...], why: str) -> None:
    with pytest.raises(InvalidEdit, match=why):
        apply("abc\n", [fix(*edits)])


TEXTS = st.text(alphabet=st.sampled_from("aé日😀 \t\f\v\x85\u2028\n\r"), max_size=40)


@st.composite
def texts_with_fixes(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]], list[Fix]]:
    text = draw(TEXTS)
    bounds = RowOffsets.of(text).bounds
    # Every place that a row and a column can name; the one between \r and \n is none.
    places = {b + c: (row, c + 1) for row, (b, e) in enumerate(bounds, 1) for c in range(e - b + 1)}
    spans, fixes = [], []
    for _ in range(draw(st.integers(0, 5))):
        start, end = sorted(draw(st.tuples(*[st.sampled_from(sorted(places))] * 2)))
        content = draw(st.text(alphabet="xY日", max_size=3))
        spans.append((start, end, content))
        fixes.append(fix(edit(*places[start], *places[end], content)))
    return text, spans, fixes


@given(texts_with_fixes())
def test_any_text_changes_exactly_where_its_fixes_say(
    case: tuple[str, list[tuple[int, int, str]], list[Fix]],
) -> None:
    text, spans, fixes = case
    result, applied, postponed = apply(text, fixes)

    expected = text
    chosen = {span for span, each in zip(spans, fixes, strict=True) if each in applied}
    for start, end, content in sorted(chosen, reverse=True):
        expected = expected[:start] + content + expected[end:]
    assert result == expected
    assert len(applied) + len(postponed) == len(fixes)
    assert not fixes or applied, "the first fix is never postponed"


@given(texts_with_fixes())
def test_a_place_that_no_edit_touches_is_carried_to_the_same_character(
    case: tuple[str, list[tuple[int, int, str]], list[Fix]],
) -> None:
    text, _, fixes = case
    step = plan(text, fixes)
    result = step.splice(text)
    for offset, character in enumerate(text):
        low, high = step.carry(offset)
        assert 0 <= low <= high <= len(result)
        if not any(start <= offset <= end for start, end, _ in step.replacements):
            assert low == high
            assert result[low] == character


@given(texts_with_fixes())
def test_postponed_fixes_would_have_met_an_applied_one(
    case: tuple[str, list[tuple[int, int, str]], list[Fix]],
) -> None:
    text, spans, fixes = case
    _, applied, postponed = apply(text, fixes)
    where = {id(each): span for span, each in zip(spans, fixes, strict=True)}
    for late in postponed:
        start, end, _ = where[id(late)]
        assert any(start <= where[id(early)][1] and where[id(early)][0] <= end for early in applied)
