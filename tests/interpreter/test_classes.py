"""Classes: attributes, inheritance, properties, and objects that change."""

from __future__ import annotations

from pathlib import Path

from revealed import analysed, holds


def test_attributes_and_methods(tmp_path: Path) -> None:
    holds(
        """
        import torch

        class Box:
            size = 2

            def __init__(self, size=None):
                if size is not None:
                    self.size = size

            def make(self):
                return torch.zeros(self.size)

        reveal(Box().make())  # f32[2]
        reveal(Box(3).make())  # f32[3]
        box = Box()
        box.size = 4
        reveal(Box.make(box))  # f32[4]
        """,
        tmp_path,
    )


def test_properties_static_and_class_methods(tmp_path: Path) -> None:
    holds(
        """
        import torch

        class Box:
            kept = 5

            def __init__(self, x):
                self.x = x

            @property
            def x(self):
                return self._x.t()

            @x.setter
            def x(self, value):
                self._x = value

            @staticmethod
            def make(n):
                return torch.zeros(n)

            @classmethod
            def again(cls):
                return cls(torch.zeros(cls.kept, 2))

        reveal(Box(torch.zeros(2, 3)).x)  # f32[3, 2] strides (1, 3)
        reveal(Box.make(4))  # f32[4]
        reveal(Box.again().make(4))  # f32[4]
        reveal(Box.again().x)  # f32[2, 5] strides (1, 2)
        """,
        tmp_path,
    )


def test_a_function_that_a_class_takes_over_becomes_a_method(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def double(self, x):
            return torch.cat([x, x])

        class Box:
            twice = double

        reveal(Box().twice(torch.zeros(2)))  # f32[4]
        """,
        tmp_path,
    )


def test_inheritance_and_super_across_files(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from layers.wide import Wide

        reveal(Wide(3).forward(torch.zeros(2, 3)))  # f32[2, 6]
        reveal(Wide(3)(torch.zeros(5, 3)))  # f32[5, 6]
        """,
        tmp_path,
        {
            "layers/__init__.py": "",
            "layers/base.py": """
                from torch import nn

                class Base(nn.Module):
                    factor = 1

                    def __init__(self, width):
                        super().__init__()
                        self.linear = nn.Linear(width, width * self.factor)

                    def forward(self, x):
                        return self.linear(x)
                """,
            "layers/wide.py": """
                from .base import Base

                class Wide(Base):
                    factor = 2

                    def forward(self, x):
                        return super().forward(x).relu()
                """,
        },
    )


def test_a_base_that_two_bases_share_comes_after_both(tmp_path: Path) -> None:
    holds(
        """
        class A:
            def who(self): return "A"
        class B(A):
            def who(self): return "B" + super().who()
        class C(A):
            def who(self): return "C" + super().who()
        class D(B, C):
            pass
        class E(B, C):
            def who(self): return "E" + super(B, self).who()

        reveal(D().who())  # 'BCA'
        reveal(E().who())  # 'ECA'
        """,
        tmp_path,
    )


def test_dataclasses(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from dataclasses import dataclass
        from config import Config

        @dataclass
        class Point:
            x: int
            y: int = 2

        small = Config(width=8)
        reveal((small.width, small.heads, Config().width))  # (8, 4, 64)
        reveal(torch.zeros(small.width // small.heads))  # f32[2]
        reveal((Point(1).y, Point(1, 3).y, Point(y=4, x=0).y))  # (2, 3, 4)
        """,
        tmp_path,
        {
            "config.py": """
                from dataclasses import dataclass

                @dataclass(frozen=True)
                class Config:
                    width: int = 64
                    heads: int = 4
                """
        },
    )


def test_attributes_that_nobody_can_tell(tmp_path: Path) -> None:
    holds(
        """
        from elsewhere import options

        class Config:
            def __init__(self, **given):
                self.width = 8
                for name, value in given.items():
                    setattr(self, name, value)

        class Other:
            def __init__(self, given):
                self.width = 8
                self.__dict__.update(given)

        reveal(Config(width=4).width)  # 4
        reveal(Config(**options()).width)  # unknown
        reveal(Other({"width": 4}).width)  # 4
        reveal(Other(options()).width)  # unknown
        """,
        tmp_path,
    )


def test_flags_of_an_object_that_nobody_makes_may_have_changed(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.width = 8
                self.cache = None
                self.linear = nn.Linear(8, 4)
                self.fast = False

            def prepare(self):
                self.mask = torch.zeros(2, 3)

            def forward(self, x):
                if self.cache is not None:
                    reveal(self.cache)  # unknown
                if self.fast:
                    reveal(self.width)  # 8
                reveal(self.mask)  # unknown
                reveal(self.linear(x.view(2, 8)))  # ?[2, 4]
        """,
        tmp_path,
    )


def test_objects_keep_what_is_set_on_them(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cache = None

            def forward(self, x):
                if self.cache is None:
                    self.cache = x.t()
                return self.cache

        net = Net()
        net(torch.zeros(2, 3))
        reveal(net(torch.zeros(4, 5)))  # f32[3, 2] strides (1, 3)
        net.cache = None
        reveal(net(torch.zeros(4, 5)))  # f32[5, 4] strides (1, 5)
        """,
        tmp_path,
    )


def test_tensors_that_change_in_place(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2, 3)
        same, row = x, x[0]
        same.t_()
        reveal(x)  # f32[3, 2] strides (1, 3)
        reveal(row)  # f32[3]
        x.data = torch.zeros(4)
        reveal(same)  # f32[4]
        y = torch.zeros(4, 4)
        y @= torch.zeros(4, 2)
        reveal(y)  # f32[4, 2]
        """,
        tmp_path,
    )


def test_every_method_is_run(tmp_path: Path) -> None:
    text = """
    import torch

    class Box:
        def __init__(self, x):
            self.x = x.t() if x.dim() == 2 else x

        def never_called(self):
            return torch.zeros(2, 3).t().view(-1)
    """
    assert [d.code for d in analysed(text, tmp_path).diagnostics] == ["SF101"]
