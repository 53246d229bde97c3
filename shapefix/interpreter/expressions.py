"""Handlers of expressions."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import libcst as cst

from shapefix.interpreter import arithmetic, hooks
from shapefix.interpreter.any_items import without_ends
from shapefix.interpreter.attributes import attribute
from shapefix.interpreter.calls import evaluate_call
from shapefix.interpreter.carried import LoopCarried
from shapefix.interpreter.computed_items import dictionary_of_items, list_of_items
from shapefix.interpreter.containers import (
    NO_AXES,
    Contents,
    DictValue,
    ListValue,
    TupleValue,
    distinct,
    elements,
)
from shapefix.interpreter.dictionaries import Entries, update
from shapefix.interpreter.evaluator import Evaluator, expression
from shapefix.interpreter.first_passes import forget_first_pass, loop_decided
from shapefix.interpreter.fixed_sizes import note_equality
from shapefix.interpreter.functions import default_values
from shapefix.interpreter.iteration import UNROLLED, each, item_of_loop, iterate, some, unrolled
from shapefix.interpreter.joins import join, join_paths, without_length
from shapefix.interpreter.journal import UNCHANGED, Changes
from shapefix.interpreter.large_literals import name_in
from shapefix.interpreter.literal_values import value_of
from shapefix.interpreter.modules import Place
from shapefix.interpreter.names import look_up, peek, resolved
from shapefix.interpreter.narrowing import narrow
from shapefix.interpreter.option_flags import (
    OptionFlag,
    OptionTest,
    by_default,
    is_of_option,
    muted_unless_default,
    note_lost_choice,
)
from shapefix.interpreter.per_item_sizes import axes_of, now, rebound
from shapefix.interpreter.range_lists import item_of, list_of_numbers
from shapefix.interpreter.refinement import note_compared, passed_tests
from shapefix.interpreter.rehearsals import find_later_changes
from shapefix.interpreter.stability import is_stable
from shapefix.interpreter.subscripts import evaluate_subscript
from shapefix.interpreter.targets import bind, further_entry
from shapefix.interpreter.texts import joined, spelled_out
from shapefix.interpreter.truth import equal, is_none, truth
from shapefix.interpreter.values import (
    ELLIPSIS,
    FALSE,
    FLAG,
    NONE,
    TRUE,
    Constant,
    Float,
    FunctionValue,
    InstanceValue,
    Integer,
    IntegerLiteral,
    LibraryObject,
    ModulePart,
    Number,
    OneOfItems,
    Scope,
    TypeOf,
    Unknown,
    Value,
    present,
)

_KEYWORDS = {"True": TRUE, "False": FALSE, "None": NONE}


@expression(cst.Name)
def name(ev: Evaluator, node: cst.Name) -> Value:
    return _KEYWORDS.get(node.value) or look_up(ev, node.value)


@expression(cst.Integer)
def whole_number(ev: Evaluator, node: cst.Integer) -> Value:
    return IntegerLiteral(int(node.value, 0), ev.place(node))


@expression(cst.Float)
def real_number(ev: Evaluator, node: cst.Float) -> Value:
    return Constant(float(node.value))


@expression(cst.SimpleString)
def string(ev: Evaluator, node: cst.SimpleString) -> Value:
    text = node.value
    # Most strings are plain; evaluating a literal costs a compilation.
    if text[0] == text[-1] and text[0] in "'\"" and "\\" not in text and text[:3] not in ("'''", '"""'):
        return Constant(text[1:-1])
    return Constant(node.evaluated_value)


@expression(cst.ConcatenatedString)
def joined_string(ev: Evaluator, node: cst.ConcatenatedString) -> Value:
    value = node.evaluated_value
    return Unknown() if value is None else Constant(value)


@expression(cst.FormattedString)
def formatted_string(ev: Evaluator, node: cst.FormattedString) -> Value:
    pieces: list[Value] = []
    plain = True
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            pieces.append(ev.evaluate(part.expression))
            plain = plain and part.format_spec is None and not part.conversion and part.equal is None
        elif isinstance(part, cst.FormattedStringText):
            pieces.append(Constant(part.value))
            plain = plain and not any(escape in part.value for escape in ("\\", "{{", "}}"))
    return (spelled_out(pieces) if plain else None) or joined(pieces)


@expression(cst.Ellipsis)
def ellipsis(ev: Evaluator, node: cst.Ellipsis) -> Value:
    return ELLIPSIS


@expression(cst.Attribute)
def dotted(ev: Evaluator, node: cst.Attribute) -> Value:
    return attribute(ev, ev.evaluate(node.value), node.attr.value, node)


@expression(cst.Call)
def call(ev: Evaluator, node: cst.Call) -> Value:
    return evaluate_call(ev, node, _called(ev, node))


def _called(ev: Evaluator, node: cst.Call) -> Value:
    """Function of a call; its keywords may show the class of an object with the method."""
    called = node.func
    if type(called) is not cst.Attribute or not any(argument.keyword for argument in node.args):
        return ev.evaluate(called)
    owner = ev.evaluate(called.value)
    if isinstance(owner, Unknown) and present(owner) is owner:
        keywords = frozenset(argument.keyword.value for argument in node.args if argument.keyword is not None)
        owner.used_as = ev.library.object_with(called.attr.value, keywords)
    return attribute(ev, owner, called.attr.value, called)


@expression(cst.Subscript)
def subscript(ev: Evaluator, node: cst.Subscript) -> Value:
    return evaluate_subscript(ev, node)


@expression(cst.Tuple, cst.List, cst.Set)
def sequence(ev: Evaluator, node: cst.Tuple | cst.List | cst.Set) -> Value:
    literals = ev.frame.module.literals
    if literals and name_in(node) in literals:
        return value_of(literals[name_in(node)])
    items: list[Value] | None = []
    element: Value | None = None
    for entry in node.elements:
        # A table of imported classes does not require reading their files.
        value = peek(ev, entry.value)
        if isinstance(entry, cst.StarredElement):
            inner = elements(resolved(ev, value))
            if items is not None and inner is not None and len(items) + len(inner) <= arithmetic.LONGEST:
                items.extend(inner)
                continue
            element = reduce(join, items or (), element)
            items = None
            value = each(ev, value)
        elif items is not None:
            items.append(value)
            continue
        element = join(element, value)
    if isinstance(node, cst.Tuple) and items is not None:
        return TupleValue(tuple(items))
    return ListValue(None if items is None else tuple(items), element)


@expression(cst.Dict)
def dictionary(ev: Evaluator, node: cst.Dict) -> Value:
    result = DictValue({})
    for element in node.elements:
        value = peek(ev, element.value)
        if isinstance(element, cst.StarredDictElement):
            update(ev, result, resolved(ev, value))
            continue
        if not isinstance(element, cst.DictElement):
            continue
        key = ev.evaluate(element.key)
        if isinstance(key, Constant):
            result.fields[key.value] = value
            result.written[key.value] = ev.place(element.key)
        else:
            result.closed = False
    return result


@expression(cst.BinaryOperation)
def binary(ev: Evaluator, node: cst.BinaryOperation) -> Value:
    # None has no operators.
    left = present(ev.evaluate(node.left))
    right = present(ev.evaluate(node.right))
    result = arithmetic.operate(ev, type(node.operator), left, right, node)
    are_stated = isinstance(left, IntegerLiteral) and isinstance(right, IntegerLiteral)
    if are_stated and isinstance(node.operator, cst.Multiply) and isinstance(result, Constant):
        return IntegerLiteral(result.value, Place(ev.frame.module, node))
    return result


@expression(cst.UnaryOperation)
def unary(ev: Evaluator, node: cst.UnaryOperation) -> Value:
    value = ev.evaluate(node.expression)
    if isinstance(node.operator, cst.Not):
        if isinstance(value, OptionFlag):
            return value.inverse()
        if isinstance(value, OptionTest):
            return value
        known = truth(value)
        return Unknown() if known is None else (FALSE if known else TRUE)
    return arithmetic.negate(ev, type(node.operator), value, node)


@expression(cst.BooleanOperation)
def boolean(ev: Evaluator, node: cst.BooleanOperation) -> Value:
    left = ev.evaluate(node.left)
    known = truth(left)
    stops = isinstance(node.operator, cst.Or)
    if known is None and stops:
        # A left side that is None is not the result.
        left = present(left)
    if known is stops:
        return left
    if known is not None:
        return ev.evaluate(node.right)
    ev.journal.begin()
    ev.frame.tests.append(node.left)
    refused = ev.refused
    right = ev.evaluate(node.right)
    ev.refused = refused
    ev.frame.tests.pop()
    ev.journal.apply([UNCHANGED, ev.journal.undo()])
    joined: Value = join(left, right)
    return joined


@expression(cst.Comparison)
def comparison(ev: Evaluator, node: cst.Comparison) -> Value:
    left = ev.evaluate(node.left)
    if len(node.comparisons) != 1:
        for target in node.comparisons:
            ev.evaluate(target.comparator)
        return Unknown()
    target = node.comparisons[0]
    right = ev.evaluate(target.comparator)
    known: bool | None
    match target.operator:
        case cst.Is() | cst.IsNot():
            if isinstance(right, Constant) and right.value is None:
                known = is_none(left)
            elif isinstance(left, Constant) and isinstance(right, Constant):
                known = left.value is right.value
            elif isinstance(left, TypeOf) or isinstance(right, TypeOf):
                known = equal(left, right)
            else:
                known = None
            if isinstance(target.operator, cst.IsNot) and known is not None:
                known = not known
        case cst.In() | cst.NotIn():
            known = _contains(ev, right, left)
            if isinstance(target.operator, cst.NotIn) and known is not None:
                known = not known
        case _:
            if arithmetic.concerns_tensors(left, right):
                return arithmetic.operate(ev, type(target.operator), left, right, node)
            made = arithmetic.by_method(ev, type(target.operator), left, right, node)
            if made is not None:
                return made
            for hook in hooks.compare:
                hook(ev, left, right)
            known = arithmetic.compare(type(target.operator), left, right)
            if known is None:
                known = _decided(ev, type(target.operator), left, right)
            if known is None:
                note_compared(ev, node, left, right)
                note_equality(ev, node, left, right)
    if known is None and any(isinstance(side, Float) for side in (left, right)):
        if all(isinstance(side, (Number, Integer, Constant)) for side in (left, right)):
            return FLAG
    if known is None:
        return OptionTest() if is_of_option(left) else Unknown()
    return TRUE if known else FALSE


def _decided(ev: Evaluator, kind: type, left: Value, right: Value) -> bool | None:
    """Return the outcome of a comparison, if a domain knows it."""
    outcomes = (hook(ev, kind, left, right) for hook in hooks.decide_comparison)
    return next((outcome for outcome in outcomes if outcome is not None), None)


def _contains(ev: Evaluator, container: Value, value: Value) -> bool | None:
    if isinstance(container, DictValue) and isinstance(value, Constant):
        if value.value in container.fields:
            return None if ev.journal.is_maybe_unbound(container.fields, value.value) else True
        return False if container.closed else None
    items = elements(container)
    if items is not None:
        verdicts = [equal(item, value) for item in items]
        if True in verdicts:
            return True
        return None if None in verdicts else False
    if isinstance(container, Constant) and isinstance(value, Constant):
        try:
            return bool(value.value in container.value)
        except TypeError:
            return None
    return None


@expression(cst.IfExp)
def conditional(ev: Evaluator, node: cst.IfExp) -> Value:
    tested = ev.evaluate(node.test)
    known = truth(tested)
    if known is not None:
        return ev.evaluate(node.body if known else node.orelse)
    ev.frame.tests.append(node.test)
    refused = ev.refused
    loop, taken = loop_decided(ev, node.test) or (None, None)
    ev.journal.begin()
    if loop is not None and taken is False:
        forget_first_pass(ev, loop, node.test)
    narrow(ev, node.test, True)
    with muted_unless_default(ev, tested, outcome=True):
        first = ev.evaluate(node.body)
    one = ev.journal.undo()
    ev.journal.begin()
    if loop is not None and taken is True:
        forget_first_pass(ev, loop, node.test)
    narrow(ev, node.test, False)
    with muted_unless_default(ev, tested, outcome=False):
        second = ev.evaluate(node.orelse)
    other = ev.journal.undo()
    ev.refused = refused
    ev.frame.tests.pop()
    ev.journal.apply([one, other])
    for hook in hooks.choose:
        chosen = hook(ev, node, first, second)
        if chosen is not None:
            return chosen
    together = join if ev.frame.scope.comprehension else join_paths
    joined_value = by_default(ev, tested, together(first, second), first, second)
    note_lost_choice(ev, tested, joined_value, first, second)
    return joined_value


@expression(cst.Lambda)
def function(ev: Evaluator, node: cst.Lambda) -> Value:
    defaults = default_values(ev, node.params)
    return FunctionValue("lambda", node, ev.frame.module, ev.frame.scope, defaults=defaults)


@expression(cst.NamedExpr)
def walrus(ev: Evaluator, node: cst.NamedExpr) -> Value:
    value = ev.evaluate(node.value)
    inner = ev.frame.scope
    # In a comprehension it binds a name of the function around that.
    while ev.frame.scope.comprehension and ev.frame.scope.outer is not None:
        ev.frame.scope = ev.frame.scope.outer
    bind(ev, node.target, value)
    ev.frame.scope = inner
    return value


@expression(cst.Await)
def awaited(ev: Evaluator, node: cst.Await) -> Value:
    ev.evaluate(node.expression)
    return Unknown()


@expression(cst.Yield)
def yielded(ev: Evaluator, node: cst.Yield) -> Value:
    ev.frame.generator = True
    if isinstance(node.value, cst.From):
        ev.frame.yields.append(each(ev, ev.evaluate(node.value.item)))
    elif node.value is not None:
        ev.frame.yields.append(ev.evaluate(node.value))
    return Unknown()


@expression(cst.ListComp, cst.SetComp, cst.GeneratorExp)
def comprehension(ev: Evaluator, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
    numbers = list_of_numbers(ev, node) if isinstance(node, cst.ListComp) else None
    if numbers is None and not isinstance(node, cst.SetComp):
        numbers = list_of_items(ev, node, UNROLLED)
    if numbers is not None:
        return numbers
    results: list[Value] = []
    since = now()
    over: list[Value] = []

    tests = len(ev.frame.tests)

    def add(_: bool) -> None:
        item = passed_tests(ev, item_of(ev, node.elt), None)
        # A condition may leave out the largest number.
        results.append(item if len(ev.frame.tests) == tests else without_ends(item))

    exact = _comprehend(ev, node.for_in, add, over)
    if isinstance(node, cst.SetComp):
        return _set_of(results, exact)
    if exact:
        return ListValue(tuple(results))
    element = _representative(results, since)
    iterable, plain = over[0], not node.for_in.ifs and node.for_in.inner_for_in is None
    length = iterable.length if isinstance(iterable, ListValue) and plain else None
    # All passes do the same, except for random numbers.
    repeats = isinstance(node.for_in.target, cst.Name) and node.for_in.target.value.startswith("_")
    axes = axes_of(iterable)
    varied = element
    for axis in axes:
        varied = varied and rebound(varied, axis, since, drawn=repeats)
    return ListValue(None, varied, length, NO_AXES if repeats and varied is element else axes)


_JOINED = (Unknown, ModulePart, OneOfItems)
"""Joins of different objects."""


def _representative(results: list[Value], since: int) -> Value | None:
    """Represent all items of a comprehension by one; that of the first pass if later passes make the same."""
    element = without_length(Contents(tuple(results))).element
    if type(element) in (Unknown, ModulePart, OneOfItems) and isinstance(
        results[0], (InstanceValue, LibraryObject)
    ):
        if all(is_stable(results[0], later, since) for later in results[1:]):
            return results[0]
    return element


def _set_of(items: list[Value], exact: bool) -> Value:
    """Set of these items: equal constants are one item."""
    different = distinct(items) if exact else None
    return different or ListValue(None, without_length(Contents(tuple(items))).element)


@expression(cst.DictComp)
def dict_comprehension(ev: Evaluator, node: cst.DictComp) -> Value:
    known = dictionary_of_items(ev, node, UNROLLED)
    if known is not None:
        return known
    result = DictValue({})
    over: list[Value] = []

    def add(certain: bool) -> None:
        key = ev.evaluate(node.key)
        value = ev.evaluate(node.value)
        if not isinstance(key, Constant):
            result.rest = further_entry(result, value)
            result.closed = False
            return
        result.fields[key.value] = value
        sources = [entries.owner.written for entries in over if isinstance(entries, Entries)]
        places = [written[key.value] for written in sources if key.value in written]
        result.written[key.value] = places[0] if places else ev.place(node.key)
        if not certain:
            ev.journal.doubt(result.fields, key.value)

    if not _comprehend(ev, node.for_in, add, over):
        result.closed = False
    return result


def _comprehend(ev: Evaluator, loop: cst.CompFor, produce: Callable[[bool], None], over: list[Value]) -> bool:
    """Run produce for the items of the loop; return False if their number or choice is unknown.

    The argument of produce is True for an item that is there on every path. The iterables are put into over,
    outermost first.
    """
    scope = Scope(ev.frame.scope, comprehension=True)
    ev.frame.scope, around = scope, ev.frame.scope
    start, since = ev.steps, now()
    ev.journal.begin()
    try:
        exact = _run_comprehension(ev, loop, produce, over)
        if exact or ev.rehearsals:
            ev.journal.keep(scope.names)
            return exact
        first = ev.journal.undo()
        carried = LoopCarried(ev, loop, [first], axes_of(over[0]), since, item_of_loop(ev, over[0], loop))

        def later() -> list[Changes]:
            ev.journal.begin()
            _run_comprehension(ev, loop, produce, [])
            return [ev.journal.undo()]

        find_later_changes(ev, carried, [first], start, later)
        ev.journal.apply([first])
        carried.forget(ev)
        return exact
    finally:
        ev.frame.scope = around


def _run_comprehension(
    ev: Evaluator,
    loop: cst.CompFor,
    produce: Callable[[bool], None],
    over: list[Value],
    certain: bool = True,
) -> bool:
    iterable = iterate(ev, ev.evaluate(loop.iter), loop.iter)
    over.append(iterable)
    items = unrolled(ev, iterable)
    exact = items is not None
    several = some(ev, iterable) if items is None else items
    for position, value in enumerate(several if exact else (*several, item_of_loop(ev, iterable, loop))):
        bind(ev, loop.target, value)
        unknown = _unknown_conditions(ev, loop)
        if unknown is None:
            continue
        exact = exact and not unknown
        there = certain and not unknown and position < len(several)
        ev.frame.tests += unknown
        if loop.inner_for_in is not None:
            exact = _run_comprehension(ev, loop.inner_for_in, produce, over, there) and exact
        else:
            produce(there)
        del ev.frame.tests[len(ev.frame.tests) - len(unknown) :]
    return exact


def _unknown_conditions(ev: Evaluator, loop: cst.CompFor) -> list[cst.CSTNode] | None:
    """Conditions without a known result; None if one is certainly false."""
    unknown: list[cst.CSTNode] = []
    for condition in loop.ifs:
        known = truth(ev.evaluate(condition.test))
        if known is False:
            return None
        if known is None:
            unknown.append(condition.test)
    return unknown
