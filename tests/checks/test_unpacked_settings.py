"""SF407 for arguments in an unpacked dictionary."""

from __future__ import annotations

import pytest
from checking import Check

HEAD = "import inspect\nfrom transformers import TrainingArguments\n"
REMOVED = 'settings = {"output_dir": "out", "no_cuda": True}\n'


@pytest.mark.parametrize(
    ("settings", "is_found"),
    [
        (REMOVED, True),
        ('settings = dict(output_dir="out", no_cuda=True)\n', True),
        ('settings = {"output_dir": "out"}\nsettings["no_cuda"] = True\n', True),
        ('settings = {"output_dir": "out", "use_cpu": True}\n', False),
        (f'{REMOVED}settings["use_cpu"] = settings.pop("no_cuda")\n', False),
        (
            'settings = {"output_dir": "out"}\n'
            'if "no_cuda" in inspect.signature(TrainingArguments).parameters:\n'
            '    settings["no_cuda"] = True\n',
            False,
        ),
    ],
)
def test_arguments_in_a_dictionary(settings: str, is_found: bool, check: Check) -> None:
    found = check(f"{HEAD}{settings}TrainingArguments(**settings)\n", {"SF407"})
    assert bool(found) == is_found
    assert not any(fix.edits for each in found for fix in each.fixes)
