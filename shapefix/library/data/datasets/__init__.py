"""Hugging Face `datasets`: which columns a dataset has, what a row of it is like, what `map` makes of it.

A dataset is a LibraryObject. Its field "sample" is a DictValue: one row as reading it gives it, open where
not all columns are known. "rows" is the same as Arrow keeps it, with all columns, whatever the format.
"""

from shapefix.library.data.datasets.objects import DATASET, DICT, ITERABLE, ITERABLE_DICT

__all__ = ["DATASET", "DICT", "ITERABLE", "ITERABLE_DICT"]
