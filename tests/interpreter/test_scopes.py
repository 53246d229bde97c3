"""Which variable a name means."""

from __future__ import annotations

from pathlib import Path

from revealed import holds


def test_a_function_sees_the_names_around_it_as_they_are_when_it_is_called(tmp_path: Path) -> None:
    holds(
        """
        import torch

        size = 2

        def make():
            return torch.zeros(size)

        size = 3
        reveal(make())  # f32[3]
        """,
        tmp_path,
    )


def test_a_local_name_hides_the_one_outside(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)

        def make():
            x = torch.zeros(3)
            return x

        reveal(make())  # f32[3]
        reveal(x)  # f32[2]
        """,
        tmp_path,
    )


def test_global_writes_to_the_module(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)

        def change():
            global x
            x = torch.zeros(3)

        change()
        reveal(x)  # f32[3]
        """,
        tmp_path,
    )


def test_nonlocal_writes_to_the_function_around(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def outer():
            x = torch.zeros(2)

            def change():
                nonlocal x
                x = torch.zeros(3)

            change()
            return x

        reveal(outer())  # f32[3]
        """,
        tmp_path,
    )


def test_each_call_of_a_factory_has_variables_of_its_own(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def factory(size):
            def make():
                return torch.zeros(size)
            return make

        two, three = factory(2), factory(3)
        reveal(two())  # f32[2]
        reveal(three())  # f32[3]
        """,
        tmp_path,
    )


def test_the_variable_of_a_comprehension_is_gone_after_it(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)
        sizes = [x for x in (5, 6)]
        reveal(x)  # f32[2]
        reveal(sizes[1])  # 6
        """,
        tmp_path,
    )


def test_a_walrus_in_a_comprehension_binds_outside_of_it(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)
        [x := torch.zeros(n) for n in (3, 4)]
        reveal(x)  # f32[4]
        """,
        tmp_path,
    )


def test_a_walrus_behind_and_may_not_have_happened(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        x = torch.zeros(2, 3)
        coin() and (x := torch.zeros(3, 2).t())
        reveal(x)  # f32[2, 3] strides unknown
        """,
        tmp_path,
    )


def test_methods_do_not_see_the_names_of_their_class(tmp_path: Path) -> None:
    holds(
        """
        import torch

        size = 2

        class Maker:
            size = 3
            made = torch.zeros(size)

            def make(self):
                return torch.zeros(size)

        reveal(Maker.made)  # f32[3]
        reveal(Maker().make())  # f32[2]
        """,
        tmp_path,
    )


def test_a_name_that_is_deleted_and_made_again(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)
        del x
        x = torch.zeros(3)
        reveal(x)  # f32[3]
        """,
        tmp_path,
    )


def test_what_an_inner_function_would_do_is_not_done_where_nobody_calls_it(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)

        def setup():
            def hook():
                global x
                x = torch.zeros(3)
            return 0

        setup()
        reveal(x)  # f32[2]
        """,
        tmp_path,
    )
