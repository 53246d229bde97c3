"""What goes into a dataset comes out of its loader in batches."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check
from differential import agree, layouts, revealed

from shapefix.interpreter.containers import elements
from shapefix.interpreter.tensor_values import TensorValue

PLAIN = "from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, TensorDataset, random_split"

SETS = [
    "TensorDataset(torch.randn(8, T, V), torch.randint(0, 5, (8, T)))",
    "TensorDataset(torch.randn(T, 8).t())",
    "TensorDataset(torch.arange(8))",
    "[(torch.randn(T, V).t(), i, 0.5) for i in range(8)]",
    "[{'x': torch.randn(T), 'y': i, 'z': [1, 2.0]} for i in range(4)]",
    "[True, False, True, False]",
    "Subset(TensorDataset(torch.randn(8, T)), [1, 2, 3, 4])",
    "ConcatDataset([TensorDataset(torch.randn(8, T)), TensorDataset(torch.randn(4, T))])",
    "random_split(TensorDataset(torch.randn(8, T)), [4, 4])[0]",
    "Squares()",
    "Numbered()",
]

CLASSES = """
class Squares(Dataset):
    def __init__(self):
        self.x = torch.randn(8, T, V)
        self.y = torch.randint(0, 5, (8,))

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i].transpose(0, 1), self.y[i]

class Numbered(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"x": torch.zeros(3), "index": 7, "weight": 0.5}
"""


def program(dataset: str, settings: str) -> str:
    return f"""
{PLAIN}
{CLASSES}
loader = DataLoader({dataset}, {settings})
for batch in loader:
    break
reveal(batch)
reveal(next(iter(loader)))
"""


@pytest.mark.parametrize("dataset", SETS)
def test_full_batches(dataset: str) -> None:
    agree(program(dataset, "batch_size=4, drop_last=True"))


@pytest.mark.parametrize("dataset", SETS)
def test_batches_of_one(dataset: str) -> None:
    agree(program(dataset, ""))


def batch(settings: str) -> list[str]:
    return layouts(
        f"""
        {PLAIN}
        def train(args):
            for x, y in DataLoader(TensorDataset(torch.randn(10, 5), torch.zeros(10)), {settings}):
                reveal(x), reveal(y)
        """
    )


def test_the_last_batch_may_be_smaller() -> None:
    assert batch("batch_size=4") == ["(batch_size, 5) strides (5, 1)", "(batch_size) strides (1)"]
    assert batch("batch_size=4, drop_last=True") == ["(4, 5) strides (5, 1)", "(4) strides (1)"]


def test_batch_sizes_are_called_what_the_code_calls_them() -> None:
    assert batch("batch_size=args.bs")[1] == "(bs) strides (1)"


def test_samples_come_out_one_by_one_without_a_batch_size() -> None:
    assert batch("batch_size=None") == ["(5) strides (1)", "() strides ()"]


def test_a_projects_collate_function_is_followed() -> None:
    source = f"""
        {PLAIN}
        from torch.nn.utils.rnn import pad_sequence

        def collate(samples):
            xs, ys = zip(*samples)
            return pad_sequence(xs, batch_first=True), torch.stack(ys)

        class Words(Dataset):
            def __getitem__(self, i):
                return torch.zeros(i + 1, 3), torch.zeros(2)

        for x, y in DataLoader(Words(), batch_size=4, collate_fn=collate):
            reveal(x)
        """
    assert layouts(source) == ["(batch_size, longest, 3) strides (3*longest, 3, 1)"]


def test_an_unknown_collate_function_leaves_batches_unknown() -> None:
    assert batch("batch_size=4, collate_fn=args.collate") == ["?", "?"]


def test_loaders_know_their_dataset() -> None:
    source = f"""
        {PLAIN}
        loader = DataLoader(TensorDataset(torch.randn(10, 5)), batch_size=2)
        reveal(loader.dataset.tensors[0])
        reveal(loader.dataset[3][0])
        reveal(torch.zeros(loader.batch_size))
        """
    assert layouts(source) == ["(10, 5) strides (5, 1)", "(5) strides (1)", "(2) strides (1)"]


def test_iterable_datasets_are_iterated() -> None:
    agree(
        """
        from torch.utils.data import DataLoader, IterableDataset

        class Stream(IterableDataset):
            def __iter__(self):
                for i in range(4):
                    yield torch.zeros(T, 3)

        reveal(next(iter(DataLoader(Stream(), batch_size=2, drop_last=True))))
        """
    )


def test_collating_by_hand() -> None:
    agree(
        """
        from torch.utils.data import default_collate
        reveal(default_collate([(torch.randn(T), 1), (torch.randn(T), 2)]))
        reveal(default_collate([torch.randn(V, T).t(), torch.randn(T, V)]))
        """
    )


def test_a_training_loop_in_whole() -> None:
    source = f"""
        {PLAIN}
        from tqdm import tqdm

        model = nn.Sequential(nn.Flatten(), nn.Linear(32, 10))
        data = TensorDataset(torch.randn(100, 4, 8), torch.randint(0, 10, (100,)))
        for epoch in range(3):
            for step, (x, y) in enumerate(tqdm(DataLoader(data, batch_size=16, shuffle=True))):
                logits = model(x.to("cuda"))
                loss = F.cross_entropy(logits, y)
                reveal(logits)
                reveal(loss)
        """
    assert layouts(source)[:2] == ["(batch_size, 10) strides (10, 1)", "() strides ()"]


def test_values_of_a_batch_keep_their_dtype() -> None:
    source = f"{PLAIN}\nreveal(next(iter(DataLoader([(1, 1.5, True)], batch_size=8))))"
    items = elements(revealed(source)[0])
    assert items is not None
    assert [item.dtype for item in items if isinstance(item, TensorValue)] == ["int64", "float64", "bool"]


def test_a_class_that_derives_from_a_dataset_of_datasets_is_not_followed_for_ever() -> None:
    source = f"""
        {PLAIN}
        from torch.utils.data import ConcatDataset

        class Groups(ConcatDataset):
            def __init__(self, parts):
                super().__init__(parts)

        for x in DataLoader(Groups([torch.zeros(3, 4)]), batch_size=2):
            reveal(x)
        """
    assert layouts(source) == ["?"]


@pytest.mark.parametrize(
    "number",
    [
        "len(data)",
        "len(first)",
        "len(second)",
        "len(Subset(data, range(7)))",
        "len(data + data)",
        "len(ConcatDataset([data, second]))",
        "len(DataLoader(data, 8))",
        "len(DataLoader(data, batch_size=8, drop_last=True))",
        "len(DataLoader(second, batch_size=10))",
        "len(DataLoader(Subset(data, [1, 2, 3])))",
    ],
)
def test_numbers_of_samples_and_batches(number: str) -> None:
    agree(
        f"""
        from torch.utils.data import ConcatDataset, DataLoader, Subset, TensorDataset, random_split
        data = TensorDataset(torch.randn(50, 2), torch.randn(50))
        first, second = random_split(data, [int(0.8 * len(data)), 10])
        reveal(torch.zeros({number}))
        """
    )


@pytest.mark.parametrize(
    "column", ['table["name"].to_numpy()', 'table["name"].values', 'np.array(table["name"])']
)
def test_items_of_a_column_of_unknown_type_may_be_texts(column: str, check: Check) -> None:
    script = f"""
        import numpy as np
        import pandas as pd
        import torch
        from torch.utils.data import DataLoader, Dataset

        class Images(Dataset):
            def __init__(self, names):
                self.names = names
            def __len__(self):
                return len(self.names)
            def __getitem__(self, i):
                return torch.zeros(3, 8, 8), self.names[i]

        table = pd.read_csv("names.csv")
        for images, names in DataLoader(Images({column}), batch_size=3):
            print(names[0][:-4])
        """
    assert not check(textwrap.dedent(script))
