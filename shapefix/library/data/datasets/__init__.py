"""Hugging Face `datasets`: columns of a dataset, its rows, and results of `map`.

A dataset is a LibraryObject. Its field "sample" is a DictValue: one row as reading it gives it, open where
not all columns are known. "rows" is the same as Arrow keeps it, with all columns, regardless of the format.
"""

from shapefix.library.data.datasets.objects import DATASET, DICT, ITERABLE, ITERABLE_DICT

__all__ = ["DATASET", "DICT", "ITERABLE", "ITERABLE_DICT"]
