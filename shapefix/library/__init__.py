"""Models of torch, transformers and Python functions, looked up by qualified name."""
