"""Arrays of numpy become tensors: sizes, strides and dtypes as numpy and torch say."""

from __future__ import annotations

import inspect
import operator

import numpy as np
import pytest
import torch
from checking import Check
from differential import agree, compare, executed, revealed

from shapefix.library.numpy_signatures import SIGNATURES
from shapefix.library.signatures import parameters

MADE = """
np.random.rand(B, V)
np.random.randn(B, T, V)
np.random.random((B, V))
np.random.uniform(0, 1, size=(B, V))
np.random.normal(size=(B, V))
np.random.randint(0, 10, (B, T))
np.random.randint(0, 10, size=(B, T), dtype="int32")
np.random.default_rng(0).random((B, V))
np.random.default_rng(0).random((B, V), dtype=np.float32)
np.random.default_rng(0).standard_normal(size=(B, V), dtype="float32")
np.random.default_rng(0).normal(size=(B, V))
np.random.default_rng(0).normal(0.5, 2, (B, V))
np.random.default_rng(0).uniform(-1, 1, size=B)
np.random.default_rng(0).integers(0, 3, size=B)
np.random.default_rng(0).integers(5, size=(B, V), dtype=np.int32)
np.random.default_rng().integers(low=0, high=5, size=(B, V), endpoint=True)
np.random.default_rng(0).random((B, V), dtype=np.float32).sum(axis=1)
np.zeros((B, T, V)).sum(axis=1)
np.zeros((B, T, V)).sum(-1)
np.zeros((B, T, V)).sum(axis=0, keepdims=True)
np.zeros((B, T, V)).mean(axis=2, keepdims=True)
np.ones((B, V), dtype=np.int32).sum(axis=1)
np.ones((B, V), dtype=bool).sum(axis=0)
np.ones((B, V), dtype=np.int32).mean(axis=1)
np.ones((B, V), dtype=np.float32).mean(axis=1)
np.zeros((B, V))
np.zeros(V)
np.ones((B, V), dtype=np.float32)
np.empty((B, V), np.int64)
np.full((B, V), 0.5)
np.full((B, V), 3)
np.full((B, V), True)
np.arange(V)
np.arange(V, dtype=np.float32)
np.linspace(0, 1, V)
np.linspace(0, 1)
np.array([[1.0, 2.0], [3.0, 4.0]])
np.array([1, 2, 3])
np.array([True, False])
np.array([1.5, 2.5], dtype=np.float32)
np.array(np.zeros((B, V)))
np.asarray(np.ones((B, T), dtype=bool))
np.zeros((B, V)).astype(np.float32)
np.zeros((B, V)).astype("int64")
np.zeros((B, V)).astype(float)
np.zeros((B, V)).astype(int)
np.zeros((B, V)).copy()
np.zeros((B, V)).reshape(V, B)
np.zeros((B, V)).reshape((B, -1, 2))
np.zeros((B, V))[0]
np.zeros((B, V))[:, 1:]
np.zeros((B, V))[:, 1:].copy()
np.zeros((B, V))[:, 1:].astype(np.float32)
np.zeros((B, T, V))[:, 0]
np.zeros(shape=(B, V), dtype=None)
np.random.randint(5, size=B)
np.random.randint(low=0, high=5, size=(B, V), dtype=np.int32)
np.full(fill_value=2, shape=(B, V))
np.arange(stop=V)
np.arange(start=1, stop=4)
np.linspace(start=0, stop=1, num=V)
np.array(object=[1.0, 2.0])
np.asarray(a=[1, 2], dtype=np.float32)
np.zeros((B, V)).astype(dtype=np.float32)
np.zeros((B, V)).reshape(-1)
np.zeros((B, V)) * 2
2 * np.zeros((B, V))
np.arange(V) + 1
np.arange(V) / 2
np.arange(V) * 0.5
1 / np.arange(1, 5)
np.ones((B, V), dtype=np.float32) * 2
np.ones((B, V), dtype=np.float32) / 3.5
np.ones((B, V), dtype=np.uint8) / 255.0
np.ones((B, V), dtype=np.uint8) + 1
np.ones((B, V), dtype=np.float32) * np.ones(V)
np.ones((B, V), dtype=np.float32) * np.ones(V, dtype=np.int64)
np.ones((B, V), dtype=np.int32) * np.ones(V, dtype=np.float32)
np.ones((B, V), dtype=np.uint8) * np.ones(V, dtype=np.float32)
np.ones((B, V), dtype=np.uint8) * np.ones(V, dtype=np.int32)
np.ones((B, V), dtype=bool) * np.ones(V, dtype=np.float32)
np.zeros((B, V)) > 0.5
(np.zeros((B, V)) > 0.5).astype(np.float32)
(np.zeros((B, T, V)).sum(axis=1) > 0).astype(int)
np.arange(V) == 2
(np.arange(V) == 2) & (np.arange(V) > 1)
np.arange(V) % 3
np.arange(V) // 2
np.arange(V) ** 2
-np.ones((B, V))
0.5 < np.zeros((B, V))
np.exp(np.zeros((B, V)))
np.sin(np.arange(V))
np.log1p(np.ones((B, V), dtype=np.float32))
np.abs(np.arange(V))
np.clip(np.zeros((B, V)), 0, 1)
np.zeros((B, V)).clip(0.0, 1.0)
np.add(np.zeros((B, V)), 1)
np.divide(np.arange(V), 2)
np.maximum(np.zeros((B, V)), 0)
np.zeros((B, V)).T
np.zeros((B, T, V)).transpose(2, 0, 1)
np.zeros((B, T, V)).transpose((2, 0, 1))
np.transpose(np.zeros((B, V)))
np.transpose(np.zeros((B, T, V)), (1, 0, 2))
np.zeros((B, V)).flatten()
np.zeros((B, T, V)).ravel()
np.concatenate([np.zeros((B, V)), np.zeros((B, V))])
np.concatenate([np.zeros((B, V)), np.zeros((B, 1))], axis=1)
np.concatenate([np.zeros((B, V)), np.random.randint(0, 3, size=(B, 1))], axis=1).astype(np.float32)
np.concatenate((np.zeros(V), np.ones(3)), 0)
np.stack([np.zeros((B, V)), np.ones((B, V))])
np.stack([np.zeros((B, V)), np.ones((B, V))], axis=-1)
np.vstack([np.zeros((B, V)), np.ones((B, V))])
np.hstack([np.zeros((B, V)), np.ones((B, T))])
np.column_stack([np.zeros(V), np.arange(V)])
np.zeros((B, T)) @ np.zeros((T, V))
np.zeros((B, T)) @ np.array([0.5] * T)
np.dot(np.zeros((B, T)), np.zeros((T, V)))
np.zeros_like(np.zeros((B, V), dtype=np.float32))
np.eye(V)
np.zeros((B, V))[:, None]
np.zeros((B, V))[..., 0]
np.zeros((B, V))[:, -1]
np.zeros((B, V))[:, :-1]
np.zeros((B, V))[:, 2:3]
np.zeros(V)[:, np.newaxis]
np.random.choice(3, size=(B, V))
np.random.default_rng(0).choice(3, size=B, p=[0.5, 0.2, 0.3])
np.random.choice(np.arange(3.0), size=B)
np.random.permutation(V)
np.zeros((B, T, V)).argmax(axis=1)
np.argmax(np.zeros((B, V)), axis=-1)
np.random.RandomState(0).randn(B, V)
np.random.RandomState(0).uniform(-1, 1, size=(B, V))
np.random.RandomState(0).randint(0, 5, size=B)
np.random.RandomState(0).permutation(V)
np.random.exponential(size=(B, V))
np.random.poisson(3, size=B)
np.random.rand(B, V).std(axis=0)
np.ones((B, V), dtype=np.float32).var(axis=1)
np.ones((B, V), dtype=np.int32).std(axis=1)
np.ones((B, V), dtype=np.int16).max(axis=1)
np.ones((B, V), dtype=bool) * 255
np.where(np.random.rand(B, V) > 0.5, 255, 0)
np.where(np.random.rand(B, V) > 0.5, 1.0, 0)
np.where(np.random.rand(B, V) > 0.5, True, False)
(np.ones((B, V), dtype=np.uint8) - np.ones((B, V), dtype=np.uint8).mean()) / 2
np.array([np.zeros(V), np.ones(V)])
np.array([np.zeros(V, dtype=np.float32) for _ in range(20)])
np.stack([np.zeros(V) for _ in range(20)])
np.array(np.zeros((B, V)), dtype=np.float32)
np.asarray(np.arange(V), dtype="float32")
np.sum(np.zeros((B, T, V)), axis=1)
np.sum(np.ones((B, V), dtype=np.int32), axis=0)
np.mean(np.ones((B, V), dtype=np.int32), axis=(0, 1), keepdims=True)
np.mean(np.zeros((B, T, V), dtype=np.float32), axis=(0, -1))
np.std(np.zeros((B, T, V)), axis=(1, 2), keepdims=True)
np.var(np.zeros((B, V)), 1)
np.max(np.ones((B, V), dtype=np.float32), axis=1)
np.amin(np.ones((B, V), dtype=np.int64), axis=0)
np.zeros((B, T, V)).mean(axis=(1, 2))
np.ones((B, V)).sum(axis=0)[None]
np.expand_dims(np.zeros((B, V)), 0)
np.expand_dims(np.zeros((B, V), dtype=np.float32), axis=-1)
np.squeeze(np.zeros((B, 1, V)), axis=1)
np.zeros((B, 1, V)).squeeze(1)
np.moveaxis(np.zeros((B, T, V)), -1, 0)
np.moveaxis(np.zeros((B, T, V)), (0, 1), (1, 2))
np.swapaxes(np.zeros((B, T, V)), 1, 2)
np.zeros((B, T, V)).swapaxes(0, 1)
np.repeat(np.zeros((B, V)), 3, axis=1)
np.zeros((B, 1, V)).repeat(3, axis=1)
np.tile(np.zeros((B, V)), (2, 1))
np.tile(np.zeros(V), 3)
np.ascontiguousarray(np.zeros((B, T, V)).transpose(2, 0, 1))
np.float32(np.zeros((B, V)))
np.argsort(np.zeros((B, V)))
np.zeros((B, V)).argsort(axis=0)
np.sort(np.zeros((B, V), dtype=np.float32))
np.cumsum(np.zeros((B, V)), axis=0)
np.cumsum(np.ones((B, V), dtype=np.int32))
np.ones((B, V), dtype=bool).cumsum(axis=1)
np.diff(np.zeros((B, V)))
np.diff(np.zeros((B, T, V)), axis=0)
np.pad(np.zeros((B, V)), 1)
np.pad(np.zeros((B, V)), ((0, 1), (2, 3)))
np.pad(np.zeros(V, dtype=np.float32), (0, 5), mode="constant")
np.append(np.zeros(B), np.ones(V))
np.append(np.zeros((B, V)), np.zeros((T, V)), axis=0)
np.delete(np.zeros((B, V)), 1, axis=1)
np.rollaxis(np.zeros((B, T, V)), 2)
np.rollaxis(np.zeros((B, T, V)), 1, 3)
np.array_split(np.zeros((7, V)), 3)[0]
np.split(np.zeros((6, V)), 3)[1]
np.split(np.zeros((6, V)), [2, 4])[2]
np.lib.stride_tricks.sliding_window_view(np.arange(12.0), 3).copy()
np.outer(np.zeros(B), np.zeros(V))
np.linalg.norm(np.zeros((B, V)), axis=1)
np.linalg.norm(np.ones((B, V), dtype=np.float32), axis=0, keepdims=True)
np.median(np.zeros((B, V)), axis=1)
np.median(np.ones((B, V), dtype=np.int64), axis=0)
np.dstack([np.zeros((B, V)), np.zeros((B, V))])
np.where(np.zeros((B, V)) > 0, np.zeros((B, V)), 0.5)
np.where(np.zeros((B, V)) > 0, np.ones((B, V), dtype=np.float32), np.zeros(V, dtype=np.float32))
np.zeros((B, V))[np.random.permutation(B)]
np.zeros((B, T, V))[np.random.choice(B, 3)]
np.zeros((B, V))[np.argsort(np.zeros(B))]
np.eye(V)[np.random.randint(0, V, size=B)]
np.random.choice([0.1, 0.2], size=B)
np.random.binomial(1, 0.5, size=B)
np.random.RandomState(0).gamma(1.0, size=(B, V))
np.random.lognormal(size=V)
torch.zeros(B, T, V).numpy()
torch.zeros(B, T, V).permute(0, 2, 1).numpy()
torch.randint(0, 5, (B, V)).cpu().numpy()
torch.rand(B, V, requires_grad=True).detach().cpu().numpy()
torch.rand(B, V).numpy().mean(axis=1)
torch.rand(B, V).numpy() * 2
torch.rand(B, V).numpy()[:, 1:3]
torch.rand(B, V).numpy().astype(np.int64)
np.concatenate([torch.rand(B, V).numpy(), np.zeros((B, V), dtype=np.float32)])
np.argmax(torch.rand(B, V).numpy(), axis=1)
""".strip().splitlines()

UNKNOWN = """
np.bincount(np.array([0, 1, 1]))
6 / (3 * np.bincount(np.array([0, 1, 1]), minlength=3))
np.unique(np.array([0, 1, 1]))
np.ones((B, V), dtype=np.float32) * np.float64(2)
np.ones((B, V), dtype=np.float32) * np.ones((B, V)).mean()
np.ones((B, V), dtype=bool) + np.ones((B, V), dtype=bool)
np.ones((B, V), dtype=np.int8) / 2
np.sin(np.ones((B, V), dtype=np.uint8))
np.zeros((B, V))[np.array([0, 1]), :]
np.zeros((B, V))[np.array([0, 1])]
np.zeros((B, V))[:, np.array([0, 1])]
np.sort(np.zeros((B, V)), axis=None)
np.cumsum(np.ones((B, V), dtype=np.uint8)).astype(np.int64)
np.diff(np.zeros(V), n=2)
np.diff(np.zeros(V), prepend=0.0)
np.pad(np.zeros((B, V)), [(1, 1)])
np.append(np.zeros(B), 1.0)
np.delete(np.zeros((B, V)), [0, 1], axis=1)
np.delete(np.zeros((B, V)), 0)
np.array_split(np.zeros((B, V)), 3, axis=1)[1]
np.lib.stride_tricks.sliding_window_view(np.zeros((B, V)), 3, axis=1).copy()
np.linalg.norm(np.zeros((B, V)))
np.linalg.norm(np.zeros((B, V)), "fro")
np.median(np.zeros((B, V)))
np.where(np.zeros((B, V)) > 0, np.ones((B, V), dtype=np.float32), 1)
np.random.binomial([1, 2], 0.5, size=2)
np.arange(0.0, 1.0, 0.5)
np.zeros((B, V), dtype=np.complex64)
np.zeros((B, V), order="F")
np.array([[1, 2], [3, 4]], order="F")
np.zeros((B, V)).copy(order="F")
np.zeros((B, V)).astype(np.float32, order="F")
np.array([1, 2], ndmin=2)
np.random.uniform(0, 1, size=None)
np.random.rand()
np.zeros((B, T, V))[:, ::-1].copy()
np.zeros((B, T, V))[::-1, :, ::-1].copy()
np.zeros((B, T, V))[..., ::-1] * 2
np.zeros((B, T, V))[:, ::-2].copy()
np.zeros((B, T, V))[:, 3::-1].copy()
np.bincount(np.array([0, 1, 1]), minlength=5)
np.mean([0.5, 1.5])
np.sum([1, 2])
np.max([1, 2])
np.mean(np.zeros((B, V)))
np.squeeze(np.zeros((1, V)))
np.flip(np.zeros((B, V)), 1).copy()
np.repeat(np.zeros((B, V)), 3)
np.repeat(np.zeros((B, V)), [1, 2], axis=0)
np.expand_dims(np.zeros((B, V)), (0, 1))
np.sum(np.zeros((B, V)), axis=0, dtype=np.float32)
np.mean(np.zeros((B, V)), where=np.ones((B, V), dtype=bool))
np.max([1, 2], initial=0)
np.float32(0.5)
np.sum(np.ones((B, V), dtype=np.uint8), axis=0).astype(np.int64)
""".strip().splitlines()


@pytest.mark.parametrize("made", MADE)
def test_what_is_known_is_what_numpy_makes(made: str) -> None:
    agree(
        f"""
        import numpy as np
        array = {made}
        reveal(torch.from_numpy(array))
        reveal(torch.tensor(array))
        reveal(torch.as_tensor(array))
        reveal(torch.tensor(array, dtype=torch.float32))
        reveal(torch.from_numpy(array).float())
        reveal(torch.Tensor(array))
        """,
        strides="astype" not in made or "1:" not in made,
        symbolic="reshape" not in made,
    )


@pytest.mark.parametrize("made", UNKNOWN)
def test_what_is_known_of_the_rest_is_right(made: str) -> None:
    source = f"import numpy as np\nB, T, V = 2, 6, 8\nreveal(torch.as_tensor({made}))"
    compare(revealed(source)[0], executed(source)[0])


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_signature_is_that_of_numpy(name: str) -> None:
    function = operator.attrgetter(name.partition(".")[2])(np)
    try:
        named = inspect.signature(function).parameters
    except ValueError:
        pytest.skip("only later versions of numpy have a signature to compare with")
    # `arange(stop)` and `arange(start, stop)` share their first parameter.
    known = {"start", *named} if "start_or_stop" in named else set(named)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in named.values()):
        # The function of the same name lists what the method passes on.
        known |= set(inspect.signature(getattr(np, function.__name__)).parameters)
    for signature in SIGNATURES[name].split(" | "):
        assert {parameter for parameter, _ in parameters(signature)} <= known


@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        ("np.zeros((4, 6, 3)).astype('float32')", "(3, 4, 6)"),
        ("np.zeros((4, 6, 3)).astype('float32')", "(6, 4, 3)"),
        ("np.ones((2, 3, 4)).astype('float32')", "(2, 4, 3)"),
    ],
)
def test_the_permutation_of_an_array_has_the_sizes_asked_for(made: str, wanted: str, check: Check) -> None:
    code = f"import numpy as np\nimport torch\n\nimage = {made}\nmoved = image.reshape{wanted}\n"
    (found,) = check(code, {"SF103"})
    (edit,) = found.fixes[0].edits
    moved = eval(
        edit.content if edit.content.startswith("image.") else f"image.{edit.content}",
        {"image": eval(made, {"np": np})},
    )
    assert str(moved.shape) == wanted


def test_random_numbers_are_read_in_any_order(check: Check) -> None:
    code = "import numpy as np\nimport torch\n\nnoise = np.random.normal(0, 1, (4, 6, 3)).reshape(3, 4, 6)\n"
    assert not check(code, {"SF103"})


@pytest.mark.parametrize(
    "made",
    [
        "np.linspace(np.zeros((3, 2)), np.ones((3, 2)), 4)",
        "np.linspace(*np.mgrid[-1:3:3j, -1:4:2j], 4)",
        "np.linspace(0, np.ones(2), num=4)",
        "np.random.normal(np.zeros((3, 2)), 1)[None]",
        "np.random.uniform(low=np.zeros((3, 2)), high=1)[None]",
        "np.random.randint(np.zeros((3, 2)), 5)[None]",
    ],
)
def test_functions_of_arrays_keep_their_dimensions(made: str, check: Check) -> None:
    code = f"import numpy as np\nimport torch\n\nx = torch.tensor({made})\nprint(x.shape[0], x[0, 0].shape)\n"
    exec(code, {})
    assert not check(code)


def test_an_array_of_objects_has_items_of_any_kind(check: Check) -> None:
    made = ("np.empty([4], dtype=object)", "np.zeros(4).astype(object)", "np.array([1, 2, 3, 4], dtype='O')")
    for expression in made:
        code = f"import numpy as np\nimport torch\naxes = {expression}\naxes[3] = [5, 6]\nprint(axes[3][1])\n"
        exec(compile(code, "script.py", "exec"), {})
        assert check(code) == []


def test_a_changed_default_dtype_is_that_of_a_legacy_tensor(check: Check) -> None:
    code = """
import numpy as np
import torch
torch.set_default_dtype(torch.float32)
rotation = torch.Tensor(np.array([[1, 0], [0, 1]]))
rotation @ torch.eye(2).float()
torch.tensor(np.array([[1, 0], [0, 1]])) @ torch.eye(2).float()
"""
    assert [found.span.row for found in check(code, {"SF512"})] == [7]
    assert torch.Tensor(np.array([[1, 0], [0, 1]])).dtype == torch.float32


@pytest.mark.parametrize(
    ("hits", "found"),
    [
        ("(ranked[:, :1] == labels[:, None]).any(axis=1)", []),
        ("(torch.as_tensor(ranked)[:, :1] == labels[:, None]).any(axis=1)", ["SF512"]),
    ],
)
def test_what_may_be_an_array_has_its_methods(hits: str, found: list[str], check: Check) -> None:
    code = f"import torch\nfrom data import labels, ranked\n\nprint({hits}.mean())\n"
    assert [each.code for each in check(code, {"SF512"})] == found


def test_a_slice_of_a_dataset_keeps_the_samples(check: Check) -> None:
    code = """
import torch
from torch.utils.data import TensorDataset

a, b = TensorDataset(torch.randn(20, 7, 1), torch.rand(20))[:5]
print(a[:, -1, :].shape)
"""
    exec(code, {})
    assert not check(code)


def test_code_that_gets_an_array_changes_no_other_object(check: Check) -> None:
    code = """
import torch
from sklearn.metrics import f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,))), batch_size=8)
for x, y in loader:
    scores = model(x)
    loss = nn.functional.cross_entropy(scores, y)
    loss.backward()
    optimizer.step()
    print(f1_score(y.numpy(), scores.argmax(1).numpy()))
"""
    assert [each.code for each in check(code, {"SF803"})] == ["SF803"]
