"""Rounds of repairs. The analyses here look for words, so that each case shows one thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Import, Severity, Span
from shapefix.repair.fixpoint import repair

Repairs = dict[str, tuple[str, str]]
SAFE = Applicability.SAFE


def span(text: str, start: int, end: int) -> Span:
    row = text.count("\n", 0, start) + 1
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return Span("a.py", row, column, row, column + end - start)


def finds(
    words: Repairs, applicability: Applicability = SAFE, imports: tuple[Import, ...] = ()
) -> Callable[[str], list[Diagnostic]]:
    """An analysis that reports each word under its code, with the repair to write another one instead."""

    def analyze(text: str) -> list[Diagnostic]:
        def found() -> Iterator[Diagnostic]:
            for word, (code, instead) in words.items():
                for match in re.finditer(rf"\b{word}\b", text):
                    place = span(text, *match.span())
                    fixes = (Fix(applicability, f"write {instead}", (Edit(place, instead),), imports),)
                    yield Diagnostic(code, word, Severity.ERROR, f"`{word}`", place, fixes=fixes)

        return sorted(found(), key=lambda finding: finding.span)

    return analyze


def always(fix: Fix, finding: Diagnostic) -> bool:
    return True


def test_everything_is_repaired_in_one_round() -> None:
    result = repair("view; view\n", finds({"view": ("SF101", "reshape")}), always)
    assert result.text == "reshape; reshape\n"
    assert [finding.span.column for finding in result.applied] == [1, 7]
    assert (result.remaining, result.rejected) == ((), ())


def test_a_repair_that_calls_for_another_gets_it() -> None:
    result = repair("a\n", finds({"a": ("SF101", "b"), "b": ("SF102", "c")}), always)
    assert result.text == "c\n"
    assert [finding.code for finding in result.applied] == ["SF101", "SF102"]


def test_fixes_that_overlap_are_applied_one_after_another() -> None:
    def analyze(text: str) -> list[Diagnostic]:
        inner = finds({"view": ("SF101", "reshape")})(text)
        outer = [
            Diagnostic(
                "SF105", "thrown-away", Severity.ERROR, "", place, fixes=(Fix(SAFE, "", (Edit(place, new),)),)
            )
            for place, new in [(span(text, 0, len(text) - 1), f"x = {text[:-1]}")]
            if not text.startswith("x = ")
        ]
        return inner + outer

    result = repair("x.view()\n", analyze, always)
    assert result.text == "x = x.reshape()\n"
    assert len(result.applied) == 2


def test_only_what_is_allowed_is_applied_and_the_rest_remains() -> None:
    analyze = finds({"a": ("SF101", "b"), "c": ("SF102", "d")})
    result = repair("a; c\n", analyze, lambda fix, finding: finding.code == "SF102")
    assert result.text == "a; d\n"
    assert [finding.code for finding in result.remaining] == ["SF101"]
    assert result.rejected == ()


def test_a_display_fix_is_never_applied() -> None:
    result = repair("a\n", finds({"a": ("SF101", "b")}, Applicability.DISPLAY), always)
    assert (result.text, result.applied, result.rejected) == ("a\n", (), ())


def test_the_imports_of_a_fix_come_with_it_once() -> None:
    analyze = finds({"shallow": ("SF201", "copy.deepcopy")}, imports=(Import("copy"),))
    result = repair("import torch\n\nshallow(x)\nshallow(y)\n", analyze, always)
    assert result.text == "import copy\n\nimport torch\n\ncopy.deepcopy(x)\ncopy.deepcopy(y)\n"


def test_a_fix_whose_import_would_clash_is_refused() -> None:
    analyze = finds({"shallow": ("SF201", "copy.deepcopy")}, imports=(Import("copy"),))
    result = repair("copy = 1\nshallow(x)\n", analyze, always)
    assert result.text == "copy = 1\nshallow(x)\n"
    assert "`copy` already means something else" in result.rejected[0][1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"bad": ("SF101", "1 +")}, "would not parse"),
        ({"bad": ("SF101", "bad")}, "changes nothing"),
        ({"bad": ("SF101", "(bad)")}, "SF101 would still be reported at the repaired place"),
        ({"bad": ("SF101", "worse"), "worse": ("SF101", "worst")}, "SF101 would still be reported"),
    ],
)
def test_a_repair_that_does_not_prove_itself_is_backed_out_alone(words: Repairs, reason: str) -> None:
    good = {"view": ("SF102", "reshape"), "shape": ("SF101", "size")}
    result = repair("view; bad; shape; view\n", finds({**words, **good}), always)
    assert result.text == "reshape; bad; size; reshape\n"
    [(finding, why)] = result.rejected
    assert reason in why
    assert finding in result.remaining
    assert finding.span == Span("a.py", 1, 10, 1, 13), "the place is the one in the repaired text"


def counted(
    analyze: Callable[[str], list[Diagnostic]],
) -> tuple[Callable[[str], list[Diagnostic]], list[str]]:
    """The same analysis, and the texts that it was called with."""
    texts: list[str] = []

    def analyze_and_count(text: str) -> list[Diagnostic]:
        texts.append(text)
        return analyze(text)

    return analyze_and_count, texts


def test_one_bad_repair_among_many_is_found_in_few_analyses() -> None:
    words = {f"w{number}": (f"SF{number}", f"v{number}") for number in range(100, 164)}
    bad = "w137"
    words[bad] = ("SF137", f"{bad} {bad}")
    analyze, texts = counted(finds(words))
    result = repair("\n".join(words) + "\n", analyze, always)
    assert [finding.message for finding, _ in result.rejected] == [f"`{bad}`"]
    assert len(result.applied) == 63
    assert len(texts) <= 20


def test_bad_repairs_of_a_long_text_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shapefix.repair.fixpoint._MOST_TRIED", 0)
    words = {f"w{number}": (f"SF{number}", f"w{number} w{number}") for number in range(100, 164)}
    analyze, texts = counted(finds(words))
    text = "\n".join(words) + "\n"
    result = repair(text, analyze, always)
    assert (result.text, result.applied) == (text, ())
    assert len(result.rejected) == 64
    assert {reason.partition(":")[0] for _, reason in result.rejected} >= {"not tried"}
    assert len(texts) <= 20


def test_a_finding_that_only_moves_elsewhere_is_not_repaired() -> None:
    def analyze(text: str) -> list[Diagnostic]:
        reported = "bad" if "bad" in text else "tail"
        return finds({reported: ("SF101", "good")})(text)

    result = repair("bad\ntail\n", analyze, lambda fix, finding: finding.name == "bad")
    assert result.text == "bad\ntail\n"
    assert "another place" in result.rejected[0][1]


def test_two_repairs_that_undo_each_other_end() -> None:
    result = repair("ping\n", finds({"ping": ("SF101", "pong"), "pong": ("SF102", "ping")}), always)
    assert result.text == "pong\n"
    assert "brings back a text" in result.rejected[0][1]


def test_two_repairs_that_only_disagree_with_each_other_are_tried_in_turn() -> None:
    words = finds({"a": ("SF101", "c"), "b": ("SF102", "d")})

    def analyze(text: str) -> list[Diagnostic]:
        if "c" in text and "d" in text:
            raise RuntimeError("confused")
        return words(text)

    result = repair("a; b\n", analyze, always)
    assert result.text == "c; b\n"
    [(finding, why)] = result.rejected
    assert finding.code == "SF102"
    assert "could not be analyzed: RuntimeError: confused" in why


def test_endless_growth_is_cut_off_with_a_reason() -> None:
    def analyze(text: str) -> list[Diagnostic]:
        place, code = span(text, 0, len(text) - 1), f"SF{len(text)}"
        fixes = (Fix(SAFE, "", (Edit(place, text[:-1] + "x"),)),)
        return [Diagnostic(code, "grow", Severity.ERROR, "", place, fixes=fixes)]

    result = repair("x\n", analyze, always, rounds=5)
    assert result.text == "xxxxxx\n"
    assert len(result.applied) == 5
    assert "gave up after 5 rounds" in result.rejected[0][1]


def test_a_fix_that_points_outside_the_file_or_into_another_one_is_refused() -> None:
    def analyze(text: str) -> list[Diagnostic]:
        places = [Span("a.py", 7, 1, 7, 2), Span("b.py", 1, 1, 1, 2)]
        return [
            Diagnostic(
                "SF101", "far", Severity.ERROR, "", span(text, 0, 1), fixes=(Fix(SAFE, "", (Edit(at, ""),)),)
            )
            for at in places
        ]

    result = repair("x\n", analyze, always)
    assert result.text == "x\n"
    assert ["7:1" in why or "b.py" in why for _, why in result.rejected] == [True, True]


def test_the_error_of_the_first_analysis_is_the_callers() -> None:
    def analyze(text: str) -> list[Diagnostic]:
        raise RuntimeError("broken rule")

    with pytest.raises(RuntimeError, match="broken rule"):
        repair("x\n", analyze, always)
