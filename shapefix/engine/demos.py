"""Demos and tests of a library: no evidence for the devices of its callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from shapefix.checks.support.syntax import enclosing_function
from shapefix.domains.devices import DeviceMismatch
from shapefix.domains.training import Backward
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.tensor_values import DeviceKind
from shapefix.sources.gpu_use import uses_gpu
from shapefix.sources.importers import MOST_SEARCHED, importers
from shapefix.sources.project import Project, files_below
from shapefix.sources.relevance import is_test_file, mentions_training
from shapefix.sources.text import SourceText, Unreadable


def demo_mismatches(events: Sequence[Event], path: str) -> frozenset[Event]:
    """Return the mismatches of devices below the top level of a file without training."""
    if any(isinstance(event, Backward) for event in events):
        return frozenset()
    return frozenset(
        event
        for event in events
        if isinstance(event, DeviceMismatch) and event.place.module.path == path and _is_from_demo(event)
    )


def mismatches_in_tests(events: Sequence[Event], path: str) -> frozenset[Event]:
    """Return the mismatches in the library of a test, with tensors moved there to a device of the machine.

    The models of tests stay on the CPU, where tests run; the library's own scripts move them.
    """
    if not is_test_file(path):
        return frozenset()
    return frozenset(
        event
        for event in events
        if isinstance(event, DeviceMismatch)
        and event.place.module.path != path
        and event.other.kind is DeviceKind.CHOSEN
        and (event.other.place is None or event.other.place.module.path != path)
    )


def _is_from_demo(event: DeviceMismatch) -> bool:
    """Whether the first call is at the top level of the event's file, the event in a function."""
    if not event.calls or event.calls[0].module is not event.place.module:
        return False
    return not _has_function(event.calls[0]) and _has_function(event.place)


def _has_function(place: Place) -> bool:
    return enclosing_function(place) is not None


def training_script(project: Project, path: str, read: Callable[[str], SourceText]) -> str | None:
    """Return an importer of the file with a training or evaluation on a GPU.

    Its own run shows whether it calls the functions of the file on one device.
    """

    def data(each: str) -> bytes | None:
        try:
            return read(each).text.encode("utf-8", "replace")
        except Unreadable:
            return None

    files = (each for each in islice(files_below(project.root), MOST_SEARCHED) if each.endswith(".py"))
    for each in importers(project, (path,), files, data):
        found = data(each)
        if found is not None and mentions_training(found) and uses_gpu(found.decode("utf-8", "replace")):
            return each
    return None
