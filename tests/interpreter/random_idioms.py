"""Random lines of a forward in which sizes go a longer way: loops over lists, shapes in pieces, probing."""

from __future__ import annotations

from itertools import pairwise

from module_drafts import Draft, site
from random_layers import divisor, width


def probed(draft: Draft) -> None:
    """The size of a linear layer is found by running what comes before it."""
    inner = ", ".join(map(str, draft.shape[1:]))
    conv = draft.keep("probe", f"nn.Conv{len(draft.shape) - 2}d({draft.shape[1]}, 3, 3, padding=1)")
    wrong = "size(-1)" if len(draft.shape) == 3 else "size(1)"
    count = draft.fresh("count")
    code = (
        f"with torch.no_grad():\n"
        f"    {count} = {conv}(torch.zeros(1, {inner})).{site('probed size', 'view(1, -1).size(1)', wrong)}"
    )
    draft.run(code)
    draft.init.append(code)
    linear = draft.keep("fc", f"nn.Linear({count}, {draft.size(width(draft))})")
    draft.then(f"{linear}({conv}(x).reshape(x.shape[0], -1))")


def numbered(draft: Draft) -> None:
    """Layers that are attributes with a number, made and read in loops."""
    stem = draft.fresh("step")
    dim = 1 if len(draft.shape) > 3 else len(draft.shape) - 1
    kind = (
        f"nn.Conv{len(draft.shape) - 2}d(a, b, 1)" if dim == 1 and len(draft.shape) > 2 else "nn.Linear(a, b)"
    )
    sizes = [draft.shape[dim], width(draft), width(draft)]
    named = f"widths = [{sizes[0]}, {sizes[1]}, {draft.size(sizes[2])}]"
    step = site("list of widths", "i + 1", "i")
    made = kind.replace("a, b", f"widths[i], widths[{step}]")
    name = f'f"{stem}_{{i}}"'
    loop = draft.rng.choice((f"setattr(self, {name}, {made})", f"self.add_module({name}, {made})"))
    code = f"{named}\nfor i in range(len(widths) - 1):\n    {loop}"
    draft.run(code)
    draft.init.append(code)
    draft.write(f"for i in range(2):\n    x = torch.relu(getattr(self, {name})(x))")


def down_and_up(draft: Draft) -> None:
    """Features are kept on the way down, and added on the way back."""
    size = draft.shape[-1]
    widths = [size, *(width(draft) for _ in range(2))]
    down, up = draft.fresh("down"), draft.fresh("up")
    codes = [f"nn.Linear({a}, {b})" for a, b in pairwise(widths)]
    back = [f"nn.Linear({b}, {draft.size(a, 'skip size')})" for a, b in pairwise(widths)]
    for name, layers in ((down, codes), (up, back[::-1])):
        code = f"self.{name} = nn.ModuleList([{', '.join(layers)}])"
        draft.run(code)
        draft.init.append(code)
    draft.write("skips = []")
    draft.write(f"for layer in self.{down}:\n    skips.append(x)\n    x = layer(x)")
    if draft.rng.random() < 0.5:
        draft.write(f"for layer, skip in zip(self.{up}, reversed(skips)):\n    x = layer(x) + skip")
    else:
        draft.write(f"for layer in self.{up}:\n    x = layer(x) + skips.pop()")


def steps_by_hand(draft: Draft) -> None:
    """A recurrent cell over time, its states collected."""
    size, hidden = draft.shape[-1], width(draft)
    cell = draft.keep("cell", f"nn.GRUCell({draft.size(size, 'recurrent features')}, {draft.size(hidden)})")
    draft.write(f"h = torch.zeros(x.size(0), {hidden})")
    draft.write("outputs = []")
    if draft.rng.random() < 0.5:
        draft.write(f"for t in range(x.size(1)):\n    h = {cell}(x[:, t], h)\n    outputs.append(h)")
    else:
        draft.write(f"for step in x.unbind(1):\n    h = {cell}(step, h)\n    outputs.append(h)")
    draft.then(f"torch.stack(outputs, dim={draft.rng.choice(('1', '-2'))})")
    linear = draft.keep("read", f"nn.Linear({draft.size(hidden, 'in_features')}, {width(draft)})")
    draft.then(f"{linear}(x)")


def shapes_unpacked(draft: Draft) -> None:
    """Sizes are taken from the shape in pieces, and put together again."""
    rng, rank = draft.rng, len(draft.shape)
    size = draft.shape[-1]
    part = divisor(draft, size)
    wrong = site("view size", str(part), str(part + 1))
    form = rng.randrange(4)
    if form == 0:
        draft.write("*lead, last = x.shape")
        draft.then(f"x.reshape(*lead, {wrong}, last // {part}).sum(-2)")
    elif form == 1:
        draft.then(f"x.reshape(x.shape[:-1] + ({wrong}, {size // part})).mean(-1)")
    elif form == 2:
        draft.write("n, *rest = x.size()")
        linear = draft.keep("flat", f"nn.Linear({draft.size(size, 'in_features')}, {width(draft)})")
        draft.then(f"{linear}(x.reshape(n, -1, rest[-1]))")
    else:
        dims = list(range(rank))
        order = [0, *rng.sample(dims[1:], rank - 1)]
        draft.then(f"x.permute({', '.join(map(str, order))})")


def branched(draft: Draft) -> None:
    """A flag decides, and it is known."""
    rng, size = draft.rng, draft.shape[-1]
    flag = rng.choice(("True", "False"))
    name = draft.fresh("use")
    draft.run(f"self.{name} = {flag}")
    draft.init.append(f"self.{name} = {flag}")
    gate = draft.keep("gate", f"nn.Linear({size}, {draft.size(size, 'residual size')})")
    other = draft.keep("other", f"nn.Linear({size}, {size + 1})")
    draft.write(f"if self.{name}:\n    x = x + {gate}(x)\nelse:\n    x = {other}(x)")


def optional_layer(draft: Draft) -> None:
    """A layer that is only there where sizes differ."""
    size, out = draft.shape[-1], width(draft)
    layer = draft.keep("shortcut", f"nn.Linear({size}, {out}) if {size} != {out} else nn.Identity()")
    main = draft.keep("main", f"nn.Linear({size}, {draft.size(out, 'residual size')})")
    draft.then(f"{main}(x) + {layer}(x)")


def experts(draft: Draft) -> None:
    """Several layers on the same input, their results weighted."""
    size, out = draft.shape[-1], width(draft)
    count = draft.rng.choice((2, 3))
    name = draft.keep("experts", f"nn.ModuleList([nn.Linear({size}, {out}) for _ in range({count})])")
    gate = draft.keep("gate", f"nn.Linear({size}, {draft.size(count, 'gate size')})")
    draft.write(f"weights = F.softmax({gate}(x), dim=-1)")
    draft.write(f"results = torch.stack([expert(x) for expert in {name}], dim=-1)")
    lift = site("unsqueeze left out", "weights.unsqueeze(-2)", "weights")
    draft.then(f"(results * {lift}).sum(-1)")


def sorted_out(draft: Draft) -> None:
    """The largest entries, cumulated sums, sorted ones, one of each."""
    last = draft.shape[-1]
    few = max(1, last // 2)
    forms = [f"x.topk({few}, dim=-1).values", f"torch.topk(x, k={few}, dim=-1)[0]", "x.sort(dim=-1)[0]"]
    forms += ["x.cumsum(dim=1)", "torch.cat([t for t in x.chunk(2, dim=-1)], dim=-1)", "x.narrow(-1, 0, 1)"]
    forms += ["torch.stack([t * 2 for t in x.unbind(dim=1)], dim=1)", "x[..., :-1] if x.size(-1) > 1 else x"]
    forms += [f"x.unfold(-1, {few}, 1).sum(-1)", "x.repeat_interleave(2, dim=1)", "torch.tile(x, (2,))"]
    forms += [f"F.one_hot(x.argmax(-1), {last}).float() + x", "x.var(dim=-1, keepdim=True) * x"]
    draft.then(draft.rng.choice(forms))


ANYWHERE = (numbered, shapes_unpacked, sorted_out, sorted_out)
ON_LAST = (down_and_up, branched, optional_layer, experts)
"""For what is a vector in its last dimension."""
