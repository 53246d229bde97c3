"""Random lines of a forward: what people write between their layers.

The tensor x is changed; its first size is the batch's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from module_drafts import Draft, Misfit, site
from random_grids import ON_GRIDS, ON_VOLUMES
from random_idioms import ANYWHERE as IDIOMS
from random_idioms import ON_LAST, probed, steps_by_hand
from random_layers import layer_for, layers_in_a_row, width
from random_rows import ON_ROWS
from random_sequences import ON_SEQUENCES

Step = Callable[[Draft], None]


def one_layer(draft: Draft) -> None:
    layer = draft.keep("layer", layer_for(draft, draft.shape))
    draft.then(draft.rng.choice((f"{layer}(x)",) * 3 + (f"F.relu({layer}(x))", f"torch.tanh({layer}(x))")))


def sequential(draft: Draft) -> None:
    codes = layers_in_a_row(draft, draft.rng.randint(2, 5))
    form = draft.rng.randrange(4)
    name = f"self.{draft.fresh('block')}"
    if form == 0:
        lines = [
            "layers = []",
            *(f"layers.append({code})" for code in codes),
            f"{name} = nn.Sequential(*layers)",
        ]
        code = "\n".join(lines)
    elif form == 1:
        code = "\n".join((f"{name} = nn.ModuleList([", *(f"    {code}," for code in codes), "])"))
    elif form == 2:
        named = (f'    "{chr(97 + at)}": {code},' for at, code in enumerate(codes))
        code = "\n".join((f"{name} = nn.ModuleDict({{", *named, "})"))
    else:
        code = "\n".join((f"{name} = nn.Sequential(", *(f"    {code}," for code in codes), ")"))
    draft.run(code)
    draft.init.append(code)
    if form == 1:
        draft.write(f"for layer in {name}:\n    x = layer(x)")
    elif form == 2:
        for at in range(len(codes)):
            draft.then(f'{name}["{chr(97 + at)}"](x)')
    else:
        draft.then(f"{name}(x)")


def stacked_layers(draft: Draft) -> None:
    """A list of linear layers whose sizes stand in a list."""
    last, depth = draft.shape[-1], draft.rng.randint(2, 3)
    sizes = [last, *(width(draft) for _ in range(depth))]
    listed = f"[{draft.size(last, 'in_features')}, {', '.join(map(str, sizes[1:]))}]"
    name = f"self.{draft.fresh('layers')}"
    code = f"sizes = {listed}\n{name} = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])"
    draft.run(code)
    draft.init.append(code)
    draft.write(f"for layer in {name}:\n    x = F.relu(layer(x))")


def residual(draft: Draft) -> None:
    """A block whose result is added to, or joined with, what it was handed."""
    rng, shape = draft.rng, draft.shape
    if len(shape) > 3 or (len(shape) == 3 and rng.random() < 0.4):
        dims = len(shape) - 2
        out = draft.size(shape[1], "residual size")
        padding = site("residual size", ", padding=1", "")
        layer = f"nn.Conv{dims}d({shape[1]}, {out}, 3{padding})"
    else:
        layer = f"nn.Linear({shape[-1]}, {draft.size(shape[-1], 'residual size')})"
    name = draft.keep("residual", layer)
    old = draft.fresh("skip")
    form = rng.randrange(4)
    if form == 0:
        draft.then(f"x + {name}(x)")
    elif form == 1:
        draft.write(f"{old} = x")
        draft.then(f"F.relu({name}(x))")
        draft.then(f"x + {old}")
    elif form == 2:
        draft.write(f"{old} = x")
        draft.then(f"{name}(x)")
        draft.write(f"x += {old}")
    else:
        draft.then(f"torch.cat([x, {name}(x)], dim=1)" if rng.random() < 0.5 else f"torch.mul({name}(x), x)")


def joined(draft: Draft) -> None:
    """Two layers beside each other, joined along a dimension."""
    rng, shape = draft.rng, draft.shape
    first, second = draft.fresh("left"), draft.fresh("right")
    a, b = rng.sample((4, 6, 8, 12), 2)
    if len(shape) > 3:
        make = f"nn.Conv{len(shape) - 2}d({shape[1]}, %s, 1)"
        dim, wrong = 1, 2
    else:
        make = f"nn.Linear({shape[-1]}, %s)"
        dim, wrong = -1, rng.choice((0, len(shape) - 2))
    one, other = draft.keep("branch", make % draft.size(a)), draft.keep("branch", make % draft.size(b))
    draft.write(f"{first} = {one}(x)")
    draft.write(f"{second} = {other}(x)")
    if rng.random() < 0.2:
        draft.run(f"x = torch.cat(({first}, {second}), {dim})")
        word = rng.choice(("torch.cat", "torch.concat"))
        draft.lines.append(f"x = {word}([{first}, {second}], {site('cat dim', str(dim), str(wrong))})")
    else:
        draft.then(f"torch.cat([{first}, {second}], dim={site('cat dim', str(dim), str(wrong))})")


def stacked(draft: Draft) -> None:
    rng, shape = draft.rng, draft.shape
    if len(shape) > 3:
        raise Misfit
    size = shape[-1]
    one = draft.keep("gate", f"nn.Linear({size}, {draft.size(size, 'stack size')})")
    dim = rng.choice((1, 0)) if len(shape) == 2 else 1
    draft.write(f"pair = torch.stack([x, {one}(x)], dim={dim})")
    if dim == 1 and rng.random() < 0.4:
        draft.then("pair")
    else:
        draft.then(f"pair.{rng.choice(('mean', 'sum'))}({rng.choice(('', 'dim='))}{dim})")


def gated(draft: Draft) -> None:
    dim = 1 if len(draft.shape) > 3 else len(draft.shape) - 1
    size = draft.shape[dim]
    if size % 2 or size < 4:
        raise Misfit
    form = draft.rng.randrange(4)
    if form == 0:
        draft.write(f"a, b = x.chunk(2, dim={dim})")
    elif form == 1:
        wrong = f"[{size // 2}, {size // 2 + 1}]"
        draft.write(f"a, b = x.split({site('split sizes', f'[{size // 2}, {size // 2}]', wrong)}, dim={dim})")
    elif form == 2:
        draft.write(f"a, b = torch.split(x, {draft.here(size // 2, 'split sizes')}, {dim})")
    else:
        before = ":, " * dim
        first, second = str(size // 2), site("residual size", str(size // 2), str(size // 2 - 1))
        draft.write(f"a, b = x[{before}:{first}], x[{before}{second}:]")
    draft.then("a * torch.sigmoid(b)")


def weighted(draft: Draft) -> None:
    """A product with a parameter."""
    rng, last = draft.rng, draft.shape[-1]
    if len(draft.shape) > 3:
        raise Misfit
    out = width(draft)
    size = draft.size(last, "product size")
    form = rng.randrange(5)
    if form == 0:
        weight = draft.keep("weight", f"nn.Parameter(torch.randn({size}, {out}))")
        draft.then(rng.choice((f"x @ {weight}", f"torch.matmul(x, {weight})", f"x.matmul({weight})")))
    elif form == 1:
        weight = draft.keep("weight", f"nn.Parameter(torch.randn({out}, {size}))")
        draft.then(
            rng.choice(
                (f"F.linear(x, {weight})", f"x @ {site('transpose left out', f'{weight}.t()', weight)}")
            )
        )
    elif form == 2:
        weight = draft.keep("weight", f"nn.Parameter(torch.randn({size}, {out}))")
        letters = "bi"[: len(draft.shape) - 1] if len(draft.shape) == 2 else "bt"
        letters = letters[0] if len(draft.shape) == 2 else letters
        draft.then(f'torch.einsum("{letters}i,io->{letters}o", x, {weight})')
    elif form == 3:
        scale = draft.keep("scale", f"nn.Parameter(torch.ones({size}))")
        draft.then(f"x * {scale}")
    else:
        name = draft.fresh("shift")
        code = f'self.register_buffer("{name}", torch.zeros({size}))'
        draft.run(code)
        draft.init.append(code)
        draft.then(f"x - self.{name}")


def left_as_it_is(draft: Draft) -> None:
    """What does not change sizes, in one of the ways that people write."""
    draft.then(
        draft.rng.choice(
            (
                "F.relu(x)",
                "F.dropout(x, 0.1, self.training)",
                "x.relu()",
                "torch.sigmoid(x)",
                "F.normalize(x, dim=1)",
                "x.contiguous()",
                "F.gelu(x)",
                "x / math.sqrt(x.size(-1))",
                "x - x.mean(dim=-1, keepdim=True)",
                "F.softmax(x, dim=-1)",
                "x.clamp(min=0)",
                "x.masked_fill(x < 0, 0.0)",
                "torch.where(x > 0, x, x * 0.1)",
                "(x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5)",
                "2 * x + 1",
                "x.float()",
            )
        )
    )


def functional_norm(draft: Draft) -> None:
    last = draft.shape[-1]
    wrong = f"({last + 1},)"
    draft.then(f"F.layer_norm(x, {site('norm features', f'({last},)', wrong)})")


ANYWHERE: tuple[Step, ...] = (
    *(one_layer, one_layer, one_layer, one_layer, one_layer),
    *(sequential, sequential, sequential, sequential, residual, residual, residual),
    *(joined, joined, stacked, gated, left_as_it_is, left_as_it_is, functional_norm),
)
BY_RANK: Mapping[int, Sequence[Step]] = {
    2: (*ANYWHERE, *IDIOMS, *ON_LAST, stacked_layers, weighted, weighted, *ON_ROWS),
    3: (*ANYWHERE, *IDIOMS, *ON_LAST, stacked_layers, weighted, steps_by_hand, probed, *ON_SEQUENCES),
    4: (*ANYWHERE, *IDIOMS, probed, probed, *ON_GRIDS),
    5: (one_layer, one_layer, sequential, residual, joined, *ON_VOLUMES),
}


def forward(draft: Draft, amount: int) -> None:
    """Write some steps, until x is of a rank that no step takes, or there are enough."""
    taken = 0
    for _ in range(12 * amount):
        rank = draft.x.dim()
        if taken == amount or rank not in BY_RANK:
            return
        taken += draft.attempt(draft.rng.choice(BY_RANK[rank]))


def embedded(draft: Draft, words: int) -> None:
    """Ids become vectors."""
    rng, size = draft.rng, width(draft)
    name = draft.keep("embedding", f"nn.Embedding({words}, {draft.size(size)})")
    if rng.random() < 0.1:
        bag = draft.keep("bag", f"nn.EmbeddingBag({words}, {size})")
        draft.then(f"{bag}(x)")
    else:
        draft.then(f"{name}(x)")
    assert draft.x.dtype == torch.float32
