"""Training with accelerate: models and loaders stay what they are."""

from __future__ import annotations

import inspect

import pytest
from differential import agree

from shapefix.library.accelerate import PARAMETERS

pytestmark = pytest.mark.slow


def test_a_prepared_model_returns_what_it_did() -> None:
    agree(
        """
        from accelerate import Accelerator
        from torch.utils.data import DataLoader, TensorDataset

        accelerator = Accelerator(cpu=True)
        model = nn.LSTM(V, 5, batch_first=True)
        data = TensorDataset(torch.randn(8, T, V), torch.zeros(8, T).long())
        loader = DataLoader(data, batch_size=4, drop_last=True)
        model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters()), loader)
        for x, y in loader:
            break
        out, (h, c) = model(x)
        reveal(x), reveal(out), reveal(h), reveal(y[:, 1:])
        reveal(accelerator.unwrap_model(model)(x)[0])
        reveal(accelerator.unwrap_model(model=model)(x)[0])
        model = accelerator.prepare(nn.Linear(V, 3))
        reveal(model(x))
        """
    )


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_first_parameter_of_a_method_is_that_of_accelerate(name: str) -> None:
    from accelerate import Accelerator

    assert list(inspect.signature(getattr(Accelerator, name)).parameters)[1] == PARAMETERS[name]
