"""The libraries with rules for some of their versions."""

from __future__ import annotations

from shapefix.light_dataclasses import dataclass


@dataclass(frozen=True)
class RequiredLibrary:
    """A library with rules for some of its versions.

    names are its spellings in lower case; those of conda are included. address is the end of its repository's
    address. releases are the major versions with their last minor one, 99 for the newest major version.
    """

    key: str
    names: tuple[str, ...]
    address: str
    releases: tuple[tuple[int, int], ...]

    def known(self) -> list[str]:
        """Return the versions to try bounds with, in order; of the last ones not all exist."""
        return [f"{major}.{minor}" for major, last in self.releases for minor in range(last + 1)]

    def pattern(self) -> str:
        """Return the pattern of its names."""
        return "(?:" + "|".join(each.replace("-", "[-_.]") for each in self.names) + ")"


TRANSFORMERS = RequiredLibrary(
    "transformers", ("transformers",), "huggingface/transformers", ((3, 5), (4, 57), (5, 99))
)
PACKAGES = (
    TRANSFORMERS,
    RequiredLibrary("torch", ("torch", "pytorch"), "pytorch/pytorch", ((0, 4), (1, 13), (2, 99))),
    RequiredLibrary(
        "lightning",
        ("pytorch-lightning", "lightning"),
        "Lightning-AI/pytorch-lightning",
        ((0, 10), (1, 9), (2, 99)),
    ),
    RequiredLibrary("numpy", ("numpy",), "numpy/numpy", ((1, 26), (2, 99))),
    RequiredLibrary("trl", ("trl",), "huggingface/trl", ((0, 29), (1, 99))),
    RequiredLibrary("peft", ("peft",), "huggingface/peft", ((0, 99),)),
    RequiredLibrary("accelerate", ("accelerate",), "huggingface/accelerate", ((0, 34), (1, 99))),
    RequiredLibrary(
        "datasets", ("datasets",), "huggingface/datasets", ((1, 18), (2, 21), (3, 6), (4, 8), (5, 99))
    ),
)
"""The libraries whose requirements are read."""
PYTHON = RequiredLibrary("python", ("python",), "python/cpython", ((2, 7), (3, 99)))
REQUIRED = (*PACKAGES, PYTHON)
"""Those and Python: all with requirements that are read."""
