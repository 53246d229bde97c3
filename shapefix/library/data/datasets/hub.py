"""Columns of popular public datasets, as their dataset cards state them."""

from __future__ import annotations

from shapefix.interpreter.containers import DictValue
from shapefix.interpreter.modules import Place
from shapefix.interpreter.values import FLOAT, Document, Integer, Text, Value
from shapefix.library.data.datasets.objects import any_rows
from shapefix.tensors.polynomials import Size
from shapefix.tensors.symbols import ListedNumber

_TEXTS = frozenset(
    {
        "text",
        "sentence",
        "sentence1",
        "sentence2",
        "question",
        "question1",
        "question2",
        "premise",
        "hypothesis",
        "document",
        "summary",
        "id",
        "article",
        "highlights",
        "dialogue",
        "title",
        "content",
        "instruction",
        "input",
        "output",
    }
)
"""Columns of text; what else is named here is a number."""
_COLUMNS = {
    "rotten_tomatoes": ("text", "label"),
    "imdb": ("text", "label"),
    "ag_news": ("text", "label"),
    "emotion": ("text", "label"),
    "yelp_polarity": ("text", "label"),
    "yelp_review_full": ("label", "text"),
    "amazon_polarity": ("label", "title", "content"),
    "dbpedia_14": ("label", "title", "content"),
    "sst2": ("idx", "sentence", "label"),
    "snli": ("premise", "hypothesis", "label"),
    "wikitext": ("text",),
    "xsum": ("document", "summary", "id"),
    "cnn_dailymail": ("article", "highlights", "id"),
    "samsum": ("id", "dialogue", "summary"),
    "alpaca": ("instruction", "input", "output", "text"),
}
_CLASSES = {
    "rotten_tomatoes": 2,
    "imdb": 2,
    "ag_news": 4,
    "emotion": 6,
    "yelp_polarity": 2,
    "yelp_review_full": 5,
    "amazon_polarity": 2,
    "dbpedia_14": 14,
    "sst2": 2,
    "snli": 3,
    "mnli": 3,
}
"""Number of classes of `label`; two in all others of GLUE."""
_LONG = frozenset({"imdb", "yelp_polarity", "yelp_review_full", "xsum", "cnn_dailymail"})
"""Datasets of documents: of some hundreds in a row, the longest has more than 512 tokens."""
_GLUE = {
    "cola": ("sentence", "label", "idx"),
    "sst2": ("sentence", "label", "idx"),
    "mrpc": ("sentence1", "sentence2", "label", "idx"),
    "qqp": ("question1", "question2", "label", "idx"),
    "stsb": ("sentence1", "sentence2", "label", "idx"),
    "mnli": ("premise", "hypothesis", "label", "idx"),
    "qnli": ("question", "sentence", "label", "idx"),
    "rte": ("sentence1", "sentence2", "label", "idx"),
    "wnli": ("sentence1", "sentence2", "label", "idx"),
}
_OWNERS = {
    "rotten_tomatoes": "cornell-movie-review-data",
    "imdb": "stanfordnlp",
    "ag_news": "fancyzhx",
    "emotion": "dair-ai",
    "yelp_polarity": "fancyzhx",
    "yelp_review_full": "Yelp",
    "amazon_polarity": "fancyzhx",
    "dbpedia_14": "fancyzhx",
    "sst2": "stanfordnlp",
    "snli": "stanfordnlp",
    "wikitext": "Salesforce",
    "xsum": "EdinburghNLP",
    "cnn_dailymail": "abisee",
    "samsum": "Samsung",
    "alpaca": "tatsu-lab",
    "glue": "nyu-mll",
}
_ONLY_WITH_OWNER = frozenset({"alpaca"})


def rows(path: str, name: str | None, place: Place) -> DictValue | None:
    """One row of the dataset loaded by `load_dataset(path, name)`; None for an unknown dataset."""
    owner, _, last = path.rpartition("/")
    if _OWNERS.get(last) != owner if owner else last in _ONLY_WITH_OWNER:
        return None
    columns = _GLUE.get(name or "") if last == "glue" else _COLUMNS.get(last)
    if columns is None:
        return None
    fields: dict[object, Value] = {column: _cell(last, name, column) for column in columns}
    return DictValue(fields, absent=any_rows().absent, written=dict.fromkeys(fields, place))


def _cell(path: str, name: str | None, column: str) -> Value:
    if column in _TEXTS:
        # A new object for each: columns are distinguished by it.
        return Document() if path in _LONG and column in ("text", "document", "article") else Text()
    if name == "stsb" and column == "label":
        return FLOAT
    if column == "label":
        classes = _CLASSES.get(path, _CLASSES.get(name or "", 2))
        return Integer(Size.from_symbol(ListedNumber(range(classes))))
    return Integer(Size.symbol(column, least=-1))
