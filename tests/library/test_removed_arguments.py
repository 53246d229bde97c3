"""Removed arguments of transformers and other libraries, compared with the installed versions."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
from pathlib import Path

import pytest
from checking import Check

from shapefix.checks.support.renamed_arguments import RENAMED, REPLACED
from shapefix.library.removed_arguments import newest_known, packages, removed_arguments

pytestmark = pytest.mark.skipif(
    importlib.metadata.version("transformers").split(".")[:2] != newest_known().split(".")[:2],
    reason="the data is of another version",
)
MODULES = {
    "torch": ("torch", "torch.nn", "torch.optim.lr_scheduler"),
    "lightning": ("pytorch_lightning", "pytorch_lightning.callbacks", "pytorch_lightning.loggers"),
}
OLD = """
from transformers import TrainingArguments
arguments = TrainingArguments("output", evaluation_strategy="epoch")
"""
TRAINER = """
from transformers import Trainer

class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        return model(**inputs).loss

trainer = Own()
trainer.train()
"""


def accepted(package: str, function: str) -> set[str]:
    """Keywords of a function or method of the installed library; fails if it accepts any."""
    for module in MODULES.get(package, (package,)):
        found = pytest.importorskip(module, reason=f"{package} is not installed")
        for part in function.split("."):
            found = getattr(found, part, None)
        if found is not None:
            parameters = inspect.signature(found).parameters
            assert all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in parameters.values())
            return set(parameters)
    raise AssertionError(f"{package} has no {function}")


@pytest.mark.slow
@pytest.mark.parametrize("package", packages())
def test_the_installed_version_rejects_the_arguments(package: str) -> None:
    for function, gone in removed_arguments(package).items():
        assert not gone.keys() & accepted(package, function), function


@pytest.mark.slow
@pytest.mark.parametrize("package", packages())
def test_the_installed_version_has_the_new_names(package: str) -> None:
    for (library, function), names in RENAMED.items():
        if library == package and function in removed_arguments(package):
            assert set(names.values()) <= accepted(package, function), function
            assert names.keys() <= removed_arguments(package)[function].keys()


def test_the_advice_is_on_removed_arguments() -> None:
    for (package, function), names in REPLACED.items():
        assert names.keys() <= removed_arguments(package)[function].keys()


@pytest.mark.slow
def test_the_trainer_passes_the_number_of_items_to_the_loss() -> None:
    import transformers

    source = ast.parse(inspect.cleandoc("\n" + inspect.getsource(transformers.Trainer.training_step)))
    calls = [
        node
        for node in ast.walk(source)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "compute_loss"
    ]
    assert calls
    assert all("num_items_in_batch" in {each.arg for each in call.keywords} for call in calls)


@pytest.mark.parametrize(
    ("requirement", "reported"),
    [
        ("", True),
        ("transformers", True),
        ("transformers==5.0.0", True),
        ("transformers==4.57.1", True),
        ("transformers==4.44.0", False),
        ("transformers>=4.40", False),
        ("transformers<5", False),
        ("transformers>=4.52", True),
        ("transformers>=4.53,<5", True),
    ],
)
def test_every_permitted_version_lacks_the_argument(tmp_path: Path, requirement: str, reported: bool) -> None:
    from shapefix.engine.session import CheckSession
    from shapefix.engine.settings import CheckOptions, Settings

    (tmp_path / "requirements.txt").write_text(f"torch\n{requirement}\n")
    (tmp_path / "old.py").write_text(OLD)
    (tmp_path / "own.py").write_text(TRAINER)
    session = CheckSession((str(tmp_path),), Settings(CheckOptions(use_cache=False))).run()
    expected = ["SF407", "SF409"] if reported else []
    assert [finding.code for finding in session.findings()] == expected


@pytest.mark.parametrize("version", ["4.40", "4.45.2"])
def test_a_chosen_version_with_the_argument_is_silent(tmp_path: Path, version: str) -> None:
    from shapefix.engine.session import CheckSession
    from shapefix.engine.settings import CheckOptions, Settings

    (tmp_path / "train.py").write_text(OLD)
    options = CheckOptions(use_cache=False, transformers_version=version)
    assert CheckSession((str(tmp_path),), Settings(options)).run().findings() == ()


def test_unsloth_changes_them_from_another_file_of_the_program(check: Check) -> None:
    (check.folder / "loaded.py").write_text("import unsloth\n\ndef load():\n    return 1, 2\n")
    start = "from trl import SFTTrainer\n"
    made = "SFTTrainer(model=model, max_seq_length=512)\n"
    assert check(f"{start}model = 1\n{made}", {"SF407"})
    assert not check(f"{start}from loaded import load\nmodel, _ = load()\n{made}", {"SF407"})


@pytest.mark.parametrize("imported", ["import unsloth", "from unsloth import FastLanguageModel"])
def test_unsloth_changes_the_trainers_of_trl(imported: str, check: Check) -> None:
    code = "from trl import SFTTrainer\n{}\nSFTTrainer(model=None, tokenizer=None, max_seq_length=512)\n"
    assert [each.code for each in check(code.format("import torch"), {"SF407"})] == ["SF407", "SF407"]
    assert check(code.format(imported), {"SF407"}) == []


@pytest.mark.parametrize(("imported", "count"), [("import torch", 2), ("from pl_bolts.models import VAE", 1)])
def test_a_library_that_needs_an_older_one(imported: str, count: int, check: Check) -> None:
    code = f"from pytorch_lightning import Trainer\n{imported}\nTrainer(gpus=1, weights_summary=None)\n"
    assert len(check(code, {"SF407"})) == count


def test_another_version_of_the_class_accepts_both(check: Check) -> None:
    code = OLD.replace("import TrainingArguments", "import TrainingArguments as Base") + (
        "class TrainingArguments(Base):\n"
        "    def __init__(self, folder, evaluation_strategy='no'):\n"
        "        super().__init__(folder, eval_strategy=evaluation_strategy)\n"
    )
    assert check(code, {"SF407"}) == []


def test_the_reads_in_a_subclass_are_renamed_with_the_argument(check: Check) -> None:
    text = """\
from transformers import Trainer

class Own(Trainer):
    def pad(self):
        return self.tokenizer.pad_token_id

trainer = Own(tokenizer=object())
print(trainer.tokenizer)
"""
    (finding,) = (each for each in check(text) if each.code == "SF407")
    assert finding.fix is not None
    assert sorted(edit.span.row for edit in finding.fix.edits) == [5, 7, 8]
