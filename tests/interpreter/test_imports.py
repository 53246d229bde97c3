"""Names of other files."""

from __future__ import annotations

import time
from pathlib import Path

from revealed import holds


def test_the_ways_to_import(tmp_path: Path) -> None:
    holds(
        """
        import pack.sizes
        import pack.sizes as short
        from pack import sizes, make
        from pack.sizes import width as w

        reveal((pack.sizes.width, short.width, sizes.width, w))  # (3, 3, 3, 3)
        reveal(make())  # f32[3]
        """,
        tmp_path,
        {
            "pack/__init__.py": "from .making import make\n",
            "pack/sizes.py": "width = 3\n",
            "pack/making.py": """
                import torch
                from . import sizes

                def make():
                    return torch.zeros(sizes.width)
                """,
        },
    )


def test_what_stands_beside_an_import_is_looked_at_once(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from layers import nn
        from sizes import given, width

        class Double(nn.Module):
            def forward(self, x):
                return torch.cat([x, x])

        items = [torch.zeros(1), torch.zeros(2), torch.zeros(3)]
        shape = (items.pop().shape[0], width, given.depth)
        reveal(torch.zeros(shape))  # f32[3, 5, 7]
        reveal(len(items))  # 2
        reveal(Double()(items[1]))  # f32[4]
        """,
        tmp_path,
        {
            "layers.py": "from torch import nn\n",
            "sizes.py": "width = 5\n\nclass Given:\n    depth = 7\n\ngiven = Given()\n",
        },
    )


def test_relative_imports_climb(tmp_path: Path) -> None:
    holds(
        "from pack.inner.deep import total\n\nreveal(total)  # 5\n",
        tmp_path,
        {
            "pack/__init__.py": "base = 2\n",
            "pack/other.py": "more = 3\n",
            "pack/inner/__init__.py": "",
            "pack/inner/deep.py": "from .. import base\nfrom ..other import more\ntotal = base + more\n",
        },
    )


def test_star_imports(tmp_path: Path) -> None:
    holds(
        """
        from sizes import *

        reveal((width, depth))  # (3, 4)
        """,
        tmp_path,
        {"sizes.py": "from more import *\nwidth = 3\n", "more.py": "width = 2\ndepth = 4\n"},
    )


def test_a_name_that_two_files_define(tmp_path: Path) -> None:
    holds(
        """
        import one, two
        from one import size
        reveal(size)  # 1
        from two import size
        reveal(size)  # 2
        reveal((one.size, two.size, two.get()))  # (1, 2, 2)
        """,
        tmp_path,
        {"one.py": "size = 1\n", "two.py": "size = 2\n\ndef get():\n    return size\n"},
    )


def test_files_that_import_each_other(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from a import Left

        reveal(Left().make())  # f32[3]
        """,
        tmp_path,
        {
            "a.py": """
                from b import Right

                size = 3

                class Left:
                    def make(self):
                        return Right().make()
                """,
            "b.py": """
                import torch
                import a
                from a import Left

                class Right:
                    left = Left

                    def make(self):
                        return torch.zeros(a.size)
                """,
        },
    )


def test_a_name_that_goes_round_in_a_circle(tmp_path: Path) -> None:
    holds(
        "from a import x\n\nreveal(x)  # unknown\n",
        tmp_path,
        {"a.py": "from b import x\n", "b.py": "from a import x\n"},
    )


def test_what_is_missing_is_unknown(tmp_path: Path) -> None:
    holds(
        """
        import nowhere.at_all as nothing
        from . import gone
        from broken import f
        from here import missing, size

        try:
            import fast
        except ImportError:
            fast = None

        reveal(nothing.f(1))  # unknown
        reveal(gone)  # unknown
        reveal(f)  # unknown
        reveal(missing)  # unknown
        reveal(size)  # 2
        reveal(fast is None)  # unknown
        """,
        tmp_path,
        {"broken.py": "def f(:\n", "here.py": "size = 2\n"},
    )


def test_all_that_binds_or_changes_a_name_is_run(tmp_path: Path) -> None:
    holds(
        """
        from settings import deep, fast, items, size, table, total, width

        reveal((fast, size))  # (unknown, unknown)
        reveal((width, deep, total))  # (8, 4, 6)
        reveal((len(items), table["a"], len(table)))  # (2, 3, 1)
        """,
        tmp_path,
        {
            "settings.py": """
                import elsewhere
                from torch import nn

                try:
                    import flash
                    fast = True
                except ImportError:
                    fast = False
                if elsewhere.coin():
                    size = 1
                else:
                    size = 2

                class Sizes:
                    width = 7

                Sizes.width = 8
                width = Sizes.width
                items, table, total = [1], {}, 0
                items.append(2)
                table["a"] = 3
                for i in range(4):
                    total += i
                with elsewhere.context():
                    deep = 4
                """
        },
    )


def test_star_imports_in_a_block(tmp_path: Path) -> None:
    holds(
        "from sizes import *\n\nreveal(width)  # 2\n",
        tmp_path,
        {
            "sizes.py": "try:\n    from more import *\nexcept ImportError:\n    pass\n",
            "more.py": "width = 2\n",
        },
    )


def test_names_that_are_bound_anew_from_elsewhere(tmp_path: Path) -> None:
    holds(
        """
        import counting, sizes
        from counting import count, more
        from sizes import width

        more()
        sizes.width = 5
        reveal(count)  # unknown
        reveal(counting.count)  # 1
        reveal(width)  # unknown
        reveal(sizes.width)  # unknown
        """,
        tmp_path,
        {
            "counting.py": "count = 0\n\ndef more():\n    global count\n    count = 1\n",
            "sizes.py": "width = 3\n",
        },
    )


def test_what_only_a_script_does_is_not_there_for_who_imports_it(tmp_path: Path) -> None:
    holds(
        "from settings import size\n\nreveal(size)  # 2\n",
        tmp_path,
        {"settings.py": "size = 2\n\nif __name__ == '__main__':\n    size = 3\n"},
    )


def test_the_script_itself_is_main(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def main():
            reveal(torch.zeros(size))  # f32[3]

        if __name__ == "__main__":
            size = 3
            main()
        """,
        tmp_path,
    )


def test_star_imports_in_a_circle(tmp_path: Path) -> None:
    """Twelve files that import all of each other have millions of paths, and one value for a name."""
    names = [f"part{n}" for n in range(12)]
    files = {
        f"{name}.py": "".join(f"from {other} import *\n" for other in names if other != name)
        for name in names
    }
    files["part11.py"] += "width = 2\n"
    start = time.process_time()
    holds(
        """
        from part0 import *

        reveal(width)  # 2
        reveal(len([1, 2]))  # 2
        reveal(height)  # unknown
        """,
        tmp_path,
        files,
    )
    assert time.process_time() - start < 5
