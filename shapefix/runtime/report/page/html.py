"""The page of a run, from what was observed: HTML, with its styles and its pictures inside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapefix
from shapefix.diagnostics import Diagnostic, Severity
from shapefix.report.view import View, one_line, visible
from shapefix.runtime.findings.collect import Found
from shapefix.runtime.forecast import text_report
from shapefix.runtime.forecast.prediction import Forecast
from shapefix.runtime.observations import Module, Observations, span
from shapefix.runtime.report.formatting import arguments, duration, size, words
from shapefix.runtime.report.page.excerpts import Excerpt, excerpts
from shapefix.runtime.report.page.flow import Flow, flow
from shapefix.runtime.report.page.timeline import Plot, plot
from shapefix.runtime.report.text_report import Run, ending

_MODELS = 8
_NARROW, _WIDE = 340, 760


@dataclass(frozen=True)
class Shown:
    """A finding with the source that it speaks of."""

    finding: Diagnostic
    excerpts: tuple[Excerpt, ...]


@dataclass(frozen=True)
class Node:
    """One call of a module in the tree; failed is one that did not return."""

    name: str
    type: str
    given: str
    returned: str
    seconds: str
    constructed: str
    failed: bool
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Tree:
    """An outermost call of a model."""

    how: str
    root: Node
    modules: int


@dataclass(frozen=True)
class Table:
    """A batch: where it comes from, and a row for each of its parts."""

    text: str
    rows: tuple[tuple[str, str], ...]


def page(
    run: Run, arguments: Sequence[str], found: Found, view: View, foretold: Forecast | None = None
) -> str:
    """The page of a run, of what was found and of what was foretold. Raises ImportError without Jinja2."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Text that marks itself as safe is the template's own.
        finalize=lambda each: visible(each, "\n\t") if type(each) is str else each,
    )
    observed = run.observed

    def show(path: str) -> str:
        return one_line(view.relative(path))

    files = [
        ("written", "Written into a temporary folder", list(map(show, observed.written))),
        ("refused", "Not written, as the probe cannot redirect it", list(map(show, observed.refused))),
        ("changed", "Changed in the working tree while the script ran", list(map(show, observed.changed))),
    ]
    return environment.get_template("page.html.j2").render(
        script=show(run.script),
        command=" ".join([show(run.script), *arguments]),
        verdict=_verdict(run, found),
        ending=ending(run, show),
        facts=list(_facts(run, found)),
        findings=[Shown(each, tuple(excerpts(each, view))) for each in found.diagnostics],
        aftermath=found.aftermath,
        flow=_flow(observed),
        tables=list(_tables(observed, show)),
        trees=[_tree(each, show) for each in _models(observed)],
        left_out=max(len(list(_all_models(observed))) - _MODELS, 0),
        plots=_plots(observed),
        forecast=None if foretold is None else list(_forecast(foretold, run, arguments, show)),
        gradients=[_gradients(line) for line in observed.of("gradients")],
        files=[each for each in files if each[2]],
        last_words=[] if run.complete else run.ended.output.strip().splitlines()[-12:],
        environment=_environment(run),
        version=shapefix.__version__,
    )


def _verdict(run: Run, found: Found) -> tuple[str, str]:
    """What it comes to: a word for the style, and the words."""
    counts = Counter(each.severity for each in found.diagnostics)
    if counts[Severity.ERROR]:
        return "error", _counted(counts[Severity.ERROR], "error")
    if found.diagnostics:
        return "warning", _counted(len(found.diagnostics), "finding")
    return ("works", "nothing found") if run.complete else ("warning", "not seen to work")


def _facts(run: Run, found: Found) -> Iterator[tuple[str, str]]:
    observed, end = run.observed, run.observed.end or {}
    loss = observed.first("backward")
    yield "training steps", str(observed.steps)
    if loss is not None and loss["text"] is not None:
        yield "loss", f"{loss['value']:.4g}" if loss["value"] is not None else str(loss["text"])
    for line in observed.of("gradients"):
        yield "gradients", f"{line['given']} of {line['given'] + line['without']}"
    if end.get("peak_cuda"):
        yield "peak on the GPU", size(end["peak_cuda"])
    elif end.get("peak_process"):
        yield "peak of the process", size(end["peak_process"])
    yield "time", duration(run.ended.seconds)


def _environment(run: Run) -> str:
    start = run.observed.first("start")
    if start is None:
        return "torch was not loaded"
    return f"Python {start['python']}, torch {start['torch']}, {', '.join(start['devices']) or 'no GPU'}"


def _flow(observed: Observations) -> Flow | None:
    models = list(_all_models(observed))
    trained = [each for each in models if each.training] or models
    return flow(observed, max(trained, key=_count)) if trained else None


def _tables(observed: Observations, show: Any) -> Iterator[Table]:
    told: set[object] = set()
    for batch in observed.batches:
        loader = observed.loaders.get(batch.loader, {})
        parts = batch.value.get("items") or {}
        named = parts.items() if isinstance(parts, Mapping) else ((f"[{n}]", v) for n, v in enumerate(parts))
        rows = tuple((name, words(value)) for name, value in named) or (("", words(batch.value)),)
        made = span(loader.get("made"))
        at = f"the loader at {show(made.path)}:{made.row}" if made else "a loader"
        collate = loader.get("collate", {}).get("name", "?")
        if batch.number == 1 and (collate, rows) not in told:
            told.add((collate, rows))
            yield Table(f"First batch of {at}, collated by {collate}", rows)


def _all_models(observed: Observations) -> Iterator[Module]:
    return (each for each in observed.modules if each.children or not each.type.endswith("Loss"))


def _models(observed: Observations) -> list[Module]:
    return list(_all_models(observed))[:_MODELS]


def _tree(module: Module, show: Any) -> Tree:
    how = f"{'with' if module.training else 'without'} gradient"
    if module.called is not None:
        how += f", called at {show(module.called.path)}:{module.called.row}"
    return Tree(how, _node(module, None, show), _count(module))


def _node(module: Module, parent: Module | None, show: Any) -> Node:
    born = module.born if parent is None or module.born != parent.born else None
    return Node(
        module.name if parent is None else module.name.removeprefix(f"{parent.name}."),
        module.type,
        arguments(module.input),
        "" if module.out is None else words(module.out),
        "" if module.seconds is None else duration(module.seconds),
        f"{show(born.path)}:{born.row}" if born else "",
        module.out is None,
        tuple(_node(each, module, show) for each in module.children),
    )


def _count(module: Module) -> int:
    return 1 + sum(map(_count, module.children))


def _plots(observed: Observations) -> tuple[Plot, Plot] | None:
    """The same picture for a narrow screen and for a wide one."""
    narrow, wide = plot(observed, _NARROW, 200), plot(observed, _WIDE, 260)
    return None if narrow is None or wide is None else (narrow, wide)


def _gradients(line: Mapping[str, Any]) -> tuple[str, tuple[tuple[str, str], ...]]:
    total = line["given"] + line["without"]
    frozen = f", {line['frozen']} frozen" if line["frozen"] else ""
    told = f"{line['optimizer']}: gradient in {line['given']} of {total} parameters{frozen}"
    kinds = (("missing", "without gradient"), ("not_finite", "gradient not finite"))
    lacking = tuple((what, ", ".join(name or "?" for name in line[key])) for key, what in kinds if line[key])
    return told, lacking


def _forecast(foretold: Forecast, run: Run, arguments: Sequence[str], show: Any) -> Iterator[tuple[str, str]]:
    for (name, _), *rest in text_report.lines(foretold, run.script, arguments, show):
        yield name.strip(), "".join(text for text, _ in rest).strip()


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
