"""Write a program in another way: names of imports, other files, blocks, line breaks, comments, line ends.

Nothing of it changes what the program computes: `laid_out` keeps the syntax tree, which it asserts, and the
rest moves code that does the same in another place.
"""

from __future__ import annotations

import ast
import builtins
import io
import itertools
import random
import textwrap
import tokenize
from collections.abc import Callable, Sequence

from executed_texts import Texts

Functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Scopes = (*Functions, ast.ClassDef)


def varied(draw: random.Random, text: str) -> Texts:
    """Write a program in another way; some stay as they are."""
    if draw.random() < 0.25:
        return Texts(text)
    tree = ast.parse(text)
    modules: dict[str, str] = {}
    for change, likely in CHANGES:
        if draw.random() < likely:
            tree = ast.parse(ast.unparse(ast.fix_missing_locations(change(draw, tree))))
    if draw.random() < 0.3:
        tree, modules = moved(draw, tree)
    texts = {name: laid_out(draw, each) for name, each in modules.items()}
    return Texts(laid_out(draw, ast.unparse(tree)), texts)


def import_names(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Import torch, nn and F under other names, or from elsewhere."""
    taken = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    taken |= {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    taken |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    wanted = {
        "import torch": draw.choice(["import torch", "import torch as th", "import torch as T"]),
        "from torch import nn": draw.choice(
            ["from torch import nn", "import torch.nn as nn", "import torch.nn as tnn", "", "names"]
        ),
        "import torch.nn.functional as F": draw.choice(
            [
                "import torch.nn.functional as F",
                "from torch.nn import functional as F",
                "",
                "names",
                "import torch.nn.functional as func",
            ]
        ),
    }
    wanted["import torch.nn as nn"] = wanted["from torch import nn"]
    wanted["from torch.nn import functional as F"] = wanted["import torch.nn.functional as F"]
    root = wanted["import torch"].split()[-1]
    used: dict[str, set[str]] = {"nn": set(), "F": set()}

    class Renaming(ast.NodeTransformer):
        def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
            base = node.value
            if isinstance(base, ast.Name) and base.id in used and self.choice(base.id) == "names":
                if node.attr not in taken and isinstance(node.ctx, ast.Load):
                    used[base.id].add(node.attr)
                    return ast.Name(node.attr, ast.Load())
            self.generic_visit(node)
            return node

        def visit_Name(self, node: ast.Name) -> ast.AST:
            if node.id == "torch":
                return ast.Name(root, node.ctx)
            if node.id in used:
                return ast.parse(self.code(node.id), mode="eval").body
            return node

        def choice(self, name: str) -> str:
            return wanted["from torch import nn" if name == "nn" else "import torch.nn.functional as F"]

        def code(self, name: str) -> str:
            full = f"{root}.nn" if name == "nn" else f"{root}.nn.functional"
            return full if self.choice(name) in ("", "names") else self.choice(name).split()[-1]

    if any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in {"torch", "nn", "F"}
           for node in ast.walk(tree)):  # fmt: skip
        return tree
    body: list[ast.stmt] = []
    changed = [Renaming().visit(node) for node in tree.body]
    for node in changed:
        code = ast.unparse(node)
        lines = [code]
        if code in wanted:
            name = "nn" if code.endswith(" nn") else "F"
            names = ", ".join(sorted(used[name]))
            module = "torch.nn" if name == "nn" else "torch.nn.functional"
            lines = [wanted[code]] if wanted[code] not in ("", "names") else []
            lines += [f"from {module} import {names}"] if names and wanted[code] == "names" else []
        elif "torch" in code and isinstance(node, ast.Import) and code.endswith("torch"):
            lines = [code]
        body += ast.parse("\n".join(lines)).body
    return ast.Module(body, [])


def inlined(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Put a value that is read once, in the next statement, where it is read."""

    def block(body: list[ast.stmt], scope: ast.AST) -> list[ast.stmt]:
        kept: list[ast.stmt] = []
        at = 0
        while at < len(body):
            node = body[at]
            following = body[at + 1] if at + 1 < len(body) else None
            value = _once(node, following, scope) if draw.random() < 0.6 else None
            if value is not None and isinstance(node, ast.Assign) and following is not None:
                name = node.targets[0]
                assert isinstance(name, ast.Name)
                body[at + 1] = _Replacing(name.id, value).visit(following)
            else:
                kept.append(node)
            at += 1
        return kept

    _blocks(tree, block)
    return tree


def _once(node: ast.stmt, following: ast.stmt | None, scope: ast.AST) -> ast.expr | None:
    simple = (ast.Assign, ast.Expr, ast.Return)
    if not isinstance(node, ast.Assign) or not isinstance(following, simple) or len(node.targets) != 1:
        return None
    name = node.targets[0]
    if not isinstance(name, ast.Name) or not isinstance(node.value, (ast.Call, ast.Attribute, ast.Subscript)):
        return None
    everywhere = [each for each in ast.walk(scope) if isinstance(each, ast.Name) and each.id == name.id]
    here = [each for each in ast.walk(following) if isinstance(each, ast.Name) and each.id == name.id]
    inner = [each for each in ast.walk(following) if isinstance(each, (*Functions, ast.comprehension))]
    if len(everywhere) != 2 or len(here) != 1 or not isinstance(here[0].ctx, ast.Load) or inner:
        return None
    # What is computed before it in the statement must not depend on it, or it on that.
    return node.value if _is_first(following, name.id) else None


def _is_first(statement: ast.stmt, name: str) -> bool:
    """Whether nothing is called before the name is read."""
    code = ast.unparse(statement)
    start = code.find("=") + 1 if isinstance(statement, ast.Assign) else 0
    before = code[start:].split(name)[0]
    return not any(sign in before for sign in "()[]") or before.strip().count("(") == before.count("(") == 1


class _Replacing(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self.value if node.id == self.name and isinstance(node.ctx, ast.Load) else node


def _blocks(
    tree: ast.AST, change: Callable[[list[ast.stmt], ast.AST], list[ast.stmt]], scope: ast.AST | None = None
) -> None:
    """Change every list of statements, with the function or module that it is in; not those of classes."""
    scope = tree if scope is None or isinstance(tree, Functions) else scope
    for name in ("body", "orelse", "finalbody"):
        inner = getattr(tree, name, None)
        if isinstance(inner, list) and inner:
            for node in inner:
                _blocks(node, change, scope)
            if not isinstance(tree, ast.ClassDef):
                setattr(tree, name, change(inner, scope))
    for handler in getattr(tree, "handlers", ()):
        _blocks(handler, change, scope)


def configured(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Name some of the numbers in calls: fields of a dataclass, a dictionary, a namespace or constants."""
    form = draw.choice(["dataclass", "frozen", "dict", "namespace", "constants", "class"])
    numbers: dict[str, int] = {}

    class Naming(ast.NodeTransformer):
        def visit_Call(self, node: ast.Call) -> ast.AST:
            self.generic_visit(node)
            node.args = [self.named(each) for each in node.args]
            return node

        def named(self, node: ast.expr) -> ast.expr:
            if not isinstance(node, ast.Constant) or type(node.value) is not int or node.value < 2:
                return node
            if draw.random() < 0.5:
                return node
            name = next(
                (key for key, value in numbers.items() if value == node.value), f"size_{len(numbers)}"
            )
            numbers[name] = node.value
            code = {"dict": f"config['{name}']", "constants": name.upper()}.get(form, f"config.{name}")
            return ast.parse(code, mode="eval").body

    tree = Naming().visit(tree)
    if not numbers:
        return tree
    pairs = list(numbers.items())
    fields = "\n".join(f"    {name}: int = {value}" for name, value in pairs)
    given = ", ".join(f"{name}={value}" for name, value in pairs)
    text = {
        "dataclass": "from dataclasses import dataclass\n@dataclass\nclass Config:\n"
        f"{fields}\nconfig = Config()",
        "frozen": "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass Settings:\n"
        f"{fields}\nconfig = Settings()",
        "dict": f"config = dict({given})",
        "namespace": f"from types import SimpleNamespace\nconfig = SimpleNamespace({given})",
        "constants": "\n".join(f"{name.upper()} = {value}" for name, value in pairs),
        "class": f"class config:\n{fields}",
    }[form]
    at = _after_imports(tree)
    return ast.Module([*tree.body[:at], *ast.parse(text).body, *tree.body[at:]], [])


def _after_imports(tree: ast.Module) -> int:
    found = [at for at, node in enumerate(tree.body) if isinstance(node, (ast.Import, ast.ImportFrom))]
    first = next(
        (at for at, node in enumerate(tree.body) if not isinstance(node, (ast.Import, ast.ImportFrom))), 0
    )
    return first if found else 0


AROUND = (
    ("with torch.autograd.set_detect_anomaly(False):", False),
    ("with contextlib.nullcontext():", False),
    ("with contextlib.nullcontext(), contextlib.suppress(ZeroDivisionError):", False),
    ("if True:", False),
    ("if __name__ == '__main__':", False),
    ("for _turn in range(1):", True),
    ("for _turn, _ in enumerate([None]):", True),
    ("try:|except ZeroDivisionError:|    raise", False),
    ("try:|finally:|    pass", False),
    ("match 1:", False),
    ("if not __debug__:|    pass|else:", False),
)


def surrounded(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Put the rest of some block, from a statement on, into a context, a branch or a loop of one turn."""
    blocks: list[tuple[list[ast.stmt], int]] = []
    start = _after_imports(tree)

    def collect(body: list[ast.stmt], scope: ast.AST) -> list[ast.stmt]:
        blocks.append((body, start if body is tree.body else 0))
        return body

    _blocks(tree, collect)
    body, first = draw.choice(blocks)
    if first >= len(body):
        return tree
    at = draw.randrange(first, len(body))
    opening, is_loop = draw.choice(AROUND)
    inner = body[at:]
    leaving = (ast.Break, ast.Continue)
    if is_loop and any(isinstance(each, leaving) for node in inner for each in ast.walk(node)):
        return tree
    if any(isinstance(node, (ast.ImportFrom, ast.Global, ast.Nonlocal)) for node in inner):
        return tree
    names = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    if "torch." in opening and "torch" not in names:
        return tree
    code = textwrap.indent("\n".join(ast.unparse(node) for node in inner), "    ")
    if opening.startswith("match"):
        text = f"{opening}\n    case _:\n{textwrap.indent(code, '    ')}"
    elif opening.endswith("else:"):
        text = "\n".join([*opening.split("|"), code])
    else:
        head, *closing = opening.split("|")
        text = "\n".join([head, code, *closing])
    body[at:] = ast.parse(text).body if not _returns(inner) else _within(text)
    if "contextlib" in opening and "contextlib" not in names:
        tree.body.insert(start, ast.parse("import contextlib").body[0])
    return tree


def _returns(nodes: Sequence[ast.stmt]) -> bool:
    kinds = (ast.Return, ast.Break, ast.Continue, ast.Yield)
    return any(isinstance(each, kinds) for node in nodes for each in ast.walk(node))


def _within(text: str) -> list[ast.stmt]:
    loop = ast.parse(f"def f():\n    for _ in ():\n{textwrap.indent(text, '        ')}").body[0]
    assert isinstance(loop, ast.FunctionDef)
    assert isinstance(loop.body[0], ast.For)
    return loop.body[0].body


def decorated(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Decorate some functions with one that passes everything on."""
    made = draw.choice([
        "def logged(function):\n    @functools.wraps(function)\n    def called(*args, **kwargs):\n"
        "        return function(*args, **kwargs)\n    return called",
        "def logged(function):\n    function.is_logged = True\n    return function",
    ])  # fmt: skip
    found = [
        node for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.name.startswith("__")
        and node.name != "unknown"
    ]  # fmt: skip
    if not found:
        return tree
    for node in draw.sample(found, draw.randint(1, min(2, len(found)))):
        node.decorator_list = [ast.Name("logged", ast.Load())]
    at = _after_imports(tree)
    tree.body[at:at] = ast.parse("import functools\n" + made).body
    return tree


def annotated(draw: random.Random, tree: ast.Module) -> ast.Module:
    """Annotate some assignments, or chain them, or write them with `:=`."""

    def block(body: list[ast.stmt], scope: ast.AST) -> list[ast.stmt]:
        scoped = {
            name
            for node in ast.walk(scope)
            if isinstance(node, (ast.Global, ast.Nonlocal))
            for name in node.names
        }
        kept: list[ast.stmt] = []
        for node in body:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name) or target.id in scoped:
                kept.append(node)
                continue
            kind = draw.choice(["plain"] * 5 + ["hint", "chain", "walrus", "tuple"])
            if kind == "hint":
                hinted = ast.AnnAssign(target, ast.Name("object", ast.Load()), node.value, 1)
                kept.append(hinted)
            elif kind == "chain":
                node.targets = [target, ast.Name("_also", ast.Store())]
                kept.append(node)
            elif kind == "walrus":
                kept.append(ast.Expr(ast.NamedExpr(target, node.value)))
            elif kind == "tuple":
                kept.append(ast.parse(f"{target.id}, _also = {_in_tuple(node.value)}, 0").body[0])
            else:
                kept.append(node)
        return kept

    _blocks(tree, block)
    return tree


def _in_tuple(value: ast.expr) -> str:
    code = ast.unparse(value)
    return f"({code})" if isinstance(value, (ast.Tuple, ast.Lambda, ast.IfExp)) else code


CHANGES: tuple[tuple[Callable[[random.Random, ast.Module], ast.Module], float], ...] = (
    (inlined, 0.3), (annotated, 0.25), (configured, 0.3), (surrounded, 0.4), (surrounded, 0.2),
    (decorated, 0.2), (import_names, 0.4),
)  # fmt: skip


def moved(draw: random.Random, tree: ast.Module) -> tuple[ast.Module, dict[str, str]]:
    """Move functions and classes that read no global values into another file."""
    imports = [node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    known = {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
    known |= set(dir(builtins)) - {"__name__"} | {"__class__"}
    found = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    while True:
        names = {node.name for node in found}
        fitting = [node for node in found if _free(node) <= known | names]
        if len(fitting) == len(found):
            break
        found = fitting
    rebound = [node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    found = [node for node in found if rebound.count(node.name) == 1]
    if not found or any(isinstance(node, ast.Global) for node in ast.walk(tree)):
        return tree, {}
    name = draw.choice(["helpers", "lib.parts"])
    style = draw.choice(["from", "from", "as", "module"])
    own = [node for node in imports if not isinstance(node, ast.ImportFrom) or node.level == 0]
    module = ast.unparse(ast.Module([*own, *found], []))
    listed = sorted(node.name for node in found)
    rest = [node for node in tree.body if node not in found]
    main: ast.AST = ast.Module(rest, [])
    if style == "from":
        line = f"from {name} import {', '.join(listed)}"
    else:
        alias = "parts" if style == "as" else name
        line = f"import {name} as parts" if style == "as" else f"import {name}"
        stored = {
            node.id
            for node in ast.walk(main)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        if stored & {*listed, "parts", "helpers", "lib"}:
            line = f"from {name} import {', '.join(listed)}"
        else:
            for each in listed:
                main = _Replacing(each, ast.parse(f"{alias}.{each}", mode="eval").body).visit(main)
    assert isinstance(main, ast.Module)
    at = _after_imports(main)
    main.body.insert(at, ast.parse(line).body[0])
    return ast.parse(ast.unparse(ast.fix_missing_locations(main))), {name: module}


def _free(node: ast.AST) -> set[str]:
    """Names that a function or class reads and does not bind anywhere inside."""
    read = {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)
    }
    bound = {
        each.id
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    bound |= {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.name for each in ast.walk(node) if isinstance(each, (ast.FunctionDef, ast.ClassDef))}
    bound |= {each.name for each in ast.walk(node) if isinstance(each, ast.ExceptHandler) and each.name}
    bound |= {
        alias.asname or alias.name.split(".")[0]
        for each in ast.walk(node) if isinstance(each, (ast.Import, ast.ImportFrom)) for alias in each.names
    }  # fmt: skip
    return read - bound


COMMENTS = (
    "# as in the paper",
    "# größer als 0, 𝒙 → 𝒚",
    "# TODO: (x, y",
    "# type: ignore",
    "#: [",
    "# x.view(-1)",
)


def laid_out(draw: random.Random, text: str) -> str:
    """Lay a text out in another way: line breaks, comments, parentheses, spaces, tabs and line ends."""
    text = text.rstrip("\n") + "\n"
    before = ast.dump(ast.parse(text))
    broken, commented, joined = (draw.random() < likely for likely in (0.4, 0.4, 0.25))
    if broken:
        text = _with_breaks(draw, text)
    if joined:
        text = _joined(draw, text)
    if commented:
        text = _with_comments(draw, text)
    kind = draw.choice(["plain"] * 5 + ["tabs", "crlf", "two", "open"])
    if kind == "tabs" and not broken:
        text = "".join(
            line.replace("    ", "\t") if not line.strip() else _tabbed(line)
            for line in text.splitlines(True)
        )
    elif kind == "two" and not broken:
        text = "".join(_halved(line) for line in text.splitlines(True))
    elif kind == "crlf":
        text = text.replace("\n", "\r\n")
    elif kind == "open":
        text = text.rstrip("\n")
    assert ast.dump(ast.parse(text)) == before, text
    return text


def _tabbed(line: str) -> str:
    inner = line.lstrip(" ")
    return "\t" * ((len(line) - len(inner)) // 4) + inner


def _halved(line: str) -> str:
    inner = line.lstrip(" ")
    return " " * ((len(line) - len(inner)) // 2) + inner


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text).readline))


def _with_breaks(draw: random.Random, text: str) -> str:
    """Break lines inside of parentheses, after operators, and before dots; add commas at the end of calls."""
    rows = text.split("\n")
    inserted: list[tuple[int, int, str]] = []
    depth: list[tuple[bool, list[str]]] = []
    previous: tokenize.TokenInfo | None = None
    wide = draw.choice([0.1, 0.3, 0.7])
    for token in _tokens(text):
        row, column = token.start
        indent = len(rows[row - 1]) - len(rows[row - 1].lstrip(" ")) if row <= len(rows) else 0
        new = f"\n{' ' * (indent + 4)}"
        if draw.random() < 0.15:
            new = f"  {draw.choice(COMMENTS)}{new}"
        if token.string in ")]}" and token.type == tokenize.OP and depth:
            is_call, inside = depth.pop()
            listed = "," in inside and not {"for", "lambda", "=="} & set(inside) and inside[-1] != ","
            if is_call and listed and draw.random() < wide:
                inserted.append((row, column, draw.choice([",", ", ", f",{new[:-4]}"])))
            elif draw.random() < wide / 2:
                inserted.append((row, column, new[:-4]))
        elif depth and previous is not None and previous.end[0] == row and draw.random() < wide:
            after = previous.string in ("(", "[", "{", ",", "+", "*", "=") and previous.type == tokenize.OP
            if after or (token.string == "." and previous.string == ")"):
                inserted.append((row, column, new))
        elif not depth and token.string == "." and previous is not None and previous.string == ")":
            if draw.random() < wide / 3:
                inserted.append((row, column, f" \\\n{' ' * (indent + 4)}"))
        if depth:
            depth[-1][1].append(token.string)
        if token.string in "([{" and token.type == tokenize.OP:
            called = previous is not None and previous.end == token.start and token.string == "("
            is_name = previous is not None and (previous.type == tokenize.NAME or previous.string in ")]")
            depth.append((called and is_name, []))
        previous = token
    for row, column, new in sorted(inserted, reverse=True):
        line = rows[row - 1]
        rows[row - 1] = (
            line[:column].rstrip(" ") + new + line[column:]
            if "\n" in new
            else line[:column] + new + line[column:]
        )
    return _in_parentheses(draw, "\n".join(rows))


def _in_parentheses(draw: random.Random, text: str) -> str:
    """Put the right side of some assignments of one line into parentheses of their own."""
    tree = ast.parse(text)
    rows = text.split("\n")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or node.lineno != node.end_lineno or draw.random() > 0.15:
            continue
        value = node.value
        line = rows[node.lineno - 1]
        if len(line.encode()) != len(line) or isinstance(value, ast.Tuple):
            continue
        assert value.end_col_offset is not None
        start, end = value.col_offset, value.end_col_offset
        before, after = line[:start], line[end:]
        if not before.rstrip().endswith("=") or after.strip():
            continue
        indent = " " * (len(line) - len(line.lstrip()))
        shown = f"\n{indent}    {line[start:end]}\n{indent}" if draw.random() < 0.6 else line[start:end]
        rows[node.lineno - 1] = f"{before}({shown}){after}"
    return "\n".join(rows)


def _logical(text: str) -> dict[int, tuple[int, bool]]:
    """The first rows of logical lines, with the last row of each, and whether it opens a block."""
    lines: dict[int, tuple[int, bool]] = {}
    start, last = 0, ""
    for token in _tokens(text):
        if token.type in (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            continue
        if token.type == tokenize.NEWLINE:
            lines[start] = token.start[0], last == ":"
            start = 0
            continue
        start, last = start or token.start[0], token.string
    return lines


def _with_comments(draw: random.Random, text: str) -> str:
    """Add comments at the ends of lines and above them, and blank lines."""
    lines = _logical(text)
    ends = {end: start for start, (end, _) in lines.items()}
    rows = text.split("\n")
    made: list[str] = []
    for number, row in enumerate(rows, start=1):
        if number in lines and draw.random() < 0.15:
            indent = row[: len(row) - len(row.lstrip())]
            made.append(draw.choice(["", f"{indent}{draw.choice(COMMENTS)}", f"{indent}# %%"]))
        if number in ends and "#" not in row and draw.random() < 0.2:
            row = f"{row}  {draw.choice(COMMENTS)}"
        made.append(row)
    return "\n".join(made)


def _joined(draw: random.Random, text: str) -> str:
    """Put two simple statements on one line, or the only statement of a block behind its colon."""
    rows = text.split("\n")
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(getattr(node, "body", None), list)]
    for node in nodes:
        for body in (getattr(node, name, []) for name in ("body", "orelse")):
            for first, second in itertools.pairwise(body):
                simple = all(_is_simple(each, rows) for each in (first, second))
                adjacent = first.end_lineno + 1 == second.lineno
                if simple and adjacent and draw.random() < 0.2:
                    at, following = first.lineno - 1, second.lineno - 1
                    if rows[at] and rows[following]:
                        rows[following] = f"{rows[at]}; {rows[following].lstrip()}"
                        rows[at] = ""
    return "\n".join(rows)


def _is_simple(node: ast.stmt, rows: Sequence[str]) -> bool:
    simple = (ast.Assign, ast.Expr, ast.AugAssign, ast.Return, ast.Pass, ast.Import)
    row = rows[node.lineno - 1]
    return (
        isinstance(node, simple) and node.lineno == node.end_lineno
        and row[: node.col_offset].strip() == "" and "#" not in row and not row.endswith("\\")
        and not isinstance(getattr(node, "value", None), ast.JoinedStr)
    )  # fmt: skip
