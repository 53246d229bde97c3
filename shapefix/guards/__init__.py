"""`shapefix guard`: asserts on needed sizes at the start of functions."""
