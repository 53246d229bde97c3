"""The commands and their options. What they do is in the modules beside this package."""

from shapefix.cli.commands import files, reading, runs, services, sizes

__all__ = ["files", "reading", "runs", "services", "sizes"]
