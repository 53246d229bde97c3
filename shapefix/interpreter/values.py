"""Values of variables, besides containers: symbolic integers, texts, functions, classes, objects.

Values compare by identity. Those that Python can change in place keep their contents in a `fields`
dictionary, which is only written through the Journal, so that a branch can be undone.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Any

# Tensors are values that an Unknown refers to: the base is in a module of its own.
from shapefix.interpreter.base import Value as Value
from shapefix.interpreter.facts import Facts
from shapefix.interpreter.fields import ObjectFields
from shapefix.interpreter.modules import Module, Place
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.tensors.polynomials import Size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import libcst as cst


class Isolation:
    """Absence of references from a library's object to objects of the code; of_parts: also from its parts."""

    __slots__ = ("is_broken", "of_parts")

    def __init__(self, *, of_parts: bool = True) -> None:
        self.is_broken = False
        self.of_parts = of_parts


WRITTEN = "<written>"
"""Attribute of an unknown value with an item set by the code."""


class Unknown(Value):
    """Unknown value, perhaps with a name; its attributes and its size stay the same.

    tensor is its value if it is a tensor: reading `.shape` twice must give the same symbols.
    size is its value if it is an int: `n + 1` of an unknown n may be either. origin is the call that returned
    it, and was not followed. used_as is the object that it must be, by a method that only such objects have.
    isolation is set if a library made it, and nothing in it refers to objects of the code: its methods change
    none of them.
    """

    __slots__ = ("_attributes", "_size", "hint", "isolation", "origin", "tensor", "used_as")

    def __init__(self, hint: str = "", tensor: TensorValue | None = None, size: Size | None = None) -> None:
        self.hint = hint
        self.tensor = tensor
        self.origin: Place | None = None
        self.isolation: Isolation | None = None
        self.used_as: Value | None = None
        self._attributes: dict[str, Value] | None = None
        self._size = size

    @property
    def attributes(self) -> dict[str, Value]:
        if self._attributes is None:
            self._attributes = {}
        return self._attributes

    def attribute(self, name: str) -> Value:
        """Value of `value.name`: the same each time, until code writes an item of it.

        The attribute may be a property with a new dictionary at each read.
        """
        found = self.attributes.get(name)
        if found is None or is_written(found):
            found = self._part(name, f"{self.hint}.{name}" if self.hint else name)
        return found

    def item(self, key: object) -> Value:
        """Value of `value[key]`: the same each time."""
        subscript = f"[{key!r}]"
        found = self.attributes.get(subscript)
        if found is None:
            found = self._part(subscript, f"{self.hint}{subscript}" if self.hint else "")
        return found

    def _part(self, key: str, hint: str) -> Unknown:
        part = self._new_part(hint)
        part.origin = self.origin
        if self.isolation is not None and self.isolation.of_parts:
            part.isolation = self.isolation
        self.attributes[key] = part
        return part

    def _new_part(self, hint: str) -> Unknown:
        return Unknown(hint) if self.hint else Lost(hint)

    @property
    def has_size(self) -> bool:
        """Whether the value was used as a number of elements."""
        return self._size is not None

    @property
    def has_parts(self) -> bool:
        """Whether its size, an attribute or an item of the value was read."""
        return self._size is not None or bool(self._attributes)

    def size(self) -> Size:
        """Symbol of this value, used as a number of elements (at least 1)."""
        if self._size is None:
            self._size = Size.symbol(self.hint or "n")
        return self._size


def is_written(value: Value) -> bool:
    """Whether the code has set an item of an unknown value."""
    return isinstance(value, Unknown) and value._attributes is not None and WRITTEN in value._attributes


class Lost(Unknown):
    """Value computed by code, no longer known, or a part of such a value: a later name is not its origin.

    A parameter `device` may be any device, but a device read from a lost tensor is that of the tensor.
    """

    __slots__ = ()

    def _new_part(self, hint: str) -> Unknown:
        return Lost(hint)


def unfollowed(place: Place) -> Unknown:
    """Result of a call at a place, not followed."""
    value = Unknown()
    value.origin = place
    return value


class OpenedFile(Unknown):
    """Result of `open`, with its path if the file is opened for reading."""

    __slots__ = ("path",)

    def __init__(self, path: Value) -> None:
        super().__init__()
        self.path = path


class TypeOf(Unknown):
    """Result of `type(value)`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        super().__init__()
        self.value = value


class PerhapsNone(Unknown):
    """Value on some paths, None on others.

    If a function returned it, exits are its statements that return None, and the function itself if it may
    come to its end.
    """

    __slots__ = ("exits", "value")

    def __init__(self, value: Value, exits: tuple[Place, ...] = ()) -> None:
        super().__init__(tensor=value if isinstance(value, TensorValue) else None)
        self.value = value
        self.exits = exits


def present(value: Value) -> Value:
    """Value of a variable used as an object: None would raise, and a method shows its class."""
    # Most values are known.
    if not isinstance(value, Unknown):
        return value
    if isinstance(value, PerhapsNone):
        return value.value
    return value if value.used_as is None else value.used_as


class ModulePart(Unknown):
    """Any module below these modules, one of their buffers, or an attribute of one."""

    __slots__ = ("modules",)

    def __init__(self, modules: frozenset[Value], hint: str = "") -> None:
        super().__init__(hint)
        self.modules = modules

    def attribute(self, name: str) -> Value:
        found = self.attributes.get(name)
        if found is None:
            hint = f"{self.hint}.{name}" if self.hint else name
            found = self.attributes[name] = ModulePart(self.modules, hint)
        return found


class OneOf(ModulePart):
    """One of several models, or of several classes, chosen by an unknown condition."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[Value, ...], modules: frozenset[Value] = frozenset()) -> None:
        super().__init__(modules)
        self.choices = choices


class OneOfItems(ModulePart):
    """One of the layers in a list, or of two layers on two paths, perhaps chosen by the same condition."""

    __slots__ = ("choices",)

    def __init__(self, choices: tuple[Value, ...], modules: frozenset[Value]) -> None:
        super().__init__(modules)
        self.choices = choices


class MethodOfEach(ModulePart):
    """Method, such as `to`, of each of several models; it returns its object."""

    __slots__ = ("methods", "owner")

    def __init__(self, owner: OneOf, methods: tuple[Value, ...]) -> None:
        super().__init__(owner.modules)
        self.owner = owner
        self.methods = methods


class Parameter(ModulePart):
    """Any parameter of these modules."""

    __slots__ = ()

    def __init__(self, modules: frozenset[Value]) -> None:
        super().__init__(modules, "parameter")

    def attribute(self, name: str) -> Value:
        found = self.attributes.get(name)
        if found is None:
            found = self.attributes[name] = ParameterAttribute(self.modules, name)
        return found


class ParameterAttribute(ModulePart):
    """An attribute or method of any parameter of these modules."""

    __slots__ = ("name",)

    def __init__(self, modules: frozenset[Value], name: str) -> None:
        super().__init__(modules, f"parameter.{name}")
        self.name = name


class Constant(Value):
    """Stated str, bytes, bool, int, float, complex, None or Ellipsis."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class IntegerLiteral(Constant):
    """An int, or a product of ints, and its place in the code: `271`, `16 * 5 * 5`."""

    __slots__ = ("place",)

    def __init__(self, value: int, place: Place) -> None:
        super().__init__(value)
        self.place = place


class Integer(Value):
    """Int known only as a polynomial over sizes."""

    __slots__ = ("size",)

    def __init__(self, size: Size) -> None:
        self.size = size


class Number(Value):
    """Int or float of unknown value, not used as a size: `head_dim ** -0.5`."""

    __slots__ = ()


class Float(Number):
    """Float of unknown value."""

    __slots__ = ()


class WholeNumber(Number):
    """Float without a fraction: a label read from a row of floats."""

    __slots__ = ("size",)

    def __init__(self, size: Size) -> None:
        self.size = size


class ReadNumber(Float):
    """Float read from a tensor: `loss.item()`, reached through calls."""

    __slots__ = ("calls", "place")

    def __init__(self, place: Place, calls: tuple[Place, ...]) -> None:
        self.place = place
        self.calls = calls


class Flag(Number):
    """Unknown outcome of a comparison of numbers."""

    __slots__ = ()


WHOLE = "<whole>"
"""Field of a scalar of a library with the int that it is equal to."""
NUMBER = Number()
FLAG = Flag()
FLOAT = Float()
NONE = Constant(None)
TRUE = Constant(True)
FALSE = Constant(False)
ELLIPSIS = Constant(Ellipsis)


class Slice(Value):
    """start:stop:step, as an index."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        self.start = start
        self.stop = stop
        self.step = step


class Text(Value):
    """Text without known contents."""

    __slots__ = ()


class Document(Text):
    """Text of hundreds of words, without known contents: a review, an article."""

    __slots__ = ()


TEXT = Text()


def is_whole(value: Value | None) -> bool:
    """Check for a Python int."""
    return isinstance(value, Integer) or (isinstance(value, Constant) and type(value.value) is int)


def is_text(value: Value | None) -> bool:
    """Check whether the value is a str, known or not."""
    return isinstance(value, Text) or (isinstance(value, Constant) and isinstance(value.value, str))


class Reference(Value):
    """A module, function, class or constant outside the project, by its qualified name: `torch.nn.Linear`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Imported(Value):
    """Name of another file of the project, or that file itself (name None), not read yet."""

    __slots__ = ("name", "path")

    def __init__(self, path: str, name: str | None) -> None:
        self.path = path
        self.name = name


class ModuleValue(Value):
    """A module of the project."""

    __slots__ = ("module",)

    def __init__(self, module: Module) -> None:
        self.module = module


class Names(ObjectFields):
    """Names of a scope: reading an unbound name raises, so membership is never tested."""

    __slots__ = ()


class Scope:
    """Names of a function, a module or a comprehension, and the scope around it."""

    __slots__ = ("comprehension", "elsewhere", "names", "outer")

    def __init__(self, outer: Scope | None = None, comprehension: bool = False) -> None:
        self.outer = outer
        self.comprehension = comprehension
        self.names: dict[str, Value] = Names()
        self.elsewhere: dict[str, Scope] | None = None
        """Names bound in another scope by a `global` or `nonlocal` statement."""

    def home(self, name: str) -> Scope:
        """Target scope of an assignment to name."""
        if self.elsewhere is not None:
            return self.elsewhere.get(name, self)
        return self


class Binding(Enum):
    """Binding of a function of a class, from its decorators."""

    PLAIN = auto()
    PROPERTY = auto()
    STATIC_METHOD = auto()
    CLASS_METHOD = auto()
    UNKNOWN = auto()
    """A decorator may replace the function."""


class FunctionValue(Value):
    """Function, lambda or method of the project, with its closure scope.

    defaults are those that had to be evaluated at the definition; setter is what a property is assigned
    through. contexts are the decorators that enter a context around each call as `with` does, the outermost
    first.
    """

    __slots__ = (
        "binding",
        "closure",
        "contexts",
        "defaults",
        "module",
        "name",
        "node",
        "owner",
        "setter",
    )

    def __init__(
        self,
        name: str,
        node: cst.FunctionDef | cst.Lambda,
        module: Module,
        closure: Scope,
        owner: ClassValue | None = None,
        binding: Binding = Binding.PLAIN,
        defaults: Mapping[str, Value] | None = None,
    ) -> None:
        self.name = name
        self.binding = binding
        self.defaults = defaults or {}
        self.setter: FunctionValue | None = None
        self.contexts: tuple[Value, ...] = ()
        self.node = node
        self.module = module
        self.closure = closure
        self.owner = owner

    @property
    def qualified(self) -> str:
        """Name of the function, after that of its class: `Net.forward`."""
        return self.name if self.owner is None else f"{self.owner.name}.{self.name}"


class ClassValue(Value):
    """Class of the project: its bases (references outside the project) and the names of its body."""

    __slots__ = ("_bases", "_resolve", "ancestors", "fields", "module", "name", "node")

    def __init__(
        self,
        name: str,
        node: cst.ClassDef,
        module: Module,
        bases: tuple[Value, ...],
        fields: dict[str, Value],
        resolve: Callable[[Imported], Value],
    ) -> None:
        self.name = name
        self.node = node
        self.module = module
        self.fields = fields
        self._bases = bases
        self._resolve = resolve
        self.ancestors: tuple[Value, ...] | None = None
        """All its bases, nearest first; None until computed."""

    @property
    def bases(self) -> tuple[Value, ...]:
        """Bases; those of other files are looked up on first use."""
        if any(isinstance(base, Imported) for base in self._bases):
            self._bases = tuple(
                self._resolve(base) if isinstance(base, Imported) else base for base in self._bases
            )
        return self._bases


class InstanceValue(Value):
    """Object of a project class; fields holds its attributes, open if others may have been set."""

    __slots__ = ("cls", "facts", "fields", "open")

    def __init__(self, cls: ClassValue, *, open: bool = False) -> None:
        self.cls = cls
        self.fields: dict[str, Value] = ObjectFields()
        self.facts = Facts()
        self.open = open


class LibraryObject(Value):
    """Object of a library class, created with these arguments: `nn.Linear(271, 256)`.

    fields holds its attributes, facts what else is known of it.
    """

    __slots__ = ("arguments", "facts", "fields", "kind", "place")

    def __init__(
        self,
        kind: str,
        arguments: Mapping[str, Value] | None = None,
        place: Place | None = None,
        fields: dict[Any, Any] | None = None,
        facts: Facts | None = None,
    ) -> None:
        self.kind = kind
        self.arguments: Mapping[str, Value] = arguments or {}
        self.place = place
        self.fields: dict[Any, Any] = fields if fields is not None else ObjectFields()
        self.facts = facts if facts is not None else Facts()


def facts_of(value: Value | None) -> Facts:
    """Facts of an object; none for other values."""
    return value.facts if isinstance(value, (InstanceValue, LibraryObject)) else Facts()


def is_array(value: Value) -> bool:
    """Check for an array of numbers: it leads to no object of the code."""
    return isinstance(value, LibraryObject) and value.kind == "numpy.ndarray"


class BoundMethod(Value):
    """Function with its first argument already bound."""

    __slots__ = ("function", "receiver")

    def __init__(self, receiver: Value, function: FunctionValue | Reference) -> None:
        self.receiver = receiver
        self.function = function


def integer(size: Size) -> Value:
    """Value of a size: a plain constant if it is one."""
    number = size.value
    return Constant(number) if number is not None else Integer(size)


def as_size(value: Value | None) -> Size | None:
    """Value as a number of elements; None if it is not an int."""
    if isinstance(value, Integer):
        return value.size
    if isinstance(value, Constant):
        number = value.value
        return Size.of(number) if isinstance(number, int) and not isinstance(number, bool) else None
    if isinstance(value, Unknown):
        return value.size()
    if isinstance(value, LibraryObject):
        number = value.fields.get(WHOLE)
        return number.size if isinstance(number, Integer) else None
    return None


def as_tensor(value: Value | None) -> TensorValue | None:
    """Tensor of a value, certain or possible; None for values of other types."""
    if isinstance(value, TensorValue):
        return value
    if isinstance(value, Unknown):
        if value.tensor is None:
            value.tensor = TensorValue(certain=False)
        return value.tensor
    return None
