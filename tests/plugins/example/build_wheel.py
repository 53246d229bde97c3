"""The smallest build backend: pip installs the package offline, without another one."""

from __future__ import annotations

import tomllib
from pathlib import Path
from zipfile import ZipFile


def build_wheel(folder: str, config_settings: object = None, metadata_directory: object = None) -> str:
    """Write the wheel of the package in the current folder, and return its name."""
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    name = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{name}.dist-info"
    groups = project["entry-points"].items()
    metadata = ("Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {project['version']}", "")
    wheel_version = ("Wheel-Version: 1.0", "Root-Is-Purelib: true", "Tag: py3-none-any", "")
    files = {
        f"{info}/METADATA": "\n".join(metadata),
        f"{info}/WHEEL": "\n".join(wheel_version),
        f"{info}/entry_points.txt": "".join(
            f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())
            for group, entries in groups
        ),
    }
    for path in sorted(Path("acme_shapefix").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".md"):
            files[path.as_posix()] = path.read_text("utf-8")
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with ZipFile(Path(folder, f"{name}-py3-none-any.whl"), "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return f"{name}-py3-none-any.whl"
