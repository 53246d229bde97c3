"""Networks for sounds, series and frames: their code shows what it computes with `reveal`."""

NETWORKS = {
    "CRNN": """
        class BidirectionalLSTM(nn.Module):
            def __init__(self, nIn, nHidden, nOut):
                super(BidirectionalLSTM, self).__init__()
                self.rnn = nn.LSTM(nIn, nHidden, bidirectional=True)
                self.embedding = nn.Linear(nHidden * 2, nOut)

            def forward(self, input):
                recurrent, _ = self.rnn(input)
                T, b, h = recurrent.size()
                t_rec = recurrent.view(T * b, h)
                output = self.embedding(t_rec)
                return output.view(T, b, -1)

        class CRNN(nn.Module):
            def __init__(self, imgH, nc, nclass, nh):
                super(CRNN, self).__init__()
                assert imgH % 16 == 0
                ks = [3, 3, 3, 2]
                ps = [1, 1, 1, 0]
                nm = [4, 8, 12, 16]
                cnn = nn.Sequential()

                def convRelu(i, batchNormalization=False):
                    nIn = nc if i == 0 else nm[i - 1]
                    nOut = nm[i]
                    cnn.add_module("conv{0}".format(i), nn.Conv2d(nIn, nOut, ks[i], 1, ps[i]))
                    if batchNormalization:
                        cnn.add_module("batchnorm{0}".format(i), nn.BatchNorm2d(nOut))
                    cnn.add_module("relu{0}".format(i), nn.ReLU(True))

                convRelu(0)
                cnn.add_module("pooling0", nn.MaxPool2d(2, 2))
                convRelu(1)
                cnn.add_module("pooling1", nn.MaxPool2d(2, 2))
                convRelu(2, True)
                cnn.add_module("pooling2", nn.MaxPool2d((2, 2), (2, 1), (0, 1)))
                cnn.add_module("pooling3", nn.MaxPool2d((2, 2), (2, 1), (0, 1)))
                convRelu(3, True)
                self.cnn = cnn
                self.rnn = nn.Sequential(BidirectionalLSTM(16, nh, nh), BidirectionalLSTM(nh, nh, nclass))

            def forward(self, input):
                conv = self.cnn(input)
                reveal(conv)
                b, c, h, w = conv.size()
                conv = conv.squeeze(2)
                conv = conv.permute(2, 0, 1)
                return self.rnn(conv)

        reveal(CRNN(32, 1, 11, 6)(torch.randn(B, 1, 32, 40)))
    """,
    "temporal convolutional network": """
        from torch.nn.utils import weight_norm

        class Chomp1d(nn.Module):
            def __init__(self, chomp_size):
                super(Chomp1d, self).__init__()
                self.chomp_size = chomp_size

            def forward(self, x):
                return x[:, :, : -self.chomp_size].contiguous()

        class TemporalBlock(nn.Module):
            def __init__(self, n_inputs, n_outputs, kernel_size, stride, dilation, padding, dropout=0.2):
                super(TemporalBlock, self).__init__()
                self.conv1 = weight_norm(
                    nn.Conv1d(
                        n_inputs,
                        n_outputs,
                        kernel_size,
                        stride=stride,
                        padding=padding,
                        dilation=dilation,
                    )
                )
                self.chomp1 = Chomp1d(padding)
                self.relu1 = nn.ReLU()
                self.net = nn.Sequential(self.conv1, self.chomp1, self.relu1, nn.Dropout(dropout))
                self.downsample = nn.Conv1d(n_inputs, n_outputs, 1) if n_inputs != n_outputs else None
                self.relu = nn.ReLU()

            def forward(self, x):
                out = self.net(x)
                res = x if self.downsample is None else self.downsample(x)
                return self.relu(out + res)

        class TemporalConvNet(nn.Module):
            def __init__(self, num_inputs, num_channels, kernel_size=2):
                super(TemporalConvNet, self).__init__()
                layers = []
                num_levels = len(num_channels)
                for i in range(num_levels):
                    dilation_size = 2**i
                    in_channels = num_inputs if i == 0 else num_channels[i - 1]
                    out_channels = num_channels[i]
                    layers += [
                        TemporalBlock(
                            in_channels,
                            out_channels,
                            kernel_size,
                            stride=1,
                            dilation=dilation_size,
                            padding=(kernel_size - 1) * dilation_size,
                        )
                    ]
                self.network = nn.Sequential(*layers)

            def forward(self, x):
                return self.network(x)

        y = TemporalConvNet(V, [6, 6, 10], kernel_size=3)(torch.randn(B, V, T))
        reveal(y)
        reveal(nn.Linear(10, 4)(y[:, :, -1]))
    """,
    "WaveNet": """
        class CausalConv1d(nn.Conv1d):
            def __init__(self, in_channels, out_channels, kernel_size, dilation=1):
                super().__init__(
                    in_channels,
                    out_channels,
                    kernel_size,
                    dilation=dilation,
                    padding=(kernel_size - 1) * dilation,
                )
                self.cut = (kernel_size - 1) * dilation

            def forward(self, x):
                x = super().forward(x)
                return x[:, :, : -self.cut] if self.cut else x

        class WaveNetBlock(nn.Module):
            def __init__(self, residual, skip, dilation):
                super().__init__()
                self.gate = nn.Conv1d(residual, 2 * residual, 2, dilation=dilation)
                self.res = nn.Conv1d(residual, residual, 1)
                self.skip = nn.Conv1d(residual, skip, 1)

            def forward(self, x):
                a, b = self.gate(x).chunk(2, dim=1)
                z = torch.tanh(a) * torch.sigmoid(b)
                return self.res(z) + x[:, :, -z.size(2) :], self.skip(z)

        x = torch.randn(B, 6, 40)
        skips = []
        for block in [WaveNetBlock(6, 5, 1), WaveNetBlock(6, 5, 2), WaveNetBlock(6, 5, 4)]:
            x, skip = block(x)
            skips.append(skip)
        reveal(x)
        length = skips[-1].size(2)
        total = sum(s[:, :, -length:] for s in skips)
        reveal(total)
        reveal(CausalConv1d(5, 4, 3, dilation=2)(total))
    """,
    "speech network with CTC": """
        class SpeechNet(nn.Module):
            def __init__(self, mels, classes):
                super().__init__()
                self.conv = nn.Sequential(
                    nn.Conv2d(1, 4, (3, 3), stride=(2, 2), padding=(1, 1)),
                    nn.BatchNorm2d(4),
                    nn.Hardtanh(0, 20, inplace=True),
                )
                self.rnn = nn.GRU(4 * (mels // 2), 8, num_layers=2, bidirectional=True, batch_first=True)
                self.fc = nn.Linear(16, classes)

            def forward(self, spectrogram):
                x = self.conv(spectrogram.unsqueeze(1))
                b, c, f, t = x.shape
                x = x.view(b, c * f, t).transpose(1, 2)
                reveal(x)
                x, _ = self.rnn(x)
                return self.fc(x).log_softmax(-1).transpose(0, 1)

        log_probs = SpeechNet(16, 9)(torch.randn(B, 16, 50))
        reveal(log_probs)
        targets = torch.randint(1, 9, (B, 5))
        reveal(F.ctc_loss(log_probs, targets, torch.full((B,), 25), torch.full((B,), 5)))
    """,
    "ConvLSTM": """
        class ConvLSTMCell(nn.Module):
            def __init__(self, input_dim, hidden_dim, kernel_size):
                super().__init__()
                self.hidden_dim = hidden_dim
                padding = kernel_size // 2, kernel_size // 2
                self.conv = nn.Conv2d(
                    input_dim + hidden_dim, 4 * hidden_dim, kernel_size, padding=padding
                )

            def forward(self, input_tensor, cur_state):
                h_cur, c_cur = cur_state
                combined = torch.cat([input_tensor, h_cur], dim=1)
                cc_i, cc_f, cc_o, cc_g = torch.split(self.conv(combined), self.hidden_dim, dim=1)
                c_next = torch.sigmoid(cc_f) * c_cur + torch.sigmoid(cc_i) * torch.tanh(cc_g)
                h_next = torch.sigmoid(cc_o) * torch.tanh(c_next)
                return h_next, c_next

        cell = ConvLSTMCell(3, 5, 3)
        x = torch.randn(B, 4, 3, 10, 12)
        h, c = torch.zeros(B, 5, 10, 12), torch.zeros(B, 5, 10, 12)
        outputs = []
        for t in range(x.size(1)):
            h, c = cell(x[:, t, :, :, :], (h, c))
            outputs.append(h)
        reveal(c)
        reveal(torch.stack(outputs, dim=1))
    """,
}
