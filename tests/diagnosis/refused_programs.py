"""Programs that torch refuses, from the generators of the other tests, each with the row of its cause.

The cause is the row that a generator writes wrong on purpose; without one it is the failing operation.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

sys.path += [str(Path(__file__).parents[1] / folder) for folder in ("interpreter", "library", "checks")]

import random_modules
import random_programs
import test_checkpoints_of_the_program as checkpoints
import test_class_ids as class_ids
import test_leaf_writes as leaf_writes
import test_operands_that_do_not_fit as operands
import test_refused_calls as calls
import test_refused_layers as layers
import test_refused_losses as losses
import test_refused_operations as operations
import test_saved_tensors as saved
import test_second_backward as second_backward
import test_shape_operations as shapes
import test_uncollatable_samples as samples
import torch
from differential import IMPORTS
from program_runs import surroundings


@dataclass(frozen=True)
class Program:
    """A program that may fail: its family, its text, and the row written wrong on purpose, if any."""

    name: str
    family: str
    text: str
    row: int | None = None


def programs(seed: int = 0) -> Iterator[Program]:
    """Yield programs without end, in the same mixture for every number; some of them run."""
    drawn = [(share, make(random.Random(f"{make.__name__} {seed}"))) for share, make in _FAMILIES]
    while True:
        for share, generator in drawn:
            yield from islice(generator, share)


def _modules(rng: random.Random) -> Iterator[Program]:
    while True:
        seed = rng.randrange(10**9)
        torch.manual_seed(seed)
        script = random_modules.write(seed)
        if script.broken is not None:
            yield Program(f"module {seed}", f"module: {script.broken}", script.text, script.row)


def _views(rng: random.Random) -> Iterator[Program]:
    while True:
        seed = rng.randrange(10**9)
        with surroundings(seed):
            text = random_programs.write(seed, False, True).text
        shown = "def reveal(value):\n    return value\n\n\n"
        yield Program(f"views {seed}", "views", shown + text.replace(_ELSEWHERE, ""))


_ELSEWHERE = "from elsewhere import coin, count, perhaps_raise\n"


def _layers(rng: random.Random) -> Iterator[Program]:
    while True:
        draw = rng.choice(layers.LAYERS)
        yield _line("layers", draw.__name__, IMPORTS, f"y = {draw(rng)}")


def _losses(rng: random.Random) -> Iterator[Program]:
    while True:
        kind = rng.choice(("elementwise", "dtypes", "class", "class", "layer", "product"))
        if kind == "elementwise":
            given = (losses.tensor(rng.choice(losses.SIZES[1:]), "float32") for _ in "ab")
            code = f"F.{rng.choice(losses.ELEMENTWISE)}({', '.join(given)})"
        elif kind == "dtypes":
            given = (losses.tensor("3, 4", rng.choice(losses.DTYPES)) for _ in "ab")
            code = f"F.{rng.choice(losses.ELEMENTWISE)}({', '.join(given)})"
        elif kind == "class":
            scores = losses.tensor(rng.choice(losses.SIZES[1:]), "float32")
            targets = losses.tensor(rng.choice(losses.SIZES), rng.choice(("int64", "int64", *losses.DTYPES)))
            code = f"F.{rng.choice(losses.BY_CLASS)}({scores}, {targets})"
        elif kind == "layer":
            layer = rng.choice(list(losses.LAYERS))
            x = losses.tensor(losses.LAYERS[layer], rng.choice(losses.DTYPES))
            code = f"layer = {layer}{rng.choice(losses.CASTS[:2])}; layer({x})"
        else:
            given = (losses.tensor("4, 4", rng.choice(losses.DTYPES[:-1])) for _ in "ab")
            code = " @ ".join(given)
        yield _line("losses", kind, IMPORTS, f"y = {code}" if kind != "layer" else code)


def _operations(rng: random.Random) -> Iterator[Program]:
    templates = {**operations.PRODUCTS, **operations.JOINS, **operations.ELEMENTWISE, **operations.PLACES}
    templates |= operations.WRITES
    while True:
        name = rng.choice(list(templates))
        code = templates[name](operations.Draw(f"{name} {rng.randrange(10**6)}"))
        yield _line("operations", name, operations.SETUP, code)


def _shape_operations(rng: random.Random) -> Iterator[Program]:
    while True:
        sizes = [rng.choice((1, 2, 3, 4, 6)) for _ in range(rng.randint(1, 4))]
        head = f"{shapes.HEAD}x = torch.rand({', '.join(map(str, sizes))})\n"
        yield _line("shape operations", "line", head, shapes.operation(rng, sizes))


def _gradients(rng: random.Random) -> Iterator[Program]:
    """Second backwards, writes into leaves and into saved tensors."""
    while True:
        kind = rng.choice(("second backward", "leaf", "leaf", "saved result", "saved operand"))
        if kind == "second backward":
            before, body = rng.choice(list(second_backward.IN_LOOPS.values()))
            loop = rng.choice(second_backward.LOOPS)
            text = f"{second_backward.SETUP}{before}\n{loop}{second_backward.indented(body)}"
        elif kind == "leaf":
            around = rng.choice([leaf_writes.AROUND["plainly"], leaf_writes.AROUND["a function"]])
            written = leaf_writes.statement(rng.choice(leaf_writes.TENSORS), rng.choice(leaf_writes.WRITES))
            if "def write" in around and "=" in written:
                around = leaf_writes.AROUND["plainly"]
            text = leaf_writes.SETUP + around.format(written) + "\n"
        else:
            result = rng.choice(saved.RESULTS if kind == "saved result" else saved.OPERANDS)
            write = rng.choice(saved.WRITES)
            used = "y.sum()" if kind == "saved result" else "(x.sum() + y.sum())"
            name = "y" if kind == "saved result" else "x"
            text = f"{saved.SETUP}y = {result}\n{write.format(name)}\n{used}.backward()\n"
            row = saved.SETUP.count("\n") + 2
            yield Program(f"{kind} {result} {write}", f"gradients: {kind}", text, row)
            continue
        yield Program(f"{kind} {rng.random()}", f"gradients: {kind}", text)


_DATA = ("samples", "class ids", "loader ids", "checkpoints", "states", "calls", "operands")


def _data(rng: random.Random) -> Iterator[Program]:
    """Samples that are not collated, class ids, checkpoints, arguments, hidden states."""
    while True:
        kind = rng.choice(_DATA)
        if kind == "samples":
            body = rng.choice(samples.RAISE)
            text = f"{samples.HEAD}{samples.DATASET.format(body)}\nrandom.seed(1)\ntorch.manual_seed(1)\n"
            text += "for batch in DataLoader(Data(), batch_size=4):\n    pass\n"
            yield Program(f"{kind} {body}", f"data: {kind}", text)
        elif kind == "class ids":
            target, loss = rng.choice(class_ids.TARGETS), rng.choice(class_ids.LOSSES)
            yield _line("data: class ids", target, f"{class_ids.SETUP}target = {target}\n", loss)
        elif kind == "loader ids":
            text = class_ids.LOADER.format(
                item=rng.choice(("labels[i]", "labels[i] + 1", "torch.tensor(labels[i])")),
                loader="DataLoader(Rows(), batch_size=4)",
            )
            yield Program(f"{kind} {rng.random()}", f"data: {kind}", text)
        elif kind == "checkpoints":
            code = f"torch.save({rng.choice(checkpoints.OBJECTS)}, 'file.pt')\n"
            head = checkpoints.HEAD + code
            load = f"loaded = torch.load('file.pt'{rng.choice(checkpoints.SETTINGS)})"
            yield _line("data: checkpoints", "load", head, load)
        elif kind == "states":
            module, state, settings = rng.choice(checkpoints.LOADS)
            yield _line(
                "data: states", state, checkpoints.HEAD, f"{module}.load_state_dict({state}{settings})"
            )
        elif kind == "calls":
            name = rng.choice(list(calls.REFUSED))
            head = calls.HEAD.replace("missing.Base, ", "")
            yield _line("data: calls", name, head, calls.REFUSED[name])
        else:
            code = rng.choice(list(operands.MISFITS))
            yield _line("data: operands", "misfit", operands.HEAD, f"y = {code}")


def _line(family: str, name: str, head: str, code: str) -> Program:
    """Return a program with one line of interest, the last one."""
    text = f"{head.lstrip()}{code}\n"
    return Program(f"{family} {name} {code}", family, text)


_FAMILIES = (
    (16, _modules),
    (2, _views),
    (5, _layers),
    (4, _losses),
    (5, _operations),
    (3, _shape_operations),
    (4, _gradients),
    (4, _data),
)
"""How many programs of each family come in turn."""
