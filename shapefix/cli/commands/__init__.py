"""The commands and their options; the modules beside this package carry them out."""

from shapefix.cli.commands import files, reading, runs, services, sizes

__all__ = ["files", "reading", "runs", "services", "sizes"]
