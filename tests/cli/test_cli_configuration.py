"""Options and keys that override each other: `--config`, `extend`, excludes, ignores and variables."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from command_line import (  # noqa: F401
    SWAPPED,
    VIEW,
    Project,
    project_in_a_folder,
    shapefix,
)
from ruff_program import ruff

# Ours, and that of ruff: `RULE` is SF101 for shapefix and F401 for ruff, and both are in each file.
CASES = {
    "exclude a folder": (["--exclude", "src"], ""),
    "exclude a file given by name": (["--exclude", "src", "src/a.py"], ""),
    "exclude by force": (["--exclude", "src", "--force-exclude", "src/a.py", "tests/b.py"], ""),
    "the option replaces the key": (["--exclude", "tests"], "exclude = ['src']"),
    "the option adds to the key": (["--extend-exclude", "tests"], "exclude = ['src']"),
    "the options add to each other": (["--exclude", "src", "--extend-exclude", "tests"], ""),
    "several patterns": (["--exclude", "src,tests"], ""),
    "a pattern with a path": (["--exclude", "src/*.py"], ""),
    "ignores for a pattern": (["--per-file-ignores", "tests/*:RULE"], ""),
    "ignores for two patterns": (["--per-file-ignores", "tests/*:RULE,src/*:RULE"], ""),
    "the option replaces the table": (
        ["--per-file-ignores", "src/*:RULE"],
        "LINTper-file-ignores = {'tests/*' = ['RULE']}",
    ),
    "the option adds to the table": (
        ["--extend-per-file-ignores", "src/*:RULE"],
        "LINTper-file-ignores = {'tests/*' = ['RULE']}",
    ),
    "a key in an option": (["--config", "LINTignore = ['RULE']"], ""),
    "a key in an option and isolated": (["--config", "LINTignore = ['RULE']", "--isolated"], ""),
    "an option over a key in an option": (["--config", "LINTignore = ['RULE']", "--select", "RULE"], ""),
    "a key in an option over the file": (["--config", "exclude = ['src']"], "exclude = ['tests']"),
    "keys from a file and from an option": (
        ["--config", "other.toml", "--config", "extend-exclude = ['tests']"],
        "",
    ),
    "two files": (["--config", "other.toml", "--config", "other.toml"], ""),
    "a file and isolated": (["--config", "other.toml", "--isolated"], ""),
    "a missing file": (["--config", "missing.toml"], ""),
    "an unknown key": (["--config", "bogus = 1"], ""),
    "not TOML": (["--config", "ignore = ["], ""),
    "extend in an option": (["--config", "extend = 'other.toml'"], ""),
    "an ignore without a rule": (["--per-file-ignores", "tests/*"], ""),
    "an ignore of an unknown rule": (["--per-file-ignores", "tests/*:XX1"], ""),
    "extend": ([], "extend = 'other.toml'"),
    "extend overridden": ([], "extend = 'other.toml'\nexclude = ['tests']"),
    "extend in a circle": ([], "extend = 'CONFIGURATION'"),
    "extend a missing file": ([], "extend = 'missing.toml'"),
    "ignore in the extended file": ([], "extend = 'ignoring.toml'"),
    "select over an ignore of the extended file": ([], "extend = 'ignoring.toml'\nLINTselect = ['RULE']"),
    "extend-select over an ignore of the extended file": (
        [],
        "extend = 'ignoring.toml'\nLINTextend-select = ['RULE']",
    ),
    "force-exclude as a key": (["--exclude", "src", "src/a.py"], "force-exclude = true"),
    "no-force-exclude over the key": (
        ["--exclude", "src", "--no-force-exclude", "src/a.py"],
        "force-exclude = true",
    ),
}


def _reported(output: str) -> set[str]:
    return set(re.findall(r"^([\w/]+\.py):\d+", output, re.MULTILINE))


@pytest.mark.parametrize("case", CASES)
def test_what_ruff_reports_is_what_shapefix_reports(project: Project, case: str) -> None:
    options, keys = CASES[case]
    folder = project(src__a=VIEW + "import os\n", tests__b=VIEW + "import os\n")

    def written(text: str, rule: str, lint: str, name: str) -> str:
        return text.replace("RULE", rule).replace("LINT", lint).replace("CONFIGURATION", name)

    results = []
    for name, rule, lint in (("ruff.toml", "F401", "lint."), ("shapefix.toml", "SF101", "")):
        (folder / "other.toml").write_text("exclude = ['src']\n")
        (folder / "ignoring.toml").write_text(f"{lint}ignore = ['{rule}']\n")
        (folder / name).write_text(written(keys, rule, lint, name))
        given = ["check", "--no-cache", "--output-format", "concise"]
        given += [written(option, rule, lint, name) for option in options]
        if rule == "F401":
            ran = ruff(*given)
            results.append((ran.returncode, _reported(ran.stdout)))
        else:
            ours = shapefix(*given)
            results.append((ours.code, _reported(ours.out)))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "selct = []"], "--config: unknown key 'selct'; did you mean 'select'?"),
        (
            ["--config", "lint.select = ['SF1']"],
            "--config: there is no table 'lint'; its keys are at the top",
        ),
        (["--config", "select = ["], "--config: 'select = [' is neither a file nor a setting like "),
        (["--config", "select = 'SF1'"], "--config: select must be a list of strings, not the string 'SF1'"),
        (["--config", "select = ['SF999']"], "--config: select: unknown rule 'SF999'"),
        (["--config", "extend = 'a.toml'"], "--config: extend is a key of files; `--config FILE` names one"),
        (["--config", "output-format = 'xml'"], "--config: output-format: unknown format 'xml'"),
        (["--config", "a.toml", "--config", "b.toml"], "--config accepts only one file"),
        (["--per-file-ignores", "tests/*"], "'tests/*' is not PATTERN:RULE, for example tests/*:SF105"),
        (["--fixable", "SF999"], "--fixable: unknown rule 'SF999'"),
        (["--config", "unfixable = ['SF999']"], "--config: unfixable: unknown rule 'SF999'"),
        (["--per-file-ignores", "a.py:SF999"], "--per-file-ignores: unknown rule 'SF999'"),
        (["--exclude", "{" * 30 + "}"], "--exclude: the braces of "),
        (
            ["--statistics", "--output-format", "sarif"],
            "--statistics has the formats full, concise, json, but",
        ),
        (["--diff", "--show-fixes"], "--diff and --show-fixes cannot be combined"),
        (["--output-file", "train.py/report.txt"], "train.py/report.txt: cannot be written: "),
    ],
)
def test_unusable_options_get_one_line(project: Project, options: list[str], message: str) -> None:
    project(train=VIEW)
    ran = shapefix("check", *options)
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert message in line


def test_patterns_of_an_extended_file_are_relative_to_it(project: Project) -> None:
    folder = project(team__one__a=VIEW, team__one__b=VIEW, other__c=VIEW)
    (folder / "base.toml").write_text(
        "extend-exclude = ['team/one/a.py']\nper-file-ignores = {'team/one/b.py' = ['SF101']}\n"
    )
    (folder / "team" / "shapefix.toml").write_text("extend = '../base.toml'\n")
    assert _reported(shapefix("check", "--output-format", "concise").out) == {"other/c.py"}
    ran = shapefix("check", "--show-settings", "team")
    assert f"extend = {folder}/base.toml\n" in ran.out
    assert "per-file-ignores = team/one/b.py: SF101\n" in ran.out


def test_an_error_in_an_extended_file_fails_for_its_files_only(project: Project) -> None:
    folder = project(team__a=VIEW, other__c=VIEW)
    (folder / "base.toml").write_text("selct = []\n")
    (folder / "team" / "shapefix.toml").write_text("extend = '../base.toml'\n")
    ran = shapefix("check", "--output-format", "concise")
    assert (ran.code, _reported(ran.out)) == (2, {"other/c.py"})
    assert f"team/shapefix.toml: {folder}/base.toml: unknown key 'selct'" in ran.out


def test_a_long_chain_of_files_ends(project: Project) -> None:
    folder = project(train=VIEW)
    for number in range(40):
        (folder / f"{number}.toml").write_text(f"extend = '{number + 1}.toml'\n")
    ran = shapefix("check", "--config", "0.toml")
    assert ran.code == 2
    assert "extend: " in ran.err


VARIABLES = [
    ({"OUTPUT_FORMAT": "concise"}, []),
    ({"OUTPUT_FORMAT": "pylint"}, ["--output-format", "concise"]),
    ({"OUTPUT_FORMAT": "bogus"}, []),
    ({"OUTPUT_FILE": "report.txt", "OUTPUT_FORMAT": "concise"}, []),
    ({"OUTPUT_FILE": "new/folder/report.txt"}, ["-o", "given.txt", "--output-format", "concise"]),
    ({"CACHE_DIR": "results"}, []),
    ({"CACHE_DIR": "results"}, ["--cache-dir", "given"]),
    ({"NO_CACHE": "true", "CACHE_DIR": "results"}, []),
    ({"NO_CACHE": "false", "CACHE_DIR": "results"}, []),
    ({"NO_CACHE": "bogus"}, []),
]


@pytest.mark.parametrize(("variables", "options"), VARIABLES, ids=str)
def test_variables_are_those_of_ruff(
    project: Project, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: list[str]
) -> None:
    folder = project(train=VIEW + "import os\n")
    theirs = ruff("check", *options, **{f"RUFF_{name}": value for name, value in variables.items()})

    def made() -> set[str]:
        # ruff writes its own .gitignore and CACHEDIR.TAG, and we a folder of our own: the names count.
        return {path.name for path in folder.iterdir() if not path.name.startswith(".")}

    def reports() -> list[set[str]]:
        return [_reported(path.read_text()) for path in sorted(folder.rglob("*.txt"))]

    expected = (theirs.returncode, _reported(theirs.stdout), made(), reports())
    for name in made() - {"train.py"}:
        path = folder / name
        path.unlink() if path.is_file() else shutil.rmtree(path)
    for name, value in variables.items():
        monkeypatch.setenv(f"SHAPEFIX_{name}", value)
    ours = shapefix("check", *options)
    assert (ours.code, _reported(ours.out), made(), reports()) == expected


def test_a_variable_overrides_the_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(train=VIEW)
    (folder / "shapefix.toml").write_text("output-format = 'json'\n")
    monkeypatch.setenv("SHAPEFIX_OUTPUT_FORMAT", "concise")
    assert shapefix("check").out.startswith("train.py:5:8: ")
    assert shapefix("fix").out.startswith("--- train.py\n")
    assert "SHAPEFIX_OUTPUT_FORMAT" in shapefix("check", "--help").out


def test_an_output_file_has_the_whole_report(project: Project) -> None:
    folder = project(train=VIEW)
    shown = shapefix("check")
    ran = shapefix("check", "-o", "deep/down/report.txt")
    assert (ran.code, ran.out, ran.err) == (1, "", shown.err)
    assert (folder / "deep" / "down" / "report.txt").read_text() == shown.out
    shapefix("check", "--output-file", "report.json", "--output-format", "json")
    assert json.loads((folder / "report.json").read_text())[0]["code"] == "SF101"
    ran = shapefix("check", "--fix", "-o", "report.txt")
    assert (ran.code, ran.out) == (0, "")
    assert (folder / "report.txt").read_text().startswith("train.py: repaired 1 x SF101\n")


def test_statistics_in_json_have_the_keys_of_ruff(project: Project) -> None:
    project(train=VIEW + "import os\n", mix=SWAPPED)
    (theirs,) = json.loads(ruff("check", "--no-cache", "--statistics", "--output-format", "json").stdout)
    ran = shapefix("check", "--statistics", "--output-format", "json")
    ours = json.loads(ran.out)
    assert ran.code == 1
    assert ours == [
        {"code": "SF101", "name": "view-across-stride-gap", "count": 1, "fixable": True, "fixable_count": 1},
        {"code": "SF103", "name": "view-as-transpose", "count": 1, "fixable": False, "fixable_count": 0},
    ]
    assert list(theirs) == list(ours[0])
    assert (
        json.loads(shapefix("check", "--statistics", "--output-format", "json", "--ignore", "SF1").out) == []
    )


def test_show_fixes_lists_repairs_of_a_quiet_run(project: Project) -> None:
    path = project(train=VIEW) / "train.py"
    for options, keys, listed in (
        (["-q"], "", False),
        (["-q", "--show-fixes"], "", True),
        (["-q"], "show-fixes = true", True),
        (["-q", "--no-show-fixes"], "show-fixes = true", False),
    ):
        path.write_text(VIEW)
        Path("shapefix.toml").write_text(keys)
        ran = shapefix("check", "--fix", *options)
        assert (ran.code, "train.py: repaired 1 x SF101" in ran.out) == (0, listed), options


def test_unfixable_findings_offer_no_fix(project: Project) -> None:
    folder = project(train=VIEW, src__other=VIEW)
    (folder / "src" / "shapefix.toml").write_text("unfixable = ['SF1']\n")
    ran = shapefix("check", "--output-format", "concise")
    assert "src/other.py:5:8: SF101 `shift" in ran.out
    assert "train.py:5:8: SF101 [*] `shift" in ran.out
    assert shapefix("fix").out.count("--- ") == 1
    assert shapefix("fix", "--unfixable", "SF101").out.count("--- ") == 0
    assert shapefix("fix", "--fixable", "SF101", "--unfixable", "SF1").out.count("--- ") == 2
