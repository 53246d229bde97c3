"""Programs made of the examples of the rule pages that have a repair."""

from __future__ import annotations

import functools
import random
import sys
from pathlib import Path

from repair_programs import Program

sys.path.append(str(Path(__file__).parents[1] / "rules"))

from rule_pages import Example, examples, front_matter, pages


@functools.cache
def repaired_examples(unsafe: bool) -> tuple[Example, ...]:
    """The examples whose repair is unsafe, or safe, except those that print what is known of a value."""
    return tuple(
        example
        for page in pages()
        for example in examples(page)
        if example.fixed is not None and example.fixed.unsafe == unsafe and "reveal(" not in example.text
    )


def rules_with_repairs(unsafe: bool) -> set[str]:
    """The rules whose page says so, or has such an example."""
    usual = "unsafe" if unsafe else "safe"
    return {
        front_matter(page)["code"]
        for page in pages()
        if front_matter(page)["fix"] == usual
        or any(example.fixed and example.fixed.unsafe == unsafe for example in examples(page))
    }


def of_pages(draw: random.Random, unsafe: bool = False) -> Program:
    """Take an example; its author wanted what the page shows as its repair."""
    example = draw.choice(repaired_examples(unsafe))
    assert example.fixed is not None
    return Program(
        f"page {example}", example.text, (example.fixed.text,), gpu="cuda" in example.text, mixed=True
    )


def of_safe_pages(draw: random.Random) -> Program:
    return of_pages(draw)


def of_unsafe_pages(draw: random.Random) -> Program:
    return of_pages(draw, unsafe=True)
