"""Errors on purpose: tests of an exception, and demonstrations of one."""

from __future__ import annotations

import libcst as cst

from shapefix.interpreter.classes import member
from shapefix.interpreter.evaluator import Evaluator
from shapefix.interpreter.modules import dotted_name, nodes, target_names
from shapefix.interpreter.names import peek
from shapefix.interpreter.values import FunctionValue, InstanceValue, Reference, Value

_METHODS = ("assertRaises", "assert_raises")
"""Beginnings of names in unittest, numpy.testing and absl: `assertRaisesRegex`."""
_FUNCTIONS = frozenset({"pytest.raises"})
EXPECTED_FAILURES = frozenset({"pytest.mark.xfail", "unittest.expectedFailure"})
"""Decorators of tests that are known to fail."""
_FAIL = frozenset({"fail", "pytest.fail", "self.fail", "exit", "sys.exit", "pytest.exit"})
Try = cst.Try | cst.TryStar


def expects_raise(ev: Evaluator, node: cst.BaseExpression) -> bool:
    """Check for `self.assertRaises(...)` or `pytest.raises(...)`: the test fails without an exception."""
    if not isinstance(node, cst.Call):
        return False
    name = dotted_name(node.func)
    last = name.rpartition(".")[2]
    if last.startswith(_METHODS):
        return True
    called = peek(ev, node.func) if last == "raises" else None
    return isinstance(called, Reference) and called.name in _FUNCTIONS


def suppresses_itself(value: Value) -> bool:
    """Check for a context manager of the project: its `__exit__` may return a true value."""
    leaving = member(value.cls, "__exit__") if isinstance(value, InstanceValue) else None
    return isinstance(leaving, FunctionValue) and any(
        isinstance(step, cst.Return) and not _is_false(step.value) for step in nodes(leaving.node)
    )


def _is_false(node: cst.BaseExpression | None) -> bool:
    return node is None or (isinstance(node, cst.Name) and node.value in ("None", "False"))


def skip_expected(ev: Evaluator, node: cst.Call) -> None:
    """Mark the functions passed to `pytest.raises(Error, function)` as run: they are there to raise."""
    if len(node.args) < 2 or not expects_raise(ev, node):
        return
    for argument in node.args[1:]:
        value = peek(ev, argument.value) if isinstance(argument.value, cst.Name) else None
        if isinstance(value, FunctionValue) and value.module is ev.frame.module:
            ev.visited.add(id(value.node))


def fails_without_exception(node: Try) -> bool:
    """Check for a failure without an exception: `assert False` at the end of the body, or in `else`."""
    blocks = [node.body, *([node.orelse.body] if node.orelse is not None else [])]
    return any(_is_failure(_steps(block)[-1]) for block in blocks)


def _is_failure(last: cst.CSTNode) -> bool:
    if isinstance(last, cst.Raise):
        return last.exc is not None
    if isinstance(last, cst.Assert):
        return isinstance(last.test, cst.Name) and last.test.value == "False"
    called = last.value if isinstance(last, cst.Expr) else None
    return isinstance(called, cst.Call) and dotted_name(called.func) in _FAIL


def has_alternative(node: Try) -> bool:
    """Check for a body of one line and handlers with another way to return or assign the same."""
    steps = _steps(node.body)
    step = steps[0] if len(steps) == 1 else None
    return bool(node.handlers) and all(_is_alternative(step, handler.body) for handler in node.handlers)


def _steps(block: cst.BaseSuite) -> tuple[cst.CSTNode, ...]:
    """Return the statements of a block, those of one line one by one."""
    lines = [line.body if isinstance(line, cst.SimpleStatementLine) else (line,) for line in block.body]
    return tuple(step for line in lines for step in line)


def _is_alternative(step: cst.CSTNode | None, block: cst.BaseSuite) -> bool:
    other = _steps(block)[-1]
    if isinstance(step, cst.Return):
        return isinstance(other, cst.Return) and isinstance(other.value, cst.Call)
    if not isinstance(step, cst.Assign) or not isinstance(other, cst.Assign):
        return False
    bound = [{name for each in one.targets for name in target_names(each.target)} for one in (step, other)]
    return bool(bound[0]) and bound[0] == bound[1] and isinstance(other.value, cst.Call)


_SKIPS = frozenset({"pytest.skip", "pytest.xfail", "self.skipTest", "skip"})


def skips_test(node: Try) -> bool:
    """Check for handlers with a skipped test at their end: `pytest.skip("not supported")`."""
    return bool(node.handlers) and all(_is_skip(_steps(handler.body)[-1]) for handler in node.handlers)


def _is_skip(last: cst.CSTNode) -> bool:
    if isinstance(last, cst.Raise):
        raised = last.exc.func if isinstance(last.exc, cst.Call) else last.exc
        return raised is not None and dotted_name(raised).endswith("SkipTest")
    called = last.value if isinstance(last, cst.Expr) else None
    return isinstance(called, cst.Call) and dotted_name(called.func) in _SKIPS


def only_prints(node: Try) -> bool:
    """Check for handlers with nothing but `print` and `pass`."""
    return bool(node.handlers) and all(
        _prints(step) for handler in node.handlers for step in _steps(handler.body)
    )


def _prints(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Pass):
        return True
    called = node.value if isinstance(node, cst.Expr) else None
    return isinstance(called, cst.Call) and dotted_name(called.func) in ("print", "traceback.print_exc")
