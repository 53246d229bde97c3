"""Parts of language models: their code shows what it computes with `reveal`."""

NETWORKS = {
    "RMSNorm and rotary attention": """
        class RMSNorm(nn.Module):
            def __init__(self, dim, eps=1e-6):
                super().__init__()
                self.eps = eps
                self.weight = nn.Parameter(torch.ones(dim))

            def _norm(self, x):
                return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

            def forward(self, x):
                return self._norm(x.float()).type_as(x) * self.weight

        def rotate_half(x):
            x1 = x[..., : x.shape[-1] // 2]
            x2 = x[..., x.shape[-1] // 2 :]
            return torch.cat((-x2, x1), dim=-1)

        def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
            cos = cos.unsqueeze(unsqueeze_dim)
            sin = sin.unsqueeze(unsqueeze_dim)
            return (q * cos) + (rotate_half(q) * sin), (k * cos) + (rotate_half(k) * sin)

        def repeat_kv(hidden_states, n_rep):
            batch, num_key_value_heads, slen, head_dim = hidden_states.shape
            if n_rep == 1:
                return hidden_states
            hidden_states = hidden_states[:, :, None, :, :].expand(
                batch, num_key_value_heads, n_rep, slen, head_dim
            )
            return hidden_states.reshape(batch, num_key_value_heads * n_rep, slen, head_dim)

        class Attention(nn.Module):
            def __init__(self, dim, heads, kv_heads):
                super().__init__()
                self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
                self.q_proj = nn.Linear(dim, heads * self.head_dim, bias=False)
                self.k_proj = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
                self.v_proj = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
                self.o_proj = nn.Linear(heads * self.head_dim, dim, bias=False)
                inv_freq = 1.0 / (10000 ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim))
                self.register_buffer("inv_freq", inv_freq)

            def rotary(self, position_ids):
                inv_freq_expanded = self.inv_freq[None, :, None].expand(position_ids.shape[0], -1, 1)
                freqs = (inv_freq_expanded @ position_ids[:, None, :].float()).transpose(1, 2)
                emb = torch.cat((freqs, freqs), dim=-1)
                return emb.cos(), emb.sin()

            def forward(self, x):
                b, t, _ = x.shape
                q = self.q_proj(x).view(b, t, self.heads, self.head_dim).transpose(1, 2)
                k = self.k_proj(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
                v = self.v_proj(x).view(b, t, self.kv_heads, self.head_dim).transpose(1, 2)
                cos, sin = self.rotary(torch.arange(t).unsqueeze(0).expand(b, t))
                reveal(cos)
                q, k = apply_rotary_pos_emb(q, k, cos, sin)
                k, v = (
                    repeat_kv(k, self.heads // self.kv_heads),
                    repeat_kv(v, self.heads // self.kv_heads),
                )
                reveal(k)
                out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return self.o_proj(out.transpose(1, 2).contiguous().view(b, t, -1))

        class SwiGLU(nn.Module):
            def __init__(self, dim, hidden):
                super().__init__()
                self.w1, self.w2, self.w3 = (
                    nn.Linear(dim, hidden),
                    nn.Linear(hidden, dim),
                    nn.Linear(dim, hidden),
                )

            def forward(self, x):
                return self.w2(F.silu(self.w1(x)) * self.w3(x))

        x = torch.randn(B, T, 16)
        x = x + Attention(16, 4, 2)(RMSNorm(16)(x))
        reveal(x)
        reveal(x + SwiGLU(16, 24)(RMSNorm(16)(x)))
    """,
    "mixture of experts": """
        class MoE(nn.Module):
            def __init__(self, dim, hidden, experts, top_k=2):
                super().__init__()
                self.top_k = top_k
                self.gate = nn.Linear(dim, experts, bias=False)
                self.w1 = nn.Parameter(torch.randn(experts, dim, hidden))
                self.w2 = nn.Parameter(torch.randn(experts, hidden, dim))
                self.experts = nn.ModuleList(
                    [
                        nn.Sequential(nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim))
                        for _ in range(experts)
                    ]
                )

            def forward(self, x):
                b, t, d = x.shape
                flat = x.view(-1, d)
                scores = F.softmax(self.gate(flat), dim=-1)
                weights, chosen = torch.topk(scores, self.top_k, dim=-1)
                weights = weights / weights.sum(dim=-1, keepdim=True)
                reveal(chosen)
                everything = torch.stack([expert(flat) for expert in self.experts], dim=1)
                reveal(everything)
                index = chosen.unsqueeze(-1).expand(-1, -1, d)
                picked = everything.gather(1, index)
                out = (picked * weights.unsqueeze(-1)).sum(dim=1)
                hidden = F.gelu(torch.einsum("nd,edh->neh", flat, self.w1))
                dense = torch.einsum("neh,ehd->ned", hidden, self.w2)
                reveal(dense)
                return (out + (dense * scores.unsqueeze(-1)).sum(1)).view(b, t, d)

        reveal(MoE(8, 12, 4)(torch.randn(B, T, 8)))
    """,
    "LoRA": """
        class LoRALinear(nn.Linear):
            def __init__(self, in_features, out_features, r=4, lora_alpha=8):
                super().__init__(in_features, out_features)
                self.scaling = lora_alpha / r
                self.lora_A = nn.Parameter(torch.zeros(r, in_features))
                self.lora_B = nn.Parameter(torch.zeros(out_features, r))
                self.lora_dropout = nn.Dropout(0.1)

            def forward(self, x):
                result = F.linear(x, self.weight, self.bias)
                return (
                    result
                    + (self.lora_dropout(x) @ self.lora_A.transpose(0, 1) @ self.lora_B.transpose(0, 1))
                    * self.scaling
                )

        class Wrapped(nn.Module):
            def __init__(self, base, r):
                super().__init__()
                self.base = base
                self.down = nn.Linear(base.in_features, r, bias=False)
                self.up = nn.Linear(r, base.out_features, bias=False)

            def forward(self, x):
                return self.base(x) + self.up(self.down(x))

        x = torch.randn(B, T, V)
        reveal(LoRALinear(V, 10)(x))
        reveal(Wrapped(nn.Linear(V, 6), 2)(x))
    """,
    "Perceiver cross-attention": """
        class Perceiver(nn.Module):
            def __init__(self, latents, dim, inputs):
                super().__init__()
                self.latents = nn.Parameter(torch.randn(latents, dim))
                self.project = nn.Linear(inputs, dim)
                self.cross = nn.MultiheadAttention(dim, 2, batch_first=True)
                self.own = nn.MultiheadAttention(dim, 2, batch_first=True)

            def forward(self, x):
                b = x.size(0)
                memory = self.project(x.flatten(2).permute(0, 2, 1))
                reveal(memory)
                z = self.latents.unsqueeze(0).repeat(b, 1, 1)
                a, weights = self.cross(z, memory, memory)
                reveal(weights)
                z = z + a
                z = z + self.own(z, z, z, need_weights=False)[0]
                return z.mean(dim=1)

        reveal(Perceiver(5, 8, 3)(torch.randn(B, 3, 6, 7)))
    """,
    "question answering head": """
        class QA(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.outputs = nn.Linear(dim, 2)

            def forward(self, hidden, start_positions, end_positions):
                logits = self.outputs(hidden)
                start_logits, end_logits = logits.split(1, dim=-1)
                start_logits = start_logits.squeeze(-1).contiguous()
                end_logits = end_logits.squeeze(-1).contiguous()
                reveal(start_logits)
                ignored_index = start_logits.size(1)
                start_positions = start_positions.clamp(0, ignored_index)
                loss_fct = nn.CrossEntropyLoss(ignore_index=ignored_index)
                return (loss_fct(start_logits, start_positions) + loss_fct(end_logits, end_positions)) / 2

        reveal(
            QA(V)(torch.randn(B, T, V), torch.zeros(B, dtype=torch.long), torch.ones(B, dtype=torch.long))
        )
        hidden, mask = torch.randn(B, T, V), torch.ones(B, T)
        summed = torch.sum(hidden * mask.unsqueeze(-1).expand(hidden.size()).float(), 1)
        reveal(summed / torch.clamp(mask.unsqueeze(-1).sum(1), min=1e-9))
    """,
}
