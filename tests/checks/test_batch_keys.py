"""Batches that are changed on their way into a model: what a real run says of them is what is reported."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

SCRIPT = """
import copy
import functools
from collections import OrderedDict

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, Subset


class Points(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return {"idx": i, "name": f"point {i}", "x": torch.ones(3) * i, "labels": i % 2}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, x, labels=None, *, scale=1.0):
        return self.linear(x) * scale


class Derived(Net):
    pass


class Open(Net):
    def forward(self, x, **others):
        return super().forward(x)


class Strict(Net):
    @torch.no_grad()
    def forward(self, x, labels):
        return super().forward(x, labels)


class Handing(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, **others):
        return self.inner(x=x, **others)


net = Net()
loader = DataLoader(Points(), batch_size=2)
"""


REFUSED = [
    "net(**batch)",
    "Derived()(**batch)",
    "nn.DataParallel(net)(**batch)",
    "nn.Sequential(net)[0](**batch)",
    "net.eval().to('cpu')(**batch)",
    "Handing(net)(**batch)",
    "net(**dict(batch))",
    "net(**{**batch, 'scale': 2.0})",
    "net(**(batch | {'scale': 2.0}))",
    "net(**OrderedDict(batch))",
    "net(**copy.copy(batch))",
    "net(**{key: batch[key] for key in batch})",
    "net(**{k: v for k, v in batch.items() if k != 'name'})",
    "net(**{k: v for k, v in batch.items() if isinstance(v, torch.Tensor)})",
    "batch.pop('name'); net(**batch)",
    "del batch['idx']; net(**batch)",
    "inputs = {'x': batch['x']}; inputs.update(batch); net(**inputs)",
    "net(batch['x'], labels=batch['labels'], weights=None)",
    "Strict()(x=batch['x'], mask=None, labels=None)",
    "Strict()(**{'x': batch['x']})",
    "Strict()(**{k: v for k, v in batch.items() if k == 'labels'})",
    "net(**{k: v for k, v in batch.items() if k == 'labels'})",
]
ACCEPTED = [
    "net(batch['x'])",
    "Open()(**batch)",
    "Handing(Open())(**batch)",
    "net(**{k: v for k, v in batch.items() if k in ('x', 'labels')})",
    "net(**{k: v for k, v in batch.items() if k not in {'idx', 'name'}})",
    "idx, name = batch.pop('idx'), batch.pop('name', None); net(**batch)",
    "del batch['idx'], batch['name']; net(**batch)",
    "batch = {k: batch[k] for k in ['x', 'labels']}; net(**batch)",
    "[batch.pop(key) for key in ('idx', 'name')]; net(**batch)",
    "x, labels = (batch[k] for k in ('x', 'labels')); Strict()(x, labels)",
    "Strict()(batch['x'], **{'labels': batch['labels']})",
    "names = net.forward.__code__.co_varnames; net(**{k: v for k, v in batch.items() if k in names})",
    "call = functools.partial(net, scale=2.0); call(batch['x'])",
]


def program(statements: str) -> str:
    lines = "\n".join(f"    {line.strip()}" for line in statements.split(";"))
    return f"{SCRIPT}\nfor batch in loader:\n{lines}\n"


@pytest.mark.parametrize("statements", REFUSED)
def test_what_python_refuses_is_reported(statements: str, check: Check) -> None:
    text = program(statements)
    with pytest.raises(TypeError, match=r"unexpected keyword|missing 1 required"):
        exec(text, {"__name__": "script"})
    found = check(text)
    assert [finding.code for finding in found if finding.code in ("SF401", "SF403")]


@pytest.mark.parametrize("statements", ACCEPTED)
def test_what_runs_is_not_reported(statements: str, check: Check) -> None:
    text = program(statements)
    exec(text, {"__name__": "script"})
    assert check(text) == []


UNKNOWN = [
    # Only one path has put the key there, or taken it away.
    "if torch.rand(1) > 2: batch['more'] = 1; "
    "batch = {k: v for k, v in batch.items() if k in KEPT}; net(**batch)",
    # Who derives from the class may name more.
    "net = make(); net(**batch)",
    # Whoever names the exception expects it.
    "try: net(**batch)\n    except (TypeError, KeyError): pass",
    "try: net(**batch)\n    except TypeError: pass",
]


@pytest.mark.parametrize("statements", UNKNOWN)
def test_what_is_not_known_is_not_reported(statements: str, check: Check) -> None:
    head = "from elsewhere import KEPT, make\n"
    lines = "\n".join(f"    {line.strip()}" for line in statements.split(";"))
    if "try" in statements:
        lines = f"    {statements}"
    assert check(f"{head}{SCRIPT}\nfor batch in loader:\n{lines}\n") == []


def test_a_forward_that_is_replaced_later_is_not_known(check: Check) -> None:
    text = """
        class Swapped(Net):
            def compile_forward(self):
                self.forward = lambda **batch: batch["x"]

        swapped = Swapped()
        swapped.compile_forward()
        for batch in loader:
            swapped(**batch)
        """
    assert check(SCRIPT + textwrap.dedent(text)) == []


def test_a_decorator_that_is_not_known_may_take_anything(check: Check) -> None:
    text = """
        from elsewhere import takes_everything

        class Decorated(Net):
            @takes_everything
            def forward(self, x):
                return x

        for batch in loader:
            Decorated()(**batch)
        """
    assert check(SCRIPT + textwrap.dedent(text)) == []


def test_a_method_that_nobody_called_may_belong_to_a_derived_class(check: Check) -> None:
    text = """
        class Base(nn.Module):
            def forward(self, x):
                raise NotImplementedError

            def step(self, batch):
                return self(x=batch, mask=None)
        """
    assert check(SCRIPT + textwrap.dedent(text)) == []


HEADS = """
import torch
from transformers import BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel

ids = torch.randint(5, 40, (2, 6))
bert = BertForSequenceClassification(
    BertConfig(vocab_size=50, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
)
gpt2 = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=50))
"""


@pytest.mark.slow
def test_the_heads_of_transformers_5_swallow_every_key(check: Check) -> None:
    text = HEADS + "bert(**{'input_ids': ids, 'idx': ids})\ngpt2(**{'input_ids': ids, 'idx': ids})\n"
    exec(text, {})
    assert check(text) == []


def test_most_heads_of_transformers_4_are_strict(check: Check) -> None:
    text = HEADS + "bert(**{'input_ids': ids, 'idx': ids})\ngpt2(**{'input_ids': ids, 'idx': ids})\n"
    (found,) = check(text, transformers_version="4.57")
    assert found.code == "SF401"
    assert "passes `idx` to `BertForSequenceClassification.forward`; TypeError" in found.text


def test_a_near_name_is_a_warning_where_it_is_swallowed(check: Check) -> None:
    text = HEADS + "loss = gpt2(input_ids=ids, label=ids).loss\n"
    names: dict[str, object] = {}
    exec(text, names)
    assert names["loss"] is None
    (found,) = check(text)
    assert (found.code, found.severity) == ("SF402", "warning")
    assert found.fix is not None
    assert found.fix.edits[0].content == "labels"


@pytest.mark.parametrize(("parameter", "found"), [("attention_mask", 1), ("_attention_mask", 0)])
def test_a_parameter_named_as_unused_is_not_meant(check: Check, parameter: str, found: int) -> None:
    code = (
        "import torch\nfrom torch import nn\n\nclass Dummy(nn.Module):\n"
        f"    def forward(self, ids, {parameter}=None, **kwargs):\n        return ids\n\n"
        "Dummy()(ids=torch.ones(2), attention_masks=torch.ones(2))\n"
    )
    assert len(check(code.replace("masks", "mask" if parameter[0] == "_" else "masks"), {"SF402"})) == found
