"""Random layers that fit a tensor: the code of their constructors, with the sizes that can be wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from module_drafts import Draft, Misfit, printed

Shape = tuple[int, ...]
Layer = Callable[[Draft, Shape], str]


def divisor(draft: Draft, value: int) -> int:
    return draft.rng.choice([each for each in (1, 2, 3, 4, 8) if value % each == 0])


def width(draft: Draft) -> int:
    return draft.rng.choice((4, 6, 8, 12, 16))


def activation(draft: Draft, shape: Shape) -> str:
    return "nn." + draft.rng.choice(
        (
            "ReLU()",
            "ReLU(inplace=True)",
            "GELU()",
            "LeakyReLU(0.2)",
            "Tanh()",
            "Sigmoid()",
            "SiLU()",
            "ELU()",
            "Dropout(0.1)",
            "Identity()",
            "Softmax(dim=1)",
            "Hardswish()",
            "PReLU()",
            "Softplus()",
        )
    )


def linear(draft: Draft, shape: Shape) -> str:
    bias = draft.rng.choice(("", "", ", bias=False"))
    return f"nn.Linear({draft.size(shape[-1], 'in_features')}, {draft.size(width(draft))}{bias})"


def _window(draft: Draft, dims: int) -> str:
    """Kernel, stride and padding of a convolution."""
    rng = draft.rng
    kernel = rng.choice((1, 2, 3, 3, 3, 5))
    form = str(kernel)
    if rng.random() < 0.2:
        form = str((kernel,) * (dims - 1) + (rng.choice((1, 3)),))
    forms = [form] if rng.random() < 0.7 else [f"kernel_size={form}"]
    plain = True
    if rng.random() < 0.4:
        forms.append(f"stride={rng.choice((1, 2, 2))}")
        plain = forms[-1].endswith("1")
    if rng.random() < 0.6:
        same = plain and rng.random() < 0.2
        forms.append('padding="same"' if same else f"padding={rng.choice((kernel // 2, 1))}")
    if rng.random() < 0.15:
        forms.append("dilation=2")
    if rng.random() < 0.2:
        forms.append("bias=False")
    return ", ".join(forms)


def convolution(draft: Draft, shape: Shape) -> str:
    channels, dims = shape[1], len(shape) - 2
    out = width(draft)
    groups = divisor(draft, channels)
    if groups > 1 and out % groups == 0 and draft.rng.random() < 0.3:
        return f"nn.Conv{dims}d({channels}, {out}, {_window(draft, dims)}, groups={groups})"
    sizes = f"{draft.size(channels, 'channels')}, {draft.size(out)}"
    return f"nn.Conv{dims}d({sizes}, {_window(draft, dims)})"


def transposed(draft: Draft, shape: Shape) -> str:
    dims = len(shape) - 2
    kernel, stride = draft.rng.choice(((2, 2), (4, 2), (3, 1), (3, 2)))
    extra = draft.rng.choice(
        ("", ", padding=1", ", padding=1, output_padding=1" if kernel == 3 == stride + 1 else "")
    )
    return (
        f"nn.ConvTranspose{dims}d({draft.size(shape[1], 'channels')}, {draft.size(width(draft))}, "
        f"{kernel}, stride={stride}{extra})"
    )


def pooling(draft: Draft, shape: Shape) -> str:
    dims = len(shape) - 2
    rng = draft.rng
    form = rng.choice(
        ("2", "3, stride=2, padding=1", "kernel_size=2, stride=1", "2, ceil_mode=True", "3, 1, 1")
    )
    adaptive = rng.choice(("1", "2", "3", str((2,) * dims) if dims > 1 else "4"))
    return rng.choice(
        [f"nn.MaxPool{dims}d({form})"] * 3
        + [f"nn.AvgPool{dims}d({form})", f"nn.AdaptiveAvgPool{dims}d({adaptive})"]
        + [f"nn.AdaptiveMaxPool{dims}d({adaptive})"]
    )


def channel_norm(draft: Draft, shape: Shape) -> str:
    dims = max(len(shape) - 2, 1)
    size = draft.size(shape[1], "norm features")
    groups = divisor(draft, shape[1])
    forms = [f"nn.BatchNorm{dims}d({size})"] * 3
    if len(shape) > 2:
        wrong = f"{groups}, {shape[1] + groups}"
        forms += [f"nn.GroupNorm(«norm features¦{groups}, {shape[1]}¦{wrong}»)"]
        forms += [f"nn.InstanceNorm{dims}d({size}, affine=True)"]
    return draft.rng.choice(forms)


def last_norm(draft: Draft, shape: Shape) -> str:
    forms = [f"nn.LayerNorm({draft.size(shape[-1], 'norm features')})"] * 3
    forms.append(f"nn.RMSNorm({draft.size(shape[-1], 'norm features')})")
    if len(shape) > 2:
        sizes = [draft.size(shape[1], "norm features"), *map(str, shape[2:])]
        forms.append(f"nn.LayerNorm([{', '.join(sizes)}])")
    return draft.rng.choice(forms)


def upsampling(draft: Draft, shape: Shape) -> str:
    forms = ["nn.Upsample(scale_factor=2)", "nn.ZeroPad2d(1)", "nn.ReflectionPad2d((1, 0, 1, 0))"]
    forms.append('nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)')
    forms.append(f"nn.Upsample(size=({shape[2] + 2}, {shape[3] + 1}))")
    if shape[1] % 4 == 0:
        forms.append("nn.PixelShuffle(2)")
    if shape[2] % 2 == 0 == shape[3] % 2:
        forms.append("nn.PixelUnshuffle(2)")
    return draft.rng.choice(forms)


def encoder_layer(draft: Draft, shape: Shape) -> str:
    heads = divisor(draft, shape[-1])
    right = shape[-1]
    size = draft.size(right, "attention features", str(right + heads))
    layer = f"nn.TransformerEncoderLayer({size}, {heads}, dim_feedforward={width(draft)}, batch_first=True)"
    if draft.rng.random() < 0.4:
        return f"nn.TransformerEncoder({layer}, num_layers={draft.rng.randint(1, 2)})"
    return layer


def unflatten(draft: Draft, shape: Shape) -> str:
    group = divisor(draft, shape[-1])
    wrong = f"({group}, {shape[-1] // group + 1})"
    return f"nn.Unflatten(-1, «view size¦({group}, {shape[-1] // group})¦{wrong}»)"


def flatten(draft: Draft, shape: Shape) -> str:
    return draft.rng.choice(
        ("nn.Flatten()", "nn.Flatten()", "nn.Flatten(1)", f"nn.Flatten(start_dim={len(shape) - 2})")
    )


ON_ROWS: Sequence[Layer] = (linear, linear, linear, activation, channel_norm, last_norm, unflatten)
ON_SEQUENCES: Sequence[Layer] = (
    *(linear, linear, last_norm, convolution, channel_norm, pooling, activation, activation),
    *(encoder_layer, transposed, flatten, unflatten),
)
ON_GRIDS: Sequence[Layer] = (
    *(convolution, convolution, convolution, channel_norm, pooling, pooling, activation, activation),
    *(transposed, upsampling, flatten, last_norm),
)
ON_VOLUMES: Sequence[Layer] = (
    convolution,
    convolution,
    channel_norm,
    pooling,
    pooling,
    activation,
    transposed,
    flatten,
)
BY_RANK = {2: ON_ROWS, 3: ON_SEQUENCES, 4: ON_GRIDS, 5: ON_VOLUMES}


def layer_for(draft: Draft, shape: Shape) -> str:
    """The code of a layer that takes a tensor of these sizes."""
    return draft.rng.choice(BY_RANK[len(shape)])(draft, shape)


def layers_in_a_row(draft: Draft, amount: int) -> list[str]:
    """The codes of layers of which each takes what the one before gives, from x on."""
    value = draft.x
    codes: list[str] = []
    for _ in range(40):
        if len(codes) == amount:
            break
        if value.dim() not in BY_RANK:
            break
        code = layer_for(draft, tuple(value.shape))
        try:
            draft.names["probe_"] = value
            value = draft.value(f"{printed(code)}(probe_)")
        except Misfit:
            continue
        finally:
            draft.names.pop("probe_", None)
        codes.append(code)
    if not codes:
        raise Misfit
    return codes
