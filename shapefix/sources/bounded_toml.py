"""Parse TOML of strangers in bounded time."""

from __future__ import annotations

import re
from typing import Any

MOST_PARTS = 300
"""Parts of a dotted key; tomllib takes quadratic time for them."""
# A string that is not closed is an error of its own; what follows it is never parsed.
_STRINGS_AND_COMMENTS = re.compile(
    r'"""(?:[^\\]|\\.)*?(?:"""|\Z)'
    r"|'''.*?(?:'''|\Z)"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*",
    re.DOTALL,
)
_NOT_IN_A_KEY = re.compile(r"[^-\w.\" \t]", re.ASCII)


class InvalidToml(ValueError):
    """Malformed or too costly TOML; the message continues a sentence about the file."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the content of a document. Raises InvalidToml."""
    # Few folders have anything to parse.
    import tomllib

    bare = _STRINGS_AND_COMMENTS.sub(lambda found: "" if found[0].startswith("#") else '""', text)
    if any(name.count(".") > MOST_PARTS for name in _NOT_IN_A_KEY.split(bare)):
        raise InvalidToml(f"has a key of more than {MOST_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidToml(f"is not valid TOML: {error}") from None
    except ValueError:
        # The only other one: int() refuses thousands of digits.
        raise InvalidToml("has a number of too many digits") from None
    except RecursionError:
        raise InvalidToml("is nested too deeply to be read") from None
