"""Agents, pairs, points and graphs: their code shows what it computes with `reveal`."""

NETWORKS = {
    "DQN": """
        class DQN(nn.Module):
            def __init__(self, h, w, outputs):
                super(DQN, self).__init__()
                self.conv1 = nn.Conv2d(3, 8, kernel_size=5, stride=2)
                self.bn1 = nn.BatchNorm2d(8)
                self.conv2 = nn.Conv2d(8, 16, kernel_size=5, stride=2)
                self.bn2 = nn.BatchNorm2d(16)

                def conv2d_size_out(size, kernel_size=5, stride=2):
                    return (size - (kernel_size - 1) - 1) // stride + 1

                convw = conv2d_size_out(conv2d_size_out(w))
                convh = conv2d_size_out(conv2d_size_out(h))
                linear_input_size = convw * convh * 16
                self.head = nn.Linear(linear_input_size, outputs)

            def forward(self, x):
                x = F.relu(self.bn1(self.conv1(x)))
                x = F.relu(self.bn2(self.conv2(x)))
                return self.head(x.view(x.size(0), -1))

        net = DQN(40, 60, 4)
        q = net(torch.randn(B, 3, 40, 60))
        reveal(q)
        actions = torch.zeros(B, 1, dtype=torch.long)
        state_action_values = q.gather(1, actions)
        reveal(state_action_values)
        expected = net(torch.randn(B, 3, 40, 60)).max(1)[0].detach() * 0.99 + torch.zeros(B)
        reveal(F.smooth_l1_loss(state_action_values, expected.unsqueeze(1)))
    """,
    "dueling DQN": """
        class Dueling(nn.Module):
            def __init__(self, obs, actions):
                super().__init__()
                self.feature = nn.Sequential(nn.Linear(obs, 32), nn.ReLU())
                self.advantage = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, actions))
                self.value = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))

            def forward(self, x):
                x = self.feature(x)
                advantage, value = self.advantage(x), self.value(x)
                return value + advantage - advantage.mean(dim=1, keepdim=True)

        reveal(Dueling(V, 5)(torch.randn(B, V)))
        reveal(Dueling(V, 5)(torch.randn(B, V)).argmax(-1))
    """,
    "actor-critic": """
        class ActorCritic(nn.Module):
            def __init__(self, num_inputs, num_actions, hidden=16):
                super().__init__()
                self.common = nn.Sequential(nn.Linear(num_inputs, hidden), nn.Tanh())
                self.actor = nn.Linear(hidden, num_actions)
                self.critic = nn.Linear(hidden, 1)
                self.log_std = nn.Parameter(torch.zeros(1, num_actions))

            def forward(self, x):
                x = self.common(x)
                mu = self.actor(x)
                std = self.log_std.exp().expand_as(mu)
                return mu, std, self.critic(x).squeeze(-1)

        mu, std, value = ActorCritic(V, 3)(torch.randn(T, B, V))
        reveal(mu)
        reveal(std)
        reveal(value)
        returns = torch.zeros_like(value)
        advantage = returns - value
        log_prob = -((torch.randn_like(mu) - mu) ** 2) / (2 * std**2)
        reveal(-(log_prob.sum(-1) * advantage.detach()).mean())
        reveal(advantage.pow(2).mean())
    """,
    "Siamese network": """
        class SiameseNetwork(nn.Module):
            def __init__(self):
                super(SiameseNetwork, self).__init__()
                self.cnn1 = nn.Sequential(
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(1, 4, kernel_size=3),
                    nn.ReLU(inplace=True),
                    nn.BatchNorm2d(4),
                    nn.ReflectionPad2d(1),
                    nn.Conv2d(4, 8, kernel_size=3),
                    nn.ReLU(inplace=True),
                    nn.BatchNorm2d(8),
                )
                self.fc1 = nn.Sequential(
                    nn.Linear(8 * 10 * 10, 50), nn.ReLU(inplace=True), nn.Linear(50, 5)
                )

            def forward_once(self, x):
                output = self.cnn1(x)
                output = output.view(output.size()[0], -1)
                output = self.fc1(output)
                return output

            def forward(self, input1, input2):
                return self.forward_once(input1), self.forward_once(input2)

        first, second = SiameseNetwork()(torch.randn(B, 1, 10, 10), torch.randn(B, 1, 10, 10))
        reveal(first)
        distance = F.pairwise_distance(first, second, keepdim=True)
        reveal(distance)
        reveal(F.pairwise_distance(first, second))
        reveal(torch.mean(torch.pow(torch.clamp(2.0 - distance, min=0.0), 2)))
    """,
    "contrastive projection": """
        class SimCLR(nn.Module):
            def __init__(self, dim=12, projection=6):
                super().__init__()
                self.backbone = nn.Sequential(
                    nn.Conv2d(3, dim, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
                )
                self.projector = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, projection))

            def forward(self, x):
                return F.normalize(self.projector(self.backbone(x)), dim=-1)

        net = SimCLR()
        z = torch.cat([net(torch.randn(B, 3, 16, 16)), net(torch.randn(B, 3, 16, 16))], dim=0)
        reveal(z)
        sim = torch.matmul(z, z.T) / 0.5
        reveal(sim)
        mask = torch.eye(sim.size(0), dtype=torch.bool)
        sim = sim.masked_fill(mask, -1e9)
        targets = torch.arange(2 * B).roll(B)
        reveal(F.cross_entropy(sim, targets))
    """,
    "PointNet": """
        class Tnet(nn.Module):
            def __init__(self, k=3):
                super().__init__()
                self.k = k
                self.conv1 = nn.Conv1d(k, 8, 1)
                self.conv2 = nn.Conv1d(8, 16, 1)
                self.fc1 = nn.Linear(16, 8)
                self.fc2 = nn.Linear(8, k * k)
                self.bn1, self.bn2 = nn.BatchNorm1d(8), nn.BatchNorm1d(16)

            def forward(self, input):
                bs = input.size(0)
                xb = F.relu(self.bn1(self.conv1(input)))
                xb = F.relu(self.bn2(self.conv2(xb)))
                pool = nn.MaxPool1d(xb.size(-1))(xb)
                flat = nn.Flatten(1)(pool)
                reveal(flat)
                xb = F.relu(self.fc1(flat))
                init = torch.eye(self.k, requires_grad=True).repeat(bs, 1, 1)
                matrix = self.fc2(xb).view(-1, self.k, self.k) + init
                return matrix

        class PointNet(nn.Module):
            def __init__(self, classes=10):
                super().__init__()
                self.input_transform = Tnet(k=3)
                self.conv1 = nn.Conv1d(3, 8, 1)
                self.conv2 = nn.Conv1d(8, 24, 1)
                self.fc = nn.Linear(24, classes)

            def forward(self, input):
                matrix3x3 = self.input_transform(input)
                xb = torch.bmm(torch.transpose(input, 1, 2), matrix3x3).transpose(1, 2)
                xb = self.conv2(F.relu(self.conv1(xb)))
                xb = torch.max(xb, 2, keepdim=True)[0]
                reveal(xb)
                xb = xb.view(-1, 24)
                return F.log_softmax(self.fc(xb), dim=1)

        reveal(PointNet()(torch.randn(B, 3, 32)))
    """,
    "graph convolution": """
        class GraphConvolution(nn.Module):
            def __init__(self, in_features, out_features, bias=True):
                super().__init__()
                self.weight = nn.Parameter(torch.FloatTensor(in_features, out_features))
                self.bias = nn.Parameter(torch.FloatTensor(out_features)) if bias else None
                nn.init.zeros_(self.weight)

            def forward(self, input, adj):
                support = torch.mm(input, self.weight)
                output = torch.spmm(adj, support)
                if self.bias is not None:
                    return output + self.bias
                return output

        class GCN(nn.Module):
            def __init__(self, nfeat, nhid, nclass, dropout):
                super().__init__()
                self.gc1 = GraphConvolution(nfeat, nhid)
                self.gc2 = GraphConvolution(nhid, nclass)
                self.dropout = dropout

            def forward(self, x, adj):
                x = F.relu(self.gc1(x, adj))
                reveal(x)
                x = F.dropout(x, self.dropout, training=self.training)
                x = self.gc2(x, adj)
                return F.log_softmax(x, dim=1)

        adj = torch.eye(9)
        reveal(GCN(V, 16, 4, 0.5)(torch.randn(9, V), adj))
    """,
    "graph attention": """
        class GraphAttentionLayer(nn.Module):
            def __init__(self, in_features, out_features):
                super().__init__()
                self.out_features = out_features
                self.W = nn.Parameter(torch.zeros(in_features, out_features))
                self.a = nn.Parameter(torch.zeros(2 * out_features, 1))

            def forward(self, h, adj):
                Wh = torch.mm(h, self.W)
                Wh1 = torch.matmul(Wh, self.a[: self.out_features, :])
                Wh2 = torch.matmul(Wh, self.a[self.out_features :, :])
                e = F.leaky_relu(Wh1 + Wh2.T)
                reveal(e)
                attention = torch.where(adj > 0, e, -9e15 * torch.ones_like(e))
                attention = F.softmax(attention, dim=1)
                return F.elu(torch.matmul(attention, Wh))

        heads = nn.ModuleList([GraphAttentionLayer(V, 4) for _ in range(3)])
        x, adj = torch.randn(7, V), torch.eye(7)
        x = torch.cat([att(x, adj) for att in heads], dim=1)
        reveal(x)
    """,
}
