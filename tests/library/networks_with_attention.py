"""Transformers: their code shows what it computes with `reveal`."""

NETWORKS = {
    "BERT-style encoder": """
        import math

        class BertSelfAttention(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.num_attention_heads = config.num_attention_heads
                self.attention_head_size = int(config.hidden_size / config.num_attention_heads)
                self.all_head_size = self.num_attention_heads * self.attention_head_size
                self.query = nn.Linear(config.hidden_size, self.all_head_size)
                self.key = nn.Linear(config.hidden_size, self.all_head_size)
                self.value = nn.Linear(config.hidden_size, self.all_head_size)

            def transpose_for_scores(self, x):
                new_x_shape = x.size()[:-1] + (self.num_attention_heads, self.attention_head_size)
                x = x.view(*new_x_shape)
                return x.permute(0, 2, 1, 3)

            def forward(self, hidden_states, attention_mask):
                query_layer = self.transpose_for_scores(self.query(hidden_states))
                key_layer = self.transpose_for_scores(self.key(hidden_states))
                value_layer = self.transpose_for_scores(self.value(hidden_states))
                attention_scores = torch.matmul(query_layer, key_layer.transpose(-1, -2))
                attention_scores = attention_scores / math.sqrt(self.attention_head_size)
                attention_scores = attention_scores + attention_mask
                reveal(attention_scores)
                attention_probs = nn.Softmax(dim=-1)(attention_scores)
                context_layer = torch.matmul(attention_probs, value_layer)
                context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
                new_context_layer_shape = context_layer.size()[:-2] + (self.all_head_size,)
                return context_layer.view(*new_context_layer_shape)

        class BertLayer(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.attention = BertSelfAttention(config)
                self.dense = nn.Linear(config.hidden_size, config.hidden_size)
                self.norm = nn.LayerNorm(config.hidden_size, eps=1e-12)
                self.up = nn.Linear(config.hidden_size, config.intermediate_size)
                self.down = nn.Linear(config.intermediate_size, config.hidden_size)

            def forward(self, x, mask):
                x = self.norm(self.dense(self.attention(x, mask)) + x)
                return self.norm(self.down(F.gelu(self.up(x))) + x)

        class Bert(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.words = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=0)
                self.positions = nn.Embedding(config.max_position_embeddings, config.hidden_size)
                self.types = nn.Embedding(2, config.hidden_size)
                self.layer = nn.ModuleList([BertLayer(config) for _ in range(config.num_hidden_layers)])
                self.pooler = nn.Linear(config.hidden_size, config.hidden_size)

            def forward(self, input_ids, token_type_ids=None, attention_mask=None):
                if attention_mask is None:
                    attention_mask = torch.ones_like(input_ids)
                if token_type_ids is None:
                    token_type_ids = torch.zeros_like(input_ids)
                seq_length = input_ids.size(1)
                position_ids = torch.arange(seq_length, dtype=torch.long, device=input_ids.device)
                position_ids = position_ids.unsqueeze(0).expand_as(input_ids)
                x = self.words(input_ids) + self.positions(position_ids) + self.types(token_type_ids)
                extended = attention_mask.unsqueeze(1).unsqueeze(2).to(dtype=torch.float32)
                extended = (1.0 - extended) * -10000.0
                reveal(extended)
                for layer in self.layer:
                    x = layer(x, extended)
                first_token = x[:, 0]
                return x, torch.tanh(self.pooler(first_token))

        class Config:
            vocab_size = 30
            hidden_size = 12
            num_attention_heads = 3
            intermediate_size = 24
            num_hidden_layers = 2
            max_position_embeddings = 16

        sequence, pooled = Bert(Config())(torch.randint(0, 30, (B, T)))
        reveal(sequence)
        reveal(pooled)
    """,
    "small GPT": """
        from dataclasses import dataclass

        @dataclass
        class GPTConfig:
            block_size: int = 16
            vocab_size: int = 20
            n_layer: int = 2
            n_head: int = 2
            n_embd: int = 12
            bias: bool = False

        class CausalSelfAttention(nn.Module):
            def __init__(self, config):
                super().__init__()
                assert config.n_embd % config.n_head == 0
                self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
                self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
                self.n_head = config.n_head
                self.n_embd = config.n_embd
                self.register_buffer(
                    "bias",
                    torch.tril(torch.ones(config.block_size, config.block_size)).view(
                        1, 1, config.block_size, config.block_size
                    ),
                )

            def forward(self, x):
                B, T, C = x.size()
                q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
                k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
                att = (q @ k.transpose(-2, -1)) * (1.0 / k.size(-1) ** 0.5)
                att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
                att = F.softmax(att, dim=-1)
                reveal(att)
                y = att @ v
                y = y.transpose(1, 2).contiguous().view(B, T, C)
                return self.c_proj(y)

        class Block(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.ln_1 = nn.LayerNorm(config.n_embd)
                self.attn = CausalSelfAttention(config)
                self.mlp = nn.ModuleDict(
                    dict(
                        c_fc=nn.Linear(config.n_embd, 4 * config.n_embd),
                        c_proj=nn.Linear(4 * config.n_embd, config.n_embd),
                        act=nn.GELU(),
                    )
                )
                m = self.mlp
                self.mlpf = lambda x: m.c_proj(m.act(m.c_fc(x)))

            def forward(self, x):
                x = x + self.attn(self.ln_1(x))
                x = x + self.mlpf(self.ln_1(x))
                return x

        class GPT(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.config = config
                self.transformer = nn.ModuleDict(
                    dict(
                        wte=nn.Embedding(config.vocab_size, config.n_embd),
                        wpe=nn.Embedding(config.block_size, config.n_embd),
                        h=nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                        ln_f=nn.LayerNorm(config.n_embd),
                    )
                )
                self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)

            def forward(self, idx, targets=None):
                b, t = idx.size()
                pos = torch.arange(0, t, dtype=torch.long)
                x = self.transformer.wte(idx) + self.transformer.wpe(pos)
                for block in self.transformer.h:
                    x = block(x)
                x = self.transformer.ln_f(x)
                if targets is not None:
                    logits = self.lm_head(x)
                    loss = F.cross_entropy(
                        logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
                    )
                else:
                    logits = self.lm_head(x[:, [-1], :])
                    loss = None
                return logits, loss

        model = GPT(GPTConfig())
        idx = torch.randint(0, 20, (B, T))
        logits, loss = model(idx, idx)
        reveal(logits)
        reveal(loss)
        logits, _ = model(idx)
        reveal(logits)
        logits = logits[:, -1, :] / 0.8
        v, _ = torch.topk(logits, min(5, logits.size(-1)))
        logits[logits < v[:, [-1]]] = -float("Inf")
        idx_next = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)
        reveal(idx_next)
        reveal(torch.cat((idx, idx_next), dim=1))
    """,
    "ViT": """
        class PatchEmbed(nn.Module):
            def __init__(self, img_size=32, patch_size=8, in_chans=3, embed_dim=16):
                super().__init__()
                self.num_patches = (img_size // patch_size) * (img_size // patch_size)
                self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

            def forward(self, x):
                return self.proj(x).flatten(2).transpose(1, 2)

        class Attention(nn.Module):
            def __init__(self, dim, num_heads=4):
                super().__init__()
                self.num_heads = num_heads
                self.scale = (dim // num_heads) ** -0.5
                self.qkv = nn.Linear(dim, dim * 3)
                self.proj = nn.Linear(dim, dim)

            def forward(self, x):
                B, N, C = x.shape
                qkv = (
                    self.qkv(x)
                    .reshape(B, N, 3, self.num_heads, C // self.num_heads)
                    .permute(2, 0, 3, 1, 4)
                )
                q, k, v = qkv.unbind(0)
                attn = (q @ k.transpose(-2, -1)) * self.scale
                attn = attn.softmax(dim=-1)
                x = (attn @ v).transpose(1, 2).reshape(B, N, C)
                return self.proj(x)

        class VisionTransformer(nn.Module):
            def __init__(self, embed_dim=16, depth=2, num_classes=5):
                super().__init__()
                self.patch_embed = PatchEmbed(embed_dim=embed_dim)
                self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
                self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, embed_dim))
                self.blocks = nn.ModuleList(
                    [nn.ModuleList([nn.LayerNorm(embed_dim), Attention(embed_dim)]) for _ in range(depth)]
                )
                self.norm = nn.LayerNorm(embed_dim)
                self.head = nn.Linear(embed_dim, num_classes) if num_classes > 0 else nn.Identity()

            def forward(self, x):
                B = x.shape[0]
                x = self.patch_embed(x)
                cls_tokens = self.cls_token.expand(B, -1, -1)
                x = torch.cat((cls_tokens, x), dim=1)
                x = x + self.pos_embed
                reveal(x)
                for norm, attn in self.blocks:
                    x = x + attn(norm(x))
                x = self.norm(x)
                return self.head(x[:, 0])

        reveal(VisionTransformer()(torch.randn(B, 3, 32, 32)))
    """,
    "Transformer encoder of torch": """
        import math

        class PositionalEncoding(nn.Module):
            def __init__(self, d_model, max_len=50):
                super().__init__()
                position = torch.arange(max_len).unsqueeze(1)
                div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
                pe = torch.zeros(max_len, 1, d_model)
                pe[:, 0, 0::2] = torch.sin(position * div_term)
                pe[:, 0, 1::2] = torch.cos(position * div_term)
                self.register_buffer("pe", pe)

            def forward(self, x):
                return x + self.pe[: x.size(0)]

        class TransformerModel(nn.Module):
            def __init__(self, ntoken, d_model, nhead, d_hid, nlayers):
                super().__init__()
                self.pos_encoder = PositionalEncoding(d_model)
                encoder_layers = nn.TransformerEncoderLayer(d_model, nhead, d_hid, 0.1)
                self.transformer_encoder = nn.TransformerEncoder(encoder_layers, nlayers)
                self.embedding = nn.Embedding(ntoken, d_model)
                self.d_model = d_model
                self.linear = nn.Linear(d_model, ntoken)

            def forward(self, src, src_mask=None):
                src = self.embedding(src) * math.sqrt(self.d_model)
                src = self.pos_encoder(src)
                reveal(src)
                if src_mask is None:
                    src_mask = nn.Transformer.generate_square_subsequent_mask(len(src))
                output = self.transformer_encoder(src, src_mask)
                return self.linear(output)

        output = TransformerModel(20, 8, 2, 16, 2)(torch.randint(0, 20, (T, B)))
        reveal(output)
        reveal(output.view(-1, 20))
    """,
    "Transformer with encoder and decoder": """
        class Translator(nn.Module):
            def __init__(self, source, target, dim):
                super().__init__()
                self.source = nn.Embedding(source, dim)
                self.target = nn.Embedding(target, dim)
                self.transformer = nn.Transformer(
                    d_model=dim,
                    nhead=2,
                    num_encoder_layers=1,
                    num_decoder_layers=1,
                    dim_feedforward=16,
                    batch_first=True,
                )
                self.generator = nn.Linear(dim, target)

            def forward(self, src, tgt):
                mask = nn.Transformer.generate_square_subsequent_mask(tgt.size(1))
                reveal(mask)
                padding = src == 0
                out = self.transformer(
                    self.source(src), self.target(tgt), tgt_mask=mask, src_key_padding_mask=padding
                )
                return self.generator(out)

        src, tgt = torch.randint(1, 20, (B, T)), torch.randint(1, 15, (B, 5))
        logits = Translator(20, 15, 8)(src, tgt[:, :-1])
        reveal(logits)
        reveal(
            F.cross_entropy(logits.reshape(-1, logits.shape[-1]), tgt[:, 1:].reshape(-1), ignore_index=0)
        )
        layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
        reveal(nn.TransformerDecoder(layer, 2)(torch.randn(B, 4, 8), torch.randn(B, T, 8)))
    """,
}
