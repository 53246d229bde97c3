"""Programs run with torch, to see whether it raises the error of a rule."""

from __future__ import annotations

import torch


def raises(code: str, message: str) -> bool:
    """Run a program; return whether torch raises a RuntimeError with this message.

    Any other error fails the test. Recording of gradients is on again afterwards.
    """
    error: RuntimeError | None = None
    try:
        exec(compile(code, "program", "exec"), {})
    except RuntimeError as raised:
        error = raised
    finally:
        torch.set_grad_enabled(True)
    assert error is None or message in str(error), f"{code}\n{error}"
    return error is not None
