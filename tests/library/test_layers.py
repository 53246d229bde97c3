"""Layers and functions of torch.nn: what the interpreter says they return is what torch returns."""

from __future__ import annotations

import pytest
from checking import Check
from differential import agree, layouts

SEQUENCES = """
x = torch.randn(B, T, V)
sliced = torch.randn(B, T, V + 3)[..., :V]
shorter = torch.randn(B, T + 2, V)[:, :T]
transposed = torch.randn(T, B, V).transpose(0, 1)
swapped = torch.randn(B, V, T).transpose(1, 2)
"""
IMAGES = """
x = torch.randn(B, V, 12, 10)
sliced = torch.randn(B, V, 12, 13)[..., :10]
transposed = torch.randn(B, V, 10, 12).transpose(2, 3)
last = torch.randn(B, V, 12, 10).to(memory_format=torch.channels_last)
from_last = torch.randn(B, 12, 10, V).permute(0, 3, 1, 2)
"""
VOLUMES = """
x = torch.randn(B, V, 6, 5, 4)
last = torch.randn(B, V, 6, 5, 4).to(memory_format=torch.channels_last_3d)
"""

ON_SEQUENCES = [
    "nn.Linear(V, 5)",
    "nn.Linear(V, 5, bias=False)",
    "nn.LazyLinear(5)",
    "nn.Identity()",
    "nn.LayerNorm(V)",
    "nn.LayerNorm((T, V))",
    "nn.RMSNorm(V)",
    "nn.BatchNorm1d(T)",
    "nn.BatchNorm1d(T).eval()",
    "nn.GroupNorm(2, T)",
    "nn.InstanceNorm1d(T)",
    "nn.Conv1d(T, 5, 3, padding=1)",
    "nn.Conv1d(T, 5, 3, stride=2)",
    "nn.Conv1d(T, 5, 3, padding='same')",
    "nn.ConvTranspose1d(T, 5, 3, stride=2)",
    "nn.AvgPool1d(2)",
    "nn.LPPool1d(2, 2)",
    "nn.AdaptiveAvgPool1d(3)",
    "nn.AdaptiveAvgPool1d(1)",
    "nn.AdaptiveMaxPool1d(3)",
    "nn.MaxPool1d(3, 2, 1, return_indices=True)",
    "nn.AdaptiveMaxPool1d(3, return_indices=True)",
    "nn.ConstantPad1d((1, 2), 0.0)",
    "nn.ReflectionPad1d(2)",
    "nn.CircularPad1d(1)",
    "nn.Softmax(dim=-1)",
    "nn.LogSoftmax(dim=1)",
    "nn.Softmin(dim=1)",
    "nn.GELU()",
    "nn.ReLU()",
    "nn.ReLU(inplace=True)",
    "nn.SiLU()",
    "nn.Tanh()",
    "nn.ELU()",
    "nn.Softplus()",
    "nn.LeakyReLU(0.1)",
    "nn.Hardtanh()",
    "nn.Threshold(0.1, 20.0)",
    "nn.PReLU()",
    "nn.GLU()",
    "nn.GLU(dim=1)",
    "nn.Flatten()",
    "nn.Flatten(0, 1)",
    "nn.Unflatten(2, (2, 4))",
    "nn.LSTM(V, 5)",
    "nn.LSTM(V, 5, batch_first=True)",
    "nn.LSTM(V, 5, num_layers=2, bidirectional=True, batch_first=True)",
    "nn.LSTM(V, 5, proj_size=3, batch_first=True)",
    "nn.GRU(V, 5, batch_first=True, bidirectional=True)",
    "nn.GRU(V, 5, 2)",
    "nn.RNN(V, 5, nonlinearity='relu')",
    "nn.TransformerEncoderLayer(V, 2, 16, batch_first=True)",
    "nn.TransformerEncoder(nn.TransformerEncoderLayer(V, 2, 16, batch_first=True), 2)",
    "nn.Sequential(nn.Linear(V, 5), nn.ReLU(), nn.Linear(5, 3))",
    "nn.Sequential(*[nn.Linear(V, V) for _ in range(3)])",
    "F.normalize",
    "F.gelu",
    "F.relu",
    "F.silu",
    "F.tanh",
    "F.softplus",
    "F.glu",
    "F.gumbel_softmax",
    "lambda x: F.softmax(x, dim=-1)",
    "lambda x: F.log_softmax(x, dim=-1, dtype=torch.float64)",
    "lambda x: F.layer_norm(x, (V,))",
    "lambda x: F.rms_norm(x, (V,))",
    "lambda x: F.pad(x, (1, 2))",
    "lambda x: F.pad(x, (0, 0, 1, 0), value=1.0)",
    "lambda x: F.pad(x, (0, 0, 1, 1), mode='replicate')",
    "lambda x: F.linear(x, torch.randn(5, V))",
    "lambda x: F.conv1d(x, torch.randn(5, T, 3), padding=1)",
    "lambda x: F.leaky_relu(x, 0.2)",
    "lambda x: F.cosine_similarity(x, x, dim=-1)",
    "lambda x: F.pairwise_distance(x, x)",
    "lambda x: torch.cdist(x, x)",
    "lambda x: F.adaptive_avg_pool1d(x, 1)",
    "lambda x: F.instance_norm(x)",
    "lambda x: F.group_norm(x, 2)",
    "lambda x: F.batch_norm(x, torch.zeros(T), torch.ones(T), training=True)",
]

OF_UNKNOWN_STRIDES = [
    "nn.Dropout(0.2)",
    "nn.Dropout(0.2).eval()",
    "nn.MaxPool1d(2)",
    "nn.LogSigmoid()",
    "nn.TransformerEncoderLayer(V, 2, 16, norm_first=True)",
    "lambda x: nn.TransformerDecoderLayer(V, 2, 16, norm_first=True, batch_first=True)(x, x)",
    "nn.Upsample(scale_factor=2)",
    "nn.Upsample(size=5, mode='linear')",
    "lambda x: F.interpolate(x, size=3)",
    "lambda x: F.dropout(x, 0.2)",
    "lambda x: F.dropout(x, 0.2, training=False)",
    "lambda x: nn.MultiheadAttention(V, 2, batch_first=True)(x, x, x)",
]

ON_IMAGES = [
    "nn.Conv2d(V, 5, 3, padding=1)",
    "nn.Conv2d(V, 5, (3, 5), stride=(2, 1), padding=(1, 2), bias=False)",
    "nn.Conv2d(V, 6, 3, groups=2, dilation=2)",
    "nn.Conv2d(V, 5, 1)",
    "nn.LazyConv2d(5, 3)",
    "nn.Conv2d(V, 5, 3).to(memory_format=torch.channels_last)",
    "nn.Sequential(nn.Conv2d(V, 5, 3), nn.ReLU()).to(memory_format=torch.channels_last)",
    "nn.ConvTranspose2d(V, 5, 3, stride=2, output_padding=1)",
    "nn.MaxPool2d(2)",
    "nn.MaxPool2d(3, 2, padding=1, ceil_mode=True)",
    "nn.MaxPool2d(2, return_indices=True)",
    "nn.AvgPool2d(3, stride=2)",
    "nn.LPPool2d(2, 2)",
    "nn.AdaptiveAvgPool2d(1)",
    "nn.AdaptiveAvgPool2d((3, None))",
    "nn.AdaptiveMaxPool2d((3, 2))",
    "nn.BatchNorm2d(V)",
    "nn.BatchNorm2d(V).eval()",
    "nn.GroupNorm(2, V)",
    "nn.InstanceNorm2d(V)",
    "nn.InstanceNorm2d(V, affine=True, track_running_stats=True)",
    "nn.LocalResponseNorm(2)",
    "nn.RMSNorm(10)",
    "nn.LayerNorm((12, 10))",
    "nn.Upsample(scale_factor=2, mode='bilinear')",
    "nn.Upsample(scale_factor=1.5)",
    "nn.UpsamplingNearest2d(scale_factor=2)",
    "nn.PixelShuffle(2)",
    "nn.PixelUnshuffle(2)",
    "nn.ChannelShuffle(2)",
    "nn.ZeroPad2d((1, 2, 3, 4))",
    "nn.ReflectionPad2d(2)",
    "nn.ReplicationPad2d(1)",
    "nn.CircularPad2d(1)",
    "nn.Unfold(3, stride=2)",
    "nn.Softmax2d()",
    "nn.ReLU6()",
    "nn.Flatten()",
    "nn.Flatten(2)",
    "lambda x: F.interpolate(x, scale_factor=2)",
    "lambda x: F.interpolate(x, size=(7, 9), mode='bicubic')",
    "lambda x: F.interpolate(x, scale_factor=(2, 3), mode='nearest')",
    "lambda x: F.max_pool2d(x, 2)",
    "lambda x: F.avg_pool2d(x, (2, 3))",
    "lambda x: F.adaptive_avg_pool2d(x, 1)",
    "lambda x: F.conv2d(x, torch.randn(5, V, 3, 3), stride=2)",
    "lambda x: F.conv_transpose2d(x, torch.randn(V, 5, 3, 3), stride=2)",
    "lambda x: F.conv2d(x, torch.randn(5, V, 3, 3).to(memory_format=torch.channels_last))",
    "lambda x: F.pixel_shuffle(x, 2)",
    "lambda x: F.unfold(x, 2)",
    "lambda x: F.pad(x, (1, 1), mode='circular') if x.dim() == 3 else F.pad(x, (1, 1, 1, 1), mode='reflect')",
]

ON_VOLUMES_BY_BACKEND = [
    "nn.Conv3d(V, 5, 3)",
    "nn.ConvTranspose3d(V, 5, 2)",
    "nn.AvgPool3d(2)",
    "nn.AdaptiveAvgPool3d(2)",
]
ON_VOLUMES = [
    "nn.MaxPool3d(2)",
    "nn.BatchNorm3d(V)",
    "nn.InstanceNorm3d(V)",
    "nn.Upsample(scale_factor=2, mode='trilinear')",
    "nn.ZeroPad3d(1)",
]


def applied(setup: str, function: str) -> str:
    names = [line.partition(" =")[0] for line in setup.strip().splitlines()]
    calls = "".join(f"reveal(f({name}))\n" for name in names)
    return f"{setup}\nf = {function}\n{calls}"


@pytest.mark.parametrize("function", ON_SEQUENCES)
def test_sequences(function: str) -> None:
    agree(applied(SEQUENCES, function))


@pytest.mark.parametrize("function", OF_UNKNOWN_STRIDES)
def test_sequences_whose_strides_depend_on_more_than_the_code(function: str) -> None:
    agree(applied(SEQUENCES, function), strides=False)


@pytest.mark.parametrize("function", ON_IMAGES)
def test_images(function: str) -> None:
    agree(applied(IMAGES, function))


@pytest.mark.parametrize("function", ON_VOLUMES)
def test_volumes(function: str) -> None:
    agree(applied(VOLUMES, function))


@pytest.mark.parametrize("function", ON_VOLUMES_BY_BACKEND)
def test_volumes_in_channels_last_depend_on_the_backend(function: str) -> None:
    agree(applied(VOLUMES.splitlines()[1], function))
    agree(applied(VOLUMES, function), strides=False)


ON_INDICES = [
    "nn.Embedding(20, 5)",
    "nn.Embedding(20, 5, padding_idx=0)",
    "nn.Embedding.from_pretrained(torch.randn(20, 5))",
    "nn.EmbeddingBag(20, 5)",
    "lambda y: F.embedding(y, torch.randn(20, 5))",
    "lambda y: F.one_hot(y, 20)",
]


@pytest.mark.parametrize("function", ON_INDICES)
def test_indices(function: str) -> None:
    agree(
        f"""
        y = torch.randint(0, 20, (B, T))
        f = {function}
        reveal(f(y))
        reveal(f(y[:, 1:]))
        reveal(f(y.t()))
        """
    )


def test_bags_of_indices_begin_at_offsets() -> None:
    agree(
        """
        bag = nn.EmbeddingBag(20, 5, include_last_offset=True)
        reveal(bag(torch.arange(T), torch.tensor([0, 2, 4, T])))
        reveal(nn.EmbeddingBag(20, 5)(torch.arange(T), torch.tensor([0, 2, 4])))
        """
    )


LOSSES = [
    "nn.CrossEntropyLoss({})",
    "nn.CrossEntropyLoss({}, ignore_index=0, label_smoothing=0.1)",
    "nn.NLLLoss({})",
    "lambda x, y: F.cross_entropy(x, y, {})",
    "lambda x, y: F.nll_loss(x, y, {})",
]


@pytest.mark.parametrize("reduction", ["", "reduction='none'", "reduction='sum'"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses_of_classes(loss: str, reduction: str) -> None:
    agree(
        f"""
        f = {loss.format(reduction).replace("(, ", "(").replace(", )", ")")}
        x = torch.randn(B, T, V)
        y = torch.randint(0, V, (B, T))
        reveal(f(x.view(-1, V), y.view(-1)))
        reveal(f(x.transpose(1, 2), y))
        reveal(f(x[:, 1:].transpose(1, 2), y[:, 1:]))
        reveal(f(torch.randn(B, V, 3, 5).to(memory_format=torch.channels_last), torch.zeros(B, 3, 5).long()))
        reveal(f(x[0, 0], y[0, 0]))
        """
    )


ELEMENTWISE_LOSSES = [
    "nn.MSELoss({})",
    "nn.L1Loss({})",
    "nn.SmoothL1Loss({})",
    "nn.HuberLoss({})",
    "nn.BCELoss({})",
    "nn.BCEWithLogitsLoss({})",
    "nn.KLDivLoss({})",
    "nn.PoissonNLLLoss({})",
    "nn.SoftMarginLoss({})",
    "lambda x, y: F.mse_loss(x, y, {})",
    "lambda x, y: F.l1_loss(x, y, {})",
    "lambda x, y: F.binary_cross_entropy_with_logits(x, y, {})",
    "lambda x, y: F.smooth_l1_loss(x, y, {})",
    "lambda x, y: F.kl_div(x, y, {})",
]


@pytest.mark.parametrize("reduction", ["", "reduction='none'", "reduction='sum'"])
@pytest.mark.parametrize("loss", ELEMENTWISE_LOSSES)
def test_losses_of_elements(loss: str, reduction: str) -> None:
    agree(
        f"""
        f = {loss.format(reduction)}
        x = torch.rand(B, T, V)
        y = torch.rand(B, T, V)
        reveal(f(x, y))
        reveal(f(x.transpose(1, 2), y.transpose(1, 2)))
        reveal(f(x[:, 1:], y[:, 1:]))
        """
    )
    agree(
        f"""
        f = {loss.format(reduction)}
        reveal(f(torch.rand(B, V, T).transpose(1, 2), torch.rand(B, T, V)))
        """,
        strides=False,
    )


def test_probabilities_as_targets_lose_their_classes() -> None:
    agree(
        """
        x = torch.randn(B, V, T)
        reveal(F.cross_entropy(x, x.softmax(1), reduction="none"))
        reveal(F.cross_entropy(x[:, :, 0], x[:, :, 0].softmax(1), reduction="none"))
        """
    )


def test_attention_to_something_else_is_transposed_with_batch_first() -> None:
    agree(
        """
        x, memory = torch.randn(B, T, V), torch.randn(B, 4, V)
        attention = nn.MultiheadAttention(V, 2, batch_first=True)
        reveal(attention(x, memory, memory))
        reveal(attention(x, memory, memory, average_attn_weights=False))
        reveal(attention(x, memory, memory, need_weights=False)[0])
        reveal(nn.MultiheadAttention(V, 2)(x, x, x))
        reveal(nn.MultiheadAttention(V, 1, batch_first=True)(x, x, x))
        """
    )


def test_attention_to_itself_may_take_a_fast_path() -> None:
    agree(
        """
        x = torch.randn(B, T, V)
        attention = nn.MultiheadAttention(V, 2, batch_first=True).eval()
        reveal(attention(x, x, x)[0])
        with torch.no_grad():
            reveal(attention(x, x, x)[0])
        """,
        strides=False,
    )


def test_a_transformer_ends_in_a_norm() -> None:
    agree(
        """
        x = torch.randn(T, B, V).transpose(0, 1)
        reveal(nn.Transformer(V, 2, 1, 1, 16, batch_first=True)(x, x[:, :3]))
        reveal(nn.Transformer(V, 2, 1, 1, 16, norm_first=True)(x, x))
        decoder = nn.TransformerDecoderLayer(V, 2, 16)
        reveal(nn.TransformerDecoder(decoder, 2)(x, x))
        reveal(nn.TransformerDecoder(decoder, 2, norm=nn.LayerNorm(V))(x, x))
        """
    )


def test_recurrent_cells() -> None:
    agree(
        """
        x = torch.randn(B, T, V)
        h, c = nn.LSTMCell(V, 5)(x[:, 0])
        reveal(h), reveal(c)
        reveal(nn.GRUCell(V, 5)(x[:, -1]))
        reveal(nn.RNNCell(V, 5)(x[0, 0]))
        """
    )


def test_packed_sequences_come_back_padded() -> None:
    agree(
        """
        from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
        x = torch.randn(B, T, V)
        packed = pack_padded_sequence(x, torch.tensor([T, T - 1]), batch_first=True)
        out, (h, c) = nn.LSTM(V, 5, num_layers=2, batch_first=True, bidirectional=True)(packed)
        reveal(pad_packed_sequence(out, batch_first=True, total_length=T))
        reveal(pad_packed_sequence(out, total_length=T))
        reveal(h), reveal(c)
        out, h = nn.GRU(V, 5)(pack_padded_sequence(x, torch.tensor([B] * T)))
        reveal(pad_packed_sequence(out, total_length=B))
        reveal(h)
        """,
        symbolic=False,
    )


def test_containers() -> None:
    agree(
        """
        from collections import OrderedDict
        x = torch.randn(B, T, V)
        named = nn.Sequential(OrderedDict([("up", nn.Linear(V, 32)), ("down", nn.Linear(32, 4))]))
        reveal(named(x)), reveal(named.up(x)), reveal(named[0](x)), reveal(named[-1:](named[:1](x)))
        named.append(nn.Flatten())
        reveal(named(x))
        layers = nn.ModuleList([nn.Linear(V, V) for _ in range(2)])
        layers.append(nn.LSTM(V, 3, batch_first=True))
        for layer in layers:
            x = layer(x)
        reveal(x)
        layers = nn.ModuleList()
        layers.extend([nn.Flatten(), nn.Linear(T * V, 3)])
        y = torch.randn(B, T, V)
        for i, layer in enumerate(layers):
            y = layers[i](y)
        reveal(y)
        heads = nn.ModuleDict({"a": nn.Linear(3, 4), "b": nn.Linear(3, 5)})
        heads["c"] = nn.Linear(3, 6)
        reveal(heads["a"](y)), reveal(heads["c"](y))
        for name, head in heads.items():
            reveal(head(y))
        scales = nn.ParameterList([nn.Parameter(torch.ones(3)), torch.zeros(3, 1)])
        reveal(scales[1]), reveal(len(scales)), reveal(torch.zeros(len(layers)))
        changed = nn.Sequential(nn.Linear(3, 4), nn.ReLU())
        changed[0] = nn.Linear(3, 7)
        reveal(changed(y))
        """
    )


def test_parameters_have_the_sizes_of_their_layers() -> None:
    agree(
        """
        reveal(nn.Linear(V, 5).weight), reveal(nn.Linear(V, 5).bias), reveal(nn.Linear(V, 5, bias=False).bias)
        reveal(nn.Conv2d(V, 6, 3, groups=2).weight), reveal(nn.ConvTranspose2d(V, 6, (3, 5), groups=2).weight)
        reveal(nn.Conv2d(V, 6, 3).to(memory_format=torch.channels_last).weight)
        reveal(nn.Embedding(20, V).weight), reveal(nn.LayerNorm(V).weight), reveal(nn.LayerNorm((T, V)).bias)
        reveal(nn.BatchNorm2d(V).running_mean), reveal(nn.BatchNorm2d(V, affine=False).weight)
        reveal(nn.Parameter(torch.randn(V, T).t())), reveal(nn.Bilinear(2, 3, V).weight)
        """
    )


def test_a_projects_own_modules() -> None:
    agree(
        """
        class Block(nn.Module):
            def __init__(self, width, hidden=None):
                super().__init__()
                hidden = hidden or 4 * width
                self.norm = nn.LayerNorm(width)
                self.up = nn.Linear(width, hidden)
                self.down = nn.Linear(hidden, width)
                self.register_buffer("mask", torch.ones(hidden))
                self.scale = nn.Parameter(torch.ones(width))

            def forward(self, x):
                hidden = F.gelu(self.up(self.norm(x))) * self.mask
                return x + self.down(hidden) * self.scale

        class Model(nn.Module):
            def __init__(self):
                super(Model, self).__init__()
                self.blocks = nn.Sequential(*[Block(V) for _ in range(2)])
                self.head = nn.Linear(V, 5)

            def forward(self, x):
                x = self.blocks(x)
                return {"logits": self.head(x), "hidden": x}

        model = torch.compile(Model()).to("cpu").train() if False else Model().to("cpu").train()
        reveal(model(torch.randn(T, B, V).transpose(0, 1)))
        reveal(model(x=torch.randn(B, T, V))["logits"])
        """
    )


def test_project_classes_that_derive_from_layers() -> None:
    agree(
        """
        class Narrow(nn.Linear):
            def __init__(self, width):
                super().__init__(width, 3)

            def forward(self, x):
                return super().forward(x)[:, 1:]

        class Plain(nn.Linear):
            pass

        class Convolution(nn.Conv2d):
            def __init__(self, *args, **kwargs):
                super().__init__(*args, padding="same", **kwargs)

            def forward(self, x):
                return F.conv2d(x, self.weight, self.bias, padding=1)

        class Head(nn.Sequential):
            def __init__(self, width):
                super().__init__(nn.Flatten(), nn.Linear(width, 5))

        x = torch.randn(B, T, V)
        reveal(Narrow(V)(x)), reveal(Narrow(V).weight), reveal(Head(T * V)(x))
        reveal(Convolution(V, 5, 3)(torch.randn(B, V, 4, 4)))
        """
    )


def test_a_model_moved_to_channels_last_has_such_weights() -> None:
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())
                self.branches = nn.ModuleList([nn.Conv2d(8, 4, 1)])

            def forward(self, x):
                return self.branches[0](self.features(x))

        net = Net()
        reveal(net(torch.randn(B, 3, 9, 9)))
        net = net.to(memory_format=torch.channels_last)
        reveal(net(torch.randn(B, 3, 9, 9)))
        """
    agree(source)
    assert layouts(source)[-1].endswith("strides (196, 1, 28, 4)")


def test_a_model_that_may_have_been_moved_has_weights_of_unknown_strides() -> None:
    agree(
        """
        import sys
        net = nn.Conv2d(3, 8, 3)
        if sys.argv:
            net = net.to(memory_format=torch.channels_last)
        reveal(net(torch.randn(B, 3, 9, 9)))
        """,
        strides=False,
    )


@pytest.mark.parametrize(
    ("layer", "known"),
    [
        ("nn.Linear(8, 5)", "(B, T, 5) strides (5*T, 5, 1)"),
        ("nn.LayerNorm(8)", "(B, T, 8) strides (8*T, 8, 1)"),
        ("nn.Embedding(9, 5)", "(B, T, 5) strides (5*T, 5, 1)"),
    ],
)
def test_the_rank_of_an_unknown_input_is_told_later(layer: str, known: str) -> None:
    source = f"""
        def f(x):
            out = {layer}(x)
            B, T, C = out.shape
            reveal(out)
        """
    assert layouts(source) == [known]


def test_an_output_whose_rank_is_unknown_knows_its_last_size() -> None:
    source = """
        def f(x):
            B, T, C = nn.GRU(8, 5, batch_first=True, bidirectional=True)(x)[0].shape
            reveal(torch.zeros(B, C))
        """
    assert layouts(source)[0].endswith(", 10) strides (10, 1)")


def test_what_torch_would_refuse_is_left_unknown() -> None:
    assert layouts("reveal(nn.Linear(7, 3)(torch.randn(2, 8)))") == ["?"]


def test_an_unknown_kernel_leaves_unknown_lengths() -> None:
    source = """
        def f(kernel, x):
            out = nn.Conv2d(3, 8, kernel)(torch.randn(2, 3, 32, 32))
            reveal(out)
            reveal(out.flatten(1).size(0))
        """
    assert layouts(source)[0].startswith("(2, 8, height, width) strides (")


def test_as_many_blocks_as_there_may_be_keep_what_each_keeps() -> None:
    source = """
        def f(depth, x: int):
            blocks = nn.Sequential(*[nn.Sequential(nn.Linear(8, 32), nn.Linear(32, 8)) for _ in range(depth)])
            reveal(blocks(torch.randn(2, 6, 8)))
            narrowing = nn.Sequential(*[nn.Linear(8, 4) for _ in range(depth)])
            reveal(narrowing(torch.randn(2, 6, 8)))
            layers = nn.ModuleList([nn.LayerNorm(8) for _ in range(depth)])
            for layer in layers:
                reveal(layer(torch.randn(2, 6, 8).transpose(0, 1)))
        """
    assert layouts(source) == ["(2, 6, 8) strides (48, 8, 1)", "?", "(6, 2, 8) strides (16, 8, 1)"]


@pytest.mark.parametrize(("inside", "number"), [("\n    # TODO: your layers\n", 0), ("", 1)])
def test_a_container_that_is_left_to_the_reader_may_do_anything(
    check: Check, inside: str, number: int
) -> None:
    body = f"import torch\nfrom torch import nn\nbody = nn.Sequential({inside})  # nothing\n"
    assert len(check(f"{body}nn.Linear(5, 2)(body(torch.zeros(2, 3)))\n", {"SF501"})) == number
