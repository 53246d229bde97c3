"""Checkpoints: files written with `torch.save` and read again by the same program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import libcst as cst

from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import Unknown, Value
from shapefix.light_dataclasses import dataclass
from shapefix.tensors.polynomials import Size

Sizes = Mapping[str, tuple[Size, ...]]
"""Sizes of the known parameters of a module, by their names in its state."""


class StateDict(Unknown):
    """Result of `module.state_dict()`, perhaps saved to a file and loaded.

    wrapper is the class around the module with a prefix for all names, empty without one.
    """

    __slots__ = ("module", "place", "sizes", "wrapper")

    def __init__(self, module: Value, wrapper: str, sizes: Sizes, place: Place) -> None:
        super().__init__("state_dict")
        self.module = module
        self.wrapper = wrapper
        self.sizes = sizes
        self.place = place


class LoadedFile(Unknown):
    """Unknown contents of a file read with `torch.load` by its default settings, or a part of them.

    calls are those that led to the load; tests are the unknown conditions around it.
    """

    __slots__ = ("calls", "place", "tests")

    def __init__(self, place: Place, calls: tuple[Place, ...], tests: frozenset[cst.CSTNode]) -> None:
        super().__init__("file")
        self.place = place
        self.calls = calls
        self.tests = tests

    def _part(self, key: str, hint: str) -> Unknown:
        part = LoadedFile(self.place, self.calls, self.tests)
        self.attributes[key] = part
        return part


@dataclass(frozen=True, eq=False, slots=True)
class Saved:
    """Value written to a file, and the call of `torch.save`."""

    value: Value
    place: Place


@dataclass(frozen=True, slots=True)
class LoadedState:
    """A state in a file of this program: the calls of its save and load, and the conditions of the load."""

    saved: Place
    loaded: Place
    tests: frozenset[cst.CSTNode]


@dataclass(eq=False, slots=True)
class Checkpoints:
    """Files written by this run, by their names; None for one with several contents."""

    files: dict[object, Saved | None] = field(default_factory=dict)
    loaded: dict[cst.CSTNode, Saved] = field(default_factory=dict)
    """Contents of the file that a call of `torch.load` reads."""
    contents: dict[StateDict, LoadedState] = field(default_factory=dict)
    """States read from a file of this program."""
    compiled: set[cst.CSTNode] = field(default_factory=set)
    """Calls of `torch.compile` for modules."""
    is_trusting: bool = False
    """Whether the code allows further classes in files: `torch.serialization.add_safe_globals`."""


@dataclass(frozen=True, eq=False, slots=True)
class StateLoaded(Event):
    """`module.load_state_dict(state)` of a state of known origin.

    wrapper and sizes are those of the module, as in StateDict.
    """

    state: StateDict
    wrapper: str
    sizes: Sizes


@dataclass(frozen=True, eq=False, slots=True)
class NotAState(Event):
    """`module.load_state_dict(value)` of a path, or of a checkpoint with the state below one of its keys.

    key is this key, saved the call that wrote the checkpoint; both are missing for a path.
    """

    key: object
    saved: Place | None


@dataclass(frozen=True, eq=False, slots=True)
class CheckpointMisread(Event):
    """Wrong use of the contents of a file: a key not saved, or a method of a module.

    saved is the call that wrote the file; keys are its keys, empty for the state of a module; name is the
    missing key or attribute.
    """

    saved: Place
    keys: tuple[str, ...]
    name: str


class LoadedKeys(Unknown):
    """Result of `module.load_state_dict(state)`: the names of missing and unexpected keys."""

    __slots__ = ("loaded",)

    def __init__(self, loaded: Place) -> None:
        super().__init__("load_state_dict")
        self.loaded = loaded


@dataclass(frozen=True, eq=False, slots=True)
class LoadedKeysUsed(Event):
    """The result of `load_state_dict` used as a model; the place is that of the use.

    loaded is the call of `load_state_dict`, name the attribute of a model that is read, empty for a call.
    """

    loaded: Place
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class StateRestored(Event):
    """`module.load_state_dict(name)` of any state in a variable."""

    module: Value


@dataclass(frozen=True, eq=False, slots=True)
class ObjectsLoaded(Event):
    """`torch.load` of a file with objects of other classes than tensors, by its default settings.

    what names one of them, saved is the call that wrote it. Both are missing for a file of another program;
    used is then the method of a module that its contents need.
    """

    what: str
    saved: Place | None
    used: str = ""
