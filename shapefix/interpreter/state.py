"""State and hooks: the attachment points of other packages to the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

State = TypeVar("State")
Function = TypeVar("Function", bound=Callable[..., Any])


class DomainState(dict[type[Any], Any]):
    """One object for each type of state: `ev.state[Gradients]` returns it, created at its first use.

    The journal undoes branches: facts that hold on one path only belong in a dictionary of the state object,
    written by `ev.journal.write`. All other fields are the same for every path.
    """

    def __missing__(self, kind: type[Any]) -> Any:
        created = self[kind] = kind()
        return created

    if TYPE_CHECKING:

        def __getitem__(self, kind: type[State], /) -> State: ...


class Hooks(list[Function]):
    """Functions registered for one moment of a run, in the order of registration."""

    def __call__(self, function: Function) -> Function:
        """Register a function, as a decorator."""
        self.append(function)
        return function
