"""Where a fix's import goes."""

from __future__ import annotations

import textwrap

import pytest

from shapefix.diagnostics import Applicability, Edit, Fix, Import, Span
from shapefix.repair.edits import apply
from shapefix.repair.imports import NameTaken, import_edit, with_aliases

COPY = Import("copy")
PAD = Import("torch.nn.utils.rnn", "pad_sequence")


def with_import(text: str, wanted: Import) -> str:
    edit = import_edit("a.py", text, wanted)
    assert edit is not None
    return apply(text, [Fix(Applicability.SAFE, "", (edit,))])[0]


def check(wanted: Import, before: str, after: str) -> None:
    assert with_import(textwrap.dedent(before), wanted) == textwrap.dedent(after)


def test_a_standard_module_joins_the_standard_modules() -> None:
    check(
        COPY,
        """\
        import argparse
        import os

        import torch
        """,
        """\
        import argparse
        import copy
        import os

        import torch
        """,
    )


def test_a_torch_name_joins_the_torch_imports() -> None:
    check(
        PAD,
        """\
        import os
        import torch
        from torch import nn
        from torch.utils.data import DataLoader
        os.environ["X"] = "1"
        import transformers
        """,
        """\
        import os
        import torch
        from torch import nn
        from torch.nn.utils.rnn import pad_sequence
        from torch.utils.data import DataLoader
        os.environ["X"] = "1"
        import transformers
        """,
    )


def test_without_a_standard_import_it_opens_a_block_of_its_own() -> None:
    check(
        COPY, "#!/usr/bin/env python\nimport torch\n", "#!/usr/bin/env python\nimport copy\n\nimport torch\n"
    )


def test_the_comment_of_the_first_import_stays_with_it() -> None:
    check(
        COPY,
        '"""Trains."""\n\n# tensors\nimport torch\n',
        '"""Trains."""\n\nimport copy\n\n# tensors\nimport torch\n',
    )


def test_it_comes_after_the_docstring_and_the_future() -> None:
    check(
        PAD,
        '''\
        """Trains
        for long."""
        from __future__ import annotations
        x = 1
        ''',
        '''\
        """Trains
        for long."""
        from __future__ import annotations

        from torch.nn.utils.rnn import pad_sequence

        x = 1
        ''',
    )


def test_relative_imports_come_last() -> None:
    check(
        PAD,
        "import os\n\nfrom .data import load\n",
        "import os\n\nfrom torch.nn.utils.rnn import pad_sequence\n\nfrom .data import load\n",
    )


def test_a_file_without_imports_or_without_anything() -> None:
    check(COPY, "x = 1\n", "import copy\n\nx = 1\n")
    check(COPY, "", "import copy\n")
    check(COPY, "import argparse", "import argparse\nimport copy")
    check(COPY, '"""Only words."""', '"""Only words."""\n\nimport copy')


def test_a_byte_order_mark_stays_in_front() -> None:
    check(COPY, "\ufeffimport torch\n", "\ufeffimport copy\n\nimport torch\n")
    check(
        PAD,
        "\ufefffrom torch.nn.utils.rnn import pack_sequence\n",
        "\ufefffrom torch.nn.utils.rnn import pack_sequence, pad_sequence\n",
    )


def test_rows_of_a_crlf_file_stay_crlf() -> None:
    assert (
        with_import("import os\r\nimport torch\r\n", COPY) == "import copy\r\nimport os\r\nimport torch\r\n"
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import pack_sequence", "import pack_sequence, pad_sequence"),
        ("import unpad_sequence as u", "import pad_sequence, unpad_sequence as u"),
        ("import (pack_sequence)", "import (pack_sequence, pad_sequence)"),
        (
            "import (\n    pack_sequence,\n    unpad,\n)",
            "import (\n    pack_sequence,\n    pad_sequence,\n    unpad,\n)",
        ),
        ("import (\n    a,\n    b,\n)", "import (\n    a,\n    b,\n    pad_sequence,\n)"),
        ("import (\n    a,\n    b  # why\n)", "import (\n    a,\n    pad_sequence,\n    b  # why\n)"),
        ("import a, \\\n    b", "import a, \\\n    b, pad_sequence"),
        ("import pad_sequence as pad", "import pad_sequence as pad, pad_sequence"),
    ],
)
def test_a_name_joins_the_from_import_of_its_module(before: str, after: str) -> None:
    module = "from torch.nn.utils.rnn "
    result = with_import(f"{module}{before}\n", PAD)
    assert result == f"{module}{after}\n"
    compile(result, "a.py", "exec")


def test_a_star_is_not_joined() -> None:
    star = "from torch.nn.utils.rnn import *\n"
    assert with_import(star, PAD) == f"{star}from torch.nn.utils.rnn import pad_sequence\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("import copy\n", COPY),
        ("import os, copy as copy\n", COPY),
        ("try:\n    import copy\nexcept ImportError:\n    raise\n", COPY),
        ('"""Doc."""; import copy\n', COPY),
        ("import torch.nn.functional\n", Import("torch")),
        ("import torch.nn.functional\n", Import("torch.nn")),
        ("from torch.nn.utils.rnn import (\n    pack_sequence,\n    pad_sequence,\n)\n", PAD),
        ("from .data import collate\n", Import(".data", "collate")),
    ],
)
def test_nothing_to_do_when_it_is_there(text: str, wanted: Import) -> None:
    assert import_edit("a.py", text, wanted) is None


@pytest.mark.parametrize(
    "text",
    [
        "import copy as c\n",
        "def f():\n    import copy\n",
        "if TYPE_CHECKING:\n    import copy\n",
        "class A:\n    def copy(self): ...\n",
        "class A:\n    copy = 1\n",
        "x.copy = 1\nf(copy=1)\n",
        "import torch.copy\n",
    ],
)
def test_an_import_elsewhere_or_an_attribute_does_not_count(text: str) -> None:
    result = with_import(text, COPY)
    assert "import copy\n" in result.splitlines(keepends=True)


@pytest.mark.parametrize(
    "text",
    [
        "from shutil import copy\n",
        "import numpy as copy\n",
        "import copy\ndef f(copy): ...\n",
        "def copy(): ...\n",
        "for i, (copy, *_) in y: ...\n",
        "with open(p) as copy: ...\n",
        "[copy for copy in y]\n",
        "f = lambda copy: copy\n",
        "if (copy := 1): ...\n",
        "match x:\n    case {'a': copy}: ...\n",
        "class A:\n    def f(self):\n        copy = 1\n",
        "try:\n    import copy\nexcept ImportError:\n    copy = None\n",
    ],
)
def test_a_name_that_means_something_else_is_refused(text: str) -> None:
    with pytest.raises(NameTaken, match="`copy` already means something else in this file"):
        import_edit("a.py", text, COPY)


@pytest.mark.parametrize(
    ("text", "content", "imports"),
    [
        ("import torch as th\n", "@th.no_grad()\n", ()),
        ("import torch\n", "@torch.no_grad()\n", (Import("torch"),)),
        ("import torch.nn as th\n", "@torch.no_grad()\n", (Import("torch"),)),
        (
            "try:\n    import torch as th\nexcept ImportError:\n    th = None\n",
            "@torch.no_grad()\n",
            (Import("torch"),),
        ),
    ],
)
def test_a_module_keeps_its_own_name_in_the_file(
    text: str, content: str, imports: tuple[Import, ...]
) -> None:
    edit = Edit(Span("a.py", 2, 1, 2, 1), "@torch.no_grad()\n")
    found = with_aliases(text, Fix(Applicability.UNSAFE, "", (edit,), (Import("torch"),)))
    assert [each.content for each in found.edits] == [content]
    assert found.imports == imports
