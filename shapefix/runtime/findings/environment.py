"""Exceptions caused by the machine: it has no GPU, no network, or lacks a package."""

from __future__ import annotations

import re
from enum import Enum

from shapefix.diagnosis.explanations import explain_message
from shapefix.diagnostics import Diagnostic, Evidence, Severity, with_failure
from shapefix.runtime.findings.constructor_fixes import read_text
from shapefix.runtime.findings.exception_report import exception_text
from shapefix.runtime.findings.missing_modules import imports_text, missing_module
from shapefix.runtime.observations import Observations, RaisedException
from shapefix.runtime.protocol import StartLine

ENVIRONMENT = "environment"
"""The code of exceptions caused by the machine, not by the script."""

CPU_FOR_GPU, FAKE = "cpu-for-gpu", "fake"
"""The devices of the agent for a script with a GPU: one with values, and one without."""

_GPU_PAGES = ("no-cuda", "load-without-cuda")
_WITHOUT_GPU = re.compile(
    r"not compiled with CUDA enabled|has no attribute '_cuda_\w+'|dummy base class (?:Event|Stream)$"
    r"|requires CUDA support|Cannot get CUDA generator|accelerator device when none is available"
)
"""Messages of a torch without CUDA, for which no error page exists."""
_ASKS = re.compile(r"\bassert\b.*\bcuda\.is_available\(\)")
_NETWORK_TYPES = frozenset(
    (
        "ConnectError", "ConnectTimeout", "ConnectionError", "LocalEntryNotFoundError", "MaxRetryError",
        "NameResolutionError", "NewConnectionError", "OfflineModeIsEnabled", "ProxyError", "URLError",
        "gaierror",
    )
)  # fmt: skip
_NO_ACCESS = re.compile(
    r"couldn't connect to|Temporary failure in name resolution|Name or service not known"
    r"|Network is unreachable|nodename nor servname provided"
)
_DISTRIBUTIONS = {
    "Bio": "biopython", "PIL": "pillow", "bs4": "beautifulsoup4", "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil", "hydra": "hydra-core", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "yaml": "pyyaml",
}  # fmt: skip
"""The names of packages for modules of another name."""


class Lack(Enum):
    """Missing parts of a machine; the value is the name of the finding."""

    GPU = "missing-gpu"
    PACKAGE = "missing-package"
    NETWORK = "no-network"


def lack_of(failure: RaisedException, observed: Observations) -> Lack | None:
    """The missing part of the machine, shown by an exception; None if the script itself may be the cause."""
    if not failure.ended_script:
        return None
    if _needs_gpu(failure, observed):
        return Lack.GPU
    if missing_module(failure) and not imports_text(failure):
        return Lack.PACKAGE
    types = (failure.type, *(kind for kind, _ in failure.causes))
    texts = (failure.message, *(message for _, message in failure.causes))
    network = any(kind in _NETWORK_TYPES for kind in types) or any(map(_NO_ACCESS.search, texts))
    return Lack.NETWORK if network else None


def missing_gpu(observed: Observations) -> RaisedException | None:
    """The exception at the end of a script because there is no GPU, if any."""
    return next((each for each in observed.exceptions if lack_of(each, observed) is Lack.GPU), None)


def simulation_note(failure: RaisedException, device: str) -> Diagnostic:
    """The note on a run on another device, after a run without a GPU has failed."""
    how = "on a simulated GPU, with sizes but no values" if device == FAKE else "on the CPU in its place"
    text = f"needs a GPU, and torch finds none: this is a run {how}"
    return Diagnostic(ENVIRONMENT, "simulated-gpu", Severity.INFO, text, failure.stack[0])


def environment_diagnostic(failure: RaisedException, observed: Observations) -> Diagnostic | None:
    """The finding for an exception caused by the machine, if it is one."""
    lack = lack_of(failure, observed)
    if lack is None:
        return None
    text = f"{_text(lack, failure, observed)}: {exception_text(failure).rstrip('.')}"
    place = failure.stack[0]
    evidence = with_failure((Evidence(place, f"raises {failure.type} here"),), place)
    return Diagnostic(ENVIRONMENT, lack.value, Severity.ERROR, text, place, evidence)


def _text(lack: Lack, failure: RaisedException, observed: Observations) -> str:
    match lack:
        case Lack.GPU:
            return "the script needs a GPU, and torch finds none; `--device fake` simulates one"
        case Lack.PACKAGE:
            name = missing_module(failure)
            start = observed.first(StartLine)
            python = "python" if start is None else start["executable"]
            return f"`{name}` is not installed; `{python} -m pip install {_DISTRIBUTIONS.get(name, name)}`"
        case Lack.NETWORK:
            return "the script needs the network, and cannot reach it"


def _asserts_gpu(failure: RaisedException) -> bool:
    """Whether the script itself raised an exception because there is no GPU."""
    place = failure.stack[0]
    rows = (read_text(place.path) or "").splitlines()[place.row - 1 : place.end_row]
    return failure.type == "AssertionError" and _ASKS.search("".join(rows)) is not None


def _needs_gpu(failure: RaisedException, observed: Observations) -> bool:
    start = observed.first(StartLine)
    if start is None or start["devices"]:
        return False
    if _WITHOUT_GPU.search(failure.message) or _asserts_gpu(failure):
        return True
    page = explain_message(failure.message, failure.type)
    return page is not None and page.name in _GPU_PAGES
