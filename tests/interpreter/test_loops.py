"""Loops: item by item, or one iteration that stands for all."""

from __future__ import annotations

from pathlib import Path

from revealed import holds


def test_a_few_known_items_are_run_one_by_one(tmp_path: Path) -> None:
    holds(
        """
        import torch

        x = torch.zeros(2)
        for n in (3, 4):
            x = x.unsqueeze(0).expand(n, *x.shape)
            reveal(x)  # f32[3, 2] strides (0, 1); f32[4, 3, 2] strides (0, 0, 1)
        for i, t in enumerate([torch.zeros(5), torch.zeros(6)], start=1):
            reveal((i, t))  # (1, f32[5]); (2, f32[6])
        for a, b in zip((1, 2), (3, 4)):
            reveal(a + b)  # 4; 6
        for row in torch.zeros(2, 7):
            reveal(row)  # f32[7]; f32[7]
        """,
        tmp_path,
    )


def test_one_iteration_stands_for_an_unknown_number(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import count

        x = y = torch.zeros(2, 2)
        for _ in range(count()):
            reveal(x)  # f32[2, 2]
            x = x.t()
            y = y + 1
        reveal(x)  # ?[2, 2] strides unknown
        reveal(y)  # f32[2, 2]
        """,
        tmp_path,
    )


def test_what_a_later_iteration_finds_changed(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import count

        last, x = None, torch.zeros(2, 3)
        first = True
        for _ in range(count()):
            last = x
            x = torch.zeros(3, 2).t()
            if first:
                kind = torch.zeros(2)
            else:
                kind = torch.zeros(3)
            first = False
        reveal(last)  # unknown
        reveal(kind)  # ?[size(0)] strides unknown
        """,
        tmp_path,
    )


def test_while_a_condition_holds(tmp_path: Path) -> None:
    holds(
        """
        import torch

        i, x, seen = 0, torch.zeros(2), []
        while i < 3:
            seen.append(x)
            i += 1
        reveal(i)  # unknown
        reveal(len(seen))  # unknown
        reveal(x)  # f32[2]
        """,
        tmp_path,
    )


def test_a_loop_without_end_is_left_by_its_breaks(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        while True:
            x = torch.zeros(2)
            if coin():
                break
        reveal(x)  # f32[2]
        while True:
            pass
        reveal(x)  #
        """,
        tmp_path,
    )


def test_break_and_else(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import coin

        for n in (2, 3):
            if coin():
                x = torch.zeros(4)
                break
        else:
            x = torch.zeros(5)
            reveal(n)  # 3
        reveal(x)  # f32[size(0)]

        for n in (2, 3):
            if n == 2:
                break
        else:
            reveal(n)  #
        reveal(n)  # 2
        """,
        tmp_path,
    )


def test_continue(tmp_path: Path) -> None:
    holds(
        """
        import torch

        sizes = []
        for n in (2, 3, 4):
            if n == 3:
                continue
            sizes.append(n)
        reveal(sizes[1])  # 4
        """,
        tmp_path,
    )


def test_comprehensions(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import count

        rows = [torch.zeros(n) for n in (2, 3) if n > 2]
        reveal(len(rows))  # 1
        reveal(rows[0])  # f32[3]
        reveal({n: torch.zeros(n) for n in (2, 3)}[3])  # f32[3]
        reveal([torch.zeros(4) for _ in range(count())][0])  # f32[4]
        reveal([row for row in torch.zeros(2, 5)][1])  # f32[5]
        reveal(torch.stack([a + b for a in torch.zeros(2, 5) for b in torch.ones(3, 5)]))  # f32[6, 5]
        """,
        tmp_path,
    )


def test_generators(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def batches():
            for _ in range(3):
                yield torch.zeros(2, 3)

        def again():
            yield from batches()

        for batch in again():
            reveal(batch)  # f32[2, 3]
        reveal(next(batches()))  # f32[2, 3]
        """,
        tmp_path,
    )


def test_a_list_that_is_filled_with_what_each_iteration_changes(tmp_path: Path) -> None:
    holds(
        """
        import torch

        def grow(n):
            x = torch.zeros(2, 8)
            grown, same = [], []
            for i in range(n):
                grown.append(x)
                same.append(torch.ones(i + 1, 4)[:, 0])
                x = torch.cat([x, x], 1)
            reveal(grown[-1])  # unknown
            for row in grown:
                reveal(row)  # unknown
            reveal(same[0].dtype)  # unknown
        """,
        tmp_path,
    )


def test_modules_that_a_loop_of_unknown_length_makes(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn

        class Blocks(nn.Module):
            def __init__(self, n, dim):
                super().__init__()
                self.same = nn.ModuleList()
                for i in range(n):
                    self.same.append(nn.Linear(16, 16))
                self.wider = nn.ModuleList()
                for i in range(n):
                    self.wider.append(nn.Linear(dim, 2 * dim))
                    dim = 2 * dim

            def forward(self, x):
                for layer in self.same:
                    x = layer(x)
                reveal(x)  # f32[4, 16]
                for layer in self.wider:
                    reveal(layer(x))  # f32[4, size(1)]
                return x

        Blocks(int(input()), 16)(torch.zeros(4, 16))
        """,
        tmp_path,
    )


def test_later_iterations_take_other_branches_of_a_method(tmp_path: Path) -> None:
    holds(
        """
        import torch

        class Cache:
            def __init__(self):
                self.kv, self.count, self.last = None, torch.zeros(1), torch.zeros(4)
                self.never = torch.zeros(5)

            def insert(self, k):
                if self.kv is None:
                    self.kv = k
                else:
                    self.count = torch.zeros(3, 3)
                self.last = self.kv
                return self.count

        cache, kept = Cache(), {"h": torch.zeros(2, 2)}
        x = torch.zeros(2, 2)
        for _ in range(12):
            y = cache.insert(torch.zeros(4))
            kept["h"] = x
            x = torch.zeros(3, 3)
        reveal(cache.kv)  # unknown
        reveal(cache.count)  # unknown
        reveal(cache.last)  # unknown
        reveal(cache.never)  # f32[5]
        reveal(y)  # ?[...]
        reveal(kept["h"])  # unknown
        """,
        tmp_path,
    )


def test_a_loop_in_a_comprehension_changes_objects_too(tmp_path: Path) -> None:
    holds(
        """
        import torch

        class Growing:
            def __init__(self):
                self.x, self.y = torch.zeros(2), torch.zeros(3)

            def grow(self):
                self.x = torch.zeros(2, 2)
                return self.y

        growing = Growing()
        rows = [growing.grow() for _ in range(12)]
        reveal(growing.x)  # unknown
        reveal(growing.y)  # f32[3]
        reveal(rows[3])  # f32[3]
        """,
        tmp_path,
    )


def test_layers_made_by_a_method_in_a_loop(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn

        class Blocks(nn.Module):
            def __init__(self, n):
                super().__init__()
                self.same, self.wider, self.dim = nn.ModuleList(), nn.ModuleList(), 16
                for _ in range(n):
                    self.add()

            def add(self):
                self.same.append(nn.Linear(16, 16))
                self.wider.append(nn.Linear(self.dim, 2 * self.dim))
                self.dim *= 2

            def forward(self, x):
                for layer in self.same:
                    x = layer(x)
                reveal(x)  # f32[4, 16]
                for layer in self.wider:
                    reveal(layer(x))  # f32[4, size(1)]
                return x

        Blocks(int(input()))(torch.zeros(4, 16))
        """,
        tmp_path,
    )


def test_an_attribute_that_one_path_reads_may_still_be_missing(tmp_path: Path) -> None:
    holds(
        """
        class State:
            pass

        state = State()
        if hasattr(state, "late"):
            print(state.late)
        reveal(hasattr(state, "late"))  # unknown
        """,
        tmp_path,
    )


def test_a_variable_counted_up_decides_a_branch_for_its_first_pass_only(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from elsewhere import count

        step = 1
        for _ in range(count()):
            if step % 8 == 0:
                reveal(torch.zeros(3))  # f32[3]
            if step == 1:
                x = torch.zeros(2)
            else:
                reveal(x)  # unknown
            step += 1
        other = 1
        for _ in range(count()):
            if other == 2:
                reveal(torch.zeros(4))  #
        for _ in (1, 2):
            if step == 0:
                reveal(torch.zeros(5))  # f32[5]; f32[5]
            if other == 2:
                reveal(torch.zeros(6))  # f32[6]
            other += 1
        """,
        tmp_path,
    )


def test_a_dictionary_filled_by_a_loop(tmp_path: Path) -> None:
    holds(
        """
        import torch
        from torch import nn
        from elsewhere import count, names

        x = torch.zeros(3, 4)
        layers = {}
        for i in range(count()):
            layers[i] = nn.Linear(4, 2)
        reveal(layers[count()](x))  # f32[3, 2]
        reveal(layers[0](x))  # f32[3, 2]
        for layer in layers.values():
            reveal(layer(x))  # f32[3, 2]

        mixed = {}
        for name in names():
            mixed[name] = nn.Linear(4, 2)
        for name in names():
            mixed[name] = nn.ReLU()
        reveal(mixed[count()](x))  # f32[3, size(1)]

        more = {}
        for name in names():
            more[name] = nn.Linear(4, 2)
        more.update(names())
        reveal(more[count()](x))  # unknown

        texts = {"a": nn.ReLU()}
        for name in names():
            texts[name] = nn.Linear(4, 2)
        reveal(texts[count()](x))  # unknown
        """,
        tmp_path,
    )


def test_a_loop_over_a_list_that_it_changes_has_other_passes(tmp_path: Path) -> None:
    sizes = [2, 1]
    for number, _ in enumerate(sizes):
        if number == 0:
            sizes.append(1)
    assert len(sizes) == 3
    holds(
        """
        import torch

        x = torch.zeros(2, 2)
        sizes, fixed = [2, 1], [2, 1]
        for number, size in enumerate(sizes):
            x = torch.cat([x, x[:1]])
            if number == 0:
                sizes.append(1)
        reveal(x)  # ?[size(0), 2] strides unknown
        y = torch.zeros(2, 2)
        for number in range(len(fixed)):
            y = torch.cat([y, y[:1]])
            fixed.append(1)
        reveal(y)  # f32[4, 2]
        """,
        tmp_path,
    )


def test_a_loop_over_many_names_runs_for_each(tmp_path: Path) -> None:
    names = [f"layer{number}" for number in range(12)]
    holds(
        f"""
        import torch
        from torch import nn

        class Donor(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer2 = nn.Linear(3, 5)
                self.layer11 = nn.Linear(5, 7)

        class Net(nn.Module):
            def __init__(self, donor):
                super().__init__()
                for name in {names}:
                    if hasattr(donor, name):
                        self.add_module(name, getattr(donor, name))

        net = Net(Donor())
        reveal(net.layer11(net.layer2(torch.zeros(4, 3))))  # f32[4, 7]
        for number in range(12):
            last = number
        reveal(last)  # n
        """,
        tmp_path,
    )
