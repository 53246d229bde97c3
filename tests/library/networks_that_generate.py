"""Networks that generate or compress: their code shows what it computes with `reveal`."""

NETWORKS = {
    "DCGAN generator": """
        nz, ngf, nc = 16, 4, 3

        class Generator(nn.Module):
            def __init__(self):
                super(Generator, self).__init__()
                self.main = nn.Sequential(
                    nn.ConvTranspose2d(nz, ngf * 8, 4, 1, 0, bias=False),
                    nn.BatchNorm2d(ngf * 8),
                    nn.ReLU(True),
                    nn.ConvTranspose2d(ngf * 8, ngf * 4, 4, 2, 1, bias=False),
                    nn.BatchNorm2d(ngf * 4),
                    nn.ReLU(True),
                    nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
                    nn.BatchNorm2d(ngf * 2),
                    nn.ReLU(True),
                    nn.ConvTranspose2d(ngf * 2, nc, 4, 2, 1, bias=False),
                    nn.Tanh(),
                )

            def forward(self, input):
                return self.main(input)

        noise = torch.randn(B, nz, 1, 1)
        reveal(Generator()(noise))
    """,
    "DCGAN discriminator": """
        class Discriminator(nn.Module):
            def __init__(self, ndf=4, nc=3):
                super().__init__()

                def block(cin, cout, norm=True):
                    layers = [nn.Conv2d(cin, cout, 4, 2, 1, bias=False)]
                    if norm:
                        layers.append(nn.BatchNorm2d(cout))
                    layers.append(nn.LeakyReLU(0.2, inplace=True))
                    return layers

                self.main = nn.Sequential(
                    *block(nc, ndf, norm=False),
                    *block(ndf, ndf * 2),
                    *block(ndf * 2, ndf * 4),
                    nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False),
                    nn.Sigmoid(),
                )

            def forward(self, x):
                x = self.main(x)
                reveal(x)
                return x.view(-1, 1).squeeze(1)

        reveal(Discriminator()(torch.randn(B, 3, 32, 32)))
    """,
    "conditional GAN": """
        img_shape = (1, 8, 8)

        class Generator(nn.Module):
            def __init__(self, n_classes=10, latent_dim=6):
                super().__init__()
                self.label_emb = nn.Embedding(n_classes, n_classes)
                size = 1
                for s in img_shape:
                    size *= s
                self.model = nn.Sequential(
                    nn.Linear(latent_dim + n_classes, 32),
                    nn.LeakyReLU(0.2),
                    nn.Linear(32, size),
                    nn.Tanh(),
                )

            def forward(self, noise, labels):
                gen_input = torch.cat((self.label_emb(labels), noise), -1)
                reveal(gen_input)
                img = self.model(gen_input)
                return img.view(img.size(0), *img_shape)

        reveal(Generator()(torch.randn(B, 6), torch.randint(0, 10, (B,))))
    """,
    "VAE": """
        class VAE(nn.Module):
            def __init__(self):
                super(VAE, self).__init__()
                self.fc1 = nn.Linear(784, 40)
                self.fc21 = nn.Linear(40, 5)
                self.fc22 = nn.Linear(40, 5)
                self.fc3 = nn.Linear(5, 40)
                self.fc4 = nn.Linear(40, 784)

            def encode(self, x):
                h1 = F.relu(self.fc1(x))
                return self.fc21(h1), self.fc22(h1)

            def reparameterize(self, mu, logvar):
                std = torch.exp(0.5 * logvar)
                eps = torch.randn_like(std)
                return mu + eps * std

            def decode(self, z):
                return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

            def forward(self, x):
                mu, logvar = self.encode(x.view(-1, 784))
                z = self.reparameterize(mu, logvar)
                return self.decode(z), mu, logvar

        x = torch.rand(B, 1, 28, 28)
        recon, mu, logvar = VAE()(x)
        reveal(recon)
        reveal(mu)
        reveal(F.binary_cross_entropy(recon, x.view(-1, 784), reduction="sum"))
        reveal(-0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()))
    """,
    "convolutional VAE": """
        class ConvVAE(nn.Module):
            def __init__(self, latent_dim=10, hidden_dims=(4, 8, 16)):
                super().__init__()
                modules, in_channels = [], 3
                for h_dim in hidden_dims:
                    modules.append(
                        nn.Sequential(
                            nn.Conv2d(in_channels, h_dim, 3, stride=2, padding=1),
                            nn.BatchNorm2d(h_dim),
                            nn.LeakyReLU(),
                        )
                    )
                    in_channels = h_dim
                self.encoder = nn.Sequential(*modules)
                self.fc_mu = nn.Linear(hidden_dims[-1] * 16, latent_dim)
                self.decoder_input = nn.Linear(latent_dim, hidden_dims[-1] * 16)
                modules = []
                dims = hidden_dims[::-1]
                for i in range(len(dims) - 1):
                    modules.append(
                        nn.ConvTranspose2d(dims[i], dims[i + 1], 3, stride=2, padding=1, output_padding=1)
                    )
                self.decoder = nn.Sequential(*modules)
                self.last = nn.ConvTranspose2d(dims[-1], 3, kernel_size=4, stride=2, padding=1)
                self.channels = dims[0]

            def forward(self, x):
                result = self.encoder(x)
                reveal(result)
                mu = self.fc_mu(torch.flatten(result, start_dim=1))
                z = self.decoder_input(mu).view(-1, self.channels, 4, 4)
                return self.last(self.decoder(z))

        reveal(ConvVAE()(torch.randn(B, 3, 32, 32)))
    """,
    "autoencoder": """
        class AutoEncoder(nn.Module):
            def __init__(self, sizes):
                super().__init__()
                encoder, decoder = [], []
                for a, b in zip(sizes[:-1], sizes[1:]):
                    encoder += [nn.Linear(a, b), nn.ReLU()]
                for a, b in zip(sizes[::-1][:-1], sizes[::-1][1:]):
                    decoder += [nn.Linear(a, b), nn.ReLU()]
                self.encoder = nn.Sequential(*encoder)
                self.decoder = nn.Sequential(*decoder[:-1], nn.Sigmoid())

            def forward(self, x):
                code = self.encoder(x)
                reveal(code)
                return self.decoder(code)

        images = torch.rand(B, 1, 12, 12)
        flat = images.reshape(images.shape[0], -1)
        reveal(AutoEncoder([144, 32, V])(flat))
        reveal(F.mse_loss(AutoEncoder([144, 32, 4])(flat), flat))
    """,
    "VQ-VAE quantizer": """
        class VectorQuantizer(nn.Module):
            def __init__(self, num_embeddings, embedding_dim):
                super().__init__()
                self._embedding_dim = embedding_dim
                self._num_embeddings = num_embeddings
                self._embedding = nn.Embedding(num_embeddings, embedding_dim)

            def forward(self, inputs):
                inputs = inputs.permute(0, 2, 3, 1).contiguous()
                input_shape = inputs.shape
                flat_input = inputs.view(-1, self._embedding_dim)
                distances = (
                    torch.sum(flat_input**2, dim=1, keepdim=True)
                    + torch.sum(self._embedding.weight**2, dim=1)
                    - 2 * torch.matmul(flat_input, self._embedding.weight.t())
                )
                reveal(distances)
                encoding_indices = torch.argmin(distances, dim=1).unsqueeze(1)
                reveal(encoding_indices)
                encodings = torch.zeros(encoding_indices.shape[0], self._num_embeddings)
                encodings.scatter_(1, encoding_indices, 1)
                quantized = torch.matmul(encodings, self._embedding.weight).view(input_shape)
                return quantized.permute(0, 3, 1, 2).contiguous()

        reveal(VectorQuantizer(12, V)(torch.randn(B, V, 5, 6)))
    """,
    "StyleGAN modulated convolution": """
        class ModulatedConv2d(nn.Module):
            def __init__(self, in_channel, out_channel, kernel_size, style_dim):
                super().__init__()
                self.in_channel, self.out_channel, self.kernel_size = in_channel, out_channel, kernel_size
                self.padding = kernel_size // 2
                self.weight = nn.Parameter(
                    torch.randn(1, out_channel, in_channel, kernel_size, kernel_size)
                )
                self.modulation = nn.Linear(style_dim, in_channel)

            def forward(self, input, style):
                batch, in_channel, height, width = input.shape
                style = self.modulation(style).view(batch, 1, in_channel, 1, 1)
                weight = self.weight * style
                demod = torch.rsqrt(weight.pow(2).sum([2, 3, 4]) + 1e-8)
                reveal(demod)
                weight = weight * demod.view(batch, self.out_channel, 1, 1, 1)
                weight = weight.view(
                    batch * self.out_channel, in_channel, self.kernel_size, self.kernel_size
                )
                reveal(weight)
                input = input.view(1, batch * in_channel, height, width)
                out = F.conv2d(input, weight, padding=self.padding, groups=batch)
                _, _, height, width = out.shape
                return out.view(batch, self.out_channel, height, width)

        reveal(ModulatedConv2d(6, 5, 3, 10)(torch.randn(B, 6, 8, 9), torch.randn(B, 10)))
    """,
    "diffusion U-Net block": """
        import math

        def timestep_embedding(timesteps, dim, max_period=10000):
            half = dim // 2
            freqs = torch.exp(
                -math.log(max_period) * torch.arange(start=0, end=half, dtype=torch.float32) / half
            )
            args = timesteps[:, None].float() * freqs[None]
            return torch.cat([torch.cos(args), torch.sin(args)], dim=-1)

        class ResBlock(nn.Module):
            def __init__(self, channels, emb_channels, out_channels):
                super().__init__()
                self.in_layers = nn.Sequential(
                    nn.GroupNorm(2, channels), nn.SiLU(), nn.Conv2d(channels, out_channels, 3, padding=1)
                )
                self.emb_layers = nn.Sequential(nn.SiLU(), nn.Linear(emb_channels, 2 * out_channels))
                self.out_layers = nn.Sequential(
                    nn.GroupNorm(2, out_channels),
                    nn.SiLU(),
                    nn.Conv2d(out_channels, out_channels, 3, padding=1),
                )
                self.skip = (
                    nn.Identity() if channels == out_channels else nn.Conv2d(channels, out_channels, 1)
                )

            def forward(self, x, emb):
                h = self.in_layers(x)
                emb_out = self.emb_layers(emb)
                while len(emb_out.shape) < len(h.shape):
                    emb_out = emb_out[..., None]
                scale, shift = torch.chunk(emb_out, 2, dim=1)
                h = self.out_layers[0](h) * (1 + scale) + shift
                h = self.out_layers[1:](h)
                return self.skip(x) + h

        class AttentionBlock(nn.Module):
            def __init__(self, channels, heads):
                super().__init__()
                self.heads = heads
                self.norm = nn.GroupNorm(2, channels)
                self.qkv = nn.Conv1d(channels, channels * 3, 1)
                self.proj = nn.Conv1d(channels, channels, 1)

            def forward(self, x):
                b, c, *spatial = x.shape
                x = x.reshape(b, c, -1)
                qkv = self.qkv(self.norm(x))
                bs, width, length = qkv.shape
                ch = width // (3 * self.heads)
                q, k, v = qkv.reshape(bs * self.heads, ch * 3, length).split(ch, dim=1)
                reveal(q)
                weight = torch.einsum("bct,bcs->bts", q, k).softmax(dim=-1)
                a = torch.einsum("bts,bcs->bct", weight, v).reshape(bs, -1, length)
                return (x + self.proj(a)).reshape(b, c, *spatial)

        t = torch.randint(0, 1000, (B,))
        emb = timestep_embedding(t, 16)
        reveal(emb)
        x = ResBlock(8, 16, 12)(torch.randn(B, 8, 6, 6), emb)
        reveal(x)
        reveal(AttentionBlock(12, 3)(x))
    """,
    "NeRF": """
        class NeRF(nn.Module):
            def __init__(self, D=4, W=16, input_ch=3, input_ch_views=3, output_ch=4, skips=[2]):
                super(NeRF, self).__init__()
                self.input_ch, self.input_ch_views = input_ch, input_ch_views
                self.skips = skips
                self.pts_linears = nn.ModuleList(
                    [nn.Linear(input_ch, W)]
                    + [
                        nn.Linear(W, W) if i not in self.skips else nn.Linear(W + input_ch, W)
                        for i in range(D - 1)
                    ]
                )
                self.views_linears = nn.ModuleList([nn.Linear(input_ch_views + W, W // 2)])
                self.feature_linear = nn.Linear(W, W)
                self.alpha_linear = nn.Linear(W, 1)
                self.rgb_linear = nn.Linear(W // 2, 3)

            def forward(self, x):
                input_pts, input_views = torch.split(x, [self.input_ch, self.input_ch_views], dim=-1)
                h = input_pts
                for i, l in enumerate(self.pts_linears):
                    h = self.pts_linears[i](h)
                    h = F.relu(h)
                    if i in self.skips:
                        h = torch.cat([input_pts, h], -1)
                alpha = self.alpha_linear(h)
                feature = self.feature_linear(h)
                h = torch.cat([feature, input_views], -1)
                for i, l in enumerate(self.views_linears):
                    h = F.relu(self.views_linears[i](h))
                return torch.cat([self.rgb_linear(h), alpha], -1)

        def embed(x, freqs):
            out = [x]
            for i in range(freqs):
                out += [torch.sin(2.0**i * x), torch.cos(2.0**i * x)]
            return torch.cat(out, dim=-1)

        points = embed(torch.randn(B, T, 3), 2)
        reveal(points)
        views = embed(torch.randn(B, T, 3), 1)
        raw = NeRF(input_ch=15, input_ch_views=9)(torch.cat([points, views], dim=-1))
        reveal(raw)
        alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]))
        weights = (
            alpha
            * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[
                :, :-1
            ]
        )
        reveal(weights)
        reveal(torch.sum(weights[..., None] * torch.sigmoid(raw[..., :3]), -2))
    """,
}
