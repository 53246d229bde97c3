"""The last known values in open texts, kept during the analysis of an edited one."""

from __future__ import annotations

from shapefix.displayed_values import CallsOfForward, HeldName
from shapefix.server.hovers import PointedName, held_name, last_of_top_level, value_text
from shapefix.server.messages import ValuesFound
from shapefix.server.open_documents import file_of
from shapefix.server.open_files import OpenFile, OpenPart
from shapefix.server.open_texts import MovedRows, moved_rows


class ValuesOfTexts:
    """The last known values in each open text, and the calls of its modules."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[str, tuple[HeldName, ...]]] = {}
        """The values by the path of the text, with the text of that moment."""
        self._calls: dict[str, tuple[CallsOfForward, ...]] = {}

    def take(self, file: OpenFile, found: ValuesFound) -> bool:
        """Note the values of a file; return whether they have changed."""
        if found.values is None:
            return False
        changed = False
        for at, part in file.parts.items():
            values = found.values.get(at, ())
            changed |= self._values.get(at, ("", ()))[1] != values
            self._values[at] = part.text.text, values
            self._calls[at] = found.calls.get(at, ())
        return changed

    def forget(self, path: str) -> None:
        """Forget a closed file."""
        self._values = {at: known for at, known in self._values.items() if file_of(at) != path}
        self._calls = {at: known for at, known in self._calls.items() if file_of(at) != path}

    def values(self, path: str, part: OpenPart) -> tuple[tuple[HeldName, ...], MovedRows]:
        """Return the last known values in an open text, and the present places of their rows."""
        text, values = self._values.get(path, ("", ()))
        return values, moved_rows(text, part.text.text)

    def calls(self, path: str) -> tuple[CallsOfForward, ...] | None:
        """Return the calls of the modules in an open text; None if nothing is known of it yet."""
        return self._calls.get(path)

    def described(self, at: PointedName, path: str, file: OpenFile) -> str | None:
        """Return the value of a name in an open text; in a notebook it may be of an earlier cell."""
        if path not in file.parts:
            return None
        values, moved = self.values(path, file.parts[path])
        held = held_name(at, values, moved)
        earlier = list(file.parts)[: list(file.parts).index(path)]
        while not held and earlier:
            path = earlier.pop()
            values, moved = self.values(path, file.parts[path])
            held = last_of_top_level(at.name, values)
        return value_text(at.name, held, file.parts[path].text.rows, moved)
