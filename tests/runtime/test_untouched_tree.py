"""No way of writing changes the working tree: from Python, from native code, and from other programs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from probing import ROOT, Probed, probed_file

from shapefix.cli.exit_codes import CLEAN, FAILED, code_of
from shapefix.runtime import working_tree
from shapefix.runtime.findings.collect import REFUSED_WRITE, collect_findings
from shapefix.runtime.protocol import WriteProtectionLine
from shapefix.runtime.working_tree import METHODS

# Each way overwrites or removes `mine`, and makes `new`: paths of its own, without and with a folder.
WAYS = """
    import bz2, codecs, csv, ctypes, gzip, io, json, logging, lzma, mmap, multiprocessing, os, pathlib
    import _io, pickle, posix, py_compile, shelve, shutil, socket, sqlite3, subprocess, sys, tarfile
    import tempfile, zipfile
    import numpy as np
    import torch

    WAYS, ATTRIBUTES = {}, {}
    library = ctypes.CDLL(None, use_errno=True)
    library.fopen.restype = library.mmap.restype = ctypes.c_void_p

    def way(function):
        WAYS[function.__name__] = function

    def attributes(function):
        ATTRIBUTES[function.__name__] = function

    def check(result):
        if result is None or result < 0:
            raise OSError(ctypes.get_errno(), "native")
        return result

    def write(path, mode="w"):
        with open(path, mode) as file:
            file.write("x")

    def run(text, *arguments):
        subprocess.run(["sh", "-ec", text, "sh", *arguments], check=True, stdout=2)

    # Python

    @way
    def open_w(mine, new): write(mine); write(new)
    @way
    def open_a(mine, new): write(mine, "a"); write(new, "a")
    @way
    def open_x(mine, new): write(new, "x")
    @way
    def open_update(mine, new): write(mine, "r+"); write(new, "w+")
    @way
    def pathlib_text(mine, new): pathlib.Path(mine).write_text("x"); pathlib.Path(new).touch()
    @way
    def os_open(mine, new):
        for path in (mine, new):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
    @way
    def os_open_at(mine, new):
        folder = os.open(os.path.dirname(new), os.O_RDONLY)
        os.close(os.open(os.path.basename(new), os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    @way
    def raw_io(mine, new): _io.FileIO(mine, "w").write(b"x"); _io.FileIO(new, "w").write(b"x")
    @way
    def file_io(mine, new): io.FileIO(mine, "w").write(b"x"); io.FileIO(new, "w").write(b"x")
    @way
    def posix_open(mine, new):
        for path in (mine, new):
            os.write(posix.open(path, os.O_WRONLY | os.O_CREAT), b"x")
    @way
    def posix_names(mine, new): posix.unlink(mine); posix.mkdir(new)
    @way
    def posix_rename(mine, new): posix.rename(mine, new)
    @way
    def posix_truncate(mine, new): posix.truncate(mine, 0)
    @way
    def codecs_open(mine, new): codecs.open(mine, "w", "utf-8").write("x"); codecs.open(new, "w").write("x")
    @way
    def memory_map(mine, new):
        with open(mine, "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[0] = 1
    @way
    def truncate(mine, new): os.truncate(mine, 0)
    @way
    def rename(mine, new): os.rename(mine, new)
    @way
    def replace(mine, new): write(new); os.replace(new, mine)
    @way
    def remove(mine, new): os.remove(mine)
    @way
    def remove_tree(mine, new): shutil.rmtree(os.path.dirname(mine))
    @way
    def make_again(mine, new):
        shutil.rmtree(os.path.dirname(mine))
        os.mkdir(os.path.dirname(mine))
        write(new)
    @way
    def copy(mine, new): shutil.copy(__file__, mine); shutil.copytree(os.path.dirname(mine), new)
    @way
    def move(mine, new): shutil.move(mine, new)
    @way
    def hard_link(mine, new): os.link(mine, new); write(new)
    @way
    def symbolic_link(mine, new): os.symlink(os.path.abspath(mine), new); write(new)
    @way
    def link_of_the_user(mine, new): write(os.path.dirname(mine) + "/link")
    @way
    def link_out_of_the_tree(mine, new):
        folder = os.path.dirname(mine) + "/out"
        write(folder + "/file"); write(folder + "/more")
    @way
    def absolute(mine, new): write(os.path.abspath(mine)); write(os.path.realpath(new))
    @way
    def after_chdir(mine, new):
        before = os.getcwd()
        os.chdir(os.path.dirname(mine))
        write(os.path.basename(mine)); write("../" + new)
        os.chdir(before)
    @way
    def kernel_paths(mine, new): write("/proc/self/cwd/" + mine); write(f"/proc/{os.getpid()}/cwd/{new}")
    @way
    def fifo(mine, new): os.mkfifo(new)
    @way
    def unix_socket(mine, new):
        os.chdir(os.path.dirname(new))
        try:
            socket.socket(socket.AF_UNIX).bind("new")
        finally:
            os.chdir("..")
    @way
    def temporary(mine, new): tempfile.NamedTemporaryFile(dir=os.path.dirname(mine), delete=False).write(b"x")
    @way
    def copy_range(mine, new):
        source = os.open(__file__, os.O_RDONLY)
        os.sendfile(os.open(mine, os.O_WRONLY | os.O_CREAT), source, 0, 10)
        os.copy_file_range(source, os.open(new, os.O_WRONLY | os.O_CREAT), 10)
    @way
    def zip_file(mine, new):
        with zipfile.ZipFile(mine, "w") as file: file.writestr("x", "x")
    @way
    def tar_file(mine, new):
        with tarfile.open(mine, "w:gz") as file: file.add(__file__)
        tarfile.open(mine).extractall(new)
    @way
    def compressed(mine, new):
        for number, module in enumerate((gzip, bz2, lzma)):
            with module.open(new + str(number), "wt") as file: file.write("x")
    @way
    def csv_json_pickle(mine, new):
        with open(mine, "w") as file: csv.writer(file).writerow([1])
        with open(new, "w") as file: json.dump([1], file)
        with open(new + "2", "wb") as file: pickle.dump([1], file)
    @way
    def logs(mine, new): logging.FileHandler(mine).emit(logging.makeLogRecord({"msg": "x"}))
    @way
    def shelf(mine, new): shelve.open(new)["x"] = 1
    @way
    def byte_code(mine, new): py_compile.compile(__file__, mine)
    @way
    def sqlite(mine, new):
        base = sqlite3.connect(new)
        base.execute("create table t (x)")
        base.commit()
    @way
    def sqlite_attached(mine, new):
        base = sqlite3.connect(":memory:")
        base.execute("attach ? as other", (new,))
        base.execute("create table other.t (x)")
        base.execute("vacuum other into ?", (new + "2",))
        base.commit()

    # NumPy, torch and other libraries

    @way
    def numpy_save(mine, new): np.save(new, np.ones(2)); np.savetxt(mine, np.ones(2)); np.ones(2).tofile(new)
    @way
    def numpy_map(mine, new):
        mapped = np.memmap(mine, dtype="uint8", mode="r+")
        mapped[:] = 1
        mapped.flush()
    @way
    def torch_save(mine, new): torch.save([1], mine); torch.save([1], new)
    @way
    def torch_script(mine, new):
        scripted = torch.jit.script(torch.nn.Linear(1, 1))
        torch.jit.save(scripted, mine); scripted.save(new)
    @way
    def torch_shared(mine, new):
        torch.from_file(mine, shared=True, size=1).fill_(3.0)
        torch.UntypedStorage.from_file(new, shared=True, nbytes=4).fill_(1)
    @way
    def torch_trace(mine, new):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            torch.ones(2).sum()
        profiler.export_chrome_trace(new)
    @way
    def torch_writer(mine, new):
        writer = torch._C.PyTorchFileWriter(new)
        writer.write_record("x", b"x", 1)
        writer.write_end_of_file()
    @way
    def torch_store(mine, new): torch.distributed.FileStore(new, 1).set("x", "x")
    @way
    def safetensors(mine, new):
        from safetensors.torch import save_file
        save_file({"x": torch.ones(2)}, mine)
    @way
    def parquet(mine, new):
        import pyarrow, pyarrow.parquet
        pyarrow.parquet.write_table(pyarrow.table({"x": [1]}), mine)
        pyarrow.parquet.write_to_dataset(pyarrow.table({"x": [1]}), new)
    @way
    def arrow_stream(mine, new):
        import pyarrow
        pyarrow.OSFile(new, "wb").write(b"x")
        pyarrow.memory_map(mine, "r+").write(b"x")
    @way
    def arrow_file_system(mine, new):
        from pyarrow import fs
        fs.LocalFileSystem().delete_file(os.path.abspath(mine))
        fs.LocalFileSystem().create_dir(os.path.abspath(new))
    @way
    def pandas_table(mine, new):
        import pandas
        pandas.DataFrame({"x": [1]}).to_parquet(mine); pandas.DataFrame({"x": [1]}).to_csv(new)
    @way
    def saved_dataset(mine, new):
        import datasets
        datasets.Dataset.from_dict({"x": [1]}).save_to_disk(new)

    # The C library

    @way
    def c_fopen(mine, new):
        for path in (mine, new):
            library.fclose(ctypes.c_void_p(check(library.fopen(path.encode(), b"w"))))
    @way
    def c_open(mine, new):
        for path in (mine, new):
            library.write(check(library.open(path.encode(), os.O_WRONLY | os.O_CREAT, 0o644)), b"x", 1)
    @way
    def c_syscall(mine, new):
        check(library.syscall(ctypes.c_long(257), -100, mine.encode(), os.O_WRONLY | os.O_TRUNC, 0))
    @way
    def c_unlink(mine, new): check(library.unlink(mine.encode()))
    @way
    def c_rename(mine, new): check(library.rename(mine.encode(), new.encode()))
    @way
    def c_link(mine, new):
        check(library.link(mine.encode(), new.encode())); check(library.truncate(new.encode(), 0))
    @way
    def c_symlink(mine, new): check(library.symlink(b"mine", new.encode()))
    @way
    def c_folder(mine, new): check(library.mkdir(new.encode(), 0o755))
    @way
    def c_truncate(mine, new): check(library.truncate(mine.encode(), 0))
    @way
    def c_map(mine, new):
        descriptor = check(library.open(mine.encode(), os.O_RDWR))
        mapped = library.mmap(None, 4096, 3, 1, descriptor, 0)
        ctypes.memset(mapped, 1, 4)
    @way
    def c_fifo(mine, new): check(library.mkfifo(new.encode(), 0o644))

    # Other programs

    @way
    def shell(mine, new): run('echo x > "$1"; echo x >> "$2"', mine, new)
    @way
    def shell_by_os(mine, new):
        if os.system(f"echo x > {mine} && echo x > {new}"): raise OSError("shell")
    @way
    def shell_names(mine, new): run('mv "$1" "$2"; mkdir "$1"', mine, new)
    @way
    def shell_removes(mine, new): run('rm -rf "$(dirname "$1")"', mine)
    @way
    def sed(mine, new): run('sed -i s/my/your/ "$1"; cp "$1" "$2"; touch "$1"', mine, new)
    @way
    def absolute_by_shell(mine, new): run('cd /; echo x > "$1"', os.path.abspath(mine))
    @way
    def git(mine, new): run('git init -q "$1"', new)
    @way
    def python(mine, new):
        subprocess.run([sys.executable, "-c", f"open({mine!r}, 'w'); open({new!r}, 'w')"], check=True)
    @way
    def spawned(mine, new):
        process = multiprocessing.get_context("spawn").Process(target=write, args=(mine,))
        process.start(); process.join()
        if process.exitcode: raise OSError("spawned")
    @way
    def forked(mine, new):
        child = os.fork()
        if child == 0:
            os._exit(0 if library.open(mine.encode(), os.O_WRONLY | os.O_TRUNC) >= 0 else 1)
        if os.waitpid(child, 0)[1]: raise OSError("fork")
    @way
    def posix_spawn(mine, new):
        child = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo x > {mine}"], os.environ)
        if os.waitpid(child, 0)[1]: raise OSError("posix_spawn")
    @way
    def daemon(mine, new):
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.execv("/bin/sh", ["sh", "-c", f"sleep 0.2; echo x > {mine}; echo x > {new}"])
        import time
        time.sleep(0.6)
        if not os.path.exists(new): raise OSError("daemon")

    # Modes, times and attributes

    @attributes
    def change_mode(mine, new): os.chmod(mine, 0o600)
    @attributes
    def change_times(mine, new): os.utime(mine, (0, 0))
    @attributes
    def change_attribute(mine, new): os.setxattr(mine, "user.x", b"x")
    @attributes
    def change_mode_of_folder(mine, new): posix.chmod(os.path.dirname(mine), 0o700)
    @attributes
    def c_chmod(mine, new): check(library.chmod(mine.encode(), 0o600))
    @attributes
    def c_attribute(mine, new): check(library.setxattr(mine.encode(), b"user.x", b"x", 1, 0))
    @attributes
    def shell_attributes(mine, new): run('chmod 600 "$1"; touch -d 2001-01-01 "$1"', mine)

    if __name__ == "__main__":
        done = {}
        for name, function in {**WAYS, **(ATTRIBUTES if sys.argv[1:] else {})}.items():
            sys.stdout.flush()
            try:
                function(f"{name}/mine", f"{name}/new")
            except Exception as error:
                done[name] = f"{type(error).__name__}: {error}"
            else:
                done[name] = None
        torch.nn.Linear(1, 1)(torch.ones(1))
        print("\\n" + json.dumps(done))
"""
NAMES = [
    line.split("(")[0].split()[-1]
    for line in dedent(WAYS).splitlines()
    if line.startswith("def ") and line.partition("(")[2].startswith("mine, new)")
]


def tree(folder: Path) -> dict[str, tuple[object, ...]]:
    """The mode, the times, the attributes and a digest of everything below a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        state = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(state.st_mode) else b""
        names = os.listxattr(path, follow_symlinks=False)
        found[str(path.relative_to(folder))] = (
            stat.filemode(state.st_mode), state.st_mtime_ns, state.st_ino, state.st_nlink, tuple(names),
            hashlib.sha256(data).hexdigest(),
        )  # fmt: skip
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the script, a file for each way in a folder of its own, and links."""
    folder, outside = tmp_path / "project", tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("my outside")
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        (folder / name / "mine").write_text(f"my {name}\n" * 1000)
    (folder / "link_of_the_user" / "link").symlink_to(folder / "link_of_the_user" / "mine")
    (folder / "link_out_of_the_tree" / "out").symlink_to(outside)
    (folder / "train.py").write_text(dedent(WAYS))
    return folder


def method_of(ran: Probed, method: str) -> WriteProtectionLine:
    """The line on the protection of a run; skips the test where the system does not have the method."""
    line = ran.run.observed.first(WriteProtectionLine)
    assert line is not None, ran.run.process.output
    if line["method"] != method:
        pytest.skip(f"{method} is not available: {line['reason']}")
    return line


def results(ran: Probed) -> dict[str, str | None]:
    (row,) = [row for row in ran.run.process.output.splitlines() if row.startswith("{")]
    found: dict[str, str | None] = json.loads(row)
    return found


def test_there_are_sixty_ways() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 60


@pytest.mark.slow
def test_no_way_of_writing_changes_a_tree_below_an_overlay(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METHODS, "overlay")
    before, outside = tree(project), tree(project.parent / "outside")
    ran = probed_file(project, "train.py", "with attributes")
    after = tree(project)
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert after == before
    assert tree(project.parent / "outside") == outside
    method_of(ran, "overlay")
    assert {name: error for name, error in results(ran).items() if error is not None} == {}
    assert sorted(results(ran)) == sorted(NAMES)
    observed = ran.run.observed
    assert observed.changed == observed.refused == ()
    assert {str(project / name / "mine") for name in ("c_fopen", "parquet", "python")} <= set(
        observed.written
    )
    assert {str(project / name / "mine") for name in ("c_unlink", "remove", "posix_names")} <= set(
        observed.deleted
    )
    assert "protected by an overlay mount: " in ran.text


@pytest.mark.slow
def test_no_way_of_writing_changes_the_content_of_a_tree_below_landlock(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METHODS, "landlock")
    before, outside = tree(project), tree(project.parent / "outside")
    ran = probed_file(project, "train.py")
    after = tree(project)
    assert {name for name in before if before[name] != after.get(name)} == set()
    assert after == before
    assert tree(project.parent / "outside") == outside
    method_of(ran, "landlock")
    failed = {name: error for name, error in results(ran).items() if error is not None}
    assert {"c_fopen", "c_unlink", "shell", "python", "daemon", "forked"} <= set(failed)
    assert not {"open_w", "torch_save", "numpy_save", "torch_script", "sqlite", "rename"} & set(failed)
    assert ran.run.observed.changed == ()
    assert not any(Path(path).parent.name == "c_fopen" for path in ran.run.observed.written)
    assert "protected by Landlock: " in ran.text


NATIVE = """
    import os, subprocess, torch
    torch.nn.Linear(1, 1)(torch.ones(1))
    subprocess.run("echo x > mine; echo x > new; cat new", shell=True)
"""


def test_without_protection_the_report_lists_what_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METHODS, "none")
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "train.py").write_text(dedent(NATIVE))
    ran = probed_file(tmp_path, "train.py")
    method_of(ran, "none")
    assert ran.run.observed.written == ()
    assert set(ran.run.observed.changed) == {str(tmp_path / "mine"), str(tmp_path / "new")}
    assert "changed in the working tree during the run: mine, new\n" in ran.text
    assert "not protected against writes by native code and other programs" in ran.text


def test_more_files_than_are_compared_are_not_called_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METHODS, "none")
    monkeypatch.setattr(working_tree, "_MOST_FILES", 1)
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "train.py").write_text(dedent(NATIVE) + "open('other', 'w')\n")
    ran = probed_file(tmp_path, "train.py")
    assert "too many files to look for changes" in ran.text


def test_caches_in_the_tree_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    script = """
        import os, subprocess, torch
        torch.nn.Linear(1, 1)(torch.ones(1))
        open("cache/by_python", "w").write("x")
        subprocess.run("echo x > cache/by_shell; echo x > lost", shell=True)
    """
    (tmp_path / "train.py").write_text(dedent(script))
    method_of(probed_file(tmp_path, "train.py"), "overlay")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["by_python", "by_shell", "cache", "train.py"]


def test_a_temporary_folder_in_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "train.py").write_text(dedent(NATIVE))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    ran = probed_file(tmp_path, "train.py")
    method_of(ran, "overlay")
    assert ran.run.process.output == "x\n"
    assert (tmp_path / "mine").read_text() == "my text"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["mine", "tmp", "train.py"]


def test_the_whole_repository_is_protected(tmp_path: Path) -> None:
    """The script runs in a folder of it, and writes beside that."""
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "code"
    inner.mkdir()
    (tmp_path / "data").write_text("my data")
    (inner / "train.py").write_text(dedent(NATIVE) + "os.system('echo x > ../data; rm train.py')\n")
    ran = probed_file(inner, "train.py")
    assert method_of(ran, "overlay")["roots"] == [str(tmp_path)]
    assert (tmp_path / "data").read_text() == "my data"
    assert (inner / "train.py").exists()
    assert ran.run.observed.deleted == (str(inner / "train.py"),)


without_rights = pytest.mark.skipif(
    shutil.which("setpriv") is None or os.geteuid() != 0, reason="rights can be dropped by root only"
)


def protection_without_rights(folder: Path) -> dict[str, object]:
    """How a process that may not mount is protected, by `write_protection` in JSON."""
    drop = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
    ran = subprocess.run(
        [*drop, sys.executable, "-m", "shapefix", "probe", "--output-format", "json", "train.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "VIRTUAL_ENV": sys.prefix},
        capture_output=True,
        check=False,
    )
    found: dict[str, object] = json.loads(ran.stdout)["write_protection"]
    return found


@pytest.mark.slow
@without_rights
def test_a_user_gets_an_overlay_in_a_namespace(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "train.py").write_text(dedent(NATIVE))
    found = protection_without_rights(tmp_path)
    assert (tmp_path / "mine").read_text() == "my text"
    if found["method"] != "overlay":
        pytest.skip(f"no overlay: {found['reason']}")


@pytest.mark.slow
@without_rights
def test_files_of_others_need_another_protection(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "mine").chmod(0o666)
    os.chown(tmp_path / "mine", 1234, 1234)
    (tmp_path / "train.py").write_text(dedent(NATIVE))
    found = protection_without_rights(tmp_path)
    assert found["method"] != "overlay"
    assert "another owner or group" in str(found["reason"])
    if found["method"] == "landlock":
        assert (tmp_path / "mine").read_text() == "my text"


@pytest.mark.slow
def test_ranks_share_what_they_write(tmp_path: Path) -> None:
    script = """
        import os, torch
        import torch.distributed as dist
        dist.init_process_group("gloo")
        torch.nn.Linear(1, 1)(torch.ones(1))
        if dist.get_rank() == 0:
            os.system("echo of the first > shared; echo x > mine")
        dist.barrier()
        os.write(1, f"rank {dist.get_rank()}: {open('shared').read()}".encode())
        dist.destroy_process_group()
    """
    (tmp_path / "mine").write_text("my text")
    (tmp_path / "train.py").write_text(dedent(script))
    ran = probed_file(tmp_path, "train.py", processes=2)
    method_of(ran, "overlay")
    rows = [row for row in ran.run.process.output.splitlines() if row.startswith("rank ")]
    assert sorted(rows) == ["rank 0: of the first", "rank 1: of the first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "train.py"]
    assert (tmp_path / "mine").read_text() == "my text"
    assert set(ran.run.observed.written) == {str(tmp_path / "mine"), str(tmp_path / "shared")}


@pytest.mark.parametrize("method", ["landlock", "none"])
@pytest.mark.parametrize("trains", [True, False])
def test_a_refused_write_is_not_a_fault_of_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, trains: bool
) -> None:
    monkeypatch.setenv(METHODS, method)
    step = "torch.optim.SGD(model.parameters(), 0.1).step()"
    script = f"""
        import _io, torch, pyarrow, pyarrow.parquet
        model = torch.nn.Linear(1, 1)
        model(torch.ones(1, 1)).sum().backward()
        {step if trains else ""}
        {"pyarrow.OSFile('new', 'wb')" if method == "landlock" else "_io.FileIO('new', 'wb')"}
    """
    pytest.importorskip("pyarrow")
    (tmp_path / "train.py").write_text(dedent(script))
    ran = probed_file(tmp_path, "train.py")
    method_of(ran, method)
    assert not (tmp_path / "new").exists()
    assert ran.found == []
    found = collect_findings(ran.run.observed)
    assert found.early_stop_artifact is not None
    assert found.artifact_cause == REFUSED_WRITE
    assert code_of(ran.run, found) == (CLEAN if trains else FAILED)
