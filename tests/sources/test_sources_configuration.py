from __future__ import annotations

import re
from pathlib import Path

import pytest

from shapefix.sources.configuration import (
    Configuration,
    ConfigurationError,
    ConfigurationLayer,
    Configurations,
    read_configuration,
)
from shapefix.sources.configuration_keys import DEFAULT_EXCLUDE, KEYS, ConfigurationKey

EVERYTHING = """
select = ["SF1", "view-across-stride-gap"]
ignore = ["SF102"]
extend-select = ["SF103"]
exclude = ["old"]
extend-exclude = ["*_pb2.py"]
unsafe-fixes = true
output-format = "concise"
cache-dir = "../cache"
transformers-version = "4.57"
[per-file-ignores]
"tests/*" = ["SF101"]
"!src/**.py" = ["SF2"]
"""


def error_of(path: Path, text: str) -> str:
    path.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        Configurations().nearest(str(path.parent))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def layer_in(folder: Path, text: str) -> ConfigurationLayer:
    (folder / "shapefix.toml").write_text(text)
    (layer,) = Configurations().nearest(str(folder)).layers
    return layer


def test_every_key_is_read(tmp_path: Path) -> None:
    path = tmp_path / "shapefix.toml"
    assert layer_in(tmp_path, EVERYTHING) == ConfigurationLayer(
        source=f"{path}: ",
        root=str(tmp_path),
        path=str(path),
        select=("SF1", "view-across-stride-gap"),
        ignore=("SF102",),
        extend_select=("SF103",),
        exclude=("old",),
        extend_exclude=("*_pb2.py",),
        per_file_ignores=(("tests/*", ("SF101",)), ("!src/**.py", ("SF2",))),
        unsafe_fixes=True,
        output_format="concise",
        cache_dir=str(tmp_path.parent / "cache"),
        transformers_version="4.57",
    )


@pytest.mark.parametrize("key", [each for each in KEYS if each.name != "extend"], ids=lambda key: key.name)
def test_the_example_of_a_key_sets_it(tmp_path: Path, key: ConfigurationKey) -> None:
    unset = getattr(layer_in(tmp_path, ""), key.attribute)
    assert getattr(layer_in(tmp_path, key.example), key.attribute) != unset
    assert not unset


def ignored_in(configuration: Configuration, path: str) -> tuple[str, ...]:
    covering = (each.selectors for each in configuration.file_ignores if each.covers(path))
    return tuple(rule for selectors in covering for rule in selectors)


def test_per_file_ignores_follow_their_patterns(tmp_path: Path) -> None:
    (tmp_path / "shapefix.toml").write_text(EVERYTHING)
    configuration = Configurations().nearest(str(tmp_path))
    assert ignored_in(configuration, f"{tmp_path}/src/pkg/a.py") == ()
    assert ignored_in(configuration, f"{tmp_path}/tests/deep/a.py") == ("SF101", "SF2")
    assert ignored_in(configuration, f"{tmp_path}/setup.py") == ("SF2",)


def test_the_nearest_file_that_speaks_of_shapefix_holds(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.shapefix]\nignore = ['SF1']\n")
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.ruff]\n# not shapefix\n")
    (inner / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    configurations = Configurations()
    assert configurations.nearest(str(inner)).layers[0].ignore == ("SF1",)
    assert configurations.nearest(str(inner)).root == str(tmp_path)
    (inner / "pyproject.toml").write_text("[tool.shapefix]\n")
    assert Configurations().nearest(str(inner)).layers[0].ignore == ()
    (inner / "shapefix.toml").write_text("ignore = ['SF2']\n")
    assert Configurations().nearest(str(inner)).layers[0].ignore == ("SF2",)


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    configuration = Configurations(str(tmp_path)).nearest("/")
    assert configuration == Configuration(str(tmp_path))
    assert configuration.exclude == DEFAULT_EXCLUDE
    assert configuration.excludes(f"{tmp_path}/any/where/node_modules")


def test_a_broken_pyproject_of_somebody_else_is_none_of_our_business(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert Configurations(str(tmp_path)).nearest(str(tmp_path)).path is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("selct = []", "unknown key 'selct'; did you mean 'select'?"),
        ("per_file_ignores = {}", "unknown key 'per_file_ignores'; did you mean 'per-file-ignores'?"),
        ("line-length = 88", "unknown key 'line-length'; known keys are extend, select, ignore, "),
        ("select = 'SF1'", "select must be a list of strings, not the string 'SF1'"),
        ("ignore = ['SF1', 2]", "ignore must be a list of strings, not an integer"),
        ("unsafe-fixes = 1", "unsafe-fixes must be true or false, not an integer"),
        ("output-format = ['json']", "output-format must be a string, not a list"),
        ("cache-dir = 1979-05-27", "cache-dir must be a string, not a date or time"),
        ("transformers-version = 4.57", "transformers-version must be a string, not a float"),
        (
            "transformers-version = '4.x'",
            "transformers-version must be a version, like \"4.57\", not the string '4.x'",
        ),
        (
            "per-file-ignores = []",
            "per-file-ignores must be a table from patterns to lists of rules, not a list",
        ),
        (
            "per-file-ignores = {'a.py' = true}",
            "per-file-ignores.'a.py' must be a list of strings, not a boolean",
        ),
        ("select = [", "is not valid TOML: "),
        ("x = " + "[" * 5000, "is nested too deeply to be read"),
    ],
)
def test_what_cannot_be_used_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert error_of(tmp_path / "shapefix.toml", text).startswith(said)


def test_errors_name_the_table_of_a_pyproject(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    assert error_of(path, "[tool.shapefix]\nselct = []").startswith("[tool.shapefix]: unknown key 'selct'")
    assert error_of(path, "tool.shapefix = 3") == "[tool.shapefix] must be a table, not an integer"
    assert error_of(path, "[tool.shapefix\n").startswith("is not valid TOML")


def test_a_file_that_is_not_utf_8_is_said(tmp_path: Path) -> None:
    (tmp_path / "shapefix.toml").write_bytes(b"select = ['\xe9']")
    with pytest.raises(ConfigurationError, match="not valid UTF-8"):
        Configurations().nearest(str(tmp_path))


def test_a_file_without_permission_is_said(unprivileged: Path) -> None:
    (unprivileged / "shapefix.toml").touch(mode=0o000)
    with pytest.raises(ConfigurationError, match=r"shapefix\.toml: cannot be read: permission denied"):
        Configurations().nearest(str(unprivileged))


def test_a_named_file_must_say_something(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
    with pytest.raises(ConfigurationError, match=r"has no table \[tool.shapefix\]"):
        read_configuration(str(tmp_path / "pyproject.toml"))
    (tmp_path / "mine.toml").write_text("select = ['SF1']\n")
    assert read_configuration(str(tmp_path / "mine.toml")).layers[0].select == ("SF1",)
    with pytest.raises(ConfigurationError, match="no such file"):
        read_configuration(str(tmp_path / "other.toml"))


def test_the_manual_lists_every_key() -> None:
    page = Path(__file__).resolve().parents[2] / "shapefix" / "docs" / "configuration.md"
    rows = re.findall(r"^\| (`.*?`) \|", page.read_text("utf-8"), re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row)]
    assert sorted(listed) == sorted(key.name for key in KEYS)
