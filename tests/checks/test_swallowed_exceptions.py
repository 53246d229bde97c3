"""Handlers that swallow: how they are told from others, what they hide, and how they come to raise."""

from __future__ import annotations

import textwrap

import pytest
from checking import Check

from shapefix.diagnostics import Applicability, Diagnostic, Fix
from shapefix.repair.fixpoint import repair

LOOP = """
import gc
import logging
import sys
import traceback
import warnings

import torch
import torch.nn as nn

logger = logging.getLogger(__name__)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
failed, errors = 0, []


def clean_up():
    gc.collect()
    torch.cuda.empty_cache()


def remember(error):
    errors.append(error)


for step in range(100):
    try:
        loss = model(torch.randn(8, 4)).mean()
        loss.backward()
        optimizer.step()
{handler}
print(failed)
"""
SWALLOWING = [
    "except Exception:\n    pass",
    "except:\n    continue",
    "except BaseException as e:\n    print(e)",
    "except RuntimeError as e:\n    logger.error('step %d failed: %s', step, e)\n    continue",
    "except (RuntimeError, ValueError) as e:\n    warnings.warn(str(e))",
    "except Exception as e:\n    message = f'{step}: {e}'\n    print(message)\n    traceback.print_exc()",
    "except Exception:\n    clean_up()\n    optimizer.zero_grad()",
    "except Exception as e:\n    if step % 10 == 0:\n        print(e)\n    continue",
    "except RuntimeError as e:\n    if 'out of memory' in str(e):\n        clean_up()\n        continue\n"
    "    print('other:', e)",
    "except RuntimeError as e:\n    if 'memory' in str(e):\n        clean_up()\n    elif 'cuDNN' in str(e):\n"
    "        failed += 1\n    else:\n        pass",
    "except Exception as e:\n    text = str(e)\n    if 'memory' in text:\n        clean_up()\n    else:\n"
    "        print(text)",
    "except KeyError:\n    raise\nexcept Exception as e:\n    print(e)",
]
ANSWERING = [
    "except Exception:\n    raise",
    "except Exception as e:\n    print(e)\n    sys.exit(1)",
    "except Exception as e:\n    print(e)\n    break",
    "except Exception as e:\n    errors.append(e)",
    "except Exception as e:\n    remember(e)",
    "except Exception:\n    failed += 1",
    "except Exception:\n    loss = None",
    "except (KeyError, IndexError) as e:\n    print(e)",
    "except torch.cuda.OutOfMemoryError:\n    clean_up()",
    "except RuntimeError as e:\n    if 'out of memory' not in str(e):\n        raise\n    clean_up()",
    "except RuntimeError as e:\n    if 'out of memory' in str(e):\n        pass\n    else:\n        raise e",
    "except Exception:\n    text = traceback.format_exc()\n    if 'memory' not in text:\n        raise",
    "except Exception as e:\n    if step > 50:\n        raise\n    print(e)",
    "except Exception:\n    optimizer.load_state_dict({})",
]


def in_loop(handler: str) -> str:
    return LOOP.format(handler=textwrap.indent(handler, "    "))


@pytest.mark.parametrize("handler", SWALLOWING)
def test_a_handler_that_only_tells_of_the_exception_swallows_it(handler: str, check: Check) -> None:
    assert len(check(in_loop(handler), {"SF801"})) == 1


@pytest.mark.parametrize("handler", ANSWERING)
def test_a_handler_that_answers_to_the_exception_is_silent(handler: str, check: Check) -> None:
    assert check(in_loop(handler), {"SF801"}) == []


@pytest.mark.parametrize("handler", SWALLOWING)
def test_the_repair_leaves_nothing_that_swallows(handler: str, check: Check) -> None:
    def may(fix: Fix, diagnostic: Diagnostic) -> bool:
        return fix.applicability is Applicability.UNSAFE

    repaired = repair(in_loop(handler), lambda text: check(text, {"SF801"}), may)
    assert len(repaired.applied) == 1
    assert check(repaired.text, {"SF801", "SF704"}) == []
    compile(repaired.text, "train.py", "exec")


def test_tabs_and_comments_stay(check: Check) -> None:
    handler = "except Exception as e:\n    print(e)  # seen once\n"
    text = in_loop(handler).replace("    ", "\t")
    (diagnostic,) = check(text, {"SF801"})
    assert diagnostic.fix is not None
    repaired = repair(text, lambda text: check(text, {"SF801"}), lambda fix, diagnostic: True)
    assert "\t\tprint(e)  # seen once\n\t\traise\n" in repaired.text


@pytest.mark.parametrize(
    "around",
    [
        "for batch_size in [8, 16, 32]:",
        "for dtype in (torch.float16, torch.bfloat16):",
        "for name, rate in {'slow': 0.1, 'fast': 1.0}.items():",
        "for one in [nn.Linear(4, 1), nn.Linear(4, 2)]:",
    ],
)
def test_a_loop_over_configurations_is_no_loop_over_batches(around: str, check: Check) -> None:
    text = in_loop("except Exception as e:\n    print(e)")
    assert check(text.replace("for step in range(100):", around), {"SF801"}) == []


@pytest.mark.parametrize("made", ["torch.optim.Adam(model.parameters())", "Net()"])
def test_who_makes_a_model_or_an_optimizer_tries_a_configuration(made: str, check: Check) -> None:
    net = "\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n\n\nfor step"
    text = in_loop("except Exception as e:\n    print(e)").replace("\n\nfor step", net)
    assert len(check(text, {"SF801"})) == 1
    text = text.replace("        loss = model", f"        made = {made}\n        loss = model")
    assert check(text, {"SF801"}) == []


def test_both_phases_of_a_tutorial_are_loops_over_batches(check: Check) -> None:
    text = """
        import torch
        import torch.nn as nn
        from torch.utils.data import DataLoader

        model = nn.Linear(4, 1)
        loaders = {phase: DataLoader(torch.randn(8, 4), batch_size=4) for phase in ("train", "val")}
        for phase in ["train", "val"]:
            for batch in loaders[phase]:
                try:
                    loss = model(batch).mean()
                    if phase == "train":
                        loss.backward()
                except Exception as e:
                    print(e)
    """
    assert len(check(textwrap.dedent(text), {"SF801"})) == 1


def test_what_is_hidden_in_another_file_is_named_with_it(check: Check) -> None:
    (check.folder / "model.py").write_text(
        textwrap.dedent("""
            import torch.nn as nn

            class Net(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.fc = nn.Linear(5, 1)

                def forward(self, x):
                    return self.fc(x)
        """),
        encoding="utf-8",
    )
    text = in_loop("except Exception as e:\n    print(e)").replace("model = nn.Linear(4, 1)", "model = Net()")
    text = text.replace("import torch.nn as nn\n", "import torch.nn as nn\nfrom model import Net\n")
    (diagnostic,) = check(text, {"SF801"})
    assert diagnostic.message.endswith(": SF501 at model.py:10")


def test_one_line_that_is_tried_for_a_runtime_error_hides_and_is_not_reported_itself(check: Check) -> None:
    """Who tries one line for what torch raises knows that it may come; who does so in a loop swallows it."""
    text = """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F

        model = nn.Linear(5, 1)
        for step in range(9):
            try:
                F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1)).backward()
            except RuntimeError as e:
                print(e)
    """
    (diagnostic,) = check(textwrap.dedent(text))
    assert diagnostic.code == "SF801"
    assert diagnostic.message.endswith(": SF501 at line 9")


@pytest.mark.parametrize(
    ("handler", "verb"),
    [
        ("except Exception as e:\n    print(e)", "prints"),
        ("except Exception:\n    traceback.print_exc()\n    optimizer.zero_grad()", "prints"),
        ("except Exception as e:\n    logger.error('step %d failed: %s', step, e)\n    continue", "logs"),
        ("except Exception as e:\n    warnings.warn(str(e))", "logs"),
        (
            "except Exception as e:\n    if 'memory' in str(e):\n        print('memory')\n    else:\n"
            "        print(e)",
            "prints",
        ),
        ("except Exception:\n    pass", None),
        ("except Exception:\n    clean_up()", None),
        ("except Exception as e:\n    if step % 10 == 0:\n        print(e)", None),
        ("except Exception:\n    text = traceback.format_exc()", None),
        ("except Exception:\n    unread += 1", "counts"),
    ],
)
def test_the_message_says_whether_each_failure_leaves_a_trace(
    handler: str, verb: str | None, check: Check
) -> None:
    (diagnostic,) = check(in_loop(handler), {"SF801"})
    if verb is None:
        assert "hides errors from" in diagnostic.message
        assert diagnostic.message.endswith("every batch can fail silently")
    else:
        assert f"{verb} each failure and goes on: every batch can fail" in diagnostic.message


def test_a_function_of_the_file_may_print(check: Check) -> None:
    report = "\n\ndef report(error):\n    print('failed:', error)\n\n\nfor step"
    text = in_loop("except Exception as e:\n    report(e)").replace("\n\nfor step", report)
    (diagnostic,) = check(text, {"SF801"})
    assert "prints each failure and goes on" in diagnostic.message


@pytest.mark.parametrize(
    ("before", "handler", "after", "is_stale"),
    [
        ("", "print(e)", "total = loss.item()", True),
        ("loss = None", "print(e)", "total = loss", False),
        ("", "print(e)\n    continue", "total = loss.item()", False),
        ("", "print(e)", "total = 1", False),
    ],
)
def test_what_a_failed_batch_leaves_to_the_code_after_it(
    before: str, handler: str, after: str, is_stale: bool, check: Check
) -> None:
    text = in_loop(f"except Exception as e:\n    {handler}").replace("print(failed)", f"    {after}")
    (diagnostic,) = check(text.replace("for step", f"{before}\nfor step"), {"SF801"})
    assert diagnostic.message.endswith("then `loss` is that of the batch before") == is_stale
