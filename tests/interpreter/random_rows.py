"""Random lines of a forward for rows (N, C)."""

from __future__ import annotations

from module_drafts import Draft, site
from random_layers import divisor, width


def rows_viewed(draft: Draft) -> None:
    """Rows become sequences, or images."""
    rng, (batch, size) = draft.rng, draft.shape
    part = divisor(draft, size)
    wrong = str(part + rng.choice((1, 2)))
    if rng.random() < 0.3 and size % 4 == 0:
        draft.then(f"x.{rng.choice(('view', 'reshape'))}(-1, {draft.here(size // 4, 'view size')}, 2, 2)")
        return
    lead = rng.choice(("x.size(0)", "x.shape[0]", "-1", str(batch)))
    draft.then(
        f"x.{rng.choice(('view', 'reshape'))}({lead}, {size // part}, {site('view size', str(part), wrong)})"
    )


def rows_lifted(draft: Draft) -> None:
    dim = draft.rng.choice((1, 2))
    draft.then(f"x.unsqueeze({dim})")
    if draft.rng.random() < 0.5:
        sizes = ("-1, 4, -1", "-1, -1, 4")[dim - 1]
        draft.then(f"x.expand({sizes})")


def cell(draft: Draft) -> None:
    """A recurrent cell, some steps of it."""
    _, size = draft.shape
    hidden = width(draft)
    kind = draft.rng.choice(("LSTMCell", "GRUCell", "RNNCell"))
    name = draft.keep("cell", f"nn.{kind}({draft.size(size, 'recurrent features')}, {hidden})")
    state = f"x.new_zeros(x.size(0), {draft.here(hidden, 'hidden state')})"
    draft.write(f"h = {state}")
    if kind == "LSTMCell":
        draft.write("c = torch.zeros_like(h)")
        draft.write(f"for step in range(2):\n    h, c = {name}(x, (h, c))")
    else:
        draft.write(f"for step in range(2):\n    h = {name}(x, h)")
    draft.then("h")


def bilinear(draft: Draft) -> None:
    size = draft.shape[-1]
    other = draft.size(size, "in_features")
    draft.then(f"{draft.keep('bilinear', f'nn.Bilinear({size}, {other}, {width(draft)})')}(x, x)")


def similarity(draft: Draft) -> None:
    """Every row against prototypes."""
    size = draft.shape[-1]
    name = draft.keep("prototypes", f"nn.Parameter(torch.randn(5, {draft.size(size, 'product size')}))")
    draft.then(
        draft.rng.choice(
            (
                f"torch.mm(x, {site('transpose left out', f'{name}.t()', name)})",
                f"torch.cdist(x, {name})",
                f"F.cosine_similarity(x.unsqueeze(1), {name}, dim=-1)",
                f"(x.unsqueeze(1) - {name}).pow(2).sum(-1)",
            )
        )
    )


ON_ROWS = (rows_viewed, rows_lifted, cell, bilinear, similarity)
