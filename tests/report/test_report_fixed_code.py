"""The new code of a repair: the call or the statement around a short one, else its sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from findings import Source, sources, text_of

from shapefix.diagnostics import Applicability, Diagnostic, Edit, Fix, Severity
from shapefix.report.fixed_code import FixedCode, fixed_code
from shapefix.report.full import render
from shapefix.report.view import View

LONG = "extraordinarily_long_name_of_a_dataset_for_training"


def fix_of(text: str, *changes: tuple[str, str], at_end: bool = False) -> Fix:
    """Return the fix that replaces each first text with the second, or puts it after it."""
    source = Source("train.py", text)
    spans = [source.at(old).end() if at_end else source.at(old) for old, _ in changes]
    edits = tuple(Edit(span, new) for span, (_, new) in zip(spans, changes, strict=True))
    return Fix(Applicability.UNSAFE, "the sentence", edits)


@pytest.mark.parametrize(
    ("text", "old", "new", "code"),
    [
        ("net = Net(nn.Linear(8, 2).cuda())\n", "8", "16", "nn.Linear(16, 2)"),
        ("y = x.t().view(-1)\n", "view", "reshape", "x.t().reshape(-1)"),
        ("hidden: int = 8\n", "8", "16", "hidden: int = 16"),
        ("labels = copy(ids)\n", "copy(ids)", "deepcopy(ids)", "labels = deepcopy(ids)"),
        ("print(loss.data[0])\n", "loss.data[0]", "loss.item()", "print(loss.item())"),
        ('print(f"{loss.data[0]}")\n', "loss.data[0]", "loss.item()", 'print(f"{loss.item()}")'),
        ("名前 = f('ü', x.view(2))\n", "view", "reshape", "x.reshape(2)"),
        ("if x:\n\tlosses.append(loss[0])\n", "loss[0]", "loss.item()", "losses.append(loss.item())"),
        (f"y = f({LONG}, {LONG}, x.T)\n", "x.T", "x.mT", "f(…, x.mT)"),
        ("y = f(\n    a,\n    b=x.T,\n    c=1,\n)\n", "x.T", "x.mT", "f(…, b=x.mT, …)"),
        ("y = f(\n    x.T,\n    a,\n)\n", "x.T", "x.mT", "f(x.mT, …)"),
    ],
)
def test_a_replacement_is_shown_with_the_call_or_the_statement_around_it(
    text: str, old: str, new: str, code: str
) -> None:
    assert fixed_code(fix_of(text, (old, new)), text) == FixedCode(code)


@pytest.mark.parametrize(
    ("text", "old", "new", "code"),
    [
        ("criterion(model(x), y)\n", "y", ".unsqueeze(1)", "criterion(model(x), y.unsqueeze(1))"),
        ("h = f(x)\n", "f(x)", ".detach()", "f(x).detach()"),
        ("a = torch.arange(x.size(1))\n", "x.size(1)", ", device=d", "torch.arange(x.size(1), device=d)"),
        ("d = D(\n    s,\n    shuffle=True,\n)\n", "shuffle=True", ",\n    last=True", "D(…, last=True)"),
    ],
)
def test_an_insertion_is_shown_in_its_call(text: str, old: str, new: str, code: str) -> None:
    assert fixed_code(fix_of(text, (old, new), at_end=True), text) == FixedCode(code)


def test_an_assignment_is_shown_as_the_whole_statement() -> None:
    text = "noise.view(-1).abs()\n"
    fix = fix_of(text, (text[:5], ""))
    (edit,) = fix.edits
    assigned = replace(fix, edits=(Edit(edit.span.start(), "noise = "),))
    assert fixed_code(assigned, text) == FixedCode("noise = noise.view(-1).abs()")


def test_a_new_line_has_its_place() -> None:
    text = "model.cuda()\nstep(model)\n"
    after = fix_of(text, ("model.cuda()", "\nmodel.eval()"), at_end=True)
    assert fixed_code(after, text) == FixedCode("model.eval()", "after")
    start = fix_of(text, ("step", "")).edits[0].span.start()
    before = replace(after, edits=(Edit(start, "model.eval()\n"),))
    assert fixed_code(before, text) == FixedCode("model.eval()", "before")


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("y = x.T\nz = y.T\n", [("x.T", "x.mT"), ("y.T", "y.mT")]),
        ("y = x.T\n", [("y = x.T", "y = x\nz = y.mT")]),
        ("y = x.T\n", [("y = x.T", "")]),
        ("try:\n    f()\nexcept E:\n    pass\n", [("pass", "raise")]),
        ("except = x.T\n", [("x.T", "x.mT")]),
        (f"y = {LONG}({LONG}, {LONG})(x.T)\n", [("x.T", "x.mT")]),
        (f"y = f({LONG} * {LONG} + x.T)\n", [("x.T", "x.mT")]),
    ],
)
def test_other_repairs_are_a_sentence(text: str, changes: list[tuple[str, str]]) -> None:
    assert fixed_code(fix_of(text, *changes), text) is None


def repair_line(text: str, place: str, fix: Fix) -> str:
    """The line of the report on the repair of a finding."""
    source = Source("train.py", text)
    found = Diagnostic("SF001", "a-rule", Severity.ERROR, "wrong", source.at(place), fixes=(fix,))
    rows = text_of(
        render([found], (), View("/p", width=100, quiet=True, sources=sources(source)))
    ).splitlines()
    return next(row.strip() for row in rows if " = fix" in row)


def test_a_repair_of_another_line_says_where() -> None:
    text = "size = 8\nlayer = nn.Linear(size, 2)\nlayer(x)\n"
    fix = fix_of(text, ("8", "16"))
    assert repair_line(text, "layer(x)", fix) == "= fix (unsafe): size = 16 at line 1"
    assert repair_line(text, "size = 8", fix) == "= fix (unsafe): size = 16"
    remarked = replace(fix, remark="the largest id is 15")
    assert repair_line(text, "size = 8", remarked) == "= fix (unsafe): size = 16; the largest id is 15"


def test_a_repair_by_hand_is_a_sentence() -> None:
    text = "size = 8\n"
    fix = replace(fix_of(text, ("8", "16")), applicability=Applicability.DISPLAY)
    assert repair_line(text, "size", fix) == "= fix (by hand): the sentence"
