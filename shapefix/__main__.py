"""`python -m shapefix`."""

import os
import sys

# `python -m` puts the current folder first: a click.py in a checked repository would be imported and run.
try:
    _FIRST = ("", os.getcwd())  # noqa: PTH109
except FileNotFoundError:
    # The folder is deleted: nothing can be imported from it.
    _FIRST = ("", "")
if sys.path and sys.path[0] in _FIRST:
    _PACKAGE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    if os.path.dirname(_PACKAGE) != (sys.path[0] or _FIRST[1]):  # noqa: PTH120
        del sys.path[0]

from shapefix.cli.main import main

if __name__ == "__main__":
    main()
