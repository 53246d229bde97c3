"""Cache entries, and their form on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import astuple, field
from hashlib import blake2b
from hmac import compare_digest
from typing import Any

from shapefix.diagnostics import (
    Applicability,
    Arithmetic,
    Cause,
    Combination,
    Comparison,
    Condition,
    Diagnostic,
    Edit,
    Evidence,
    ExpectedError,
    Expression,
    Failure,
    Fix,
    Import,
    Moment,
    Predicate,
    Role,
    Severity,
    Span,
    Unchecked,
    Variable,
)
from shapefix.light_dataclasses import dataclass

_DIGEST_SIZE = 16


@dataclass(frozen=True)
class CachedResult:
    """The result of an analysis of one file, and its dependencies.

    dependencies maps the path of each other file that was read to the hash of its content, or to None if
    there was no such file. called are the functions of other files that the file calls.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    failures: tuple[Failure, ...] = ()
    dependencies: Mapping[str, str | None] = field(default_factory=dict)
    unchecked: tuple[Unchecked, ...] = ()
    called: frozenset[tuple[str, str]] = frozenset()


def content_hash(data: bytes) -> str:
    """Return a hash to identify the content of a file."""
    return blake2b(data, digest_size=_DIGEST_SIZE).hexdigest()


def _signature(payload: bytes, name: str, key: bytes) -> str:
    """Return the signature of an entry under its name."""
    return blake2b(name.encode() + b"\n" + payload, digest_size=_DIGEST_SIZE, key=key).hexdigest()


def to_bytes(fingerprint: str, content: str, result: CachedResult, *, name: str, key: bytes) -> bytes:
    """Serialize a result with its fingerprint and content hash, and sign it for the entry of this name."""
    found = {path: known for path, known in result.dependencies.items() if known is not None}
    missing: dict[str, list[str]] = {}
    # Many thousands of paths are missing from few folders: grouped by folder they load ten times faster.
    for path, known in result.dependencies.items():
        if known is None:
            folder, absent = split(path)
            missing.setdefault(folder, []).append(absent)
    diagnostics = [_from_diagnostic(each) for each in result.diagnostics]
    failures = [[each.path, each.message, each.row, each.column] for each in result.failures]
    unchecked = [[each.path, each.message, each.row, each.column, each.kind] for each in result.unchecked]
    parts = [fingerprint, content, found, missing, diagnostics, failures, unchecked, sorted(result.called)]
    payload = json.dumps(parts, separators=(",", ":")).encode()
    return _signature(payload, name, key).encode() + b"\n" + payload


@dataclass(frozen=True)
class CacheEntry:
    """A cache entry read from disk; missing maps folders to names not in them."""

    fingerprint: str
    content: str
    found: Mapping[str, str]
    missing: Mapping[str, list[str]]
    diagnostics: list[Any]
    failures: list[Any]
    unchecked: list[Any]
    called: list[Any]

    def result(self) -> CachedResult:
        """Return the cached result."""
        dependencies: dict[str, str | None] = dict(self.found)
        for folder, names in self.missing.items():
            dependencies.update(dict.fromkeys(f"{folder}{name}" for name in names))
        return CachedResult(
            tuple(_to_diagnostic(each) for each in self.diagnostics),
            tuple(Failure(*each) for each in self.failures),
            dependencies,
            tuple(Unchecked(*each) for each in self.unchecked),
            frozenset((path, name) for path, name in self.called),
        )


def from_bytes(data: bytes, *, name: str, key: bytes) -> CacheEntry | None:
    """Read an entry; None if the bytes are damaged, or not signed with this key for this name."""
    signature, _, payload = data.partition(b"\n")
    if not compare_digest(signature, _signature(payload, name, key).encode()):
        return None
    return CacheEntry(*json.loads(payload))


def split(path: str) -> tuple[str, str]:
    """Return the folder of a path, with the separator at its end, and the name in it."""
    at = path.rfind(os.sep) + 1
    return path[:at], path[at:]


def _from_span(span: Span) -> list[Any]:
    return [span.path, span.row, span.column, span.end_row, span.end_column]


def _from_diagnostic(diagnostic: Diagnostic) -> list[Any]:
    return [
        diagnostic.code,
        diagnostic.name,
        diagnostic.severity,
        diagnostic.message,
        _from_span(diagnostic.span),
        [[_from_span(each.span), each.message, each.role, each.label] for each in diagnostic.evidence],
        diagnostic.condition and _from_condition(diagnostic.condition),
        [_from_fix(each) for each in diagnostic.fixes],
        diagnostic.error and astuple(diagnostic.error),
        diagnostic.follows and [diagnostic.follows.code, _from_span(diagnostic.follows.span)],
        diagnostic.habit,
        diagnostic.reservation,
        diagnostic.in_branch,
        diagnostic.moment,
    ]


def _from_condition(condition: Condition) -> list[Any]:
    return [condition.text, _from_predicate(condition.predicate), condition.constant]


def _from_predicate(part: Predicate | Expression | None) -> Any:
    match part:
        case Combination(operator, parts):
            return [operator, *map(_from_predicate, parts)]
        case Comparison(left, operator, right) | Arithmetic(operator, left, right):
            return [operator, _from_predicate(left), _from_predicate(right)]
        case Variable(name, dim):
            return ["variable", name, dim]
        case _:
            return part


def _to_predicate(content: Any) -> Any:
    match content:
        case ["and" | "or" as operator, *parts]:
            return Combination(operator, tuple(map(_to_predicate, parts)))
        case [">" | "!=" | "is not a multiple of" as relation, left, right]:
            return Comparison(_to_predicate(left), relation, _to_predicate(right))
        case ["variable", name, dim]:
            return Variable(name, dim)
        case [operator, left, right]:
            return Arithmetic(operator, _to_predicate(left), _to_predicate(right))
        case _:
            return content


def _from_fix(fix: Fix) -> list[Any]:
    return [
        fix.applicability,
        fix.message,
        [[_from_span(edit.span), edit.content] for edit in fix.edits],
        [[each.module, each.name] for each in fix.imports],
        [[each.module, each.name] for each in fix.unneeded],
        fix.remark,
    ]


def _to_diagnostic(content: list[Any]) -> Diagnostic:
    code, name, severity, message, span, evidence, condition, fixes, error, follows, *rest = content
    habit, reservation, in_branch, moment = rest
    return Diagnostic(
        code,
        name,
        Severity(severity),
        message,
        Span(*span),
        tuple(Evidence(Span(*at), step, Role(role), label) for at, step, role, label in evidence),
        None if condition is None else Condition(condition[0], _to_predicate(condition[1]), condition[2]),
        tuple(_to_fix(each) for each in fixes),
        error=error and ExpectedError(error[0], error[1], Moment(error[2])),
        follows=follows and Cause(follows[0], Span(*follows[1])),
        habit=habit,
        reservation=reservation,
        in_branch=in_branch,
        moment=moment,
    )


def _to_fix(content: list[Any]) -> Fix:
    applicability, message, edits, imports, unneeded, remark = content
    return Fix(
        Applicability(applicability),
        message,
        tuple(Edit(Span(*at), written) for at, written in edits),
        tuple(Import(*each) for each in imports),
        tuple(Import(*each) for each in unneeded),
        remark,
    )
