"""`shapefix config` with its JSON schema, `shapefix rule`, and `shapefix clean`."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from command_line import CLEAN, VIEW, Project, project_in_a_folder, shapefix  # noqa: F401
from jsonschema import Draft7Validator
from ruff_program import ruff

from shapefix.rulebook.pages import pages
from shapefix.sources.configuration import ConfigurationError, read_configuration
from shapefix.sources.configuration_keys import KEYS

NAMES = [key.name for key in KEYS]


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    document = json.loads(shapefix("config", "--output-format", "schema").out)
    assert isinstance(document, dict)
    return document


def test_the_keys_are_listed_and_described() -> None:
    assert shapefix("config").out.splitlines() == NAMES
    documents = json.loads(shapefix("config", "--output-format", "json").out)
    assert list(documents) == NAMES
    for key in KEYS:
        shown = shapefix("config", key.name)
        assert shown.code == 0
        assert key.example in shown.out
        assert json.loads(shapefix("config", key.name, "--output-format", "json").out) == documents[key.name]
        assert json.loads(documents[key.name]["default"]) == key.default


def test_the_documentation_has_the_keys_of_ruff() -> None:
    theirs = json.loads(ruff("config", "exclude", "--output-format", "json").stdout)
    ours = json.loads(shapefix("config", "exclude", "--output-format", "json").out)
    assert ours.keys() <= theirs.keys()
    assert ruff("config", "bogus").returncode == shapefix("config", "bogus").code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["exlude"], "unknown key 'exlude'; did you mean 'exclude'?"),
        (["exclude", "--output-format", "schema"], "the schema is about all keys"),
        (["exclude", "--apply"], "--apply is for `shapefix config ruff`"),
    ],
)
def test_unusable_arguments_get_one_line(arguments: list[str], message: str) -> None:
    ran = shapefix("config", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_the_schema_has_the_form_of_schemastore(schema: dict[str, Any]) -> None:
    Draft7Validator.check_schema(schema)
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert re.fullmatch(r"https://json\.schemastore\.org/\w+\.json", schema["$id"])
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == sorted(NAMES)
    for name, each in schema["properties"].items():
        assert each["description"][-1] == ".", name
        if "default" in each:
            assert Draft7Validator(schema).is_valid({name: each["default"]}), name


ACCEPTED = [
    *(key.example for key in KEYS if key.name != "extend"),
    "select = ['ALL', 'SF', 'SF1', 'SF101', 'ragged-labels']",
    "exclude = []",
    "per-file-ignores = {}",
]
REFUSED = [
    "selct = []",
    "select = 'SF1'",
    "select = [1]",
    "select = ['ragged-lables']",
    "preview = 1",
    "exclude = {}",
    "force-exclude = 'yes'",
    "per-file-ignores = []",
    "per-file-ignores = {'a.py' = 'SF1'}",
    "output-format = 1",
    "output-format = 'xml'",
    "cache-dir = true",
    "transformers-version = 4.57",
    "transformers-version = 'newest'",
    "signatures = ['x']",
    "signatures = {'mylib.f' = 1}",
]


@pytest.mark.parametrize(
    ("text", "accepted"), [*((text, True) for text in ACCEPTED), *((text, False) for text in REFUSED)]
)
def test_the_schema_accepts_what_shapefix_accepts(
    project: Project, schema: dict[str, Any], text: str, accepted: bool
) -> None:
    path = project(train=CLEAN) / "shapefix.toml"
    path.write_text(text)
    assert Draft7Validator(schema).is_valid(tomllib.loads(text)) is accepted
    assert (shapefix("check", "--no-cache").code == 0) is accepted


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_both_refuse_a_value_of_another_type(tmp_path: Path, schema: dict[str, Any], key: Any) -> None:
    path = tmp_path / "shapefix.toml"
    path.write_text(f"{key.name} = 1.5")
    assert not Draft7Validator(schema).is_valid({key.name: 1.5})
    with pytest.raises(ConfigurationError, match="must be"):
        read_configuration(str(path))


RUFF_FILES = {
    "pyproject.toml": [
        "[tool.ruff]\nline-length = 88\n",
        "[tool.ruff]\nline-length = 88\n\n[tool.ruff.lint]  # rules\nselect = ['RUF100']\n\n[tool.black]\n",
        "[tool.ruff.lint]\nexternal = ['V101']\n",
        "[tool.ruff.lint]\nexternal = [\n    'V101',  # vulture\n]\n[tool.other]\nexternal = ['a']\n",
        "[tool.other]\nexternal = ['a']\n[tool.ruff.lint]\nexternal = []\n",
        "[tool.ruff]\nlint.select = ['RUF100']\nsrc = ['a']\n",
        "[tool.ruff]\nlint = { select = ['RUF100'], external = ['V1'] }\n",
        "[tool.ruff.lint.isort]\ncombine-as-imports = true\n",
        "[tool.ruff]\r\nline-length = 88\r\n",
        "[project]\nname = 'mine'\n",
        "",
    ],
    "ruff.toml": [
        "",
        "line-length = 88\n[lint]\nselect = ['RUF100']\n",
        "lint.select = ['RUF100']\n[format]\nquote-style = 'single'\n",
        "line-length = 88",
    ],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in RUFF_FILES.items() for text in texts]
)
def test_ruff_keeps_our_comments_with_the_setting(project: Project, name: str, text: str) -> None:
    folder = project(train=VIEW.replace("-1, 8)", "-1, 8)  # noqa: SF101"))
    (folder / name).write_bytes(text.encode())
    check = ("check", "--no-cache", "--extend-select", "RUF100,RUF102", "--output-format", "concise")
    assert "RUF102" in ruff(*check).stdout
    shown = shapefix("config", "ruff")
    assert shown.code == 0
    assert 'external = ["SF"]\n' in shown.out
    assert (folder / name).read_bytes() == text.encode()
    written = shapefix("config", "ruff", "--apply")
    assert (written.code, written.out) == (0, "")
    assert ruff(*check).returncode == 0
    rest = (folder / name).read_bytes().decode()
    assert all(line in rest.splitlines() for line in text.splitlines() if "external" not in line)
    again = shapefix("config", "ruff", "--apply")
    assert (again.code, again.out) == (0, "")
    assert again.err.endswith(f"{name} has the setting already.\n")


def test_a_file_that_cannot_be_edited_stays(project: Project) -> None:
    path = project() / "ruff.toml"
    for text in ("lint = {}\n", "lint = {select = ['RUF100']}\n"):
        path.write_text(text)
        ran = shapefix("config", "ruff", "--apply")
        assert (ran.code, path.read_text()) == (2, text)
        assert "cannot be edited automatically" in ran.err
    path.write_text("lint = [")
    assert "ruff.toml: is not valid TOML" in shapefix("config", "ruff").err


def test_rule_is_explain() -> None:
    assert shapefix("rule", "SF101") == shapefix("explain", "SF101")
    assert shapefix("rule", "SF10").out == shapefix("explain", "SF10").out
    assert shapefix("rule", "SF1O1").err == shapefix("explain", "SF1O1").err
    assert shapefix("rule").err == "error: missing argument 'RULE' (see `shapefix rule --help`)\n"
    assert shapefix("rule", "SF101", "--all").code == ruff("rule", "F401", "--all").returncode == 2


def test_rules_are_explained_in_json() -> None:
    rule = json.loads(shapefix("rule", "sf101", "--output-format", "json").out)
    theirs = json.loads(ruff("rule", "F401", "--output-format", "json").stdout)
    assert {"name", "code", "summary", "fix", "explanation"} <= rule.keys() & theirs.keys()
    assert rule["explanation"] == shapefix("rule", "SF101").out
    several = json.loads(shapefix("rule", "SF10", "--output-format", "json").out)
    assert [each["code"] for each in several] == ["SF101", "SF102", "SF103", "SF104", "SF105", "SF106"]
    every = json.loads(shapefix("rule", "--all", "--output-format", "json").out)
    assert [each["code"] for each in every] == [page.code for page in pages()]
    assert several == [each for each in every if each["code"].startswith("SF10")]
    text = shapefix("rule", "--all").out
    assert re.findall(r"^# [\w-]+ \((SF\d+)\)$", text, re.MULTILINE) == [page.code for page in pages()]


def test_clean_deletes_the_results_of_this_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(one__train=VIEW, two__train=VIEW, keep__other=VIEW)
    for name in ("one", "two"):
        (folder / name / "shapefix.toml").write_text(f"cache-dir = '{'results' if name == 'one' else '.'}'\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "user"))
    shapefix("check")
    results = [path for path in (folder / "user" / "shapefix").rglob("*") if path.is_file()]
    assert len(results) >= 2
    assert (folder / "one" / "results").is_dir()
    (folder / "one" / "results" / "mine.txt").write_text("kept")
    monkeypatch.chdir(folder / "one")
    ran = shapefix("clean")
    assert (ran.code, ran.out, ran.err) == (0, "", f"Removed 1 result in {folder}/one/results\n")
    assert [path.name for path in (folder / "one" / "results").iterdir()] == ["mine.txt"]
    monkeypatch.chdir(folder)
    ran = shapefix("clean")
    assert ran.code == 0
    assert ran.err.startswith(f"Removed 1 result in {folder}/user/shapefix/")
    assert [path.name for path in (folder / "user" / "shapefix").rglob("*")] == ["key"]
    assert sorted(path.name for path in (folder / "two").iterdir()) == ["shapefix.toml", "train.py"]
    assert shapefix("clean").err == ""


def test_clean_takes_the_folder_of_the_option(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(train=VIEW)
    monkeypatch.setenv("SHAPEFIX_CACHE_DIR", "results")
    shapefix("check")
    assert (folder / "results").is_dir()
    assert shapefix("clean").err == f"Removed 1 result in {folder}/results\n"
    assert not (folder / "results").exists()
