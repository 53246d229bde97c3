"""The output formats of every command. A format is one line here and one module with its renderer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, ParamSpec, TypeAlias, cast

from shapefix.light_dataclasses import dataclass

if TYPE_CHECKING:
    from shapefix.cli.probe_output import ProbeResult
    from shapefix.diagnostics import Diagnostic, Failure
    from shapefix.report.view import View
    from shapefix.rulebook.pages import Page
    from shapefix.sizes.listings import ShapeListing

Rendered = ParamSpec("Rendered")
"""What a renderer takes: the results to show, and the view last."""


@dataclass(frozen=True)
class OutputFormat(Generic[Rendered]):
    """An output format. Its renderer, `module:function`, is imported on first use to keep start-up fast.

    A renderer returns pieces of text, newlines included, that are written one after the other. for_people is
    true if people read the output: progress messages may then go to the same stream. lists_unchecked is true
    if the output has the places that could not be checked.
    """

    name: str
    renderer: str
    for_people: bool = False
    lists_unchecked: bool = False

    def render(self, *results: Rendered.args, **options: Rendered.kwargs) -> Iterable[str]:
        """Call the renderer."""
        return self._function()(*results, **options)

    def _function(self) -> Callable[Rendered, Iterable[str]]:
        module, _, function = self.renderer.partition(":")
        return cast("Callable[Rendered, Iterable[str]]", getattr(import_module(module), function))


def _table(*formats: OutputFormat[Rendered]) -> Mapping[str, OutputFormat[Rendered]]:
    return MappingProxyType({each.name: each for each in formats})


if TYPE_CHECKING:
    FindingFormat: TypeAlias = OutputFormat[[Sequence[Diagnostic], Sequence[Failure], View]]
    StatisticsFormat: TypeAlias = OutputFormat[[Sequence[Diagnostic], View]]

FINDING_FORMATS: Mapping[str, FindingFormat] = _table(
    OutputFormat("full", "shapefix.report.full:render", for_people=True),
    OutputFormat("concise", "shapefix.report.concise:render", for_people=True),
    OutputFormat("json", "shapefix.report.json:render", lists_unchecked=True),
    OutputFormat("agent", "shapefix.report.agent:render", lists_unchecked=True),
    OutputFormat("azure", "shapefix.report.azure:render"),
    OutputFormat("github", "shapefix.report.github:render"),
    OutputFormat("gitlab", "shapefix.report.gitlab:render"),
    OutputFormat("junit", "shapefix.report.junit:render"),
    OutputFormat("pylint", "shapefix.report.pylint:render"),
    OutputFormat("rdjson", "shapefix.report.rdjson:render"),
    OutputFormat("sarif", "shapefix.report.sarif:render", lists_unchecked=True),
)
"""Findings, and files that could not be checked: `check`, `fix`, `diagnose`, and what PROBE_FORMATS lacks."""

STATISTICS_FORMATS: Mapping[str, StatisticsFormat] = _table(
    OutputFormat("full", "shapefix.report.statistics:render", for_people=True),
    OutputFormat("concise", "shapefix.report.statistics:render", for_people=True),
    OutputFormat("json", "shapefix.report.statistics:render_json"),
)
"""The number of findings per rule: `check --statistics`."""

PROBE_FORMATS: Mapping[str, OutputFormat[[ProbeResult, View]]] = _table(
    OutputFormat("full", "shapefix.cli.probe_output:full", for_people=True),
    OutputFormat("json", "shapefix.cli.probe_output:json"),
)
"""A run of the probe with its findings: `probe`."""

SHAPE_FORMATS: Mapping[str, OutputFormat[[Sequence[ShapeListing], View]]] = _table(
    OutputFormat("text", "shapefix.sizes.render:render", for_people=True),
    OutputFormat("json", "shapefix.sizes.render:render_json"),
)
"""Source listings with the sizes of tensors: `shapes`."""

RULE_FORMATS: Mapping[str, OutputFormat[[Sequence[Page]]]] = _table(
    OutputFormat("text", "shapefix.report.rule_table:render", for_people=True),
    OutputFormat("json", "shapefix.report.rule_table:render_json"),
)
"""The table of rules: `rules`."""
