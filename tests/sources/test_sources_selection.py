from __future__ import annotations

import pytest

from shapefix.diagnostics import Severity
from shapefix.sources.configuration import Configuration, ConfigurationError, ConfigurationLayer
from shapefix.sources.selection import Selection, covered, selected

RULES = [
    ("SF101", "view-across-stride-gap", Severity.ERROR),
    ("SF102", "view-of-runtime-layout", Severity.INFO),
    ("SF103", "view-as-transpose", Severity.WARNING),
    ("SF110", "expanded-write", Severity.ERROR),
    ("SF201", "labels-alias", Severity.ERROR),
]


def chosen(*layers: Selection) -> list[str]:
    return sorted(selected(RULES, *layers))


def test_by_default_errors_and_warnings_are_on() -> None:
    assert chosen() == ["SF101", "SF103", "SF110", "SF201"]
    assert chosen(Selection(), Selection()) == chosen()


@pytest.mark.parametrize(
    ("select", "codes"),
    [
        (["SF101"], ["SF101"]),
        (["view-as-transpose", "SF2"], ["SF103", "SF201"]),
        (["SF1"], ["SF101", "SF103", "SF110"]),
        (["SF10"], ["SF101", "SF103"]),
        (["SF"], ["SF101", "SF103", "SF110", "SF201"]),
        (["SF102"], ["SF102"]),
        (["view-of-runtime-layout"], ["SF102"]),
        (["SF1", "SF102"], ["SF101", "SF102", "SF103", "SF110"]),
        (["ALL"], ["SF101", "SF102", "SF103", "SF110", "SF201"]),
        ([], []),
    ],
)
def test_selectors_choose(select: list[str], codes: list[str]) -> None:
    assert chosen(Selection(select=tuple(select))) == codes


def test_extend_select_adds_to_what_is_on() -> None:
    assert chosen(Selection(extend_select=("SF102",))) == ["SF101", "SF102", "SF103", "SF110", "SF201"]
    assert chosen(Selection(select=("SF2",), extend_select=("SF102",))) == ["SF102", "SF201"]


def test_the_more_specific_selector_wins() -> None:
    assert chosen(Selection(ignore=("SF1",))) == ["SF201"]
    assert chosen(Selection(select=("SF101",), ignore=("SF1",))) == ["SF101"]
    assert chosen(Selection(select=("SF1",), ignore=("SF10",))) == ["SF110"]
    assert chosen(Selection(select=("SF10",), ignore=("SF1",))) == ["SF101", "SF103"]
    assert chosen(Selection(select=("ALL",), ignore=("SF1", "labels-alias"))) == []
    assert chosen(Selection(select=("SF101", "SF103"), ignore=("SF101",))) == ["SF103"]
    assert chosen(Selection(ignore=("ALL",), extend_select=("SF2",))) == ["SF201"]


def test_the_command_line_goes_before_the_file() -> None:
    file = Selection(select=("SF1",), ignore=("SF101",))
    assert chosen(file, Selection()) == ["SF103", "SF110"]
    assert chosen(file, Selection(select=("SF101",))) == ["SF101"]
    assert chosen(file, Selection(extend_select=("SF2",))) == ["SF103", "SF110", "SF201"]
    assert chosen(file, Selection(ignore=("SF11",))) == ["SF103"]
    assert chosen(file, Selection(extend_select=("SF10",))) == ["SF101", "SF103", "SF110"]


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        ("SF999", "--select: unknown rule 'SF999'"),
        ("sf101", "did you mean 'SF101'?"),
        ("view-across-stride-gaps", "did you mean 'view-across-stride-gap'?"),
        ("all", "did you mean 'ALL'?"),
        ("E501", "'E501' is not a shapefix rule"),
        ("S", "unknown rule 'S'"),
        ("", "unknown rule ''"),
    ],
)
def test_a_selector_that_names_no_rule_is_said(selector: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        chosen(Selection(select=(selector,)))
    assert said in str(caught.value)


def test_errors_say_where_the_selector_was_written() -> None:
    path = "/p/shapefix.toml"
    layers = (ConfigurationLayer(f"{path}: ", "/p", path, ignore=("SF777",)),)
    (layer,) = Selection.layers(Configuration("/p", path, layers))
    with pytest.raises(ConfigurationError, match=r"^/p/shapefix.toml: ignore: unknown rule 'SF777'"):
        chosen(layer)


def test_per_file_ignores_cover_info_too() -> None:
    assert covered(RULES, ["SF10"], "per-file-ignores") == {"SF101", "SF102", "SF103"}
    with pytest.raises(ConfigurationError, match="per-file-ignores: unknown rule"):
        covered(RULES, ["SFX"], "per-file-ignores")
