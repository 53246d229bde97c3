"""Where the child process begins: `python …/agent/__main__.py --observations FILE … script.py arguments…`.

The folder of the agent leaves sys.path before anything of the user's is imported: its modules are reachable
as a package of a name that nobody else has.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys

_PACKAGE = "shapefix_probe_agent"


def main() -> None:
    """Load the agent under its own name, and let it run the script. Does not return."""
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
    if sys.path and os.path.abspath(sys.path[0]) == folder:  # noqa: PTH100
        del sys.path[0]
    spec = importlib.util.spec_from_file_location(
        _PACKAGE,
        os.path.join(folder, "__init__.py"),  # noqa: PTH118
        submodule_search_locations=[folder],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{_PACKAGE}.probing").main(sys.argv[1:])


if __name__ == "__main__":
    main()
