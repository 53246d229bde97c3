"""The shipped signatures of Python, datasets and transformers, compared with the installed packages."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator

import pytest
from differential import agree, revealed
from generate_library_signatures import NAMES, installed, signatures

from shapefix.interpreter.calls import Arguments
from shapefix.interpreter.values import Constant, LibraryObject, Unknown
from shapefix.library.data import collators
from shapefix.library.library_signatures import generated, library_signature
from shapefix.library.signatures import bound, parameters
from shapefix.library.transformers import trainers


@pytest.mark.parametrize("package", NAMES)
def test_the_shipped_signatures_are_those_of_the_installed_package(package: str) -> None:
    shipped = generated()[package]
    if shipped.version != installed(package):
        pytest.skip(f"the signatures are those of {package} {shipped.version}")
    assert shipped.signatures == signatures(package), "run tests/library/generate_library_signatures.py"


@pytest.mark.parametrize("package", NAMES)
def test_every_generated_signature_is_shipped_and_can_be_read(package: str) -> None:
    assert set(generated()[package].signatures) == set(NAMES[package])
    for name in NAMES[package]:
        assert all(parameter.isidentifier() for parameter, _ in parameters(library_signature(name)))


def test_the_shipped_signatures_are_those_that_handlers_name() -> None:
    named = set(_named_by_handlers())
    shipped = {name for names in NAMES.values() for name in names}
    assert {name for name in named if not name.startswith("torch.")} - shipped == set()
    # Handlers of both kinds of dataset add the name of the method or of the function.
    rest = {
        "map",
        "filter",
        "from_generator",
        "from_pretrained",
        "concatenate_datasets",
        "interleave_datasets",
    }
    assert {name for name in shipped - named if name.rpartition(".")[2] not in rest} == set()


def _named_by_handlers() -> Iterator[str]:
    """The second arguments of the calls of `arguments_under` that are known without running the handler."""
    for module in [*sys.modules.values()]:
        if not module.__name__.startswith("shapefix.library.") or not hasattr(module, "arguments_under"):
            continue
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id == "arguments_under":
                    used = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
                    if used <= vars(module).keys():
                        yield eval(ast.unparse(node.args[1]), vars(module))


def test_what_comes_before_a_slash_is_read_by_position_only() -> None:
    values = bound("iterable, /, start=0", Arguments([], {"iterable": Constant(7), "start": Constant(1)}))
    assert isinstance(values["iterable"], Unknown)
    assert values["start"].value == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    [
        "reveal(torch.zeros(sum([2, 3], start=4)))",
        "reveal(torch.zeros(round(number=3.0)))",
        "reveal(torch.zeros(round(3.0, ndigits=None)))",
        "reveal(torch.zeros(list(enumerate(iterable=[5, 6], start=2))[1][0]))",
        "reveal(torch.zeros(copy.copy(x=[3, 4])))",
        "reveal(torch.zeros(copy.deepcopy(x=[3, 4])))",
        "Pair = collections.namedtuple(typename='Pair', field_names='a b', defaults=[3])\n"
        "reveal(torch.zeros(Pair(2)))",
    ],
)
def test_keywords_of_python(text: str) -> None:
    agree(f"import collections, copy, torch\n{text}\n")


def test_collators_are_made_with_the_parameters_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    for kind, text in collators.SIGNATURES.items():
        real = list(inspect.signature(getattr(transformers, kind.rpartition(".")[2])).parameters)
        stated = [name for name, _ in parameters(text)]
        if kind == collators.LANGUAGE_MODELING:
            # Between them are parameters of one version only.
            assert stated[:2] == real[:2]
            assert set(stated) - {"third"} <= set(real) | {"padding", "max_length"}
        else:
            assert stated == real[: len(stated)]


def test_a_trainer_is_made_with_the_parameters_of_transformers() -> None:
    transformers = pytest.importorskip("transformers")
    real = list(inspect.signature(transformers.Trainer.__init__).parameters)[1:]
    stated = [name for name, _ in parameters(trainers.SIGNATURE)]
    assert stated[-1] == "tokenizer"
    assert stated[:-1] == real[: len(stated) - 1]


def test_the_fifth_argument_of_load_dataset_is_the_split() -> None:
    (value,) = revealed("import datasets\nreveal(datasets.load_dataset('a', None, None, None, 'train'))\n")
    assert isinstance(value, LibraryObject)
    assert value.kind == "datasets.Dataset"
