"""Networks for texts: their code shows what it computes with `reveal`."""

NETWORKS = {
    "LSTM tagger": """
        class LSTMTagger(nn.Module):
            def __init__(self, embedding_dim, hidden_dim, vocab_size, tagset_size):
                super(LSTMTagger, self).__init__()
                self.hidden_dim = hidden_dim
                self.word_embeddings = nn.Embedding(vocab_size, embedding_dim)
                self.lstm = nn.LSTM(embedding_dim, hidden_dim)
                self.hidden2tag = nn.Linear(hidden_dim, tagset_size)

            def forward(self, sentence):
                embeds = self.word_embeddings(sentence)
                lstm_out, _ = self.lstm(embeds.view(len(sentence), 1, -1))
                reveal(lstm_out)
                tag_space = self.hidden2tag(lstm_out.view(len(sentence), -1))
                return F.log_softmax(tag_space, dim=1)

        reveal(LSTMTagger(6, 7, 20, 3)(torch.randint(0, 20, (T,))))
    """,
    "bidirectional LSTM classifier": """
        class BiLSTM(nn.Module):
            def __init__(self, vocab, dim, hidden, layers, classes):
                super().__init__()
                self.hidden, self.layers = hidden, layers
                self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
                self.lstm = nn.LSTM(
                    dim, hidden, layers, bidirectional=True, batch_first=True, dropout=0.1
                )
                self.dropout = nn.Dropout(0.5)
                self.fc = nn.Linear(hidden * 2, classes)

            def init_hidden(self, batch):
                return (
                    torch.zeros(self.layers * 2, batch, self.hidden),
                    torch.zeros(self.layers * 2, batch, self.hidden),
                )

            def forward(self, text):
                embedded = self.dropout(self.embedding(text))
                output, (hidden, cell) = self.lstm(embedded, self.init_hidden(text.size(0)))
                reveal(output)
                reveal(hidden)
                hidden = torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)
                return self.fc(self.dropout(hidden))

        reveal(BiLSTM(20, 6, 5, 2, 3)(torch.randint(0, 20, (B, T))))
    """,
    "seq2seq with attention": """
        class Encoder(nn.Module):
            def __init__(self, input_dim, emb_dim, hid_dim):
                super().__init__()
                self.embedding = nn.Embedding(input_dim, emb_dim)
                self.rnn = nn.GRU(emb_dim, hid_dim, bidirectional=True)
                self.fc = nn.Linear(hid_dim * 2, hid_dim)

            def forward(self, src):
                outputs, hidden = self.rnn(self.embedding(src))
                hidden = torch.tanh(self.fc(torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)))
                return outputs, hidden

        class Attention(nn.Module):
            def __init__(self, hid_dim):
                super().__init__()
                self.attn = nn.Linear(hid_dim * 3, hid_dim)
                self.v = nn.Linear(hid_dim, 1, bias=False)

            def forward(self, hidden, encoder_outputs):
                src_len = encoder_outputs.shape[0]
                hidden = hidden.unsqueeze(1).repeat(1, src_len, 1)
                encoder_outputs = encoder_outputs.permute(1, 0, 2)
                energy = torch.tanh(self.attn(torch.cat((hidden, encoder_outputs), dim=2)))
                attention = self.v(energy).squeeze(2)
                return F.softmax(attention, dim=1)

        class Decoder(nn.Module):
            def __init__(self, output_dim, emb_dim, hid_dim, attention):
                super().__init__()
                self.output_dim = output_dim
                self.attention = attention
                self.embedding = nn.Embedding(output_dim, emb_dim)
                self.rnn = nn.GRU(hid_dim * 2 + emb_dim, hid_dim)
                self.fc_out = nn.Linear(hid_dim * 3 + emb_dim, output_dim)

            def forward(self, input, hidden, encoder_outputs):
                embedded = self.embedding(input.unsqueeze(0))
                a = self.attention(hidden, encoder_outputs).unsqueeze(1)
                reveal(a)
                weighted = torch.bmm(a, encoder_outputs.permute(1, 0, 2)).permute(1, 0, 2)
                rnn_input = torch.cat((embedded, weighted), dim=2)
                output, hidden = self.rnn(rnn_input, hidden.unsqueeze(0))
                embedded, output, weighted = embedded.squeeze(0), output.squeeze(0), weighted.squeeze(0)
                prediction = self.fc_out(torch.cat((output, weighted, embedded), dim=1))
                return prediction, hidden.squeeze(0)

        class Seq2Seq(nn.Module):
            def __init__(self, encoder, decoder):
                super().__init__()
                self.encoder, self.decoder = encoder, decoder

            def forward(self, src, trg):
                batch_size, trg_len = src.shape[1], trg.shape[0]
                outputs = torch.zeros(trg_len, batch_size, self.decoder.output_dim)
                encoder_outputs, hidden = self.encoder(src)
                reveal(encoder_outputs)
                input = trg[0, :]
                for t in range(1, 3):
                    output, hidden = self.decoder(input, hidden, encoder_outputs)
                    outputs[t] = output
                    top1 = output.argmax(1)
                    input = top1
                return outputs

        model = Seq2Seq(Encoder(20, 6, 5), Decoder(15, 4, 5, Attention(5)))
        output = model(torch.randint(0, 20, (T, B)), torch.randint(0, 15, (T, B)))
        reveal(output)
        reveal(output[1:].view(-1, output.shape[-1]))
    """,
    "dot-product attention over an LSTM": """
        class AttentionModel(nn.Module):
            def __init__(self, vocab, dim, hidden, classes):
                super().__init__()
                self.embed = nn.Embedding(vocab, dim)
                self.lstm = nn.LSTM(dim, hidden, batch_first=True)
                self.label = nn.Linear(hidden, classes)

            def attention_net(self, lstm_output, final_state):
                hidden = final_state.squeeze(0)
                attn_weights = torch.bmm(lstm_output, hidden.unsqueeze(2)).squeeze(2)
                soft_attn_weights = F.softmax(attn_weights, 1)
                reveal(soft_attn_weights)
                return torch.bmm(lstm_output.transpose(1, 2), soft_attn_weights.unsqueeze(2)).squeeze(2)

            def forward(self, x):
                output, (final_hidden_state, final_cell_state) = self.lstm(self.embed(x))
                attn_output = self.attention_net(output, final_hidden_state)
                return self.label(attn_output)

        reveal(AttentionModel(20, V, 6, 4)(torch.randint(0, 20, (B, T))))
    """,
    "text CNN": """
        class TextCNN(nn.Module):
            def __init__(self, vocab_size, embedding_dim, n_filters, filter_sizes, output_dim, dropout):
                super().__init__()
                self.embedding = nn.Embedding(vocab_size, embedding_dim)
                self.convs = nn.ModuleList(
                    [
                        nn.Conv2d(in_channels=1, out_channels=n_filters, kernel_size=(fs, embedding_dim))
                        for fs in filter_sizes
                    ]
                )
                self.fc = nn.Linear(len(filter_sizes) * n_filters, output_dim)
                self.dropout = nn.Dropout(dropout)

            def forward(self, text):
                embedded = self.embedding(text).unsqueeze(1)
                conved = [F.relu(conv(embedded)).squeeze(3) for conv in self.convs]
                pooled = [F.max_pool1d(conv, conv.shape[2]).squeeze(2) for conv in conved]
                reveal(conved[0])
                cat = self.dropout(torch.cat(pooled, dim=1))
                return self.fc(cat)

        reveal(TextCNN(30, 6, 4, [2, 3, 4], 5, 0.5)(torch.randint(0, 30, (B, 9))))
    """,
    "character RNN": """
        class RNN(nn.Module):
            def __init__(self, input_size, hidden_size, output_size):
                super(RNN, self).__init__()
                self.hidden_size = hidden_size
                self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
                self.i2o = nn.Linear(input_size + hidden_size, output_size)
                self.softmax = nn.LogSoftmax(dim=1)

            def forward(self, input, hidden):
                combined = torch.cat((input, hidden), 1)
                hidden = self.i2h(combined)
                output = self.softmax(self.i2o(combined))
                return output, hidden

            def init_hidden(self):
                return torch.zeros(1, self.hidden_size)

        rnn = RNN(7, 5, 4)
        line = torch.zeros(6, 1, 7)
        hidden = rnn.init_hidden()
        for i in range(line.size(0)):
            output, hidden = rnn(line[i], hidden)
        reveal(output)
        reveal(hidden)
        tokens = torch.randint(0, 4, (B, T))
        one_hot = F.one_hot(tokens, num_classes=4).float()
        reveal(one_hot)
    """,
    "language model with tied weights": """
        class RNNModel(nn.Module):
            def __init__(self, ntoken, ninp, nlayers):
                super().__init__()
                self.drop = nn.Dropout(0.2)
                self.encoder = nn.Embedding(ntoken, ninp)
                self.rnn = nn.LSTM(ninp, ninp, nlayers)
                self.decoder = nn.Linear(ninp, ntoken)
                self.decoder.weight = self.encoder.weight
                self.nhid, self.nlayers, self.ntoken = ninp, nlayers, ntoken

            def forward(self, input, hidden):
                emb = self.drop(self.encoder(input))
                output, hidden = self.rnn(emb, hidden)
                decoded = self.decoder(self.drop(output))
                decoded = decoded.view(-1, self.ntoken)
                return F.log_softmax(decoded, dim=1), hidden

            def init_hidden(self, bsz):
                weight = next(self.parameters())
                return (
                    weight.new_zeros(self.nlayers, bsz, self.nhid),
                    weight.new_zeros(self.nlayers, bsz, self.nhid),
                )

        model = RNNModel(30, 6, 2)
        output, hidden = model(torch.randint(0, 30, (T, B)), model.init_hidden(B))
        reveal(output)
        reveal(hidden[0])
        reveal(F.nll_loss(output, torch.randint(0, 30, (T, B)).view(-1)))
    """,
}
