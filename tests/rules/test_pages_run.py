"""Execute the examples of the rule pages: torch does what the pages say."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from _pytest.mark.structures import ParameterSet
from execution import Ran, execute
from pretended_gpu import outcomes
from rule_pages import SECTIONS, Example, examples, front_matter, pages, stated_errors
from value_descriptions import described_names

from shapefix.engine.analysis import FileAnalyzer
from shapefix.sources.project import Project
from shapefix.sources.text import SourceText

PAGES = pages()
EXAMPLES = [example for page in PAGES for example in examples(page)]
FIRING = [example for example in EXAMPLES if example.findings]
SILENT = [example for example in EXAMPLES if not example.findings]
FIXED = [example for example in FIRING if example.fixed]
SAFELY_FIXED = [example for example in FIXED if example.fixed and not example.fixed.unsafe]

LAYOUT = [example for example in FIRING if front_matter(example.page)["code"].startswith("SF1")]
COMMENTS = [example for example in FIRING if front_matter(example.page)["code"].startswith("SF0")]
DATA = [example for example in FIRING if example not in LAYOUT + COMMENTS]

ERRORS = {front_matter(page)["code"]: stated_errors(page) for page in PAGES}
"""Parts of the exceptions' messages, by rule. The code that other rules report raises nothing."""

CRASHING = ("SF301", "SF302", "SF303", "SF304", "SF305")
"""Rules whose every reported example raises; other data rules also report silent corruption."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


ON_GPU = tuple(
    dict.fromkeys(
        (text, example.run)
        for example in EXAMPLES
        for text in (example.text, example.fixed.text if example.fixed else example.text)
        if "cuda" in text + example.run and example.page.stem.startswith("SF6")
    )
)
"""Texts that use a GPU, with their run blocks."""


@functools.cache
def outcome(text: str, run: str = "") -> Ran:
    """Execute a text and its run block, once for all tests."""
    return outcomes(ON_GPU)[text, run] if (text, run) in ON_GPU else execute(text, run)


def same(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Compare sizes, strides and elements."""
    return one.shape == two.shape and one.stride() == two.stride() and bool(torch.equal(one, two))


@every_page
def test_front_matter(page: Path) -> None:
    stated = front_matter(page)
    errors = ["errors"] if stated["raises"] in ("here", "later") else []
    required = ["code", "name", "severity", "summary", "fix", "raises", *errors, "default", "since"]
    assert list(stated) in (required, [*required, "aliases"])
    assert page.stem == f"{stated['code']}-{stated['name']}"
    assert stated["severity"] in ("error", "warning", "info")
    assert stated["fix"] in ("safe", "unsafe", "display", "none")
    assert stated["raises"] in ("here", "later", "hidden", "never")
    assert stated["default"] in ("on", "off")
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in stated.get("aliases", "none").split(", "))


@pytest.mark.slow
@every_page
def test_a_rule_that_raises_has_an_example_that_does(page: Path) -> None:
    if front_matter(page)["raises"] in ("here", "later"):
        ran = [outcome(example.text, example.run) for example in examples(page) if example.findings]
        assert any(each.errors for each in ran)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and those before it, as a traceback shows them."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.slow
@every_page
def test_every_stated_error_is_raised_by_an_example(page: Path) -> None:
    ran = [outcome(example.text, example.run) for example in examples(page) if example.findings]
    errors = [error for each in ran for errors in each.errors.values() for error in errors]
    errors += [error for each in ran for error in each.run_errors.values()]
    raised = [str(error) for each in errors for error in _chain(each)]
    assert [error for error in stated_errors(page) if not any(error in message for message in raised)] == []


@every_page
def test_enough_examples_of_both_kinds(page: Path) -> None:
    firing = [example for example in examples(page) if example.findings]
    silent = [example for example in examples(page) if not example.findings]
    assert len(firing) >= 6
    assert len(silent) >= 6
    assert {example.heading for example in firing} == {"Example", "Reported"}
    assert {example.heading for example in silent} <= {"Example", "Not reported"}


@every_page
def test_the_sections_of_a_page(page: Path) -> None:
    text = page.read_text("utf-8").split("---\n", 2)[2]
    code, name = front_matter(page)["code"], front_matter(page)["name"]
    headings = re.findall(r"^#+ .+$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.MULTILINE)
    safety = [] if front_matter(page)["fix"] == "none" else ["### Fix safety"]
    expected = [f"## {section}" for section in SECTIONS]
    at = expected.index("## When to ignore")
    assert headings == [
        f"# {name} ({code})",
        *expected[:at],
        *safety,
        *expected[at:],
        "### Reported",
        "### Not reported",
    ]


def section(page: Path, title: str) -> str:
    """The text of a section, without its heading."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page.read_text("utf-8"), re.M | re.S)
    assert found is not None
    return found[1]


@every_page
def test_what_it_does_has_at_most_80_words(page: Path) -> None:
    assert 5 <= len(section(page, "What it does").split()) <= 80


@every_page
def test_the_example_is_followed_by_its_good_twin(page: Path) -> None:
    assert "\n```\n\nUse instead:\n\n```python" in section(page, "Example")
    bad, *good = [example for example in examples(page) if example.heading == "Example"]
    assert bad.findings
    assert [example.findings for example in good] == ([] if bad.fixed else [()])


@every_page
def test_a_preamble_holds_nothing_but_imports_and_plain_assignments(page: Path) -> None:
    for block in re.findall(r"^```python preamble\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        allowed = (ast.Import, ast.ImportFrom, ast.Assign)
        assert all(isinstance(node, allowed) for node in ast.parse(block).body)


@pytest.mark.slow
@pytest.mark.parametrize("example", FIRING, ids=str)
def test_findings_carry_the_code_and_severity_of_their_page(example: Example) -> None:
    severities = {front_matter(page)["code"]: front_matter(page)["severity"] for page in PAGES}
    found = {(finding.code, finding.severity) for finding in example.findings}
    own = front_matter(example.page)["code"]
    assert (own, severities[own]) in found
    assert found <= set(severities.items())


@pytest.mark.slow
@pytest.mark.parametrize("example", LAYOUT, ids=str)
def test_only_marked_lines_fail_and_as_stated(example: Example) -> None:
    ran = outcome(example.text, example.run)
    marked = {finding.line: ERRORS.get(finding.code, ()) for finding in example.findings}
    for line, errors in ran.errors.items():
        for error in errors:
            assert any(message in str(error) for message in marked.get(line - example.hidden, ())), (
                f"line {line}: {error!r}"
            )


def repair_computes_something_else(example: Example) -> bool:
    """Tell whether the repair changes a tensor that the example computes."""
    if example.fixed is None:
        return False
    before = outcome(example.text, example.run).tensors()
    after = outcome(example.fixed.text, example.run).tensors()
    return any(name in after and not same(before[name], after[name]) for name in before)


@pytest.mark.slow
@pytest.mark.parametrize("example", DATA, ids=str)
def test_a_reported_example_raises_or_corrupts(example: Example) -> None:
    """The example raises, corrupts what the run block asserts, or computes something else than its repair."""
    ran = outcome(example.text, example.run)
    codes = {finding.code for finding in example.findings}
    stated = [message for code in codes for message in ERRORS.get(code, ())]
    raised = [error for errors in ran.errors.values() for error in errors]
    for error in raised:
        assert any(message in str(error) for message in stated), repr(error)
    if not raised:
        assert not codes & set(CRASHING)
        assert example.corrupts or repair_computes_something_else(example)


@pytest.mark.slow
@pytest.mark.parametrize("example", FIRING, ids=str)
def test_run_blocks_raise_where_marked(example: Example) -> None:
    ran = outcome(example.text, example.run)
    assert ran.run_errors.keys() == {line for line, _ in example.raises}
    for line, message in example.raises:
        assert message in str(ran.run_errors[line])


@pytest.mark.parametrize("example", [e for e in COMMENTS if e.fixed], ids=str)
def test_the_repair_of_a_comment_leaves_the_code_as_it_is(example: Example) -> None:
    assert example.fixed is not None
    assert ast.dump(ast.parse(example.text)) == ast.dump(ast.parse(example.fixed.text))
    assert example.text != example.fixed.text


def without_marked_lines(example: Example) -> str:
    """Replace every line that has a finding by `pass`."""
    marked = {finding.line + example.hidden for finding in example.findings}
    rows = enumerate(example.text.split("\n"), start=1)
    return "\n".join(re.sub(r"\S.*", "pass", row) if number in marked else row for number, row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in FIRING if e.findings[0].code == "SF105"], ids=str)
def test_a_line_with_an_unused_result_can_be_removed(example: Example) -> None:
    before = execute(example.text, example.run).tensors()
    after = execute(without_marked_lines(example), example.run).tensors()
    assert before
    assert before.keys() == after.keys()
    assert all(same(before[name], after[name]) for name in before)


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in LAYOUT if e.fixed or e.findings[0].code != "SF105"], ids=str)
def test_marked_lines_fail_or_their_repair_computes_something_else(example: Example) -> None:
    ran = outcome(example.text, example.run)
    calm = {finding.line + example.hidden for finding in example.findings} - ran.errors.keys()
    if calm:
        assert front_matter(example.page)["code"] not in ("SF101", "SF102"), f"nothing raised at {calm}"
        assert example.fixed is not None, f"nothing raised at {calm}, and there is no repair to compare with"
        repaired = outcome(example.fixed.text, example.run)
        before, after = ran.tensors(), repaired.tensors()
        assert before.keys() == after.keys()
        assert any(not same(before[name], after[name]) for name in before)


def _every_second(examples: Sequence[Example]) -> list[ParameterSet]:
    """Return all examples, the first one of each two in the short run."""
    return [
        pytest.param(example, id=str(example), marks=pytest.mark.long if number % 2 else ())
        for number, example in enumerate(examples)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("example", _every_second(FIXED))
def test_the_repair_runs_and_ends_the_corruption(example: Example) -> None:
    assert example.fixed is not None
    ran = outcome(example.fixed.text, example.run)
    assert ran.run_errors.keys() == example.corrupts, ran.run_errors
    raised = [error for errors in ran.errors.values() for error in errors]
    assert all(isinstance(error, AssertionError) for error in raised), raised
    assert len(raised) == len(ran.run_errors), raised


def seeded(text: str) -> str:
    """Set the seed before every statement at the top level, counted from the end."""
    body = ast.parse(text).body
    future = [node for node in body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    lines = [ast.unparse(node) for node in future]
    for left, node in zip(range(len(body), 0, -1), body, strict=True):
        if node not in future:
            lines += [f"__import__('torch').manual_seed({left})", ast.unparse(node)]
    return "\n".join(lines)


def named(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def concerned(example: Example) -> set[str]:
    """Names at the top level in statements that raise, are repaired, or use what such statements name."""
    assert example.fixed is not None
    kept = {ast.dump(node) for node in ast.parse(example.fixed.text).body}
    ran = outcome(example.text, example.run)
    marked = {finding.line + example.hidden for finding in example.findings} | ran.before_run
    asserts = [
        row for number, row in enumerate(example.run.split("\n"), start=1) if number in example.corrupts
    ]
    found = set().union(*(named(ast.parse(row)) for row in asserts))
    for node in ast.parse(example.text).body:
        rows = range(node.lineno, (node.end_lineno or 0) + 1)
        names = named(node)
        if ast.dump(node) not in kept or marked & set(rows) or names & found:
            # A function that is concerned changes what it calls: `seen.append(loss)`, `model(x)`.
            called = [each.value for each in ast.walk(node) if isinstance(each, ast.Attribute)]
            called += [each.func for each in ast.walk(node) if isinstance(each, ast.Call)]
            is_code = isinstance(node, (ast.FunctionDef, ast.ClassDef))
            found |= {node.name} if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else names
            found |= {each.id for each in called if isinstance(each, ast.Name)} if is_code else set()
    return found


def assigned(node: ast.stmt) -> set[str]:
    return named(node) if isinstance(node, (ast.Assign, ast.For)) else set()


def _of_each_rule() -> Iterator[ParameterSet]:
    """Yield the examples with a safe repair, the first one of each page in the short run."""
    shown: set[Path] = set()
    for example in SAFELY_FIXED:
        marks = pytest.mark.long if example.page in shown else ()
        yield pytest.param(example, id=str(example), marks=marks)
        shown.add(example.page)


@pytest.mark.slow
@pytest.mark.parametrize("example", list(_of_each_rule()))
def test_a_safe_repair_changes_no_value_that_the_finding_is_not_about(example: Example) -> None:
    assert example.fixed is not None
    old, new = (
        described_names(execute(seeded(text)).names) for text in (example.text, example.fixed.text)
    )  # fmt: skip
    others = old.keys() - concerned(example)
    assert {name: new.get(name) for name in others} == {name: old[name] for name in others}


@pytest.mark.long
@pytest.mark.slow
def test_most_examples_have_values_to_compare() -> None:
    pairs = SAFELY_FIXED[::4]
    compared = [e for e in pairs if set().union(*map(assigned, ast.parse(e.text).body)) - concerned(e)]
    assert len(compared) > len(pairs) / 2


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in LAYOUT if e.fixed], ids=str)
def test_the_repair_changes_marked_lines_only_or_the_line_of_the_expand(example: Example) -> None:
    assert example.fixed is not None
    before, after = example.text.splitlines(), example.fixed.text.splitlines()
    assert len(before) == len(after)
    changed = {number for number, (a, b) in enumerate(zip(before, after, strict=True), start=1) if a != b}
    assert changed
    marked = {finding.line + example.hidden for finding in example.findings}
    expands = {n for n, row in enumerate(before, start=1) if re.search(r"expand|broadcast", row)}
    assert changed <= (expands if front_matter(example.page)["code"] == "SF104" else marked)


@pytest.mark.slow
@pytest.mark.parametrize("example", _every_second(SILENT))
def test_silent_examples_run_through(example: Example) -> None:
    ran = outcome(example.text, example.run)
    assert not ran.errors, ran.errors


def explains(merge: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Tell whether the two named dimensions have incompatible strides, and the stated ones."""
    dimensions = re.search(r"merges dimensions (\d) and (\d)", merge)
    if dimensions is None:
        return False
    outer, inner = int(dimensions[1]), int(dimensions[2])
    needed = sizes[inner] * strides[inner]
    stated = re.search(rf"dimension {outer} needs stride (\d+) but has (\d+)$", merge)
    return (
        inner == outer + 1
        and min(sizes[outer], sizes[inner]) > 1
        and strides[outer] != needed
        and (stated is None or (int(stated[1]), int(stated[2])) == (needed, strides[outer]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in FIRING if e.findings[0].code in ("SF101", "SF102")], ids=str)
def test_the_dimensions_named_are_those_with_the_gap(example: Example, tmp_path: Path) -> None:
    ran = execute(example.text, example.run)
    path = str(tmp_path / "example.py")
    analyzer = FileAnalyzer(Project(str(tmp_path)), frozenset(("SF101", "SF102")))
    found = analyzer.analyze(path, SourceText(path, example.text)).diagnostics
    assert ran.refused.keys() == {finding.span.row for finding in found}
    for line, layouts in ran.refused.items():
        here = [finding for finding in found if finding.span.row == line]
        for layout in layouts:
            assert any(
                finding.code == "SF102" or explains(finding.evidence[-1].message, *layout) for finding in here
            ), (line, layout)


def numbers_revealed(example: Example) -> list[str]:
    """The revealed values without symbols; symbolic sizes cannot be compared with a run."""
    return [text for text in example.revealed.values() if not re.search(r"[A-Z]", text)]


@pytest.mark.slow
@pytest.mark.parametrize("example", [e for e in EXAMPLES if numbers_revealed(e)], ids=str)
def test_revealed_layouts_are_those_of_torch(example: Example) -> None:
    seen: list[str] = []

    def reveal(value: torch.Tensor) -> None:
        dtype = {"float32": "f32", "int64": "i64", "bool": "bool"}[str(value.dtype).removeprefix("torch.")]
        sizes = ", ".join(str(size) for size in value.shape)
        seen.append(f"{dtype}[{sizes}] strides {tuple(value.stride())}")

    execute(example.text, reveal=reveal)
    assert seen == numbers_revealed(example)
