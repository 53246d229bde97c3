"""Networks whose output is an image or a map, too: their code shows what it computes with `reveal`."""

NETWORKS = {
    "U-Net": """
        class DoubleConv(nn.Module):
            def __init__(self, in_channels, out_channels, mid_channels=None):
                super().__init__()
                if not mid_channels:
                    mid_channels = out_channels
                self.double_conv = nn.Sequential(
                    nn.Conv2d(in_channels, mid_channels, kernel_size=3, padding=1),
                    nn.BatchNorm2d(mid_channels),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(mid_channels, out_channels, kernel_size=3, padding=1),
                    nn.BatchNorm2d(out_channels),
                    nn.ReLU(inplace=True),
                )

            def forward(self, x):
                return self.double_conv(x)

        class Up(nn.Module):
            def __init__(self, in_channels, out_channels, bilinear=True):
                super().__init__()
                if bilinear:
                    self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
                    self.conv = DoubleConv(in_channels, out_channels, in_channels // 2)
                else:
                    self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
                    self.conv = DoubleConv(in_channels, out_channels)

            def forward(self, x1, x2):
                x1 = self.up(x1)
                diffY = x2.size()[2] - x1.size()[2]
                diffX = x2.size()[3] - x1.size()[3]
                x1 = F.pad(x1, [diffX // 2, diffX - diffX // 2, diffY // 2, diffY - diffY // 2])
                x = torch.cat([x2, x1], dim=1)
                return self.conv(x)

        class UNet(nn.Module):
            def __init__(self, n_channels, n_classes, bilinear):
                super().__init__()
                self.inc = DoubleConv(n_channels, 4)
                self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
                factor = 2 if bilinear else 1
                self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16 // factor))
                self.up1 = Up(16, 8 // factor, bilinear)
                self.up2 = Up(8, 4, bilinear)
                self.outc = nn.Conv2d(4, n_classes, kernel_size=1)

            def forward(self, x):
                x1 = self.inc(x)
                x2 = self.down1(x1)
                x3 = self.down2(x2)
                reveal(x3)
                x = self.up1(x3, x2)
                reveal(x)
                x = self.up2(x, x1)
                return self.outc(x)

        reveal(UNet(3, 2, True)(torch.randn(B, 3, 37, 50)))
        reveal(UNet(1, 5, False)(torch.randn(B, 1, 32, 32)))
    """,
    "Feature pyramid": """
        class FPN(nn.Module):
            def __init__(self, channels, out=8):
                super().__init__()
                self.lateral = nn.ModuleList([nn.Conv2d(c, out, 1) for c in channels])
                self.smooth = nn.ModuleList([nn.Conv2d(out, out, 3, padding=1) for _ in channels])

            def _upsample_add(self, x, y):
                _, _, H, W = y.size()
                return F.interpolate(x, size=(H, W), mode="bilinear", align_corners=False) + y

            def forward(self, c3, c4, c5):
                p5 = self.lateral[2](c5)
                p4 = self._upsample_add(p5, self.lateral[1](c4))
                p3 = self._upsample_add(p4, self.lateral[0](c3))
                return self.smooth[0](p3), self.smooth[1](p4), self.smooth[2](p5)

        net = FPN([6, 12, 24])
        p3, p4, p5 = net(torch.randn(B, 6, 20, 28), torch.randn(B, 12, 10, 14), torch.randn(B, 24, 5, 7))
        reveal(p3)
        reveal(p4)
        reveal(p5)
    """,
    "Super-resolution": """
        class ESPCN(nn.Module):
            def __init__(self, upscale_factor):
                super().__init__()
                self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
                self.conv2 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
                self.conv3 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
                self.pixel_shuffle = nn.PixelShuffle(upscale_factor)

            def forward(self, x):
                x = torch.tanh(self.conv1(x))
                x = torch.tanh(self.conv2(x))
                return torch.sigmoid(self.pixel_shuffle(self.conv3(x)))

        reveal(ESPCN(3)(torch.randn(B, 1, 17, 13)))
        reveal(ESPCN(upscale_factor=2)(torch.randn(B, 1, 8, 8)))
    """,
    "SegNet with indices": """
        class SegNet(nn.Module):
            def __init__(self, classes):
                super().__init__()
                self.down = nn.Conv2d(3, 8, 3, padding=1)
                self.pool = nn.MaxPool2d(2, stride=2, return_indices=True)
                self.unpool = nn.MaxUnpool2d(2, stride=2)
                self.up = nn.Conv2d(8, classes, 3, padding=1)

            def forward(self, x):
                x = F.relu(self.down(x))
                size = x.size()
                x, indices = self.pool(x)
                reveal(x)
                reveal(self.unpool(x, indices, output_size=size))
                x = self.unpool(x, indices)
                return self.up(x)

        out = SegNet(5)(torch.randn(B, 3, 16, 20))
        reveal(out)
        reveal(out.argmax(dim=1))
    """,
    "DeepLab head": """
        class ASPP(nn.Module):
            def __init__(self, in_channels, atrous_rates, out_channels=8):
                super().__init__()
                modules = [nn.Sequential(nn.Conv2d(in_channels, out_channels, 1, bias=False), nn.ReLU())]
                for rate in tuple(atrous_rates):
                    modules.append(
                        nn.Conv2d(in_channels, out_channels, 3, padding=rate, dilation=rate, bias=False)
                    )
                self.convs = nn.ModuleList(modules)
                self.pool = nn.Sequential(
                    nn.AdaptiveAvgPool2d(1), nn.Conv2d(in_channels, out_channels, 1)
                )
                self.project = nn.Conv2d(
                    (len(self.convs) + 1) * out_channels, out_channels, 1, bias=False
                )

            def forward(self, x):
                _res = []
                for conv in self.convs:
                    _res.append(conv(x))
                size = x.shape[-2:]
                _res.append(F.interpolate(self.pool(x), size=size, mode="bilinear", align_corners=False))
                res = torch.cat(_res, dim=1)
                reveal(res)
                return self.project(res)

        x = torch.randn(B, 3, 65, 65)
        features = nn.Conv2d(3, 12, 3, stride=2, padding=1)(x)
        out = nn.Conv2d(8, 21, 1)(ASPP(12, [6, 12])(features))
        reveal(F.interpolate(out, size=x.shape[-2:], mode="bilinear", align_corners=False))
    """,
}
