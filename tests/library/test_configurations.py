"""Where sizes come from: dataclasses, named tuples, dictionaries and the command line, as Python has it."""

from __future__ import annotations

import argparse
from unittest import mock

import pytest
from differential import agree, executed, interpret, revealed

from shapefix.interpreter.events import OpRejected
from shapefix.interpreter.values import Constant, Integer, Unknown
from shapefix.tensors.errors import SizeMismatch
from shapefix.tensors.options import needed_defaults
from shapefix.tensors.symbols import CommandLineOption

DATACLASSES = """
import dataclasses
from collections import namedtuple
from dataclasses import KW_ONLY, InitVar, asdict, dataclass, field, replace
from typing import ClassVar, NamedTuple, Optional

@dataclass
class Config:
    vocab: int = 1000
    hidden: int = 64
    heads: int = 4
    sizes: list = field(default_factory=lambda: [3, 5])
    depth: int = field(default=6, metadata={"help": "how many blocks"})
    inner: int = field(init=False)
    known: ClassVar[int] = 77

    def __post_init__(self):
        self.inner = self.hidden * 4

    @property
    def head(self):
        return self.hidden // self.heads

@dataclass
class Big(Config):
    hidden: int = 128
    extra: int = 7

@dataclass
class Training:
    model: Config = field(default_factory=Config)
    batch: int = 8

@dataclass(frozen=True)
class Frozen:
    width: int
    twice: Optional[int] = None
    def __post_init__(self):
        object.__setattr__(self, "twice", 2 * self.width)

@dataclass(kw_only=True)
class ByName:
    width: int
    depth: int = 2

@dataclass
class Mixed:
    width: int
    _: KW_ONLY
    depth: int = 3

@dataclass
class Scaled:
    width: int
    scale: InitVar[int] = 2
    total: int = field(init=False)
    def __post_init__(self, scale):
        self.total = self.width * scale

class Point(NamedTuple):
    x: int
    y: int = 4

Pair = namedtuple("Pair", "left right", defaults=[9])

class Plain:
    width = 12
    depth: int = 3

class Wider(Plain):
    width = 24

options = {"model": {"hidden": 5, "layers": [1, 2]}, "batch": 4}

def made(hidden=1, layers=(), **rest):
    return hidden
"""

NUMBERS = [
    "Config().vocab",
    "Config().sizes[1]",
    "Config().depth",
    "Config().inner",
    "Config().head",
    "Config.known",
    "Config.depth",
    "Config(vocab=271).vocab",
    "Config(271, 32).inner",
    "Config(271, 32).vocab",
    "replace(Config(), hidden=32).inner",
    "dataclasses.replace(Config(depth=2), hidden=32).depth",
    "Big().hidden",
    "Big().inner",
    "Big(5, 6, extra=1).hidden",
    "Big(5, 6, extra=1).vocab",
    "Big(5, 6, extra=1).extra",
    "Training().model.inner",
    "Training(model=Config(hidden=9)).model.inner",
    "Training(Config(hidden=9), 3).batch",
    "asdict(Training())['model']['hidden']",
    "Config(**{'hidden': 77}).inner",
    "Config(**{'depth': 3}).depth",
    "Frozen(3).twice",
    "ByName(width=5).depth",
    "Mixed(5, depth=1).depth",
    "Mixed(5).depth",
    "Scaled(3).total",
    "Scaled(3, 5).total",
    "Point(3).y",
    "Point(3, y=7)[1]",
    "Point(3)._replace(y=2).y",
    "Pair(1).right",
    "Pair(left=1, right=2).right",
    "Plain.width",
    "Plain().depth",
    "Wider.width",
    "Wider().depth",
    "options['model']['hidden']",
    "options.get('batch')",
    "options.get('missing', 3)",
    "made(**options['model'])",
    "len(options['model']['layers'])",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_those_that_python_computes(number: str) -> None:
    agree(f"{DATACLASSES}\nreveal({number})", symbolic=False)


def test_numbers_are_sizes_of_layers() -> None:
    agree(
        DATACLASSES
        + """
class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.table = nn.Embedding(config.vocab, config.hidden)
        self.up = nn.Linear(config.hidden, config.inner)
    def forward(self, ids):
        return self.up(self.table(ids))

reveal(Model(Config(hidden=16))(torch.zeros(2, 3, dtype=torch.long)))
""",
        symbolic=False,
    )


def test_a_field_that_was_set_later_is_what_it_was_set_to() -> None:
    agree(DATACLASSES + "config = Config()\nconfig.hidden = 9\nreveal(config.hidden)", symbolic=False)


@pytest.mark.parametrize("made", ["Config(**load())", "Config(*load())", "replace(Config(), **load())"])
def test_what_may_have_been_given_is_not_its_default(made: str) -> None:
    (shown,) = revealed(f"from elsewhere import load\n{DATACLASSES}\nreveal({made}.hidden)")
    assert isinstance(shown, Unknown)


def test_a_method_that_nobody_calls_does_not_take_defaults_for_facts() -> None:
    source = DATACLASSES.replace("return self.hidden // self.heads", "return reveal(self.hidden)")
    assert all(isinstance(shown, Unknown) for shown in revealed(source))


def test_a_base_that_nobody_knows_may_keep_its_arguments() -> None:
    (shown,) = revealed(
        """
from elsewhere import Settings
class Config(Settings):
    hidden: int = 64
reveal(Config(hidden=3).hidden)
"""
    )
    assert isinstance(shown, Unknown)


PARSER = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--hidden-size", "-w", type=int, default=256, help="the width")
parser.add_argument("-b", "--batch", type=int, default=8)
parser.add_argument("--layers", dest="depth", default=6)
parser.add_argument("--rate", type=float, default=0.1)
parser.add_argument("--fast", action="store_true")
parser.add_argument("--widths", type=int, nargs="+", default=[1, 2])
parser.add_argument("--seed", type=int)
group = parser.add_argument_group("data")
group.add_argument("--vocab", type=int, default=30)
parser.set_defaults(batch=4)
"""


def by_default(source: str) -> list[object]:
    """What is revealed, options at their defaults; None for what is not known."""
    found: list[object] = []
    for value in revealed(source):
        symbol = value.size.only_symbol if isinstance(value, Integer) else None
        if isinstance(symbol, CommandLineOption):
            found.append(symbol.default)
        else:
            found.append(value.value if isinstance(value, Constant) else None)
    return found


@pytest.mark.parametrize(
    "number",
    [
        "args.hidden_size",
        "args.batch",
        "args.depth",
        "args.vocab",
        "vars(args)['hidden_size']",
        "getattr(args, 'vocab')",
        "parser.parse_known_args()[0].vocab",
        "parser.parse_args([]).hidden_size",
        "parser.get_default('vocab')",
    ],
)
def test_options_have_the_defaults_that_argparse_gives_them(number: str) -> None:
    source = f"{PARSER}\nargs = parser.parse_args()\nreveal({number})"
    with mock.patch("sys.argv", ["train.py"]):
        assert by_default(source) == executed(source)


def test_what_is_no_number_of_its_own_is_not_known() -> None:
    names = ("rate", "fast", "widths", "seed", "missing")
    shown = "".join(f"reveal(args.{name})\n" for name in names)
    assert by_default(f"{PARSER}\nargs = parser.parse_args()\n{shown}") == [None] * len(names)


@pytest.mark.parametrize(
    ("options", "is_certain"),
    [
        ('"--path", type=str, default=None', False),
        ('"--path", default=None', False),
        ('"--path", action="store_true", default=None', False),
        ('"--path", action="store_true", default=True', True),
    ],
)
def test_only_a_flag_without_effect_is_its_default(options: str, is_certain: bool) -> None:
    parser = f"import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument({options})\n"
    (shown,) = revealed(f"{parser}reveal(parser.parse_args().path)")
    assert isinstance(shown, Constant) is is_certain


def test_an_option_that_the_code_sets_is_no_option_any_more() -> None:
    assert by_default(f"{PARSER}\nargs = parser.parse_args()\nargs.batch = 2\nreveal(args.batch)") == [2]
    assert by_default(f"{PARSER}\nargs = parser.parse_args(['-b', '3'])\nreveal(args.batch)") == [None]


def refusals(source: str) -> list[OpRejected]:
    return [
        event
        for event in interpret("import torch\nfrom torch import nn\n" + source)
        if isinstance(event, OpRejected)
    ]


def test_sizes_that_differ_by_default_are_told_with_the_options() -> None:
    (event,) = refusals(
        PARSER + "args = parser.parse_args()\nnn.Linear(128, 4)(torch.randn(2, args.hidden_size))\n"
    )
    assert isinstance(event.error, SizeMismatch)
    (option,) = needed_defaults(event.error.have, event.error.want)
    assert (option.flag, option.default) == ("--hidden-size", 256)


def test_sizes_that_differ_whatever_is_asked_for_need_no_default() -> None:
    (event,) = refusals(
        PARSER
        + "args = parser.parse_args()\n"
        + "nn.Linear(2 * args.hidden_size, 4)(torch.randn(2, args.hidden_size))\n"
    )
    assert isinstance(event.error, SizeMismatch)
    assert not needed_defaults(event.error.have, event.error.want)


def test_a_branch_that_is_not_taken_by_default_says_nothing_of_defaults() -> None:
    assert not refusals(
        PARSER
        + "args = parser.parse_args()\n"
        + "if args.fast:\n    nn.Linear(128, 4)(torch.randn(2, args.hidden_size))\n"
    )


def test_the_flag_of_an_option_is_what_argparse_calls_it() -> None:
    parser = argparse.ArgumentParser()
    actions = [parser.add_argument(*flags) for flags in (["--a-b"], ["-x", "--long-name"], ["-n"], ["plain"])]
    lines = ["import argparse", "parser = argparse.ArgumentParser()"]
    for action in actions:
        flags = ", ".join(map(repr, action.option_strings)) or repr(action.dest)
        lines.append(f"parser.add_argument({flags}, default=5, type=int)")
    lines.append("args = parser.parse_args()")
    source = "\n".join(lines + [f"reveal(args.{action.dest})" for action in actions])
    assert by_default(source) == [5] * len(actions)


def test_the_fields_that_hugging_face_parses_are_options() -> None:
    source = """
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments

@dataclass
class Model:
    hidden: int = 64
    layers: int = field(default=3, metadata={"help": "how many"})
    inner: int = field(init=False)
    def __post_init__(self):
        self.inner = 2 * self.hidden

model, training = HfArgumentParser((Model, TrainingArguments)).parse_args_into_dataclasses()
(alone,) = HfArgumentParser(Model).parse_args_into_dataclasses()
(read,) = HfArgumentParser(Model).parse_json_file("model.json")
reveal(model.hidden)
reveal(alone.layers)
reveal(read.hidden)
"""
    assert by_default(source) == [64, 3, None]
    assert [
        event.error for event in refusals(source + "nn.Linear(128, 4)(torch.randn(2, model.inner))")
    ] == []
    (event,) = refusals(source + "nn.Linear(100, 4)(torch.randn(2, model.inner))")
    assert isinstance(event.error, SizeMismatch)
    assert [option.flag for option in needed_defaults(event.error.have, event.error.want)] == ["--hidden"]


CONFIGURATIONS = [
    "BertConfig().hidden_size",
    "BertConfig().vocab_size",
    "BertConfig(hidden_size=128).hidden_size",
    "BertConfig(hidden_size=128).intermediate_size",
    "BertConfig(num_labels=5).num_labels",
    "BertConfig().num_labels",
    "GPT2Config().n_embd",
    "GPT2Config().hidden_size",
    "GPT2Config(n_embd=96).hidden_size",
    "GPT2Config(vocab_size=271).vocab_size",
    "T5Config().d_model",
    "T5Config(d_model=64).d_ff",
    "LlamaConfig().num_attention_heads",
    "LlamaConfig().intermediate_size",
    "ViTConfig().image_size",
    "ViTConfig(image_size=32).patch_size",
    "DistilBertConfig().dim",
    "RobertaConfig().max_position_embeddings",
]


def test_configurations_of_transformers_hold_what_transformers_puts_there() -> None:
    names = ", ".join(sorted({expression.partition("(")[0] for expression in CONFIGURATIONS}))
    source = f"from transformers import {names}\n" + "".join(f"reveal({e})\n" for e in CONFIGURATIONS)
    agree(source, symbolic=False)


@pytest.mark.parametrize(
    "expression",
    [
        "LlamaConfig(num_attention_heads=8).num_key_value_heads",
        "BertConfig(id2label={0: 'a', 1: 'b', 2: 'c'}).num_labels",
        "BertConfig(**load()).intermediate_size",
        "BertConfig.from_pretrained(load()).intermediate_size",
    ],
)
def test_what_follows_from_other_arguments_is_no_default(expression: str) -> None:
    (value,) = revealed(
        f"from elsewhere import load\nfrom transformers import BertConfig, LlamaConfig\nreveal({expression})"
    )
    assert not isinstance(value, Constant)
