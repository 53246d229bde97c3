"""`shapefix guard`: asserts on the sizes that operations need, at the start of functions."""
