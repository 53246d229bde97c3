"""Entry point of the child process: `python …/agent/__main__.py --observations FILE … script.py arguments…`.

The folder of the agent leaves sys.path before anything of the user's is imported. Its modules, and the
protocol beside them, are imported as a package with a name that no other package has.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

_PACKAGE = "shapefix_probe"
"""The folder around the agent, without the rest of shapefix."""


def main() -> None:
    """Import the agent under its own name, and run the script. Does not return."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    if sys.path and os.path.abspath(sys.path[0]) == folder:  # noqa: PTH100
        del sys.path[0]
    around = os.path.dirname(folder)  # noqa: PTH120
    spec = importlib.util.spec_from_file_location(
        _PACKAGE,
        os.path.join(around, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[around],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{_PACKAGE}.agent.probing").main(sys.argv[1:])


if __name__ == "__main__":
    main()
