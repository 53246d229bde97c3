"""State dictionaries of modules, and files with them: `torch.save`, `torch.load`, `load_state_dict`."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from shapefix.domains.checkpoints import (
    CheckpointMisread,
    Checkpoints,
    LoadedFile,
    LoadedKeys,
    LoadedKeysUsed,
    LoadedState,
    NotAState,
    ObjectsLoaded,
    Saved,
    StateDict,
    StateLoaded,
    StateRestored,
)
from shapefix.interpreter import hooks
from shapefix.interpreter.calls import Call
from shapefix.interpreter.containers import DictValue, ListValue, elements
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import Module, children
from shapefix.interpreter.values import (
    NONE,
    TEXT,
    Constant,
    InstanceValue,
    LibraryObject,
    Text,
    Unknown,
    Value,
    as_size,
)
from shapefix.library.nn.module import DISTRIBUTED, MODULE
from shapefix.library.numpy_arrays import ARRAY
from shapefix.library.registry import declare, derives, function, method
from shapefix.library.required_versions import is_at_least
from shapefix.library.torchvision.parts import Architecture
from shapefix.tensors.polynomials import Size

COMPILED = "_orig_mod"
CHECKPOINT = "checkpoint"
"""Kind of the dictionary read from a file of this program."""
WRAPPED = "module"
declare(CHECKPOINT, "builtins.dict")
_DEEPEST = 6
_SIZED = {
    "torch.nn.Linear": ("out_features", "in_features"),
    "torch.nn.Embedding": ("num_embeddings", "embedding_dim"),
    "torch.nn.Conv1d": ("out_channels",),
    "torch.nn.Conv2d": ("out_channels",),
    "torch.nn.Conv3d": ("out_channels",),
    "torch.nn.BatchNorm1d": ("num_features",),
    "torch.nn.BatchNorm2d": ("num_features",),
}
"""Settings of layers with the first sizes of their weight."""


def sizes_of(module: Value | None, prefix: str = "", depth: int = 0) -> dict[str, tuple[Size, ...]]:
    """First sizes of the weights of a module by name, of layers with certain names."""
    found: dict[str, tuple[Size, ...]] = {}
    if depth > _DEEPEST or not isinstance(module, (InstanceValue, LibraryObject)):
        return found
    if isinstance(module, LibraryObject) and module.kind in _SIZED and "weight" not in module.fields:
        sizes = [as_size(module.fields.get(name)) for name in _SIZED[module.kind]]
        if None not in sizes:
            found[f"{prefix}weight"] = tuple(size for size in sizes if size is not None)
    for name, child in _named_children(module):
        found.update(sizes_of(child, f"{prefix}{name}.", depth + 1))
    return found


def _named_children(module: InstanceValue | LibraryObject) -> Iterator[tuple[str, Value]]:
    if isinstance(module, LibraryObject):
        inner = module.fields.get("_modules")
        if (
            module.kind == "torch.nn.Sequential"
            and isinstance(inner, ListValue)
            and "_names" not in module.fields
        ):
            yield from ((str(number), child) for number, child in enumerate(elements(inner) or ()))
        if not module.kind.startswith("torchvision."):
            # The fields of a layer of torch are its settings.
            return
    for name, child in module.fields.items():
        if isinstance(name, str) and _is_module(child):
            yield name, child


def _is_module(value: Value | None) -> bool:
    if isinstance(value, LibraryObject):
        return derives(value.kind, MODULE)
    return isinstance(value, InstanceValue)


def _wrapper(call: Call, module: Value | None) -> str | None:
    """Prefix of the names in the state of a module, that of a wrapper around it; None if it may have one."""
    if isinstance(module, LibraryObject) and module.kind == DISTRIBUTED:
        return WRAPPED
    compiled = _is_compiled(call)
    return None if compiled is None else COMPILED if compiled else ""


def _is_compiled(call: Call) -> bool | None:
    """Check for a method of a variable last assigned by `torch.compile`; None if only some paths do."""
    node = call.place.node
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    subject = node.func.value
    if not isinstance(subject, cst.Name):
        return False
    scope, module = call.ev.frame.function or call.place.module.tree, call.place.module
    assigned = [
        each
        for each in _before(scope, node, module)
        if isinstance(each, cst.Assign)
        and any(_is_name(target.target, subject.value) for target in each.targets)
    ]
    verdicts = [each.value in call.ev.state[Checkpoints].compiled for each in assigned]
    if len(set(verdicts)) > 1 and _is_in_other_branch(module, assigned[-1], node):
        return None
    return bool(verdicts) and verdicts[-1]


def _is_in_other_branch(module: Module, assigned: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Check for an assignment under a condition without influence on a later node."""
    around = {id(each) for each in module.path_to(node)}
    return any(isinstance(each, cst.If) and id(each) not in around for each in module.path_to(assigned))


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _before(scope: cst.CSTNode, end: cst.CSTNode, module: Module) -> Iterator[cst.CSTNode]:
    """Iterate over the nodes of a function in their order, up to one of them."""
    waiting = [scope]
    while waiting:
        node = waiting.pop()
        if node is end:
            return
        if node is not scope and isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            continue
        yield node
        waiting.extend(reversed(list(children(node))))


@method(MODULE, "state_dict")
def state_dict(call: Call) -> Value:
    module = call.receiver
    if module is None or call.arguments.positional or call.arguments.keywords or not _is_module(module):
        return Unknown("state_dict")
    wrapper = _wrapper(call, module)
    if wrapper is None:
        return Unknown("state_dict")
    return StateDict(module, wrapper, sizes_of(_inner(module)), call.place)


def _inner(module: Value) -> Value | None:
    """Module in a wrapper, or the module itself."""
    is_wrapper = isinstance(module, LibraryObject) and module.kind == DISTRIBUTED
    return module.fields.get("module") if is_wrapper and isinstance(module, LibraryObject) else module


def note_loaded(call: Call) -> None:
    """Report a state loaded into a module."""
    state, module = call.value(0, "state_dict"), call.receiver
    if module is not None:
        call.ev.emit(StateRestored(call.place, call.ev.calls, module))
    if _is_path(call.ev, state):
        call.ev.emit(NotAState(call.place, call.ev.calls, None, None))
    if isinstance(state, DictValue) and state.kind == CHECKPOINT:
        keys = [key for key, value in state.fields.items() if isinstance(value, StateDict)]
        saved = state.written.get(keys[0]) if len(keys) == 1 else None
        if saved is not None:
            call.ev.emit(NotAState(call.place, call.ev.calls, keys[0], saved))
    if isinstance(state, StateDict) and module is not None and _is_module(module):
        wrapper = _wrapper(call, module)
        if wrapper is not None:
            sizes = sizes_of(_inner(module))
            call.ev.emit(StateLoaded(call.place, call.ev.calls, state, wrapper, sizes))


def _is_path(ev: Evaluator, value: Value | None) -> bool:
    """Check for a text, or for the name of a file written by the program."""
    if isinstance(value, Constant):
        return isinstance(value.value, str)
    return isinstance(value, Text) or (value is not None and value in ev.state[Checkpoints].files)


@function("torch.save")
def save(call: Call) -> Value:
    value, path = call.value(0, "obj"), call.value(1, "f")
    files, name = call.ev.state[Checkpoints].files, _name_of(path)
    if name is not None and value is not None:
        before = files.get(name)
        again = before is not None and before.place.node is call.place.node
        files[name] = Saved(value, call.place) if name not in files or again else None
    return NONE


def _name_of(path: Value | None) -> object:
    """Name of a file, or one and the same unknown value for it: `path = os.path.join(folder, "best.pt")`."""
    if isinstance(path, Constant):
        return path.value if isinstance(path.value, str) else None
    is_one = type(path) is Unknown or (type(path) is Text and path is not TEXT)
    return path if is_one else None


_STRICT_SINCE = "2.6"
"""First version of torch with `weights_only=True` as the default of `torch.load`."""
_OF_OBJECTS = frozenset(
    {
        "children",
        "eval",
        "load_state_dict",
        "modules",
        "named_parameters",
        "parameters",
        "state_dict",
        "train",
    }
)
"""Methods of modules and optimizers; tensors, texts, numbers and dictionaries have none of them."""


_OF_MODULES = _OF_OBJECTS - {"load_state_dict"}


@function("torch.load")
def load(call: Call) -> Value:
    """Contents of a file, if the program has written it."""
    path = call.value(0, "f")
    checkpoints = call.ev.state[Checkpoints]
    saved = checkpoints.files.get(_name_of(path))
    settings = {"weights_only", "pickle_module"} & call.arguments.keywords.keys()
    is_plain = not settings and len(call.arguments.positional) < 3 and not call.arguments.open
    is_plain = is_plain and not checkpoints.is_trusting and is_at_least(call.ev, _STRICT_SINCE, "torch")
    if saved is None:
        return LoadedFile(call.place, call.ev.calls, _open_tests(call.ev)) if is_plain else Unknown()
    what = _object_in(saved.value)
    if what and is_plain:
        call.ev.emit(ObjectsLoaded(call.place, call.ev.calls, what, saved.place))
    if isinstance(saved.value, StateDict):
        checkpoints.contents[saved.value] = LoadedState(saved.place, call.place, _open_tests(call.ev))
        return saved.value
    if isinstance(saved.value, DictValue):
        kept: dict[object, Value] = {
            key: value if isinstance(value, (StateDict, Constant)) else Unknown()
            for key, value in saved.value.fields.items()
        }
        return DictValue(kept, saved.value.closed, CHECKPOINT, written=dict.fromkeys(kept, saved.place))
    return Unknown()


@hooks.missing_key
def _note_missing(ev: Evaluator, owner: DictValue, key: object, node: cst.CSTNode) -> None:
    """Report a key missing in a file of this program."""
    saved = next(iter(owner.written.values()), None)
    if owner.kind == CHECKPOINT and saved is not None and isinstance(key, str):
        keys = tuple(each for each in owner.fields if isinstance(each, str))
        ev.emit(CheckpointMisread(ev.place(node), ev.calls, saved, keys, key))


def _open_tests(ev: Evaluator) -> frozenset[cst.CSTNode]:
    return frozenset(test for frame in ev.frames for test in frame.tests)


@hooks.call_unknown
def _note_called(ev: Evaluator, function: Value, node: cst.CSTNode) -> None:
    """Report a call of the result of `load_state_dict`."""
    if isinstance(function, LoadedKeys):
        ev.emit(LoadedKeysUsed(ev.place(node), ev.calls, function.loaded, ""))


@hooks.read_unknown
def _note_use(ev: Evaluator, owner: Value, name: str) -> None:
    """Report contents of a file used as a module: only a file of objects has them."""
    if isinstance(owner, LoadedKeys) and name in _OF_OBJECTS:
        ev.emit(LoadedKeysUsed(owner.loaded, ev.calls, owner.loaded, name))
        return
    contents = ev.state[Checkpoints].contents
    state = contents.get(owner) if isinstance(owner, StateDict) and name in _OF_MODULES else None
    if state is not None and _open_tests(ev) <= state.tests:
        ev.emit(CheckpointMisread(state.loaded, ev.calls, state.saved, (), name))
    if not isinstance(owner, LoadedFile) or name not in _OF_OBJECTS or ev.state[Checkpoints].is_trusting:
        return
    if _open_tests(ev) <= owner.tests:
        ev.emit(ObjectsLoaded(owner.place, owner.calls, "", None, name))


def _object_in(value: Value) -> str:
    """Class of an object not allowed in a file of weights; empty without one."""
    if isinstance(value, DictValue):
        return next(filter(None, map(_object_in, value.fields.values())), "")
    if isinstance(value, InstanceValue):
        return value.cls.name
    if isinstance(value, LibraryObject):
        if value.kind in (ARRAY, "argparse.Namespace"):
            return value.kind
        if derives(value.kind, MODULE):
            architecture = value.facts.known(Architecture)
            return value.kind if architecture is None else f"torchvision.models.{architecture.kind}"
    return ""


@function("torch.serialization.add_safe_globals", "torch.serialization.safe_globals")
def trust(call: Call) -> Value:
    call.ev.state[Checkpoints].is_trusting = True
    return Unknown()
