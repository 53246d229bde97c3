"""What a script writes goes to a folder of the probe, where the script finds it again; its own files stay."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import os
import sqlite3
import stat
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from probing import probed, probed_file

from shapefix.runtime.agent import references
from shapefix.runtime.working_tree import METHODS


@pytest.fixture(autouse=True)
def without_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the redirection alone, as on systems without overlay mounts and Landlock."""
    monkeypatch.setenv(METHODS, "none")


WRITES = """
    import json, os, pathlib, shutil, tempfile
    import numpy as np
    import torch

    model = torch.nn.Linear(4, 2)
    os.makedirs("runs/first", exist_ok=True)
    torch.save(model.state_dict(), "runs/first/model.pt")
    model.load_state_dict(torch.load("runs/first/model.pt"))
    pathlib.Path("runs/notes.txt").write_text("new")
    assert pathlib.Path("runs/notes.txt").read_text() == "new"
    assert sorted(os.listdir("runs")) == ["first", "notes.txt"]
    assert [path.name for path in pathlib.Path("runs").glob("**/*.pt")] == ["model.pt"]
    np.save("array.npy", np.ones(3))
    assert np.load("array.npy").sum() == 3

    with open("log.txt", "a") as log:
        log.write("second\\n")
    assert open("log.txt").read() == "first\\nsecond\\n"
    with open("log.txt", "r+") as log:
        log.write("FIRST")
    assert open("log.txt").read() == "FIRST\\nsecond\\n"

    os.remove("old.txt")
    assert not os.path.exists("old.txt") and "old.txt" not in os.listdir()
    try:
        open("old.txt")
    except FileNotFoundError:
        pass
    else:
        raise AssertionError("it is still there")
    shutil.rmtree("results")
    assert not os.path.isdir("results")
    os.makedirs("results")
    assert os.listdir("results") == []
    os.rename("data.json", "moved.json")
    assert json.load(open("moved.json")) == [1] and not os.path.exists("data.json")
    os.replace("runs/first/model.pt", "best.pt")
    assert os.path.getsize("best.pt") > 0 and not os.path.exists("runs/first/model.pt")
    os.chmod("kept.txt", 0o600)
    shutil.copytree("runs", "copy")
    assert os.path.isdir("copy/first")
    shutil.rmtree("runs")
    assert not os.path.exists("runs/first")
    try:
        open("no/such/folder/file.txt", "w")
    except FileNotFoundError:
        pass
    else:
        raise AssertionError("that folder is not there")
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "x").write_text("x")
    with os.scandir(".") as entries:
        names = sorted(entry.name for entry in entries)
    assert names == [
        "array.npy", "best.pt", "copy", "kept.txt", "log.txt", "moved.json", "results", "train.py"
    ], names
    model(torch.ones(1, 4))
    print("all of it")
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["overlay", "landlock", "none"])
def test_a_script_sees_its_writes_and_the_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setenv(METHODS, method)
    files = {"log.txt": "first\n", "old.txt": "old", "data.json": "[1]", "kept.txt": "kept"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "best.txt").write_text("0.9")
    mode = (tmp_path / "kept.txt").stat().st_mode
    ran = probed(tmp_path, WRITES)
    assert ran.run.process.output == "all of it\n"
    assert ran.ending == "the script finished"
    for name, text in files.items():
        assert (tmp_path / name).read_text() == text
    assert (tmp_path / "results" / "best.txt").read_text() == "0.9"
    assert (tmp_path / "kept.txt").stat().st_mode == mode
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*files, "results", "train.py"])
    assert (
        f"written to a temporary folder: {'array.npy, best.pt, ' if method == 'overlay' else 'runs, runs/, '}"
        in (ran.text)
    )


def test_trackers_are_told_to_stay_offline(tmp_path: Path) -> None:
    script = """
        import os, torch
        print(os.environ["WANDB_MODE"], os.path.isdir(os.environ["WANDB_DIR"]), os.environ["NEPTUNE_MODE"])
        torch.nn.Linear(1, 1)(torch.ones(1))
    """
    ran = probed(tmp_path, script)
    assert ran.run.process.output == "offline True offline\n"


# Each by another way into the file system; what is there before is overwritten, too.
MORE_WRITES = """
    import bz2, codecs, gzip, io, lzma, logging, os, pathlib, shelve, socket, sqlite3, tarfile
    import zipfile
    import numpy as np
    import torch

    model = torch.nn.Linear(4, 2)

    def refused(function, *args, **kwargs):
        try:
            function(*args, **kwargs)
        except OSError as error:
            return error.errno == 30 and "the probe cannot redirect this write" in str(error)
        return False

    # numpy keeps its own reference to `open`, and a table of openers by the file's name.
    for times in range(2):
        np.savetxt("results.txt", np.full(3, 7.0 + times))
        assert np.loadtxt("results.txt").tolist() == [7.0 + times] * 3
    for name in ("results.txt.gz", "results.txt.bz2", "results.txt.xz"):
        np.savetxt(name, np.ones(2))
        assert np.loadtxt(name).sum() == 2
    np.savez("arrays.npz", a=np.ones(3))
    assert np.load("arrays.npz")["a"].sum() == 3
    np.arange(4.0).tofile("raw.bin")
    assert np.fromfile("raw.bin").sum() == 6
    mapped = np.memmap("kept.bin", dtype="uint8", mode="r+")
    mapped[:] = 1
    mapped.flush()
    assert open("kept.bin", "rb").read() == bytes([1] * 64)

    for module in (gzip, bz2, lzma):
        with module.open(f"text.{module.__name__}", "wt") as file:
            file.write("packed")
        assert module.open(f"text.{module.__name__}", "rt").read() == "packed"
    with zipfile.ZipFile("all.zip", "w") as archive:
        archive.writestr("x", "x")
    assert zipfile.ZipFile("all.zip").namelist() == ["x"]
    with tarfile.open("all.tar.gz", "w:gz") as archive:
        archive.add("train.py")
    assert tarfile.open("all.tar.gz").getnames() == ["train.py"]
    pathlib.Path("results.txt").touch()
    pathlib.Path("bytes.bin").write_bytes(b"bytes")
    assert pathlib.Path("bytes.bin").read_bytes() == b"bytes"
    with codecs.open("coded.txt", "w", "utf-8") as file:
        file.write("coded")
    with io.FileIO("rawer.bin", "w") as file:
        file.write(b"raw")
    assert io.FileIO("rawer.bin").read() == b"raw"
    with open("rawer.bin", "rb") as file:
        assert isinstance(file.raw, io.FileIO) and issubclass(type(file.raw), io.FileIO)
        assert not isinstance(file, io.FileIO)
    logging.basicConfig(filename="run.log", level="INFO")
    logging.info("logged")
    assert "logged" in open("run.log").read()
    with shelve.open("shelf") as shelf:
        shelf["x"] = 1
    assert shelve.open("shelf")["x"] == 1

    # SQLite, on a file that is there, on a new one, as a URI and for reading only.
    for uri in (False, True):
        base = sqlite3.connect("file:kept.db?mode=rw" if uri else "kept.db", uri=uri)
        base.execute("insert into t values (2)")
        base.commit()
        base.close()
    base = sqlite3.connect("file:kept.db?mode=ro", uri=True)
    assert base.execute("select x from t").fetchall() == [(1,), (2,), (2,)]
    assert sqlite3.connect("file:other.db?mode=ro", uri=True).execute("select x from t").fetchall() == [(1,)]
    base = sqlite3.connect("new.db")
    base.execute("create table t (x)")
    base.commit()
    assert os.path.getsize("new.db") and sqlite3.connect(":memory:")

    # What torch opens in C++.
    scripted = torch.jit.script(model)
    torch.jit.save(scripted, "jit.pt")
    assert torch.equal(torch.jit.load("jit.pt").weight, model.weight)
    scripted.save("method.pt")
    assert torch.jit.load("method.pt").weight.shape == (2, 4)
    torch.jit.trace(lambda x: x + 1, torch.ones(2)).save("function.pt")
    assert "add" in torch.jit.load("function.pt").code
    torch.serialization.save(model.state_dict(), "state.pt")
    assert torch.serialization.load("state.pt", mmap=True)["weight"].shape == (2, 4)
    with torch.package.PackageExporter("package.pt") as exporter:
        exporter.save_pickle("model", "weight.pkl", [1, 2])
    assert torch.package.PackageImporter("package.pt").load_pickle("model", "weight.pkl") == [1, 2]
    torch.from_file("kept.bin", shared=True, size=16).fill_(3.0)
    torch.from_file("shared.bin", True, 4).fill_(5.0)
    assert torch.from_file("shared.bin", size=4).tolist() == [5.0] * 4
    torch.UntypedStorage.from_file("storage.bin", shared=True, nbytes=4).fill_(1)
    assert open("storage.bin", "rb").read() == bytes([1] * 4)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        torch.ones(2).sum()
    profiler.export_chrome_trace("trace.json")
    assert os.path.getsize("trace.json")

    # Links lead the writes that go through them to the same place; a hard link is a copy.
    os.mkfifo("fifo")
    assert "fifo" in os.listdir()
    os.symlink(os.path.abspath("linked.txt"), "soft")
    assert os.readlink("soft") == os.path.abspath("linked.txt")
    with open("soft", "a") as file:
        file.write(" and more")
    assert open("linked.txt").read() == open("soft").read() == "linked and more"
    os.symlink(os.getcwd(), "here")
    with open("here/through.txt", "w") as file:
        file.write("through")
    assert open("through.txt").read() == "through"
    os.link("linked_hard.txt", "hard")
    with open("hard", "a") as file:
        file.write("!")
    os.remove("soft")
    assert open("linked.txt").read() == "linked and more" and "soft" not in os.listdir()
    with open("/proc/self/cwd/proc.txt", "w") as file:
        file.write("proc")
    assert open("proc.txt").read() == "proc"
    folder = os.open(".", os.O_RDONLY)
    os.close(os.open("beside", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    os.mkdir("inner", dir_fd=folder)
    os.rename("kept.txt", "renamed.txt", src_dir_fd=folder, dst_dir_fd=folder)
    assert os.path.exists("beside") and os.path.isdir("inner") and open("renamed.txt").read() == "kept"

    # What has got hold of the system's own functions fails.
    import _io, posix
    assert refused(_io.FileIO, "refused.txt", "w")
    assert refused(posix.open, "refused.txt", os.O_WRONLY | os.O_CREAT)
    assert refused(posix.mkdir, "refused")
    assert refused(posix.unlink, "linked.txt") and refused(posix.rename, "linked.txt", "lost.txt")
    assert refused(os.chmod, os.open("sub", os.O_RDONLY), 0o700)
    assert refused(sqlite3.Connection, "refused.db")
    assert refused(socket.socket(socket.AF_UNIX).bind, "refused.socket")

    model(torch.ones(1, 4))
    print("all of it")
"""


def _tree(folder: Path) -> dict[str, tuple[str, str, int]]:
    """What each name below a folder is: its kind and mode, a digest of its content, its time."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
        digest = hashlib.sha256(data).hexdigest()
        found[str(path.relative_to(folder))] = (stat.filemode(state.st_mode), digest, state.st_mtime_ns)
    return found


def test_every_way_to_write_leaves_the_tree_as_it_is(tmp_path: Path) -> None:
    texts = {
        "results.txt": "my precious results\n", "results.txt.gz": "no gzip", "linked.txt": "linked",
        "linked_hard.txt": "hard", "kept.txt": "kept", "jit.pt": "no model", "run.log": "",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "kept.bin").write_bytes(bytes(64))
    for name in ("kept.db", "other.db"):
        with contextlib.closing(sqlite3.connect(tmp_path / name)) as base:
            base.execute("create table t (x)")
            base.execute("insert into t values (1)")
            base.commit()
    (tmp_path / "sub").mkdir()
    (tmp_path / "train.py").write_text(dedent(MORE_WRITES))
    before = _tree(tmp_path)
    ran = probed_file(tmp_path, "train.py")
    # torch's profiler has printed lines of its own.
    assert ran.run.process.output.endswith("\nall of it\n"), ran.run.process.output
    assert ran.ending == "the script finished"
    assert _tree(tmp_path) == before
    observed = ran.run.observed
    written = {Path(path).name for path in observed.written}
    assert {"results.txt", "arrays.npz", "rawer.bin", "kept.db", "new.db", "jit.pt", "kept.bin"} <= written
    assert {"function.pt", "package.pt", "shared.bin", "trace.json", "fifo", "here", "beside"} <= written
    assert {Path(path).name for path in observed.refused} == {
        "refused.txt", "refused", "linked.txt", "sub", "refused.db", "refused.socket"
    }  # fmt: skip
    assert observed.changed == ()
    assert "not written (the probe cannot redirect these writes): refused.txt, refused, " in ran.text


def test_a_table_of_pandas_goes_to_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "table.csv").write_text("mine")
    (tmp_path / "table.csv.gz").write_text("mine")
    script = """
        import pandas, torch
        table = pandas.DataFrame({"x": [1, 2]})
        for name in ("table.csv", "table.csv.gz"):
            table.to_csv(name, index=False)
            assert pandas.read_csv(name)["x"].tolist() == [1, 2]
        table.to_pickle("table.pkl")
        assert pandas.read_pickle("table.pkl")["x"].tolist() == [1, 2]
        table.to_json("table.json")
        torch.nn.Linear(1, 1)(torch.ones(1))
        print("all of it")
    """
    ran = probed(tmp_path, script)
    assert ran.run.process.output == "all of it\n"
    assert (tmp_path / "table.csv").read_text() == (tmp_path / "table.csv.gz").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.csv.gz", "train.py"]


def test_no_redirection_is_claimed_of_a_file_that_has_changed(tmp_path: Path) -> None:
    (tmp_path / "both.txt").write_text("mine")
    script = """
        import ctypes, subprocess, sys, torch
        torch.nn.Linear(1, 1)(torch.ones(1))
        for name in ("both.txt", "new.txt", "only.txt"):
            with open(name, "w") as file:
                file.write("by Python")
        subprocess.run([sys.executable, "-c", "open('both.txt', 'w').write('by a program')"], check=True)
        library = ctypes.CDLL(None)
        library.fopen.restype = ctypes.c_void_p
        library.fclose(ctypes.c_void_p(library.fopen(b"new.txt", b"w")))
    """
    ran = probed(tmp_path, script)
    assert (tmp_path / "both.txt").read_text() == "by a program"
    names = {str(tmp_path / name) for name in ("both.txt", "new.txt")}
    assert set(ran.run.observed.changed) == names
    assert ran.run.observed.written == (str(tmp_path / "only.txt"),)
    assert "written to a temporary folder: only.txt\n" in ran.text
    assert "changed in the working tree during the run: both.txt, new.txt\n" in ran.text


def test_a_working_tree_within_a_cache_is_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tree").mkdir()
    script = """
        import os, torch
        torch.nn.Linear(1, 1)(torch.ones(1))
        open("here.txt", "w").write("x")
        open("../cached.txt", "w").write("x")
    """
    ran = probed(tmp_path / "tree", script)
    assert [path.name for path in (tmp_path / "tree").iterdir()] == ["train.py"]
    assert (tmp_path / "cached.txt").read_text() == "x"
    assert ran.ending == "the script finished"


def test_functions_are_replaced_wherever_something_holds_them() -> None:
    gc.unfreeze()  # The tests freeze what is imported, and nothing refers to frozen objects.
    original = os.getpgid  # one that nothing else in the tests needs

    class Accessor:
        found: Any = os.getpgid
        static: Any = staticmethod(os.getpgid)

    class Slotted:
        __slots__ = ("held",)

    class Instance:
        pass

    def given(first: object = os.getpgid, *, second: object = os.getpgid) -> tuple[object, object]:
        return first, second

    def enclosing() -> object:
        held = os.getpgid
        return lambda: held

    slotted, instance, closure = Slotted(), Instance(), enclosing()
    slotted.held = instance.held = os.getpgid  # type: ignore[attr-defined]
    table, known = {".gz": os.getpgid}, [os.getpgid]
    partials = functools.partial(os.getpgid, 0), functools.partial(print, os.getpgid, end=os.getpgid)

    @functools.wraps(original)
    def replacement(*arguments: int) -> tuple[str, tuple[int, ...]]:
        return "replacement", arguments

    references.replace([(original, replacement)], "no_package")
    try:
        assert vars(os)["getpgid"] is replacement
        assert Accessor.found(1) == Accessor().found(1) == Accessor().static(1) == ("replacement", (1,))
        assert given() == (replacement, replacement)
        assert closure() is replacement  # type: ignore[operator]
        assert slotted.held is instance.held is replacement  # type: ignore[attr-defined]
        assert (table, known) == ({".gz": replacement}, [replacement])
        assert partials[0].func is replacement
        assert (partials[1].args, partials[1].keywords) == ((replacement,), {"end": replacement})
        # What stands in for a function still reaches it.
        assert replacement.__wrapped__ is not replacement  # type: ignore[attr-defined]
    finally:
        os.getpgid = replacement.__wrapped__  # type: ignore[attr-defined]
