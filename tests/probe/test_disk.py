"""What a script writes goes to a folder of the probe, where the script finds it again; its own files stay."""

from __future__ import annotations

from pathlib import Path

from probing import probed

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


def test_a_script_sees_its_writes_and_the_folder_does_not(tmp_path: Path) -> None:
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
    assert "to a temporary folder: runs, runs/, " in ran.text


def test_trackers_are_told_to_stay_offline(tmp_path: Path) -> None:
    script = """
        import os, torch
        print(os.environ["WANDB_MODE"], os.path.isdir(os.environ["WANDB_DIR"]), os.environ["NEPTUNE_MODE"])
        torch.nn.Linear(1, 1)(torch.ones(1))
    """
    ran = probed(tmp_path, script)
    assert ran.run.process.output == "offline True offline\n"
