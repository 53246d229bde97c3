"""Show tensor sizes beside the source: the command `shapefix shapes`."""
