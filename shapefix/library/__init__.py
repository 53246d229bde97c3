"""What torch, transformers and Python itself do to values: small functions, looked up by qualified name."""
