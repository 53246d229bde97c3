"""Folders made to break the tool, each with a last line or file that has a finding where the rest is valid."""

# The programs are long lines.
# ruff: noqa: E501

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

Content = str | bytes
HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
LAST = "torch.zeros(2).view(3)\n"
FOLDERS: dict[str, Callable[[], Mapping[str, Content]]] = {}


def folder(make: Callable[[], Mapping[str, Content]]) -> Callable[[], Mapping[str, Content]]:
    """Register a folder under the name of its function."""
    FOLDERS[make.__name__] = make
    return make


def script(make: Callable[[], str]) -> Callable[[], Mapping[str, Content]]:
    """Register a folder with one script; its head and last line are added."""

    def files() -> Mapping[str, Content]:
        return {"a.py": HEAD + make() + LAST}

    files.__name__ = make.__name__
    return folder(files)


def write(files: Mapping[str, Content], at: Path) -> None:
    for name, content in files.items():
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
        path.write_bytes(data)


def cell(source: object, outputs: object = ()) -> dict[str, object]:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {},
        "outputs": list(outputs) if isinstance(outputs, (list, tuple)) else outputs,
        "execution_count": None,
    }


def notebook(cells: object, **more: object) -> str:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more})


# Syntax


@script
def nested_fields_of_strings() -> str:
    deep = "x"
    for depth in range(60):
        quote = "\"'"[depth % 2]
        deep = f"f{quote}{{{deep}}}{quote}"
    return f"x = torch.zeros(2)\ns = {deep}\nt = f'{{x:{{x:{{x}}}}}}' f\"{{x!r:>{{len(f'{{x}}')}}}}\"\n"


@script
def many_fields_of_strings() -> str:
    return "x = torch.zeros(2)\ns = f'" + "{x}{{}}" * 8_000 + "'\nu = f'''\n" + "{x = }\n" * 3_000 + "'''\n"


@script
def classes_in_patterns() -> str:
    deep = "nn.Linear(" * 80 + "y" + ")" * 80
    cases = "".join(
        f"  case A(a={n}, b=[x, *{'_'}], c={{'k{n}': z, **r}}) if (x := x.view(1, -1)) is not None: pass\n"
        for n in range(800)
    )
    return f"x = torch.zeros(2)\nmatch x:\n  case {deep}: pass\n{cases}  case _: x = torch.zeros(2)\n"


@script
def alternatives_in_patterns() -> str:
    return "x = 3\nmatch x:\n  case " + " | ".join(map(str, range(9_000))) + ": y = torch.zeros(2)\n"


@script
def nested_patterns_in_loops() -> str:
    text = "x = torch.zeros(2)\n"
    for depth in range(40):
        text += " " * (2 * depth) + (
            f"match x:\n{' ' * (2 * depth + 1)}case [*a{depth}] if x is not None:\n"
            if depth % 2
            else f"for i{depth} in range(9):\n{' ' * (2 * depth + 1)}while x:\n"
        )
    return text + " " * 90 + "x = x + x\n"


@script
def chain_of_named_expressions() -> str:
    chain = "".join(f"(a{n} := " for n in range(150)) + "torch.zeros(2)" + ")" * 150
    sum_ = " + ".join(f"(b{n} := a{n % 150})" for n in range(600))
    return f"{chain}\n{sum_}\nq = [k for _ in range(10**7) if (k := [1, k] if _ else [])]\nwhile (n := a0.view(-1)) is not None and (a0 := n) is not None: a0 = n\n"


@script
def huge_decorators() -> str:
    table = "{" + ",".join(f"'k{n}': lambda x, y=torch.zeros({n}): x" for n in range(1_500)) + "}"
    chain = "@a" + ".b" * 800 + "\n"
    calls = "@a" + "()" * 300 + "\n"
    return (
        f"@register({table})\n{chain}{calls}@(lambda f: (lambda g: g)(f))\n" * 2
        + "def f(x):\n  return x.view(3)\nf(torch.zeros(2))\n"
    )


@script
def type_parameters() -> str:
    many = ", ".join(f"T{n}: (int, T{n - 1 if n else 0})" for n in range(600))
    classes = "".join(
        f"class A{n}[T: A{n}[T], *Ts, **P](B{n}[A{n}[T]], nn.Module):\n  def f[S: T](self, x: S) -> A{n}[S]: return x.view(3)\n"
        for n in range(500)
    )
    aliases = "".join(f"type X{n}[T] = X{(n + 1) % 400}[X{n}[T]] | tuple[X{n}, ...]\n" for n in range(400))
    return f"def g[{many}](x): return x\n{classes}{aliases}g(torch.zeros(2))\n"


@script
def type_comments() -> str:
    return (
        "def f(x,  # type: "
        + "Dict[" * 900
        + "\n      y):\n  # type: (...) -> "
        + "Tuple[int, " * 900
        + "\n  return x\n"
        + "".join(
            f"x{n} = []  # type: List[torch.Tensor[{n}, ...]]  # type: ignore[{'a,' * 50}\n"
            for n in range(2_000)
        )
        + "for a in x1:  # type: (((((\n  pass\nwith f(1, 2) as b:  # type: \x00\n  pass\n".replace(
            "\x00", "\x7f"
        )
    )


@script
def odd_annotations() -> str:
    return (
        "def f(x: '"
        + "((" * 3_000
        + "', y: "
        + "dict[str, " * 90
        + "int"
        + "]" * 90
        + ", *a: '*', **k: 'torch.Tensor[2, 3') -> '\\n': return x\n"
        + "z: 'z' = f\nq: q[q[q]] = q\nclass C:\n  a: 'C.a'\n  b: C = C\nf(torch.zeros(2), 1).view(3)\n"
    )


@script
def groups_of_exceptions() -> str:
    text = "x = torch.zeros(2)\n"
    for depth in range(45):
        text += " " * depth + "try:\n"
    text += " " * 45 + "x.view(3)\n"
    for depth in reversed(range(45)):
        text += (
            " " * depth
            + f"except* (A{depth}, B{depth}) as e{depth}:\n{' ' * depth} x = x.view(-1)\n{' ' * depth}else:\n{' ' * depth} x = x.view(1, -1)\n{' ' * depth}finally:\n{' ' * depth} x = x.view(-1)\n"
        )
    return text


@script
def joined_literals() -> str:
    return "s = (" + "'a' \"b\" r'\\c' f'{1}' " * 6_000 + ")\nb = (" + "b'a' b'\\xff'\n" * 5_000 + ")\n"


@script
def numbers_of_every_kind() -> str:
    return (
        "a = 0x"
        + "f" * 60_000
        + "\nb = 1e400 - 1e400\nc = "
        + "1_0" * 1_200
        + "\nd = 1j ** 1e308\ne = -0.0 // 0\nf = 5 % 0\n"
        "g = 1 << 10**12\nh = 0b"
        + "1"
        * 60_000
        + "\ni = torch.zeros(a, b, c)\nj = i.view(h, g)\nk = (-1) ** 0.5\n"
        "l = 10 ** -10 ** 10\nm = divmod(a, 0)\nn = a * h * a * h\no = round(a / 3)\np = float(a)\nq = int(b)\n"
        "for r in range(a): torch.zeros(r)\nfor r in range(-a, a, a): torch.zeros(r)\nstr(a)\nf'{a:,}'\n"
    )


@script
def names_of_unicode() -> str:
    return (
        "ﬁ = torch.zeros(2)\nfi.view(3)\n𝔵 = torch.zeros(2)\nx.view(3)\nµ = 1\nμ = torch.zeros(µ)\n"
        + "".join(f"a{chr(0x300 + n % 100) * (n % 90 + 1)} = {n}\n" for n in range(900))
        + "é = torch.zeros(2)\ne\u0301.view(3)\n변수 = torch.zeros(2)\n변수.view(3)\n"
    )


@script
def names_of_great_length() -> str:
    long = "n" * 120_000
    return f"{long} = torch.zeros(2)\n{long}.view(3)\n{long}.t({long})\nclass {long}(nn.Module):\n  def forward(self, {long}=1): return self.{long}.view(3)\n{long}()(3)\nimport {long}.{long}\n"


@script
def spaces_of_every_kind() -> str:
    return (
        "\x0c\x0c\x0cif 1:\n\x0c  x = torch.zeros(2)\n\x0c\x0c  x.view(3)\n"
        + "\x0c" * 30_000
        + "\n\t\n \t \n"
        + "\\\n" * 3_000
        + "\n"
    )


@script
def chains_of_subscripts() -> str:
    return (
        "x = torch.zeros(2, 3)\ny = x["
        + "None, " * 3_000
        + "...]\nz = x"
        + "[::]" * 1_000
        + "\nw = x["
        + "..., " * 900
        + "]\n"
        "v = x["
        + "[" * 60
        + "0"
        + "]" * 60
        + "]\nu = x["
        + ":, " * 3_000
        + "]\nt = x[x[x[x[x > x] > x] > x]]\ny.view(3)\n"
    )


@script
def stars_in_calls() -> str:
    return (
        "def f(*a, **k): return f(*a, *a, **k, **k)\na = [1] * 10**9\nf("
        + "*a, " * 3_000
        + "**{})\nf("
        + "**{'a': 1}, " * 3_000
        + ")\ntorch.zeros(*a, *a)\n[*a, *a, *[*a, *[*a]]]\n{**{**{**{}}}}\n*b, c = *a, *a\ntorch.zeros(*f(*f(*f)))\nprint(*(x for x in a))\n"
    )


@script
def functions_in_functions() -> str:
    text = ""
    for depth in range(45):
        text += (
            " " * depth
            + f"def f{depth}(a{depth}=torch.zeros({depth})):\n{' ' * (depth + 1)}"
            + (f"nonlocal {', '.join(f'a{n}' for n in range(depth))}\n" if depth else "global a\n")
            + " " * (depth + 1)
            + f"a{max(depth - 1, 0)} = a{depth} + a{max(depth - 1, 0)}\n"
        )
    return text + " " * 45 + "return f0\nf0()()()()\n"


# Classes


@script
def thousands_of_classes() -> str:
    return (
        "class A0(nn.Module): pass\nclass A1(A0): pass\n"
        + "".join(f"class A{n}(A{n - 1}, A{n - 2}):\n  x = {n}\n" for n in range(2, 4_000))
        + "A3999()(torch.zeros(2))\n"
    )


@script
def classes_in_one_file() -> str:
    return (
        "class A(nn.Module):\n  def __init__(self): super().__init__(); self.l = nn.Linear(2, 3)\n  def forward(self, x): return self.l(x)\n"
        + "".join(f"class B{n}(A): pass\n" for n in range(9_000))
        + "".join(f"B{n}()\n" for n in range(0, 9_000, 9))
    )


@script
def records_of_many_fields() -> str:
    fields = "".join(f"  a{n}: torch.Tensor = torch.zeros({n})\n" for n in range(2_000))
    members = "".join(f"  A{n} = {n}\n" for n in range(3_000))
    return (
        "from dataclasses import dataclass, field, replace\nfrom enum import Enum, IntFlag\nfrom typing import NamedTuple, TypedDict\n"
        f"@dataclass\nclass D:\n{fields}class E(Enum):\n{members}class N(NamedTuple):\n{fields}class T(TypedDict):\n{fields}"
        "d = D()\nreplace(d, a1=d).a1.a1.view(3)\nN(*range(2000)).a3.view(3)\ntorch.zeros(E.A7.value).view(3)\nfor e in E: torch.zeros(e.value)\n"
    )


@script
def metaclasses_of_themselves() -> str:
    return (
        "class M(type):\n  def __new__(m, n, b, d): return M(n, b, d)\n  def __call__(c, *a): return c(*a)\n  def __prepare__(n, b): return M\n"
        "class A(metaclass=M): pass\nclass B(A, metaclass=lambda *a: B): pass\nclass C(C if 1 else A): pass\nclass D(*[D] * 10**6): pass\n"
        "class G(type('G', (G,), {})): pass\nclass H:\n  def __mro_entries__(self, b): return (self,)\nclass I(H(), H(), I): pass\n"
        "class P:\n  @property\n  def p(self): return self.p\n  @p.setter\n  def p(self, v): self.p = self\n  def __get__(self, *a): return self.p\n  q = property(lambda s: s.q)\n"
        "A(); B(); C(); D(); G(); P().p.q.p = 1\nsetattr(P, 'p', P()); P.p.p\nP.__init_subclass__ = P\n"
    )


@script
def modules_that_hold_each_other() -> str:
    return (
        "class A(nn.Module):\n  def __init__(self, b=None):\n    super().__init__()\n    self.b = b or A(self)\n    self.c = nn.ModuleList([self, self.b] * 1000)\n"
        "  def forward(self, x):\n    for m in self.c: x = m(x)\n    for m in self.modules(): x = m(x)\n    return self(self.b(x))\n"
        "a = A()\na(torch.zeros(2))\na.b.b.b.b.c[3](torch.zeros(2)).view(3)\nfor n, p in a.named_parameters(): p.view(3)\n"
        "m = nn.Sequential(*[nn.Linear(1, 2) for _ in range(10**5)])\nm(torch.zeros(3, 1))\nm = nn.ParameterDict({str(n): torch.zeros(n) for n in range(10**8)})\n"
    )


@script
def data_of_itself() -> str:
    return (
        "from torch.utils.data import *\nclass D(Dataset):\n  def __getitem__(self, i): return self, self[i], {'x': self[i + 1], **self[i]}\n  def __len__(self): return len(self) + 1\n"
        "def collate(b): return collate([collate(x) for x in b])\nd = DataLoader(DataLoader(D(), collate_fn=collate), batch_size=10**9, collate_fn=collate, sampler=DataLoader(D()))\n"
        "for a, b, c in d:\n  for e in a:\n    for f in d:\n      f.view(3)\nConcatDataset([D()] * 10**7)[5]\nrandom_split(D(), [10**9] * 1000)\nSubset(Subset(D(), range(10**12)), range(10**12))[3]\n"
        "def gen():\n  while True: yield gen()\nfor g in gen():\n  for h in g: list(h)\n"
    )


@script
def wrappers_of_wrappers() -> str:
    return (
        "import functools\ndef w(f):\n  @functools.wraps(f)\n  def g(*a, **k): return w(g)(*a, **k)\n  return w(w(g)) if a else g\n"
        "@w\n@w\n@functools.lru_cache(None)\n@torch.compile\n@torch.no_grad()\n@functools.partial\ndef f(x): return f(x.view(3))\nf(torch.zeros(2))\n"
        "g = functools.reduce(lambda a, b: functools.partial(a, b), range(10**6), f)\ng(1)\nh = torch.compile(torch.compile(f))\nfor _ in range(2000): h = torch.compile(w(h))\nh(torch.zeros(2))\n"
        "fs = []\nfor i in range(10**5): fs.append(lambda: fs[i - 1]())\nfs[-1]()\n"
    )


# Imports and settings


@folder
def stars_in_circles() -> Mapping[str, Content]:
    count = 30
    files: dict[str, Content] = {
        f"m{n}.py": "".join(f"from m{other} import *\n" for other in range(count) if other != n)
        + f"import m{(n + 1) % count}\n__all__ = [*m{(n + 1) % count}.__all__, *dir(), 'f{n}'] + __all__\ndef f{n}(x): return f{(n + 1) % count}(x)\n"
        for n in range(count)
    }
    return {**files, "a.py": "from m0 import *\n" + HEAD + "f0(torch.zeros(2)).view(3)\n" + LAST}


@folder
def packages_named_as_libraries() -> Mapping[str, Content]:
    return {
        "torch/__init__.py": "from torch import *\nfrom . import nn\nfrom torch.torch import torch\nzeros = torch\n",
        "torch/nn.py": "from torch import nn\nclass Module(nn.Module): pass\nclass Linear(Module): pass\n",
        "transformers.py": "from transformers import *\nimport transformers.transformers\ndef __getattr__(name): return __getattr__(name)\n",
        "typing.py": "from typing import *\n",
        "a.py": HEAD
        + "from transformers import Trainer\nTrainer(Trainer).train()\nnn.Linear(2, 3)(torch.zeros(3))\n"
        + LAST,
    }


@folder
def relative_imports_of_nothing() -> Mapping[str, Content]:
    return {
        "p/__init__.py": "from . import *\nfrom .. import p\nfrom ...... import *\nfrom .q import *\n__path__ = []\n",
        "p/q/__init__.py": "from . import q\nfrom ..q import q as q\nfrom .q.q.q import q\n",
        "p/q/q/__init__.py": "from ...p.q.q import *\nclass q(q): pass\n",
        "a.py": HEAD
        + "import p.q.q.q.q as q\nfrom p import *\nfrom "
        + "." * 200
        + "a import *\nq.q.q.q(torch.zeros(2)).view(3)\n"
        + LAST,
    }


@folder
def chain_of_modules() -> Mapping[str, Content]:
    files: dict[str, Content] = {
        f"m{n}.py": f"from m{n + 1} import f{n + 1}, A{n + 1}\nclass A{n}(A{n + 1}): pass\ndef f{n}(x): return f{n + 1}(x)\n"
        for n in range(300)
    }
    return {
        **files,
        "m300.py": HEAD + "class A300(nn.Module): pass\ndef f300(x): return x.view(3)\n",
        "a.py": HEAD + "from m0 import f0, A0\nA0()(f0(torch.zeros(2)))\n",
    }


@folder
def settings_that_extend_themselves() -> Mapping[str, Content]:
    return {
        "pyproject.toml": "[tool.shapefix]\nextend = 'pyproject.toml'\ninclude = ['"
        + "**/" * 400
        + "*.py']\n",
        "p/pyproject.toml": "[tool.shapefix]\nextend = '../pyproject.toml'\n",
        "p/a.py": HEAD + LAST,
        "a.py": HEAD + LAST,
    }


@folder
def settings_of_other_kinds() -> Mapping[str, Content]:
    return {
        "pyproject.toml": "[tool.shapefix]\nselect = ['"
        + "SF1" * 9_000
        + "', '', ' ', 'sf', '\\u202e', '*']\n[tool.shapefix.per-file-ignores]\n"
        + "".join(f"'{'{' * 40}a,b{'}' * 40}{n}' = ['SF{n}']\n" for n in range(400)),
        "setup.cfg": "[metadata\n" * 900,
        "requirements.txt": "-r requirements.txt\ntorch @ file:///"
        + "a/" * 9_000
        + "\n"
        + "torch>="
        + ".".join("9" * 900)
        + "\n",
        "a.py": HEAD + LAST,
    }


@folder
def encodings() -> Mapping[str, Content]:
    code = HEAD + LAST
    files: dict[str, Content] = {
        "utf8_twice.py": b"\xef\xbb\xbf\xef\xbb\xbf# coding: utf-8\n" + code.encode(),
        "mark_and_other.py": b"\xef\xbb\xbf# coding: latin-1\n" + code.encode(),
        "second_row.py": b"#!/usr/bin/python\n# vim: set fileencoding=latin-1 :\n\xe9 = 1\n" + code.encode(),
        "third_row.py": b"\n\n# coding: latin-1\n\xe9 = 1\n" + code.encode(),
        "wide.py": code.encode("utf-16"),
        "wide_without_mark.py": code.encode("utf-16-le"),
        "widest.py": code.encode("utf-32"),
        "nul.py": b"\x00" * 90_000 + code.encode(),
        "eof.py": code.encode() + b"\x1a" + code.encode(),
        "returns.py": code.replace("\n", "\r").encode(),
        "rows.py": code.replace("\n", "\u2028").encode(),
        "surrogates.py": (code + "x = '\ud800\udfff'\n").encode("utf-8", "surrogatepass"),
        "overlong.py": b"# \xc0\xaf \xf8\x88\x80\x80\x80\n" + code.encode(),
    }
    for name in (
        "utf-7",
        "rot13",
        "zlib",
        "idna",
        "undefined",
        "mbcs",
        "unicode_escape",
        "punycode",
        "cp037",
        "hex",
        "x" * 3_000,
        "\x1b[31m",
        "utf_8_sig",
        "big5hkscs",
        "unicode-escape-dos",
        "latin-1-unix",
        ".",
    ):
        files[f"named_{len(files)}.py"] = f"# -*- coding: {name} -*-\n{code}"
    return files


@folder
def storm_of_suppressions() -> Mapping[str, Content]:
    codes = ",".join(f"SF{n}" for n in range(100, 160))
    names = ",".join(f"rule-{n}" for n in range(900))
    return {
        "a.py": HEAD
        + "x = torch.zeros(2)\n"
        + f"x.view(3)  # noqa: {codes}\n" * 900
        + f"# shapefix: ignore[{names}]\n" * 300
        + "x.view(3)  # noqa:"
        + " ," * 9_000
        + "\n# noqa" * 3_000
        + "\nx.view(3)  # shapefix: ignore["
        + "[" * 9_000
        + "\ns = '''\n# shapefix: skip-file\n# noqa\n'''\n"
        + LAST,
        "b.py": "# shapefix: skip-file\n" * 3_000 + HEAD + LAST,
        "c.py": HEAD + "x = (  # noqa\n" + "1,  # noqa: SF101\n" * 3_000 + ")\n" + LAST,
    }


# Notebooks


@folder
def outputs_of_ten_megabytes() -> Mapping[str, Content]:
    image = {
        "output_type": "display_data",
        "data": {"image/png": "A" * 10_000_000, "text/plain": ["x\n"] * 1_000},
    }
    error = {
        "output_type": "error",
        "ename": "RuntimeError",
        "evalue": "view size",
        "traceback": ["\x1b[31m" * 90_000, None, 5],
    }
    stream = {"output_type": "stream", "name": "stdout", "text": ["x" * 1_000 + "\n"] * 1_000}
    return {"a.ipynb": notebook([cell(HEAD, [image, stream]), cell(LAST, [error, None, 7])])}


@folder
def cells_of_every_kind() -> Mapping[str, Content]:
    return {
        "a.ipynb": notebook(
            [
                cell("%time " * 900 + "x"),
                cell("!" * 9_000),
                cell("?" * 9_000 + "x"),
                cell("%%" * 900),
                cell("%%time\n" * 900 + HEAD + LAST),
                cell("def f(:\n"),
                cell(["import torch\n", LAST]),
            ]
        ),
        "b.ipynb": notebook(
            [
                1,
                None,
                "x",
                [],
                {"cell_type": 5, "source": {}},
                {"cell_type": "code"},
                cell([1, None, ["x"]]),
                cell(7),
            ]
        ),
        "c.ipynb": notebook({"a": 1}),
        "d.ipynb": "NaN",
        "e.ipynb": "1" * 5_000,
        "f.ipynb": '{"cells":' + "[" * 90_000,
        "g.ipynb": '{"cells":[],"x":' + '{"a":' * 40_000 + "1" + "}" * 40_001,
        "h.ipynb": b"\xff\xfe" + notebook([cell(HEAD + LAST)]).encode("utf-16-le"),
        "i.ipynb": notebook([cell("x = '\ud800'\n" + HEAD + LAST)]),
        "j.ipynb": notebook([cell("def f(:\n") for _ in range(400)] + [cell(HEAD + LAST)]),
        "k.ipynb": notebook([cell(HEAD + LAST)], metadata={"kernelspec": [1], "language_info": {"name": {}}}),
    }


# Values


@script
def sizes_beyond_all() -> str:
    return (
        "x = torch.zeros(10**100, -5, 2**63)\nx.view(-1, 10**200)\ntorch.zeros(0, 0, 0).view(-1, 0)\nx.permute(*[0] * 1000)\nx.repeat(*[10**9] * 1000)\nx.expand(*[10**30] * 500)\n"
        "torch.arange(0, 10**30, 1e-300)\nnn.Conv2d(10**50, -1, 0, stride=0)(torch.zeros(1, 2, 3, 4))\nnn.Linear(1.5, float('nan'))\ntorch.zeros(2)[10**50:, ::-10**50]\ntorch.zeros(2).unfold(0, 0, 0)\n"
        "F.pad(torch.zeros(2), [10**30] * 1000)\ntorch.split(torch.zeros(10**9), 1)\ntorch.zeros(10**6).chunk(10**6)\ntorch.unbind(torch.zeros(10**7, 1))\nnn.ModuleList([nn.Linear(1, 2)] * 10**7)\n"
        "torch.cat([torch.zeros(2)] * 10**7)\ntorch.meshgrid(*[torch.zeros(5)] * 1000)\ntorch.combinations(torch.zeros(10**9), r=10**6)\n"
    )


@script
def texts_beyond_all() -> str:
    return (
        "s = '%999999999999d' % 1\nt = '{:>99999999999}'.format(1)\nu = f'{1:99999999999}'\nv = 'a' * 10**10\nw = b'a' * 10**11\ny = 10**10**10\nq = 'a'.ljust(10**10)\nm = 'ab'.replace('', 'x' * 10**9)\n"
        "a = 'a' * 1000\nfor i in range(40): a = a + a\nb = a.split('a')\nc = a.join([a] * 1000)\nd = list(range(10**12))\ne = sum(range(10**12))\nk = eval('1+' * 10000 + '1')\nl = int('9' * 100000)\n"
        "import itertools, math\nr = list(zip(range(10**12), range(10**12)))\nn = list(itertools.product(range(100), repeat=100))\no = list(itertools.count())\np = math.factorial(10**8)\nu = pow(3, 10**10)\n"
    )


@script
def values_of_themselves() -> str:
    return (
        "x = torch.zeros(2)\nfor i in range(10**6): x = x.to(x.to(x.dtype).device).to(x)\nx = [x]\nx.append(x)\nx[0] = x\ntorch.tensor(x)\ntorch.stack(x)\nprint(x == x, hash(tuple(x)))\n"
        "d = {}\nd['d'] = d\nd.update(d)\nc = d | d\nnn.ModuleDict(d)\nnn.Sequential(*x)\nm = nn.Sequential()\nm.append(m)\nm(torch.zeros(2, 3))\nlist(m.modules()); m.state_dict(); m.to('cuda')\n"
        "while True:\n  x.append([x, d, c])\n  d[len(x)] = d.copy()\n  if x == d: break\n"
    )


@script
def methods_of_themselves() -> str:
    return (
        "class A(nn.Module):\n  def __getattr__(self, n): return getattr(self, n + n)\n  def __call__(self, *a): return self(self, *a, *a)\n  def __getitem__(self, i): return self[i][i]\n"
        "  def __iter__(self): return iter(self)\n  def __len__(self): return len(self)\n  def __bool__(self): return bool(self)\n  def __eq__(self, o): return o == self\n  def __hash__(self): return hash(self)\n"
        "  def __add__(self, o): return self + o + o\n  def __enter__(self):\n    with self: return self\n  def __init_subclass__(c):\n    class D(c): pass\n  def __new__(c): return c()\n"
        "a = A()\na.x; a(1); a[0]; list(a); len(a); bool(a); a == a; a + a\n{a: 1}\nfor _ in a: pass\nwith a: pass\n"
    )


@folder
def pipes_and_devices() -> Mapping[str, Content]:
    return {
        "a.py": "import m, n\nfrom m import *\nfrom n import q\n" + HEAD + LAST,
        "n/x": "",
        "requirements.txt/x": "",
        ".gitignore/x": "",
        "pyproject.toml/x": "",
    }


def spoil(name: str, at: Path) -> None:
    """Add to a folder of this name what no text describes: pipes, links, and names in bytes."""
    if name == "pipes_and_devices":
        os.mkfifo(at / "m.py")
        os.mkfifo(at / "f.py")
        (at / "n" / "__init__.py").symlink_to("/dev/zero")
        (at / "z.py").symlink_to("/dev/zero")
        (at / "loop").symlink_to(".")
        (at / "x\x1b[31m\n\u202ey.py").write_text(HEAD + LAST, encoding="utf-8")
        Path(os.fsdecode(os.fsencode(at) + b"/\xff\xfe.py")).write_text(HEAD + LAST, encoding="utf-8")
