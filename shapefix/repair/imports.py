"""Add the imports of a fix to a file."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import replace

from shapefix.diagnostics import Edit, Fix, Import, Span
from shapefix.repair.edits import RowOffsets, apply
from shapefix.repair.outline import ImportedName, ImportLine, ImportOutline, outline


class NameTaken(ValueError):
    """The file uses the name of the import for something else."""


def with_aliases(text: str, fix: Fix) -> Fix:
    """Return the fix with the file's own names of imported modules: `th` after `import torch as th`."""
    named = {
        alias.name: alias.asname
        for line in outline(text).imports
        if line.direct and line.module is None
        for alias in line.aliases
        if alias.asname
    }
    for wanted in fix.imports:
        own = named.get(wanted.module) if wanted.name is None else None
        if own is not None:
            module = re.compile(rf"(?<![\w.]){re.escape(wanted.module)}(?=\.)")
            edits = tuple(replace(edit, content=module.sub(own, edit.content)) for edit in fix.edits)
            left = tuple(each for each in fix.imports if each is not wanted)
            fix = replace(fix, edits=edits, imports=left)
    return fix


def import_edits(path: str, text: str, fix: Fix) -> tuple[Edit, ...]:
    """Return edits to add the imports of a fix and remove unused ones.

    A new name replaces an old one of the same module. Raises like import_edit.
    """
    edits: list[Edit] = []
    replaced: set[Import] = set()
    for old in fix.unneeded:
        found = _unused(text, fix, old)
        if found is None:
            continue
        line, alias = found
        new = next((w for w in fix.imports if w.name and w.module == old.module and w not in replaced), None)
        if new is not None and new.name and _fits(line, alias, new.name) and import_edit(path, text, new):
            replaced.add(new)
            edits.append(Edit(_span(path, alias), new.name))
        else:
            edits.append(_removed(path, text, line, alias))
    needed = [import_edit(path, text, wanted) for wanted in fix.imports if wanted not in replaced]
    return (*edits, *(edit for edit in needed if edit is not None))


def _unused(text: str, fix: Fix, old: Import) -> tuple[ImportLine, ImportedName] | None:
    """Return the import of old if nothing uses its name after the edits of the fix."""
    after, done, _ = apply(text, [replace(fix, imports=(), unneeded=())])
    lines = [line for line in outline(text).imports if line.module == old.module and line.direct]
    found = [
        (line, alias)
        for line in lines
        for alias in line.aliases
        if alias.name == old.name and not alias.asname
    ]
    if not done or len(found) != 1:
        return None
    try:
        tree = ast.parse(after.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError):
        return None
    used = any(
        (isinstance(node, ast.Name) and node.id == old.name)
        or (isinstance(node, ast.Constant) and node.value == old.name)
        for node in ast.walk(tree)
    )
    return None if used else found[0]


def _fits(line: ImportLine, alias: ImportedName, name: str) -> bool:
    """Check whether the names of an import stay sorted if one is replaced."""
    at = line.aliases.index(alias)
    before, after = line.aliases[:at][-1:], line.aliases[at + 1 : at + 2]
    return all(other.name <= name for other in before) and all(name <= other.name for other in after)


def _span(path: str, alias: ImportedName) -> Span:
    return Span(path, alias.row, alias.column, alias.end_row, alias.end_column)


def _removed(path: str, text: str, line: ImportLine, alias: ImportedName) -> Edit:
    """Remove one name of an import, or the whole line for its only name."""
    if len(line.aliases) == 1:
        return Edit(Span(path, line.row, 1, line.end_row + 1, 1), "")
    at = line.aliases.index(alias)
    if at + 1 < len(line.aliases):
        following = line.aliases[at + 1]
        return Edit(Span(path, alias.row, alias.column, following.row, following.column), "")
    before = line.aliases[at - 1]
    return Edit(Span(path, before.end_row, before.end_column, alias.end_row, alias.end_column), "")


def import_edit(path: str, text: str, wanted: Import) -> Edit | None:
    """Return the edit to add an import at the top level of text; None if it is there.

    It joins an existing `from module import …` of the same module; otherwise it becomes a line of its own
    among the imports, after the docstring and the `__future__` imports. Raises NameTaken when the name is
    bound to something else anywhere in the file where a function could see it, and libcst.ParserSyntaxError
    when text does not parse.
    """
    found = outline(text)
    name = wanted.name or wanted.module.partition(".")[0]
    identity = (name, None) if wanted.name is None else (wanted.module, wanted.name)
    if found.bound.get(name, set()) - {identity}:
        raise NameTaken(
            f"`{name}` already means something else in this file, so `{written(wanted)}` cannot be added"
        )
    if any(_provides(line, wanted) for line in found.imports):
        return None
    for line in found.imports:
        if line.direct and line.aliases and line.module == wanted.module and wanted.name is not None:
            return _merged(path, text, line.aliases, wanted.name)
    return _own_line(path, text, found, wanted)


def written(wanted: Import) -> str:
    """Return the import as a statement."""
    return f"import {wanted.module}" if wanted.name is None else f"from {wanted.module} import {wanted.name}"


def _provides(line: ImportLine, wanted: Import) -> bool:
    if wanted.name is not None:
        return line.module == wanted.module and any(
            alias.name == wanted.name and alias.asname in (None, wanted.name) for alias in line.aliases
        )
    return line.module is None and any(
        alias.asname in (None, alias.name) and f"{alias.name}.".startswith(f"{wanted.module}.")
        for alias in line.aliases
    )


def _merged(path: str, text: str, aliases: Sequence[ImportedName], name: str) -> Edit:
    rows = [text[begin:end] for begin, end in RowOffsets.of(text).bounds]

    def indent(alias: ImportedName) -> str | None:
        """Return the indentation of a name at the start of a row in parentheses, not after a backslash."""
        before = rows[alias.row - 1][: alias.column - 1]
        return None if before.strip() or rows[alias.row - 2].endswith("\\") else before

    later = next((alias for alias in aliases if alias.name > name), None)
    last = aliases[-1]
    if later is None and "#" in rows[last.end_row - 1][last.end_column - 1 :]:
        later = last  # otherwise the new name would be between the last one and its comment
    if later is not None:
        margin = indent(later)
        content = f"{name}, " if margin is None else f"{name},\n{margin}"
        return Edit(Span(path, later.row, later.column, later.row, later.column), content)
    margin = indent(last)
    content = f", {name}" if margin is None or len(aliases) == 1 else f",\n{margin}{name}"
    return Edit(Span(path, last.end_row, last.end_column, last.end_row, last.end_column), content)


def _own_line(path: str, text: str, found: ImportOutline, wanted: Import) -> Edit:
    statement = written(wanted)
    lines = [line for line in found.imports if line.direct and line.row > found.floor]
    package = wanted.module.partition(".")[0]
    section = _section(package)
    alike = [line for line in lines if (line.module is None) == (wanted.name is None)]
    same = (
        [line for line in alike if line.package == package]
        or [line for line in alike if _section(line.package) == section]
        or [line for line in lines if line.package == package]
        or [line for line in lines if _section(line.package) == section]
    )
    if same:
        key = _key(wanted.module if wanted.name is not None else None, wanted.module)
        before = [line for line in same if _line_key(line) <= key]
        if before:
            return _after(path, text, max(before, key=_line_key).end_row, f"{statement}\n")
        return _before(path, text, same[0].row, found, f"{statement}\n")
    earlier = [line for line in lines if _section(line.package) < section]
    if earlier:
        return _after(path, text, earlier[-1].end_row, f"\n{statement}\n")
    if lines:
        return _before(path, text, lines[0].row, found, f"{statement}\n\n")
    if found.floor:
        rows = RowOffsets.of(text).bounds
        followed = found.floor < len(rows) and text[slice(*rows[found.floor])].strip()
        return _after(path, text, found.floor, f"\n{statement}\n" + ("\n" if followed else ""))
    if found.first is not None:
        return _before(path, text, found.first, found, f"{statement}\n\n")
    end = len(RowOffsets.of(text).bounds)
    return _after(path, text, end, f"{statement}\n")


def _section(package: str) -> int:
    """Return the sort key of an import section: standard library, installed, relative."""
    return 2 if not package else 0 if package in sys.stdlib_module_names else 1


def _key(module: str | None, name: str) -> tuple[bool, str]:
    return module is not None, name.lower()


def _line_key(line: ImportLine) -> tuple[bool, str]:
    return _key(line.module, line.module if line.module is not None else line.aliases[0].name)


def _before(path: str, text: str, row: int, found: ImportOutline, content: str) -> Edit:
    """Insert a line before row, and before its comment unless the comment opens the file."""
    rows = RowOffsets.of(text).bounds
    above = row
    while above - 1 > found.floor and text[slice(*rows[above - 2])].lstrip().startswith("#"):
        above -= 1
    if above > 1:
        row = above
    column = 2 if row == 1 and text.startswith("\ufeff") else 1
    return Edit(Span(path, row, column, row, column), content)


def _after(path: str, text: str, row: int, content: str) -> Edit:
    """Insert lines after row, with a newline if the last row has none."""
    rows = RowOffsets.of(text).bounds
    if row < len(rows):
        return Edit(Span(path, row + 1, 1, row + 1, 1), content)
    begin, end = rows[-1]
    column = end - begin + 1
    opened = "\n" if text[begin:end].removeprefix("\ufeff") else ""
    return Edit(
        Span(path, row, column, row, column), opened + (content.removesuffix("\n") if opened else content)
    )
