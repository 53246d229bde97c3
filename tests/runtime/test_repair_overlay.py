"""Another text in the place of a file, for one run: what is imported, run and quoted, and by whom."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import fork_server
import pytest
from probing import row

from shapefix.runtime.protocol import SourceLine
from shapefix.runtime.run import ProbeRun, probe_script


def overlaid(folder: Path, script: str, **texts: str) -> ProbeRun:
    """Probe a script of folder with other texts for some of its modules."""
    named = {}
    for name, text in texts.items():
        other = folder / f"{name}.other"
        other.write_text(dedent(text), "utf-8")
        named[str((folder / f"{name}.py").resolve())] = str(other)
    (folder / "overlay.json").write_text(json.dumps(named), "utf-8")
    options = ("--overlay", str(folder / "overlay.json"))
    return probe_script(fork_server.interpreter(), str(folder / script), (), 1, 120.0, options)


def test_the_script_and_what_it_imports_are_others_and_the_disk_is_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sizes\nraise ValueError('the script on disk')\n")
    (tmp_path / "sizes.py").write_text("raise ValueError('the module on disk')\n")
    # Byte code of the module on disk, newer than any text.
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(tmp_path)], check=True)
    script = """
        import pathlib
        import torch
        import sizes

        assert pathlib.Path(__file__).name == "train.py"
        assert pathlib.Path(sizes.__file__).name == "sizes.py"
        model = torch.nn.Linear(sizes.WIDTH, 3)
        model(torch.ones(2, 5)).sum().backward()
        torch.optim.SGD(model.parameters(), 0.1).step()
    """
    before = {path: path.read_bytes() for path in tmp_path.glob("*.py")}
    run = overlaid(tmp_path, "train.py", train=script, sizes="WIDTH = 5\n")
    assert run.trained, run.process.output
    assert run.complete
    assert {path: path.read_bytes() for path in tmp_path.glob("*.py")} == before
    assert [Path(line["file"]).name for line in run.observed.of(SourceLine)] == ["train.py", "sizes.py"]


def test_places_and_values_are_those_of_the_other_text(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("\n")
    script = """
        import torch

        x = torch.ones(2, 5)
        try:
            torch.nn.Linear(4, 3)(x)  # raised
        except RuntimeError:  # swallowed
            pass
        y = torch.ones(2)
        x + y
    """
    run = overlaid(tmp_path, "train.py", train=script)
    first, last = run.observed.exceptions
    assert first.stack[0].row == row(script, "raised")
    assert first.handler is not None
    assert first.handler.row == row(script, "swallowed")
    assert last.values.keys() == {"x", "y"}
    assert "    x + y\n" in run.process.output


@pytest.mark.slow
def test_an_interpreter_that_multiprocessing_starts_reads_it_too(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text("def done(n):\n    return -1\n")
    (tmp_path / "train.py").write_text("raise ValueError('the script on disk')\n")
    script = """
        import multiprocessing
        import torch
        from work import done

        if __name__ == "__main__":
            for method in ("spawn", "forkserver", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(done, [1, 2]))
    """
    run = overlaid(tmp_path, "train.py", train=script, work="def done(n):\n    return n * 21\n")
    for method in ("spawn", "forkserver", "fork"):
        assert f"{method} [21, 42]\n" in run.process.output
