"""Random lines of a forward for images (N, C, H, W) and volumes (N, C, D, H, W)."""

from __future__ import annotations

from module_drafts import Draft, Misfit, site
from random_layers import width


def grid_function(draft: Draft) -> None:
    rng, (_, channels, height, breadth) = draft.rng, draft.shape
    forms = ["F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2, stride=1)", "F.adaptive_avg_pool2d(x, (2, 2))"]
    forms += ['F.interpolate(x, scale_factor=2, mode="nearest")', "F.pad(x, (1, 1, 1, 1))"]
    forms += [
        f"F.interpolate(x, size=({height + 1}, {breadth}))",
        "x[:, :, 1:, :]",
        "x.flip(-1)",
        "torch.roll(x, 1, 2)",
    ]
    if channels % 4 == 0:
        forms.append("F.pixel_shuffle(x, 2)")
    weight = f"torch.randn(6, {draft.size(channels, 'channels')}, 3, 3)"
    forms.append(f"F.conv2d(x, {draft.keep('kernel', f'nn.Parameter({weight})')}, padding=1)")
    draft.then(rng.choice(forms))


def excited(draft: Draft) -> None:
    """Squeeze and excitation."""
    channels = draft.shape[1]
    inner = max(1, channels // 2)
    last = draft.size(channels, "residual size")
    name = draft.keep(
        "squeeze", f"nn.Sequential(nn.Linear({channels}, {inner}), nn.ReLU(), nn.Linear({inner}, {last}))"
    )
    draft.write(f"gate = {name}(x.mean({draft.rng.choice(('(2, 3)', 'dim=[2, 3]', '(-2, -1)'))}))")
    lift = draft.rng.choice(
        (".view(x.size(0), -1, 1, 1)", "[:, :, None, None]", ".unsqueeze(-1).unsqueeze(-1)")
    )
    draft.then(f"x * torch.sigmoid(gate){site('unsqueeze left out', lift, '')}")


def skipped(draft: Draft) -> None:
    """Down, up again, and beside what was there before."""
    _, channels, height, breadth = draft.shape
    if height % 2 or breadth % 2:
        raise Misfit
    down = draft.keep(
        "down", f"nn.Conv2d({channels}, {draft.size(8)}, 3, stride=2, padding={site('skip size', '1', '0')})"
    )
    up = draft.keep("up", f"nn.ConvTranspose2d({draft.size(8, 'channels')}, {draft.size(6)}, 2, stride=2)")
    join = draft.keep(
        "join", f"nn.Conv2d({draft.size(channels + 6, 'channels')}, {draft.size(width(draft))}, 1)"
    )
    draft.write("skip = x")
    draft.write(f"x = {up}(F.relu({down}(x)))")
    draft.then(f"{join}(torch.cat([skip, x], dim={site('cat dim', '1', '3')}))")


def grid_to_sequence(draft: Draft) -> None:
    size = draft.shape[1]
    move = draft.rng.choice((".transpose(1, 2)", ".permute(0, 2, 1)"))
    draft.then(f"x.flatten(2){site('transpose left out', move, '')}")
    if draft.rng.random() < 0.7:
        draft.then(f"{draft.keep('proj', f'nn.Linear({size}, {draft.size(width(draft))})')}(x)")


def grid_to_rows(draft: Draft) -> None:
    rng = draft.rng
    batch, *rest = draft.shape
    total = 1
    for size in rest:
        total *= size
    forms = [
        "x.flatten(1)",
        "torch.flatten(x, 1)",
        "x.reshape(x.size(0), -1)",
        "torch.flatten(x, start_dim=1)",
    ]
    if draft.x.is_contiguous():
        forms += ["x.view(x.size(0), -1)", "x.view(x.shape[0], -1)"]
    if rng.random() < 0.3:
        draft.then(f"x.reshape({rng.choice(('-1', str(batch)))}, {draft.here(total, 'view size')})")
        return
    linear = draft.keep("fc", f"nn.Linear({draft.size(total, 'in_features')}, {draft.size(width(draft))})")
    draft.then(f"{linear}({site('flatten left out', rng.choice(forms), 'x')})")


def grid_to_channels_last(draft: Draft) -> None:
    size = draft.shape[1]
    move = site("transpose left out", "x.permute(0, 2, 3, 1)", "x")
    norm = draft.keep("norm", f"nn.LayerNorm({draft.size(size, 'norm features')})")
    linear = draft.keep("pointwise", f"nn.Linear({size}, {width(draft)})")
    draft.then(f"{linear}({norm}({move}))")
    draft.then("x.permute(0, 3, 1, 2)")


def depth_added(draft: Draft) -> None:
    """A dimension of depth, for a convolution of three dimensions."""
    draft.then(f"x.unsqueeze({site('wrong unsqueeze', '2', '0')})")
    channels = draft.shape[1]
    draft.then(
        f"{draft.keep('volume', f'nn.Conv3d({channels}, {width(draft)}, (1, 3, 3), padding=(0, 1, 1))')}(x)"
    )


def depth_removed(draft: Draft) -> None:
    draft.then(
        draft.rng.choice(("x.mean(2)", "x.amax(dim=2)", "x[:, :, 0]", "x.sum(dim=-1)", "x.flatten(1, 2)"))
    )


ON_GRIDS = (
    *(grid_function, grid_function, grid_function, excited, skipped, skipped, grid_to_sequence),
    *(grid_to_rows, grid_to_rows, grid_to_channels_last, depth_added),
)
ON_VOLUMES = (depth_removed, depth_removed, grid_to_rows)
