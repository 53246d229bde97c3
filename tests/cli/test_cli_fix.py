"""`shapefix fix`: a diff, or repaired files."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Collection, Iterable, Iterator
from itertools import chain, combinations

import pytest
from command_line import (  # noqa: F401
    CALLER,
    CLEAN,
    MODEL,
    REPAIRED_VIEW,
    SWAPPED,
    VIEW,
    Project,
    program,
    project_in_a_folder,
    shapefix,
)

BY_HAND = "import torch\n\ntorch.zeros(2, 3) @ torch.zeros(4, 5)\ntorch.zeros(2, 3) @ torch.zeros(6, 7)\n"


def test_without_apply_it_shows_a_diff_and_writes_nothing(project: Project) -> None:
    folder = project(train=VIEW)
    ran = shapefix("fix")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "--- train.py",
        "+++ train.py",
        "@@ -2,4 +2,4 @@",
        " ",
        " logits = torch.zeros(4, 6, 8)",
        " shift = logits[:, :-1, :]",
        "-flat = shift.view(-1, 8)",
        "+flat = shift.reshape(-1, 8)",
    ]
    assert ran.err == "Would repair 1 finding in 1 file with --apply.\n"
    assert (folder / "train.py").read_text() == VIEW


def test_the_diff_can_be_applied_by_git(project: Project) -> None:
    folder = project(train=VIEW, other=VIEW)
    subprocess.run(["git", "apply", "-p0"], input=shapefix("fix").out.encode(), check=True)
    assert {path.read_text() for path in folder.glob("*.py")} == {REPAIRED_VIEW}


def test_the_diff_is_colored_on_request(project: Project) -> None:
    project(train=VIEW)
    assert "\x1b[" in shapefix("fix", "--color", "always").out
    assert "\x1b[" not in shapefix("fix", "--color", "never").out


def test_apply_repairs_and_says_what_remains(project: Project) -> None:
    folder = project(train=VIEW, mix=SWAPPED)
    ran = shapefix("fix", "--apply")
    assert ran.code == 1
    assert (folder / "train.py").read_text() == REPAIRED_VIEW
    assert (folder / "mix.py").read_text() == SWAPPED
    assert ran.out.startswith(
        "train.py: repaired 1 x SF101\n    5: flat = shift.reshape(-1, 8)\nwarning[SF103]"
    )
    left = "1 unsafe fix available (--unsafe-fixes). 1 warning remains.\n"
    assert ran.out.endswith(f"\n\nRepaired 1 finding in 1 file. {left}")
    again = shapefix("fix", "--apply").out
    assert again.startswith("warning[SF103]")
    assert again.endswith(f"\n\nNo safe fixes. {left}")


def test_the_list_of_new_lines_is_bounded(project: Project) -> None:
    project(train=VIEW + 15 * "flat = shift.view(-1, 8)\n")
    rows = shapefix("fix", "--apply").out.splitlines()
    assert rows[0] == "train.py: repaired 16 x SF101"
    assert rows[1].startswith("     5: flat = shift.reshape(-1, 8)")
    assert rows[13] == "    and 4 lines more"


def test_apply_exits_with_0_when_nothing_remains(project: Project) -> None:
    project(train=VIEW)
    ran = shapefix("fix", "--apply")
    assert (ran.code, ran.out) == (
        0,
        "train.py: repaired 1 x SF101\n    5: flat = shift.reshape(-1, 8)\nRepaired 1 finding in 1 file.\n",
    )
    ran = shapefix("fix", "--apply")
    assert (ran.code, ran.out) == (0, "All checks passed.\n")


def test_unsafe_fixes_are_made_on_request(project: Project) -> None:
    folder = project(mix=SWAPPED)
    assert shapefix("fix").out == ""
    assert shapefix("fix", "--apply", "--unsafe-fixes").code == 0
    assert "x.transpose(1, 2)" in (folder / "mix.py").read_text()


def test_the_configuration_may_ask_for_unsafe_fixes(project: Project) -> None:
    folder = project(mix=SWAPPED)
    (folder / "shapefix.toml").write_text("unsafe-fixes = true\n")
    assert "+    return x.transpose(1, 2)" in shapefix("fix").out
    assert shapefix("fix", "--no-unsafe-fixes").out == ""


def test_newlines_encoding_and_mode_are_kept(project: Project) -> None:
    text = "# -*- coding: latin-1 -*-\n# Größe\n" + VIEW
    folder = project(train=text.replace("\n", "\r\n").encode("latin-1"))
    (folder / "train.py").chmod(0o751)
    assert shapefix("fix", "--apply").code == 0
    expected = text.replace("shift.view", "shift.reshape").replace("\n", "\r\n").encode("latin-1")
    assert (folder / "train.py").read_bytes() == expected
    assert (folder / "train.py").stat().st_mode & 0o777 == 0o751


def test_files_that_were_not_given_are_left_alone(project: Project) -> None:
    folder = project(model=MODEL, train=CALLER)
    ran = shapefix("fix", "--apply", "train.py")
    assert ran.code == 1
    assert (folder / "model.py").read_text() == MODEL
    assert ran.err == "not changed, because outside the given paths: model.py\n"


def test_a_finding_that_another_file_causes_is_repaired_where_it_is(project: Project) -> None:
    folder = project(model=MODEL, train=CALLER)
    ran = shapefix("fix", "--apply")
    assert ran.code == 0
    assert ran.out.startswith("model.py: repaired 1 x SF101\n")
    assert ran.out.endswith("\nRepaired 1 finding in 1 file.\n")
    assert (folder / "model.py").read_text() == MODEL.replace("x.view", "x.reshape")
    assert (folder / "train.py").read_text() == CALLER


def test_the_same_with_a_warm_cache(project: Project) -> None:
    project(model=MODEL, train=CALLER)
    assert shapefix("check").code == 1
    assert shapefix("fix", "--apply").code == 0
    assert shapefix("check").code == 0


def test_a_look_at_the_diff_leaves_nothing_false_in_the_cache(project: Project) -> None:
    project(model=MODEL, train=CALLER, other=VIEW)
    before = shapefix("check").out
    assert shapefix("fix").code == 1
    assert shapefix("check").out == before


def test_nothing_to_repair(project: Project) -> None:
    project(train=CLEAN)
    ran = shapefix("fix")
    assert (ran.code, ran.out, ran.err) == (0, "", "All checks passed.\n")


def test_findings_without_an_automatic_fix_are_counted(project: Project) -> None:
    project(train=BY_HAND)
    ran = shapefix("fix")
    assert (ran.code, ran.out, ran.err) == (1, "", "No automatic fixes. 2 errors remain.\n")
    project(view=VIEW, mix=SWAPPED)
    assert shapefix("fix").err == (
        "Would repair 1 finding in 1 file with --apply. 1 unsafe fix available (--unsafe-fixes). "
        "2 errors, 1 warning remain.\n"
    )
    assert shapefix("fix", "-q").err == ""


def powerset(items: Iterable[str]) -> Iterator[tuple[str, ...]]:
    listed = list(items)
    return chain.from_iterable(combinations(listed, length) for length in range(len(listed) + 1))


SAFE, UNSAFE, NO_FIX = "SF101", "SF103", "SF503"
PROGRAMS = {SAFE: VIEW, UNSAFE: SWAPPED, NO_FIX: BY_HAND}


@pytest.mark.parametrize("kinds", list(powerset(PROGRAMS)), ids="+".join)
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe-only", "unsafe-fixes"])
@pytest.mark.parametrize("apply", [False, True], ids=["diff", "apply"])
@pytest.mark.parametrize("output_format", ["full", "concise", "json", "github"])
def test_check_and_fix_agree(
    project: Project, kinds: tuple[str, ...], unsafe: bool, apply: bool, output_format: str
) -> None:
    """The counts, exit codes and formats of fix follow from what check reports before and after it."""
    folder = project(clean=CLEAN, **{f"file_{code.lower()}": PROGRAMS[code] for code in kinds})
    options = ("--output-format", output_format, *(["--unsafe-fixes"] if unsafe else []))
    before = reported()
    assert set(before) == set(kinds)
    checked = shapefix("check", *(["--unsafe-fixes"] if unsafe else []))
    ran = shapefix("fix", *(["--apply"] if apply else []), *options)

    repaired = [code for code in before if code == SAFE or (code == UNSAFE and unsafe)]
    remaining = [code for code in before if code not in repaired]
    assert ("fixable with `shapefix fix" in checked.out) == bool({SAFE, UNSAFE} & set(kinds))
    assert checked.code == (1 if before else 0)
    assert ran.code == (1 if remaining or (repaired and not apply) else 0)
    assert reported() == (remaining if apply else before)
    assert (folder / "file_sf101.py").exists() == (SAFE in kinds)

    for_people = output_format in ("full", "concise")
    summary = (ran.out if for_people and apply else ran.err).splitlines()[-1]
    verb = "Repaired" if apply else "Would repair"
    assert (f"{verb} {counted(repaired)} in {counted(set(repaired), 'file')}" in summary) == bool(repaired)
    assert ("All checks passed." in summary) == (not before)
    assert ("No safe fixes." in summary) == (UNSAFE in remaining and not repaired)
    assert ("No automatic fixes." in summary) == (set(remaining) == {NO_FIX} and not repaired)
    assert ("1 unsafe fix available (--unsafe-fixes)." in summary) == (UNSAFE in remaining)
    left = [f"{counted(each, kind)}" for kind, each in by_severity(remaining).items() if each]
    assert (f"{', '.join(left)} remain" in summary) == bool(remaining)
    if output_format == "json":
        assert [each["code"] for each in json.loads(ran.out)] == (remaining if apply else before)
    if output_format == "github":
        assert ran.out.count("title=shapefix") == len(remaining if apply else before)


def reported() -> list[str]:
    """Return the codes that check reports, in its order."""
    return [each["code"] for each in json.loads(shapefix("check", "--output-format", "json").out)]


def counted(found: Collection[str], what: str = "finding") -> str:
    return f"{len(found)} {what}{'' if len(found) == 1 else 's'}"


def by_severity(found: list[str]) -> dict[str, list[str]]:
    return {
        "error": [code for code in found if code != UNSAFE],
        "warning": [code for code in found if code == UNSAFE],
    }


def test_the_nearest_configuration_decides_what_check_calls_fixable(project: Project) -> None:
    folder = project(bold__mix=SWAPPED, mix=SWAPPED)
    (folder / "bold" / "shapefix.toml").write_text("unsafe-fixes = true\n")
    assert shapefix("check").out.endswith("1 fixable with `shapefix fix` (1 more with --unsafe-fixes).\n")
    assert shapefix("fix").err == (
        "Would repair 1 finding in 1 file with --apply. 1 unsafe fix available (--unsafe-fixes). "
        "1 warning remains.\n"
    )


def test_a_fix_outside_the_given_paths_is_offered_for_its_file(project: Project) -> None:
    project(model=MODEL, train=CALLER)
    assert shapefix("check", "train.py").out.endswith(
        "Found 1 error. 1 fixable with `shapefix fix model.py`.\n"
    )
    assert shapefix("fix", "train.py").err == (
        "not changed, because outside the given paths: model.py\n"
        "Nothing to repair under the given paths. 1 error remains.\n"
    )


def test_nothing_to_repair_where_nothing_was_checked(project: Project) -> None:
    project(plain="x = 1\n")
    assert shapefix("fix").err == "Checked 1 file; none uses torch.\n"


def test_json_output_holds_what_remains_only(project: Project) -> None:
    project(train=VIEW, mix=SWAPPED)
    ran = shapefix("fix", "--apply", "--output-format", "json")
    assert [finding["code"] for finding in json.loads(ran.out)] == ["SF103"]
    assert "train.py: repaired 1 x SF101" in ran.err


def test_a_broken_file_does_not_keep_others_from_being_repaired(project: Project) -> None:
    folder = project(broken="import torch\ndef f(:\n", train=VIEW)
    ran = shapefix("fix", "--apply")
    assert ran.code == 2
    assert (folder / "train.py").read_text() == REPAIRED_VIEW
    assert (folder / "broken.py").read_text() == "import torch\ndef f(:\n"
    assert "broken.py:2:7: cannot be parsed" in ran.out


def test_a_file_that_cannot_be_written_is_one_line(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(train=VIEW, zebra=VIEW)
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "zebra" not in str(path) and real(path, mode))
    ran = shapefix("fix", "--apply")
    assert ran.code == 2
    assert "error: zebra.py: cannot be written: permission denied\n" in ran.out
    assert (folder / "train.py").read_text() == REPAIRED_VIEW
    assert (folder / "zebra.py").read_text() == VIEW


def test_standard_input_becomes_standard_output() -> None:
    data = VIEW.replace("\n", "\r\n").encode("utf-8-sig")
    ran = program("fix", "-", stdin=data)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert ran.stdout == REPAIRED_VIEW.replace("\n", "\r\n").encode("utf-8-sig")


def test_standard_input_that_cannot_be_parsed_comes_out_unchanged() -> None:
    ran = program("fix", "-", stdin=b"import torch\ndef f(:\n")
    assert (ran.returncode, ran.stdout) == (2, b"import torch\ndef f(:\n")
    assert b"cannot be parsed" in ran.stderr


def test_links_out_of_the_tree_are_not_checked_and_not_written(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = project(train=CLEAN)
    target = tmp_path_factory.mktemp("elsewhere") / "other.py"
    target.write_text(VIEW)
    (folder / "link.py").symlink_to(target)
    skipped = f"skipped link.py: symbolic link to {target}, outside the given folders\n"
    for command in (("check",), ("fix",), ("fix", "--apply", ".")):
        ran = shapefix(*command)
        assert (ran.code, skipped in ran.err) == (0, True)
    assert target.read_text() == VIEW
    listed = shapefix("check", "--show-files")
    assert (listed.out, listed.err) == (f"{folder}/train.py\n", skipped)
    assert shapefix("check", "-q").err == ""

    (folder / "again.py").symlink_to(target)
    assert shapefix("check").err == (
        "skipped 2 symbolic links to files outside the given folders (--verbose lists them)\n"
    )
    assert skipped in shapefix("check", "--verbose").err

    assert shapefix("fix", "--apply", "link.py").code == 0
    assert target.read_text() == REPAIRED_VIEW
    assert (folder / "link.py").is_symlink()


@pytest.mark.parametrize("unsafe", [[], ["--unsafe-fixes"]], ids=["safe", "unsafe"])
@pytest.mark.parametrize("selected", [["--select", "SF101"], ["--select", "SF103"], ["--ignore", "SF101"]])
@pytest.mark.parametrize("names", [["both"], ["view", "swapped", "broken"]])
def test_check_counts_what_fix_would_repair(
    project: Project, names: list[str], selected: list[str], unsafe: list[str]
) -> None:
    texts = {"view": VIEW, "swapped": SWAPPED, "both": VIEW + SWAPPED, "broken": "def f(:\n"}
    project(**{name: texts[name] for name in names})
    checked, fixed = shapefix("check", *selected, *unsafe), shapefix("fix", *selected, *unsafe)
    assert checked.code == fixed.code
    words = " ".join(checked.out.split())
    (found,) = re.findall(r"(\d+) fixable with `shapefix fix(?: --unsafe-fixes)?`", words) or ["0"]
    needs_option = "`shapefix fix --unsafe-fixes`" in words and not unsafe
    more = re.findall(r"\((\d+) more with --unsafe-fixes\)", words) or ["0"]
    safe, others = ("0", found) if needs_option else (found, more[0])
    assert re.findall(r"Would repair (\d+) finding", fixed.err) == [safe] * (safe != "0")
    assert re.findall(r"(\d+) unsafe fix", fixed.err) == [others] * (others != "0")


def test_a_file_that_cannot_be_parsed_is_counted_as_by_check(project: Project) -> None:
    project(broken="def f(:\n", clean=CLEAN)
    checked, fixed = shapefix("check"), shapefix("fix")
    assert (checked.code, fixed.code) == (2, 2)
    assert checked.out.endswith("\n1 file checked, 1 error.\n")
    assert fixed.err.endswith("\n1 file checked, 1 error.\n")


def test_a_file_without_torch_is_repaired_for_the_script_that_imports_it(project: Project) -> None:
    folder = project(
        parts="import numpy as np\n\n\ndef steps():\n    return np.zeros(3, np.int), np.zeros(3, np.float)\n",
        train="import torch\nfrom parts import steps\n\nprint(torch.tensor(steps()[0]))\n",
    )
    assert shapefix("fix", "--apply").code == 0
    assert (folder / "parts.py").read_text().endswith("return np.zeros(3, int), np.zeros(3, float)\n")
