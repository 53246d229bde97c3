"""Hugging Face `datasets`: columns of a dataset, its rows, and results of `map`.

A dataset is a LibraryObject. Its field "sample" is a DictValue: one row as it is read, open if
not all columns are known. "rows" is a row as Arrow stores it, with all columns, regardless of the format.
"""

from shapefix.library.data.datasets.objects import DATASET, DICT, ITERABLE, ITERABLE_DICT

__all__ = ["DATASET", "DICT", "ITERABLE", "ITERABLE_DICT"]
