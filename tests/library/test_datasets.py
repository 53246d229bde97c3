"""What `datasets` makes of columns and rows: what is claimed of a row must be true of all real ones."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import datasets
import pytest
from checking import Check
from differential import interpret
from hypothesis import given, settings
from hypothesis import strategies as st

from shapefix.domains.batches import Mapped
from shapefix.domains.row_counts import may_exceed
from shapefix.interpreter.containers import DictValue, ListValue, elements
from shapefix.interpreter.events import Revealed
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import (
    Constant,
    Integer,
    LibraryObject,
    Number,
    Text,
    Unknown,
    Value,
    as_size,
)
from shapefix.library.data.datasets.objects import NAMES, number_of, sample_of
from shapefix.library.data.datasets.reading import REMOVED_IN_PLACE
from shapefix.tensors.polynomials import Size, every_symbol
from shapefix.tensors.symbols import PerItemSize

IMPORTS = """
import torch
from datasets import Dataset, DatasetDict, concatenate_datasets, interleave_datasets
"""
TABLE = """
ds = Dataset.from_dict({
    "text": ["a b c", "d", "e f", "g h i j"],
    "label": [0, 1, 1, 0],
    "ids": [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]],
    "mask": [[1, 1, 1], [1], [1, 1], [1, 1, 1, 1]],
    "pair": [[0, 1], [2, 3], [4, 5], [6, 7]],
})
"""


@pytest.fixture(autouse=True, scope="module")
def _quiet_without_cache() -> Iterator[None]:
    import datasets

    datasets.disable_progress_bars()
    datasets.disable_caching()
    yield
    datasets.enable_caching()


def executed(source: str) -> list[Any]:
    """What `reveal` is handed when the library itself runs source."""
    import datasets

    seen: list[Any] = []

    def reveal(value: Any) -> None:
        # As it is now: a later set_format changes it.
        if isinstance(value, datasets.Dataset):
            value = [value[i] for i in range(len(value))]
        elif isinstance(value, datasets.IterableDataset):
            value = list(value)
        seen.append(value)

    exec(compile(source, "script.py", "exec"), {"reveal": reveal, "__name__": "__main__"})
    return seen


def revealed(source: str) -> list[Value]:
    return [event.value for event in interpret(source) if isinstance(event, Revealed)]


def agree(program: str, *, known: bool = True) -> None:
    """Check that every `reveal(dataset)` tells the truth; with known, that it knows all columns."""
    source = IMPORTS + TABLE + textwrap.dedent(program)
    ours, real = revealed(source), executed(source)
    assert len(ours) == len(real) > 0
    for value, rows in zip(ours, real, strict=True):
        assert isinstance(value, LibraryObject), type(value).__name__
        sample = sample_of(value)
        assert sample.closed or not known
        check_rows(sample, rows, known)
        names = [name.value for name in elements(value.fields[NAMES]) or () if isinstance(name, Constant)]
        assert not known or value.fields["format"].kind != "python" or set(names) >= set(rows[0])


def check_rows(sample: DictValue, rows: Sequence[dict[str, Any]], known: bool = False) -> None:
    """Check what is claimed of any one row against all of them."""
    for row in rows:
        assert set(sample.fields) <= set(row)
        assert not sample.closed or set(sample.fields) == set(row)
    by_length: dict[Size, list[int]] = {}
    for name, value in sample.fields.items():
        cells = [row[name] for row in rows]
        assert not (known and isinstance(value, Unknown)), f"nothing is known of {name}"
        check(value, cells)
        if isinstance(value, ListValue) and value.length is not None:
            lengths = [len(cell) for cell in cells]
            assert by_length.setdefault(value.length, lengths) == lengths, "lengths that are said to agree"


def check(value: Value | None, cells: Sequence[Any]) -> None:
    """Check what is claimed of any one cell against all of them."""
    import torch

    if isinstance(value, Text):
        assert all(isinstance(cell, str) for cell in cells)
    elif isinstance(value, Constant):
        assert all(cell == value.value for cell in cells)
    elif isinstance(value, Integer):
        assert all(type(cell) is int for cell in cells)
    elif isinstance(value, Number):
        assert all(isinstance(cell, (int, float)) for cell in cells)
    elif isinstance(value, ListValue):
        assert all(isinstance(cell, list) for cell in cells)
        check_length(value.length, [len(cell) for cell in cells])
        items = elements(value)
        if items is not None:
            for position, item in enumerate(items):
                check(item, [cell[position] for cell in cells])
        else:
            check(value.element, [item for cell in cells for item in cell])
    elif isinstance(value, TensorValue):
        assert all(isinstance(cell, torch.Tensor) for cell in cells)
        assert value.dtype is None or all(str(cell.dtype) == f"torch.{value.dtype}" for cell in cells)
        if value.layout is not None:
            assert all(cell.dim() == value.layout.rank for cell in cells)
            for dim, size in enumerate(value.layout.sizes):
                check_length(size, [cell.shape[dim] for cell in cells])
    elif isinstance(value, DictValue):
        check_rows(value, cells)


def check_length(length: Size | None, real: Sequence[int]) -> None:
    if length is None:
        return
    if length.value is not None:
        assert set(real) == {length.value}
    elif any(isinstance(symbol, PerItemSize) for symbol in every_symbol(length)):
        assert len(set(real)) > 1, f"{length} does not differ from row to row: {real}"
    else:
        assert len(set(real)) == 1, f"{length} differs from row to row: {real}"


MAPS = {
    "adds a column": "ds.map(lambda e: {'n': e['label'] + 1})",
    "replaces one": "ds.map(lambda e: {'label': 'x'})",
    "keeps a removed name that is returned": "ds.map(lambda e: {'ids': [1, 2]}, remove_columns=['ids'])",
    "removes one": "ds.map(lambda e: {'n': 1}, remove_columns='text')",
    "removes all": "ds.map(lambda e: {'n': e['ids'] + [0]}, remove_columns=ds.column_names)",
    "lists grow alike": "ds.map(lambda e: {'ids': e['ids'] + [0], 'mask': e['mask'] + [1]})",
    "lists are cut": "ds.map(lambda e: {'ids': e['ids'][:-1]})",
    "tuples become lists": "ds.map(lambda e: {'t': (1, 2), 'd': {'a': e['ids'], 'b': 'x'}})",
    "a tensor of one row": "ds.map(lambda e: {'x': torch.zeros(1, 3), 'y': torch.ones(2, dtype=torch.long)})",
    "nothing is returned": "ds.map(lambda e: None, remove_columns=['text'])",
    "no function": "ds.map(remove_columns=['text', 'label'])",
    "spread": "ds.map(lambda e: {**e, 'n': 1}, remove_columns=['text'])",
    "input columns": "ds.map(lambda text, label: {'n': label, 't': text}, input_columns=['text', 'label'])",
    "one input column": "ds.map(lambda text: {'t': text}, input_columns='text', remove_columns='text')",
    "indices": "ds.map(lambda e, i: {'n': i}, with_indices=True)",
    "more arguments": "ds.map(lambda e, k: {'n': e['ids'] * k}, fn_kwargs={'k': 2})",
    "batched": "ds.map(lambda b: {'n': [i + [0] for i in b['ids']]}, batched=True)",
    "batched indices": "ds.map(lambda b, i: {'n': i}, with_indices=True, batched=True)",
    "batched tensor": "ds.map(lambda b: {'x': torch.zeros(len(b['text']), 3)}, batched=True)",
    "batched, cut": "ds.map(lambda b: {'ids': [i[:2] for i in b['ids']]}, batched=True)",
    "batched, all alike": "ds.map(lambda b: {'n': [[1, 2]] * len(b['text'])}, batched=True)",
    "batched, as it was": "ds.map(lambda b: {'n': b['ids']}, batched=True)",
}


@pytest.mark.parametrize("call", MAPS.values(), ids=MAPS)
def test_map(call: str) -> None:
    agree(f"reveal({call})")


IN_PLACE = {
    "returned": ("e['x'] = [1] + e['ids']\n    return e", ""),
    "returned, one removed": ("e['x'] = 1\n    return e", "remove_columns=['text']"),
    "a removed one written": ("e['text'] = 'new'\n    return e", "remove_columns=['text']"),
    "another returned": ("e['x'] = 1\n    return {'y': 2}", ""),
    "nothing returned": ("e['x'] = 1", "remove_columns=['text']"),
    "taken out": ("e.pop('label')\n    return {'y': 2}", ""),
    "deleted": ("del e['label']\n    return e", ""),
    "a row written to": ("e['ids'].append(0)\n    return e", ""),
    "all removed": ("e['x'] = e['ids']\n    return e", "remove_columns=ds.column_names"),
}


@pytest.mark.parametrize(("body", "arguments"), IN_PLACE.values(), ids=IN_PLACE)
def test_functions_that_write_into_what_they_are_handed(body: str, arguments: str) -> None:
    agree(f"def change(e):\n    {body}\n\nreveal(ds.map(change, {arguments}))", known=False)
    agree(
        f"def change(e):\n    {body}\n\nreveal(ds.with_format('torch').map(lambda e: {{'q': 1}}))",
        known=False,
    )


COLUMNS = {
    "removed": "ds.remove_columns(['text', 'label'])",
    "one removed": "ds.remove_columns('text')",
    "selected": "ds.select_columns(['ids', 'label'])",
    "renamed": "ds.rename_column('label', 'labels')",
    "several renamed": "ds.rename_columns({'label': 'labels', 'ids': 'input_ids'})",
    "added": "ds.add_column('more', [[1], [2, 3], [4], [5]])",
    "encoded": "ds.class_encode_column('label')",
    "shuffled": "ds.shuffle(seed=1).sort('label')",
    "some rows": "ds.select(range(3))",
    "a shard": "ds.shard(2, 0)",
    "split": "ds.train_test_split(test_size=0.5, seed=3)['train'].select_columns('pair')",
    "flat": "ds.map(lambda e: {'d': {'a': e['ids'], 'b': {'c': 1}}}).flatten()",
    "as a stream": "ds.to_iterable_dataset().map(lambda e: {'n': e['ids']}, remove_columns=['text'])",
    "a batched stream": "ds.to_iterable_dataset().map(lambda b: {'n': b['ids']}, batched=True)",
    "part of a stream": "ds.to_iterable_dataset().skip(1).take(3)",
    "tensors": "ds.with_format('torch')",
    "some tensors": "ds.with_format('torch', columns=['ids', 'label'])",
    "tensors and the rest": "ds.with_format('torch', columns=['pair'], output_all_columns=True)",
    "tensors, and mapped": "ds.with_format('torch', columns=['pair']).map(lambda e: {'n': [1, 2, 3]})",
    "tensors of floats": "ds.map(lambda e: {'f': [0.5, 1.0], 'g': 2.5}).with_format('torch')",
    "lists again": "ds.with_format('torch', columns=['ids']).with_format(None)",
    "tensors without a column": "ds.with_format('torch', columns=['ids', 'pair']).remove_columns('pair')",
    "two together": "concatenate_datasets([ds, ds.map(lambda e: {'ids': e['ids'] + [0]})])",
    "two taken in turn": "interleave_datasets([ds.remove_columns('text'), ds.remove_columns('text')])",
}


NUMBERS = (
    "ds.select(range(3))", "ds.select([0, 2])", "ds.select(range(1, 4))", "ds.take(2)", "ds.take(40)",
    "ds.skip(1)", "ds.shard(3, 0)", "ds.shard(3, index=2)", "ds.filter(lambda e: e['label'] > 0)",
    "ds.shuffle(seed=1)", "ds.train_test_split(test_size=0.5)['test']", "ds.repeat(3)",
    "ds.train_test_split(test_size=1)['train']", "concatenate_datasets([ds, ds.take(1)])",
    "interleave_datasets([ds, ds])", "ds.map(lambda e: {'n': 1}).select(range(2))",
    "ds.map(lambda b: {'n': b['ids'] * 2}, batched=True, remove_columns=ds.column_names)",
)  # fmt: skip


@pytest.mark.parametrize("expression", NUMBERS)
def test_numbers_of_rows(expression: str) -> None:
    source = f"{IMPORTS}{TABLE}reveal({expression})\n"
    dataset, rows = revealed(source)[0], executed(source)[0]
    assert isinstance(dataset, LibraryObject)
    number = as_size(number_of(dataset))
    assert number is not None
    assert number.value in (None, len(rows))
    assert may_exceed(number_of(dataset), len(rows) - 1)


@pytest.mark.parametrize("expression", COLUMNS.values(), ids=COLUMNS)
def test_columns_and_formats(expression: str) -> None:
    agree(f"reveal({expression})")


def test_a_format_that_is_set_stays() -> None:
    agree("ds.set_format('torch', columns=['ids', 'label'])\nreveal(ds)\nreveal(ds.select([0, 1]))")
    agree("ds.set_format('torch', columns=['ids'])\nds.reset_format()\nreveal(ds)")
    agree("ds.set_format(type='torch')\nds.set_format(type=None, columns=['text', 'pair'])\nreveal(ds)")


@pytest.mark.parametrize("name", REMOVED_IN_PLACE)
def test_columns_are_unknown_after_a_method_that_was_removed(name: str) -> None:
    assert not hasattr(datasets.Dataset, name)
    setup = "from datasets import Dataset\nds = Dataset.from_dict({'ids': [1]})\n"
    before, after = revealed(f"{setup}reveal(ds[0]['ids'])\nds.{name}('ids')\nreveal(ds[0]['ids'])")
    assert not isinstance(before, Unknown)
    assert isinstance(after, Unknown)


def test_a_transform_makes_the_rows() -> None:
    agree(
        """
        def rows(batch):
            return {"x": torch.zeros(len(batch["text"]), 4), "ids": batch["ids"]}

        reveal(ds.with_transform(rows))
        ds.set_transform(rows)
        reveal(ds)
        """
    )


def test_a_loader_transforms_the_rows_of_a_batch_together(check: Check) -> None:
    code = textwrap.dedent(
        """
        import torch
        from datasets import Dataset
        from torch.utils.data import DataLoader

        ds = Dataset.from_dict({"text": ["a", "b c d", "e f", "g"]})

        def padded(batch):
            longest = max(len(text.split()) for text in batch["text"])
            return {"ids": torch.zeros(len(batch["text"]), longest)}

        ds.set_transform(padded)
        for batch in DataLoader(ds, batch_size=2):
            print(batch["ids"].shape)
        """
    )
    exec(compile(code, "script.py", "exec"), {})
    assert check(code, {"SF302"}) == []


@pytest.mark.parametrize(("rows", "is_list"), [("[[1, 2], [3, 4], [5, 6]]", False), ("[[1], [2, 3]]", True)])
def test_a_slice_of_a_column_is_a_list_only_where_its_rows_differ(rows: str, is_list: bool) -> None:
    program = f"{IMPORTS}reveal(Dataset.from_dict({{'ids': {rows}}}).with_format('torch')['ids'][0:2])"
    (ours,), (real,) = revealed(program), executed(program)
    assert isinstance(real, list) == is_list
    assert isinstance(ours, ListValue) == is_list


def test_a_dataset_of_rows() -> None:
    agree("reveal(Dataset.from_list([{'a': [1, 2], 'b': 'x'}, {'a': [3], 'b': 'y'}]))")
    agree(
        """
        def rows(count):
            for i in range(count):
                yield {"a": [1, 2], "b": "x"}

        reveal(Dataset.from_generator(rows, gen_kwargs={"count": 3}))
        """
    )


def test_what_a_split_has_all_splits_have() -> None:
    agree(
        """
        both = DatasetDict({"train": ds, "test": ds.select([0, 1])})
        both = both.map(lambda e: {"n": e["ids"]}, remove_columns=both["train"].column_names)
        reveal(both["train"].select([0, 1]))
        both.set_format("torch")
        reveal(both["test"])
        reveal(both.rename_column("n", "m")["test"])
        """
    )


def test_chunks_of_one_length_and_a_shorter_one() -> None:
    group = """
    SIZE = 4

    def group(batch):
        joined = sum(batch["ids"], [])
        stop = {stop}
        return {{"ids": [joined[i : i + SIZE] for i in range(0, stop, SIZE)]}}

    reveal(ds.map(group, batched=True, remove_columns=ds.column_names))
    """
    for stop in ("len(joined)", "len(joined) // SIZE * SIZE"):
        agree(group.format(stop=stop))


FILTERS = {
    "len(e['ids']) < 4": True,
    "len(e['ids']) > 0": True,
    "e['label'] == 0 and e['text'] != ''": True,
    "len(e['ids']) == 4": False,
    "len(e['ids']) >= 4": False,
    "4 <= len(e['ids'])": False,
    "longest(e)": False,
}


@pytest.mark.parametrize(("condition", "differs"), FILTERS.items())
def test_rows_that_are_left_may_be_of_one_length(condition: str, differs: bool) -> None:
    program = f"def longest(e):\n    return len(e['ids']) == 4\n\nreveal(ds.filter(lambda e: {condition}))"
    agree(program)
    (value,) = revealed(IMPORTS + TABLE + program)
    assert isinstance(value, LibraryObject)
    ids = sample_of(value).fields["ids"]
    assert isinstance(ids, ListValue)
    assert (ids.length is not None) is differs


OPERATIONS = [
    "ds = ds.map(lambda e: {'a': [1] * 3, 'b': 'x'})",
    "ds = ds.map(lambda e: {'c': e['ids'] + [0]})",
    "ds = ds.map(lambda e: {'ids': e['ids'] + e['ids']}, remove_columns=['text'])",
    "ds = ds.map(lambda b: {'ids': [row + [0] for row in b['ids']]}, batched=True)",
    "ds = ds.map(lambda b: {'d': b['ids'], 'e': b['mask']}, batched=True, remove_columns=['mask'])",
    "ds = ds.map(lambda b: {'ids': b['ids'], 'f': torch.ones(len(b['ids']), 2)}, batched=True)",
    "ds = ds.rename_column('ids', 'input_ids').rename_column('input_ids', 'ids')",
    "ds = ds.remove_columns(['pair'])",
    "ds = ds.select_columns(['ids', 'mask'])",
    "ds = ds.filter(lambda e: len(e['ids']) > 0)",
    "ds = ds.shuffle(seed=0)",
    "ds = concatenate_datasets([ds, ds])",
    "ds = ds.with_format('torch')",
    "ds.set_format('torch', columns=['ids'])",
    "ds.reset_format()",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=6))
def test_one_operation_after_the_other(chain: list[str]) -> None:
    source = IMPORTS + TABLE + "\n".join([*chain, "reveal(ds)"])
    try:
        real = executed(source)
    except (KeyError, ValueError, TypeError, RuntimeError):
        # A column that is gone already, or a list that has become a tensor: no facts to compare.
        return
    (ours,) = revealed(source)
    assert isinstance(ours, LibraryObject)
    check_rows(sample_of(ours), real[0])


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_tables_of_any_rows(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 4))
    numbers = st.integers(-3, 9)
    cells = [
        st.text("ab ", max_size=3),
        numbers,
        st.lists(numbers, min_size=1, max_size=3),
        st.lists(st.lists(numbers, min_size=1, max_size=2), min_size=1, max_size=2),
        st.booleans(),
        st.floats(0, 1),
    ]
    table = {
        f"c{i}": data.draw(st.lists(data.draw(st.sampled_from(cells)), min_size=count, max_size=count))
        for i in range(3)
    }
    for ending in ("", ".with_format('torch')", ".map(lambda b: b, batched=True)", ".map(lambda e: {**e})"):
        source = IMPORTS + f"reveal(Dataset.from_dict({table!r}){ending})"
        (ours,), (real,) = revealed(source), executed(source)
        assert isinstance(ours, LibraryObject)
        check_rows(sample_of(ours), real)


def test_columns_of_what_is_loaded_are_unknown_until_all_are_removed() -> None:
    program = """
    from datasets import load_dataset

    def make(batch):
        return {"ids": [[1, 2] for text in batch["text"]]}

    raw = load_dataset("json", data_files="x.json")
    some = raw.map(make, batched=True, remove_columns=["text"])
    reveal(some["train"])
    every = raw.map(make, batched=True, remove_columns=raw["train"].column_names)
    reveal(every["train"])
    named = raw.map(make, batched=True, remove_columns=list(raw["train"].features))
    reveal(named["validation"])
    other = raw.map(make, batched=True, remove_columns=COLUMNS)
    reveal(other["train"])
    """
    values = revealed(textwrap.dedent(program))
    samples = [sample_of(value) for value in values if isinstance(value, LibraryObject)]
    assert [list(sample.fields) for sample in samples] == [["ids"]] * 4
    assert [sample.closed for sample in samples] == [False, True, True, False]


def test_a_dataset_that_is_loaded_either_way_is_one_dataset() -> None:
    program = """
    from datasets import load_dataset

    def main(args):
        if args.name is not None:
            raw = load_dataset(args.name)
            if "validation" not in raw.keys():
                raw["validation"] = load_dataset(args.name, split="train[:5%]")
        else:
            raw = load_dataset("json", data_files=args.files)
            if "validation" not in raw.keys():
                raw["validation"] = load_dataset("json", data_files=args.files, split="train[:5%]")
        if args.do_train:
            names = list(raw["train"].features)
        else:
            names = list(raw["validation"].features)
        name = "text" if "text" in names else names[0]
        rows = raw.map(lambda b: {"ids": [[1, 2] for _ in b[name]]}, batched=True, remove_columns=names)
        reveal(rows["train"])
        reveal(raw["train"].map(lambda e: {"ids": [1, 2]}).remove_columns(names)["text"])
    """
    one, other = revealed(textwrap.dedent(program))
    assert isinstance(one, LibraryObject)
    assert sample_of(one).closed
    assert list(sample_of(one).fields) == ["ids"]
    assert isinstance(other, ListValue)
    assert isinstance(other.element, Unknown)


def test_a_name_that_may_be_a_split_is_no_column() -> None:
    program = """
    from datasets import load_dataset, load_from_disk
    reveal(load_from_disk("folder")["train"])
    reveal(load_dataset("x", split=NAME)["train"])
    reveal(load_dataset("x", split="train")["text"])
    """
    kinds = [type(value).__name__ for value in revealed(textwrap.dedent(program))]
    assert kinds == ["LibraryObject", "Unknown", "ListValue"]


def test_what_a_function_changes_outside_of_its_rows_is_not_certain() -> None:
    program = """
    seen = 0

    def count(e):
        global seen
        seen += 1
        return {"n": [1, 2]}

    ds = ds.map(count)
    reveal(seen)
    """
    (value,) = revealed(IMPORTS + TABLE + textwrap.dedent(program))
    assert isinstance(value, Unknown)


def test_a_map_tells_what_was_returned_and_where() -> None:
    program = """
    def make(e):
        result = {"a": e["ids"]}
        result["b"] = 1
        return result

    ds = ds.map(make, remove_columns=["text", "label", "mask", "pair"])
    """
    source = IMPORTS + TABLE + textwrap.dedent(program)
    (event,) = [event for event in interpret(source) if isinstance(event, Mapped)]
    assert isinstance(event.returned, DictValue)
    assert list(event.returned.fields) == ["a", "b"]
    assert list(event.sample.fields) == ["ids", "a", "b"]
    lines = source.splitlines()
    shown = {name: lines[place.span.row - 1].strip() for name, place in event.sample.written.items()}
    assert shown["a"] == 'result = {"a": e["ids"]}'
    assert shown["b"] == 'result["b"] = 1'


def test_rows_that_are_filled_up_and_cut_are_of_one_length_perhaps() -> None:
    agree(
        """
        LENGTH = 6

        def fill(batch):
            for i in range(len(batch["ids"])):
                row = batch["ids"][i]
                batch["ids"][i] = row + [0]
                batch["mask"][i] = [1] * len(batch["ids"][i])
            for i in range(len(batch["ids"])):
                row = batch["ids"][i]
                batch["ids"][i] = [0] * (LENGTH - len(row)) + row
                batch["mask"][i] = [0] * (LENGTH - len(row)) + batch["mask"][i]
                batch["ids"][i] = batch["ids"][i][:LENGTH]
                batch["mask"][i] = batch["mask"][i][:LENGTH]
            return batch

        reveal(ds.map(fill, batched=True))
        """
    )
