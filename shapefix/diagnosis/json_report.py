"""A diagnosis as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shapefix.diagnosis.diagnose import Diagnosis
from shapefix.diagnosis.failing_layer import FailingLayer
from shapefix.diagnosis.project_frames import ProjectFrame
from shapefix.diagnosis.size_origins import SizeOrigin
from shapefix.report.json import dumped, file_of, finding_entry
from shapefix.report.view import View


def render(diagnosis: Diagnosis | None, view: View) -> Iterator[str]:
    """Render one object; error is null if the log has no error.

    confidence is that of the first cause, null without one. frames are those of the user's own code.
    """
    document: dict[str, object] = {"error": None, "confidence": None, "causes": [], "frames": []}
    if diagnosis is not None:
        found = diagnosis.explanation
        document = {
            "error": {"type": diagnosis.error.type, "message": diagnosis.error.message},
            "explanation": None
            if found is None
            else {
                "name": found.name,
                "message": found.what,
                "fields": dict(found.fields),
                "usual_causes": list(found.causes),
                "look_at": found.look,
                "layer": _layer(diagnosis.layer, view),
            },
            "confidence": diagnosis.causes[0].confidence.name.lower() if diagnosis.causes else None,
            "causes": [
                finding_entry(replace(each.finding, evidence=each.evidence), view)
                for each in diagnosis.causes
            ],
            "frames": [_frame(each, view) for each in diagnosis.frames],
        }
    yield dumped(document) + "\n"


def _layer(layer: FailingLayer | None, view: View) -> dict[str, object] | None:
    if layer is None:
        return None
    place = {**file_of(layer.path, view), "row": layer.row}
    return {
        "name": layer.name,
        "code": layer.code,
        **place,
        "takes": layer.wanted,
        "gets": layer.arrived,
        "size_set_at": _origin(layer.setting, view),
        "data_loaded_at": _origin(layer.load, view),
    }


def _origin(origin: SizeOrigin | None, view: View) -> dict[str, object] | None:
    if origin is None:
        return None
    return {**file_of(origin.path, view), "row": origin.row, "code": origin.code}


def _frame(frame: ProjectFrame, view: View) -> dict[str, object]:
    return {
        **({"filename": frame.frame.path} if frame.is_missing else file_of(frame.span.path, view)),
        "row": frame.row or frame.frame.row,
        "function": frame.frame.function,
        "text": frame.frame.text,
        "exists": not frame.is_missing,
        "changed": frame.is_changed,
    }
