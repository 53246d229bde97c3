"""`shapefix guard`: asserts on needed sizes, annotations of jaxtyping, and comments with sizes."""
