"""Operations on two and more tensors: shapefix refuses exactly what torch refuses.

Sizes are drawn small, so that they fit, stretch and clash about equally often; a few have a wrong rank.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from differential import IMPORTS, interpret

from shapefix.interpreter.events import OpRejected

pytestmark = pytest.mark.slow

CASES = 60
SIZES = (1, 2, 2, 3)


class Draw:
    """Random sizes for one call, and the code of tensors that have them."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.named = {name: self.random.choice(SIZES) for name in "abcde"}

    def size(self, name: str) -> int:
        """The size of this name; once in six times another one."""
        return self.random.choice(SIZES) if self.random.random() < 0.17 else self.named[name]

    def sizes(self, names: str) -> list[int]:
        """Sizes by their names; once in twelve times one too few or too many."""
        found = [self.size(name) for name in names]
        if self.random.random() < 0.08:
            found = found[1:] if self.random.random() < 0.5 else [self.random.choice(SIZES), *found]
        return found

    def floats(self, names: str) -> str:
        """A tensor of floats, its sizes called so."""
        return f"torch.randn({self.sizes(names)})"

    def mask(self, names: str) -> str:
        """A tensor of booleans."""
        return f"(torch.randn({self.sizes(names)}) > 0)"

    def zeros(self, names: str) -> str:
        """An index into anything."""
        return f"torch.zeros({self.sizes(names)}, dtype=torch.int64)"

    def some(self, names: str) -> str:
        """The last of these names, at random from which one on: operands that are stretched in front."""
        return names[self.random.randrange(len(names)) :]

    def one(self, *choices: str) -> str:
        """One of these."""
        return self.random.choice(choices)


Template = Callable[[Draw], str]

PRODUCTS: dict[str, Template] = {
    "@": lambda d: f"{d.floats('abc')} @ {d.floats(d.one('acd', 'cd', 'c'))}",
    "matmul": lambda d: f"torch.matmul({d.floats(d.one('c', 'bc', 'ebc'))}, {d.floats(d.one('ecd', 'cd'))})",
    "mm": lambda d: f"torch.mm({d.floats('ab')}, {d.floats('bc')})",
    "Tensor.mm": lambda d: f"{d.floats('ab')}.mm({d.floats('bc')})",
    "bmm": lambda d: f"torch.bmm({d.floats('abc')}, {d.floats('acd')})",
    "mv": lambda d: f"{d.floats('ab')}.mv({d.floats('b')})",
    "dot": lambda d: f"torch.dot({d.floats('a')}, {d.floats('a')})",
    "outer": lambda d: f"torch.outer({d.floats('a')}, {d.floats('b')})",
    "addmm": lambda d: f"torch.addmm({d.floats(d.some('ac'))}, {d.floats('ab')}, {d.floats('bc')})",
    "baddbmm": lambda d: f"torch.baddbmm({d.floats(d.some('abd'))}, {d.floats('abc')}, {d.floats('acd')})",
    "addbmm": lambda d: f"{d.floats(d.some('bd'))}.addbmm({d.floats('abc')}, {d.floats('acd')})",
    "addmv": lambda d: f"torch.addmv({d.floats('a')}, {d.floats('ab')}, {d.floats('b')})",
    "F.linear": lambda d: f"F.linear({d.floats(d.some('abc'))}, {d.floats('dc')})",
    "F.linear with bias": lambda d: (
        f"F.linear({d.floats('abc')}, {d.floats('dc')}, torch.randn({d.size('d')}))"
    ),
    "einsum": lambda d: f"torch.einsum('bij,bjk->bik', {d.floats('abc')}, {d.floats('acd')})",
    "einsum of all": lambda d: f"torch.einsum('ij, jk', {d.floats('ab')}, {d.floats('bc')})",
    "einsum with dots": lambda d: f"torch.einsum('...i,...i->...', [{d.floats('abc')}, {d.floats('abc')}])",
    "einsum of a trace": lambda d: f"torch.einsum('bii->b', {d.floats('abb')})",
    "attention": lambda d: (
        f"F.scaled_dot_product_attention({d.floats('abd')}, {d.floats('acd')}, {d.floats('acd')})"
    ),
    "masked attention": lambda d: (
        f"x = torch.randn({d.named['a']}, 2, {d.size('d')}); "
        f"F.scaled_dot_product_attention(x, x, x, "
        f"torch.randn({d.size('a')}, {d.size('b')}, {d.size('c')}) > 0)"
    ),
}

JOINS: dict[str, Template] = {
    "cat": lambda d: (
        f"torch.cat([{d.floats('abc')}, {d.floats('abc')}], {d.one('0', '1', 'axis=2', 'dim=-1')})"
    ),
    "cat of three": lambda d: f"torch.cat(({d.floats('ab')}, {d.floats('cb')}, {d.floats('db')}))",
    "stack": lambda d: (
        f"torch.stack([{d.floats('ab')}, {d.floats('ab')}], {d.one('dim', 'axis')}={d.one('0', '1', '-1')})"
    ),
    "hstack": lambda d: f"torch.hstack([{d.floats('ab')}, {d.floats('ac')}])",
    "hstack of vectors": lambda d: f"torch.hstack([{d.floats('a')}, {d.floats('b')}])",
    "vstack": lambda d: f"torch.vstack([{d.floats('ab')}, {d.floats(d.one('b', 'cb'))}])",
    "dstack": lambda d: f"torch.dstack([{d.floats('ab')}, {d.floats(d.one('ab', 'abc'))}])",
    "pad_sequence": lambda d: f"pad_sequence([{d.floats('ab')}, {d.floats('cb')}], batch_first=True)",
}

ELEMENTWISE: dict[str, Template] = {
    "operators": lambda d: (
        f"{d.floats('abc')} {d.one('+', '-', '*', '/', '<', '==', '**')} {d.floats(d.some('abc'))}"
    ),
    "functions": lambda d: (
        f"torch.{d.one('add', 'mul', 'maximum', 'eq', 'atan2')}({d.floats(d.some('abc'))}, {d.floats('abc')})"
    ),
    "methods": lambda d: f"{d.floats('ab')}.{d.one('sub', 'div', 'ge', 'pow')}({d.floats(d.some('ab'))})",
    "where": lambda d: f"torch.where({d.mask(d.some('abc'))}, {d.floats('abc')}, {d.floats(d.some('abc'))})",
    "where a number": lambda d: f"torch.where({d.mask(d.some('ab'))}, 0.0, {d.floats('ab')})",
    "lerp": lambda d: f"torch.lerp({d.floats('ab')}, {d.floats(d.some('ab'))}, {d.floats('b')})",
    "addcmul": lambda d: f"torch.addcmul({d.floats('ab')}, {d.floats('ab')}, {d.floats('b')})",
    "masked_fill": lambda d: f"{d.floats('abc')}.masked_fill({d.mask(d.some('abc'))}, 0.0)",
    "masked_select": lambda d: f"torch.masked_select({d.floats('ab')}, {d.mask(d.some('ab'))})",
    "clamp": lambda d: f"{d.floats('ab')}.clamp(min={d.floats(d.some('ab'))})",
    "expand_as": lambda d: f"{d.floats(d.some('abc'))}.expand_as({d.floats('abc')})",
    "expand": lambda d: f"{d.floats(d.some('abc'))}.expand({', '.join(map(str, d.sizes('abc')))})",
    "broadcast_to": lambda d: f"torch.broadcast_to({d.floats(d.some('abc'))}, {d.sizes('abc')})",
    "indexed by a mask": lambda d: f"{d.floats('abc')}[{d.mask(d.one('a', 'ab'))}]",
    "indexed by tensors": lambda d: f"{d.floats('ee')}[{d.zeros('ab')}, {d.zeros(d.some('ab'))}]",
}

PLACES: dict[str, Template] = {
    "gather": lambda d: f"{d.floats('abc')}.gather({d.one('0', '1', '2', '-1')}, {d.zeros('abc')})",
    "scatter": lambda d: f"{d.floats('ab')}.scatter({d.one('0', '1')}, {d.zeros('ab')}, {d.floats('ab')})",
    "scatter_ of a number": lambda d: f"{d.floats('ab')}.scatter_({d.one('0', '1')}, {d.zeros('ab')}, 1.0)",
    "scatter_add_": lambda d: f"{d.floats('ab')}.scatter_add_(1, {d.zeros('ab')}, {d.floats('ab')})",
    "index_add": lambda d: f"{d.floats('ab')}.index_add(0, {d.zeros('c')}, {d.floats('cb')})",
    "index_copy_": lambda d: f"{d.floats('ab')}.index_copy_(0, {d.zeros('c')}, {d.floats('cb')})",
    "index_select": lambda d: f"{d.floats('abc')}.index_select({d.one('0', '1', '-1')}, {d.zeros('d')})",
}

WRITES: dict[str, Template] = {
    "+=": lambda d: f"x = {d.floats(d.some('abc'))}; x {d.one('+=', '*=', '-=')} {d.floats(d.some('abc'))}",
    "add_": lambda d: f"{d.floats('ab')}.{d.one('add_', 'mul_', 'copy_')}({d.floats(d.some('ab'))})",
    "masked_fill_": lambda d: f"{d.floats('ab')}.masked_fill_({d.mask(d.some('ab'))}, 0.0)",
    "lerp_": lambda d: f"{d.floats('ab')}.lerp_({d.floats(d.some('ab'))}, {d.floats('b')})",
    "a slice": lambda d: (
        f"x = torch.randn(4, 4); x[:{d.size('a')}, -{d.size('b')}:] = {d.floats(d.some('ab'))}"
    ),
    "a row": lambda d: f"x = torch.randn(2, 3, {d.size('a')}); x[{d.one('0, 1', '-1, 0')}] = {d.floats('a')}",
    "an index": lambda d: f"x = torch.randn(3, {d.size('b')}); x[{d.zeros('a')}] = {d.floats(d.some('ab'))}",
}


SETUP = f"{IMPORTS}\nfrom torch.nn.utils.rnn import pad_sequence\n"


def torch_refuses(code: str) -> bool:
    """Whether torch raises for the sizes in a line of code."""
    try:
        exec(SETUP + code, {})
    except (RuntimeError, IndexError, ValueError):
        return True
    return False


def refused_rows(lines: list[str]) -> set[int]:
    """The lines, counted from 0, of which shapefix says that torch refuses them."""
    events = interpret(SETUP + "\n".join(lines) + "\n")
    first = SETUP.count("\n") + 1
    return {event.place.span.row - first for event in events if isinstance(event, OpRejected)}


@pytest.mark.parametrize("name", [*PRODUCTS, *JOINS, *ELEMENTWISE, *PLACES, *WRITES])
def test_refuses_what_torch_refuses(name: str) -> None:
    template = {**PRODUCTS, **JOINS, **ELEMENTWISE, **PLACES, **WRITES}[name]
    lines = [template(Draw(f"{name} {number}")) for number in range(CASES)]
    truth = {row for row, line in enumerate(lines) if torch_refuses(line)}
    found = refused_rows(lines)
    wrong = [f"torch runs, shapefix refuses: {lines[row]}" for row in sorted(found - truth)]
    wrong += [f"torch refuses, shapefix is silent: {lines[row]}" for row in sorted(truth - found)]
    assert not wrong, "\n".join(wrong)
    assert 0 < len(truth) < CASES, f"{len(truth)} of {CASES} are refused: nothing is learnt from that"


@pytest.mark.parametrize("name", ["mean", "nanmean", "std", "var", "norm", "sum", "amax", "logsumexp"])
@pytest.mark.parametrize("dtype", ["bool", "int64", "uint8", "float16", "float64"])
def test_reductions_of_a_dtype(name: str, dtype: str) -> None:
    import torch

    tensor = f"torch.ones(2, 3, dtype=torch.{dtype})"
    code = f"{tensor}.{name}({'0' if name == 'logsumexp' else ''})"
    raises = False
    try:
        eval(code, {"torch": torch})
    except (RuntimeError, TypeError):
        raises = True
    refused = [event for event in interpret(f"{IMPORTS}\n{code}") if isinstance(event, OpRejected)]
    assert not refused or raises
    if name in ("mean", "nanmean", "std", "var", "norm"):
        assert bool(refused) is raises
