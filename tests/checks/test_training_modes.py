"""SF804: which models come in which mode, and where a wrong mode is reported."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic
from shapefix.interpreter.containers import ListValue
from shapefix.interpreter.values import LibraryObject, PerhapsNone
from shapefix.library.nn.module import MODULE, modules_in
from shapefix.library.optim.modes import WITH_DROPOUT
from shapefix.repair.fixpoint import repair

HEAD = """\
import torch
from torch import nn
from data import loader

model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def train():
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def score():
    return sum((model(x).argmax(1) == y).sum().item() for x, y in loader)


@torch.no_grad()
def loss():
    total = 0.0
    for x, y in loader:
        total += criterion(model(x), y).item()
    return total


"""


def found(check: Check, code: str) -> list[Diagnostic]:
    """The findings of SF804 in code."""
    return check(HEAD + textwrap.dedent(code), {"SF804"})


def test_no_grad_changes_nothing_of_dropout_and_batch_norm() -> None:
    import torch
    from torch import nn

    torch.manual_seed(0)
    dropout, norm, x = nn.Dropout(0.5), nn.BatchNorm1d(4), torch.randn(16, 4) + 3
    with torch.no_grad():
        assert not torch.equal(dropout(x), x)
        norm(x)
    assert norm.running_mean is not None
    assert norm.running_mean.abs().min() > 0.1, "it has learned from what it was tested on"
    before = norm.eval().running_mean.clone()
    norm(x)
    assert torch.equal(norm.running_mean, before)
    assert torch.equal(dropout.eval()(x), x)


@pytest.mark.parametrize(
    "name",
    ["Bert", "DistilBert", "Roberta", "XLMRoberta", "Electra", "DebertaV2", "GPT2", "OPT", "T5", "Bart"],
)
def test_these_architectures_have_dropout_by_default(name: str) -> None:
    import transformers

    config = getattr(transformers, f"{name}Config")()
    assert WITH_DROPOUT.match(f"{name}Config")
    assert any(
        isinstance(value, float) and value > 0 for key, value in config.to_dict().items() if "drop" in key
    )


def test_a_model_of_transformers_comes_for_training_unless_it_is_loaded(check: Check) -> None:
    import transformers

    config = transformers.GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=20)
    made = transformers.GPT2LMHeadModel(config)
    assert made.training
    made.save_pretrained(check.folder)
    assert not transformers.GPT2LMHeadModel.from_pretrained(check.folder).training


def test_an_optional_part_belongs_to_its_model() -> None:
    model, part = LibraryObject(MODULE), LibraryObject("torch.nn.BatchNorm1d")
    model.fields["norm"] = PerhapsNone(part)
    model.fields["norms"] = ListValue((PerhapsNone(part),))
    assert list(modules_in(model)) == [model, part]


@pytest.mark.parametrize(
    "code",
    [
        "train()\nmodel.eval()\nloss()",
        "from elsewhere import prepare\nprepare(model)\nloss()",
        "for epoch in range(9):\n    model.train()\n    train()\n    model.eval()\n    loss()",
        "for epoch in range(9):\n    train()\n    if epoch == 8:\n        model.eval()\n        loss()",
        "for epoch in range(9):\n    train()\n    model.eval()\n    loss()\n    break",
        "for epoch in range(9):\n    train()\n    model.eval()\n    loss()\n    model.train(model.mode)",
        "for _ in range(9):\n    with torch.no_grad():\n        model(torch.rand(2, 8))",
        "def later():\n    return loss()",
    ],
)
def test_silent_where_it_is_not_certain(code: str, check: Check) -> None:
    assert not found(check, code)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "def test():\n    train()\n    model.train()\n    train()\n    return loss()",
            "`model.eval()` is missing",
        ),
        ("train()\nloss()", "`model.eval()` is missing"),
        ("model.eval()\nmodel.train()\nloss()", "`model.eval()` is missing"),
        (
            "for epoch in range(9):\n    train()\n    model.eval()\n    print(loss())",
            "`model.train()` is missing after `model.eval()`: from the second pass on, the model",
        ),
    ],
)
def test_reported_where_it_is(code: str, message: str, check: Check) -> None:
    (finding,) = found(check, code)
    assert message in finding.message
    assert any("this Dropout" in step.message for step in finding.evidence)


def test_a_class_of_the_project_that_is_loaded_comes_for_evaluation(check: Check) -> None:
    code = """
    from transformers import BertModel, BertPreTrainedModel

    class Tagger(BertPreTrainedModel):
        def __init__(self, config):
            super().__init__(config)
            self.bert, self.dropout = BertModel(config), nn.Dropout(0.1)

        def forward(self, x):
            return self.dropout(self.bert(x)[0])

    for tagger in (Tagger.from_pretrained("bert-base-cased"),):
        for x, y in loader:
            with torch.no_grad():
                print(tagger(x))
    """
    assert not found(check, code)


def test_a_loop_of_another_file_gets_no_line_inserted(check: Check) -> None:
    (check.folder / "steps.py").write_text(
        "class Step:\n"
        "    def __init__(self, model):\n"
        "        self.model = model\n"
        "    def __call__(self, x):\n"
        "        return self.model(x)\n"
    )
    (finding,) = check(
        "import torch\n"
        "from torch import nn\n"
        "from steps import Step\n"
        "step = Step(nn.Sequential(nn.Linear(8, 8), nn.Dropout()))\n"
        "with torch.no_grad():\n"
        "    for x in torch.utils.data.DataLoader(torch.rand(64, 8), batch_size=8):\n"
        "        print(step(x).sum())\n",
        ["SF804"],
    )
    assert finding.span.path.endswith("steps.py")
    assert not finding.fixes


EPOCHS = """\
import torch
from torch import nn
{imports}
loader = torch.utils.data.DataLoader([torch.full((8,), float(n)) for n in range(4)], batch_size=2)
modes = []


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = {body}
        self.dropout, self.head = nn.Dropout(0.5), nn.Linear(8, 1)

    def forward(self, x):
        modes.append((torch.is_grad_enabled(), self.training, self.body.training))
        return self.head(self.dropout({features}))


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    with torch.no_grad():
        for x in loader:
            model(x)
"""
PLAIN = EPOCHS.format(imports="", body="nn.Linear(8, 8)", features="self.body(x)")
LOADED = EPOCHS.format(
    imports="from transformers import BertModel",
    body='BertModel.from_pretrained("bert-base-uncased")',
    features="self.body(x.long())[0][:, 0, :8]",
)


def test_training_gets_its_mode_back_at_the_start_of_each_epoch(check: Check) -> None:
    (finding,) = check(PLAIN, {"SF804"})
    assert finding.message.startswith("`model.eval()` is missing")
    (fix,) = finding.fixes
    assert fix.message.endswith("`model.eval()`, and `model.train()` before the training loop")
    fixed = repair(PLAIN, lambda text: check(text, {"SF804"}), lambda fix, _: True).text
    assert "    model.train()\n    for x in loader:\n        optimizer" in fixed
    assert "        model.eval()\n        for x in loader:\n            model(x)\n" in fixed
    names: dict[str, list[tuple[bool, bool, bool]]] = {}
    exec(fixed, names)
    assert len(names["modes"]) == 8
    assert all(trains == mode == body for trains, mode, body in names["modes"])


def test_that_a_pretrained_part_gets_its_dropout_back_is_said(check: Check) -> None:
    (finding,) = check(LOADED, {"SF804"})
    (fix,) = finding.fixes
    assert fix.applicability is Applicability.UNSAFE
    assert len(fix.edits) == 2
    assert (
        "`model.train()` before the training loop; it turns on the dropout of the pretrained part"
        in fix.message
    )


def test_a_pretrained_part_is_not_switched_where_the_training_is_unknown(check: Check) -> None:
    text = LOADED.partition("for epoch")[0] + (
        "@torch.no_grad()\ndef evaluate(model):\n    for x in loader:\n        model(x)\n\n"
        "evaluate(model)\nfrom elsewhere import fit\nmodel(x).mean().backward()\n"
    )
    (finding,) = check(text, {"SF804"})
    (fix,) = finding.fixes
    assert fix.applicability is Applicability.DISPLAY
    assert "`model.train()` at the start of each training epoch" in fix.message


def test_the_model_is_named_where_its_forward_is_called(check: Check) -> None:
    (finding,) = found(
        check, "train()\nwith torch.no_grad():\n    for x, y in loader:\n        model.forward(x)"
    )
    assert finding.message.startswith("`model.eval()` is missing")


def test_the_named_layer_is_the_same_in_each_run(check: Check) -> None:
    layers = ", ".join(["nn.Linear(8, 8), nn.BatchNorm1d(8)"] * 12)
    code = f"""\
import torch
from torch import nn
from torch.utils.data import DataLoader

model = nn.Sequential({layers})
for x in DataLoader(torch.zeros(64, 8), batch_size=8):
    with torch.no_grad():
        print(model(x).mean())
"""
    named = {check(code, {"SF804"})[0].cause.span for _ in range(8)}
    assert len(named) == 1
