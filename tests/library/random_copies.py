"""Random chains of views, copies, conversions and writes of one tensor, with a view at the end."""

from __future__ import annotations

import random

import torch
from running_programs import IMPORTS, Running

SOURCES = (
    "torch.rand(2, 3, 4)", "torch.arange(24.0).view(2, 3, 4)", "torch.rand(4, 3, 2)", "torch.ones(3, 4)",
    "torch.rand(2, 3, 4, 4)", "torch.randint(0, 4, (2, 3, 4))", "torch.rand(2, 1, 4)",
    "torch.zeros(2, 3, 4, dtype=torch.float64)", "torch.rand(2, 3, 4, requires_grad=True)",
    "torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)",
)  # fmt: skip
LAYOUTS = (
    ".transpose(0, 1)", ".transpose(-1, -2)", ".permute(*reversed(range(x.dim())))", "[:, :2]", "[..., 1:]",
    "[:, ::2]", ".T", ".mT", ".expand(2, *x.shape)", ".unsqueeze(0).expand(2, *[-1] * x.dim())", ".t()",
    ".narrow(1, 0, 1)", ".select(1, 0)", ".flip(0)", ".squeeze()", ".unsqueeze(1)", ".swapaxes(0, 1)",
    ".movedim(0, -1)", ".as_strided((2, 2), (1, 2))", ".unfold(-1, 2, 1)", ".diagonal()", ".chunk(2, -1)[0]",
    ".split(1, 1)[0]", ".unbind(-1)[0]", ".reshape(-1)", ".flatten()", ".view(-1)", ".roll(1, 0)", ".real",
    ".detach()", ".data", ".contiguous()", "[0]", "[None]", "[:, None]", ".broadcast_to(2, *x.shape)",
    ".repeat(2, *[1] * (x.dim() - 1))", ".index_select(0, torch.tensor([0, 1]))", ".tile(2)", ".triu()",
    "[torch.tensor([0, 1])]", ".gather(0, torch.zeros_like(x, dtype=torch.long))",
)  # fmt: skip
COPIES = (
    ".clone()", ".contiguous()", ".to(torch.float64)", ".to(torch.float32)", ".float()", ".double()",
    ".int()", ".half().float()", ".long()", ".bool()", ".to('cpu')", ".cpu()", ".to(x.dtype)", ".to(x)",
    ".type_as(x)", ".type(torch.float64)", ".to('cpu', copy=True)", ".to(torch.float32, copy=True)",
    ".detach().clone()", ".to('cpu', torch.float32, False, True)", ".to(torch.float32, False, True)",
    ".cpu().float()", ".clone(memory_format=torch.contiguous_format)", " + 0",
    ".clone(memory_format=torch.preserve_format)", " * 1", ".add(1)", ".relu()", ".sigmoid()", ".neg()",
    ".abs()", ".exp()", ".requires_grad_(False)", ".mul_(2)", ".add_(1)", ".zero_()", ".fill_(0)",
    ".clamp_(0, 1)", ".relu_()", ".softmax(-1)", ".cumsum(0)", ".new_tensor(x.tolist())",
    ".new_zeros(x.shape)", ".masked_fill(x > 0, 0)", ".where(x > 0, x * 2)", ".round()", ".sort(-1)[0]",
    ".float().mean(-1, keepdim=True)", ".to(device='cpu', dtype=torch.float64)",
    ".to(dtype=torch.float32, non_blocking=True)", ".to(torch.empty(0, dtype=torch.float64))",
)  # fmt: skip
FUNCTIONS = (
    "torch.clone(x)", "torch.empty_like(x)", "torch.zeros_like(x)", "torch.rand_like(x.float())",
    "torch.ones_like(x, memory_format=torch.contiguous_format)", "torch.tensor(x.tolist())",
    "torch.as_tensor(x)", "torch.as_tensor(x, dtype=torch.float64)", "torch.from_numpy(x.detach().numpy())",
    "torch.from_numpy(x.detach().numpy().copy())", "torch.as_tensor(x.detach().numpy())",
    "copy.deepcopy(x.detach())", "copy.copy(x)", "torch.cat([x, x])", "torch.cat([x])",
    "torch.cat([x, x], -1)", "torch.stack([x, x])", "torch.empty_like(x).copy_(x)",
    "torch.empty(x.shape).copy_(x)",
    "x.new_empty(x.shape).copy_(x)", "nn.Identity()(x)", "nn.Dropout(0.5).eval()(x.float())", "nn.ReLU()(x)",
    "nn.ReLU(inplace=True)(x.detach())", "F.dropout(x.float(), 0.0)", "F.relu(x)", "F.pad(x, (1, 1))",
    "torch.where(x > 0, x, x)", "torch.maximum(x, x)", "torch.add(x, 1)", "nn.Parameter(x.detach().float())",
    "torch.nan_to_num(x)", "torch.clamp(x, 0, 1)", "torch.squeeze(x)", "torch.ravel(x)",
    "torch.flatten(x, 0, 1)", "torch.narrow(x, 0, 0, 1)", "torch.utils.data.default_collate([x, x])",
    "nn.Sequential(nn.Identity(), nn.ReLU())(x)", "nn.Linear(x.size(-1), 4)(x.float())",
    "torch.einsum('...i->...i', x)", "torch.matmul(x.float(), x.float().transpose(-1, -2))",
    "F.normalize(x.float(), dim=-1)", "F.softmax(x.float(), -1)", "torch.sum(x, 0, keepdim=True)",
    "torch.complex(x.float(), x.float()).real", "torch.fft.fft(x.float()).real", "torch.argsort(x, -1)",
    "torch.atleast_3d(x)", "torch.swapdims(x, 0, 1)", "torch.hstack([x, x])",
    "torch.utils.checkpoint.checkpoint(nn.Identity(), x, use_reentrant=False)",
)  # fmt: skip
WRITES = (
    "x.mul_(2)", "x.add_(1)", "x[0] = 0", "x[:, 0] = 1", "x.copy_(torch.zeros(x.shape))", "x.fill_(1)",
    "x += 1", "x *= 2", "x.view(-1)[0] = 1", "x.clamp_(min=0)", "x.masked_fill_(x > 0, 0)", "x.normal_()",
    "x.scatter_(0, torch.zeros_like(x, dtype=torch.long), 1.0)", "x.index_fill_(0, torch.tensor([0]), 1)",
    "F.relu(x, inplace=True)", "x.data.add_(1)", "x.t_()", "x.squeeze_()", "x.unsqueeze_(0)",
    "x.transpose_(0, 1)", "x.resize_(x.shape)", "x.requires_grad_()", "x.set_(x.clone())",
    "torch.add(x, 1, out=x)", "x.detach_()", "nn.init.zeros_(x)",
    "x = x.scatter(0, torch.zeros_like(x, dtype=torch.long), 1)",
    "x.index_add_(0, torch.tensor([0]), x[:1].clone())",
)  # fmt: skip
VIEWS = (
    ".view(-1)", ".view(x.size(0), -1)", ".view(*x.shape)", ".view(-1, x.size(-1))", ".view(x.numel())",
    ".view(*x.shape[:-1], -1)", ".view(1, *x.shape)", ".view(-1, 1)", ".view_as(x)",
    ".view(x.size(0) * x.size(1), -1)", ".reshape(-1)", ".flatten(0, 1)", ".unflatten(0, (1, -1))",
)  # fmt: skip
FORMS = {
    "script": "import copy\nx = {source}\n{body}\ny = x{view}\n",
    "function": "import copy\ndef run(x):\n    {body}\n    return x\nx = run({source})\ny = x{view}\n",
    "method": (
        "import copy\nclass Net(nn.Module):\n    def forward(self, x):\n        {body}\n        return x\n"
        "x = Net()({source})\ny = x{view}\n"
    ),
    "alone": "import copy\ndef run(x):\n    {body}\n    return x{view}\n",
}
LARGEST = 5000


def _step(draw: random.Random) -> str:
    kind = draw.random()
    if kind < 0.35:
        return "x = x" + draw.choice(LAYOUTS)
    if kind < 0.6:
        return "x = x" + draw.choice(COPIES)
    if kind < 0.8:
        return "x = " + draw.choice(FUNCTIONS)
    return draw.choice(WRITES) if kind < 0.9 else "x = x" + draw.choice(VIEWS)


def _after(code: str) -> torch.Tensor | None:
    """The tensor x after running code; None if torch refuses it."""
    names: dict[str, object] = {}
    try:
        exec(IMPORTS + "import copy\n" + code, names)
    except Exception:
        return None
    made = names["x"]
    return made if isinstance(made, torch.Tensor) and made.numel() <= LARGEST else None


def draft(draw: random.Random) -> Running:
    """Write a chain in which each step runs."""
    source = draw.choice(SOURCES)
    lines: list[str] = []
    for _ in range(draw.randint(2, 7)):
        line = _step(draw)
        if _after("\n".join([f"x = {source}", *lines, line])) is not None:
            lines.append(line)
    form = draw.choice(list(FORMS))
    indent = "\n" if form == "script" else "\n        " if form == "method" else "\n    "
    view = draw.choice(VIEWS)
    # A function without callers runs for the tensors that its author has in mind.
    code = "\n".join([f"x = {source}", *lines, f"x = x{view}"])
    text = FORMS[form].format(source=source, body=indent.join(lines) or "pass", view=view)
    if _after(code) is None:
        text = "raise SystemError\n"
    return Running(text, ("x", "y") if form != "alone" else ())
