"""Python's built-ins and standard library."""
