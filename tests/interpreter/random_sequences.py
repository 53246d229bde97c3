"""Random lines of a forward for sequences (N, T, C): recurrent layers, attention, positions, pooling."""

from __future__ import annotations

from module_drafts import Draft, site
from random_layers import divisor, width


def recurrent(draft: Draft) -> None:
    rng, (batch, _, size) = draft.rng, draft.shape
    kind = rng.choice(("LSTM", "GRU", "RNN"))
    hidden, layers, both = width(draft), rng.choice((1, 1, 2)), rng.random() < 0.3
    first = rng.random() < 0.8
    extra = (", batch_first=True" if first else "") + (", bidirectional=True" if both else "")
    extra += f", num_layers={layers}" if layers > 1 else ""
    name = draft.keep(
        "rnn", f"nn.{kind}({draft.size(size, 'recurrent features')}, {draft.size(hidden)}{extra})"
    )
    given = "x" if first else site("transpose left out", "x.transpose(0, 1)", "x")
    if rng.random() < 0.4:
        count = layers * (2 if both else 1)
        state = f"torch.zeros({count}, x.size(0), {draft.here(hidden, 'hidden state')})"
        if rng.random() < 0.3:
            state = f"torch.zeros({count}, {draft.here(batch, 'hidden state')}, {hidden})"
        draft.write(f"h0 = {state}")
        given += ", (h0, torch.zeros_like(h0))" if kind == "LSTM" else ", h0"
    hidden_state = "(h, c)" if kind == "LSTM" else "h"
    draft.write(f"x, {rng.choice((hidden_state, '_', 'state'))} = {name}({given})")
    if not first:
        draft.then("x.transpose(0, 1)")
    elif "h" in draft.names and rng.random() < 0.3:
        draft.then(rng.choice(("h[-1]", "torch.cat([h[0], h[-1]], dim=-1)")))


def attention(draft: Draft) -> None:
    size = draft.shape[-1]
    heads = divisor(draft, size)
    wrong = str(size + heads)
    name = draft.keep(
        "attention",
        f"nn.MultiheadAttention({draft.size(size, 'attention features', wrong)}, {heads}, batch_first=True)",
    )
    form = draft.rng.randrange(3)
    if form == 0:
        draft.write(f"x, _ = {name}(x, x, x)")
    elif form == 1:
        draft.write(f"a, weights = {name}(x, x, x, need_weights={draft.rng.choice((True, False))})")
        draft.then("x + a")
    else:
        size_ = draft.keep("keys", f"nn.Linear({size}, {draft.size(size, 'attention features', wrong)})")
        draft.write(f"memory = {size_}(x)")
        draft.then(f"{name}(x, memory, memory)[0]")


def own_attention(draft: Draft) -> None:
    """Attention written out, with heads."""
    rng, (_, steps, size) = draft.rng, draft.shape
    heads = divisor(draft, size)
    part = size // heads
    qkv = draft.keep("qkv", f"nn.Linear({size}, {site('attention features', f'{size} * 3', f'{size} * 2')})")
    draft.write("b, t, c = x.shape")
    if rng.random() < 0.5:
        wrong = rng.choice((str(heads + 1), str(heads * 2)))
        shape = f"b, t, {site('view size', str(heads), wrong)}, {part}"
        draft.write(f"q, k, v = {qkv}(x).chunk(3, dim=-1)")
        for name in "qkv":
            shown = shape if name == "k" else f"b, t, {heads}, {part}"
            draft.write(f"{name} = {name}.view({shown}).transpose(1, 2)")
    else:
        order = "2, 0, 3, 1, 4"
        draft.write(
            f"q, k, v = {qkv}(x).{rng.choice(('reshape', 'view'))}(b, t, 3, {heads}, {part}).permute({order})"
        )
    across = site(
        "transpose left out", rng.choice(("k.transpose(-2, -1)", "k.mT", "k.permute(0, 1, 3, 2)")), "k"
    )
    if rng.random() < 0.3:
        draft.write("x = F.scaled_dot_product_attention(q, k, v)")
    else:
        scale = f"{part} ** -0.5"
        if rng.random() < 0.2:
            draft.write(f'scores = torch.einsum("bhid,bhjd->bhij", q, k) * {scale}')
        else:
            draft.write(f"scores = {rng.choice((f'q @ {across}', f'torch.matmul(q, {across})'))} * {scale}")
        if rng.random() < 0.5:
            length = rng.choice(("t, t", f"{draft.here(steps, 'mask size')}, {steps}"))
            draft.write(f"mask = torch.tril(torch.ones({length}))")
            draft.write('scores = scores.masked_fill(mask == 0, float("-inf"))')
        draft.write(f"weights = {rng.choice(('F.softmax(scores, dim=-1)', 'scores.softmax(-1)'))}")
        draft.then(rng.choice(("weights @ v", "torch.matmul(weights, v)")))
    back = rng.choice(("x.transpose(1, 2).reshape(b, t, c)", "x.transpose(1, 2).contiguous().view(b, t, c)"))
    if "view" in back and rng.random() < 0.5:
        draft.then(f"x.transpose(1, 2){site('copy left out', '.contiguous()', '')}.view(b, t, c)")
        return
    draft.then(
        site("view size", back, back.replace("t, c)", f"t, {size + heads})")) if rng.random() < 0.3 else back
    )


def one_head(draft: Draft) -> None:
    """Attention of one head with bmm."""
    size = draft.shape[-1]
    inner = width(draft)
    q = draft.keep("query", f"nn.Linear({size}, {inner})")
    k = draft.keep("key", f"nn.Linear({size}, {draft.size(inner, 'product size')})")
    draft.write(f"q, k = {q}(x), {k}(x)")
    across = site("transpose left out", "k.transpose(1, 2)", "k")
    draft.write(f"weights = torch.softmax(torch.bmm(q, {across}), dim=-1)")
    draft.then("torch.bmm(weights, x)")


def positions(draft: Draft) -> None:
    rng, (_, steps, size) = draft.rng, draft.shape
    form = rng.randrange(4)
    if form == 0:
        name = draft.keep(
            "pos", f"nn.Parameter(torch.zeros(1, {draft.size(steps, 'residual size')}, {draft.size(size)}))"
        )
        draft.then(f"x + {name}")
    elif form == 1:
        name = draft.keep("pos", f"nn.Embedding({steps + 4}, {draft.size(size, 'residual size')})")
        draft.then(f"x + {name}(torch.arange(x.size(1)))")
    elif form == 2:
        name = draft.keep(
            "pos", f"nn.Parameter(torch.zeros(1, {steps + 4}, {draft.size(size, 'residual size')}))"
        )
        draft.then(f"x + {name}[:, :x.size(1)]")
    else:
        name = draft.keep("cls", f"nn.Parameter(torch.zeros(1, 1, {draft.size(size, 'cat size')}))")
        draft.then(f"torch.cat([{name}.expand(x.size(0), -1, -1), x], dim={site('cat dim', '1', '2')})")


def across_time(draft: Draft) -> None:
    """A convolution along the second dimension of (N, T, C)."""
    size = draft.shape[-1]
    channels = f"{draft.size(size, 'channels')}, {draft.size(width(draft))}"
    layer = draft.keep("conv", f"nn.Conv1d({channels}, 3, padding={draft.rng.randint(0, 1)})")
    move = draft.rng.choice(("x.transpose(1, 2)", "x.permute(0, 2, 1)"))
    draft.then(f"{layer}({site('transpose left out', move, 'x')})")
    if draft.rng.random() < 0.8:
        draft.then("x.transpose(1, 2)")


def pooled(draft: Draft) -> None:
    rng, shape = draft.rng, draft.shape
    forms = [
        "x[:, -1]",
        "x[:, 0, :]",
        "x.mean(dim=1)",
        "x.mean(1)",
        "x.max(dim=1)[0]",
        "x.sum(1)",
        "x.amax(dim=1)",
    ]
    forms += ["torch.mean(x, dim=2)", "torch.max(x, dim=1).values", "x.max(1).values", "x.logsumexp(1)"]
    if shape[-1] % 2 == 0:
        forms += ["F.max_pool1d(x, 2)", "F.avg_pool1d(x, kernel_size=2)"]
    forms += [
        "F.adaptive_avg_pool1d(x, 1).squeeze(-1)",
        "F.interpolate(x, scale_factor=2)",
        "F.pad(x, (1, 1))",
    ]
    draft.then(rng.choice(forms))


def chosen(draft: Draft) -> None:
    """gather, index_select, advanced indexing."""
    rng, (batch, steps, size) = draft.rng, draft.shape
    form = rng.randrange(4)
    if form == 0:
        rows = draft.here(batch, "gather size") if rng.random() < 0.5 else "x.size(0)"
        draft.write(f"index = torch.zeros({rows}, 1, {size}, dtype=torch.long)")
        draft.then(f"x.gather(1, index){rng.choice(('', '.squeeze(1)'))}")
    elif form == 1:
        draft.then(f"x.index_select({rng.choice((1, 2))}, torch.tensor([0, 1]))")
    elif form == 2:
        draft.then("x[torch.arange(x.size(0)), 0]")
    else:
        draft.then(f"x[:, :{max(1, steps - 1)}]")


def merged(draft: Draft) -> None:
    """Two dimensions become one."""
    rng, (batch, steps, size) = draft.rng, draft.shape
    product = steps * size
    forms = ["x.flatten(1)", "torch.flatten(x, 1)", "x.reshape(x.size(0), -1)", "x.reshape(x.shape[0], -1)"]
    forms += [f"x.reshape(-1, {draft.here(product, 'view size')})"]
    forms += [f"x.contiguous().view({batch}, {draft.here(product, 'view size')})"]
    linear = draft.keep("fc", f"nn.Linear({draft.size(product, 'in_features')}, {width(draft)})")
    draft.then(
        f"{linear}({site('flatten left out', rng.choice(forms[:4]), 'x')})"
        if rng.random() < 0.6
        else forms[-1]
    )


ON_SEQUENCES = (
    *(recurrent, recurrent, recurrent, attention, attention, own_attention, own_attention, one_head),
    *(positions, positions, across_time, across_time, pooled, pooled, chosen, merged),
)
