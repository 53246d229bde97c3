"""`shapefix check`, as somebody at a terminal or a program uses it."""

from __future__ import annotations

import gc
import json
import re
from pathlib import Path

import pytest
from command_line import CALLER, CLEAN, MODEL, SWAPPED, VIEW, Project, program, project_in_a_folder, shapefix  # noqa: F401


def concise(*arguments: str | Path) -> list[str]:
    return shapefix("check", "--output-format", "concise", *arguments).out.splitlines()


def codes(*arguments: str | Path) -> list[str]:
    return [line.split()[1] for line in concise(*arguments)]


def test_clean_files_exit_with_0(project: Project) -> None:
    project(train=CLEAN)
    ran = shapefix("check")
    assert (ran.code, ran.out, ran.err) == (0, "All checks passed.\n", "")


def test_checks_do_not_pass_where_nothing_was_checked(project: Project) -> None:
    project(plain="x = 1\n")
    for _ in ("analyzed", "from the cache"):
        assert shapefix("check").out == "Checked 1 file; none uses torch.\n"
    project(plain="def f(:")
    assert shapefix("check").out.endswith("\n\n0 files checked, 1 error.\n")


def test_a_finding_exits_with_1_and_shows_every_place(project: Project) -> None:
    project(train=VIEW)
    ran = shapefix("check")
    assert ran.code == 1
    assert "error[SF101]" in ran.out
    assert "--> train.py:5:8" in ran.out
    assert "sliced: [" in ran.out
    assert "sliced here" in shapefix("check", "--verbose").out
    assert "Found 1 error. 1 fixable with `shapefix fix`." in ran.out


def test_exit_zero(project: Project) -> None:
    project(train=VIEW)
    assert shapefix("check", "--exit-zero").code == 0


def test_exit_zero_does_not_hide_files_that_could_not_be_checked(project: Project) -> None:
    project(train="def f(:")
    assert shapefix("check", "--exit-zero").code == 2


def test_concise_is_path_row_column_code_message(project: Project) -> None:
    project(src__train=VIEW)
    (line,) = concise("src")
    assert line.startswith("src/train.py:5:8: SF101 [*] `shift.view(-1, 8)` fails: `shift` is not contiguous")


def test_json_is_a_list_like_that_of_ruff(project: Project) -> None:
    folder = project(train=VIEW)
    ran = shapefix("check", "--output-format", "json")
    (finding,) = json.loads(ran.out)
    assert finding["code"] == "SF101"
    assert finding["filename"] == str(folder / "train.py")
    assert finding["location"] == {"row": 5, "column": 8}
    assert finding["fix"]["applicability"] == "safe"
    assert [edit["content"] for edit in finding["fix"]["edits"]] == ["reshape"]


def test_github_annotations(project: Project) -> None:
    project(train=VIEW)
    ran = shapefix("check", "--output-format", "github")
    assert ran.out.startswith("::error title=shapefix (SF101),file=")


def test_statistics_count_by_rule(project: Project) -> None:
    project(one=VIEW, two=VIEW, three=SWAPPED)
    ran = shapefix("check", "--statistics")
    assert ran.code == 1
    assert [line.split()[:2] for line in ran.out.splitlines()] == [["2", "SF101"], ["1", "SF103"]]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], ["SF103", "SF101"]),
        (["--select", "SF101"], ["SF101"]),
        (["--select", "SF1", "--ignore", "SF101"], ["SF103"]),
        (["--select", "view-as-transpose"], ["SF103"]),
        (["--select", "SF101,SF103"], ["SF103", "SF101"]),
        (["--select", "SF101", "--extend-select", "SF103"], ["SF103", "SF101"]),
        (["--ignore", "SF1"], []),
        (["--select", "SF101", "--select", "SF103"], ["SF103", "SF101"]),
    ],
)
def test_rules_are_selected_by_code_prefix_and_name(
    project: Project, options: list[str], found: list[str]
) -> None:
    project(mix=SWAPPED, train=VIEW)
    assert codes(*options) == found


def test_configuration_selects_and_the_command_line_overrides(project: Project) -> None:
    folder = project(mix=SWAPPED, train=VIEW)
    (folder / "pyproject.toml").write_text('[tool.shapefix]\nselect = ["SF103"]\n')
    assert codes() == ["SF103"]
    assert codes("--select", "SF101") == ["SF101"]
    assert codes("--isolated") == ["SF103", "SF101"]


def test_a_configuration_can_be_named(project: Project) -> None:
    folder = project(mix=SWAPPED, train=VIEW)
    (folder / "strict.toml").write_text('ignore = ["SF103"]\nexclude = ["mix.py"]\n')
    assert codes("--config", "strict.toml") == ["SF101"]


def test_each_folder_has_its_own_configuration(project: Project) -> None:
    folder = project(a__train=VIEW, b__train=VIEW)
    (folder / "b" / "shapefix.toml").write_text('ignore = ["SF101"]\n')
    assert [line.split(":")[0] for line in concise()] == ["a/train.py"]


def test_per_file_ignores(project: Project) -> None:
    folder = project(tests__test_view=VIEW, train=VIEW)
    (folder / "shapefix.toml").write_text('[per-file-ignores]\n"tests/*" = ["SF101"]\n')
    assert [line.split(":")[0] for line in concise()] == ["train.py"]


def test_the_configuration_chooses_the_output_format(project: Project) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('output-format = "concise"\n')
    assert shapefix("check").out.startswith("train.py:5:8: SF101")


@pytest.mark.parametrize("comment", ["# noqa", "# noqa: SF101", "# shapefix: ignore[SF101]"])
def test_comments_silence(project: Project, comment: str) -> None:
    project(train=VIEW.replace("view(-1, 8)", f"view(-1, 8)  {comment}"))
    assert shapefix("check").code == 0


def test_a_comment_about_another_rule_does_not_silence(project: Project) -> None:
    project(train=VIEW.replace("view(-1, 8)", "view(-1, 8)  # noqa: SF103"))
    assert shapefix("check").code == 1


def test_a_finding_in_another_file_is_reported_for_the_script_that_causes_it(project: Project) -> None:
    project(model=MODEL, train=CALLER)
    (line,) = concise("train.py")
    assert line.startswith("model.py:5:23: SF101")
    assert codes("model.py") == ["SF101"]


def test_a_comment_silences_also_what_another_file_causes(project: Project) -> None:
    project(model=MODEL.replace("size(-1)))", "size(-1)))  # noqa"), train=CALLER)
    assert codes("train.py") == []


def test_a_finding_that_two_scripts_cause_is_reported_once(project: Project) -> None:
    project(model=MODEL, one=CALLER, two=CALLER)
    assert len(concise()) == 1


def test_findings_in_excluded_files_are_not_reported(project: Project) -> None:
    folder = project(vendor__model=MODEL, train=CALLER.replace("from model", "from vendor.model"))
    assert codes() == ["SF101"]
    (folder / "shapefix.toml").write_text('extend-exclude = ["vendor"]\n')
    assert codes() == []


def test_findings_are_ordered_by_place(project: Project) -> None:
    again = VIEW + "other = shift.view(20, 8)\n"
    project(b=again, a=VIEW)
    places = [line.split(": ")[0] for line in concise()]
    assert places == ["a.py:5:8", "b.py:5:8", "b.py:6:9"]


def test_gitignore_is_respected_and_named_files_are_read_all_the_same(project: Project) -> None:
    folder = project(train=VIEW, scratch=VIEW)
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("scratch.py\n")
    assert [line.split(":")[0] for line in concise()] == ["train.py"]
    assert len(concise("scratch.py")) == 1


def test_force_exclude_holds_for_named_files(project: Project) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text('exclude = ["train.py"]\n')
    assert len(concise("train.py")) == 1
    assert concise("--force-exclude", "train.py") == []


def test_unsafe_fixes_are_counted(project: Project) -> None:
    project(train=SWAPPED)
    assert "1 fixable with `shapefix fix --unsafe-fixes`" in shapefix("check").out
    assert "[*]" not in concise()[0]
    assert "[*]" in concise("--unsafe-fixes")[0]


def test_quiet_prints_findings_only(project: Project) -> None:
    project(train=VIEW)
    assert "fixable with" not in shapefix("check", "--quiet").out
    project(train=CLEAN)
    assert shapefix("check", "--quiet").out == ""


def test_an_empty_folder_is_clean_and_says_so(project: Project) -> None:
    project()
    ran = shapefix("check")
    assert ran.code == 0
    assert ran.err == "warning: no Python files found under the given paths\n"


def test_show_files(project: Project) -> None:
    folder = project(a=VIEW, b__c=CLEAN)
    ran = shapefix("check", "--show-files")
    assert (ran.code, ran.out.splitlines()) == (0, [str(folder / "a.py"), str(folder / "b" / "c.py")])


def test_show_settings(project: Project) -> None:
    folder = project(a=VIEW)
    (folder / "shapefix.toml").write_text('select = ["SF101"]\n')
    ran = shapefix("check", "--show-settings")
    assert f"# {folder / 'shapefix.toml'}\n" in ran.out
    assert "rules = SF101\n" in ran.out


@pytest.mark.parametrize("command", ["check", "fix"])
def test_a_version_of_transformers_that_is_none_is_one_line(project: Project, command: str) -> None:
    project(train=CLEAN)
    ran = shapefix(command, "--transformers-version", "latest")
    assert ran.code == 2
    assert ran.err == (
        "error: invalid value for '--transformers-version': 'latest' is not a version, for example 4.57 or 5 "
        f"(see `shapefix {command} --help`)\n"
    )


def test_the_command_line_sets_the_version_of_transformers_over_the_configuration_over_the_requirements(
    project: Project,
) -> None:
    folder = project(train=CLEAN, scripts__other=CLEAN)

    def version(*arguments: str) -> str:
        (line,) = re.findall("^transformers-version = (.*)$", shapefix("check", *arguments).out, re.MULTILINE)
        return str(line)

    assert version("--show-settings") == "newest"
    (folder / "requirements.txt").write_text("transformers<5\n")
    assert version("--show-settings") == "4.57"
    assert version("--show-settings", "scripts") == "4.57"
    (folder / "shapefix.toml").write_text('transformers-version = "4.40"\n')
    assert version("--show-settings") == "4.40"
    assert version("--show-settings", "--transformers-version", "5") == "5"
    (folder / "shapefix.toml").write_text('transformers-version = "new"\n')
    ran = shapefix("check")
    assert ran.code == 2
    assert ran.err == (
        f'error: {folder}/shapefix.toml: transformers-version must be a version, like "4.57", '
        "not the string 'new'\n"
    )


def test_verbose_says_what_was_looked_at(project: Project) -> None:
    project(train=VIEW, plain="x = 1\n")
    expected = "Checked 2 files (1 skipped: does not import torch or transformers)\n"
    assert shapefix("check", "--verbose").err == expected


def test_standard_input(project: Project) -> None:
    project()
    ran = program("check", "--output-format", "concise", "-", stdin=VIEW.encode())
    assert ran.returncode == 1
    assert ran.stdout.startswith(b"-:5:8: SF101")


def test_standard_input_has_the_name_and_the_neighbours_that_it_is_given(project: Project) -> None:
    folder = project(model=MODEL)
    (folder / "shapefix.toml").write_text('[per-file-ignores]\n"train.py" = ["SF103"]\n')
    ran = program(
        *("check", "--output-format", "concise", "--stdin-filename", "train.py", "-"),
        stdin=(CALLER + SWAPPED.replace("import torch\n", "")).encode(),
    )
    assert ran.stdout.startswith(b"model.py:5:23: SF101")
    assert b"SF103" not in ran.stdout
    assert not (folder / "train.py").exists()


def test_links_are_shown_as_they_were_given(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = project()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "train.py").write_text(VIEW)
    (folder / "link").symlink_to(elsewhere)
    assert concise("link")[0].startswith("link/train.py:5:8: ")


def test_the_british_spelling_of_color_is_accepted_but_not_shown(project: Project) -> None:
    project(train=VIEW)
    assert "\x1b[" in shapefix("check", "--colour", "always").out
    assert shapefix("check", "--colour", "always").out == shapefix("check", "--color", "always").out
    shown = shapefix("check", "--help").out
    assert "--color " in shown
    assert "--colour" not in shown


def test_no_garbage_is_collected_while_files_are_checked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The imports of the analysis alone would start many collections, each of them for nothing."""
    while_checking = []

    def observed(request: object) -> int:
        while_checking.append(gc.isenabled())
        return 0

    monkeypatch.setattr("shapefix.cli.check.check", observed)
    monkeypatch.setattr("shapefix.cli.fix.fix", observed)
    project(train="import torch\n")
    assert [shapefix("check", "train.py").code, shapefix("fix", "train.py").code] == [0, 0]
    assert while_checking == [False, False]
    assert gc.isenabled()


def test_a_copied_repository_of_a_library_is_named_and_not_checked(project: Project) -> None:
    folder = project(train=CLEAN)
    (folder / "hf/transformers").mkdir(parents=True, exist_ok=True)
    (folder / "hf/transformers/__init__.py").write_text(VIEW)
    (folder / "hf/setup.py").write_text('setup(name="transformers")\n')
    skipped = "skipped hf: a copy of transformers (`shapefix check hf` checks it)\n"
    assert shapefix("check").err == skipped
    assert shapefix("check", "-q").err == ""
    assert "SF101" in shapefix("check", "hf").out
    listed = shapefix("check", "--show-files")
    assert (listed.out, listed.err) == (f"{folder}/train.py\n", skipped)
