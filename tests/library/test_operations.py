"""Operations on tensors: what the interpreter says they return is what torch returns."""

from __future__ import annotations

import pytest
from differential import agree

from shapefix.library.ops.elementwise import ACTIVATIONS, UNARY
from shapefix.tensors.ops import BINARY_NAMES

TENSORS = """
x = torch.rand(B, T, V) + 0.1
sliced = torch.rand(B, T, V + 3)[..., :V] + 0.0
gapped = torch.rand(B, T + 2, V)[:, 1:-1]
transposed = torch.rand(T, B, V).transpose(0, 1)
permuted = torch.rand(V, B, T).permute(1, 2, 0)
expanded = torch.rand(1, V)[0].expand(B, T, V)
"""
NAMES = ["x", "sliced", "gapped", "transposed", "permuted", "expanded"]
CHOICES = """
y = torch.randint(0, V, (B, T))
mask = y > 3
matrix = torch.randn(T, V)
wide = torch.randn(T, V + 2)[:, 1:-1]
image = torch.randn(B, 4, T, V)
last = torch.randn(B, 4, T, V).to(memory_format=torch.channels_last)
"""

WHOLE = {"bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "floor_divide"}
COMPLEX = {"lerp", "addcmul", "addcdiv"}


def on_each(call: str) -> str:
    """The call, with `$` for each of the tensors in turn."""
    return TENSORS + CHOICES + "".join(f"reveal({call.replace('$', name)})\n" for name in NAMES)


@pytest.mark.parametrize("name", [name for name in UNARY if name not in WHOLE])
def test_unary(name: str) -> None:
    import torch
    import torch.utils.checkpoint

    arguments = "(0.1)" if name in ("clamp_min", "clamp_max", "clamp", "clip") else "()"
    agree(on_each(f"$.{name}{arguments}"))
    if hasattr(torch, name):
        agree(on_each(f"torch.{name}(${', 0.1' if arguments != '()' else ''})"))


@pytest.mark.parametrize("name", [name for name in ACTIVATIONS if name not in ("prelu",)])
def test_activations(name: str) -> None:
    agree(on_each(f"F.{name}($)"))


@pytest.mark.parametrize("name", [name for name in BINARY_NAMES if name not in WHOLE | COMPLEX])
def test_binary(name: str) -> None:
    agree(on_each(f"$.{name}(x)"))
    agree(on_each(f"torch.{name}(x, $)"))
    agree(on_each(f"torch.{name}($, $)"))
    agree(on_each(f"torch.{name}($, matrix)"))


@pytest.mark.parametrize("name", ["eq", "add", "mul", "lt", "remainder", "pow", "bitwise_and", "bitwise_or"])
def test_binary_of_whole_numbers(name: str) -> None:
    agree(f"{CHOICES}\nreveal(y.{name}(y + 1)), reveal(torch.{name}(y, 2)), reveal(y.t().{name}(1 + y.t()))")


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "<", ">=", "==", "!="]


@pytest.mark.parametrize("operator", OPERATORS)
def test_operators(operator: str) -> None:
    agree(on_each(f"$ {operator} x"))
    agree(on_each(f"$ {operator} 2"))
    agree(on_each(f"2.5 {operator} $"))
    agree(on_each(f"x {operator} $"))
    agree(on_each(f"$ {operator} matrix"))


MORE_ELEMENTWISE = [
    "-$",
    "~($ > 0)",
    "($ > 0) & ($ < 1)",
    "($ > 0) | mask[..., None]",
    "torch.where($ > 0.5, $, x)",
    "torch.where($ > 0.5, $, 0.0)",
    "$.where($ > 0.5, x)",
    "torch.lerp($, x, 0.5)",
    "$.clamp(min=0.2, max=0.5)",
    "$.masked_fill($ > 0.5, 0.0)",
    "torch.masked_fill($, mask[..., None], 0.0)",
    "$.to(torch.float64)",
    "$.double()",
    "$.half().float()",
    "$.type(torch.int64)",
    "$.clone()",
    "$.flip(1)",
    "torch.zeros_like($)",
    "torch.rand_like($, dtype=torch.float64)",
    "torch.full_like($, 2)",
    "$.new_zeros(T, V)",
    "$.sort(dim=-1)",
    "$.argsort(dim=1)",
    "$.tril()",
    "torch.addcmul($, x, x, value=0.5)",
    "torch.tensor($ > 0.5, dtype=torch.float32)",
    "torch.as_tensor($, dtype=torch.float64)",
    "torch.as_tensor($)",
]


@pytest.mark.parametrize("call", MORE_ELEMENTWISE)
def test_more_elementwise(call: str) -> None:
    agree(on_each(call))


SELVES = ["$.detach()", "$.float()", "$.to(torch.float32)", "$.requires_grad_()", "$.data"]


@pytest.mark.parametrize("call", SELVES)
def test_what_returns_the_tensor_itself(call: str) -> None:
    agree(on_each(call))


MEMORY_FORMATS = [
    "$.contiguous()",
    "$.clone(memory_format=torch.contiguous_format)",
    "$.clone(memory_format=torch.preserve_format)",
]


@pytest.mark.parametrize("call", MEMORY_FORMATS)
def test_memory_formats(call: str) -> None:
    agree(on_each(call))


def test_images_in_memory_formats() -> None:
    agree(
        f"""{CHOICES}
for picture in (image, last, torch.randn(B, 4, V, T).transpose(2, 3), torch.randn(B, 6, T, V)[:, 1:-1]):
    reveal(picture.contiguous()), reveal(picture.contiguous(memory_format=torch.channels_last))
    reveal(picture.to(memory_format=torch.channels_last)), reveal(picture.clone()), reveal(picture * 2)
    reveal(picture + last), reveal(torch.cat([picture, last], 1)), reveal(torch.stack([picture, picture]))
    reveal(picture.to(torch.float64, memory_format=torch.channels_last))
    reveal(picture.relu()), reveal(picture.mean((2, 3))), reveal(picture.permute(0, 2, 3, 1))
"""
    )


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "mean",
        "prod",
        "std",
        "var",
        "logsumexp",
        "amax",
        "amin",
        "any",
        "all",
        "argmax",
        "argmin",
        "nansum",
        "nanmean",
        "count_nonzero",
    ],
)
def test_reductions(name: str) -> None:
    agree(on_each(f"$.{name}(-1)"))
    agree(on_each(f"torch.{name}($, dim=1)"))
    if name != "count_nonzero":
        agree(on_each(f"$.{name}(dim=0, keepdim=True)"))
    if name not in ("logsumexp",):
        agree(on_each(f"$.{name}()"))
    if name not in ("prod", "argmax", "argmin"):
        agree(on_each(f"$.{name}((0, 2))"))


MORE_REDUCTIONS = [
    "$.max()",
    "$.max(-1)",
    "$.min(dim=1, keepdim=True)",
    "torch.max($, x)",
    "torch.minimum($, x)",
    "$.median(1)",
    "$.norm()",
    "$.norm(dim=-1)",
    "$.norm(2, -1)",
    "$.norm(p=2, dim=1, keepdim=True)",
    "$.sum(dim=(1, 2))",
    "$.sum(dtype=torch.float64)",
    "y.sum()",
    "mask.sum(1)",
    "y.float().mean()",
    "$.softmax(-1)",
    "torch.softmax($, dim=1)",
    "F.log_softmax($, dim=-1)",
    "$.log_softmax(0)",
    "$.cumsum(1)",
    "mask.cumsum(-1)",
    "$.topk(3)",
    "$.topk(2, dim=1)[1].t() if False else $.topk(2, dim=1)[1]",
    "torch.topk($, k=1, dim=-1)",
    "$.std(dim=-1, unbiased=False)",
    "$.var(-1, keepdim=True)",
    "$.mean(dim=-1).mean(dim=-1)",
    "$.argmax(-1, keepdim=True)",
    "torch.all(mask)",
    "($ > 0.5).float().sum(-1)",
]


@pytest.mark.parametrize("call", MORE_REDUCTIONS)
def test_more_reductions(call: str) -> None:
    agree(on_each(call))


VIEWS = [
    "$.transpose(1, 2)",
    "torch.transpose($, 0, -1)",
    "$.permute(2, 0, 1)",
    "torch.permute($, (1, 0, 2))",
    "$.mT",
    "$.movedim(0, 2)",
    "torch.movedim($, (0, 1), (1, 2))",
    "$.swapaxes(0, 1)",
    "$.unsqueeze(1)",
    "torch.unsqueeze($, -1)",
    "$.unsqueeze(0).squeeze(0)",
    "$[:, :1].squeeze()",
    "$[:, :1].squeeze(1)",
    "$.narrow(1, 1, 2)",
    "$.select(1, 0)",
    "$.chunk(2, -1)",
    "$.split(4, dim=-1)",
    "$.split([3, V - 3], dim=2)",
    "torch.split($, 2, 1)",
    "$.unbind(0)",
    "$.diagonal(0, 1, 2)",
    "$.unfold(1, 3, 1)",
    "$.unsqueeze(2).expand(B, T, 3, V)",
    "$.unsqueeze(2).expand(-1, -1, 3, -1)",
    "$[:, :1].expand_as($)",
    "matrix.broadcast_to(B, T, V)",
    "$.view(B, T, 2, V // 2)",
    "$.unflatten(-1, (2, 4))",
    "$.reshape(B, -1)",
    "torch.reshape($, (B * T, V))",
    "$.reshape(-1)",
    "$.flatten()",
    "$.flatten(1)",
    "torch.flatten($, 0, 1)",
    "$.contiguous().view(-1, V)",
    "$.reshape_as($)",
    "matrix.t()",
    "matrix.T",
    "wide.T",
    "$[0]",
    "$[:, 0]",
    "$[:, -1, :]",
    "$[..., 0]",
    "$[:, ::2]",
    "$[:, None]",
    "$[:, 1:-1, 2:]",
    "$[y > 100].shape[1]",
    "$[0, 1, 2]",
    "$[:, [0, 2]]",
    "$[:, torch.tensor([0, 2, 3])]",
    "$[torch.arange(B), torch.tensor([0, 1])]",
    "$[..., :1, :]",
]


@pytest.mark.parametrize("call", VIEWS)
def test_views(call: str) -> None:
    agree(on_each(call))


JOINS = [
    "torch.cat([$, x])",
    "torch.cat(($, $), dim=-1)",
    "torch.concat([$, x[:, 1:]], 1)",
    "torch.stack([$, x])",
    "torch.stack(($, $), dim=1)",
    "torch.stack([$, $], -1)",
    "$.repeat(2, 1, 1)",
    "$.repeat(3, 1, 2, 1)",
    "$.tile((1, 2))",
    "$.repeat_interleave(2, dim=1)",
    "torch.repeat_interleave($, 3, 0)",
    "$.repeat_interleave(2)",
    "$.roll(1, 1)",
    "torch.roll($, shifts=2, dims=0)",
    "$.gather(-1, y.unsqueeze(-1))",
    "torch.gather($, 2, y[..., None])",
    "$.index_select(1, torch.tensor([0, 1]))",
    "$.scatter(-1, y.unsqueeze(-1), 0.0)",
    "torch.nn.utils.rnn.pad_sequence([$[0], $[1]], batch_first=True)",
    "torch.nn.utils.rnn.pad_sequence([$[0, 1:], $[1]])",
    "torch.vstack([$, x])",
    "torch.hstack([$, x])",
    "torch.hstack([$[0, 0], x[0, 0]])",
    "torch.vstack([$[0, 0], x[0, 0]])",
    "$.scatter_add(-1, y.unsqueeze(-1), torch.ones(B, T, 1))",
    "$.index_fill(0, torch.tensor([0]), 0.0)",
    "$.index_add(0, torch.tensor([0]), x[:1])",
    "$.masked_scatter($ > 0.5, x)",
    "torch.index_select($, 0, torch.tensor([0]))",
]


@pytest.mark.parametrize("call", JOINS)
def test_joins(call: str) -> None:
    agree(on_each(call))


PRODUCTS = [
    "$ @ $.transpose(1, 2)",
    "$ @ torch.randn(V, 5)",
    "torch.matmul($, matrix.t())",
    "torch.bmm($, $.mT)",
    "matrix.mm(matrix.t())",
    "matrix @ torch.randn(V)",
    "torch.mv(wide, torch.randn(V))",
    "torch.addmm(torch.randn(5), matrix, torch.randn(V, 5))",
    "torch.baddbmm(torch.randn(B, T, T), $, $.mT)",
    "torch.outer(matrix[0], wide[0])",
    "torch.dot(matrix[0], wide[0])",
    "torch.randn(V).dot(torch.randn(V))",
]


@pytest.mark.parametrize("call", PRODUCTS)
def test_products(call: str) -> None:
    agree(on_each(call))


BY_NAME = [
    "torch.add(input=$, other=x)",
    "torch.add($, other=x)",
    "$.mul(other=x)",
    "torch.pow(input=$, exponent=2)",
    "torch.maximum(input=$, other=x)",
    "$.lerp(end=x, weight=x)",
    "torch.addcmul($, tensor1=x, tensor2=x, value=2)",
    "torch.heaviside($, values=x)",
    "$.isclose(other=x, rtol=0.1)",
    "torch.where(condition=$ > 0.5, input=$, other=x)",
    "torch.where($ > 0.5, other=0.0, input=x)",
    "$.where(condition=$ > 0.5, other=x)",
    "$.masked_fill(mask=$ > 0.5, value=0.0)",
    "$.clamp(min=x * 0)",
    "torch.max($, other=x)",
    "$.min(other=x)",
    "$.sum(dim=1, keepdim=True)",
    "$.sum(axis=1, keepdims=True)",
    "torch.softmax($, axis=1)",
    "torch.cat([$, x], axis=1)",
    "$.max(axis=1)",
    "torch.permute(input=$, dims=(2, 0, 1))",
    "$.permute(dims=(2, 0, 1))",
    "$.transpose(dim0=1, dim1=2)",
    "$.reshape(shape=(B, -1))",
    "torch.reshape($, shape=(B * T, V))",
    "$.contiguous().view(size=(B, T * V))",
    "$.contiguous().view_as(other=x)",
    "$.expand(size=(3, B, T, V))",
    "torch.broadcast_to($, size=(3, B, T, V))",
    "$.repeat(repeats=(1, 2, 1))",
    "$.tile(dims=(1, 2))",
    "$.tile(2, 1)",
    "$.flip(0, 1)",
    "$[:1, :1].squeeze(0, 1)",
    "$.flip(dims=(0, 1))",
    "torch.cat(tensors=[$, x], dim=1)",
    "torch.stack(dim=1, tensors=[$, x])",
    "torch.vstack(tensors=[$, x])",
    "torch.repeat_interleave(input=$, repeats=2, dim=1)",
    "torch.nn.utils.rnn.pad_sequence(sequences=[$[0], $[1]], batch_first=True)",
    "torch.matmul($, other=matrix.t())",
    "torch.bmm(input=$, mat2=$.mT)",
    "torch.baddbmm(torch.randn(B, T, T), batch1=$, batch2=$.mT)",
    "matrix.mv(vec=$[0, 0])",
    "torch.outer(input=$[0, 0], vec2=$[0, 0])",
    "$.type(dtype=torch.float64)",
    "$.type_as(other=y)",
    "torch.zeros(T).to($.view(dtype=torch.int32).dtype)",
    "$.clone(memory_format=torch.contiguous_format)",
    "torch.zeros_like(input=$, dtype=torch.int64)",
    "torch.ones_like($, dtype=None)",
    "$.new_zeros(size=(T, V))",
    "$.new_full(size=(T,), fill_value=2)",
    "$.new_tensor(data=[1, 2])",
]


@pytest.mark.parametrize("call", BY_NAME)
def test_operands_by_name(call: str) -> None:
    agree(on_each(call))


OF_UNKNOWN_STRIDES = [
    "torch.einsum('btv,bsv->bts', $, x)",
    "torch.einsum('btv,bv->bt', [$, x[:, 0]])",
    "F.scaled_dot_product_attention($, x, x)",
    "F.scaled_dot_product_attention(query=$, key=x, value=x, enable_gqa=False)",
    "$.to('cpu')",
    "$.cpu()",
    "torch.einsum('...v,vw->...w', $, torch.randn(V, 5))",
    "F.dropout($)",
    "F.rrelu($)",
    "torch.rand(B, T, T).inverse()",
]


@pytest.mark.parametrize("call", OF_UNKNOWN_STRIDES)
def test_operations_whose_strides_are_not_known(call: str) -> None:
    agree(on_each(call), strides=False)


CREATIONS = [
    "torch.zeros(B, T)",
    "torch.ones((B, T), dtype=torch.int64)",
    "torch.empty(T, V, device='cpu')",
    "torch.full((B, T), 1.5)",
    "torch.full((B, T), 7)",
    "torch.full((B,), True)",
    "torch.randint(0, 5, (B, T))",
    "torch.randint(high=5, size=(B, T))",
    "torch.randint(size=(B, T), low=1, high=5)",
    "torch.randint(5, size=(B, T))",
    "torch.randint(5, torch.zeros(B, T).shape)",
    "torch.randperm(V)",
    "torch.randperm(n=V)",
    "torch.zeros(size=(B, T))",
    "torch.zeros([B, T])",
    "torch.zeros(B, T, dtype=None)",
    "torch.rand(B)",
    "torch.rand(())",
    "torch.full(size=(B, T), fill_value=1.5)",
    "torch.arange(end=T)",
    "torch.arange(1, end=T)",
    "torch.arange(start=1, end=T)",
    "torch.arange(1, T, step=2)",
    "torch.arange(start=1, end=T, step=1)",
    "torch.linspace(start=0, end=1, steps=T)",
    "torch.eye(n=T, m=V)",
    "torch.tensor(data=[1, 2])",
    "torch.tensor([1, 2], dtype=None)",
    "torch.asarray(obj=[1, 2])",
    "torch.Tensor(data=[1.0, 2.0])",
    "torch.Tensor()",
    "torch.normal(mean=0.0, std=1.0, size=(B, T))",
    "torch.normal(torch.rand(B, V))",
    "torch.normal(1.0, std=torch.rand(B, V))",
    "torch.meshgrid([torch.arange(T), torch.arange(V)])",
    "torch.meshgrid(torch.arange(T), torch.arange(V), torch.arange(B))",
    "torch.meshgrid(torch.rand(T, V)[:, 0], torch.rand(B), indexing='xy')",
    "torch.meshgrid(torch.arange(T), torch.arange(V), torch.arange(B), indexing='xy')",
    "torch.meshgrid(torch.arange(T), indexing='xy')",
    "torch.polar(abs=torch.rand(T), angle=torch.rand(T))",
    "torch.arange(T)",
    "torch.arange(1, T)",
    "torch.arange(0, 10, 3)",
    "torch.arange(0, 1, 0.25)",
    "torch.arange(3.0)",
    "torch.arange(T, dtype=torch.float32)",
    "torch.linspace(0, 1, T)",
    "torch.linspace(0, 1, steps=5)",
    "torch.eye(T)",
    "torch.eye(T, V)",
    "torch.tensor([[1, 2], [3, 4]])",
    "torch.tensor([1.0, 2.0])",
    "torch.tensor(3)",
    "torch.tensor([True, False])",
    "torch.tensor([[1, 2.5]])",
    "torch.tensor([1, 2], dtype=torch.float64)",
    "torch.as_tensor([1, 2])",
    "torch.meshgrid(torch.arange(T), torch.arange(V), indexing='ij')",
    "torch.Tensor(B, T)",
    "torch.LongTensor([1, 2])",
    "torch.tril(torch.ones(T, T)).view(1, 1, T, T)",
    "torch.zeros(B, T).new_ones(V)",
    "torch.zeros(B).new_full((T, V), 2)",
    "torch.normal(0.0, 1.0, (B, T))",
    "torch.multinomial(torch.rand(B, V), 3)",
    "torch.bernoulli(torch.rand(B, V))",
    "torch.normal(torch.rand(B, V), torch.rand(V))",
    "torch.isin(torch.arange(V), torch.arange(3))",
    "torch.bucketize(torch.rand(V, T).t(), torch.rand(3))",
    "torch.searchsorted(torch.rand(5), torch.rand(V, T))",
    "torch.diag(torch.rand(V))",
    "torch.diag(torch.rand(T, V), 1)",
    "torch.linalg.norm(torch.rand(B, T, V), dim=-1)",
    "torch.linalg.vector_norm(torch.rand(B, T, V), ord=1, dim=(0, 1), keepdim=True)",
    "torch.linalg.norm(torch.rand(T, V))",
    "torch.trace(torch.rand(T, T))",
    "torch.polar(torch.rand(V, T).t(), torch.rand(T, V))",
    "torch.complex(torch.rand(V, T).t(), torch.rand(V, T).t())",
    "torch.view_as_complex(torch.rand(T, V, 2))",
    "torch.view_as_real(torch.view_as_complex(torch.rand(T, V, 2)).t())",
    "torch.view_as_real(torch.view_as_complex(torch.rand(T, V, 2))).flatten(1)",
    "torch.view_as_complex(torch.rand(T, V, 2)).real",
    "torch.rand(V, T).t().real",
    "F.grid_sample(torch.rand(B, 3, T, V), torch.rand(B, 5, 4, 2), align_corners=False)",
    "F.affine_grid(torch.rand(B, 2, 3), (B, 3, T, V), align_corners=False)",
    "torch.utils.checkpoint.checkpoint(lambda x: x.t(), torch.rand(T, V), use_reentrant=False)",
    "torch.zeros(torch.Size([T, V]))",
    "torch.autograd.Variable(torch.rand(T, V))",
    "nn.init.xavier_uniform_(torch.empty(V, T).t())",
]


@pytest.mark.parametrize("call", CREATIONS)
def test_creations(call: str) -> None:
    agree(f"reveal({call})")


def test_sizes_are_numbers() -> None:
    agree(
        """
        x = torch.randn(B, T, V)
        reveal(x.size(1)), reveal(x.shape[-1]), reveal(x.numel()), reveal(x.dim()), reveal(x.ndim)
        reveal(len(x)), reveal(x.is_contiguous())
        b, *rest = x.shape
        reveal(torch.zeros(b)), reveal(torch.zeros(x.shape)), reveal(torch.zeros(*x.shape[:2], 5))
        reveal(torch.zeros(x.size()))
        """
    )


def test_a_tensor_that_is_resized_in_place_has_the_sizes_asked_for() -> None:
    agree("x = torch.randn(B, 1, T, V)\nx.resize_(B, 1, T * V)\nreveal(x)\nreveal(x[0, :])")
    agree("x = torch.randn(B, T, V)\nx.resize_((B, T * V))\nreveal(x)")
