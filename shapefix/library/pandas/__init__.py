"""pandas: tables and columns as far as they become tensors."""
