"""Run the command line: exit codes, and one-line errors."""

from __future__ import annotations

import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

import shapefix.cli.commands  # noqa: F401 (adds the commands to the group)
from shapefix.cli.exit_codes import BROKEN_PIPE, FAILED, INTERRUPTED
from shapefix.cli.group import ENDS_PROCESS, cli

__all__ = ["cli", "main", "run"]

COMPLETION = "_SHAPEFIX_COMPLETE"
"""Set by a shell that completes a command line."""
_OUTPUT_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main() -> None:
    """Run the command line of this process and exit."""
    from shapefix.cli.terminal import echo_err, open_missing_streams

    if not open_missing_streams():
        echo_err("error: standard output is closed")
        sys.exit(FAILED)
    if COMPLETION in os.environ:
        from shapefix.cli.completion import complete

        sys.exit(complete())
    code = run(sys.argv[1:], ends_process=True)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _broken_pipe()
    except OSError as error:
        code = _failed(error, verbose=False)
    if code == FAILED:
        _discard_output()
    # Python collects garbage once more at its end: the memory of this process is freed in any case.
    gc.freeze()
    if _may_end_at_once():
        with suppress(OSError, ValueError):
            sys.stderr.flush()
            os._exit(code)
    sys.exit(code)


def _may_end_at_once() -> bool:
    """Check for the end of a check or fix in this process alone: freeing its objects takes a twentieth of it.

    Other processes, and tools that watch this one, have work to do at its end.
    """
    light_libcst = sys.modules.get("shapefix.engine.light_libcst")
    is_watched = sys.gettrace() is not None or sys.getprofile() is not None or "coverage" in sys.modules
    return light_libcst is not None and "multiprocessing" not in sys.modules and not is_watched


def run(arguments: Sequence[str], ends_process: bool = False) -> int:
    """Run a command line and return its exit code; ends_process is whether the caller exits with it."""
    from shapefix.cli.terminal import echo_err, prepare_streams

    prepare_streams()
    try:
        # Not cli.main: it would turn a reader who goes away into exit code 1.
        ending = ENDS_PROCESS if ends_process else None
        with cli.make_context("shapefix", list(arguments), obj=ending) as context:
            return cli.invoke(context) or 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        echo_err(error.format_message())
        return FAILED
    except click.ClickException as error:
        message = error.format_message()
        message = message[:1].lower() + message[1:]
        if "did you mean" not in message.lower() and "`shapefix " not in message:
            message = f"{message.rstrip('.')} (see `{_command_path(error, arguments)} --help`)"
        echo_err(f"error: {message}")
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _broken_pipe()
    except Exception as error:
        return _failed(error, verbose=bool({"--verbose", "-v"} & set(arguments)))


def _command_path(error: click.ClickException, arguments: Sequence[str]) -> str:
    """Name the command of an error. click does not always report it."""
    where = getattr(error, "ctx", None)
    if where is not None:
        return str(where.command_path)
    return f"shapefix {arguments[0]}" if arguments and arguments[0] in cli.commands else "shapefix"


def _failed(error: Exception, verbose: bool) -> int:
    from shapefix.cli.terminal import InputUnreadable, UnusableFile, echo_err
    from shapefix.rulebook.pages import RulebookError
    from shapefix.sources.configuration import ConfigurationError

    if isinstance(error, (ConfigurationError, RulebookError, UnusableFile)):
        echo_err(f"error: {error}")
        return FAILED
    if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
        echo_err(f"error: output cannot be written: {error.strerror}")
        return FAILED
    if isinstance(error, InputUnreadable):
        echo_err(f"error: standard input cannot be read: {error}")
        return FAILED
    if isinstance(error, FileNotFoundError) and not _has_current_folder():
        echo_err("error: the current folder does not exist any more")
        return FAILED
    if verbose:
        import traceback

        traceback.print_exception(error)
    echo_err(
        f"error: internal error, please report it: {type(error).__name__}: {error}"
        + ("" if verbose else " (--verbose shows the traceback)")
    )
    return FAILED


def _has_current_folder() -> bool:
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return False
    return True


def _broken_pipe() -> int:
    """Exit like a program after its output is closed early, for example by `head`."""
    _discard_output()
    return BROKEN_PIPE


def _discard_output() -> None:
    """Discard unflushable output: Python would complain about it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
