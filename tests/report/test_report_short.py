"""The short report: three places, the way to them, and one entry per cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from findings import LABELS, STRIDED, Source, sources, text_of

from shapefix.diagnostics import (
    Cause,
    Condition,
    Confirmation,
    Diagnostic,
    Evidence,
    ExpectedError,
    Moment,
    Role,
    RunVerdict,
    Severity,
    Span,
    in_run_order,
)
from shapefix.report.folding import folded
from shapefix.report.full import render
from shapefix.report.view import View

NET = Source(
    "train.py",
    """\
class Net(nn.Module):
    def __init__(self):
        self.conv = nn.Conv2d(3, 32, 3)
        self.fc1 = nn.Linear(32 * 8 * 8, 128)

    def forward(self, x):
        x = F.max_pool2d(self.conv(x), 2)
        x = torch.flatten(x, 1)
        x = self.dropout(torch.relu(self.fc1(x)))
        return x

for images, labels in loader:
    net(images)

def evaluate(net, images):
    return net.forward(images)
""",
)
MISMATCH = Diagnostic(
    "SF501",
    "in-features",
    Severity.ERROR,
    "`self.fc1` expects 2048 features but gets 1568",
    NET.at("self.fc1(x)"),
    (
        Evidence(NET.at("net(images)"), "called here", Role.CALL, "net(images)"),
        Evidence(NET.at("nn.Linear(32 * 8 * 8, 128)"), "created here", Role.CAUSE, "expects 2048"),
        Evidence(NET.at("self.conv(x)"), "convolved here: (64, 32, 15, 15)", Role.HISTORY),
        Evidence(NET.at("F.max_pool2d(self.conv(x), 2)"), "pooled here: (64, 32, 7, 7)", Role.HISTORY),
        Evidence(
            NET.at("torch.flatten(x, 1)"),
            "flattened here: (64, 1568)",
            Role.PRODUCER,
            "[64, 32, 7, 7] -> [64, 1568]",
        ),
        Evidence(NET.at("self.fc1(x)"), "last size is 1568, 2048 is expected", Role.FAILURE),
    ),
    error=ExpectedError("RuntimeError", "mat1 and mat2 shapes cannot be multiplied", Moment.FIRST_BATCH),
)


def shown(*findings: Diagnostic, files: tuple[Source, ...] = (NET,), width: int = 110) -> str:
    """The short report without the summary."""
    return text_of(render(findings, (), View("/p", width=width, quiet=True, sources=sources(*files))))


def test_a_finding_is_its_cause_its_last_producer_and_its_failure() -> None:
    assert (
        shown(MISMATCH)
        == """\
error[SF501] in-features: `self.fc1` expects 2048 features but gets 1568
 --> train.py:9:37
  |
4 |         self.fc1 = nn.Linear(32 * 8 * 8, 128)
  |                    -------------------------- expects 2048
8 |         x = torch.flatten(x, 1)
  |             ------------------- [64, 32, 7, 7] -> [64, 1568]
9 |         x = self.dropout(torch.relu(self.fc1(x)))
  |                                     ^^^^^^^^^^^ RuntimeError at the first batch: mat1 and mat2 shapes
  |                                                 cannot be multiplied
  = reached from net(images) at line 13
  = in-features: `shapefix explain SF501`; `--verbose` shows all 6 steps

"""
    )


def test_without_a_cause_the_first_and_the_last_producer_are_shown() -> None:
    steps = [Evidence(MISMATCH.evidence[2].span, name, Role.PRODUCER) for name in ("one", "two", "three")]
    report = shown(replace(MISMATCH, evidence=tuple(steps), error=None))
    assert ["one" in report, "two" in report, "three" in report] == [True, False, True]


def test_without_a_producer_the_first_and_the_last_cause_are_shown() -> None:
    steps = [Evidence(MISMATCH.evidence[2].span, name) for name in ("one", "two", "three")]
    report = shown(replace(MISMATCH, evidence=tuple(steps), error=None))
    assert ["one" in report, "two" in report, "three" in report] == [True, False, True]


def test_the_way_is_one_line_and_loses_its_outer_calls_first() -> None:
    train = Source("run/main.py", "def main():\n    epoch(net)\n\nmain()\n")
    way = (
        Evidence(train.at("main()\n"), "called here", Role.CALL, "main()"),
        Evidence(train.at("epoch(net)"), "called here", Role.CALL, "epoch(net)"),
        *MISMATCH.evidence,
    )
    found = replace(MISMATCH, evidence=way)
    assert " = reached from main() > epoch(net) at run/main.py:2 > net(images) at line 13\n" in shown(found)
    assert " = reached from … > net(images) at line 13\n" in shown(found, width=60)
    near = replace(train, path="main.py")
    moved = tuple(replace(step, span=replace(step.span, path="main.py")) for step in way[:2])
    found = replace(MISMATCH, evidence=(*moved, *MISMATCH.evidence))
    assert "epoch(net) at main.py:2 > net(images) at line 13\n" in shown(found, files=(NET, near))


def elsewhere(row: int, path: str = "train.py") -> Span:
    return Span(path, row, 5, row, 9)


def test_findings_of_one_cause_are_one_entry() -> None:
    others = [replace(MISMATCH, span=elsewhere(row)) for row in (12, 13)]
    others.append(replace(MISMATCH, span=elsewhere(3, "lib/eval.py"), moment=1))
    (entry,) = folded([*others, MISMATCH])
    assert {each.span for each in entry.others} | {entry.first.span} == {
        each.span for each in (*others, MISMATCH)
    }
    report = shown(MISMATCH, *others)
    assert report.count("error[") == 1
    assert " = and 3 more places: lines 12, 13, lib/eval.py:3\n" in report
    near = [replace(each, span=replace(each.span, path="lib/a.py")) for each in others[:2]]
    report = shown(*near, others[2])
    assert " = and 2 more places: line 13, lib/eval.py:3\n" in report
    verbose = View("/p", quiet=True, verbose=True, sources=sources(NET))
    assert text_of(render([MISMATCH, *others], (), verbose)).count("error[") == 4
    copies = [replace(MISMATCH, span=elsewhere(3, f"runs/{'long' * 20}-{number}.py")) for number in range(9)]
    report = " ".join(shown(MISMATCH, *copies).split())
    assert "= and 9 more places: " in report
    assert report.count("-0.py") + report.count("-1.py") + report.count("-2.py") == 3
    assert "-2.py:3, … (`--verbose` shows all)" in report


def test_other_causes_stay_apart() -> None:
    step = replace(MISMATCH.evidence[1], span=elsewhere(3))
    other = replace(MISMATCH, span=elsewhere(12), evidence=(step,))
    assert len(folded([MISMATCH, other])) == 2
    assert len(folded([STRIDED, LABELS])) == 2


def test_what_follows_from_a_finding_is_a_line_of_it() -> None:
    hidden = Cause("SF501", MISMATCH.span)
    swallowed = Diagnostic(
        "SF801",
        "swallowed-exception",
        Severity.WARNING,
        "`except Exception` hides errors",
        elsewhere(13),
        follows=hidden,
    )
    returned = Diagnostic(
        "SF802",
        "saturated-metric",
        Severity.WARNING,
        "returns `inf`",
        elsewhere(16),
        follows=Cause("SF801", swallowed.span),
    )
    report = shown(returned, swallowed, MISMATCH)
    assert "error[SF501]" in report
    assert " = also SF801 at line 13: swallowed-exception: `except Exception` hides errors\n" in report
    assert " = also SF802 at line 16: saturated-metric: returns `inf`\n" in report
    again = replace(swallowed, span=elsewhere(15))
    report = shown(returned, swallowed, again, MISMATCH)
    assert " = also SF801 at line 13, and 1 more place: swallowed-exception: `except Exc" in report
    assert report.count("also SF801") == 1
    assert len(folded([returned, swallowed])) == 1
    assert len(folded([returned])) == 1


def test_other_mistakes_in_one_call_are_lines_of_its_entry() -> None:
    call = Cause("SF501", NET.at("net(images)"))
    first, *others = (
        replace(MISMATCH, span=elsewhere(row), message=f"no argument `{name}`", follows=call, habit=name)
        for row, name in ((12, "a"), (13, "b"), (14, "a"), (15, "c"), (16, "c"))
    )
    report = shown(first, *others)
    assert report.count("error[") == 1
    assert " = and 1 more place: line 14\n" in report
    assert " = also at line 13: no argument `b`\n" in report
    assert " = also at lines 15, 16: no argument `c`\n" in report


def test_causes_that_refer_to_each_other_end() -> None:
    one = replace(MISMATCH, follows=Cause("SF501", elsewhere(12)))
    two = replace(MISMATCH, span=elsewhere(12), follows=Cause("SF501", MISMATCH.span))
    assert sum(1 + len(entry.others) for entry in folded([one, two])) == 2


def test_a_mistake_copied_to_other_files_is_one_entry() -> None:
    copies = [replace(NET, path=f"copy{number}/train.py") for number in (1, 2)]
    found = [
        replace(
            MISMATCH,
            span=replace(MISMATCH.span, path=copy.path),
            evidence=tuple(
                replace(step, span=replace(step.span, path=copy.path)) for step in MISMATCH.evidence
            ),
        )
        for copy in copies
    ]
    texts = sources(NET, *copies)
    (entry,) = folded([MISMATCH, *found], texts)
    assert len(entry.others) == 2
    changed = sources(NET, *(replace(copy, text=copy.text.replace("relu", "gelu")) for copy in copies))
    assert len(folded([MISMATCH, *found], changed)) == 2
    assert len(folded([MISMATCH, *found])) == 3


def test_copies_may_be_indented_and_called_differently() -> None:
    (call,) = MISMATCH.calls
    rows = [f"    {row}  " for row in NET.text.splitlines()]
    rows[call.span.row - 1] = "    scores = net(images)"
    copy = replace(NET, path="copy/train.py", text="\n".join(rows))
    found = replace(
        MISMATCH,
        span=replace(MISMATCH.span, path=copy.path),
        evidence=tuple(replace(step, span=replace(step.span, path=copy.path)) for step in MISMATCH.evidence),
    )
    (entry,) = folded([MISMATCH, found], sources(NET, copy))
    assert entry.others == (found,)


REPEATED = Source(
    "a.py",
    """\
class Attention(nn.Module):
    def forward(self, query, key):
        query = query.view(-1, 8)
        key = key.view(-1, 8)

        return query.view(8, -1)

    def twin(self, value):
        value = value.view(-1, 8)  # as above

def other(key):
    key = key.view(-1, 8)
""",
)


def test_a_mistake_repeated_on_other_variables_of_a_class_is_one_entry() -> None:
    def found(row: int, message: str = "`{}` is not contiguous (line {})") -> Diagnostic:
        span = Span("a.py", row, 9, row, 12)
        return replace(STRIDED, message=message.format(f"v{row}", row), span=span, evidence=(), habit="")

    texts = sources(REPEATED)
    assert len(folded([found(3), found(4), found(9)], texts)) == 1
    assert len(folded([found(3), found(6)], texts)) == 2
    assert len(folded([found(3), found(12)], texts)) == 2
    assert len(folded([found(3), found(4, "`{}` has no dimension {}")], texts)) == 2
    assert len(folded([replace(found(row), habit=f"habit {row}") for row in (3, 4)], texts)) == 2
    in_pairs = [found(3), found(6), found(4), found(12), found(9)]
    entries = folded(in_pairs, texts)
    assert entries == folded(in_pairs[::-1], texts)
    assert [[each.span.row for each in (one.first, *one.others)] for one in entries] == [[3, 4, 9], [6], [12]]


def test_a_mistake_in_adjacent_statements_is_one_entry() -> None:
    def found(row: int, message: str = "`q` is f32[8, 2], not f32[8, 3]") -> Diagnostic:
        return replace(STRIDED, message=message, span=Span("a.py", row, 9, row, 12), evidence=())

    assert len(folded([found(2), found(4), found(3, "`k` is bf16[8, 2], not f32[8, 3]")])) == 1
    assert len(folded([found(2), found(4)])) == 2
    assert len(folded([found(2), found(3, "`k` is f32[8, 4], not f32[8, 3]")])) == 2
    assert len(folded([found(2), replace(found(3), severity=Severity.WARNING)])) == 2


def test_steps_in_other_files_may_have_other_variables_and_sizes_may_not() -> None:
    files = [Source("a.py", "scores = model(images)\n"), Source("b.py", "y = model(x)\n")]
    for code, entries in (("SF602", 1), ("SF501", 2)):
        found = [
            replace(STRIDED, code=code, message=f"`{file.path}` is left", span=Span(file.path, 1, 1, 1, 2))
            for file in files
        ]
        found = [replace(each, evidence=()) for each in found]
        assert len(folded(found, sources(*files))) == entries


def test_the_same_sizes_of_two_tensors_are_the_same_mistake() -> None:
    message = "`{}` compares f32[16, 8, 4] with f32[16, 1, 8, {}]: both are broadcast"
    found = [
        replace(STRIDED, message=message.format(name, size), span=Span(f"{name}.py", 2, 1, 2, 9), evidence=())
        for name, size in (("a", 4), ("b", 4), ("c", 1))
    ]
    files = [Source(f"{name}.py", f"\n{name} = loss({name})\n") for name in "abc"]
    assert len(folded(found[:2], sources(*files))) == 1
    assert len(folded(found, sources(*files))) == 2


def test_a_tensor_rejected_by_two_layers_is_one_entry() -> None:
    tests = Source("test.py", "x = torch.rand(2, 1, 8, 8)\ny = torch.rand(2, 1, 8, 8).cuda()\n")

    def found(path: str, name: str, made: int = 1) -> Diagnostic:
        step = Evidence(Span("test.py", made, 5, made, 9), "created here", Role.PRODUCER)
        message = f"`{name}` expects 3 channels, but `x` has 1"
        return replace(MISMATCH, message=message, span=Span(path, 2, 1, 2, 9), evidence=(step,))

    one = found("net.py", "self.conv")
    later = replace(one.evidence[0], span=Span("net.py", 1, 1, 1, 9))
    assert len(folded([one, found("other.py", "self.stem")], sources(tests, NET))) == 2
    texts = sources(tests, replace(NET, path="net.py"), replace(NET, path="other.py"))
    assert len(folded([one, found("other.py", "self.stem")], texts)) == 1
    assert len(folded([one, found("other.py", "self.stem", made=2)], texts)) == 2
    changed = replace(found("other.py", "self.stem"), evidence=(*one.evidence, later))
    assert len(folded([one, changed], texts)) == 2


def test_entries_of_a_finding_with_both_causes_become_one() -> None:
    copy = replace(REPEATED, path="b.py")
    one, two = (replace(STRIDED, span=Span("a.py", row, 9, row, 12), evidence=()) for row in (3, 9))
    copied = replace(one, span=replace(one.span, path="b.py"), follows=two.cause)
    assert len(folded([one, replace(two, message="other")], sources(REPEATED, copy))) == 2
    (entry,) = folded([one, replace(two, message="other"), copied], sources(REPEATED, copy))
    assert len(entry.others) == 2


def test_a_confirmed_finding_does_not_hide_a_refuted_one() -> None:
    one, two = (
        replace(MISMATCH, span=span, confirmation=Confirmation(verdict, "seen"))
        for span, verdict in (
            (MISMATCH.span, RunVerdict.CONFIRMED),
            (elsewhere(12), RunVerdict.REFUTED),
        )
    )
    assert len(folded([one, two])) == 2


def test_errors_come_first_in_the_order_of_the_run() -> None:
    late, early = replace(MISMATCH, moment=7), replace(MISMATCH, span=elsewhere(20), moment=3)
    warning = replace(MISMATCH, severity=Severity.WARNING, span=elsewhere(1), moment=0)
    other = replace(LABELS, span=replace(LABELS.span, path="zoo/a.py"), moment=1)
    assert in_run_order([other, warning, late, early]) == [early, late, warning, other]


@pytest.mark.parametrize(
    ("moment", "condition", "words"),
    [
        (Moment.FIRST_BATCH, None, "RuntimeError at the first batch: mat1"),
        (Moment.LAST_BATCH, None, "RuntimeError at the last batch: mat1"),
        (Moment.UNKNOWN, None, "RuntimeError: mat1"),
        (Moment.UNKNOWN, Condition("`T` > 1"), "RuntimeError when `T` > 1: mat1"),
        (
            Moment.FIRST_BATCH,
            Condition("`device` is a GPU", constant=True),
            "RuntimeError at the first batch when `device` is a GPU: mat1",
        ),
    ],
)
def test_the_failure_says_when_it_raises(moment: Moment, condition: Condition | None, words: str) -> None:
    assert MISMATCH.error is not None
    report = shown(
        replace(MISMATCH, condition=condition, error=replace(MISMATCH.error, moment=moment)), width=200
    )
    assert f"^^^^ {words} and mat2" in report
    assert "fails when" not in report


def test_without_an_exception_the_condition_is_a_note_and_so_are_the_folded_places() -> None:
    rows = shown(replace(MISMATCH, condition=Condition("T > 1"), error=None)).splitlines()
    assert [row.strip() for row in rows if " = " in row and "|" not in row] == [
        "= reached from net(images) at line 13",
        "= fails when: T > 1",
        "= in-features: `shapefix explain SF501`; `--verbose` shows all 6 steps",
    ]


def test_copies_at_other_lines_are_one_entry(tmp_path: Path) -> None:
    rows = ["loss = criterion(model(x), y)", "model = nn.Softmax(dim=1)"]
    found = []
    for name, blank in (("a.py", 0), ("b.py", 3)):
        path = tmp_path / name
        path.write_text("\n" * blank + "\n".join(rows) + "\n", "utf-8")
        span = Span(str(path), blank + 2, 9, blank + 2, 26)
        message = (
            f"`nn.Softmax(dim=1)` returns probabilities, but `criterion` (line {blank + 1}) expects scores"
        )
        found.append(Diagnostic("SF513", "normalized-scores", Severity.WARNING, message, span))
    assert len(folded(found, lambda path: Path(path).read_text("utf-8"))) == 1
