"""However a script ends, the probe tells how far it came, and leaves nothing running."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from probing import Probed, probed, runs

pytestmark = pytest.mark.slow

MODEL = """
import os, signal, sys, time
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        (MODEL + "sys.exit(3)", "sys.exit(3) at train.py:10, before any batch or model"),
        (MODEL + "step(); sys.exit('no data')", "sys.exit(1) at train.py:10: no data, after a training step"),
        (
            MODEL + "model(torch.ones(4)); os._exit(7)",
            "os._exit(7) at train.py:10, after calling `Linear`",
        ),
        (MODEL + "os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV, before any batch or model"),
        (MODEL + "raise OSError('disk')", "uncaught exception, before any batch or model"),
        (MODEL + "print(input())", "uncaught exception, before any batch or model"),
        ("x = (", "uncaught exception, before any batch or model"),
        ("import no_such_module_of_mine", "uncaught exception, before any batch or model"),
        ("print('nothing to do with torch')", "the script finished, before any batch or model"),
    ],
    ids=["exit", "exit-text", "os-exit", "signal", "exception", "stdin", "syntax", "import", "no-model"],
)
def test_how_far_it_came(tmp_path: Path, script: str, ending: str) -> None:
    ran = probed(tmp_path, script)
    assert not ran.run.complete
    assert ending in ran.ending


def test_needed_arguments_are_shown_as_the_script_words_it(tmp_path: Path) -> None:
    ran = probed(
        tmp_path, "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()"
    )
    assert "sys.exit(2) at train.py:4" in ran.ending
    assert "the following arguments are required: data" in ran.text


def test_arguments_and_the_ways_to_find_oneself_are_those_of_python(tmp_path: Path) -> None:
    script = """
        import os, sys, pickle
        import helper
        class Row: pass
        assert sys.argv == ["train.py", "--lr", "0.1"], sys.argv
        assert __name__ == "__main__" and sys.modules["__main__"].Row is Row
        assert os.path.isabs(__file__) and os.path.basename(__file__) == "train.py"
        assert sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.path
        assert not [path for path in sys.path if "shapefix" in path], sys.path
        assert isinstance(pickle.loads(pickle.dumps(Row())), Row)
        assert not [name for name in sys.modules if name.split(".")[0] in ("shapefix", "libcst", "rich")]
    """
    ran = probed(tmp_path, script, "--lr", "0.1", python=sys.executable, helper="")
    assert ran.ending == "the script finished, before any batch or model", ran.run.process.output


def test_a_loop_without_end_is_ended_with_the_line_where_it_is(tmp_path: Path) -> None:
    ran = probed(tmp_path, MODEL + "model(torch.ones(4))\nwhile True:\n    time.sleep(0.01)", timeout=5.0)
    assert "stopped at the time limit of 5 s at train.py:12, after calling `Linear`" in ran.ending
    assert ran.run.process.seconds < 30


def test_a_time_limit_within_native_code_is_kept_too(tmp_path: Path) -> None:
    script = "import re\nre.match('(a+)+$', 'a' * 64 + 'b')"
    ran = probed(tmp_path, script, timeout=2.0, python=sys.executable)
    assert ran.run.process.seconds < 30
    assert "time limit of 2 s" in ran.ending


SLOW = "import time\ntime.sleep(6)\n"


@pytest.mark.parametrize(
    "imported",
    [
        "import slow",
        *(pytest.param(each, marks=pytest.mark.long) for each in ("__import__('slow')", "import fast")),
    ],
)
def test_imports_of_libraries_do_not_count_against_the_time_limit(tmp_path: Path, imported: str) -> None:
    libraries = tmp_path / "lib" / "site-packages"
    libraries.mkdir(parents=True)
    (libraries / "slow.py").write_text(SLOW)
    (libraries / "fast.py").write_text("def __getattr__(name):\n    import slow\n    return slow\n")
    script = f"import sys\nsys.path.append({str(libraries)!r})\n{imported}\n"
    script += "fast.anything\n" if "fast" in imported else ""
    ran = probed(tmp_path, script + MODEL + "model(torch.ones(2, 4))", timeout=4.0)
    assert ran.ending.startswith("the script finished"), ran.ending
    assert ran.run.process.seconds > 6


def test_imports_of_own_modules_count(tmp_path: Path) -> None:
    ran = probed(tmp_path, "import helper", timeout=3.0, helper=SLOW)
    assert "stopped at the time limit of 3 s at helper.py:2" in ran.ending


def test_much_output_is_not_kept(tmp_path: Path) -> None:
    ran = probed(tmp_path, "import sys\nfor _ in range(3000):\n    print('x' * 100_000)\nsys.exit('the end')")
    assert len(ran.run.process.output) <= 64 * 1024
    assert "sys.exit(1) at train.py:4: the end" in ran.ending


def test_a_bare_except_does_not_keep_the_script_running(tmp_path: Path) -> None:
    ran = probed(tmp_path, MODEL + "while True:\n    try:\n        step()\n    except:\n        pass")
    assert ran.run.complete
    assert "(by force: the script catches all exceptions) after step 1; later code did not run" in ran.ending


def test_except_exception_does_not_swallow_the_stop(tmp_path: Path) -> None:
    ran = probed(
        tmp_path, MODEL + "while True:\n    try:\n        step()\n    except Exception:\n        pass"
    )
    assert ran.ending == "stopped after step 1; later code did not run"
    assert ran.found == []


def test_what_the_script_has_started_does_not_outlive_it(tmp_path: Path) -> None:
    script = """
        import os, subprocess, sys, time
        sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
        here, away = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)
        if os.fork() == 0:
            time.sleep(300)
        print(here.pid, away.pid, flush=True)
        os._exit(0)
    """
    ran = probed(tmp_path, script, python=sys.executable)
    processes = [int(word) for word in ran.run.process.output.split()]
    assert len(processes) == 2
    deadline = time.monotonic() + 10
    while any(map(runs, processes)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(runs, processes))
    assert ran.run.process.seconds < 60


def test_an_interpreter_without_torch_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('No module named torch')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ran: Probed = probed(tmp_path, "print()", python=sys.executable)
    assert "has no torch" in ran.ending
    assert "--python" in ran.ending
