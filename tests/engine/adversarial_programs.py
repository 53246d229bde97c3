"""Programs made to explode an analysis: each a function of a size to a script, or to a folder of files.

A program is registered with two sizes: a test of every change runs the small one, a long test both.
"""

# Long lines are those of the programs.
# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

Source = str | Mapping[str, str]
"""A script, or the files of a project with its script `main.py`."""
HEAD = "import torch\nimport torch.nn as nn\n"


@dataclass(frozen=True)
class AdversarialProgram:
    """A text by its size; is_refused allows the answer that the file is nested too deeply."""

    name: str
    write: Callable[[int], Source]
    small: int
    large: int
    is_refused: bool = False

    def files(self, size: int) -> Mapping[str, str]:
        """Return the files of the program by name; the script is `main.py`."""
        source = self.write(size)
        return {"main.py": source} if isinstance(source, str) else source


PROGRAMS: dict[str, AdversarialProgram] = {}


def program(
    small: int, large: int, *, is_refused: bool = False
) -> Callable[[Callable[[int], Source]], Callable[[int], Source]]:
    """Register a program with the sizes of its short and its long run."""

    def register(write: Callable[[int], Source]) -> Callable[[int], Source]:
        PROGRAMS[write.__name__] = AdversarialProgram(write.__name__, write, small, large, is_refused)
        return write

    return register


# Values that grow exponentially with the text, because their parts are shared.


@program(20, 60)
def shared_list_to_tensor(size: int) -> str:
    return HEAD + "x = [1, 2]\n" + "x = [x, x]\n" * size + "y = torch.tensor(x)\nz = y.view(-1)\n"


@program(20, 60)
def shared_tuple_to_tensor(size: int) -> str:
    return HEAD + "x = (1, 2)\n" + "x = (x, x, x)\n" * size + "y = torch.tensor(x)\n"


@program(20, 60)
def shared_tuples_compared(size: int) -> str:
    return HEAD + "x = (n,)\n" + "x = (x, x, x)\n" * size + "y = x == x\nz = x != (x, x, x)\nw = x in (x,)\n"


@program(20, 60)
def equal_tuples_compared(size: int) -> str:
    return (
        HEAD
        + "x = (1,)\ny = (1,)\n"
        + "x = (x, x)\ny = (y, y)\n" * size
        + "if x == y:\n    torch.zeros(2).view(3)\n"
    )


@program(20, 60)
def shared_lists_joined(size: int) -> str:
    steps = "x = [x, x]\ny = [y, y]\n" * size
    return HEAD + f"x = [torch.zeros(2)]\ny = [torch.zeros(3)]\n{steps}z = x if coin() else y\nprint(z)\n"


@program(20, 60)
def shared_dictionaries_joined(size: int) -> str:
    steps = "x = {'a': x, 'b': x}\ny = {'a': y, 'b': y}\n" * size
    return HEAD + f"x = {{'a': 1}}\ny = {{'a': 2}}\n{steps}if coin():\n    x = y\nprint(x, sorted(x))\n"


@program(20, 60)
def shared_values_revealed(size: int) -> str:
    return HEAD + "x = torch.zeros(2)\n" + "x = (x, [x], {'a': x})\n" * size + "reveal(x)\n"


@program(20, 60)
def shared_values_collated(size: int) -> str:
    return (
        HEAD
        + "from torch.utils.data import DataLoader, default_collate\nx = {'a': torch.zeros(2)}\n"
        + "x = {'a': x, 'b': [x, x]}\n" * size
        + "b = default_collate([x, x])\nfor c in DataLoader([x] * 8, batch_size=4):\n    print(c)\n"
    )


@program(20, 60)
def shared_values_in_a_loop(size: int) -> str:
    steps = "    x = [x, x]\n    y = (y, y)\n" * size
    return HEAD + f"x = [torch.zeros(2)]\ny = x\nfor i in range(n):\n{steps}    print(x)\ntorch.stack(x)\n"


@program(20, 60)
def shared_values_in_calls(size: int) -> str:
    calls = [
        "print(x)",
        "torch.stack(x)",
        "torch.cat(x)",
        "len(x)",
        "sum(x)",
        "max(x)",
        "list(x)",
        "set(x)",
        "str(x)",
    ]
    calls += ["np.array(x)", "torch.as_tensor(x)", "x.copy()", "copy.deepcopy(x)", "list(zip(*x))", "f'{x}'"]
    calls += ["torch.zeros(x)", "torch.zeros(2).view(x)", "torch.nn.ModuleList(x)", "torch.nn.Sequential(*x)"]
    calls += [
        "sorted(x)",
        "dict(x)",
        "tuple(x)",
        "x.index(x)",
        "x + x",
        "x * 2",
        "torch.ones(3)[x]",
        "hash(x)",
    ]
    calls += [
        "torch.optim.Adam(x)",
        "torch.save(x)",
        "[*x, *x]",
        "x[0] == x[1]",
        "torch.utils.data.DataLoader(x)",
    ]
    head = HEAD + "import copy\nimport numpy as np\nx = [1.0, 2.0]\n" + "x = [x, x]\n" * size
    return head + "\n".join(f"v{n} = {call}" for n, call in enumerate(calls)) + "\n"


@program(20, 60)
def shared_modules(size: int) -> str:
    steps = "".join(f"m{n + 1} = nn.Sequential(m{n}, m{n})\n" for n in range(size))
    return (
        HEAD + f"m0 = nn.Linear(4, 4)\n{steps}y = m{size}(torch.zeros(2, 4))\ny.view(-1)\n"
        f"opt = torch.optim.Adam(m{size}.parameters())\nm{size}.to('cuda')\nm{size}.train()\n"
        f"for p in m{size}.parameters():\n    p.requires_grad = False\n"
    )


@program(10, 40)
def shared_module_classes(size: int) -> str:
    classes = "".join(
        f"class M{n + 1}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.a = M{n}()\n        self.b = M{n}()\n"
        f"    def forward(self, x):\n        return self.b(self.a(x))\n"
        for n in range(size)
    )
    return (
        HEAD
        + f"M0 = lambda: nn.Linear(4, 4)\n{classes}m = M{size}()\nm(torch.zeros(2, 4)).sum().backward()\n"
    )


# Classes


@program(24, 300)
def diamond_classes(size: int) -> str:
    classes = "".join(
        f"class A{n + 1}(A{n}, B{n}):\n    pass\nclass B{n + 1}(A{n}, B{n}):\n    pass\n" for n in range(size)
    )
    return HEAD + f"class A0:\n    pass\nclass B0:\n    pass\n{classes}a = A{size}()\na.x\na.y()\n"


@program(24, 300)
def diamond_classes_of_modules(size: int) -> str:
    classes = "".join(
        f"class A{n + 1}(A{n}, B{n}):\n    def f{n}(self):\n        return super().f{n}()\n"
        f"class B{n + 1}(A{n}, B{n}):\n    pass\n"
        for n in range(size)
    )
    return (
        HEAD
        + f"class A0(nn.Module):\n    pass\nclass B0(nn.Module):\n    pass\n{classes}a = A{size}()\na(1)\n"
    )


@program(300, 1_500)
def tower_of_classes(size: int) -> str:
    classes = "".join(
        f"class A{n + 1}(A{n}):\n    def __init__(self):\n        super().__init__()\n" for n in range(size)
    )
    return HEAD + f"class A0(nn.Module):\n    pass\n{classes}a = A{size}()\na(1)\n"


@program(300, 1_500)
def many_bases(size: int) -> str:
    classes = "".join(f"class A{n}:\n    x{n} = 1\n" for n in range(size))
    bases = ", ".join(f"A{n}" for n in range(size))
    return (
        HEAD + f"{classes}class C({bases}):\n    pass\nc = C()\n" + "".join(f"c.x{n}\n" for n in range(size))
    )


@program(300, 3_000)
def many_methods(size: int) -> str:
    methods = "".join(f"    def f{n}(self, x):\n        self.a{n} = x.view(-1)\n" for n in range(size))
    return HEAD + f"class A(nn.Module):\n{methods}\na = A()\na.f0(torch.zeros(2, 3).t())\n"


# Large literals


@program(1_500, 60_000)
def list_of_lists(size: int) -> str:
    return HEAD + "x = torch.tensor([" + "[1,2,3]," * size + "])\nx.view(7)\nx.t().view(-1)\n"


@program(1_500, 100_000)
def list_of_lists_of_rows(size: int) -> str:
    return HEAD + "x = [\n" + "    [1, 2],\n" * size + "]\ny = torch.tensor(x)\ny.view(7)\n"


@program(5_000, 200_000)
def list_of_numbers(size: int) -> str:
    return HEAD + "x = [" + "1," * size + "]\ny = torch.tensor(x)\ny.view(7)\n"


@program(5_000, 200_000)
def tuple_of_numbers(size: int) -> str:
    return HEAD + "x = (" + "1," * size + ")\ny = torch.tensor(x)\nfor a in x:\n    print(a)\n"


@program(3_000, 100_000)
def list_of_floats(size: int) -> str:
    return HEAD + "x = [" + "-1.5e-3, " * size + "]\ny = torch.tensor(x)\ny.view(7)\n"


@program(3_000, 80_000)
def list_of_strings(size: int) -> str:
    return HEAD + "x = [" + "'abc', " * size + "]\ny = len(x)\nfor z in x:\n    print(z)\n"


@program(1_500, 50_000)
def list_of_tuples(size: int) -> str:
    return HEAD + "x = [\n" + "    ('abc', 1),  # row\n" * size + "]\nfor a, b in x:\n    print(a)\n"


@program(1_500, 60_000)
def dictionary_of_numbers(size: int) -> str:
    return (
        HEAD
        + "x = {"
        + "".join(f"'k{n}': {n}, " for n in range(size))
        + "}\nfor k, v in x.items():\n    print(k)\n"
    )


@program(1_500, 60_000)
def dictionary_of_ints(size: int) -> str:
    return HEAD + "x = {" + "".join(f"{n}: 'v', " for n in range(size)) + "}\nprint(x[3], len(x))\n"


@program(500, 20_000)
def list_of_dictionaries(size: int) -> str:
    rows = "".join(f"    {{'text': 'row {n}', 'label': {n % 2}}},\n" for n in range(size))
    return (
        HEAD + f"from torch.utils.data import DataLoader\nx = [\n{rows}]\n"
        "for b in DataLoader(x, batch_size=4):\n    print(b['label'].view(7))\n"
    )


@program(500, 20_000)
def dictionary_of_lists(size: int) -> str:
    rows = "".join(f"    'k{n}': [{n}, 2, 3],\n" for n in range(size))
    return HEAD + f"x = {{\n{rows}}}\ny = {{k: torch.tensor(v) for k, v in x.items()}}\n"


@program(1_000, 40_000)
def list_of_names(size: int) -> str:
    return HEAD + "a = torch.zeros(3)\nx = [" + "a, " * size + "]\ny = torch.stack(x)\ny.view(7)\n"


@program(500, 15_000)
def list_of_calls(size: int) -> str:
    return HEAD + "x = [" + "torch.zeros(3), " * size + "]\ny = torch.stack(x)\ny.view(7)\n"


@program(500, 20_000)
def set_of_numbers(size: int) -> str:
    return HEAD + "x = {" + "".join(f"{n}, " for n in range(size)) + "}\nprint(5 in x)\n"


@program(500, 20_000)
def call_of_many_arguments(size: int) -> str:
    return HEAD + "torch.zeros(" + "1, " * size + ")\nf(" + "1, " * size + ")\n"


@program(250, 5_000)
def call_of_many_keywords(size: int) -> str:
    return HEAD + "def f(**k):\n    return k\nf(" + ", ".join(f"k{n}={n}" for n in range(size)) + ")\n"


@program(128, 9_000)
def repeated_rows(size: int) -> str:
    return (
        HEAD + "import numpy\n"
        f"x = numpy.array([[1] * 128] * (10**4) + [[2] * {size}] * 128)\ny = torch.tensor([[0] * {size}] * 10**4)\n"
        f"z = torch.tensor([[[1.0] * {size}] * {size}] * {size})\nz.view(7)\n"
    )


@program(20, 60)
def repeated_repetitions(size: int) -> str:
    return HEAD + "x = [1, 2]\n" + "x = [x] * 5000\n" * size + "y = torch.tensor(x)\n"


@program(1, 30)
def concatenated_lists(size: int) -> str:
    return (
        HEAD + "x = [0] * 9000\n" + "y = [1] * 900 + x + [x]\nz = list(y)\nw = y[::2]\nw = y[::-1]\n" * size
    )


@program(40, 1_200)
def lists_that_grow(size: int) -> str:
    return (
        HEAD
        + "x = []\n"
        + "x.append([0] * 5000)\nx.extend(x[0])\nx += [1] * 5000\n" * size
        + "torch.tensor(x)\n"
    )


@program(1_000, 6_000)
def appended_one_by_one(size: int) -> str:
    return HEAD + "x = []\n" + "".join(f"x.append({n})\n" for n in range(size)) + "y = torch.tensor(x)\n"


@program(1_000, 6_000)
def entered_one_by_one(size: int) -> str:
    return HEAD + "x = {}\n" + "".join(f"x['k{n}'] = {n}\n" for n in range(size)) + "y = dict(x, a=1)\n"


@program(300, 3_000)
def copied_dictionaries(size: int) -> str:
    first = "x = {" + ", ".join(f"'k{n}': {n}" for n in range(size)) + "}\n"
    return HEAD + first + "".join(f"x = {{**x, 'n{n}': 1}}\ny{n} = dict(x)\n" for n in range(size))


# Many findings


@program(300, 20_000)
def findings_on_one_line(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "x.unsqueeze(0);" * size + "\n"


@program(300, 8_000)
def findings_on_many_lines(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "x.unsqueeze(0)\n" * size


@program(200, 6_000)
def mismatches_on_many_lines(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "try:\n    x.view(7)\nexcept E:\n    pass\n" * size


@program(200, 5_000)
def findings_in_a_called_function(size: int) -> str:
    return (
        HEAD + "def f(x):\n    x.unsqueeze(0)\n    return x.t().view(-1)\n" + "f(torch.zeros(2, 3))\n" * size
    )


@program(200, 3_000)
def functions_with_findings(size: int) -> str:
    return HEAD + "".join(
        f"def f{n}(x: torch.Tensor):\n    y = torch.zeros(2, 3)\n    y.unsqueeze(0)\n    return y.t().view(-1)\n"
        for n in range(size)
    )


@program(200, 5_000)
def revealed_many_times(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "reveal(x)\n" * size


@program(200, 5_000)
def suppressed_many_times(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "x.unsqueeze(0)  # noqa: SF101, SF102, SF999\n" * size


@program(200, 5_000)
def layouts_read_many_times(size: int) -> str:
    return HEAD + "x = torch.zeros(2, 3)\n" + "x = x.t()\n" * size + "x.view(-1)\n"


@program(200, 4_000)
def losses_added_up(size: int) -> str:
    return (
        HEAD + "m = nn.Linear(2, 2)\nopt = torch.optim.SGD(m.parameters())\ntotal = 0\n"
        "for x in data:\n    opt.zero_grad()\n    y = m(x)\n"
        + "    loss = y.sum()\n    total += loss\n" * size
        + "    loss.backward()\n    opt.step()\n"
    )


@program(100, 2_000)
def layers_of_a_model(size: int) -> str:
    layers = "".join(f"        self.l{n} = nn.Linear(4, 4)\n" for n in range(size))
    calls = "".join(f"        x = self.l{n}(x)\n" for n in range(size))
    return (
        HEAD + f"class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n{layers}"
        f"    def forward(self, x):\n{calls}        return x\nm = M()\nopt = torch.optim.Adam(m.parameters())\n"
        "for x in data:\n    opt.zero_grad()\n    m(torch.zeros(3, 4)).sum().backward()\n    opt.step()\n"
    )


# Long and deep texts


@program(600, 1_490, is_refused=True)
def chain_of_sums(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = b" + "+b" * size + "\n"


@program(600, 1_490, is_refused=True)
def chain_of_tensor_sums(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = a" + " + a" * size + "\nx.view(7)\n"


@program(300, 1_490, is_refused=True)
def chain_of_choices(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "a if c else " * size + "a\n"


@program(300, 1_490, is_refused=True)
def chain_of_conditions(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "c and a or " * (size // 2) + "a\n"


@program(300, 1_490, is_refused=True)
def chain_of_methods(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = a" + ".t()" * (size // 2) + "\nx.view(7)\n"


@program(300, 1_490, is_refused=True)
def chain_of_attributes(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = z" + ".t" * size + "\n"


@program(300, 1_490, is_refused=True)
def chain_of_subscripts(size: int) -> str:
    return (
        HEAD
        + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = z"
        + "[0]" * (size // 2)
        + "\ny = a"
        + "[None]" * 700
    )


@program(300, 1_490, is_refused=True)
def chain_of_negations(size: int) -> str:
    return (
        HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "not " * size + "a\ny = " + "-" * size + "a\n"
    )


@program(300, 1_490, is_refused=True)
def chain_of_lambdas(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "lambda: " * size + "a\nx()()\n"


@program(300, 1_490, is_refused=True)
def chain_of_comparisons(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = a" + " < a" * size * 10 + "\n"


@program(300, 1_490, is_refused=True)
def ladder_of_conditions(size: int) -> str:
    return (
        HEAD
        + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nif c == 0:\n    pass\n"
        + "".join(f"elif c == {n}:\n    a = torch.zeros({n + 1})\n" for n in range(size))
    )


@program(90, 198, is_refused=True)
def parentheses(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "(" * size + "a" + ")" * size + "\n"


@program(90, 198, is_refused=True)
def brackets(size: int) -> str:
    return (
        HEAD
        + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = "
        + "[" * size
        + "a"
        + "]" * size
        + "\ntorch.tensor(x)\n"
    )


@program(90, 198, is_refused=True)
def nested_calls(size: int) -> str:
    return (
        HEAD + "a = torch.zeros(2, 3)\na.unsqueeze(0)\nx = " + "torch.relu(" * size + "a" + ")" * size + "\n"
    )


@program(90, 198, is_refused=True)
def nested_unknown_calls(size: int) -> str:
    return HEAD + "x = " + "f(a, " * size + "a" + ")" * size + "\nx.view(torch.zeros(3))\n"


@program(30, 90, is_refused=True)
def nested_dictionaries(size: int) -> str:
    return HEAD + "x = " + "{'a': [" * size + "1" + "]}" * size + "\ntorch.tensor(x)\nprint(x)\nreveal(x)\n"


@program(30, 90, is_refused=True)
def nested_comprehensions(size: int) -> str:
    return HEAD + "x = " + "[" * size + "a" + " for a in range(3)]" * size + "\ntorch.tensor(x)\n"


@program(10, 60, is_refused=True)
def comprehension_of_many_loops(size: int) -> str:
    return HEAD + "x = [1" + "".join(f" for i{n} in range(8)" for n in range(size)) + "]\ntorch.tensor(x)\n"


@program(10, 60, is_refused=True)
def comprehension_of_dependent_loops(size: int) -> str:
    loops = "".join(f" for i{n + 1} in [i{n}, i{n}] if i{n}" for n in range(size))
    return HEAD + f"x = [i{size} for i0 in [1, 2]{loops}]\ny = {{i{size}: 1 for i0 in d{loops}}}\n"


@program(30, 95, is_refused=True)
def nested_fields(size: int) -> str:
    return (
        HEAD
        + "x = f'"
        + "{a:" * 1
        + "{b}" * 1
        + "}" * 1
        + "'\ny = f\"{"
        + "(" * size
        + "a"
        + ")" * size
        + '}"\n'
    )


@program(300, 20_000)
def string_of_many_fields(size: int) -> str:
    return HEAD + "a = torch.zeros(2, 3)\nx = f'" + "{a} {b:.2f} " * size + "'\nprint(x)\n"


@program(100_000, 900_000)
def huge_string(size: int) -> str:
    return (
        HEAD
        + "x = '"
        + "a" * size
        + "'\ny = '''"
        + "a b\n" * 1_000
        + "'''\nz = x + x\ntorch.zeros(2).view(3)\n"
    )


@program(5_000, 400_000)
def string_of_escapes(size: int) -> str:
    return HEAD + "x = '" + "\\n" * size + "'\ntorch.zeros(2).view(3)\n"


@program(300, 1_490, is_refused=True)
def joined_strings(size: int) -> str:
    return HEAD + "x = (" + "'a' f'{b}'\n" * (size // 2) + ")\ntorch.zeros(2).view(3)\n"


@program(5_000, 400_000)
def comments(size: int) -> str:
    return HEAD + "# a\n" * (size // 2) + "x = 1  #" + " a" * (size // 2) + "\n" + "torch.zeros(2).view(3)\n"


@program(5_000, 400_000)
def empty_lines(size: int) -> str:
    return HEAD + "\n" * size + "x = (\n" + "\n" * (size // 2) + "1)\ntorch.zeros(2).view(3)\n"


@program(200, 8_000)
def decorators(size: int) -> str:
    return HEAD + "@decorator\n" * size + "def f(x):\n    return x\nf(torch.zeros(2)).view(3)\n"


@program(200, 1_000)
def contexts_in_decorators(size: int) -> str:
    return HEAD + "@torch.no_grad()\n" * size + "def f(x):\n    return x\nf(torch.zeros(2)).view(3)\n"


@program(200, 3_000)
def contexts(size: int) -> str:
    return (
        HEAD
        + "with "
        + ", ".join(f"open(a) as f{n}" for n in range(size))
        + ":\n    torch.zeros(2).view(3)\n"
    )


@program(60, 99)
def nested_blocks(size: int) -> str:
    kinds = ["if coin():", "for i in y:", "while coin():", "with a:", "try:", "if a is None:"]
    text, ends = HEAD + "x = torch.zeros(2)\n", []
    for depth in range(size):
        kind = kinds[depth % len(kinds)]
        text += " " * depth + kind + "\n"
        if kind == "try:":
            ends.append(" " * depth + "except E:\n" + " " * depth + " x = 1\n")
    return text + " " * size + "x = x + 1\n" + "".join(reversed(ends)) + "x.view(3)\n"


@program(10, 95)
def nested_functions(size: int) -> str:
    text = HEAD
    for depth in range(size):
        text += " " * depth + f"def f{depth}(a{depth}):\n" + " " * depth + f" x{depth} = torch.zeros(2)\n"
    return text + " " * size + "return a0.view(3)\n"


@program(10, 95)
def nested_classes(size: int) -> str:
    text = HEAD
    for depth in range(size):
        text += " " * depth + f"class A{depth}(nn.Module):\n" + " " * depth + " def f(self): return self.x\n"
    return text


@program(10, 90)
def nested_loops(size: int) -> str:
    loops = "".join(" " * n + f"for i{n} in range(8):\n" for n in range(size))
    return (
        HEAD
        + f"x = torch.zeros(2)\ny = []\n{loops}"
        + " " * size
        + "x = x + y\n"
        + " " * size
        + "y.append(x)\nx\n"
    )


@program(10, 90)
def nested_loops_of_unknowns(size: int) -> str:
    loops = "".join(" " * n + f"for i{n} in data{n}:\n" + " " * (n + 1) + f"y{n} = x\n" for n in range(size))
    return HEAD + f"x = torch.zeros(2)\n{loops}" + " " * size + "x = x + y0\nx\n"


@program(10, 90)
def nested_loops_with_breaks(size: int) -> str:
    loops = "".join(
        " " * n + f"for i{n} in range(8):\n" + " " * (n + 1) + f"if i{n} > k:\n" + " " * (n + 2) + "break\n"
        for n in range(size)
    )
    return HEAD + f"x = torch.zeros(2)\n{loops}" + " " * size + "x = x + 1\nx\n"


@program(10, 90)
def nested_while_loops(size: int) -> str:
    loops = "".join(
        " " * n + f"while i{n} < k:\n" + " " * (n + 1) + f"i{n} += 1\n" + " " * (n + 1) + f"z.a{n} = i{n}\n"
        for n in range(size)
    )
    return HEAD + f"class Z: pass\nz = Z()\nx = torch.zeros(2)\n{loops}" + " " * size + "x = x + 1\nx\n"


@program(8, 60)
def loops_through_calls(size: int) -> str:
    functions = "".join(
        f"def f{n}(z):\n    for i in z:\n        z.a{n} = i\n        f{n + 1}(z)\n        f{n + 1}(z.a{n})\n"
        for n in range(size)
    )
    return HEAD + f"{functions}def f{size}(z):\n    z.b = torch.zeros(2)\nf0(torch.zeros(9, 9, 9))\n"


@program(10, 90)
def nested_tries(size: int) -> str:
    text = HEAD + "x = torch.zeros(2)\n"
    for depth in range(size):
        text += " " * depth + "try:\n" + " " * depth + f" x = f{depth}(x)\n"
    text += " " * size + "x.view(3)\n"
    for depth in reversed(range(size)):
        text += " " * depth + "except (E, ValueError) as e:\n" + " " * depth + " x = torch.zeros(3)\n"
        text += (
            " " * depth
            + "else:\n"
            + " " * depth
            + " y = x\n"
            + " " * depth
            + "finally:\n"
            + " " * depth
            + " y = 1\n"
        )
    return text


@program(50, 1_200)
def branches_in_sequence(size: int) -> str:
    return (
        HEAD
        + "x = torch.zeros(2)\ny = []\n"
        + "".join(
            f"if c{n}:\n    x = torch.zeros({n + 1})\n    y = [y]\nelse:\n    y = [y, y]\n"
            for n in range(size)
        )
    )


@program(50, 1_200)
def branches_that_join_lists(size: int) -> str:
    return (
        HEAD
        + "a, b = [1], [2]\n"
        + "".join(
            f"if c{n}:\n    a = b\nif d{n}:\n    b = a\nif e{n}:\n    b = [*a, *b]\n" for n in range(size)
        )
        + "a.append(3)\ntorch.tensor(a)\n"
    )


@program(20, 400)
def returns_in_branches(size: int) -> str:
    branches = "".join(f"    if x == {n}:\n        return [x, y, {n}]\n    y = [y]\n" for n in range(size))
    return HEAD + f"def f(x, y):\n{branches}    return y\nz = f(q, [1])\ntorch.tensor(z)\n"


@program(500, 5_000)
def long_function(size: int) -> str:
    rows = "".join(f"    x{n} = torch.zeros({n + 1}, 3)\n" for n in range(size))
    return HEAD + f"def f(x):\n{rows}    return x\nf(torch.zeros(3))\n"


@program(500, 5_000)
def long_training_loop(size: int) -> str:
    rows = "".join(f"    x = x + {n}\n    y{n} = m(x)\n" for n in range(size))
    return HEAD + f"m = nn.Linear(4, 4)\nfor x in data:\n{rows}    loss = x.sum()\n    loss.backward()\n"


@program(500, 12_000)
def many_functions(size: int) -> str:
    return HEAD + "".join(f"def f{n}(x):\n    return x.view(-1)\n" for n in range(size))


@program(300, 5_000)
def many_functions_in_a_chain(size: int) -> str:
    return (
        HEAD
        + "".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 2}(x)\n" for n in range(size))
        + "f0(torch.ones(2))\n"
    )


@program(300, 10_000)
def many_imports(size: int) -> str:
    return (
        HEAD
        + "".join(f"from torch import a{n}\nimport b{n}.c\n" for n in range(size))
        + "torch.zeros(2).view(3)\n"
    )


@program(300, 5_000)
def many_arguments_of_a_parser(size: int) -> str:
    arguments = "".join(f"p.add_argument('--a{n}', type=int, default={n})\n" for n in range(size))
    return (
        HEAD
        + f"import argparse\np = argparse.ArgumentParser()\n{arguments}a = p.parse_args()\ntorch.zeros(a.a1)\n"
    )


@program(300, 5_000)
def many_parameters(size: int) -> str:
    parameters = ", ".join(f"a{n}=1" for n in range(size))
    return HEAD + f"def f({parameters}):\n    return torch.zeros(a1)\nf()\nf()\n"


@program(300, 8_000)
def many_targets(size: int) -> str:
    names = ", ".join(f"a{n}" for n in range(size))
    return (
        HEAD
        + f"{names} = range({size})\n[{names}] = x\n"
        + " = ".join(f"b{n}" for n in range(size))
        + " = 1\n"
    )


@program(300, 8_000)
def many_globals(size: int) -> str:
    names = ", ".join(f"a{n}" for n in range(size))
    return HEAD + f"def f():\n    global {names}\n    a0 = 1\nf()\ntorch.zeros(a0)\n"


@program(300, 5_000)
def many_cases(size: int) -> str:
    return (
        HEAD
        + "match x:\n"
        + "".join(f"    case [{n}, *y]:\n        z = torch.zeros({n})\n" for n in range(size))
    )


@program(100, 3_000)
def many_handlers(size: int) -> str:
    return (
        HEAD
        + "try:\n    torch.zeros(2).view(3)\n"
        + "".join(f"except E{n}:\n    x = torch.zeros({n})\n" for n in range(size))
    )


# Sizes


@program(26, 10_000)
def einsum_of_many_letters(size: int) -> str:
    letters = "".join(chr(0x61 + n % 26) for n in range(size))
    return (
        HEAD
        + f"torch.einsum('{letters}->{letters}', torch.zeros(2, 3))\ntorch.einsum('{letters},{letters}', x, y)\n"
    )


@program(100, 20_000)
def einops_of_many_letters(size: int) -> str:
    letters = " ".join(f"a{n}" for n in range(size))
    return (
        HEAD + "from einops import rearrange\n"
        f"rearrange(torch.zeros(2, 3), '{letters} -> ({letters})')\nrearrange(x, '{letters} -> ({letters})')\n"
    )


@program(60, 500, is_refused=True)
def product_of_names(size: int) -> str:
    return (
        HEAD
        + "def f(x, "
        + ", ".join(f"n{n}" for n in range(size))
        + "):\n    return x.view("
        + " * ".join(f"n{n}" for n in range(size))
        + ")\n"
    )


@program(60, 500, is_refused=True)
def product_of_sums(size: int) -> str:
    sums = " * ".join(f"(x.size({n}) + {n} + n)" for n in range(size))
    return HEAD + f"def f(x, n):\n    y = x.view({sums})\n    z = {sums}\n    return y.view(z, z // 3)\n"


@program(60, 500, is_refused=True)
def powers_of_sums(size: int) -> str:
    return (
        HEAD
        + "def f(a, b, c, d):\n    n = a + b + c + d\n"
        + "    n = n * (a + b + c + d) + n\n" * size
        + "    torch.zeros(n, n).view(n * n * 2)\n"
    )


@program(60, 500, is_refused=True)
def quotients_of_quotients(size: int) -> str:
    return (
        HEAD
        + "def f(a, b):\n    n = a\n"
        + "    n = (n + b) // 2 + n % 3\n" * size
        + "    torch.zeros(n, n).view(n * n * 2)\n"
    )


@program(60, 1_000)
def dimensions(size: int) -> str:
    sizes = ", ".join(["2"] * size)
    return (
        HEAD
        + f"x = torch.zeros({sizes})\ny = x.transpose(0, 1).reshape(-1)\nx.permute({sizes})\nx.view(3)\nx @ x\nx + y\n"
    )


@program(60, 500)
def symbolic_dimensions(size: int) -> str:
    names = ", ".join(f"n{n}" for n in range(size))
    return (
        HEAD + f"def f({names}):\n    x = torch.zeros({names})\n    y = x.transpose(0, 1).reshape(-1)\n"
        f"    x.flip(0).view({names})\n    x.t().view(3)\n    return (x @ x, x + y, torch.cat([x, x]).view(-1))\n"
    )


@program(60, 500)
def views_of_views(size: int) -> str:
    steps = "".join(f"    x = x.view(a, -1).t().reshape(-1, b)[:, {n % 7}:]\n" for n in range(size))
    return HEAD + f"def f(x, a, b):\n{steps}    return x.view(-1)\n"


@program(60, 500)
def concatenations(size: int) -> str:
    steps = "".join("    x = torch.cat([x, x, y], dim=0)\n    y = torch.stack([y, y])\n" for n in range(size))
    return (
        HEAD
        + f"def f(x: torch.Tensor, y: torch.Tensor):\n{steps}    return x.view(-1)\nf(torch.zeros(2, 3), torch.zeros(1, 3))\n"
    )


@program(60, 3_000)
def huge_numbers(size: int) -> str:
    digits = "9" * size
    return (
        HEAD
        + f"x = {digits}\ny = x * x * x\ntorch.zeros(x).view({digits}, -1)\nz = {digits}.{digits}e{digits}\n0x{digits}\n"
    )


@program(60, 3_000)
def nested_slices(size: int) -> str:
    return (
        HEAD
        + "x = torch.zeros(9, 9, 9)\n"
        + "x = x[..., :-1].transpose(0, 1)[None][0]\n" * size
        + "x.view(-1)\n"
    )


# Recursion


@program(10, 400)
def recursive_lambdas(size: int) -> str:
    lambdas = "".join(f"g{n} = lambda x: g{(n + 1) % size}(g{(n + 2) % size}(x))\n" for n in range(size))
    return (
        HEAD
        + f"Y = lambda f: (lambda x: f(lambda v: x(x)(v)))(lambda x: f(lambda v: x(x)(v)))\n{lambdas}"
        + (
            "fact = Y(lambda f: lambda n: 1 if n < 2 else n * f(n - 1))\ntorch.zeros(fact(9))\ng0(torch.zeros(2))\n"
        )
    )


@program(5, 12)
def tree_of_calls(size: int) -> str:
    functions = "".join(
        f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x) + f{n + 1}(x) + f{n + 1}(x)\n"
        for n in range(size)
    )
    return HEAD + f"{functions}def f{size}(x):\n    return x\nf0(torch.zeros(2))\n"


@program(5, 12)
def tree_of_large_calls(size: int) -> str:
    body = "    y = torch.cat([x, x]).view(-1, 2).t().reshape(-1)[: x.numel()]\n" * 20
    functions = "".join(f"def f{n}(x):\n{body}    return f{n + 1}(x) + f{n + 1}(y)\n" for n in range(size))
    return HEAD + f"{functions}def f{size}(x):\n    return x\nf0(torch.zeros(2, 2))\n"


@program(10, 200)
def closures(size: int) -> str:
    steps = "".join("    g = lambda x, g=g, h=g: g(x) + h(x)\n" for n in range(size))
    return HEAD + f"def f(g):\n{steps}    return g\nf(torch.relu)(torch.zeros(2))\n"


@program(10, 200)
def partials(size: int) -> str:
    steps = "g = functools.partial(lambda a, b, x: a(x) + b(x), g, g)\n" * size
    return HEAD + f"import functools\ng = torch.relu\n{steps}g(torch.zeros(2))\n"


@program(10, 500)
def values_that_contain_themselves(size: int) -> str:
    return (
        HEAD
        + "x = []\nd = {}\n"
        + "x.append(x)\nd['a'] = d\nd['b'] = x\nx += [d]\n" * size
        + (
            "torch.tensor(x)\nprint(x, d)\ny = x == x\nz = d == d\nreveal(x)\nreveal(d)\n"
            "if coin():\n    x = d\nfor a in x:\n    print(a)\ntorch.utils.data.default_collate([d, d])\n"
        )
    )


@program(10, 500)
def generators(size: int) -> str:
    functions = "".join(
        f"def g{n}():\n    yield from g{n + 1}()\n    for x in g{n + 1}():\n        yield x, x\n"
        for n in range(size)
    )
    return HEAD + f"{functions}def g{size}():\n    yield torch.zeros(2)\nfor x in g0():\n    torch.stack(x)\n"


# Projects


@program(20, 500)
def circle_of_imports(size: int) -> Mapping[str, str]:
    files = {
        f"m{n}.py": f"import torch\nfrom m{(n + 1) % size} import *\nfrom m{(n + 1) % size} import a{n}\nb{n} = a{n}\n"
        for n in range(size)
    }
    return {
        "main.py": HEAD
        + "from m0 import *\nfrom m1 import zz\nq = yy\ntorch.zeros(zz)\ntorch.zeros(2).view(3)\n",
        **files,
    }


@program(12, 60)
def star_imports(size: int) -> Mapping[str, str]:
    files = {
        f"m{n}.py": f"import torch\nfrom m{n + 1} import *\nfrom k{n + 1} import *\n" for n in range(size)
    } | {f"k{n}.py": f"import torch\nfrom k{n + 1} import *\nfrom m{n + 1} import *\n" for n in range(size)}
    names = "".join(f"torch.zeros(a{n})\n" for n in range(20))
    return {
        "main.py": HEAD + f"from m0 import *\n{names}",
        **files,
        f"m{size}.py": "x = 1\n",
        f"k{size}.py": "y = 1\n",
    }


@program(12, 60)
def diamonds_of_imported_classes(size: int) -> Mapping[str, str]:
    files = {
        f"m{n}.py": f"from m{n - 1} import A{n - 1}, B{n - 1}\nclass A{n}(A{n - 1}, B{n - 1}):\n    pass\n"
        f"class B{n}(A{n - 1}, B{n - 1}):\n    pass\n"
        for n in range(1, size + 1)
    }
    first = "import torch.nn as nn\nclass A0(nn.Module):\n    pass\nclass B0(nn.Module):\n    pass\n"
    return {
        "main.py": HEAD + f"from m{size} import A{size}\na = A{size}()\na(torch.zeros(2))\n",
        "m0.py": first,
        **files,
    }


@program(4, 60)
def large_imported_files(size: int) -> Mapping[str, str]:
    rows = "x = [" + "[1, 2], " * 2_000 + "]\n"
    files = {f"m{n}.py": f"{rows}def f{n}(y):\n    return y.view(-1)\n" for n in range(size)}
    imports = "".join(
        f"from m{n} import f{n}, x as x{n}\ntorch.tensor(x{n})\nf{n}(torch.zeros(2))\n" for n in range(size)
    )
    return {"main.py": HEAD + imports, **files}


@program(9, 60)
def huge_pieces(size: int) -> str:
    huge = 10**size
    return HEAD + (
        f"x = torch.zeros({huge})\nx.split(1)\nx.chunk({huge})\nx.tensor_split({huge})\nx.unbind(0)\nx[:{huge}]\n"
        f"y.chunk({huge})\ny[{huge}:]\nrange({huge})\nlen(range({huge}))\nfor i in range({huge}):\n    print(i)\n"
        f"x[:-1].view(7)\nx.repeat({huge}, 2)\ntorch.arange({huge}).view(3)\nx[::{huge}]\n[1, 2][{huge}]\nx.unfold(0, 1, 1)\n"
    )
