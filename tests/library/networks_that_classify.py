"""Networks that say what is in an image: their code shows what it computes with `reveal`."""

NETWORKS = {
    "LeNet": """
        class LeNet(nn.Module):
            def __init__(self, classes=10):
                super().__init__()
                self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
                self.conv2 = nn.Conv2d(6, 16, 5)
                self.fc1 = nn.Linear(16 * 5 * 5, 120)
                self.fc2 = nn.Linear(120, 84)
                self.fc3 = nn.Linear(84, classes)

            def forward(self, x):
                x = F.max_pool2d(torch.sigmoid(self.conv1(x)), 2)
                x = F.max_pool2d(torch.sigmoid(self.conv2(x)), (2, 2))
                reveal(x)
                x = x.view(-1, self.num_flat_features(x))
                x = F.relu(self.fc1(x))
                x = F.relu(self.fc2(x))
                return self.fc3(x)

            def num_flat_features(self, x):
                size = x.size()[1:]
                num_features = 1
                for s in size:
                    num_features *= s
                return num_features

        reveal(LeNet()(torch.randn(B, 1, 28, 28)))
    """,
    "AlexNet": """
        class AlexNet(nn.Module):
            def __init__(self, num_classes: int = 10, dropout: float = 0.5) -> None:
                super().__init__()
                self.features = nn.Sequential(
                    nn.Conv2d(3, 16, kernel_size=11, stride=4, padding=2),
                    nn.ReLU(inplace=True),
                    nn.MaxPool2d(kernel_size=3, stride=2),
                    nn.Conv2d(16, 24, kernel_size=5, padding=2),
                    nn.ReLU(inplace=True),
                    nn.MaxPool2d(kernel_size=3, stride=2),
                    nn.Conv2d(24, 32, kernel_size=3, padding=1),
                    nn.ReLU(inplace=True),
                    nn.MaxPool2d(kernel_size=3, stride=2),
                )
                self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
                self.classifier = nn.Sequential(
                    nn.Dropout(p=dropout),
                    nn.Linear(32 * 6 * 6, 64),
                    nn.ReLU(inplace=True),
                    nn.Linear(64, num_classes),
                )

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                x = self.features(x)
                reveal(x)
                x = self.avgpool(x)
                x = torch.flatten(x, 1)
                x = self.classifier(x)
                return x

        reveal(AlexNet()(torch.randn(B, 3, 224, 224)))
    """,
    "VGG": """
        cfgs = {"A": [4, "M", 8, "M", 8, 8, "M"], "B": [4, 4, "M", 8, 8, "M"]}

        def make_layers(cfg, batch_norm=False):
            layers = []
            in_channels = 3
            for v in cfg:
                if v == "M":
                    layers += [nn.MaxPool2d(kernel_size=2, stride=2)]
                else:
                    conv2d = nn.Conv2d(in_channels, v, kernel_size=3, padding=1)
                    if batch_norm:
                        layers += [conv2d, nn.BatchNorm2d(v), nn.ReLU(inplace=True)]
                    else:
                        layers += [conv2d, nn.ReLU(inplace=True)]
                    in_channels = v
            return nn.Sequential(*layers)

        class VGG(nn.Module):
            def __init__(self, features, num_classes=10):
                super().__init__()
                self.features = features
                self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
                self.classifier = nn.Sequential(
                    nn.Linear(8 * 7 * 7, 32), nn.ReLU(True), nn.Linear(32, num_classes)
                )

            def forward(self, x):
                x = self.features(x)
                reveal(x)
                x = self.avgpool(x)
                x = x.view(x.size(0), -1)
                return self.classifier(x)

        reveal(VGG(make_layers(cfgs["A"], batch_norm=True))(torch.randn(B, 3, 32, 32)))
        reveal(VGG(make_layers(cfgs["B"]))(torch.randn(B, 3, 40, 40)))
    """,
    "ResNet of basic blocks": """
        def conv3x3(in_planes, out_planes, stride=1):
            return nn.Conv2d(in_planes, out_planes, kernel_size=3, stride=stride, padding=1, bias=False)

        class BasicBlock(nn.Module):
            expansion = 1

            def __init__(self, inplanes, planes, stride=1, downsample=None):
                super().__init__()
                self.conv1 = conv3x3(inplanes, planes, stride)
                self.bn1 = nn.BatchNorm2d(planes)
                self.relu = nn.ReLU(inplace=True)
                self.conv2 = conv3x3(planes, planes)
                self.bn2 = nn.BatchNorm2d(planes)
                self.downsample = downsample

            def forward(self, x):
                identity = x
                out = self.relu(self.bn1(self.conv1(x)))
                out = self.bn2(self.conv2(out))
                if self.downsample is not None:
                    identity = self.downsample(x)
                out += identity
                return self.relu(out)

        class ResNet(nn.Module):
            def __init__(self, block, layers, num_classes=10):
                super().__init__()
                self.inplanes = 4
                self.conv1 = nn.Conv2d(3, 4, kernel_size=7, stride=2, padding=3, bias=False)
                self.bn1 = nn.BatchNorm2d(4)
                self.relu = nn.ReLU(inplace=True)
                self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
                self.layer1 = self._make_layer(block, 4, layers[0])
                self.layer2 = self._make_layer(block, 8, layers[1], stride=2)
                self.layer3 = self._make_layer(block, 16, layers[2], stride=2)
                self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
                self.fc = nn.Linear(16 * block.expansion, num_classes)

            def _make_layer(self, block, planes, blocks, stride=1):
                downsample = None
                if stride != 1 or self.inplanes != planes * block.expansion:
                    downsample = nn.Sequential(
                        nn.Conv2d(
                            self.inplanes,
                            planes * block.expansion,
                            kernel_size=1,
                            stride=stride,
                            bias=False,
                        ),
                        nn.BatchNorm2d(planes * block.expansion),
                    )
                layers = [block(self.inplanes, planes, stride, downsample)]
                self.inplanes = planes * block.expansion
                for _ in range(1, blocks):
                    layers.append(block(self.inplanes, planes))
                return nn.Sequential(*layers)

            def forward(self, x):
                x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
                x = self.layer1(x)
                reveal(x)
                x = self.layer2(x)
                x = self.layer3(x)
                reveal(x)
                x = self.avgpool(x)
                x = torch.flatten(x, 1)
                return self.fc(x)

        reveal(ResNet(BasicBlock, [2, 2, 1])(torch.randn(B, 3, 64, 48)))
    """,
    "ResNet of bottlenecks": """
        class Bottleneck(nn.Module):
            expansion = 4

            def __init__(self, in_planes, planes, stride=1):
                super(Bottleneck, self).__init__()
                self.conv1 = nn.Conv2d(in_planes, planes, kernel_size=1, bias=False)
                self.bn1 = nn.BatchNorm2d(planes)
                self.conv2 = nn.Conv2d(
                    planes, planes, kernel_size=3, stride=stride, padding=1, bias=False
                )
                self.bn2 = nn.BatchNorm2d(planes)
                self.conv3 = nn.Conv2d(planes, self.expansion * planes, kernel_size=1, bias=False)
                self.bn3 = nn.BatchNorm2d(self.expansion * planes)
                self.shortcut = nn.Sequential()
                if stride != 1 or in_planes != self.expansion * planes:
                    self.shortcut = nn.Sequential(
                        nn.Conv2d(
                            in_planes, self.expansion * planes, kernel_size=1, stride=stride, bias=False
                        ),
                        nn.BatchNorm2d(self.expansion * planes),
                    )

            def forward(self, x):
                out = F.relu(self.bn1(self.conv1(x)))
                out = F.relu(self.bn2(self.conv2(out)))
                out = self.bn3(self.conv3(out))
                out += self.shortcut(x)
                out = F.relu(out)
                return out

        class ResNet(nn.Module):
            def __init__(self, num_blocks, num_classes=10):
                super(ResNet, self).__init__()
                self.in_planes = 4
                self.conv1 = nn.Conv2d(3, 4, kernel_size=3, stride=1, padding=1, bias=False)
                self.layer1 = self._make_layer(4, num_blocks[0], stride=1)
                self.layer2 = self._make_layer(8, num_blocks[1], stride=2)
                self.linear = nn.Linear(8 * Bottleneck.expansion, num_classes)

            def _make_layer(self, planes, num_blocks, stride):
                strides = [stride] + [1] * (num_blocks - 1)
                layers = []
                for stride in strides:
                    layers.append(Bottleneck(self.in_planes, planes, stride))
                    self.in_planes = planes * Bottleneck.expansion
                return nn.Sequential(*layers)

            def forward(self, x):
                out = self.layer2(self.layer1(self.conv1(x)))
                reveal(out)
                out = F.avg_pool2d(out, 4)
                out = out.view(out.size(0), -1)
                return self.linear(out)

        reveal(ResNet([2, 1])(torch.randn(B, 3, 8, 8)))
    """,
    "DenseNet": """
        class DenseLayer(nn.Module):
            def __init__(self, channels, growth):
                super().__init__()
                self.norm = nn.BatchNorm2d(channels)
                self.conv = nn.Conv2d(channels, growth, 3, padding=1, bias=False)

            def forward(self, x):
                return self.conv(F.relu(self.norm(x)))

        class DenseBlock(nn.Module):
            def __init__(self, num_layers, channels, growth):
                super().__init__()
                self.layers = nn.ModuleList(
                    [DenseLayer(channels + i * growth, growth) for i in range(num_layers)]
                )

            def forward(self, x):
                features = [x]
                for layer in self.layers:
                    features.append(layer(torch.cat(features, dim=1)))
                return torch.cat(features, 1)

        class Transition(nn.Sequential):
            def __init__(self, channels, out):
                super().__init__(
                    nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, out, 1), nn.AvgPool2d(2, 2)
                )

        x = torch.randn(B, 6, 16, 16)
        x = DenseBlock(3, 6, 4)(x)
        reveal(x)
        x = Transition(18, 9)(x)
        reveal(x)
        reveal(DenseBlock(2, 9, 4)(x))
    """,
    "Inception": """
        class BasicConv2d(nn.Module):
            def __init__(self, in_channels, out_channels, **kwargs):
                super().__init__()
                self.conv = nn.Conv2d(in_channels, out_channels, bias=False, **kwargs)
                self.bn = nn.BatchNorm2d(out_channels, eps=0.001)

            def forward(self, x):
                x = self.bn(self.conv(x))
                return F.relu(x, inplace=True)

        class Inception(nn.Module):
            def __init__(self, in_channels, ch1x1, ch3x3red, ch3x3, ch5x5red, ch5x5, pool_proj):
                super().__init__()
                self.branch1 = BasicConv2d(in_channels, ch1x1, kernel_size=1)
                self.branch2 = nn.Sequential(
                    BasicConv2d(in_channels, ch3x3red, kernel_size=1),
                    BasicConv2d(ch3x3red, ch3x3, kernel_size=3, padding=1),
                )
                self.branch3 = nn.Sequential(
                    BasicConv2d(in_channels, ch5x5red, kernel_size=1),
                    BasicConv2d(ch5x5red, ch5x5, kernel_size=5, padding=2),
                )
                self.branch4 = nn.Sequential(
                    nn.MaxPool2d(kernel_size=3, stride=1, padding=1, ceil_mode=True),
                    BasicConv2d(in_channels, pool_proj, kernel_size=1),
                )

            def _forward(self, x):
                return [self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)]

            def forward(self, x):
                outputs = self._forward(x)
                return torch.cat(outputs, 1)

        x = torch.randn(B, 12, 14, 14)
        x = Inception(12, 4, 6, 8, 2, 4, 4)(x)
        reveal(x)
        reveal(F.max_pool2d(Inception(20, 4, 6, 8, 2, 4, 4)(x), 3, stride=2, ceil_mode=True))
    """,
    "MobileNetV2": """
        def _make_divisible(v, divisor, min_value=None):
            if min_value is None:
                min_value = divisor
            new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
            if new_v < 0.9 * v:
                new_v += divisor
            return new_v

        class InvertedResidual(nn.Module):
            def __init__(self, inp, oup, stride, expand_ratio):
                super().__init__()
                hidden_dim = int(round(inp * expand_ratio))
                self.use_res_connect = stride == 1 and inp == oup
                layers = []
                if expand_ratio != 1:
                    layers.extend(
                        [
                            nn.Conv2d(inp, hidden_dim, 1, bias=False),
                            nn.BatchNorm2d(hidden_dim),
                            nn.ReLU6(),
                        ]
                    )
                layers.extend(
                    [
                        nn.Conv2d(hidden_dim, hidden_dim, 3, stride, 1, groups=hidden_dim, bias=False),
                        nn.BatchNorm2d(hidden_dim),
                        nn.ReLU6(inplace=True),
                        nn.Conv2d(hidden_dim, oup, 1, 1, 0, bias=False),
                        nn.BatchNorm2d(oup),
                    ]
                )
                self.conv = nn.Sequential(*layers)

            def forward(self, x):
                if self.use_res_connect:
                    return x + self.conv(x)
                else:
                    return self.conv(x)

        class MobileNetV2(nn.Module):
            def __init__(self, n_class=10, width_mult=0.5):
                super().__init__()
                setting = [[1, 8, 1, 1], [6, 12, 2, 2], [6, 16, 1, 1]]
                input_channel = _make_divisible(16 * width_mult, 4)
                features = [nn.Conv2d(3, input_channel, 3, 2, 1)]
                for t, c, n, s in setting:
                    output_channel = _make_divisible(c * width_mult, 4)
                    for i in range(n):
                        stride = s if i == 0 else 1
                        features.append(
                            InvertedResidual(input_channel, output_channel, stride, expand_ratio=t)
                        )
                        input_channel = output_channel
                self.features = nn.Sequential(*features)
                self.classifier = nn.Linear(input_channel, n_class)

            def forward(self, x):
                x = self.features(x)
                reveal(x)
                x = x.mean(3).mean(2)
                return self.classifier(x)

        reveal(MobileNetV2()(torch.randn(B, 3, 32, 32)))
    """,
}
