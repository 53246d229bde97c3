"""What is known where paths meet: what all of them agree on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from checking import Check
from revealed import holds


def test_branches_that_agree(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        if coin():
            x = torch.zeros(2, 3)
        else:
            x = torch.ones(2, 3)
        reveal(x)  # f32[2, 3]
        """,
        tmp_path,
    )


def test_branches_that_agree_on_the_sizes_only(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        x = torch.zeros(2, 3)
        if coin():
            x = torch.zeros(3, 2).t()
        reveal(x)  # f32[2, 3] strides unknown
        """,
        tmp_path,
    )


def test_branches_that_disagree(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        x, n = torch.zeros(2, 3), 1
        if coin():
            x, n = torch.zeros(4), 2
        reveal(x)  # f32[...]
        reveal(n)  # unknown
        """,
        tmp_path,
    )


@pytest.mark.parametrize("leave", ["return", "raise ValueError", "continue", "break"])
def test_a_branch_that_leaves_does_not_count(tmp_path: Path, leave: str) -> None:
    holds(
        f"""
        import torch
        from elsewhere import coin

        def f():
            for _ in range(2):
                x = torch.zeros(2)
                if coin():
                    x = torch.zeros(3)
                    {leave}
                reveal(x)  # f32[2]; f32[2]

        f()
        """,
        tmp_path,
    )


def test_only_the_branch_that_is_taken_is_run(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2, 3)
        if x.dim() == 3:
            reveal(x)  #
        elif x.size(0) == 2:
            x = x.t()
        else:
            x = x[0]
        reveal(x)  # f32[3, 2] strides (1, 3)
        """,
        tmp_path,
    )


def test_branches_in_branches(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        a = b = torch.zeros(2, 3)
        if coin():
            if coin():
                a = torch.zeros(6).view(2, 3)
            else:
                b = torch.zeros(3, 2).t()
        elif coin():
            raise ValueError
        reveal(a)  # f32[2, 3]
        reveal(b)  # f32[2, 3] strides unknown
        """,
        tmp_path,
    )


def test_conditional_expressions_and_or(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        x = torch.zeros(2, 3)
        reveal(x if coin() else torch.ones(2, 3))  # f32[2, 3]
        reveal(x if x.dim() == 2 else None)  # f32[2, 3]
        reveal(None or x)  # f32[2, 3]
        reveal(x.t() if coin() else None)  # f32[3, 2] strides (1, 3) or None
        """,
        tmp_path,
    )


def test_what_a_branch_does_to_a_list_or_an_object_may_not_have_happened(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        class Box:
            pass

        box, items = Box(), [torch.zeros(2)]
        box.x = torch.zeros(2)
        if coin():
            items.append(torch.zeros(3))
            box.x = torch.zeros(3)
        reveal(len(items))  # unknown
        reveal(box.x)  # f32[size(0)]
        """,
        tmp_path,
    )


def test_a_key_that_one_path_sets_may_be_missing(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        batch = {"x": torch.zeros(2)}
        if coin():
            batch["mask"] = torch.ones(2, 3)
        reveal("x" in batch)  # True
        reveal("mask" in batch)  # unknown
        reveal(len(batch))  # unknown
        reveal(batch["mask"])  # f32[2, 3]
        reveal(batch.get("mask", torch.ones(4, 5)))  # f32[...]
        """,
        tmp_path,
    )


def test_a_key_that_nobody_knows_may_be_any(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import name

        batch = {"x": torch.zeros(2), "n": 1}
        batch[name()] = torch.zeros(3)
        reveal(batch["x"])  # f32[...]
        reveal(batch["n"])  # unknown
        """,
        tmp_path,
    )


def test_what_an_early_return_leaves_undone(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        class Box:
            def fill(self):
                self.x = torch.zeros(2)
                if coin():
                    return
                self.x = torch.zeros(3)

        box = Box()
        box.fill()
        reveal(box.x)  # f32[size(0)]
        """,
        tmp_path,
    )


def test_match(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import value

        first = torch.zeros(2)
        match value():
            case [first, *rest]:
                reveal(first)  # unknown
                x = torch.zeros(3)
            case {"y": y, **others} if y:
                x = torch.zeros(3)
            case _:
                x = torch.zeros(3)
        reveal(x)  # f32[3]
        """,
        tmp_path,
    )


@pytest.mark.parametrize("value", ['"beam",', '["beam"]', "{}", '("beam", 1)', "()"])
@pytest.mark.parametrize("other", ['"beam"', "None", "0", "1.5", "True"])
def test_a_collection_is_no_text_and_no_number(tmp_path: Path, value: str, other: str) -> None:
    assert eval(f"({value}) == {other}") is False
    holds(
        f"""
        import torch

        mode = {value}
        reveal(torch.zeros(2, 3) if mode == {other} else torch.zeros(4))  # f32[4]
        reveal(torch.zeros(2, 3) if {other} != mode else torch.zeros(4))  # f32[2, 3]
        """,
        tmp_path,
    )


OBJECTS = {
    "class A:\n    pass": True,
    "class A(nn.Module):\n    pass": True,
    "class A:\n    def __len__(self):\n        return 0": None,
    "class A(nn.ModuleList):\n    pass": None,
    "class A(elsewhere.Base):\n    pass": None,
}


@pytest.mark.parametrize("definition", OBJECTS)
def test_an_object_without_a_length_is_true(tmp_path: Path, definition: str) -> None:
    from torch import nn

    known = OBJECTS[definition]
    if known is not None:
        scope: dict[str, Any] = {"nn": nn}
        exec(definition, scope)
        assert bool(scope["A"]()) is known
    holds(
        f"import torch\nimport elsewhere\nfrom torch import nn\n{definition}\n"
        f"reveal(torch.zeros(2) if A() else torch.zeros(3, 4))  # {'f32[2]' if known else 'f32[...]'}\n",
        tmp_path,
    )


TEXT_METHODS = (
    '.lower() == "beam"',
    '.upper().lower() == "greedy"',
    '.strip("g") == "reedy"',
    '.replace("e", "a") == "graady"',
    '.removesuffix("y").endswith("d")',
    '.startswith(("gr", "be"))',
    ".isdigit()",
    ".title().isupper()",
)


@pytest.mark.parametrize("method", TEXT_METHODS)
def test_methods_of_known_texts_decide_branches(tmp_path: Path, method: str) -> None:
    taken = eval(f'"greedy"{method}')
    holds(
        f"""
        import torch

        def infer(mode="greedy"):
            if mode{method}:
                return torch.zeros(2, 3)
            return torch.zeros(4)

        reveal(infer())  # {"f32[2, 3]" if taken else "f32[4]"}
        """,
        tmp_path,
    )


@pytest.mark.parametrize("text", ["mode.lower()", '"x".replace("x", mode)', '("x" * 10 ** 6).upper()'])
def test_methods_of_unknown_or_long_texts_decide_nothing(tmp_path: Path, text: str) -> None:
    holds(
        f"""
        import torch
        from elsewhere import mode

        x = torch.zeros(2)
        if {text} == "beam":
            x = torch.zeros(3, 4)
        reveal(x)  # f32[...]
        """,
        tmp_path,
    )


def test_every_tensor_is_a_variable(tmp_path: Path) -> None:
    import torch
    from torch.autograd import Variable

    assert isinstance(torch.ones(1), Variable)
    holds(
        """
        import torch
        from torch.autograd import Variable

        x = torch.ones(2, 3)
        if not isinstance(x, Variable):
            x = torch.ones(4)
        reveal(x)  # f32[2, 3]
        """,
        tmp_path,
    )


def test_a_tensor_on_two_paths_keeps_its_rank(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        x = torch.zeros(2, 3)
        if coin():
            x = torch.zeros(2, 5)
        reveal(x)  # f32[2, size(1)]
        reveal(x.t())  # f32[size(1), 2] strides (1, size(1))
        reveal(torch.cat([x, x], 1))  # f32[2, 2*size(1)]
        if coin():
            x = x.t()
        reveal(x)  # f32[size(0), size(1)] strides unknown
        if coin():
            x = x.sum(0)
        reveal(x)  # f32[...]
        """,
        tmp_path,
    )


def test_items_of_a_list_need_not_be_alike(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        rows = [torch.zeros(2, 3), torch.zeros(2, 5)]
        for row in [torch.zeros(n, 3) for n in range(20)]:
            reveal(row)  # f32[n, 3]
        if coin():
            rows = [torch.zeros(2, 4)]
        reveal(rows[0])  # f32[...]
        """,
        tmp_path,
    )


def test_what_a_layer_took_on_one_path_is_a_tensor_on_each(check: Check) -> None:
    code = (
        "from torch import nn\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.conv = nn.Conv1d(3, 3, 3, padding=1)\n\n"
        "    def forward(self, x, n):\n        {}:\n            x = {}\n"
        "        x.transpose(1, 2)\n        return x\n"
    )
    for header in ("if n", "for _ in range(n)", "while n"):
        (found,) = check(code.format(header, "self.conv(x)"), {"SF105"})
        assert "`x.transpose(1, 2)` is unused" in found.message
        assert not check(code.format(header, "n.step(x)"), {"SF105"})
