"""shapefix finds the crash, or the silent corruption, in PyTorch training code before the run does."""

__version__ = "0.1.0"
