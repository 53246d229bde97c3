"""Mask passwords and tokens in text for reports.

Secrets are the values of environment variables and options with names like `HF_TOKEN` and `--api-key`, and
texts in the form of known tokens. This module imports the standard library only.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

MASK = "***"

_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|(API|ACCESS|PRIVATE|SIGNING|ENCRYPTION|AUTH|LICENSE)_?KEY"
    r"|(^|_)(KEY|PASS|PWD|PAT|AUTH|DSN|DATABASE_URL|CONNECTION_STRING)$",
    re.IGNORECASE,
)
_NOT_NAMES = re.compile(
    r"^(OLD)?PWD$|SOCK|TOKENIZER|TOKENS|(PAD|BOS|EOS|SEP|CLS|UNK|MASK|SPECIAL|IMAGE|STOP|START|END|NEW)_?TOKEN"
)
_SHORTEST, _UNBOUNDED = 6, 12
_SHORTEST_PART = 8
_PLAIN = re.compile(r"(true|false|none|null|yes|no|default|disabled|enabled|offline|online)$", re.IGNORECASE)

# A token begins where no word does, and its first group, if there is one, is kept.
_FORMS = (
    r"hf_(?=\w*[A-Z0-9])[A-Za-z0-9]{16,}",
    r"(?:sk|rk|pk)-(?=[\w-]*\d)(?:[A-Za-z]+-)*[A-Za-z0-9_-]{16,}",
    r"(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}",
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{30,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"dckr_pat_[A-Za-z0-9_-]{20,}",
    r"nvapi-[A-Za-z0-9_-]{20,}",
    r"r8_[A-Za-z0-9]{30,}",
    r"wandb_v\d_[A-Za-z0-9_]{20,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
)
_KNOWN = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_FORMS)})")
# The keys of Weights & Biases look like hashes of git, which paths of caches contain.
_KEY = re.compile(r"(?<![\w/\\.@-])[0-9a-f]{40}(?![\w/\\-]|\.\w)")
_NAMED = re.compile(r"(://[^\s:/@'\"]*:(?=[^\s/@'\"]+@)|\b(?:Bearer|Basic) (?=[\w.~+/=-]{16}))([^\s@'\",]+)")
_BEGUN = re.compile(
    r"(?<![A-Za-z0-9_])(?:hf_|sk-|gh[pousr]_|github_pat_|AKIA|AIza|glpat-|xox[abeprs]-)(?=[\w-]*[A-Z0-9])[\w-]{4,}(?=\W*$)"
)


PATH_FIELDS = ("executable", "file", "kind", "path", "roots", "sha256")
"""The fields of lines without secrets."""


def is_secret_name(name: str) -> bool:
    """Whether a variable or option with this name holds a secret."""
    return bool(_NAME.search(name)) and not _NOT_NAMES.search(name.upper())


def secret_values(named: Mapping[str, str]) -> list[str]:
    """The secrets among named values; plain words, short texts and paths are not."""
    return [value for name, value in named.items() if is_secret_name(name) and _is_secret(value)]


def secret_arguments(arguments: Sequence[str]) -> list[str]:
    """The secrets among the arguments of a command line, as in `--token=X` and `--token X`."""
    found = []
    for number, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        name = option.lstrip("-").replace("-", "_")
        if (option.startswith("-") or equals) and is_secret_name(name):
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            value = value if equals else following
            if _is_secret(value) and not value.startswith("--"):
                found.append(value)
    return found


class Masker:
    """Masks secrets in texts."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        """Mask these values, and known forms of tokens."""
        self.values = tuple(sorted(dict.fromkeys(values), key=len, reverse=True))
        parts = [_pattern(each) for value in self.values for each in _written(value)]
        self._known = re.compile("|".join(parts)) if parts else None

    def mask(self, text: str) -> str:
        """The text without its secrets, also those cut off at its ends."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
            text = self._without_parts(text)
        text = _KNOWN.sub(_masked, text)
        text = _KEY.sub(MASK, text)
        text = _BEGUN.sub(_masked, text)
        return _NAMED.sub(rf"\g<1>{MASK}", text)

    def mask_source(self, text: str) -> str:
        """The text of a file without its secrets, with all columns as they were."""
        rows = text.splitlines(keepends=True)
        if self.mask(text) == text:
            return text
        return "".join(map(self._mask_row, rows))

    def mask_all(self, value: Any, skipped: Sequence[str] = ()) -> Any:
        """A document without the secrets in its texts; names and the entries of skipped names are kept."""
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, list):
            return [self.mask_all(each, skipped) for each in value]
        if isinstance(value, dict):
            return {
                name: each if name in skipped else self.mask_all(each, skipped)
                for name, each in value.items()
            }
        return value

    def _mask_row(self, row: str) -> str:
        def stars(found: re.Match[str]) -> str:
            return "*" * len(found[0])

        if self._known is not None:
            row = self._known.sub(stars, row)
        row = _KEY.sub(stars, _KNOWN.sub(stars, row))
        return _NAMED.sub(lambda found: found[1] + "*" * len(found[2]), row)

    def _without_parts(self, text: str) -> str:
        """Mask the beginning of a secret at the end of a text, and the end of one at the beginning."""
        body = text.rstrip(".…'\" \n")
        for value in self.values:
            for length in range(min(len(value) - 1, len(body)), _SHORTEST_PART - 1, -1):
                if body.endswith(value[:length]):
                    text = body[:-length] + MASK + text[len(body) :]
                    break
            for length in range(min(len(value) - 1, len(text)), _SHORTEST_PART - 1, -1):
                if text.startswith(value[-length:]):
                    text = MASK + text[length:]
                    break
        return text


def watch_environment(path: str) -> None:
    """Append secrets to a file once the script adds them to its environment, as from a `.env`."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.putenv":
            name, value = (os.fsdecode(each) for each in arguments[:2])
            values = secret_values({name: value})
            if values:
                with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "w") as file:
                    file.write(json.dumps(values[0]) + "\n")

    sys.addaudithook(watch)


def added_secrets(path: str) -> list[str]:
    """The secrets in a file of watch_environment."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            return [str(json.loads(line)) for line in file if line.endswith("\n")]
    except (OSError, ValueError):
        return []


def _is_secret(value: str) -> bool:
    return len(value) >= _SHORTEST and not _PLAIN.match(value) and not os.path.exists(value)  # noqa: PTH110


def _written(value: str) -> list[str]:
    """A value as it is, and as it is quoted in JSON, in Python, and in URLs."""
    from urllib.parse import quote

    quoted = (value, json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe=""))
    return list(dict.fromkeys((*quoted, *(line for line in value.splitlines() if len(line) >= _UNBOUNDED))))


def _pattern(value: str) -> str:
    """Short values are masked as whole words only."""
    escaped = re.escape(value)
    return escaped if len(value) >= _UNBOUNDED else rf"(?<![A-Za-z0-9]){escaped}(?![A-Za-z0-9])"


def _masked(found: re.Match[str]) -> str:
    """Keep the first letters: they name the kind of token."""
    kind = re.match(r"[A-Za-z]+[_-]", found[0])
    return (kind[0] if kind else "") + MASK
