"""Arrays of numpy become tensors: sizes, strides and dtypes as numpy and torch say."""

from __future__ import annotations

import pytest
from differential import agree, compare, executed, revealed

MADE = """
np.random.rand(B, V)
np.random.randn(B, T, V)
np.random.random((B, V))
np.random.uniform(0, 1, size=(B, V))
np.random.normal(size=(B, V))
np.random.randint(0, 10, (B, T))
np.random.randint(0, 10, size=(B, T), dtype="int32")
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
""".strip().splitlines()

UNKNOWN = """
np.zeros((B, V)).T
np.zeros((B, V)).transpose(1, 0)
np.zeros((B, V)) * 2
np.zeros((B, V)).sum(axis=1)
np.concatenate([np.zeros((B, V)), np.zeros((B, V))])
np.zeros((B, V))[np.array([0, 1])]
np.arange(0.0, 1.0, 0.5)
np.zeros((B, V), dtype=np.complex64)
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
