"""When a tokenizer refuses to pad, or to make a tensor: what is reported against what real ones do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import pytest
from checking import Check
from tiny_tokenizer import bert

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.engine.merge import unique
from shapefix.repair.fixpoint import repair

MADE = """\
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
"""


def found(source: str, check: Check) -> list[Diagnostic]:
    return unique(check(source))


def raised_by(source: str, names: dict[str, object]) -> str | None:
    """The message of the ValueError that source ends with, None where it does not."""
    try:
        exec(compile(source, "script.py", "exec"), names)
    except ValueError as error:
        return str(error)
    return None


PAD_TOKENS = [
    "",
    "tokenizer.pad_token = tokenizer.eos_token",
    "tokenizer.pad_token = '[PAD]'",
    "tokenizer.pad_token_id = 0",
    "tokenizer.pad_token_id = tokenizer.eos_token_id",
    "tokenizer.add_special_tokens({'pad_token': '[PAD]'})",
    "tokenizer.add_special_tokens({'sep_token': '[SEP]'})",
    "setattr(tokenizer, 'pad_token', '[PAD]')",
    "if tokenizer.pad_token is None:\n    tokenizer.pad_token = tokenizer.eos_token",
    "if not tokenizer.pad_token:\n    tokenizer.pad_token = tokenizer.eos_token",
    "if tokenizer.pad_token_id is None:\n    tokenizer.pad_token_id = tokenizer.eos_token_id",
    "if tokenizer.pad_token is not None:\n    tokenizer.pad_token = tokenizer.eos_token",
    "if getattr(tokenizer, 'pad_token', None) is None:\n    tokenizer.pad_token = tokenizer.eos_token",
    "tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token",
    "def prepare(t):\n    t.pad_token = t.eos_token\n    return t\ntokenizer = prepare(tokenizer)",
    "tokenizer.padding_side = 'left'",
    "tokenizer = GPT2Tokenizer(pad_token='<pad>')",
]


@pytest.mark.parametrize("prepare", PAD_TOKENS)
@pytest.mark.parametrize(
    "use",
    [
        "tokenizer(['a', 'b c'], padding=True)",
        "tokenizer('a', padding='max_length', max_length=8)",
        "tokenizer.pad({'input_ids': [[1, 2], [1]]})",
        "tokenizer(['a', 'b c'], padding=False)",
    ],
)
def test_a_pad_token_is_missed_exactly_where_it_raises(prepare: str, use: str, check: Check) -> None:
    source = f"from transformers import GPT2Tokenizer\ntokenizer = GPT2Tokenizer()\n{prepare}\n{use}\n"
    error = raised_by(source, {})
    assert error is None or "does not have a padding token" in error
    assert [d.code for d in found(source, check) if d.code == "SF305"] == ["SF305"] * (error is not None)


@pytest.mark.parametrize(
    "prepare",
    [
        "from elsewhere import prepare\nprepare(tokenizer)",
        "tokenizer = GPT2Tokenizer(**settings())",
        "tokenizer = GPT2Tokenizer.from_pretrained('./checkpoint-500')",
        "tokenizer = AutoTokenizer.from_pretrained('someone/gpt2-with-pad')",
        "if chosen():\n    tokenizer.pad_token = tokenizer.eos_token",
        "tokenizer.add_special_tokens(tokens())",
    ],
)
def test_a_pad_token_that_may_be_there_is_not_missed(prepare: str, check: Check) -> None:
    source = (
        "from transformers import AutoTokenizer, GPT2Tokenizer\ntokenizer = GPT2Tokenizer()\n"
        f"{prepare}\ntokenizer(['a', 'b c'], padding=True)\n"
    )
    assert not found(source, check)


def test_a_pad_token_that_another_method_sets_may_be_there(check: Check) -> None:
    source = textwrap.dedent("""
        from transformers import GPT2Tokenizer

        class Data:
            def __init__(self):
                self.tokenizer = GPT2Tokenizer.from_pretrained("gpt2")

            def setup(self, stage):
                self.tokenizer.pad_token = self.tokenizer.eos_token

            def collate(self, batch):
                return self.tokenizer(batch, padding=True, return_tensors="pt")
        """)
    assert not found(source, check)
    without = source.replace("self.tokenizer.pad_token = self.tokenizer.eos_token", "pass")
    assert [d.code for d in found(without, check)] == ["SF305"]


@pytest.mark.parametrize(
    ("texts", "arguments"),
    [
        ("['The cat sat on the mat.', 'Yes.']", ""),
        ("('The cat sat on the mat.', 'Yes.')", ""),
        ("['The cat sat on the mat.', 'Yes.']", "truncation=True, max_length=6"),
        ("['The cat sat on the mat.', 'Yes.']", "padding=False"),
        ("['The cat sat on the mat.', 'Yes.']", "padding=True"),
        ("['The cat sat on the mat.', 'Yes.']", "padding='max_length', max_length=16"),
        ("['The cat sat on the mat.'] * 2", ""),
        ("['The cat sat on the mat.']", ""),
        ("'The cat sat on the mat.'", ""),
        ("[text for text in ('The cat sat on the mat.', 'Yes.')]", ""),
        ("['The', 'cat', 'sat']", "is_split_into_words=True"),
        ("[['The', 'cat', 'sat'], ['Yes']]", "is_split_into_words=True"),
        ("['Yes.', 'Yes.']", ""),
    ],
)
def test_tensors_are_refused_exactly_where_it_is_said(texts: str, arguments: str, check: Check) -> None:
    call = f"tokenizer({texts}, {arguments + ', ' if arguments else ''}return_tensors='pt')"
    error = raised_by(call, {"tokenizer": bert()})
    assert error is None or "`input_ids` in this case" in error
    assert [d.code for d in found(f"{MADE}{call}\n", check)] == ["SF304"] * (error is not None)


def repaired(source: str, check: Check) -> str:
    may = {Applicability.SAFE}
    return repair(source, lambda text: found(text, check), lambda fix, _: fix.applicability in may).text


def lines(source: str) -> Iterator[str]:
    return (line for line in source.splitlines() if "tokenizer(" in line or "pad_token" in line)


def test_padding_is_added_without_losing_what_was_cut(check: Check) -> None:
    """A maximum alone cuts texts only where nothing is padded."""
    text = repaired(f"{MADE}tokenizer(['Yes.', 'A short one.'], max_length=4, return_tensors='pt')\n", check)
    (call,) = lines(text)
    arguments = "max_length=4, padding=True, truncation=True, return_tensors='pt'"
    assert call == f"tokenizer(['Yes.', 'A short one.'], {arguments})"
    assert eval(call, {"tokenizer": bert()})["input_ids"].shape == (2, 4)


def test_padding_is_added_on_a_line_of_its_own(check: Check) -> None:
    source = textwrap.dedent("""\
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("bert-base-cased")
        batch = tokenizer(
            ["Yes.", "A short one."],
            return_tensors="pt",
        )
        """)
    expected = source.replace('    return_tensors="pt",', '    padding=True,\n    return_tensors="pt",')
    assert repaired(source, check) == expected


def test_a_checkpoint_that_is_a_parameter_gets_no_safe_repair(check: Check) -> None:
    source = textwrap.dedent("""\
        from transformers import AutoTokenizer

        def batch(name):
            tokenizer = AutoTokenizer.from_pretrained(name)
            return tokenizer(["Yes.", "A short one."], padding=True)

        batch("gpt2")
        batch("bert-base-cased")
        """)
    (finding,) = found(source, check)
    assert finding.code == "SF305"
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.UNSAFE
