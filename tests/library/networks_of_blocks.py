"""Blocks of networks for images: their code shows what it computes with `reveal`."""

NETWORKS = {
    "Squeeze and excitation": """
        class SELayer(nn.Module):
            def __init__(self, channel, reduction=4):
                super(SELayer, self).__init__()
                self.avg_pool = nn.AdaptiveAvgPool2d(1)
                self.fc = nn.Sequential(
                    nn.Linear(channel, channel // reduction, bias=False),
                    nn.ReLU(inplace=True),
                    nn.Linear(channel // reduction, channel, bias=False),
                    nn.Sigmoid(),
                )

            def forward(self, x):
                b, c, _, _ = x.size()
                y = self.avg_pool(x).view(b, c)
                reveal(y)
                y = self.fc(y).view(b, c, 1, 1)
                return x * y.expand_as(x)

        reveal(SELayer(V)(torch.randn(B, V, 9, 7)))
    """,
    "CBAM": """
        class ChannelAttention(nn.Module):
            def __init__(self, in_planes, ratio=4):
                super().__init__()
                self.avg_pool = nn.AdaptiveAvgPool2d(1)
                self.max_pool = nn.AdaptiveMaxPool2d(1)
                self.fc = nn.Sequential(
                    nn.Conv2d(in_planes, in_planes // ratio, 1, bias=False),
                    nn.ReLU(),
                    nn.Conv2d(in_planes // ratio, in_planes, 1, bias=False),
                )

            def forward(self, x):
                return torch.sigmoid(self.fc(self.avg_pool(x)) + self.fc(self.max_pool(x)))

        class SpatialAttention(nn.Module):
            def __init__(self, kernel_size=7):
                super().__init__()
                self.conv1 = nn.Conv2d(2, 1, kernel_size, padding=kernel_size // 2, bias=False)

            def forward(self, x):
                avg_out = torch.mean(x, dim=1, keepdim=True)
                max_out, _ = torch.max(x, dim=1, keepdim=True)
                x = torch.cat([avg_out, max_out], dim=1)
                reveal(x)
                return torch.sigmoid(self.conv1(x))

        x = torch.randn(B, 8, 12, 11)
        x = x * ChannelAttention(8)(x)
        reveal(x * SpatialAttention()(x))
    """,
    "EfficientNet block": """
        class MBConv(nn.Module):
            def __init__(self, in_ch, out_ch, kernel, stride, expand, se_ratio=0.25):
                super().__init__()
                mid = in_ch * expand
                self.skip = stride == 1 and in_ch == out_ch
                self.expand = nn.Sequential(
                    nn.Conv2d(in_ch, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.SiLU()
                )
                self.depthwise = nn.Sequential(
                    nn.Conv2d(mid, mid, kernel, stride, (kernel - 1) // 2, groups=mid, bias=False),
                    nn.BatchNorm2d(mid),
                    nn.SiLU(),
                )
                squeezed = max(1, int(in_ch * se_ratio))
                self.se = nn.Sequential(
                    nn.AdaptiveAvgPool2d(1),
                    nn.Conv2d(mid, squeezed, 1),
                    nn.SiLU(),
                    nn.Conv2d(squeezed, mid, 1),
                    nn.Sigmoid(),
                )
                self.project = nn.Sequential(
                    nn.Conv2d(mid, out_ch, 1, bias=False), nn.BatchNorm2d(out_ch)
                )

            def forward(self, x):
                out = self.depthwise(self.expand(x))
                out = out * self.se(out)
                out = self.project(out)
                return out + x if self.skip else out

        x = MBConv(8, 8, 3, 1, 4)(torch.randn(B, 8, 15, 15))
        reveal(x)
        reveal(MBConv(8, 12, 5, 2, 6)(x))
    """,
    "ConvNeXt": """
        class Block(nn.Module):
            def __init__(self, dim, layer_scale_init_value=1e-6):
                super().__init__()
                self.dwconv = nn.Conv2d(dim, dim, kernel_size=7, padding=3, groups=dim)
                self.norm = nn.LayerNorm(dim, eps=1e-6)
                self.pwconv1 = nn.Linear(dim, 4 * dim)
                self.act = nn.GELU()
                self.pwconv2 = nn.Linear(4 * dim, dim)
                self.gamma = nn.Parameter(layer_scale_init_value * torch.ones((dim)), requires_grad=True)

            def forward(self, x):
                input = x
                x = self.dwconv(x)
                x = x.permute(0, 2, 3, 1)
                x = self.norm(x)
                x = self.pwconv1(x)
                x = self.act(x)
                x = self.pwconv2(x)
                reveal(x)
                x = self.gamma * x
                x = x.permute(0, 3, 1, 2)
                return input + x

        class LayerNorm(nn.Module):
            def __init__(self, size, eps=1e-6):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(size))
                self.bias = nn.Parameter(torch.zeros(size))
                self.eps = eps

            def forward(self, x):
                u = x.mean(1, keepdim=True)
                s = (x - u).pow(2).mean(1, keepdim=True)
                x = (x - u) / torch.sqrt(s + self.eps)
                return self.weight[:, None, None] * x + self.bias[:, None, None]

        stem = nn.Sequential(nn.Conv2d(3, 8, kernel_size=4, stride=4), LayerNorm(8))
        x = stem(torch.randn(B, 3, 32, 32))
        reveal(x)
        reveal(Block(8)(x))
    """,
    "Swin window attention": """
        def window_partition(x, window_size):
            B, H, W, C = x.shape
            x = x.view(B, H // window_size, window_size, W // window_size, window_size, C)
            windows = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, window_size, window_size, C)
            return windows

        def window_reverse(windows, window_size, H, W):
            B = int(windows.shape[0] / (H * W / window_size / window_size))
            x = windows.view(B, H // window_size, W // window_size, window_size, window_size, -1)
            x = x.permute(0, 1, 3, 2, 4, 5).contiguous().view(B, H, W, -1)
            return x

        class WindowAttention(nn.Module):
            def __init__(self, dim, window_size, num_heads):
                super().__init__()
                self.dim, self.num_heads = dim, num_heads
                self.scale = (dim // num_heads) ** -0.5
                self.bias = nn.Parameter(
                    torch.zeros(num_heads, window_size * window_size, window_size * window_size)
                )
                self.qkv = nn.Linear(dim, dim * 3)
                self.proj = nn.Linear(dim, dim)

            def forward(self, x):
                B_, N, C = x.shape
                qkv = (
                    self.qkv(x)
                    .reshape(B_, N, 3, self.num_heads, C // self.num_heads)
                    .permute(2, 0, 3, 1, 4)
                )
                q, k, v = qkv[0], qkv[1], qkv[2]
                reveal(q)
                attn = (q * self.scale) @ k.transpose(-2, -1)
                attn = attn + self.bias.unsqueeze(0)
                attn = attn.softmax(dim=-1)
                x = (attn @ v).transpose(1, 2).reshape(B_, N, C)
                return self.proj(x)

        H, W, window, dim = 8, 12, 4, 16
        x = torch.randn(2, H, W, dim)
        shifted = torch.roll(x, shifts=(-2, -2), dims=(1, 2))
        windows = window_partition(shifted, window)
        reveal(windows)
        windows = WindowAttention(dim, window, 4)(windows.view(-1, window * window, dim))
        x = window_reverse(windows.view(-1, window, window, dim), window, H, W)
        reveal(x)
        x0, x1, x2, x3 = (
            x[:, 0::2, 0::2, :],
            x[:, 1::2, 0::2, :],
            x[:, 0::2, 1::2, :],
            x[:, 1::2, 1::2, :],
        )
        merged = torch.cat([x0, x1, x2, x3], -1).view(2, -1, 4 * dim)
        reveal(nn.Linear(4 * dim, 2 * dim, bias=False)(nn.LayerNorm(4 * dim)(merged)))
    """,
    "MLP-Mixer": """
        class MlpBlock(nn.Module):
            def __init__(self, dim, hidden):
                super().__init__()
                self.net = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim))

            def forward(self, x):
                return self.net(x)

        class MixerBlock(nn.Module):
            def __init__(self, dim, patches, token_dim, channel_dim):
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
                self.tokens = MlpBlock(patches, token_dim)
                self.channels = MlpBlock(dim, channel_dim)

            def forward(self, x):
                x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
                return x + self.channels(self.norm2(x))

        class MLPMixer(nn.Module):
            def __init__(self, image_size, patch_size, dim, depth, classes):
                super().__init__()
                patches = (image_size // patch_size) ** 2
                self.to_patches = nn.Conv2d(3, dim, patch_size, patch_size)
                self.blocks = nn.ModuleList([])
                for _ in range(depth):
                    self.blocks.append(MixerBlock(dim, patches, 12, 24))
                self.norm = nn.LayerNorm(dim)
                self.head = nn.Sequential(nn.Linear(dim, classes))

            def forward(self, x):
                x = self.to_patches(x).flatten(2).transpose(1, 2)
                for block in self.blocks:
                    x = block(x)
                reveal(x)
                return self.head(self.norm(x).mean(dim=1))

        reveal(MLPMixer(32, 8, V, 2, 10)(torch.randn(B, 3, 32, 32)))
    """,
    "Video network": """
        class C3D(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.conv1 = nn.Conv3d(3, 4, kernel_size=(3, 3, 3), padding=(1, 1, 1))
                self.pool1 = nn.MaxPool3d(kernel_size=(1, 2, 2), stride=(1, 2, 2))
                self.conv2 = nn.Conv3d(4, 8, kernel_size=(3, 3, 3), padding=(1, 1, 1))
                self.pool2 = nn.MaxPool3d(kernel_size=(2, 2, 2), stride=(2, 2, 2))
                self.fc = nn.Linear(8 * 4 * 6 * 6, classes)

            def forward(self, x):
                x = self.pool1(F.relu(self.conv1(x)))
                x = self.pool2(F.relu(self.conv2(x)))
                reveal(x)
                x = x.view(-1, 8 * 4 * 6 * 6)
                return self.fc(x)

        reveal(C3D(7)(torch.randn(B, 3, 8, 24, 24)))
    """,
}
