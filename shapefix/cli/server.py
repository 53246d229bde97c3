"""`shapefix server`: the language server on standard input and output."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import sys

from shapefix.cli.exit_codes import CLEAN, FAILED
from shapefix.cli.terminal import echo_err
from shapefix.engine.gc_control import gc_paused


def server() -> int:
    """Run the language server until its client ends it."""
    if importlib.util.find_spec("pygls") is None or importlib.util.find_spec("lsprotocol") is None:
        echo_err("error: the language server needs more packages: pip install 'shapefix[editor]'")
        return FAILED
    with gc_paused():
        # The protocol's thousand classes would start many collections.
        from shapefix.server.features import make_server

        gc.freeze()
    logging.disable(logging.CRITICAL)
    # What is printed by accident must not get between the messages.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    running = make_server()
    try:
        running.start_io(sys.stdin.buffer, output)
    finally:
        running.end()
    return CLEAN
