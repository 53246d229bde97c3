"""The first forward of a model with gradient, known while the script still runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from shapefix.runtime import observations
from shapefix.runtime.agent.masking import Masker
from shapefix.runtime.observations import Observations


class FirstForward:
    """Reads the observations of a running script until a model has returned, and passes them on once.

    masker returns the masker of the secrets known by then.
    """

    def __init__(
        self, path: Path, masker: Callable[[], Masker], returned: Callable[[Observations], None]
    ) -> None:
        self._path = path
        self._masker = masker
        self._returned = returned
        self._size = 0

    def wait(self) -> bool:
        """Whether to call again, since no model has returned yet."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return True
        if size == self._size:
            return True
        self._size = size
        observed = observations.read(self._path, masker=self._masker())
        # The parameters of a model are counted after its call.
        if not any(each.grad_enabled and each.model and each.out is not None for each in observed.modules):
            return True
        self._returned(observed)
        return False
