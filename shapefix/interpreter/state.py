"""What other packages attach to the interpreter: state of a run, by its type, and hooks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

State = TypeVar("State")
Function = TypeVar("Function", bound=Callable[..., Any])


class DomainState(dict[type[Any], Any]):
    """One object for each type of state: `ev.state[Gradients]` returns it, created at its first use.

    A branch is undone by the journal alone: what a branch must not leave behind belongs in a dictionary of
    the state object, written by `ev.journal.write`. All other fields are the same for every path.
    """

    def __missing__(self, kind: type[Any]) -> Any:
        created = self[kind] = kind()
        return created

    if TYPE_CHECKING:

        def __getitem__(self, kind: type[State], /) -> State: ...


class Hooks(list[Function]):
    """The functions registered for one moment of a run, in the order of registration."""

    def __call__(self, function: Function) -> Function:
        """Register a function, as a decorator."""
        self.append(function)
        return function
