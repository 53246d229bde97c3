"""What tokenizers return: what is known of it against a real one of a tiny vocabulary."""

from __future__ import annotations

import inspect
import textwrap
from typing import Any

import pytest
from checking import Check
from differential import revealed
from tiny_tokenizer import SENTENCES, bert

from shapefix.diagnostics import Applicability
from shapefix.domains.raggedness import ragged
from shapefix.interpreter.containers import DictValue, ListValue, elements
from shapefix.interpreter.tensor_values import TensorValue
from shapefix.interpreter.values import Integer, Value
from shapefix.library.signatures import parameters
from shapefix.library.transformers.checkpoints import FAMILIES, of_checkpoint, of_class
from shapefix.library.transformers.tokenizers import TOKENIZER, kind_of
from shapefix.library.transformers.tokenizing import SIGNATURES


def ours_and_real(expression: str) -> tuple[Value, Any]:
    """What the interpreter says of an expression with `tokenizer` in it, and what it gives."""
    source = f"""
        from transformers import BertTokenizerFast
        tokenizer = BertTokenizerFast.from_pretrained("bert-base-uncased")
        two = {list(SENTENCES[:2])!r}
        message = {{"role": "user", "content": "Yes."}}
        reveal({expression})
        """
    (ours,) = revealed(source)
    names = {"tokenizer": bert(), "two": list(SENTENCES[:2]), "message": {"role": "user", "content": "Yes."}}
    return ours, eval(expression, names)


def fits(ours: Value, real: Any) -> None:
    """Check all that is known of ours."""
    import torch

    if isinstance(ours, DictValue):
        assert set(ours.fields) <= set(real)
        assert not ours.closed or set(ours.fields) == set(real)
        for key, value in ours.fields.items():
            fits(value, real[key])
    elif isinstance(ours, TensorValue):
        assert isinstance(real, torch.Tensor)
        assert real.is_contiguous()
        assert ours.dtype == str(real.dtype).removeprefix("torch.")
        assert ours.layout is not None
        assert ours.layout.rank == real.ndim
        for size, length in zip(ours.layout.sizes, real.shape, strict=True):
            assert size.value in (None, length)
    elif isinstance(ours, ListValue):
        assert isinstance(real, list)
        assert ours.length is None or ours.length.value in (None, len(real))
        assert (ragged(ours) is not None) == (has_rows(real) and len({len(row) for row in real}) > 1)
        for item in real if elements(ours) is None else ():
            if ours.element is not None:
                fits(ours.element, item)
    elif isinstance(ours, Integer):
        assert isinstance(real, int)


def has_rows(real: list[Any]) -> bool:
    return bool(real) and isinstance(real[0], list)


@pytest.mark.parametrize(
    "expression",
    [
        "tokenizer('Yes.')",
        "tokenizer(two)",
        "tokenizer(tuple(two))",
        "tokenizer(two[:1])",
        "tokenizer([two[0]] * 3)",
        "tokenizer(two, padding=True)",
        "tokenizer(two, padding='longest')",
        "tokenizer(two, padding='do_not_pad')",
        "tokenizer(two, padding='max_length', truncation=True, max_length=4)",
        "tokenizer('Yes.', padding='max_length', truncation=True, max_length=16)",
        "tokenizer(two, truncation=True, max_length=5)",
        "tokenizer(two, ['a', 'short one'])",
        "tokenizer('a', 'short one')",
        "tokenizer(['The', 'cat'], is_split_into_words=True)",
        "tokenizer([['The', 'cat', 'sat'], ['Yes']], is_split_into_words=True)",
        "tokenizer(two, return_attention_mask=False)",
        "tokenizer(two, return_token_type_ids=False)",
        "tokenizer(two, return_special_tokens_mask=True)",
        "tokenizer(two, return_offsets_mapping=True)",
        "tokenizer(two[0], return_length=True)",
        "tokenizer(two, text_target=['A', 'Yes. A short one.'])",
        "tokenizer(text_target=two)",
        "tokenizer(two[0], truncation=True, max_length=3, return_overflowing_tokens=True)",
        "tokenizer('Yes.', return_tensors='pt')",
        "tokenizer([two[0]], return_tensors='pt')",
        "tokenizer([two[0]] * 2, return_tensors='pt')",
        "tokenizer(two, padding=True, return_tensors='pt')",
        "tokenizer(two, padding='max_length', truncation=True, max_length=4, return_tensors='pt')",
        "tokenizer(two, text_target=two, padding=True, return_tensors='pt')",
        "tokenizer(two, return_tensors='np')",
        "tokenizer.encode('Yes.')",
        "tokenizer.encode('Yes.', return_tensors='pt')",
        "tokenizer.encode(two)",
        "tokenizer(two, padding=True, return_tensors='pt').input_ids",
        "tokenizer(two)['token_type_ids']",
        "tokenizer(two, padding=True, return_tensors='pt').to('cpu')",
        "tokenizer.pad(tokenizer(two), return_tensors='pt')",
        "tokenizer.pad(tokenizer(two))",
        "tokenizer.pad([tokenizer(text) for text in two], return_tensors='pt')",
        "tokenizer.apply_chat_template([message])",
        "tokenizer.apply_chat_template([message], return_tensors='pt')",
        "tokenizer.apply_chat_template([message], tokenize=False)",
        "tokenizer.apply_chat_template([message], return_dict=False)",
        "tokenizer.convert_tokens_to_ids(['Yes', 'cat'])",
        "tokenizer.convert_tokens_to_ids('Yes')",
        "tokenizer.batch_decode([[5, 6], [7]])",
        "tokenizer.tokenize('The cat')",
        "tokenizer('The cat').word_ids()",
        "tokenizer.pad_token_id",
        "len(tokenizer)",
    ],
)
def test_what_is_returned(expression: str) -> None:
    fits(*ours_and_real(expression))


def test_rows_padded_beyond_the_maximum_are_not_taken_to_be_cut() -> None:
    """Without truncation `padding="max_length"` leaves longer rows as they are."""
    ours, real = ours_and_real("tokenizer(two, padding='max_length', max_length=4)")
    assert isinstance(ours, DictValue)
    rows = ours.fields["input_ids"]
    assert isinstance(rows, ListValue)
    assert isinstance(rows.element, ListValue)
    assert rows.element.length is None
    assert [len(row) for row in real["input_ids"]] == [len(bert()(SENTENCES[0])["input_ids"]), 4]


@pytest.mark.parametrize("method", SIGNATURES)
def test_signatures(method: str) -> None:
    import transformers

    real = inspect.signature(getattr(transformers.PreTrainedTokenizerBase, method)).parameters
    if method == "encode":
        # The rest goes through `**kwargs` to the call.
        stated = parameters(SIGNATURES[method])[:10]
    else:
        stated = parameters(SIGNATURES[method])
    positions = [name for name in real if name != "self"]
    for name, default in stated:
        if name not in real:
            assert "kwargs" in real
            continue
        expected = real[name].default
        if default is not None and name != "return_dict":
            assert getattr(default, "value", None) == expected
        else:
            assert expected is inspect.Parameter.empty or name == "return_dict"
    common = [name for name, _ in stated if name in real]
    assert common[:6] == positions[:6]


def test_only_classes_that_are_called_alike_are_taken_for_tokenizers() -> None:
    import transformers

    base = transformers.PreTrainedTokenizerBase
    usual = list(inspect.signature(base.__call__).parameters)
    seen = 0
    for name in dir(transformers):
        cls: Any = getattr(transformers, name, None) if kind_of(f"transformers.{name}") else None
        if inspect.isclass(cls) and issubclass(cls, base):
            seen += 1
            assert list(inspect.signature(cls.__call__).parameters) == usual, name
            names: Any = cls.model_input_names  # type: ignore[attr-defined, unused-ignore]
            assert "attention_mask" in names, name
    assert seen > 50


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("transformers.AutoTokenizer", TOKENIZER),
        ("transformers.BertTokenizer", TOKENIZER),
        ("transformers.models.gpt2.GPT2TokenizerFast", TOKENIZER),
        ("transformers.PreTrainedTokenizerFast", TOKENIZER),
        ("transformers.models.bert.tokenization_bert.BasicTokenizer", None),
        ("transformers.TapasTokenizer", None),
        ("transformers.LayoutLMv3TokenizerFast", None),
        ("transformers.BertModel", None),
        ("nltk.RegexpTokenizer", None),
    ],
)
def test_names(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("suffix", ["Tokenizer", "TokenizerFast"])
def test_what_a_class_has_from_the_start(family: str, suffix: str) -> None:
    import transformers

    cls = getattr(transformers, family + suffix)
    said = of_class(family + suffix)
    real = cls()
    assert said is not None
    assert said.pads == (real.pad_token is not None)
    assert said.ends == (real.eos_token is not None)
    assert not said.inputs or set(said.inputs) == set(real.model_input_names)


@pytest.mark.parametrize(
    ("name", "pads"),
    [
        ("gpt2", False),
        ("gpt2-xl", False),
        ("openai-community/gpt2-medium", False),
        ("distilgpt2", False),
        ("EleutherAI/gpt-neo-1.3B", False),
        ("meta-llama/Llama-2-7b-chat-hf", False),
        ("bert-base-uncased", True),
        ("google-t5/t5-small", True),
        ("distilroberta-base", True),
    ],
)
def test_public_checkpoints(name: str, pads: bool) -> None:
    family = of_checkpoint(name)
    assert family is not None
    assert family.pads == pads


@pytest.mark.parametrize("name", ["./gpt2", "me/gpt2-finetuned", "gpt2-german", "EleutherAI/pythia-70m", ""])
def test_other_names_tell_nothing(name: str) -> None:
    assert of_checkpoint(name) is None


@pytest.mark.parametrize(("words", "found"), [(", is_split_into_words=True", 0), ("", 1)])
def test_unknown_words_in_a_list_may_be_one_text(words: str, found: int, check: Check) -> None:
    code = f"""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")

    def tags(text):
        return [word.pos_ for word in parse(text)]

    ids = tokenizer(tags("a b"), return_tensors="pt"{words}).input_ids
    """
    assert len(check(textwrap.dedent(code), {"SF304"})) == found


SCORED = """
from transformers import AutoTokenizer, GPT2LMHeadModel

tokenizer = AutoTokenizer.from_pretrained("gpt2")
model = GPT2LMHeadModel.from_pretrained("gpt2")

def score(texts):
    encodings = tokenizer(texts, return_tensors="pt")
    {use}
    return model(**encodings)

score(["a b", "c"])
"""


@pytest.mark.parametrize(
    ("use", "applicability"),
    [
        ("return model(encodings.input_ids, labels=encodings.input_ids).loss", Applicability.UNSAFE),
        (
            "ids = encodings.input_ids[:, :9]; t = ids.clone(); return model(ids, labels=t)",
            Applicability.UNSAFE,
        ),
        ('encodings["labels"] = encodings["input_ids"]', Applicability.UNSAFE),
        ("labels = encodings.input_ids.clone()", Applicability.UNSAFE),
        ("ids = encodings.input_ids", Applicability.SAFE),
        ("labels = texts", Applicability.SAFE),
    ],
)
def test_padding_that_becomes_labels_is_no_safe_repair(
    use: str, applicability: Applicability, check: Check
) -> None:
    (finding,) = check(SCORED.format(use=use), {"SF304"})
    assert [fix.applicability for fix in finding.fixes] == [applicability]
