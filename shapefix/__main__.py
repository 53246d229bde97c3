"""`python -m shapefix`."""

import os
import sys

# `python -m` puts the current folder first: a click.py in a checked repository would be imported and run.
if sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109
    _PACKAGE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    if os.path.dirname(_PACKAGE) != os.path.abspath(sys.path[0]):  # noqa: PTH100, PTH120
        del sys.path[0]

from shapefix.cli.main import main

if __name__ == "__main__":
    main()
