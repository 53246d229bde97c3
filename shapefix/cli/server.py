"""`shapefix server`: the language server on standard input and output."""

from __future__ import annotations

import importlib.util
import logging

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.terminal import echo_err


def server() -> int:
    """Run the language server until its client ends it."""
    if importlib.util.find_spec("pygls") is None or importlib.util.find_spec("lsprotocol") is None:
        echo_err("error: the language server needs more packages: pip install 'shapefix[editor]'")
        return FAILED
    from shapefix.server.language_server import make_server

    logging.disable(logging.CRITICAL)
    running = make_server()
    try:
        running.start_io()
    finally:
        running.end()
    return CLEAN
