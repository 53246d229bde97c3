"""Moments of a run with hooks for other packages: lists of functions, filled on import.

A hook is registered as a decorator, `@hooks.escape`, and called in the order of registration. The interpreter
calls hooks and knows nothing about the functions registered there. Hooks of library calls are in `calls`
(`before_call`, `after_call`), those of joins in `joins` (`join_values`, `join_integers`), that of sizes in
`per_item_sizes` (`renew`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import libcst as cst

from shapefix.interpreter.containers import Contents, DictValue, ListValue
from shapefix.interpreter.evaluator import Evaluator, Frame, Loop
from shapefix.interpreter.events import Event
from shapefix.interpreter.modules import Place
from shapefix.interpreter.state import Hooks
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    ClassValue,
    FunctionValue,
    InstanceValue,
    LibraryObject,
    Unknown,
    Value,
)

Exit = Callable[[], None]
"""Function to call at the end of the hook's block."""


class TryListener(Protocol):
    """Notes of one `try` statement while it runs: its body, then each handler."""

    def end_body(self, hidden: tuple[Event, ...]) -> bool:
        """End the body, and return whether its errors matter even if the handlers print them.

        hidden are the events of the body and of its calls.
        """

    def begin_handler(self) -> None:
        """Begin the body of a handler."""

    def end_handler(
        self, node: cst.ExceptHandler | cst.ExceptStarHandler, catches: frozenset[str] | None
    ) -> None:
        """End the body of a handler; catches are the qualified names of its exceptions, None for all."""

    def end(self) -> None:
        """End the statement: the body and all handlers have run, but not the `finally` block."""


enter_context: Hooks[Callable[[Evaluator, Value], Exit | None]] = Hooks()
"""`with value:`, or the call of a function decorated with value; the exit is called when the block ends."""

begin_entry_point: Hooks[Callable[[Evaluator], Exit | None]] = Hooks()
"""A function without known callers is about to run; the exit is called when it has run."""

bind_entry_point: Hooks[Callable[[Evaluator, Frame], None]] = Hooks()
"""The parameters of a function without known callers are bound in the frame."""

begin_loop: Hooks[Callable[[Evaluator, Loop], None]] = Hooks()
"""A `for` loop is about to run; its iterable is known."""

EndOfFirstPass = Callable[[Evaluator, Loop, int, list[tuple[str, Any, Any]], Callable[[], None]], None]
end_first_pass: Hooks[EndOfFirstPass] = Hooks()
"""The first pass of a loop, begun at this step, ends: each changed variable, its values before and after.

The name of an attribute or a key begins with a dot. Not called for a pass that ends in several ways. The last
argument runs the next pass without events or lasting changes.
"""

end_loop: Hooks[Callable[[Evaluator, Loop], None]] = Hooks()
"""All passes of a loop have run; its changes are joined with the state before it."""

recursion: Hooks[Callable[[Evaluator, cst.CSTNode], None]] = Hooks()
"""A running function is called again at a node; the call is not followed."""

escape: Hooks[Callable[[Evaluator, Value], None]] = Hooks()
"""A value is passed to code that cannot be followed, which may change it."""

copied: Hooks[Callable[[Evaluator, Value, Value], None]] = Hooks()
"""An object of a class was copied: the object, and its copy."""

read_unknown: Hooks[Callable[[Evaluator, Value, str], None]] = Hooks()
"""An attribute of a value is read for the first time, and nothing is known of it: perhaps a method."""

absent_attribute: Hooks[Callable[[Evaluator, InstanceValue, str], Value | None]] = Hooks()
"""An attribute is read that neither an object nor its class has; returns its value if it is known."""

missing_attribute: Hooks[Callable[[Evaluator, LibraryObject, str, cst.CSTNode], None]] = Hooks()
"""An attribute of an object of a library is read at a node for the first time, and its class lacks it."""

item_of_unknown: Hooks[Callable[[Evaluator, Unknown, Value, cst.CSTNode], Value | None]] = Hooks()
"""`value[index]` of an unknown value: its index and node; returns the item if the index shows its type."""

read_name: Hooks[Callable[[Evaluator, str, cst.CSTNode], None]] = Hooks()
"""A name of a library is imported, or read as an attribute of a module, at a node."""

missing_key: Hooks[Callable[[Evaluator, DictValue, object, cst.CSTNode], None]] = Hooks()
"""A key is read at a node that a dictionary of known keys does not have."""

call_unknown: Hooks[Callable[[Evaluator, Value, cst.CSTNode], None]] = Hooks()
"""An unknown value is called at a node; the call is not followed."""

compare: Hooks[Callable[[Evaluator, Value, Value], None]] = Hooks()
"""Two values are compared, neither of them a tensor: `x.size(0) == n`."""

decide_comparison: Hooks[Callable[[Evaluator, type, Value, Value], bool | None]] = Hooks()
"""A comparison of a kind of two values is open, neither of them a tensor; returns its outcome if known."""

returned: Hooks[Callable[[Evaluator, FunctionValue, Mapping[str, Value], Value, Place], Value]] = Hooks()
"""A function of the project returned to a place: function, arguments by name, result; returns the result."""

open_branch: Hooks[Callable[[Evaluator, cst.If], bool]] = Hooks()
"""The condition of a branch without `else` is False; returns whether other runs set it to True."""

define_class: Hooks[Callable[[Evaluator, ClassValue], None]] = Hooks()
"""A class of the project is defined; its body has run."""

set_attribute: Hooks[Callable[[Evaluator, Value, str, Value, cst.CSTNode], None]] = Hooks()
"""`owner.name = value`, with the node of `owner.name`."""

begin_try: Hooks[Callable[[Evaluator, cst.Try | cst.TryStar], TryListener]] = Hooks()
"""The body of a `try` statement is about to run."""

add_up: Hooks[
    Callable[[Evaluator, cst.CSTNode, cst.BaseExpression, cst.BaseExpression, Value, Value | None], None]
] = Hooks()
"""The statement at a node adds to a variable: node, variable, added code, added value, sum.

The sum is None if a value is appended to a list.
"""

discard: Hooks[
    Callable[[Evaluator, cst.Expr, cst.Call, str, Value, Value, str | None, TensorValue | None], None]
] = Hooks()
"""An expression statement discards the result of a library call: statement, call, function, receiver, result.

Then come the variable at the start of a chain of methods, and the tensor in it.
"""

idle_attribute: Hooks[Callable[[Evaluator, cst.Expr, cst.Attribute, Value], None]] = Hooks()
"""An expression statement reads an attribute, and discards it: statement, attribute, value."""

choose: Hooks[Callable[[Evaluator, cst.IfExp, Value, Value], Value | None]] = Hooks()
"""`first if test else second` with an unknown test: the value where it is more than the join of both."""

set_item: Hooks[Callable[[Evaluator, cst.Subscript, ListValue, Value, Value, Contents], Contents]] = Hooks()
"""`list[index] = value`: target, list, index, value and new contents; returns the contents to write."""

concatenate: Hooks[Callable[[Contents, Contents, Place], Contents]] = Hooks()
"""`left + right` of lists of unknown length: the left contents, those of the sum, the place of the sum."""
