"""Sizes beside the source: the command `shapefix shapes`."""
